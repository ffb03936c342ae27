use ratchet::prelude::*;

#[job]
fn charge() {}

#[job(blocking)]
async fn refund() {}

fn main() {}
