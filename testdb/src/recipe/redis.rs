//! Redis, which keeps its data over a restart only if it is to be durable.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use super::Recipe;
use crate::site::{Profile, Site};

pub(super) struct Redis;

const ANSWER_LIMIT: Duration = Duration::from_secs(1);

impl Recipe for Redis {
    fn programs(&self) -> &'static [(&'static str, &'static str)] {
        &[("redis-server", "redis-server"), ("redis-cli", "redis-tools")]
    }

    fn accounts(&self) -> &'static [&'static str] {
        &["redis", "nobody"]
    }

    fn prepare(&self, site: &Site) -> Result<()> {
        fs::create_dir(site.data()).context("cannot make the data directory")?;
        site.account.give(&site.data())
    }

    fn command(&self, site: &Site) -> Result<Command> {
        let mut redis = site.program("redis-server")?;
        redis.args(["--bind", "127.0.0.1", "--port"]).arg(site.port.to_string()).arg("--dir").arg(site.data());
        redis.args(["--daemonize", "no", "--save", ""]);
        match site.profile {
            Profile::Durable => redis.args(["--appendonly", "yes", "--appendfsync", "always"]),
            Profile::Fast => redis.args(["--appendonly", "no"]),
        };
        Ok(redis)
    }

    /// Asked in its own language: while it still loads, the answer is another one.
    fn answers(&self, site: &Site) -> Result<bool> {
        let mut redis = TcpStream::connect((Ipv4Addr::LOCALHOST, site.port))?;
        redis.set_read_timeout(Some(ANSWER_LIMIT))?;
        redis.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        redis.read_exact(&mut answer)?;
        Ok(answer == *b"+PONG\r\n")
    }

    fn url(&self, port: u16) -> String {
        format!("redis://127.0.0.1:{port}")
    }

    fn stop_signal(&self) -> Signal {
        Signal::SIGTERM
    }
}
