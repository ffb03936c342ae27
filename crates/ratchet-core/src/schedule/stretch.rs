//! Time cut at the shifts of a zone's clock.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// How far back a stretch is searched for the shift that began it. What an older one repeated is long over, so the
/// stretch may as well begin here.
///
/// It saves the search for the shift before an instant, which jiff 0.2.39 answers wrongly for about 40 zones: from the
/// last listed shift backwards, `preceding` gives shifts that never were. `following` is right for all.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(96);

/// A stretch of time in which a zone's clock keeps one offset from UTC. Within it, wall clock and instants run in step.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) offset: Offset,
    start: Shift,
    end: Option<Shift>,
}

/// A change of the clock, seen from a stretch that it begins or ends.
#[derive(Debug)]
struct Shift {
    at: Timestamp,
    /// The offset on its other side.
    beyond: Offset,
}

/// In which pass a time that comes twice fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    First,
    Last,
    Both,
}

impl Stretch {
    /// The stretch that `instant`, a whole second, lies in; cut a few days before it.
    pub(super) fn at(rules: &TimeZone, instant: Timestamp) -> Self {
        let offset = rules.to_offset(instant);
        let cut = instant.checked_sub(LOOK_BACK).unwrap_or(instant);
        let mut start = Shift { at: cut, beyond: offset };
        let mut before = rules.to_offset(cut);
        for shift in rules.following(cut) {
            if shift.timestamp() > instant {
                let end = Some(Shift { at: shift.timestamp(), beyond: shift.offset() });
                return Self { offset, start, end };
            }
            start = Shift { at: shift.timestamp(), beyond: before };
            before = shift.offset();
        }
        Self { offset, start, end: None }
    }

    /// Its first instant.
    pub(super) fn start(&self) -> Timestamp {
        self.start.at
    }

    /// The first instant after it; the clock may never be changed again.
    pub(super) fn end(&self) -> Option<Timestamp> {
        self.end.as_ref().map(|shift| shift.at)
    }

    /// What the clock shows at an instant within.
    pub(super) fn wall(&self, instant: Timestamp) -> DateTime {
        self.offset.to_datetime(instant)
    }

    /// The wall-clock times of this stretch that may fire, from the first to before the second. A time that comes
    /// twice is in two stretches, and left out of the one in which it must not fire.
    pub(super) fn walls(&self, pass: Pass) -> (DateTime, DateTime) {
        let first = if pass == Pass::First { self.start.beyond.max(self.offset) } else { self.offset };
        let end = self.end.as_ref().map_or(DateTime::MAX, |shift| {
            let offset = if pass == Pass::Last { shift.beyond.min(self.offset) } else { self.offset };
            offset.to_datetime(shift.at)
        });
        (first.to_datetime(self.start.at), end)
    }

    /// The wall-clock times that the shift at its start skipped, from the first to before the second.
    pub(super) fn gap(&self) -> Option<(DateTime, DateTime)> {
        let Shift { at, beyond } = self.start;
        (beyond < self.offset).then(|| (beyond.to_datetime(at), self.offset.to_datetime(at)))
    }
}
