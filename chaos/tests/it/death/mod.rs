//! A process that dies right after every single call of its store, in the middle of what hangs together: after a restart
//! everything ends as it should, nothing is stuck and nothing is there twice.

mod batches;
mod flows;
mod signals;
mod turns;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ratchet::{Client, JobRecord, JobState};
use ratchet_chaos::errand::Errand;
use ratchet_chaos::node::{Node, NotReady};
use ratchet_chaos::trial::jobs_in;

use crate::site::Site;

const QUICK: [&str; 6] = ["--heartbeat-ms", "100", "--grace-ms", "500", "--scan-ms", "50"];
/// No scene here has more calls.
const CALLS_MAX: u64 = 60;
/// How many sites are at work at once: most of the time they wait for a grace.
const TOGETHER: u64 = 6;

/// A site, and after how many calls its first node dies.
struct Dying {
    site: Site,
    calls: u64,
}

impl Dying {
    /// A node that dies; `None` if it did before it could say that it runs: its loops run a moment earlier.
    fn node(&self, args: &[&str]) -> Option<Node> {
        let calls = self.calls.to_string();
        match self.site.try_node_with(&[&QUICK[..], &["--dies-after", &calls], args].concat()) {
            Err(error) if error.downcast_ref::<NotReady>().is_some_and(NotReady::has_aborted) => None,
            started => Some(started.unwrap()),
        }
    }

    /// A node that dies, sent on an errand.
    fn node_on(&self, errand: &Errand, args: &[&str]) -> Option<Node> {
        self.node(&[&["--errand", &errand.to_arg()], args].concat())
    }

    /// A node that goes on.
    fn second(&self) -> Node {
        self.site.node_with(&QUICK)
    }

    /// A node that goes on, sent on an errand.
    fn second_on(&self, errand: &Errand, args: &[&str]) -> Node {
        self.site.node_with(&[&QUICK[..], &["--errand", &errand.to_arg()], args].concat())
    }

    fn client(&self) -> &Client {
        &self.site.client
    }

    async fn jobs(&self) -> Vec<JobRecord> {
        jobs_in(self.client(), &JobState::ALL).await.unwrap()
    }

    /// Whether a node gets through: `false` when it has died.
    async fn lives(&self, node: Option<Node>, over: impl AsyncFn() -> bool) -> bool {
        let Some(mut node) = node else { return false };
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            if node.has_aborted().unwrap() {
                return false;
            }
            if over().await {
                return true;
            }
            assert!(Instant::now() < deadline, "the node neither dies nor gets through");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Dying {
    fn drop(&mut self) {
        // Of all sites that end with a failed test, the one that failed is the first.
        if std::thread::panicking() {
            println!("death after call {}", self.calls);
        }
    }
}

/// Plays a scene with a node that dies after its first call, with one that dies after its second, and so on, each on a site
/// of its own. The scene says whether its node has lived; when one has, every call has had its death.
async fn die_after_every_call(scene: impl AsyncFn(Dying) -> bool) {
    let mut deaths = 0;
    let mut calls = 1;
    loop {
        assert!(calls <= CALLS_MAX, "a node that never gets through");
        let scene = &scene;
        let plays = (calls..calls + TOGETHER).map(async |calls| scene(Dying { site: Site::new().await, calls }).await);
        let lived = join_all(plays).await;
        deaths += lived.iter().filter(|lived| !**lived).count();
        calls += TOGETHER;
        if lived.contains(&true) {
            break;
        }
    }
    println!("{deaths} deaths");
    assert!(deaths >= 3, "it dies in the middle: {deaths}");
}

/// How many of these are in a state.
fn count_in(jobs: &[JobRecord], state: JobState) -> usize {
    jobs.iter().filter(|job| job.state == state).count()
}

/// Whether so many jobs are there, and all have ended.
fn all_ended(jobs: &[JobRecord], count: usize) -> bool {
    jobs.len() >= count && jobs.iter().all(|job| job.state.is_terminal())
}
