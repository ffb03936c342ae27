//! In which order jobs are claimed.

use std::cmp::Reverse;
use std::time::Duration;

use ratchet_core::claim::{Boost, ClaimRequest};
use ratchet_core::clock::later;
use ratchet_core::{Claim, Due, JobId, NewJob, Priority};

use crate::harness::{Harness, deferral, ids, mins, new_id, new_job, pool, request, rescue, work};
use crate::random::seeded;

fn ranked(priority: Priority) -> NewJob {
    let mut job = work();
    job.spec.priority = priority;
    job
}

pub(crate) async fn urgent_jobs_go_first(harness: Harness) {
    let mut all = harness.submit_each(Priority::ALL.into_iter().map(ranked).collect()).await;
    all.reverse();
    assert_eq!(ids(&harness.claim_all().await), all);
}

pub(crate) async fn a_limited_claim_takes_the_first_in_order(harness: Harness) {
    let all = harness.submit_each([Priority::Low, Priority::High, Priority::Normal].map(ranked).to_vec()).await;
    let request = ClaimRequest { limit: 1, ..harness.request() };
    for expected in [all[1], all[2], all[0]] {
        assert_eq!(ids(&harness.claim(&request).await), [expected]);
    }
}

pub(crate) async fn among_equals_the_longest_due_goes_first(harness: Harness) {
    let now = harness.now().await;
    let due = |ago| NewJob { due: Due::At(now - mins(ago)), ..work() };
    let all = harness.submit_each(vec![due(1), due(5), due(3)]).await;
    let request = ClaimRequest { boost: Boost::OFF, ..harness.request() };
    assert_eq!(ids(&harness.claim(&request).await), [all[1], all[2], all[0]]);
}

pub(crate) async fn among_jobs_of_one_time_the_smallest_id_goes_first(harness: Harness) {
    let due = Due::At(harness.now().await - mins(1));
    let mut jobs: Vec<_> = (0..6).map(|_| NewJob { due, ..work() }).collect();
    jobs.reverse();
    let mut all = harness.submit_each(jobs).await;
    all.reverse();
    assert!(all.is_sorted());
    assert_eq!(ids(&harness.claim_all().await), all);
}

pub(crate) async fn an_old_job_beats_a_fresh_urgent_one(harness: Harness) {
    let old = harness.submit(ranked(Priority::Lowest)).await;
    harness.advance(mins(15 * 3 + 1));
    let urgent = harness.submit(ranked(Priority::Critical)).await;
    let request = ClaimRequest { limit: 1, ..harness.request() };
    assert_eq!(ids(&harness.claim(&request).await), [urgent], "three levels gained: 3 against 4");
    harness.advance(mins(15 * 2));
    let urgent = harness.submit(ranked(Priority::Critical)).await;
    assert_eq!(ids(&harness.claim(&harness.request()).await), [old, urgent], "five levels gained: 5 against 4");
}

pub(crate) async fn without_boost_age_does_not_count(harness: Harness) {
    let old = harness.submit(ranked(Priority::Lowest)).await;
    harness.advance(mins(60 * 24));
    let fresh = harness.submit(ranked(Priority::Low)).await;
    let request = ClaimRequest { boost: Boost::OFF, ..harness.request() };
    assert_eq!(ids(&harness.claim(&request).await), [fresh, old]);
}

pub(crate) async fn a_deferred_job_goes_on_ageing(harness: Harness) {
    harness.submit(ranked(Priority::Lowest)).await;
    let old = harness.claim_one().await;
    harness.advance(mins(70));
    harness.defer(&old, mins(10)).await;
    harness.advance(mins(11));
    let fresh = harness.submit(ranked(Priority::Critical)).await;
    assert_eq!(ids(&harness.claim_all().await), [old.job.id, fresh], "five levels gained since its first due time");
}

pub(crate) async fn a_rescheduled_job_ages_from_its_new_time(harness: Harness) {
    harness.submit(ranked(Priority::Lowest)).await;
    let old = harness.claim_one().await;
    harness.advance(mins(70));
    harness.reschedule(&old, mins(10)).await;
    harness.advance(mins(11));
    let fresh = harness.submit(ranked(Priority::Low)).await;
    assert_eq!(ids(&harness.claim_all().await), [fresh, old.job.id]);
}

