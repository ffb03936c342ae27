//! Resources: no more jobs run than there are permits, and nothing else waits for them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ratchet_core::claim::ClaimRequest;
use ratchet_core::{
    Claim, JobId, NewJob, NodeId, Priority, ResourceLimit, ResourceName, ResourceRecord, Settled, Settlement,
};

use crate::harness::{
    Harness, KIND, another_try, deferral, ids, mins, new_job, pool, queue, request, rescue, success, work, works,
};
use crate::races::race;

const DELAY: Duration = Duration::from_secs(20);

fn name(resource: &str) -> ResourceName {
    ResourceName::new(resource).unwrap()
}

fn limit(resource: &str, max: u32) -> ResourceLimit {
    ResourceLimit::new(resource, max).unwrap().retry_delay(DELAY)
}

/// A job that needs a permit.
fn needing(resource: &str) -> NewJob {
    let mut job = work();
    job.spec.resource = Some(name(resource));
    job
}

fn urgent(mut job: NewJob) -> NewJob {
    job.spec.priority = Priority::High;
    job
}

impl Harness {
    async fn limited(&self, resource: &str, max: u32) {
        self.store.set_resource(&limit(resource, max)).await.unwrap();
    }

    async fn submit_needing(&self, resource: &str, count: usize) -> Vec<JobId> {
        self.submit_each((0..count).map(|_| needing(resource)).collect()).await
    }

    async fn in_use(&self, resource: &str) -> u32 {
        let all = self.store.resources().await.unwrap();
        all.iter().find(|record| record.name.as_str() == resource).map_or(0, |record| record.in_use)
    }

    async fn claim_as(&self, node: NodeId) -> Vec<Claim> {
        self.claim(&ClaimRequest { node, ..self.request() }).await
    }
}

pub(crate) async fn as_many_run_as_there_are_permits(harness: Harness) {
    harness.limited("printer", 2).await;
    let jobs = harness.submit_needing("printer", 4).await;
    let claimed = harness.claim_all().await;
    assert_eq!(ids(&claimed), jobs[..2]);
    assert_eq!(harness.in_use("printer").await, 2);
    assert_eq!(ids(&harness.claim_all().await), []);
    assert_eq!(ids(&harness.claim_as(harness.another_node().await).await), [], "the limit is the cluster's");
    // The permit that ends is there for the claim of the same turn.
    let turn = harness.turn(&[success(&claimed[0])], Some(&harness.request())).await;
    assert_eq!((ids(&turn.claimed), harness.in_use("printer").await), (vec![jobs[2]], 2));
    harness.succeed(&claimed[1]).await;
    harness.succeed(&turn.claimed[0]).await;
    assert_eq!(harness.in_use("printer").await, 0);
    assert_eq!(ids(&harness.claim_all().await), jobs[3..]);
}

pub(crate) async fn jobs_without_the_resource_are_not_held_up(harness: Harness) {
    harness.limited("printer", 1).await;
    harness.limited("scanner", 1).await;
    let printing = harness.submit_needing("printer", 3).await;
    let scanning = harness.submit_needing("scanner", 2).await;
    let free = harness.submit_each(works(2)).await;
    let unlimited = harness.submit_needing("unlimited", 2).await;
    // In the order in which they were submitted: those that wait for permits are passed over.
    let expected = [&printing[..1], &scanning[..1], &free[..], &unlimited[..]].concat();
    assert_eq!(ids(&harness.claim_all().await), expected);
    let later = harness.submit(work()).await;
    assert_eq!(ids(&harness.claim_all().await), [later]);
}

pub(crate) async fn a_permit_ends_with_every_sort_of_settlement(harness: Harness) {
    harness.limited("printer", 1).await;
    harness.submit_needing("printer", 1).await;
    let ends: [fn(&Claim) -> Settlement; 4] =
        [|claim| another_try(claim, mins(0)), |claim| deferral(claim, mins(0)), rescue, success];
    for settle in ends {
        let claim = harness.claim_one().await;
        assert_eq!(harness.in_use("printer").await, 1);
        assert_eq!(harness.settle(settle(&claim)).await, Settled::Applied);
        assert_eq!(harness.in_use("printer").await, 0);
    }
}

