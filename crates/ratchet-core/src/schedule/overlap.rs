//! What happens when a schedule fires while its last job still runs.

use serde::{Deserialize, Serialize};

use super::word::words;

/// What happens when a schedule fires while a job of an earlier fire has not ended.
///
/// ```
/// use ratchet_core::schedule::OverlapPolicy;
///
/// assert_eq!("skip".parse(), Ok(OverlapPolicy::Skip));
/// assert_eq!(OverlapPolicy::default(), OverlapPolicy::Allow);
///
/// let refused = "never".parse::<OverlapPolicy>().unwrap_err();
/// assert_eq!(refused.to_string(), "`overlap` is \"never\"; use one of ALLOW, SKIP, QUEUE");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum OverlapPolicy {
    /// The new job runs beside it.
    #[default]
    Allow,
    /// The fire is passed over.
    Skip,
    /// The new job waits until it has ended.
    Queue,
}

words!(OverlapPolicy, "overlap", { Allow => "ALLOW", Skip => "SKIP", Queue => "QUEUE" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_and_serde_names_are_the_same() {
        for policy in OverlapPolicy::ALL {
            assert_eq!(serde_json::to_string(policy).unwrap(), format!("\"{policy}\""));
            assert_eq!(policy.as_str().parse(), Ok(*policy));
            assert_eq!(policy.as_str().to_lowercase().parse(), Ok(*policy));
        }
    }
}
