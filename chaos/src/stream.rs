//! The stream of jobs of a run, and what became of every submit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ratchet::{Backoff, Client, Enqueue, JobId, JobState, SubmitError};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::deal::{Deal, Work};
use crate::history::{Answer, Sighting, Submission};

/// A submit that takes longer counts as unanswered.
const ANSWER_LIMIT: Duration = Duration::from_secs(6);
/// How long a job that is to be canceled would take.
const ENDURE_MS: u64 = 3_000;

/// What the stream has to tell.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Told>>);

/// What was submitted and seen.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// Every submit.
    pub submissions: Vec<Submission>,
    /// Every end that was seen.
    pub sightings: Vec<Sighting>,
}

impl Log {
    /// Everything so far.
    pub fn told(&self) -> Told {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The jobs that were accepted so far.
    pub fn accepted(&self) -> Vec<JobId> {
        let accepted = |submission: Submission| match submission.answer {
            Answer::Accepted(id) => Some(id),
            Answer::Refused | Answer::Unknown => None,
        };
        self.told().submissions.into_iter().filter_map(accepted).collect()
    }

    /// One more end was seen.
    pub fn saw(&self, sighting: Sighting) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sightings.push(sighting);
    }

    fn submitted(&self, serial: u64, answer: Answer) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).submissions.push(Submission { serial, answer });
    }
}

/// Submits a mixed stream, so many jobs a second, until told to stop; then waits for the last answers.
pub async fn submit(client: Client, log: Log, per_second: u64, seed: u64, mut stop: watch::Receiver<bool>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut under_way = JoinSet::new();
    let mut tick = tokio::time::interval(Duration::from_millis(1_000 / per_second.max(1)));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut serial = 0;
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
        serial += 1;
        let one = One { client: client.clone(), log: log.clone(), serial, random: random.fork() };
        match random.u32(0..100) {
            0..55 => drop(under_way.spawn(one.short())),
            55..70 => drop(under_way.spawn(one.long())),
            70..80 => drop(under_way.spawn(one.failing())),
            80..86 => drop(under_way.spawn(one.canceled())),
            86..93 => drop(under_way.spawn(one.twice_with_an_idempotency_key())),
            _ => {
                // The second of them is a job of its own.
                serial += 1;
                under_way.spawn(one.twice_with_a_business_key());
            }
        }
    }
    while under_way.join_next().await.is_some() {}
}

/// One job of the stream.
struct One {
    client: Client,
    log: Log,
    serial: u64,
    random: fastrand::Rng,
}

impl One {
    fn job(&self, serial: u64, work: Work) -> Enqueue<Deal> {
        self.client.enqueue(Deal { serial, work }).max_retries(3).backoff(Backoff::Fixed(Duration::from_millis(50)))
    }

    async fn submit(&self, serial: u64, job: Enqueue<Deal>) -> Answer {
        let answer = match tokio::time::timeout(ANSWER_LIMIT, job.submit()).await {
            Ok(Ok(handle)) => Answer::Accepted(handle.id()),
            Ok(Err(SubmitError::Duplicate { .. })) => Answer::Refused,
            Ok(Err(_)) | Err(_) => Answer::Unknown,
        };
        self.log.submitted(serial, answer);
        answer
    }

    async fn short(mut self) {
        let work = Work::Sleep(self.random.u64(1..=10));
        self.submit(self.serial, self.job(self.serial, work)).await;
    }

    async fn long(mut self) {
        let work = Work::Sleep(self.random.u64(100..=500));
        self.submit(self.serial, self.job(self.serial, work)).await;
    }

    async fn failing(mut self) {
        let work = Work::FailFirst(self.random.u64(1..=50));
        self.submit(self.serial, self.job(self.serial, work)).await;
    }

    async fn canceled(mut self) {
        let job = self.job(self.serial, Work::Endure(ENDURE_MS));
        let Answer::Accepted(id) = self.submit(self.serial, job).await else { return };
        tokio::time::sleep(Duration::from_millis(self.random.u64(50..=800))).await;
        // If the reply is lost, it may be canceled or not.
        if let Ok(Ok(true)) = tokio::time::timeout(ANSWER_LIMIT, self.client.cancel(id)).await {
            self.log.saw(Sighting { job: id, state: JobState::Canceled, version: None });
        }
    }

    async fn twice_with_an_idempotency_key(mut self) {
        let work = Work::Sleep(self.random.u64(1..=100));
        let job = || self.job(self.serial, work.clone()).idempotency_key(format!("once:{}", self.serial));
        tokio::join!(self.submit(self.serial, job()), self.submit(self.serial, job()));
    }

    async fn twice_with_a_business_key(mut self) {
        let work = Work::Sleep(self.random.u64(1..=100));
        let key = format!("shared:{}", self.serial);
        let job = |serial| self.job(serial, work.clone()).business_key(&key);
        let second = self.serial + 1;
        tokio::join!(self.submit(self.serial, job(self.serial)), self.submit(second, job(second)));
    }
}
