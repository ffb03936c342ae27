//! What a child of a batch costs beside a job that belongs to nothing: for stores that count what they spend.

use std::ops::{Add, Sub};

use ratchet_core::batch::{BATCH_KIND, NewBatch, tie_child};
use ratchet_core::store::SubmitUnit;
use ratchet_core::{DeadLetterFilter, JobId, Settlement};

use crate::harness::{Harness, failure, new_job, success, works};

/// Jobs of a round.
pub const JOBS: u32 = 2_000;
const CHUNK: usize = 500;
const ROUNDS_MIN: usize = 4;
const ROUNDS_MAX: usize = 12;

/// What a store has spent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// Statements that it has sent.
    pub statements: u64,
    /// Bytes that the database has written to its log.
    pub log_bytes: u64,
}

impl Add for Spent {
    type Output = Self;
    fn add(self, more: Self) -> Self {
        Self { statements: self.statements + more.statements, log_bytes: self.log_bytes + more.log_bytes }
    }
}

impl Spent {
    fn least(self, other: Self) -> Self {
        Self { statements: self.statements.min(other.statements), log_bytes: self.log_bytes.min(other.log_bytes) }
    }
}

impl Sub for Spent {
    type Output = Self;
    fn sub(self, before: Self) -> Self {
        Self { statements: self.statements - before.statements, log_bytes: self.log_bytes - before.log_bytes }
    }
}

/// Whether jobs belong to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Belonging {
    /// To nothing.
    Plain,
    /// To a batch, which is part of what they cost.
    Child,
}

/// The least that the calls of plain jobs and of children cost in any round, and whether that is about the same.
///
/// For servers: others write there too, and now and then more is logged than what was asked for. Both only ever add, so that
/// more rounds come nearer to what a call costs: in one of them nobody else wrote during that call. A quiet server needs few. The
/// first round warms up.
pub async fn a_child_costs_about_as_much_as_a_plain_job(harness: &Harness, mut spent: impl AsyncFnMut() -> Spent) {
    let (mut plain, mut child) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS_MAX {
        for (belonging, least) in [(Belonging::Plain, &mut plain), (Belonging::Child, &mut child)] {
            let cost = of_a_round(harness, belonging, &mut spent).await;
            match round {
                0 => {}
                1 => *least = cost,
                _ => least.iter_mut().zip(cost).for_each(|(least, cost)| *least = least.least(cost)),
            }
        }
        if round + 1 >= ROUNDS_MIN && is_about(sum(&plain).log_bytes, sum(&child).log_bytes) {
            break;
        }
    }
    compare(sum(&plain), sum(&child), 1);
}

/// Returns the least that a round of [`JOBS`] plain jobs costs, from submit to end, of a few rounds.
pub async fn of_plain_jobs(harness: &Harness, mut spent: impl AsyncFnMut() -> Spent) -> Spent {
    let mut least: Option<Vec<Spent>> = None;
    for round in 0..=ROUNDS_MIN {
        let cost = of_a_round(harness, Belonging::Plain, &mut spent).await;
        match &mut least {
            // The first round warms up.
            _ if round == 0 => {}
            None => least = Some(cost),
            Some(least) => least.iter_mut().zip(cost).for_each(|(least, cost)| *least = least.least(cost)),
        }
    }
    sum(&least.unwrap_or_default())
}

/// All of it together.
pub fn sum(costs: &[Spent]) -> Spent {
    costs.iter().copied().fold(Spent::default(), Spent::add)
}

/// Panics unless children have cost about as much as plain jobs, over so many rounds of each.
pub fn compare(plain: Spent, child: Spent, rounds: u32) {
    let each = |amount: u64| format!("{:.4}", to_float(amount) / f64::from(rounds * JOBS));
    println!("statements per plain job {}, per child {}", each(plain.statements), each(child.statements));
    println!("bytes of log per plain job {}, per child {}", each(plain.log_bytes), each(child.log_bytes));
    assert!(is_about(plain.statements, child.statements), "{plain:?}, {child:?}");
    assert!(is_about(plain.log_bytes, child.log_bytes), "{plain:?}, {child:?}");
}

fn is_about(plain: u64, child: u64) -> bool {
    to_float(child) <= 1.4 * to_float(plain)
}

#[expect(clippy::cast_precision_loss, reason = "some millions")]
fn to_float(amount: u64) -> f64 {
    amount as f64
}

/// What each call costs that submits jobs, a chunk at a time, and claims and settles them, a hundred in a turn: always as many
/// calls.
pub async fn of_a_round(harness: &Harness, belonging: Belonging, spent: &mut impl AsyncFnMut() -> Spent) -> Vec<Spent> {
    let mut costs = Vec::new();
    let mut before = spent().await;
    let mut note = async || {
        let after = spent().await;
        costs.push(after - before);
        before = after;
    };
    let batch = match belonging {
        Belonging::Plain => None,
        Belonging::Child => Some(open_batch(harness).await),
    };
    let mut jobs = works(JOBS as usize);
    for chunk in jobs.chunks_mut(CHUNK) {
        if let Some(batch) = batch {
            for child in chunk.iter_mut() {
                tie_child(batch, child).unwrap();
            }
            harness.store.extend_batch(batch, chunk).await.unwrap();
        } else {
            harness.store.submit(&[SubmitUnit::of(chunk.to_vec())]).await.unwrap().remove(0).unwrap();
        }
        note().await;
    }
    let mut ended: Vec<Settlement> = Vec::new();
    loop {
        let turn = harness.turn(&ended, Some(&harness.request())).await;
        note().await;
        if turn.claimed.is_empty() {
            break;
        }
        ended = turn.claimed.iter().map(success).collect();
    }
    let Some(batch) = batch else { return costs };
    harness.store.seal_batch(batch).await.unwrap();
    note().await;
    let counts = harness.store.find_batches(&[batch]).await.unwrap().remove(0).counts;
    assert_eq!((counts.total, counts.succeeded), (u64::from(JOBS), u64::from(JOBS)));
    costs
}

/// Whether children of a batch are retried together, in a few statements for all.
pub async fn dead_children_are_retried_together(harness: &Harness, statements: impl Fn() -> u64) {
    const CHILDREN: u64 = 50;
    let batch = open_batch(harness).await;
    let mut children = works(50);
    for child in &mut children {
        tie_child(batch, child).unwrap();
    }
    harness.store.extend_batch(batch, &children).await.unwrap();
    let failures: Vec<Settlement> = harness.claim_all().await.iter().map(|claim| failure(claim, "boom")).collect();
    harness.turn(&failures, None).await;
    let failed = async || harness.store.find_batches(&[batch]).await.unwrap()[0].counts.failed;
    assert_eq!(failed().await, CHILDREN);
    let before = statements();
    let retried = harness.store.retry_all(&DeadLetterFilter::default(), 100).await.unwrap();
    let spent = statements() - before;
    assert_eq!((retried.count, failed().await), (CHILDREN, 0));
    assert!(spent < CHILDREN, "{spent} statements for {CHILDREN} children");
}

async fn open_batch(harness: &Harness) -> JobId {
    let parent = new_job(BATCH_KIND);
    let batch = NewBatch { id: parent.id, sealed: false, hook: None };
    let id = batch.id;
    let unit = SubmitUnit::of(vec![parent]).with_batch(batch, Vec::new()).unwrap();
    harness.store.submit(&[unit]).await.unwrap().remove(0).unwrap();
    id
}