pub(crate) async fn a_permit_is_the_attempts_and_not_the_jobs(harness: Harness) {
    harness.limited("printer", 1).await;
    let job = harness.submit_needing("printer", 1).await[0];
    let next = harness.submit_needing("printer", 1).await[0];
    let first = harness.claim_one().await;
    harness.advance(mins(1));
    // Something of the handler still runs: the job goes back, the permit stays.
    let kept = Settlement { ends_permit: false, ..another_try(&first, mins(0)) };
    assert_eq!(harness.settle(kept).await, Settled::Applied);
    assert_eq!((harness.in_use("printer").await, harness.claim_all().await.len()), (1, 0));
    harness.store.release_permits(&[first.fence]).await.unwrap();
    assert_eq!(harness.in_use("printer").await, 0);
    let second = harness.claim_one().await;
    assert_eq!(second.job.id, next, "a failed attempt puts a job behind the others");
    // Once more is harmless, and no other attempt's permit ends.
    harness.store.release_permits(&[first.fence, first.fence]).await.unwrap();
    assert_eq!(harness.in_use("printer").await, 1);
    harness.succeed(&second).await;
    assert_eq!(harness.claim_one().await.job.id, job);
}

pub(crate) async fn a_canceled_job_keeps_its_permit_until_its_handler_has_ended(harness: Harness) {
    harness.limited("printer", 1).await;
    let claim = harness.running(needing("printer")).await;
    let waiting = harness.submit(needing("printer")).await;
    harness.store.cancel(claim.job.id).await.unwrap().expect("it runs");
    assert_eq!((harness.in_use("printer").await, harness.claim_all().await.len()), (1, 0), "the handler still runs");
    // The settlement comes too late, but the handler has ended.
    assert_eq!(harness.settle(success(&claim)).await, Settled::Conflict);
    assert_eq!(harness.in_use("printer").await, 0);
    assert_eq!(ids(&harness.claim_all().await), [waiting]);
}

pub(crate) async fn a_node_can_read_which_permits_it_has(harness: Harness) {
    let other = harness.another_node().await;
    let of = async |node| {
        let mut permits = harness.store.permits_of(node).await.unwrap();
        permits.sort();
        permits
    };
    harness.submit_needing("printer", 1).await;
    harness.submit_needing("scanner", 1).await;
    harness.submit(work()).await;
    let claims = harness.claim_all().await;
    harness.submit_needing("printer", 1).await;
    let others = harness.claim_as(other).await;
    assert_eq!(of(harness.node).await, [claims[0].fence, claims[1].fence]);
    assert_eq!(of(other).await, [others[0].fence]);
    harness.store.cancel(claims[0].job.id).await.unwrap().expect("it runs");
    assert_eq!(of(harness.node).await.len(), 2, "its handler may still run");
    harness.store.release_permits(&[claims[0].fence]).await.unwrap();
    harness.succeed(&claims[1]).await;
    assert_eq!(of(harness.node).await, []);
}

pub(crate) async fn the_permits_of_dead_nodes_are_void(harness: Harness) {
    harness.limited("printer", 2).await;
    let (stops, dies) = (harness.another_node().await, harness.another_node().await);
    let jobs = harness.submit_needing("printer", 4).await;
    let take = |node| ClaimRequest { node, limit: 1, ..harness.request() };
    let (first, second) = (harness.claim(&take(stops)).await, harness.claim(&take(dies)).await);
    assert_eq!([ids(&first), ids(&second)].concat(), jobs[..2]);
    assert_eq!(harness.claim_all().await.len(), 0);
    harness.store.deregister(stops).await.unwrap();
    assert_eq!(harness.in_use("printer").await, 1);
    harness.advance(mins(5));
    assert!(harness.beat(harness.node).await);
    let orphans = harness.store.orphans(harness.node, mins(2), 100).await.unwrap();
    assert_eq!(orphans.declared_dead, [dies]);
    assert_eq!(harness.in_use("printer").await, 0);
    assert_eq!(ids(&harness.claim_all().await), jobs[2..]);
    // Rescuing its job gives back nothing that was not out.
    assert_eq!(orphans.jobs.len(), 2);
    for orphan in &orphans.jobs {
        assert_eq!(harness.settle(rescue(orphan)).await, Settled::Applied);
    }
    assert_eq!((harness.in_use("printer").await, harness.claim_all().await.len()), (2, 0));
    harness.store.orphans(harness.node, mins(2), 100).await.unwrap();
    assert_eq!(harness.in_use("printer").await, 2);
}

