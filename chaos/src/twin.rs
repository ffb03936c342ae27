//! A good store in a process that dies while one of its calls settles and another claims.

use std::future::Future;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use clap::ValueEnum;
use ratchet_core::store::{Call, StoreDecorator, Turn};
use ratchet_core::{ClaimRequest, Settlement, Store, StoreError};
use tokio::sync::Notify;

/// The progress of the two calls when the process dies: of the one that settles, and of the one that claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Moment {
    /// Neither was sent.
    Neither,
    /// The settlements are committed, the claim was not sent.
    Settled,
    /// The claim is committed, the settlements were not sent.
    Claimed,
    /// Both are committed, and the node has neither answer.
    Both,
    /// The node has the answer to its settlements; the claim was not sent.
    SettledAndAnswered,
    /// The node has the answer to its claim; the settlements were not sent.
    ClaimedAndAnswered,
    /// The node has the answer to its settlements; the claim is committed.
    BothSettledAnswered,
    /// The node has the answer to its claim; the settlements are committed.
    BothClaimedAnswered,
}

impl Moment {
    /// The progress of the call that settles, and of the one that claims.
    const fn progress(self) -> (Progress, Progress) {
        use Progress::{Answered, Committed, Waits};
        match self {
            Self::Neither => (Waits, Waits),
            Self::Settled => (Committed, Waits),
            Self::Claimed => (Waits, Committed),
            Self::Both => (Committed, Committed),
            Self::SettledAndAnswered => (Answered, Waits),
            Self::ClaimedAndAnswered => (Waits, Answered),
            Self::BothSettledAnswered => (Answered, Committed),
            Self::BothClaimedAnswered => (Committed, Answered),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The call was not sent to the database.
    Waits,
    /// The database has committed it.
    Committed,
    /// The node has its answer, and has made its next call.
    Answered,
}

/// A store whose process dies at a moment between two calls that are under way at once.
#[derive(Debug)]
pub struct TwinStore {
    inner: Arc<dyn Store>,
    moment: Moment,
    meeting: Mutex<Meeting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Meeting {
    /// Jobs that were settled before: the calls meet when the node is in the midst of its work.
    settled: usize,
    /// The calls that have arrived: one that settles, and one that claims.
    here: [bool; 2],
    met: bool,
    /// The progress of each, once they have met.
    progress: Option<[Progress; 2]>,
}

/// The calls meet after this number of settled jobs.
const SETTLED_MIN: usize = 200;
/// The maximum time that one call waits for the other.
const WAIT_MAX: Duration = Duration::from_secs(2);

const SETTLES: usize = 0;
const CLAIMS: usize = 1;

impl TwinStore {
    /// Lets the process die at this moment.
    pub fn new(inner: Arc<dyn Store>, moment: Moment) -> Self {
        Self { inner, moment, meeting: Mutex::default(), changed: Notify::new() }
    }

    fn meeting(&self) -> std::sync::MutexGuard<'_, Meeting> {
        self.meeting.lock().expect("no call panics while it holds it")
    }

    /// Waits for the other call; returns whether they have met here, which happens once.
    async fn meets(&self, half: usize) -> bool {
        {
            let mut meeting = self.meeting();
            if meeting.met || meeting.settled < SETTLED_MIN {
                return false;
            }
            meeting.here[half] = true;
            if meeting.here == [true, true] {
                meeting.met = true;
                meeting.progress = Some([Progress::Waits; 2]);
            }
        }
        self.changed.notify_waiters();
        let _ = tokio::time::timeout(WAIT_MAX, self.until(|meeting| meeting.met)).await;
        let mut meeting = self.meeting();
        meeting.here[half] = meeting.met;
        meeting.met
    }

    async fn until(&self, holds: impl Fn(&Meeting) -> bool) {
        loop {
            let changed = self.changed.notified();
            if holds(&self.meeting()) {
                return;
            }
            changed.await;
        }
    }

    /// Notes how far a call is, and dies if that is the moment.
    fn is_at(&self, half: usize, progress: Progress) {
        let (settles, claims) = self.moment.progress();
        {
            let mut meeting = self.meeting();
            let Some(now) = &mut meeting.progress else { return };
            now[half] = progress;
            if *now == [settles, claims] {
                eprintln!("dying: {:?}", self.moment);
                std::process::abort();
            }
        }
        self.changed.notify_waiters();
    }

    /// The node makes its next call: it has the answer that was on its way.
    fn next_call(&self) {
        let answered = self.meeting().progress.is_some();
        let (settles, claims) = self.moment.progress();
        for (half, progress) in [(SETTLES, settles), (CLAIMS, claims)] {
            let committed = self.meeting().progress.is_some_and(|now| now[half] == Progress::Committed);
            if answered && progress == Progress::Answered && committed {
                self.is_at(half, Progress::Answered);
            }
        }
    }
}

impl StoreDecorator for TwinStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn around<T: Send>(
        &self,
        _call: Call,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        answer.await
    }

    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError> {
        self.next_call();
        let half = match (settlements.is_empty(), claim) {
            (false, None) => SETTLES,
            (true, Some(_)) => CLAIMS,
            _ => {
                let turn = self.inner().settle_and_claim(settlements, claim).await?;
                self.meeting().settled += turn.settled.len();
                return Ok(turn);
            }
        };
        if !self.meets(half).await {
            let turn = self.inner().settle_and_claim(settlements, claim).await?;
            self.meeting().settled += turn.settled.len();
            return Ok(turn);
        }
        let goal = [self.moment.progress().0, self.moment.progress().1];
        self.is_at(half, Progress::Waits);
        if goal[half] == Progress::Waits {
            return std::future::pending().await;
        }
        let turn = self.inner().settle_and_claim(settlements, claim).await;
        self.is_at(half, Progress::Committed);
        if goal[half] == Progress::Committed {
            return std::future::pending().await;
        }
        // The other has to be where it belongs before the node gets this answer.
        let other = 1 - half;
        self.until(|meeting| meeting.progress.is_some_and(|now| now[other] == goal[other])).await;
        turn
    }
}
