use ratchet::prelude::*;

#[job(retries = 3)]
async fn charge() {}

#[job("billing.charge")]
async fn refund() {}

fn main() {}
