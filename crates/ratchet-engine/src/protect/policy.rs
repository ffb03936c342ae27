//! What may be submitted and run at all, whoever asks.

use std::sync::Arc;

use ratchet_core::{InvalidInput, JobSpec, Kind, Principal, QueueName};
use serde::{Deserialize, Serialize};

use crate::guard;
use crate::observe::metrics::Meter;

/// Narrows what may be submitted: by kind, by queue, by principal, or by whatever else a job says of itself.
///
/// Every job passes it once before anything is written, however it is submitted: alone, among many, as a step, as a child of
/// a batch, as a callback, by a schedule, in a caller's own transaction. A node asks once more before it runs a job, because
/// the process that submitted it may have had another policy; what is refused there goes to the dead letter queue.
///
/// [`AllowList`] is a policy that is data. A policy of one's own is a function:
///
/// ```
/// use ratchet_core::JobSpec;
/// use ratchet_engine::{JobPolicy, PolicyRefusal};
///
/// struct NoTestsInProduction;
///
/// impl JobPolicy for NoTestsInProduction {
///     fn check(&self, job: &JobSpec) -> Result<(), PolicyRefusal> {
///         if job.tags.iter().any(|tag| tag.as_str() == "test") {
///             return Err(PolicyRefusal::new("no-tests", "tags", "holds \"test\"; submit it to the test system"));
///         }
///         Ok(())
///     }
/// }
/// ```
///
/// It is asked for every job, so it should be quick. If it panics the job is refused.
pub trait JobPolicy: Send + Sync + 'static {
    /// Whether a job may be submitted, and run.
    ///
    /// The arguments are in `job` as they were given when it is submitted, and as they are stored when it is about to run.
    ///
    /// # Errors
    /// Which rule refuses it, by which field, and what to do instead.
    fn check(&self, job: &JobSpec) -> Result<(), PolicyRefusal>;
}

/// A job that a [`JobPolicy`] refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem} (rule {rule})")]
pub struct PolicyRefusal {
    rule: String,
    field: String,
    problem: String,
}

impl PolicyRefusal {
    /// Says which rule refuses which field; `problem` continues the sentence "`field` …" and says what to do.
    pub fn new(rule: impl Into<String>, field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { rule: rule.into(), field: field.into(), problem: problem.into() }
    }

    /// The rule.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The field, with the job's place if there are several: `child[3].queue`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with the field, and what to do.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// The same of a job at this place: `job[1].`.
    pub(crate) fn at(self, place: &str) -> Self {
        Self { field: format!("{place}{}", self.field), ..self }
    }
}

/// Asks a policy, which may be the user's: one that panics has not allowed the job.
pub(crate) fn ask(meter: &Meter, policy: Option<&Arc<dyn JobPolicy>>, job: &JobSpec) -> Result<(), PolicyRefusal> {
    let Some(policy) = policy else { return Ok(()) };
    guard::call(meter, guard::JOB_POLICY, || policy.check(job)).unwrap_or_else(|_| {
        Err(PolicyRefusal::new("unknown", "kind", "could not be checked, because the job policy panicked; see the log"))
    })
}

/// A policy that is data: a job is allowed if one of the rules allows it.
///
/// ```
/// use ratchet_core::{JobSpec, JsonText, Kind};
/// use ratchet_engine::{AllowList, AllowRule, JobPolicy};
///
/// let policy = AllowList::new([
///     AllowRule::new("billing").kinds(["billing"]).queues(["billing"]),
///     AllowRule::new("reports").kinds(["report.nightly"]).principals(["alice"]),
/// ])?;
///
/// let job = JobSpec::new(Kind::new("billing.charge")?, JsonText::null());
/// let refused = policy.check(&job).unwrap_err();
/// assert_eq!((refused.rule(), refused.field()), ("\"billing\"", "queue"));
/// assert_eq!(refused.to_string(), "`queue` is \"default\", which is not allowed; use \"billing\" (rule \"billing\")");
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
///
/// It can be read from a configuration, where it is a list of rules: `[{ "name": "billing", "kinds": ["billing"] }]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<AllowRule>", into = "Vec<AllowRule>")]
pub struct AllowList {
    rules: Vec<AllowRule>,
}

/// One rule of an [`AllowList`]: every field that is set narrows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowRule {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kinds: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queues: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principals: Option<Vec<String>>,
}

