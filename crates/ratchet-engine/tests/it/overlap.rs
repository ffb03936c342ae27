//! Settling and claiming at the same time: what a node asks of a store that lets it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratchet_core::store::{StoreDecorator, Turn};
use ratchet_core::{
    ClaimRequest, ErrorKind, JobState, MemoryStore, ResourceLimit, Settled, Settlement, Store, StoreError,
};
use ratchet_engine::{Client, Ratchet, Timing};

use crate::support::{Play, Stage, eventually, memory, quick, quick_timing};

const SLOTS: usize = 128;
/// The time that a call takes before the store acts, and again before its answer arrives, as on a server.
const LATENCY: Duration = Duration::from_micros(500);

/// A store that lets calls overlap, and counts them.
#[derive(Debug, Clone)]
struct Overlapping {
    inner: MemoryStore,
    seen: Arc<Mutex<Seen>>,
    faults: Faults,
}

/// The answers that are lost.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Faults {
    None,
    /// Every third answer to a call that settles, after it was committed.
    Settlements,
    /// Every third answer to a call that claims.
    Claims,
}

#[derive(Debug, Default)]
struct Seen {
    settling: usize,
    claiming: usize,
    both: usize,
    overlaps: usize,
    could_be_lost: usize,
    /// Jobs that the node owns: claimed, and not settled.
    owned: usize,
    owned_max: usize,
}

impl StoreDecorator for Overlapping {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn settles_beside_claims(&self) -> bool {
        true
    }

    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError> {
        let (settles, claims) = (!settlements.is_empty(), claim.is_some());
        {
            let mut seen = self.seen.lock().unwrap();
            seen.settling += usize::from(settles);
            seen.claiming += usize::from(claims);
            seen.both += usize::from(settles && claims);
            seen.overlaps += usize::from(seen.settling + seen.claiming > usize::from(settles) + usize::from(claims));
            assert!(seen.settling <= 1 && seen.claiming <= 1, "{seen:?}");
        }
        tokio::time::sleep(LATENCY).await;
        let turn = self.inner().settle_and_claim(settlements, claim).await;
        {
            let mut seen = self.seen.lock().unwrap();
            if let Ok(turn) = &turn {
                let settled = turn.settled.iter().filter(|settled| **settled == Settled::Applied).count();
                seen.owned = seen.owned + turn.claimed.len() - settled;
                seen.owned_max = seen.owned_max.max(seen.owned);
            }
        }
        tokio::time::sleep(LATENCY).await;
        let mut seen = self.seen.lock().unwrap();
        seen.settling -= usize::from(settles);
        seen.claiming -= usize::from(claims);
        let lost = match self.faults {
            Faults::None => false,
            Faults::Settlements => settles,
            Faults::Claims => claims && turn.as_ref().is_ok_and(|turn| !turn.claimed.is_empty()),
        };
        seen.could_be_lost += usize::from(lost);
        if lost && seen.could_be_lost.is_multiple_of(3) {
            return Err(StoreError::new(ErrorKind::Unavailable, "settling", "the answer was lost"));
        }
        turn
    }
}

async fn node(stage: &Stage, faults: Faults) -> (Ratchet, Arc<Mutex<Seen>>) {
    let store = Overlapping { inner: memory(), seen: Arc::default(), faults };
    let seen = store.seen.clone();
    // A node that hands back what it runs would be noticed: it compares all the time.
    let timing = Timing { reconcile: Duration::from_millis(10), ..quick_timing() };
    (quick(stage).store(store).timing(timing).queue("default", SLOTS).start().await.unwrap(), seen)
}

async fn all_succeed(node: &Ratchet, jobs: usize) {
    let jobs: Vec<_> = (0..jobs).map(|_| node.enqueue(Play::Return("x".into())).max_retries(0)).collect();
    for handle in node.submit_all(jobs).await.unwrap() {
        assert_eq!(handle.wait().await.unwrap().state, JobState::Succeeded);
    }
}

