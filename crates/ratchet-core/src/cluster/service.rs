//! Services that a node does not call as usual, as it tells others of them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::breaker::Admission;
use crate::clock::later;

/// How a service stands on a node whose circuit breaker for it is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ServiceStand {
    /// No call goes through.
    Open {
        /// Until when, by the database's clock; then it is tried.
        until: Timestamp,
    },
    /// Somebody opened it by hand, and somebody has to reset it.
    ForcedOpen,
    /// A few calls try whether the service is back.
    HalfOpen,
}

impl ServiceStand {
    /// What follows from how many calls may begin now; `None` for a service that is called as usual.
    pub fn of(admission: Admission, now: Timestamp) -> Option<Self> {
        match admission {
            Admission::All => None,
            Admission::AtMost(_) => Some(Self::HalfOpen),
            Admission::None(None) => Some(Self::ForcedOpen),
            Admission::None(Some(wait)) => {
                let until = later(now, wait);
                // Times are stored to the microsecond.
                Some(Self::Open { until: Timestamp::from_microsecond(until.as_microsecond()).unwrap_or(until) })
            }
        }
    }

    /// Its name, as it is written in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::ForcedOpen => "forced-open",
            Self::HalfOpen => "half-open",
        }
    }

    /// Whether no call goes through. One that was open until a time that is over is tried by now.
    pub fn refuses(self, now: Timestamp) -> bool {
        match self {
            Self::Open { until } => until > now,
            Self::ForcedOpen => true,
            Self::HalfOpen => false,
        }
    }

    /// Until when no call goes through, if that is known.
    pub const fn until(self) -> Option<Timestamp> {
        match self {
            Self::Open { until } => Some(until),
            Self::ForcedOpen | Self::HalfOpen => None,
        }
    }
}

/// A service, and how it stands on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceVitals {
    /// Its name.
    pub service: String,
    /// How it stands.
    #[serde(flatten)]
    pub stand: ServiceStand,
}

/// The services of a node whose circuit breakers are not closed. Ordinarily there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeServices {
    /// The first of them by name, at most [`NodeServices::LISTED_MAX`].
    pub not_closed: Vec<ServiceVitals>,
    /// How many further ones are not listed.
    pub left_out: usize,
}

impl NodeServices {
    /// Most services that are listed: they are written with every heartbeat.
    pub const LISTED_MAX: usize = 32;

    /// Lists services, as many as may be.
    pub fn of(services: impl IntoIterator<Item = ServiceVitals>) -> Self {
        let mut not_closed: Vec<_> = services.into_iter().collect();
        not_closed.sort_by(|one, other| one.service.cmp(&other.service));
        let left_out = not_closed.len().saturating_sub(Self::LISTED_MAX);
        not_closed.truncate(Self::LISTED_MAX);
        Self { not_closed, left_out }
    }

    /// Whether all breakers are closed.
    pub fn is_empty(&self) -> bool {
        self.not_closed.is_empty()
    }

    /// How a service stands; `None` if it is called as usual, or was left out.
    pub fn stand(&self, service: &str) -> Option<ServiceStand> {
        self.not_closed.iter().find(|one| one.service == service).map(|one| one.stand)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_stand_follows_from_what_is_admitted() {
        let check = |admission, stand| assert_eq!(ServiceStand::of(admission, at(100)), stand, "{admission:?}");
        check(Admission::All, None);
        check(Admission::AtMost(2), Some(ServiceStand::HalfOpen));
        check(Admission::AtMost(0), Some(ServiceStand::HalfOpen));
        check(Admission::None(None), Some(ServiceStand::ForcedOpen));
        check(Admission::None(Some(Duration::from_secs(30))), Some(ServiceStand::Open { until: at(130) }));
        let finer = Duration::from_secs(30) + Duration::from_nanos(7);
        check(Admission::None(Some(finer)), Some(ServiceStand::Open { until: at(130) }));
        assert!(ServiceStand::of(Admission::None(Some(Duration::MAX)), at(100)).is_some_and(|it| it.refuses(at(200))));
    }

    #[test]
    fn what_was_open_is_tried_when_its_time_is_over() {
        let check =
            |stand: ServiceStand, now, refuses| assert_eq!(stand.refuses(at(now)), refuses, "{stand:?} at {now}");
        check(ServiceStand::Open { until: at(130) }, 129, true);
        check(ServiceStand::Open { until: at(130) }, 130, false);
        check(ServiceStand::ForcedOpen, 1_000_000, true);
        check(ServiceStand::HalfOpen, 0, false);
    }

    #[test]
    fn the_first_by_name_are_listed_and_the_rest_is_counted() {
        let many = |count: usize| {
            let named = |n| ServiceVitals { service: format!("s{n:03}"), stand: ServiceStand::HalfOpen };
            NodeServices::of((0..count).rev().map(named))
        };
        let check = |count, listed, left_out| {
            let services = many(count);
            assert_eq!((services.not_closed.len(), services.left_out), (listed, left_out), "{count}");
            assert!(services.not_closed.is_sorted_by(|one, other| one.service < other.service));
        };
        check(0, 0, 0);
        check(32, 32, 0);
        check(35, 32, 3);
        assert_eq!(many(35).stand("s031"), Some(ServiceStand::HalfOpen));
        assert_eq!(many(35).stand("s032"), None);
        assert!(many(0).is_empty() && !many(1).is_empty());
    }

    #[test]
    fn they_are_written_flat_and_read_back() {
        let named = |service: &str, stand| ServiceVitals { service: service.to_owned(), stand };
        let services = NodeServices::of([
            named("payments", ServiceStand::Open { until: at(130) }),
            named("mail", ServiceStand::HalfOpen),
            named("fax", ServiceStand::ForcedOpen),
        ]);
        let json = serde_json::to_string(&services).unwrap();
        let expected = concat!(
            r#"{"not_closed":[{"service":"fax","state":"forced-open"},{"service":"mail","state":"half-open"},"#,
            r#"{"service":"payments","state":"open","until":"1970-01-01T00:02:10Z"}],"left_out":0}"#,
        );
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<NodeServices>(&json).unwrap(), services);
        for one in &services.not_closed {
            assert!(json.contains(&format!(r#""state":"{}""#, one.stand.as_str())));
        }
    }
}
