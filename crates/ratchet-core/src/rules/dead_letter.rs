//! Dead letters, and which of them failed for the same reason.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::name::{BusinessKey, Kind, QueueName};
use crate::page::JobFilter;
use crate::state::JobState;

/// A job in the dead letter queue: what there is to say about its failure, without its payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetter {
    /// The job.
    pub id: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its queue.
    pub queue: QueueName,
    /// The class of its last error; `None` if it never ran.
    pub error_class: Option<String>,
    /// Its last error.
    pub error: String,
    /// When it failed for good.
    pub failed_at: Timestamp,
}

impl DeadLetter {
    /// What it has in common with others that failed for the same reason.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.kind, self.error_class.as_deref(), &self.error)
    }
}

/// Which dead letters; every field that is set narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    /// Jobs of this filter. Only those in the dead letter queue are meant: states without FAILED let nothing through, and the
    /// archive is never looked at.
    pub jobs: JobFilter,
    /// That failed for this reason.
    pub fingerprint: Option<Fingerprint>,
    /// But not these jobs.
    pub except: BTreeSet<JobId>,
}

impl DeadLetterFilter {
    /// Whether it lets dead letters through at all.
    pub fn has_failed(&self) -> bool {
        has_failed(&self.jobs)
    }

    /// Whether every letter that the filter of jobs lets through is meant.
    pub fn passes_all(&self) -> bool {
        self.fingerprint.is_none() && self.except.is_empty()
    }

    /// Whether a letter that the filter of jobs lets through is meant.
    pub fn passes(&self, letter: &DeadLetter) -> bool {
        !self.except.contains(&letter.id)
            && self.fingerprint.as_ref().is_none_or(|fingerprint| letter.fingerprint() == *fingerprint)
    }
}

/// A dead letter that cannot be retried, because another job holds the business key that it, or a job that would follow it
/// again, needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldKey {
    /// The dead letter.
    pub job: JobId,
    /// The key.
    pub business_key: BusinessKey,
    /// The job that holds it.
    pub holder: JobId,
    /// Whether that is no live job, but another dead letter of the same call, which would hold it.
    pub same_call: bool,
}

impl fmt::Display for HeldKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, business_key, holder, same_call } = self;
        write!(f, "job {job} needs the business key {business_key:?}, which job {holder}")?;
        f.write_str(if *same_call { ", retried by the same call, would hold" } else { " holds" })
    }
}

/// Whether a filter of jobs lets dead letters through.
pub fn has_failed(filter: &JobFilter) -> bool {
    filter.archive.has_live() && (filter.states.is_empty() || filter.states.contains(&JobState::Failed))
}

/// Kind, error class and error text without what differs from job to job: 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Fingerprint(String);

const DIGITS: usize = 16;

impl Fingerprint {
    /// The fingerprint of an error of a kind of jobs.
    pub fn of(kind: &Kind, class: Option<&str>, error: &str) -> Self {
        let mut hasher = Sha256::new();
        for part in [kind.as_str(), class.unwrap_or_default(), &common_text(error)] {
            hasher.update(part);
            hasher.update([0]);
        }
        let digest = hasher.finalize();
        Self(digest[..DIGITS / 2].iter().fold(String::with_capacity(DIGITS), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }))
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        if text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err(InvalidInput::new("fingerprint", format!("is {text:?}; it has {DIGITS} hexadecimal digits")))
    }
}

/// Longest text that tells errors apart; what follows is most often a list of details.
const COMMON_CHARS_MAX: usize = 200;

/// An error text without what differs from job to job: every word with a digit in it becomes `#`, and blanks one space.
///
/// Numbers, ids, times and addresses all have digits, and words that matter seldom do.
pub fn common_text(error: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut out = String::new();
    let mut rest = error.trim();
    while let Some(first) = rest.chars().next() {
        let of_word = is_word(first);
        let end = rest.find(|c| is_word(c) != of_word).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        if of_word && part.contains(|c: char| c.is_numeric()) {
            out.push('#');
        } else if of_word {
            out.push_str(part);
        } else {
            let mut blank = false;
            for c in part.chars() {
                if !(c.is_whitespace() && blank) {
                    out.push(if c.is_whitespace() { ' ' } else { c });
                }
                blank = c.is_whitespace();
            }
        }
        rest = after;
    }
    out.chars().take(COMMON_CHARS_MAX).collect()
}

