//! Word of new work, from anywhere to the pump.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratchet_core::JobId;
use tokio::sync::Notify;

/// Tells the pump that there may be work; a hint, never needed for correctness.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    notify: Notify,
    work: AtomicBool,
    due: AtomicBool,
    revoked: AtomicBool,
    expected: Mutex<Vec<(JobId, Instant)>>,
}

/// How long the pump looks out for a job whose transaction the caller has yet to commit.
const EXPECT_FOR: Duration = Duration::from_secs(30);
const EXPECTED_MAX: usize = 1_024;

impl Wake {
    /// There may be work to claim.
    pub(crate) fn work(&self) {
        self.work.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// A job was stored that becomes due later.
    pub(crate) fn due_changed(&self) {
        self.due.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Jobs were stored; `now` if one of them is to start at once.
    pub(crate) fn submitted(&self, now: bool) {
        if now { self.work() } else { self.due_changed() }
    }

    /// A job was written in a transaction that its caller will commit soon.
    pub(crate) fn expect(&self, job: JobId) {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        if expected.len() < EXPECTED_MAX {
            expected.push((job, Instant::now() + EXPECT_FOR));
        }
        drop(expected);
        self.notify.notify_one();
    }

    /// Forgets a job that has been seen, and those whose time is up; says whether any is still awaited.
    pub(super) fn still_expecting(&self, seen: impl Fn(JobId) -> bool) -> bool {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        expected.retain(|(job, until)| *until > now && !seen(*job));
        !expected.is_empty()
    }

    pub(super) fn take_work(&self) -> bool {
        self.work.swap(false, Ordering::AcqRel)
    }

    /// A running job was canceled, perhaps one that runs here.
    pub(crate) fn revoked(&self) {
        self.revoked.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    pub(super) fn take_revoked(&self) -> bool {
        self.revoked.swap(false, Ordering::AcqRel)
    }

    pub(super) fn take_due_changed(&self) -> bool {
        self.due.swap(false, Ordering::AcqRel)
    }

    pub(super) async fn notified(&self) {
        self.notify.notified().await;
    }
}
