//! A free port for a server.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// Below the ports that Linux gives to outgoing connections (32768 and up), so that no client's own port takes the place
/// of a server that was killed and is to come back.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
const TRIES: u16 = 200;

/// A port that nobody listens on now. Whoever starts a server on it must expect to lose the race for it.
pub(crate) fn free() -> Result<u16> {
    let candidates = (0..TRIES).map(|_| {
        let offset = random() % u64::from(PORTS.end - PORTS.start);
        PORTS.start + u16::try_from(offset).expect("an offset into a range of ports")
    });
    candidates
        .into_iter()
        .find(|port| is_free(*port))
        .with_context(|| format!("found no free port on 127.0.0.1 in {PORTS:?} in {TRIES} tries"))
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Every `RandomState` has keys of its own, which is as random as ports and names of directories need.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0)
}