pub(crate) async fn a_job_on_probation_needs_a_permit_too(harness: Harness) {
    harness.limited("printer", 1).await;
    let claim = harness.running(needing("printer")).await;
    harness.rescue(&claim).await;
    let other = harness.submit(needing("printer")).await;
    let without = ClaimRequest { probation: false, ..harness.request() };
    let running = harness.claim(&without).await;
    assert_eq!(ids(&running), [other]);
    assert_eq!(ids(&harness.claim_all().await), [], "there is no permit for it");
    let turn = harness.turn(&[success(&running[0])], Some(&harness.request())).await;
    assert_eq!(ids(&turn.claimed), [claim.job.id]);
    assert_eq!(harness.in_use("printer").await, 1);
}

pub(crate) async fn permits_go_to_the_most_urgent_and_oldest(harness: Harness) {
    harness.limited("printer", 1).await;
    let holder = harness.running(needing("printer")).await;
    let mut order = Vec::new();
    for _ in 0..2 {
        harness.advance(Duration::from_secs(1));
        order.push(harness.submit(needing("printer")).await);
    }
    order.insert(0, harness.submit(urgent(needing("printer"))).await);
    let mut running = holder;
    for expected in order {
        let turn = harness.turn(&[success(&running)], Some(&harness.request())).await;
        assert_eq!(ids(&turn.claimed), [expected]);
        running = turn.claimed.into_iter().next().unwrap();
    }
}

pub(crate) async fn one_resource_limits_kinds_and_queues_together(harness: Harness) {
    harness.limited("printer", 2).await;
    let mut jobs = Vec::new();
    for (queue_name, kind) in [("default", KIND), ("other", KIND), ("other", "another"), ("default", "another")] {
        let mut job = new_job(kind);
        job.spec.queue = queue(queue_name);
        job.spec.resource = Some(name("printer"));
        jobs.push(harness.submit(job).await);
    }
    let other = request(harness.node, vec![pool("other", &[KIND, "another"])]);
    let all = request(harness.node, vec![pool("default", &[KIND, "another"]), pool("other", &[KIND, "another"])]);
    let one = ClaimRequest { limit: 1, ..other.clone() };
    assert_eq!(ids(&harness.claim(&one).await), jobs[1..2], "what this node does not run is no matter to it");
    let claimed = harness.claim(&all).await;
    assert_eq!(ids(&claimed), jobs[..1]);
    assert_eq!(ids(&harness.claim(&all).await), []);
    harness.store.pause_queue(&queue("default")).await.unwrap();
    let turn = harness.turn(&[success(&claimed[0])], Some(&all)).await;
    assert_eq!(ids(&turn.claimed), jobs[2..3], "a paused queue takes no permits");
}

pub(crate) async fn a_limit_can_be_changed(harness: Harness) {
    harness.limited("printer", 1).await;
    let jobs = harness.submit_needing("printer", 5).await;
    let mut running = harness.claim_all().await;
    harness.limited("printer", 3).await;
    running.extend(harness.claim_all().await);
    assert_eq!(ids(&running), jobs[..3]);
    // What runs goes on, and nothing begins until fewer run.
    harness.limited("printer", 1).await;
    assert_eq!(harness.in_use("printer").await, 3);
    for claim in &running[..2] {
        let turn = harness.turn(&[success(claim)], Some(&harness.request())).await;
        assert_eq!(ids(&turn.claimed), []);
    }
    harness.limited("printer", 0).await;
    harness.succeed(&running[2]).await;
    assert_eq!(ids(&harness.claim_all().await), [], "no permits, no jobs");
    assert!(harness.store.remove_resource(&name("printer")).await.unwrap());
    assert!(!harness.store.remove_resource(&name("printer")).await.unwrap());
    assert_eq!(ids(&harness.claim_all().await), jobs[3..]);
}

