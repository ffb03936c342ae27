use ratchet::prelude::*;

#[job]
async fn store<T: serde::Serialize>(value: T) {}

#[job]
async fn look<'a>(ctx: &'a JobContext) {}

fn main() {}
