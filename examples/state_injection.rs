//! Handlers take what they need as parameters; the builder gives it, and a start without it is refused.

use std::sync::Arc;

use ratchet::prelude::*;

/// Something that the application has one of.
struct Mailer {
    from: &'static str,
}

/// A trait of the application, so that tests can put something else in its place.
trait Greeter: Send + Sync {
    fn greeting(&self, name: &str) -> String;
}

struct English;

impl Greeter for English {
    fn greeting(&self, name: &str) -> String {
        format!("Dear {name}")
    }
}

/// `#[state]` marks a state whose type does not say so.
type SharedGreeter = State<Arc<dyn Greeter>>;

#[job]
async fn welcome(mailer: State<Mailer>, #[state] greeter: SharedGreeter, name: String) -> String {
    format!("{}: {}, welcome!", mailer.from, greeter.greeting(&name))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let open = || SqliteStore::open(dir.path().join("jobs.db"));
    let mailer = || Mailer { from: "office@example.org" };

    let refused = Ratchet::builder().store(open().await?).jobs(jobs![welcome]).state(mailer()).start().await;
    println!("without a greeter: {}", refused.expect_err("a state is missing"));

    let greeter: Arc<dyn Greeter> = Arc::new(English);
    let builder = Ratchet::builder().store(open().await?).jobs(jobs![welcome]).state(mailer());
    let ratchet = builder.state(greeter.clone()).start().await?;
    println!("{}", ratchet.enqueue(welcome("Ada".into())).submit().await?.result().await?);
    ratchet.shutdown().await;

    // In a unit test the body needs neither a node nor a store.
    println!("{}", WelcomeJob::call(State::new(mailer()), State::new(greeter), "Bob".into()).await);
    Ok(())
}