/// Dead letters that failed for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetterGroup {
    /// What they have in common.
    pub fingerprint: Fingerprint,
    /// Their kind.
    pub kind: Kind,
    /// The class of their error.
    pub error_class: Option<String>,
    /// Their error, without what differs.
    pub error: String,
    /// How many.
    pub count: u64,
    /// When the first of them failed.
    pub first: Timestamp,
    /// When the last of them failed.
    pub last: Timestamp,
    /// The one that failed last.
    pub sample: JobId,
    /// Its error, as it was.
    pub sample_error: String,
}

/// Puts dead letters together as they come.
#[derive(Debug, Clone, Default)]
pub struct Grouping {
    groups: HashMap<Fingerprint, DeadLetterGroup>,
}

impl Grouping {
    /// One more.
    pub fn add(&mut self, letter: &DeadLetter) {
        let fingerprint = letter.fingerprint();
        let group = self.groups.entry(fingerprint.clone()).or_insert_with(|| DeadLetterGroup {
            fingerprint,
            kind: letter.kind.clone(),
            error_class: letter.error_class.clone(),
            error: common_text(&letter.error),
            count: 0,
            first: letter.failed_at,
            last: letter.failed_at,
            sample: letter.id,
            sample_error: letter.error.clone(),
        });
        group.count += 1;
        group.first = group.first.min(letter.failed_at);
        if letter.failed_at > group.last {
            group.last = letter.failed_at;
            group.sample = letter.id;
            group.sample_error.clone_from(&letter.error);
        }
    }

    /// The groups, the largest first; of equal ones the most recent.
    pub fn into_groups(self) -> Vec<DeadLetterGroup> {
        let mut groups: Vec<_> = self.groups.into_values().collect();
        groups.sort_by(|a, b| (b.count, b.last, &a.fingerprint).cmp(&(a.count, a.last, &b.fingerprint)));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn what_differs_from_job_to_job_is_left_out() {
        let check = |error: &str, expected: &str| assert_eq!(common_text(error), expected);
        check("order 17 is gone", "order # is gone");
        check("order 01890a5d-ac96-774b-bcce-b302099a8057 is gone", "order # is gone");
        check("connect to 10.0.0.7:5432 failed after 30s", "connect to #.#.#.#:# failed after #");
        check("  card   declined\n(code=x9)", "card declined (code=#)");
        check("größe 5µ", "größe #");
        check("", "");
        assert_eq!(common_text(&"a ".repeat(500)).chars().count(), COMMON_CHARS_MAX);
    }

    #[test]
    fn letters_are_grouped_by_kind_class_and_text() {
        let letter = |kind: &str, class: Option<&str>, error: &str, second| DeadLetter {
            id: JobId(Uuid::from_u128(second)),
            kind: Kind::new(kind).unwrap(),
            queue: QueueName::new("default").unwrap(),
            error_class: class.map(str::to_owned),
            error: error.to_owned(),
            failed_at: Timestamp::from_second(i64::try_from(second).unwrap()).unwrap(),
        };
        let mut grouping = Grouping::default();
        let letters = [
            letter("a", Some("Io"), "order 1", 1),
            letter("a", Some("Io"), "order 3", 3),
            letter("a", Some("Io"), "order 2", 2),
            letter("b", Some("Io"), "order 1", 4),
            letter("a", None, "order 1", 5),
            letter("a", Some("Io"), "other 1", 6),
        ];
        for letter in letters {
            grouping.add(&letter);
        }
        let groups = grouping.into_groups();
        assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [3, 1, 1, 1]);
        let first = &groups[0];
        assert_eq!((first.error.as_str(), first.sample_error.as_str()), ("order #", "order 3"));
        assert_eq!((first.first.as_second(), first.last.as_second()), (1, 3));
        assert_eq!(first.fingerprint.as_str().parse::<Fingerprint>().unwrap(), first.fingerprint);
        assert!("xyz".parse::<Fingerprint>().is_err());
    }
}
