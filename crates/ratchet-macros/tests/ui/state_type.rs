use ratchet::prelude::*;

mod web {
    pub struct State<T>(pub T);
}

#[job]
async fn charge(_gateway: web::State<u8>) {}

fn main() {}
