use ratchet::prelude::*;

#[job]
async fn text(name: &str) {}

#[job]
async fn bytes(bytes: &'static [u8], more: Vec<&str>) {}

#[job]
async fn state(gateway: &State<u8>, ctx: &mut JobContext) {}

fn main() {}
