use std::time::{Duration, Instant};

use ratchet_core::{JobId, LogPlace};

/// How long a line is looked at again and again: most jobs have written their last line so soon after they were made.
const LAG: Duration = Duration::from_mins(10);

/// How far the purge of jobs' logs has come.
///
/// Lines are found by the ids of their jobs, and a line may be younger than its job: when the walk comes by for the first time it
/// may have to stay for a little. So the next walk does not begin where the last one ended, but where one ended a while ago.
#[derive(Debug)]
pub(super) struct LogScan {
    /// Where walks begin.
    from: Option<(JobId, LogPlace)>,
    /// Where they will begin next.
    then: Option<(JobId, LogPlace)>,
    /// Where this one is.
    pub(super) reached: Option<(JobId, LogPlace)>,
    /// When they begin further on.
    next: Instant,
}

impl LogScan {
    pub(super) fn new(now: Instant) -> Self {
        Self { from: None, then: None, reached: None, next: now + LAG }
    }

    /// Begins a walk.
    pub(super) fn begin(&mut self, now: Instant) {
        if now >= self.next {
            self.from = self.then.take();
            self.then = self.reached;
            self.next = now + LAG;
        }
        self.reached = self.from;
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_walk_begins_where_one_was_a_while_ago() {
        let place = |number| Some((JobId(Uuid::from_u128(number)), LogPlace { version: 1, seq: 1 }));
        let start = Instant::now();
        let mut walk = LogScan::new(start);
        let mut begun_at = Vec::new();
        for minute in 0..40_u32 {
            walk.begin(start + Duration::from_mins(minute.into()));
            begun_at.push(walk.reached);
            walk.reached = place(u128::from(minute) + 100);
        }
        assert!(begun_at[..20].iter().all(Option::is_none), "for a while from the start");
        assert!(begun_at[20..30].iter().all(|begun| *begun == place(109)), "then from where it was ten minutes before");
        assert!(begun_at[30..].iter().all(|begun| *begun == place(119)));
    }
}