pub(crate) async fn a_limit_begins_with_what_runs_already(harness: Harness) {
    let jobs = harness.submit_needing("printer", 3).await;
    let claimed = harness.claim(&ClaimRequest { limit: 2, ..harness.request() }).await;
    let unlimited = ResourceRecord { name: name("printer"), limit: None, by_hand: false, in_use: 2 };
    assert_eq!(harness.store.resources().await.unwrap(), [unlimited]);
    harness.limited("printer", 2).await;
    assert_eq!(ids(&harness.claim_all().await), []);
    harness.succeed(&claimed[0]).await;
    assert_eq!(ids(&harness.claim_all().await), jobs[2..]);
}

pub(crate) async fn a_limit_set_by_hand_stays(harness: Harness) {
    let shown = async || {
        let all = harness.store.resources().await.unwrap();
        all.into_iter()
            .map(|record| (record.name.as_str().to_owned(), record.limit, record.by_hand))
            .collect::<Vec<_>>()
    };
    harness.store.declare_resource(&limit("b", 1)).await.unwrap();
    harness.store.declare_resource(&limit("b", 2)).await.unwrap();
    harness.limited("A", 5).await;
    harness.limited("a", 4).await;
    let expected = |b: ResourceLimit, by_hand: bool| {
        let a = [("A".to_owned(), Some(limit("A", 5)), true), ("a".to_owned(), Some(limit("a", 4)), true)];
        [a.to_vec(), vec![("b".to_owned(), Some(b), by_hand)]].concat()
    };
    assert_eq!(shown().await, expected(limit("b", 2), false));
    let delayed = limit("b", 7).retry_delay(mins(1));
    harness.store.set_resource(&delayed).await.unwrap();
    harness.store.declare_resource(&limit("b", 2)).await.unwrap();
    assert_eq!(shown().await, expected(delayed, true));
    assert!(harness.store.remove_resource(&name("b")).await.unwrap());
    harness.store.declare_resource(&limit("b", 2)).await.unwrap();
    assert_eq!(shown().await, expected(limit("b", 2), false));
}

pub(crate) async fn at_capacity_the_next_look_is_after_the_delay(harness: Harness) {
    harness.limited("printer", 1).await;
    let running = harness.running(needing("printer")).await;
    let next = async || harness.store.next_due(&harness.request()).await.unwrap();
    assert_eq!(next().await, None);
    harness.submit(needing("printer")).await;
    let wait = next().await.expect("one waits");
    assert!(wait.abs_diff(DELAY) < Duration::from_secs(10), "{wait:?}");
    harness.submit(needing("free")).await;
    assert_eq!(next().await, Some(Duration::ZERO), "what has permits is due");
    harness.claim_all().await;
    harness.succeed(&running).await;
    assert_eq!(next().await, Some(Duration::ZERO), "there is a permit now");
}

pub(crate) async fn what_begins_again_needs_a_permit_again(harness: Harness) {
    harness.limited("printer", 1).await;
    let failed = harness.failed(needing("printer"), "boom").await;
    let in_bulk = harness.failed(needing("printer"), "boom").await;
    let holder = harness.running(needing("printer")).await;
    harness.store.retry(failed).await.unwrap().expect("it is retried");
    let all = ratchet_core::DeadLetterFilter::default();
    assert_eq!(harness.store.retry_all(&all, 10).await.unwrap().count, 1);
    let paused = harness.submit(needing("printer")).await;
    harness.store.pause(paused).await.unwrap().expect("it is paused");
    harness.store.resume(paused).await.unwrap().expect("it waits again");
    assert_eq!(ids(&harness.claim_all().await), []);
    let mut running = holder;
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let turn = harness.turn(&[success(&running)], Some(&harness.request())).await;
        assert_eq!(turn.claimed.len(), 1);
        running = turn.claimed.into_iter().next().unwrap();
        seen.insert(running.job.id);
    }
    assert_eq!(seen, [failed, in_bulk, paused].into());
}