/// A waiting job as the brute-force model knows it; times in minutes before the start, half a minute aside so that a
/// slow database changes no level.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    id: JobId,
    priority: Priority,
    due_ago: u64,
    deferred_for: u64,
    probation: bool,
}

/// The claim as its definition says it, over all jobs there are.
fn expected(waiting: &mut Vec<Waiting>, clock: u64, limit: usize, probation: bool, boost: u64) -> Vec<JobId> {
    let mut due: Vec<_> = waiting.iter().copied().filter(|job| job.deferred_for <= clock).collect();
    due.sort_by_key(|job| {
        let levels = (job.due_ago + clock).checked_div(boost).unwrap_or(0);
        (Reverse(u64::from(job.priority.level()) + levels), Reverse(job.due_ago), job.id)
    });
    let mut probation_left = usize::from(probation);
    due.retain(|job| !job.probation || std::mem::take(&mut probation_left) > 0);
    due.truncate(limit);
    waiting.retain(|job| !due.iter().any(|taken| taken.id == job.id));
    due.into_iter().map(|job| job.id).collect()
}

pub(crate) async fn claims_follow_a_brute_force_model(harness: Harness) {
    follow_the_model(harness, 1).await;
}

/// The order is the same however many lanes the jobs lie in.
pub(crate) async fn claims_of_many_kinds_follow_a_brute_force_model(harness: Harness) {
    follow_the_model(harness, 20).await;
}

/// Claims happen on whole minutes; what they depend on changes halfway between, however slow the database.
const HALF_A_MINUTE: Duration = Duration::from_secs(30);

async fn follow_the_model(harness: Harness, kinds: usize) {
    let kinds: Vec<String> = (0..kinds).map(|number| format!("kind-{number}")).collect();
    let names: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let all = request(harness.node, vec![pool("default", &names)]);
    let (mut rng, _seed) = seeded();
    let start = harness.now().await;
    let mut waiting = Vec::new();
    let mut jobs = Vec::new();
    for _ in 0..80 {
        let (id, priority, due_ago) = (new_id(), Priority::ALL[rng.usize(..5)], rng.u64(0..90));
        let at = start - mins(due_ago) - HALF_A_MINUTE;
        let mut job = NewJob { id, due: Due::At(at), ..new_job(names[rng.usize(..names.len())]) };
        job.spec.priority = priority;
        jobs.push(job);
        waiting.push(Waiting { id, priority, due_ago, deferred_for: 0, probation: false });
    }
    rng.shuffle(&mut jobs);
    harness.submit_each(jobs).await;
    // Some go back: put off, or from a dead node.
    let claims = harness.claim(&all).await;
    let job_of = |claim: &Claim| waiting.iter().position(|job| job.id == claim.job.id).unwrap();
    let settlements: Vec<_> = claims
        .iter()
        .map(|claim| {
            let at = job_of(claim);
            let (deferred_for, probation) =
                if rng.u8(..3) == 0 { (rng.u64(1..20), false) } else { (0, rng.u8(..6) == 0) };
            let delay = mins(deferred_for).saturating_sub(HALF_A_MINUTE);
            (at, deferred_for, probation, if probation { rescue(claim) } else { deferral(claim, delay) })
        })
        .collect();
    for (at, deferred_for, probation, _) in &settlements {
        waiting[*at].deferred_for = *deferred_for;
        waiting[*at].probation = *probation;
    }
    let settlements: Vec<_> = settlements.into_iter().map(|(.., settlement)| settlement).collect();
    harness.turn(&settlements, None).await;
    let mut clock = 0;
    while !waiting.is_empty() {
        let (limit, probation, boost) = (rng.usize(1..8), rng.bool(), *rng.choice(&[0, 1, 7, 15]).unwrap());
        let request = ClaimRequest { limit, probation, boost: Boost::every(mins(boost)), ..all.clone() };
        let expected = expected(&mut waiting, clock, limit, probation, boost);
        let claimed = harness.claim(&request).await;
        assert_eq!(ids(&claimed), expected, "at minute {clock}, limit {limit}, boost {boost}, probation {probation}");
        clock += 1;
        harness.advance_to(later(start, mins(clock))).await;
    }
}
