//! A hint as text, as it travels between nodes that may run different versions of Ratchet.

use ratchet_core::{Hint, NodeId, Priority};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The longest text that is read.
pub const ENVELOPE_CHARS_MAX: usize = 16_384;

const VERSION: u64 = 1;

/// A hint and the hub that sent it.
///
/// ```
/// use ratchet_coordinator::{Envelope, Rejected};
///
/// let text = r#"{"v":1,"hub":"00000000-0000-0000-0000-000000000001",
///     "node":"00000000-0000-0000-0000-000000000002","priority":"HIGH"}"#;
/// assert_eq!(Envelope::decode(text).unwrap().hint.priority, ratchet_core::Priority::High);
/// assert!(matches!(Envelope::decode(r#"{"v":2}"#), Err(Rejected::Version(2))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The hub that sent it, so that it recognizes what the transport brings back to it.
    pub hub: Uuid,
    /// What it says.
    pub hint: Hint,
}

/// Why a text is no hint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It is longer than any hint.
    #[error("it has more than {ENVELOPE_CHARS_MAX} characters")]
    TooLong,
    /// It is not what a hint looks like.
    #[error("it cannot be read as a hint: {0}")]
    Unreadable(serde_json::Error),
    /// A newer Ratchet sent it.
    #[error("its version is {0}, and only {VERSION} is known here")]
    Version(u64),
}

#[derive(Serialize, Deserialize)]
struct Wire {
    v: u64,
    hub: Uuid,
    node: NodeId,
    priority: Priority,
}

/// Read first: what else a later version holds is not known.
#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

impl Envelope {
    /// The text that travels.
    pub fn encode(&self) -> String {
        let Hint { origin, priority } = self.hint;
        let wire = Wire { v: VERSION, hub: self.hub, node: origin, priority };
        serde_json::to_string(&wire).expect("ids and numbers can always be written as JSON")
    }

    /// Reads a text that came in. Fields that are not known are passed by, so that a version can grow some.
    pub fn decode(text: &str) -> Result<Self, Rejected> {
        // Bytes are counted before characters are: they are known, and at most four make a character.
        if text.len() > ENVELOPE_CHARS_MAX && text.chars().nth(ENVELOPE_CHARS_MAX).is_some() {
            return Err(Rejected::TooLong);
        }
        let Versioned { v } = serde_json::from_str(text).map_err(Rejected::Unreadable)?;
        if v != VERSION {
            return Err(Rejected::Version(v));
        }
        let Wire { hub, node, priority, .. } = serde_json::from_str(text).map_err(Rejected::Unreadable)?;
        Ok(Self { hub, hint: Hint { origin: node, priority } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(priority: Priority) -> Envelope {
        Envelope { hub: Uuid::from_u128(1), hint: Hint { origin: NodeId(Uuid::from_u128(7)), priority } }
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        for priority in Priority::ALL {
            let sent = envelope(priority);
            assert_eq!(Envelope::decode(&sent.encode()).unwrap(), sent);
        }
    }

    /// Old nodes read what new ones write, so the text itself is a promise.
    #[test]
    fn the_text_is_stable() {
        let text = r#"{"v":1,"hub":"00000000-0000-0000-0000-000000000001","node":"00000000-0000-0000-0000-000000000007","priority":"CRITICAL"}"#;
        assert_eq!(envelope(Priority::Critical).encode(), text);
    }

    #[test]
    fn texts_are_read_or_rejected_for_a_reason() {
        let check = |text: &str, expected: &str| {
            let found = match Envelope::decode(text) {
                Ok(_) => "read",
                Err(Rejected::TooLong) => "too long",
                Err(Rejected::Unreadable(_)) => "unreadable",
                Err(Rejected::Version(_)) => "version",
            };
            assert_eq!(found, expected, "{}", &text[..text.len().min(200)]);
        };
        let good = envelope(Priority::Low).encode();
        let padded = |padding: &str| good.replace(r#"{"v""#, &format!(r#"{{"padding":"{padding}","v""#));
        let room = ENVELOPE_CHARS_MAX - padded("").len();
        check(&good, "read");
        check(&good.replace(r#"{"v""#, r#"{"new":[1],"v""#), "read");
        check(&good.replace(r#""v":1"#, r#""v":2"#), "version");
        check(r#"{"v":2,"words":"that are not known yet"}"#, "version");
        check(&good.replace(r#""v":1"#, r#""v":"1""#), "unreadable");
        check(&good.replace(r#""v":1,"#, ""), "unreadable");
        check(&good.replace("LOW", "SOMEWHAT"), "unreadable");
        check(&good.replace("0007", "000"), "unreadable");
        check(&good[..good.len() - 1], "unreadable");
        check("", "unreadable");
        check("\0", "unreadable");
        check("[]", "unreadable");
        check(&"[".repeat(ENVELOPE_CHARS_MAX), "unreadable");
        check(&padded(&"x".repeat(room)), "read");
        check(&padded(&"x".repeat(room + 1)), "too long");
        // Characters are counted, not bytes.
        check(&padded(&"é".repeat(room)), "read");
        check(&padded(&"é".repeat(room + 1)), "too long");
    }
}
