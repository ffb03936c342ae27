//! The suite that every cluster coordinator passes.
//!
//! A transport's test is a function that gives a [`CoordinatorFixture`], a transport that nothing else uses, and one
//! line; every case becomes a test of its own name:
//!
//! ```
//! use ratchet_conformance::coordinator::{Bus, CoordinatorFixture};
//!
//! async fn fresh() -> CoordinatorFixture {
//!     CoordinatorFixture::new(Bus::default())
//! }
//!
//! ratchet_conformance::coordinator_suite!(fresh);
//! # fn main() {}
//! ```

pub mod broken;

mod bus;
mod cases;
mod cluster;
mod proxy;

mod closing;
mod coalescing;
mod counting;
mod delivery;
mod early;
mod listeners;
mod messages;
mod outage;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::ClusterCoordinator;

pub use bus::{Bus, BusCoordinator};
pub use cases::COORDINATOR_CASES;
pub use cluster::Cluster;
pub use proxy::{Proxy, Way};

/// How long a hint may take.
pub const LATENCY_MAX: Duration = Duration::from_secs(2);

/// What coordinators speak over.
#[async_trait]
pub trait Transport: Send + Sync {
    /// The coordinator of one more node, connected.
    async fn connect(&self) -> Arc<dyn ClusterCoordinator>;

    /// Sends a text as it is to every node.
    async fn inject(&self, text: &str);

    /// Takes the transport away; `false` if this cannot be done, and cases about it are passed by.
    async fn cut(&self) -> bool {
        false
    }

    /// Gives the transport back.
    async fn restore(&self) {}

    /// The longest message that the transport itself carries.
    fn message_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Whether hints that come before the first listener are kept for it.
    fn keeps_early_hints(&self) -> bool {
        true
    }
}

/// A transport for one case.
pub struct CoordinatorFixture {
    /// The transport.
    pub transport: Box<dyn Transport>,
}

impl CoordinatorFixture {
    /// A fixture over this transport.
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport) }
    }
}

impl fmt::Debug for CoordinatorFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CoordinatorFixture")
    }
}

/// One thing that a coordinator must do right.
#[derive(Debug, Clone, Copy)]
pub struct CoordinatorCase {
    /// What must be true, as a sentence.
    pub name: &'static str,
    /// Runs it; panics if it is not true.
    pub run: fn(Cluster) -> Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The broken coordinators that must make it panic.
    pub broken_by: &'static [broken::CoordinatorFlaw],
}

/// Runs the case of this name; panics if the coordinator is wrong.
/// [`coordinator_suite!`](crate::coordinator_suite) calls it for every case.
pub fn run<F: Future<Output = CoordinatorFixture>>(name: &str, fixture: impl FnOnce() -> F) {
    let case = COORDINATOR_CASES.iter().find(|case| case.name == name).expect("the list of cases knows its own names");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a test can start a runtime");
    runtime.block_on(async { (case.run)(Cluster::new(fixture().await)).await });
}
