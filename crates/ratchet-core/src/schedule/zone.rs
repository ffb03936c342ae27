//! A time zone by its IANA name.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};

use crate::invalid::InvalidInput;
use crate::limits;

/// A time zone by its IANA name, such as `Europe/Berlin`; UTC unless told otherwise.
///
/// The rules of all zones are part of the program: no file of the machine is read. All nodes of one version therefore
/// agree on every fire, and new rules come with a new version. Upper and lower case of a name are the same.
///
/// ```
/// use ratchet_core::schedule::Zone;
///
/// assert_eq!(Zone::new("europe/berlin")?.as_str(), "Europe/Berlin");
/// assert_eq!(Zone::default().as_str(), "UTC");
///
/// let refused = Zone::new("Europe/Berln").unwrap_err();
/// assert!(refused.to_string().ends_with("which no time zone is called; did you mean \"Europe/Berlin\"?"));
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone(TimeZone);

impl Zone {
    /// The longest name, in characters.
    pub const CHARS_MAX: usize = 64;
    /// The zone without shifts.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// The zone of this name.
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidInput> {
        let name = name.as_ref();
        limits::check_text("zone", name, Self::CHARS_MAX)?;
        match TimeZoneDatabase::bundled().get(name) {
            // The database knows a zone that stands for an unknown one; it has no rules.
            Ok(zone) if !zone.is_unknown() && zone.iana_name().is_some() => Ok(Self(zone)),
            _ => Err(unknown(name)),
        }
    }

    /// Its name, as the IANA database spells it.
    pub fn as_str(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The names of all zones, in order.
    pub fn names() -> Vec<String> {
        let mut names: Vec<String> = TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    pub(super) fn rules(&self) -> &TimeZone {
        &self.0
    }
}

fn unknown(name: &str) -> InvalidInput {
    let help = match nearest(name) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => "give an IANA name such as \"Europe/Berlin\" or \"UTC\"".to_owned(),
    };
    InvalidInput::new("zone", format!("is {name:?}, which no time zone is called; {help}"))
}

/// The known name that was probably meant: by a typing error, or by the city alone.
fn nearest(name: &str) -> Option<String> {
    const TYPING_ERRORS_MAX: usize = 2;
    let meant = name.to_ascii_lowercase().replace(' ', "_");
    let far = |known: &String| {
        let known = known.to_ascii_lowercase();
        let city = known.rsplit('/').next().unwrap_or_default();
        distance(&known, &meant).min(distance(city, &meant))
    };
    let (far, known) = Zone::names().into_iter().map(|known| (far(&known), known)).min()?;
    // Short words are all near each other.
    let near = far <= TYPING_ERRORS_MAX && far * 3 < meant.len();
    near.then_some(known)
}

/// How many letters must be put in, taken out or changed to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

impl Default for Zone {
    /// UTC.
    fn default() -> Self {
        Self::UTC
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl FromStr for Zone {
    type Err = InvalidInput;
    fn from_str(name: &str) -> Result<Self, InvalidInput> {
        Self::new(name)
    }
}

impl TryFrom<String> for Zone {
    type Error = InvalidInput;
    fn try_from(name: String) -> Result<Self, InvalidInput> {
        Self::new(name)
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> String {
        zone.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused_with_the_name_that_was_meant() {
        let check = |name: &str, expected: &str| {
            let refused = Zone::new(name).unwrap_err().to_string();
            assert!(refused.ends_with(expected), "{name:?}: {refused}");
        };
        check(
            "Europe/Berln",
            "`zone` is \"Europe/Berln\", which no time zone is called; did you mean \"Europe/Berlin\"?",
        );
        check("Berlin", "did you mean \"Europe/Berlin\"?");
        check("New York", "did you mean \"America/New_York\"?");
        check("America/NewYork", "did you mean \"America/New_York\"?");
        check("Mars/Olympus", "give an IANA name such as \"Europe/Berlin\" or \"UTC\"");
        // Too short to tell what was meant.
        check("XYZ", "give an IANA name such as \"Europe/Berlin\" or \"UTC\"");
        check("+02:00", "give an IANA name such as \"Europe/Berlin\" or \"UTC\"");
        check("Etc/Unknown", "which no time zone is called; give an IANA name such as \"Europe/Berlin\" or \"UTC\"");
        check("", "`zone` is empty; give 1 to 64 characters");
        check(&"x".repeat(65), "`zone` is 65 characters long; the limit is 64");
        check("Europe/Berlin\0", "remove it");
    }

    #[test]
    fn every_name_is_known_fits_and_is_given_back() {
        let names = Zone::names();
        assert!(names.len() > 500, "{}", names.len());
        for name in names {
            let zone = Zone::new(&name).unwrap();
            assert_eq!(zone.to_string(), name);
            assert_eq!(Zone::new(name.to_ascii_uppercase()).unwrap(), zone);
            assert_eq!(serde_json::to_string(&zone).unwrap(), format!("{name:?}"));
        }
    }
}