/// Many claimers at once, each of which ends what it runs: never more at a time than the limit, and none is left.
pub(crate) async fn racing_nodes_keep_to_the_limit(harness: Harness) {
    const LIMIT: u32 = 3;
    harness.limited("printer", LIMIT).await;
    let all: BTreeSet<JobId> = harness.submit_needing("printer", 60).await.into_iter().collect();
    let (out, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let done = Arc::new(AtomicUsize::new(0));
    let mut racers = Vec::new();
    for _ in 0..4 {
        let (store, node) = (harness.store.clone(), harness.another_node().await);
        let request = ClaimRequest { node, limit: 2, ..harness.request() };
        let (out, most, done) = (out.clone(), most.clone(), done.clone());
        racers.push(async move {
            let mut mine = Vec::new();
            let mut running: Vec<Claim> = Vec::new();
            for _ in 0..10_000 {
                let settlements: Vec<Settlement> = running.iter().map(success).collect();
                // Counted before the permits can be taken by others, and after they are taken.
                out.fetch_sub(running.len(), Ordering::SeqCst);
                done.fetch_add(running.len(), Ordering::SeqCst);
                running = store.settle_and_claim(&settlements, Some(&request)).await.unwrap().claimed;
                most.fetch_max(out.fetch_add(running.len(), Ordering::SeqCst) + running.len(), Ordering::SeqCst);
                mine.extend(ids(&running));
                if running.is_empty() && done.load(Ordering::SeqCst) == 60 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            mine
        });
    }
    let claimed: Vec<JobId> = race(racers).await.concat();
    assert_eq!(claimed.len(), 60, "each runs once");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), all);
    assert!(most.load(Ordering::SeqCst) <= LIMIT as usize, "{most:?} of {LIMIT} at once");
    assert_eq!(harness.in_use("printer").await, 0);
}

/// However many wait, no more of them than there are permits are looked at.
pub(crate) async fn many_resources_share_the_room(harness: Harness) {
    let names: Vec<String> = (0..30).map(|number| format!("tenant {number:02}")).collect();
    for resource in &names {
        harness.limited(resource, 1).await;
    }
    let mut first = Vec::new();
    for resource in &names {
        first.push(harness.submit_needing(resource, 3).await[0]);
    }
    let some = harness.claim(&ClaimRequest { limit: 20, ..harness.request() }).await;
    assert_eq!(ids(&some), first[..20]);
    assert_eq!(ids(&harness.claim_all().await), first[20..]);
    assert_eq!(ids(&harness.claim_all().await), []);
    let settlements: Vec<Settlement> = some.iter().map(success).collect();
    assert_eq!(harness.turn(&settlements, Some(&harness.request())).await.claimed.len(), 20);
}

/// A node that runs many kinds in many queues asks for far more lanes than jobs wait in.
pub(crate) async fn no_resource_is_overlooked_by_a_node_that_runs_many_kinds(harness: Harness) {
    let kinds: Vec<String> = (0..20).map(|number| format!("kind-{number}")).chain([KIND.to_owned()]).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let queues = ["default", "a", "b", "c", "d"];
    let jobs: Vec<NewJob> = (0..40).map(|number| needing(&format!("tenant {number:02}"))).collect();
    harness.limited("tenant 00", 0).await;
    let all = harness.submit_each(jobs).await;
    let request = request(harness.node, queues.map(|queue| pool(queue, &kinds)).to_vec());
    assert_eq!(ids(&harness.claim(&request).await), all[1..]);
}

pub(crate) async fn jobs_of_a_paused_queue_keep_no_others_waiting(harness: Harness) {
    let stopped = queue("stopped");
    harness.store.pause_queue(&stopped).await.unwrap();
    let paused = (0..30).map(|number| {
        let mut job = needing(&format!("tenant {number:02}"));
        job.spec.queue = stopped.clone();
        job
    });
    harness.submit_each(paused.collect()).await;
    harness.limited("printer", 1).await;
    harness.advance(mins(1));
    let job = harness.submit(needing("printer")).await;
    let both = request(harness.node, vec![pool("stopped", &[KIND]), pool("default", &[KIND])]);
    assert_eq!(ids(&harness.claim(&ClaimRequest { limit: 5, ..both }).await), [job]);
}
