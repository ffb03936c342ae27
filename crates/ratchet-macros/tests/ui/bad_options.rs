use ratchet::prelude::*;

#[job(kind = "Billing.Charge", queue = "", priority = "urgent")]
async fn names() {}

#[job(backoff = "linear 2s", timeout = "30", max_retries = 10_001)]
async fn numbers() {}

#[job(backoff = "fixed 2d", timeout = "0s")]
async fn limits() {}

#[job(timeout = 30, max_retries = "3", blocking = true)]
async fn types() {}

#[job(breaker = "slow")]
async fn breakers() {}

#[job(kind = "a", kind = "b")]
async fn twice() {}

#[job]
#[allow(non_snake_case)]
async fn Charge() {}

fn main() {
    // Bad options do not hide the job.
    let _ = (names(), numbers(), limits(), types(), twice());
}
