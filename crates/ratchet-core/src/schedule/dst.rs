//! What happens to the times that a change of the clock skips or repeats.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::word::words;
use crate::invalid::InvalidInput;

/// What happens to the times that a change of the clock skips or repeats.
///
/// Most zones put their clocks forward by an hour in spring, so that the times of that hour never come (the gap), and
/// back in autumn, so that the times of an hour come twice (the overlap). By default:
///
/// | the expression names | such as | in the gap | in the overlap |
/// |---|---|---|---|
/// | every hour | `0 0 * * * ?`, `0 */15 * * * ?` | goes on by the clock | fires in both passes |
/// | certain hours, with several times in each | `0 0/15 2 * * ?` | fires once, at the shift | fires in both passes |
/// | certain hours, with one time in each | `0 30 2 * * ?`, `0 0 */2 * * ?` | fires once, at the shift | fires in the first pass |
///
/// The thought behind it: what names every hour is a rhythm, and runs 23 times on a day of 23 hours and 25 times on one
/// of 25. What names certain hours is an appointment: it must not be lost, and must not happen twice. Several times in
/// one hour are a rhythm for as long as it lasts, so they go on through the repeated hour, but if the gap takes all of
/// them, one fire is left.
///
/// The shift is the first instant after the gap. All times that fall into one gap come together there as one fire.
/// "Every hour" and "several times" count the values of the fields and not how they are written: `0-23` is `*`.
///
/// ```
/// use ratchet_core::schedule::{Cron, CronExpression, DstGap, DstOverlap, DstPolicy, Zone};
///
/// let berlin = Cron::new(CronExpression::new("0 30 2 * * ?")?).in_zone(Zone::new("Europe/Berlin")?);
/// let spring = "2026-03-28T12:00:00Z".parse().unwrap();
/// let autumn = "2026-10-24T12:00:00Z".parse().unwrap();
/// // 02:30 does not exist on the 29th of March: it fires at 03:00 summer time.
/// assert_eq!(berlin.next_after(spring).unwrap().to_string(), "2026-03-29T01:00:00Z");
/// // It exists twice on the 25th of October, first in summer time.
/// assert_eq!(berlin.next_after(autumn).unwrap().to_string(), "2026-10-25T00:30:00Z");
///
/// let strict = berlin.with_dst(DstPolicy { gap: DstGap::Skip, overlap: DstOverlap::Last });
/// assert_eq!(strict.next_after(spring).unwrap().to_string(), "2026-03-30T00:30:00Z");
/// assert_eq!(strict.next_after(autumn).unwrap().to_string(), "2026-10-25T01:30:00Z");
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct DstPolicy {
    /// What happens to times that are skipped.
    #[serde(default)]
    pub gap: DstGap,
    /// What happens to times that come twice.
    #[serde(default)]
    pub overlap: DstOverlap,
}

impl FromStr for DstPolicy {
    type Err = InvalidInput;

    /// As in `gap:skip, overlap:last`; what is left out is by default.
    ///
    /// ```
    /// use ratchet_core::schedule::{DstGap, DstOverlap, DstPolicy};
    ///
    /// let strict = DstPolicy { gap: DstGap::Skip, overlap: DstOverlap::Last };
    /// assert_eq!("gap:skip, overlap:last".parse(), Ok(strict));
    /// assert_eq!("overlap:both".parse(), Ok(DstPolicy { overlap: DstOverlap::Both, ..DstPolicy::default() }));
    /// assert!("skip".parse::<DstPolicy>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        let mut policy = Self::default();
        for part in text.split(',') {
            match part.trim().split_once(':') {
                Some(("gap", word)) => policy.gap = word.trim().parse()?,
                Some(("overlap", word)) => policy.overlap = word.trim().parse()?,
                _ => {
                    let problem = format!("is {text:?}; say it like \"gap:skip, overlap:last\", or one of the two");
                    return Err(InvalidInput::new("dst", problem));
                }
            }
        }
        Ok(policy)
    }
}

/// What happens to times that a change of the clock skips.
///
/// ```
/// use ratchet_core::schedule::DstGap;
///
/// assert_eq!("at-shift".parse(), Ok(DstGap::AtShift));
/// assert_eq!(DstGap::Skip.as_str(), "SKIP");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DstGap {
    /// They fire together, at the first instant after the gap; but an expression that names every hour goes on by the
    /// clock.
    #[default]
    AtShift,
    /// They do not fire.
    Skip,
}

words!(DstGap, "dst_gap", { AtShift => "AT_SHIFT", Skip => "SKIP" });

/// What happens to times that come twice because the clock was put back.
///
/// ```
/// use ratchet_core::schedule::DstOverlap;
///
/// assert_eq!("first".parse(), Ok(DstOverlap::First));
/// assert_eq!(DstOverlap::default().as_str(), "BY_PATTERN");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DstOverlap {
    /// They fire in both passes if the expression names every hour or several times an hour, else in the first.
    #[default]
    ByPattern,
    /// They fire in the first pass, whatever the expression.
    First,
    /// They fire in the last pass, whatever the expression.
    Last,
    /// They fire in both passes, whatever the expression.
    Both,
}

words!(DstOverlap, "dst_overlap", { ByPattern => "BY_PATTERN", First => "FIRST", Last => "LAST", Both => "BOTH" });