impl AllowRule {
    /// A rule that allows everything, until it is narrowed. The name is what refusals show.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), kinds: None, queues: None, principals: None }
    }

    /// Only these kinds and those below them: `billing` is also `billing.charge`, but not `billings`. One that ends in a dot
    /// means only what is below.
    #[must_use]
    pub fn kinds<T: Into<String>>(mut self, kinds: impl IntoIterator<Item = T>) -> Self {
        self.kinds.get_or_insert_default().extend(kinds.into_iter().map(Into::into));
        self
    }

    /// Only these queues.
    #[must_use]
    pub fn queues<T: Into<String>>(mut self, queues: impl IntoIterator<Item = T>) -> Self {
        self.queues.get_or_insert_default().extend(queues.into_iter().map(Into::into));
        self
    }

    /// Only for these principals. Jobs without a principal, which the application submits for itself, are none of them.
    #[must_use]
    pub fn principals<T: Into<String>>(mut self, principals: impl IntoIterator<Item = T>) -> Self {
        self.principals.get_or_insert_default().extend(principals.into_iter().map(Into::into));
        self
    }

    fn check(&self) -> Result<(), InvalidInput> {
        let named = |e: InvalidInput| InvalidInput::new(format!("rule {:?}.{}", self.name, e.field()), e.problem());
        if self.name.trim().is_empty() {
            return Err(InvalidInput::new("rule", "has no name; refusals show it, so give it one"));
        }
        let lists = [("kinds", &self.kinds), ("queues", &self.queues), ("principals", &self.principals)];
        if let Some((field, _)) = lists.into_iter().find(|(_, list)| list.as_ref().is_some_and(Vec::is_empty)) {
            let problem = "is empty, so that the rule would allow nothing; name some, or leave it out to allow all";
            return Err(named(InvalidInput::new(field, problem)));
        }
        self.kinds.iter().flatten().try_for_each(|kind| Kind::new(kind).map(drop)).map_err(named)?;
        self.queues.iter().flatten().try_for_each(|queue| QueueName::new(queue).map(drop)).map_err(named)?;
        self.principals.iter().flatten().try_for_each(|one| Principal::new(one).map(drop)).map_err(named)
    }

    /// The first field that does not fit, by how far the job came; `None` if all do.
    fn misfit(&self, job: &JobSpec) -> Option<Misfit> {
        let is = |allowed: &Option<Vec<String>>, given: Option<&str>| {
            allowed.as_ref().is_none_or(|allowed| given.is_some_and(|given| allowed.iter().any(|one| one == given)))
        };
        let fits = |kinds: &Vec<String>| kinds.iter().any(|prefix| is_below(prefix, job.kind.as_str()));
        if !self.kinds.as_ref().is_none_or(fits) {
            Some(Misfit::Kind)
        } else if !is(&self.queues, Some(job.queue.as_str())) {
            Some(Misfit::Queue)
        } else if !is(&self.principals, job.principal.as_ref().map(Principal::as_str)) {
            Some(Misfit::Principal)
        } else {
            None
        }
    }
}

/// Where a job failed a rule; later is closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Misfit {
    Kind,
    Queue,
    Principal,
}

fn is_below(prefix: &str, kind: &str) -> bool {
    kind.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || prefix.ends_with('.') || rest.starts_with('.'))
}

impl AllowList {
    /// A policy of these rules.
    ///
    /// # Errors
    /// If there is none, two have one name, or a kind, a queue or a principal is none that a job could have.
    pub fn new(rules: impl IntoIterator<Item = AllowRule>) -> Result<Self, InvalidInput> {
        let rules: Vec<AllowRule> = rules.into_iter().collect();
        if rules.is_empty() {
            return Err(InvalidInput::new("rules", "is empty, which would refuse every job; add a rule"));
        }
        for (at, rule) in rules.iter().enumerate() {
            rule.check()?;
            if rules[..at].iter().any(|earlier| earlier.name == rule.name) {
                let problem = "is there twice; refusals name the rule, so every one needs its own name";
                return Err(InvalidInput::new(format!("rule {:?}", rule.name), problem));
            }
        }
        Ok(Self { rules })
    }

    /// The rules.
    pub fn rules(&self) -> &[AllowRule] {
        &self.rules
    }
}

impl TryFrom<Vec<AllowRule>> for AllowList {
    type Error = InvalidInput;
    fn try_from(rules: Vec<AllowRule>) -> Result<Self, InvalidInput> {
        Self::new(rules)
    }
}

impl From<AllowList> for Vec<AllowRule> {
    fn from(list: AllowList) -> Self {
        list.rules
    }
}

