//! Concurrent submits of one process share a statement and a commit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ratchet_core::store::{SubmitOutcome, SubmitUnit};
use ratchet_core::{ErrorKind, Store, StoreError};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, Semaphore, oneshot};
use tracing::Instrument;

use crate::submit::admission::Admitted;

/// Gathers the submits that arrive while one is being written, and writes them together.
///
/// A lone caller waits for nobody. Each caller returns after the commit that holds its jobs; a refused or broken unit
/// does not harm those beside it.
#[derive(Debug)]
pub(crate) struct Submitter {
    store: Arc<dyn Store>,
    waiting: Mutex<WaitingUnits>,
    room: Semaphore,
    /// Told when nobody writes, though some may wait.
    unwritten: Notify,
}

#[derive(Debug, Default)]
struct WaitingUnits {
    units: VecDeque<WaitingUnit>,
    writing: bool,
    /// Units in the last group.
    last: usize,
    /// How often a task that wrote ended before its time.
    abandoned: u32,
}

type WaitingUnit = (Admitted<SubmitUnit>, oneshot::Sender<SubmitOutcome>);

/// Units that may wait at once; further callers wait for room.
const WAITING_MAX: usize = 4_096;
/// Jobs in one transaction, unless a single unit is larger.
const JOBS_TOGETHER: usize = 1_000;
/// Bytes of arguments in one transaction, unless a single unit is larger.
const BYTES_TOGETHER: usize = 4 * 1_024 * 1_024;
/// Turns of the scheduler that a group waits for callers to come back.
const YIELDS_MAX: usize = 16;
/// Tries of a write that a busy database refused.
const TRIES: u32 = 5;

impl Submitter {
    pub(crate) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, waiting: Mutex::default(), room: Semaphore::new(WAITING_MAX), unwritten: Notify::new() })
    }

    pub(crate) async fn submit(self: &Arc<Self>, unit: Admitted<SubmitUnit>) -> SubmitOutcome {
        let _room = self.room.acquire().await.expect("the semaphore is never closed");
        let (answer, mut outcome) = oneshot::channel();
        // Listening before the unit is in the queue, so that no word is missed.
        let mut unwritten = std::pin::pin!(self.unwritten.notified());
        unwritten.as_mut().enable();
        let tries = {
            let mut waiting = self.lock();
            waiting.units.push_back((unit, answer));
            waiting.abandoned.saturating_add(TRIES)
        };
        while self.lock().abandoned < tries {
            self.write_if_nobody_does();
            tokio::select! {
                biased;
                answered = &mut outcome => return answered.unwrap_or_else(|_| Err(unanswered())),
                () = unwritten.as_mut() => {
                    unwritten.set(self.unwritten.notified());
                    unwritten.as_mut().enable();
                }
            }
        }
        Err(unanswered())
    }

    fn lock(&self) -> MutexGuard<'_, WaitingUnits> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task of its own, so that a caller that goes away does not take the others' submits along.
    fn write_if_nobody_does(self: &Arc<Self>) {
        {
            let mut waiting = self.lock();
            if waiting.writing || waiting.units.is_empty() {
                return;
            }
            waiting.writing = true;
        }
        // Made here: a runtime that ends drops the task before it begins, perhaps within this call.
        let group = Group { submitter: self.clone(), units: Admitted::none(0), answers: Vec::new(), done: false };
        tokio::spawn(write_groups(group));
    }

    /// Callers that were answered a moment ago are about to submit again; without this every other group would hold
    /// only the quickest of them. A few turns of the scheduler, never a timer: a lone caller is not held up.
    async fn let_callers_return(&self) {
        let last = self.lock().last;
        for _ in 0..YIELDS_MAX.min(last.saturating_sub(1)) {
            if self.lock().units.len() >= last {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn write(&self, units: &[SubmitUnit]) -> Vec<SubmitOutcome> {
        let error = match self.write_patiently(units).await {
            Ok(outcomes) => return outcomes,
            Err(error) => error,
        };
        if units.len() == 1 || error.is_retryable() {
            return units.iter().map(|_| Err(error.clone())).collect();
        }
        // One of them breaks the statement: let each answer for itself.
        let mut outcomes = Vec::with_capacity(units.len());
        for unit in units {
            let outcome = self.write_patiently(std::slice::from_ref(unit)).await;
            outcomes.push(outcome.and_then(|mut one| one.pop().expect("a store answers for each unit")));
        }
        outcomes
    }

    async fn write_patiently(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let mut tries = 1;
        loop {
            match self.store.submit(units).await {
                Err(error) if *error.kind() == ErrorKind::Transient && tries < TRIES => {
                    tokio::time::sleep(Duration::from_millis(10) * 2_u32.pow(tries)).await;
                    tries += 1;
                }
                result => return result,
            }
        }
    }
}

fn unanswered() -> StoreError {
    let problem = "the store gave no answer; the jobs may or may not have been stored";
    StoreError::new(ErrorKind::Unavailable, "submitting jobs", problem)
}

/// Writes what waits, group after group.
///
/// A runtime without threads of its own may run only while somebody blocks on it, which the caller who began this does
/// until its own unit is written: there it is one group, and whoever still waits begins the next, where it waits.
async fn write_groups(mut group: Group) {
    let goes_on = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    let submitter = group.submitter.clone();
    loop {
        submitter.let_callers_return().await;
        {
            let mut waiting = submitter.lock();
            (group.units, group.answers) = take_together(&mut waiting.units);
            waiting.last = group.units.len();
        }
        if group.units.is_empty() {
            break;
        }
        let span = tracing::debug_span!("job.submit", units = group.units.len());
        let outcomes = submitter.write(&group.units).instrument(span).await;
        for (outcome, answer) in outcomes.into_iter().zip(group.answers.drain(..)) {
            // A caller that went away has no use for the answer.
            let _ = answer.send(outcome);
        }
        if !goes_on {
            break;
        }
    }
    group.done = true;
}

/// The units that are being written. If the task that writes them ends too soon, because its runtime does or a store
/// panics, they go back to the queue and the next waiting caller goes on: to submit the same ids twice is safe.
struct Group {
    submitter: Arc<Submitter>,
    units: Admitted<Vec<SubmitUnit>>,
    answers: Vec<oneshot::Sender<SubmitOutcome>>,
    done: bool,
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut waiting = self.submitter.lock();
        waiting.writing = false;
        if !self.done {
            waiting.abandoned = waiting.abandoned.saturating_add(1);
            // Answered units have no sender left.
            for (unit, answer) in self.units.drain().zip(self.answers.drain(..)).rev() {
                waiting.units.push_front((unit, answer));
            }
        }
        let some_wait = !waiting.units.is_empty();
        drop(waiting);
        if some_wait {
            self.submitter.unwritten.notify_waiters();
        }
    }
}

type Together = (Admitted<Vec<SubmitUnit>>, Vec<oneshot::Sender<SubmitOutcome>>);

fn take_together(waiting: &mut VecDeque<WaitingUnit>) -> Together {
    let (mut units, mut answers) = (Admitted::none(0), Vec::new());
    let (mut jobs, mut bytes) = (0, 0);
    while let Some((unit, _)) = waiting.front() {
        jobs += unit.jobs.len();
        bytes += unit.jobs.iter().map(|job| job.spec.payload.as_str().len()).sum::<usize>();
        if !units.is_empty() && (jobs > JOBS_TOGETHER || bytes > BYTES_TOGETHER) {
            break;
        }
        let (unit, answer) = waiting.pop_front().expect("it has a front");
        units.push(unit);
        answers.push(answer);
    }
    (units, answers)
}
