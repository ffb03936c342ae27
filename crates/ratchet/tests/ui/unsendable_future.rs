use ratchet::prelude::*;

#[job]
async fn charge() {
    let shared = std::rc::Rc::new(1);
    std::future::ready(()).await;
    drop(shared);
}

fn main() {}