impl JobPolicy for AllowList {
    fn check(&self, job: &JobSpec) -> Result<(), PolicyRefusal> {
        let mut closest: Option<(Misfit, &AllowRule)> = None;
        for rule in &self.rules {
            let Some(misfit) = rule.misfit(job) else { return Ok(()) };
            if closest.is_none_or(|(before, _)| misfit > before) {
                closest = Some((misfit, rule));
            }
        }
        let (misfit, rule) = closest.expect("a list has a rule");
        let name = format!("{:?}", rule.name);
        Err(match misfit {
            Misfit::Kind => {
                let all = self.rules.iter().map(|rule| &rule.name);
                let kinds = self.rules.iter().flat_map(|rule| rule.kinds.iter().flatten());
                let problem =
                    format!("is {:?}, which no rule allows; allowed are {}", job.kind.as_str(), listed(kinds));
                PolicyRefusal::new(listed(all), "kind", problem)
            }
            Misfit::Queue => {
                let use_one = listed(rule.queues.iter().flatten());
                let problem = format!("is {:?}, which is not allowed; use {use_one}", job.queue.as_str());
                PolicyRefusal::new(name, "queue", problem)
            }
            Misfit::Principal => {
                let given = job.principal.as_ref().map_or("missing".to_owned(), |given| format!("{given:?}"));
                let problem = format!(
                    "is {given}, which is not allowed; submit it for {}",
                    listed(rule.principals.iter().flatten())
                );
                PolicyRefusal::new(name, "principal", problem)
            }
        })
    }
}

/// Names that are shown at most; a refusal is no inventory.
const LISTED_MAX: usize = 10;

fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut names: Vec<String> = names.into_iter().map(|name| format!("{name:?}")).collect();
    if names.len() > LISTED_MAX {
        names.truncate(LISTED_MAX);
        names.push("…".to_owned());
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use ratchet_core::JsonText;

    use super::*;

    fn job(kind: &str, queue: &str, principal: Option<&str>) -> JobSpec {
        let mut spec = JobSpec::new(Kind::new(kind).unwrap(), JsonText::null());
        spec.queue = QueueName::new(queue).unwrap();
        spec.principal = principal.map(|principal| Principal::new(principal).unwrap());
        spec
    }

    #[test]
    fn a_job_is_allowed_if_one_rule_allows_it_and_else_the_closest_says_why() {
        let policy = AllowList::new([
            AllowRule::new("billing").kinds(["billing", "tax."]).queues(["billing", "slow"]),
            AllowRule::new("reports").kinds(["report.nightly"]).principals(["alice", "bob"]),
        ])
        .unwrap();
        let check = |job: JobSpec, expected: Option<(&str, &str)>| {
            let refused = policy.check(&job).err();
            let found = refused.as_ref().map(|refused| (refused.rule(), refused.field()));
            assert_eq!(found, expected, "{job:?}");
        };
        check(job("billing", "billing", None), None);
        check(job("billing.charge", "slow", Some("carol")), None);
        check(job("billings", "billing", None), Some(("\"billing\", \"reports\"", "kind")));
        check(job("tax.vat", "slow", None), None);
        check(job("tax", "slow", None), Some(("\"billing\", \"reports\"", "kind")));
        check(job("billing.charge", "default", None), Some(("\"billing\"", "queue")));
        check(job("report.nightly", "default", Some("alice")), None);
        check(job("report.nightly", "default", Some("carol")), Some(("\"reports\"", "principal")));
        check(job("report.nightly", "default", None), Some(("\"reports\"", "principal")));
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused_with_the_rule() {
        let check = |rules: Vec<AllowRule>, text: &str| {
            let refused = AllowList::new(rules).unwrap_err().to_string();
            assert!(refused.contains(text), "{refused}");
        };
        check(vec![], "is empty");
        check(vec![AllowRule::new(" ")], "has no name");
        check(vec![AllowRule::new("a"), AllowRule::new("a")], "rule \"a\"` is there twice");
        check(vec![AllowRule::new("a").kinds(["Billing"])], "rule \"a\".kind");
        check(vec![AllowRule::new("a").queues([""])], "rule \"a\".queue");
        check(vec![AllowRule::new("a").principals([""])], "rule \"a\".principal");
    }

    #[test]
    fn a_list_is_read_from_a_configuration_and_checked_there() {
        let list: AllowList = serde_json::from_str(r#"[{"name":"a","kinds":["x"]}]"#).unwrap();
        assert!(list.check(&job("x.y", "default", None)).is_ok());
        assert!(serde_json::from_str::<AllowList>(r#"[{"name":"a","kind":["x"]}]"#).is_err(), "a slip is noticed");
        assert!(serde_json::from_str::<AllowList>("[]").is_err());
    }
}