#[tokio::test]
async fn under_load_one_call_settles_while_another_claims() {
    let stage = Stage::default();
    let (node, seen) = node(&stage, Faults::None).await;
    all_succeed(&node, 2_000).await;
    let stats = node.stats();
    node.shutdown().await;
    let seen = seen.lock().unwrap();
    assert_eq!(stage.total_runs(), 2_000, "every job runs once");
    assert!(seen.overlaps > 5, "{seen:?}");
    assert!(seen.owned_max <= SLOTS && stage.most_together() <= SLOTS, "{seen:?}");
    assert_eq!((seen.owned, stats.conflicts, stats.lost_claims), (0, 0, 0), "{seen:?}");
}

#[tokio::test]
async fn without_load_one_call_settles_and_claims() {
    let stage = Stage::default();
    let (node, seen) = node(&stage, Faults::None).await;
    for _ in 0..20 {
        all_succeed(&node, 1).await;
    }
    node.shutdown().await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.overlaps, 0, "{seen:?}");
    assert!(seen.both > 0, "{seen:?}");
}

#[tokio::test]
async fn lost_answers_to_settlements_lose_and_double_nothing_while_claims_go_on() {
    let stage = Stage::default();
    let (node, seen) = node(&stage, Faults::Settlements).await;
    all_succeed(&node, 300).await;
    let stats = node.stats();
    node.shutdown().await;
    assert_eq!((stage.total_runs(), stats.conflicts), (300, 0));
    assert!(stats.turn_errors > 0);
    assert_eq!(seen.lock().unwrap().owned, 0);
}

#[tokio::test]
async fn jobs_of_lost_answers_to_claims_are_handed_back_and_run() {
    let stage = Stage::default();
    let (node, seen) = node(&stage, Faults::Claims).await;
    all_succeed(&node, 300).await;
    eventually("what was lost is handed back", async || node.stats().lost_claims > 0).await;
    node.shutdown().await;
    assert_eq!(stage.total_runs(), 300, "none of them had begun");
    assert!(seen.lock().unwrap().owned_max <= 2 * SLOTS, "a node does not know what a lost answer has given it");
}

#[tokio::test]
async fn a_node_that_stops_waits_for_both_calls() {
    let stage = Stage::default();
    let (node, seen) = node(&stage, Faults::None).await;
    let jobs: Vec<_> = (0..2_000).map(|_| node.enqueue(Play::Return("x".into()))).collect();
    node.submit_all(jobs).await.unwrap();
    eventually("calls overlap", async || seen.lock().unwrap().overlaps > 2).await;
    let client: Client = (*node).clone();
    node.shutdown().await;
    let counts = client.count_by_state().await.unwrap();
    let count = |state| counts.iter().find(|(of, _)| **of == state).map_or(0, |(_, count)| *count);
    assert_eq!(count(JobState::Running), 0, "{counts:?}");
    assert_eq!(count(JobState::Succeeded), stage.total_runs() as u64, "every result is written");
    assert_eq!(seen.lock().unwrap().owned, 0);
}

#[tokio::test]
async fn permits_are_enough_for_all_that_run_while_calls_overlap() {
    let stage = Stage::default();
    let store = Overlapping { inner: memory(), seen: Arc::default(), faults: Faults::None };
    let limit = ResourceLimit::new("printer", 3).unwrap().retry_delay(Duration::from_millis(5));
    let node = quick(&stage).store(store).queue("default", SLOTS).resource_limit(limit).start().await.unwrap();
    let jobs: Vec<_> = (0..200).map(|_| node.enqueue(Play::Return("x".into())).resource("printer")).collect();
    for handle in node.submit_all(jobs).await.unwrap() {
        handle.wait().await.unwrap();
    }
    assert!(stage.most_together() <= 3, "{}", stage.most_together());
    eventually("the last permit ends", async || node.resources().await.unwrap()[0].in_use == 0).await;
}
