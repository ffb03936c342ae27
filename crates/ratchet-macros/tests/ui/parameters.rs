use ratchet::prelude::*;

#[job]
async fn method(&self, invoice: u64) {}

#[job]
async fn pattern((left, right): (u8, u8), _: u8) {}

#[job]
async fn opaque(name: impl Into<String>) {}

#[job]
async fn contexts(one: &JobContext, two: JobContext) {}

fn main() {}
