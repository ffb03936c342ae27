//! Resources: how many jobs that need the same thing may run at once, in the whole cluster.

use std::time::Duration;

use crate::invalid::InvalidInput;
use crate::limits;
use crate::name::ResourceName;

/// How long a node waits before it looks again at a resource that is taken up, unless something tells it earlier.
pub const RETRY_DELAY_DEFAULT: Duration = Duration::from_secs(5);

/// How many jobs that name a resource may run at once.
///
/// ```
/// use std::time::Duration;
/// use ratchet_core::ResourceLimit;
///
/// let printer = ResourceLimit::new("printer", 5).unwrap();
/// assert_eq!(printer.retry_delay, Duration::from_secs(5));
/// let refused = ResourceLimit::new("printer", 1_000_000).unwrap_err();
/// assert_eq!(refused.to_string(), "`max_concurrent` of resource \"printer\" is 1000000; the limit is 10000");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceLimit {
    /// The resource.
    pub name: ResourceName,
    /// How many may run at once; zero lets none begin.
    pub max_concurrent: u32,
    /// How long a node waits at most before it looks again whether a permit is free.
    pub retry_delay: Duration,
}

impl ResourceLimit {
    /// A limit with the default delay.
    ///
    /// # Errors
    /// Names what is wrong with the name or the number.
    pub fn new(name: impl AsRef<str>, max_concurrent: u32) -> Result<Self, InvalidInput> {
        let limit = Self { name: ResourceName::new(name)?, max_concurrent, retry_delay: RETRY_DELAY_DEFAULT };
        limit.check()?;
        Ok(limit)
    }

    /// Another delay.
    #[must_use]
    pub fn retry_delay(self, retry_delay: Duration) -> Self {
        Self { retry_delay, ..self }
    }

    /// Refuses more permits than can be counted in every claim, and delays that are no delays.
    ///
    /// # Errors
    /// Names the field and its limit.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let Self { name, max_concurrent, retry_delay } = self;
        let refused = |field: &str, problem: String| {
            Err(InvalidInput::new(field, format!("of resource {:?} {problem}", name.as_str())))
        };
        if *max_concurrent > limits::PERMITS_MAX {
            let problem = format!("is {max_concurrent}; the limit is {}", limits::PERMITS_MAX);
            return refused("max_concurrent", problem);
        }
        if *retry_delay < limits::PERMIT_DELAY_MIN || *retry_delay > limits::PERMIT_DELAY_MAX {
            let (min, max) = (limits::PERMIT_DELAY_MIN, limits::PERMIT_DELAY_MAX);
            let problem = format!("is {retry_delay:?}; give {min:?} to {max:?}");
            return refused("retry_delay", problem);
        }
        Ok(())
    }
}

/// A resource as a store knows it: one that has a limit, or jobs that run with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRecord {
    /// The resource.
    pub name: ResourceName,
    /// Its limit; without one, nothing is held up.
    pub limit: Option<ResourceLimit>,
    /// Whether the limit was set by hand, so that the one in the code does not count.
    pub by_hand: bool,
    /// How many permits are out: jobs of living nodes that run with it.
    pub in_use: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_checked() {
        let refused = |limit: ResourceLimit| limit.check().unwrap_err().to_string();
        let one = || ResourceLimit::new("x", 0).unwrap();
        assert_eq!(
            refused(one().retry_delay(Duration::ZERO)),
            "`retry_delay` of resource \"x\" is 0ns; give 1ms to 3600s"
        );
        assert!(refused(one().retry_delay(Duration::from_secs(3_601))).ends_with("give 1ms to 3600s"));
        assert!(ResourceLimit::new("", 1).is_err());
        assert!(ResourceLimit::new("x", limits::PERMITS_MAX).is_ok());
        assert!(one().retry_delay(Duration::from_millis(1)).check().is_ok());
    }
}
