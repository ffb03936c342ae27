use ratchet::prelude::*;

struct NoError;

#[job]
async fn charge() -> Result<(), NoError> {
    Ok(())
}

fn main() {}
