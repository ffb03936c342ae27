//! Arguments and results that nobody reads in the database: a codec with two keys, one of them in use.

use ratchet::prelude::*;
use ratchet::{BoxError, PayloadCodec};

/// Writes with the first key and reads with all of them, by their names.
///
/// A stand-in for a cipher, which it is not: a real codec calls one that also notices what was tampered with.
struct Masked {
    keys: Vec<(&'static str, &'static [u8])>,
}

impl Masked {
    fn mask(bytes: &[u8], key: &[u8]) -> Vec<u8> {
        bytes.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect()
    }
}

impl PayloadCodec for Masked {
    fn name(&self) -> &str {
        self.keys[0].0
    }

    fn reads(&self, name: &str) -> bool {
        self.keys.iter().any(|(known, _)| *known == name)
    }

    fn encode(&self, json: &str) -> Result<String, BoxError> {
        let halves = Self::mask(json.as_bytes(), self.keys[0].1).into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
        Ok(halves.map(|half| char::from_digit(half.into(), 16).expect("four bits")).collect())
    }

    fn decode(&self, name: &str, data: &str) -> Result<String, BoxError> {
        let (_, key) = self.keys.iter().find(|(known, _)| *known == name).ok_or("no such key")?;
        let digits = |at: usize| data.get(at..at + 2).ok_or("half a byte");
        let bytes = (0..data.len()).step_by(2).map(|at| Ok(u8::from_str_radix(digits(at)?, 16)?));
        let bytes = bytes.collect::<Result<Vec<u8>, BoxError>>()?;
        Ok(String::from_utf8(Self::mask(&bytes, key))?)
    }
}

#[job]
async fn greet(name: String) -> String {
    format!("hello, {name}")
}

#[job]
async fn shout(before: Prev<String>) -> String {
    before.to_uppercase()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let open = || SqliteStore::open(dir.path().join("jobs.db"));
    let old = ("key-1", b"correct horse".as_slice());
    let new = ("key-2", b"battery staple".as_slice());

    // Submitted while the first key was in use.
    let client = Ratchet::client(open().await?).with_payload_codec(Masked { keys: vec![old] });
    let before = client.enqueue(greet("Ada".into())).submit().await?;

    let node = Ratchet::builder().store(open().await?).jobs(jobs![greet, shout]);
    let ratchet = node.payload_codec(Masked { keys: vec![new, old] }).start().await?;
    let now = ratchet
        .enqueue(greet("Bob".into()))
        // The store cannot read the result, so that this is asked in a step of its own.
        .when(result("").contains("Bob"), shout())
        .submit()
        .await?;
    println!("{}", ratchet.handle::<String>(before.id()).result().await?);
    println!("{}", now.result().await?);
    let shouted = ratchet.dependants(now.id()).await?.last().map(|edge| edge.child).expect("a branch follows");
    println!("{}", ratchet.handle::<String>(shouted).result().await?);

    println!("in the database:");
    for handle in [before.id(), now.id(), shouted] {
        let record = ratchet.handle::<String>(handle).record().await?;
        println!("  {:?} -> {:?}", record.spec.payload, record.result.expect("it has succeeded"));
    }
    ratchet.shutdown().await;
    Ok(())
}
