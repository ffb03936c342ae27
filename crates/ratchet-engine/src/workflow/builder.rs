use std::collections::{BTreeMap, BTreeSet};

use ratchet_core::flow::{Condition, Join};
use ratchet_core::prepare::{PrepareSubmit, PreparedSubmit};
use ratchet_core::store::{SubmitUnit, Submitted};
use ratchet_core::{IdempotencyKey, InvalidInput, NewJob, StartState, StepName, StoreError, limits};

use super::branch::{IntoBranch, When};
use super::handle::WorkflowHandle;
use super::plan::{Plan, StepIndex};
use super::steer::names;
use crate::client::Client;
use crate::submit::error::{SubmitError, SubmittedKind};
use crate::submit::step::{IntoStep, Step, apply};
use crate::submit::unit::Waking;

/// A workflow of any shape that is about to be submitted; nothing happens before [`submit`](Self::submit).
///
/// Steps have names, and edges say which follows which. A step without edges into it runs first; one with several waits for
/// all of them ([`Join::All`]), or for as many as come ([`join`](Self::join)).
///
/// ```
/// use ratchet_engine::{Client, Failure, Job, JobContext, result};
/// # use ratchet_core::MemoryStore;
/// # use serde::{Deserialize, Serialize};
/// # macro_rules! job { ($name:ident, $kind:literal) => {
/// #     #[derive(Serialize, Deserialize)] struct $name;
/// #     impl Job for $name {
/// #         const KIND: &'static str = $kind;
/// #         type Output = u64;
/// #         async fn run(self, _: JobContext) -> Result<u64, Failure> { Ok(1) }
/// #     }
/// # } }
/// # job!(Fetch, "fetch"); job!(Resize, "resize"); job!(Read, "read"); job!(Publish, "publish");
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let handle = client
///     .workflow()
///     .step("fetch", Fetch)
///     .step("resize", Resize)
///     .step("read", Read)
///     .step("publish", Publish)
///     .edge("fetch", "resize")
///     .edge_when::<u64>("fetch", "read", result("").more_than(0))
///     .edge("resize", "publish")
///     .edge("read", "publish")
///     .submit()
///     .await?;
/// println!("{:?}", handle.status().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is submitted before .submit()"]
pub struct WorkflowBuilder {
    client: Client,
    steps: Vec<(String, Step)>,
    edges: Vec<(String, String, When)>,
    joins: Vec<(String, Join)>,
    exclusive: Vec<String>,
    idempotency_key: Result<Option<IdempotencyKey>, InvalidInput>,
}

impl WorkflowBuilder {
    pub(crate) fn new(client: Client) -> Self {
        let (steps, edges, joins, exclusive) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { client, steps, edges, joins, exclusive, idempotency_key: Ok(None) }
    }

    /// Adds a step under a name of its own: at most 64 characters.
    pub fn step(mut self, name: impl Into<String>, step: impl IntoStep) -> Self {
        self.steps.push((name.into(), step.into_step()));
        self
    }

    /// `to` follows if `from` succeeds.
    pub fn edge(self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.push(from, to, When::data(Condition::Success))
    }

    /// `to` follows if `from` fails for good.
    pub fn edge_on_failure(self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.push(from, to, When::data(Condition::Failure))
    }

    /// `to` follows whatever comes of `from`, unless it is canceled.
    pub fn edge_always(self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.push(from, to, When::data(Condition::Finished))
    }

    /// `to` follows if `from` succeeds and its result is so. The type of that result is not checked here: a condition that
    /// cannot read it fails.
    pub fn edge_when<T>(self, from: impl Into<String>, to: impl Into<String>, condition: impl IntoBranch<T>) -> Self {
        self.push(from, to, condition.into_branch())
    }

    /// Of the edges from this step at most one is followed: the first that holds, by priority and then in their order.
    pub fn exclusive(mut self, from: impl Into<String>) -> Self {
        self.exclusive.push(from.into());
        self
    }

    /// When a step with several edges into it runs; [`Join::All`] unless said otherwise.
    pub fn join(mut self, step: impl Into<String>, join: Join) -> Self {
        self.joins.push((step.into(), join));
        self
    }

    /// Deduplicates submissions. The first workflow submitted with this key wins; later submissions return its handle.
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        apply(&mut self.idempotency_key, |set| IdempotencyKey::new(key).map(|key| *set = Some(key)));
        self
    }

    fn push(mut self, from: impl Into<String>, to: impl Into<String>, when: When) -> Self {
        self.edges.push((from.into(), to.into(), when));
        self
    }

    /// Stores all steps in one transaction.
    ///
    /// # Errors
    /// [`SubmitError::Invalid`] names the step, the edge or the field that is wrong: a name that is used twice or that no
    /// step has, a step without edges beside others, edges that run in a circle, an option out of bounds. Nothing is written then. The rest is as for
    /// [`Enqueue::submit`](crate::Enqueue::submit).
    pub async fn submit(self) -> Result<WorkflowHandle, SubmitError> {
        let client = self.client.clone();
        let (unit, names) = self.into_unit()?;
        let waking = Waking::of_ready(&unit.jobs);
        let outcome = client.submit_unit(unit, waking).await?;
        if let Some(Submitted::Existing(earlier)) = outcome.first() {
            client.check_submitted_kind(outcome[0], SubmittedKind::Workflow).await?;
            return existing(client, *earlier).await;
        }
        Ok(created(client, names, &outcome))
    }

    fn into_unit(self) -> Result<(SubmitUnit, BTreeMap<String, StepIndex>), InvalidInput> {
        let Self { client, steps, edges, joins, exclusive, idempotency_key } = self;
        if steps.is_empty() {
            return Err(InvalidInput::new("workflow", "has no steps; add one with .step(name, job)"));
        }
        check_count(steps.len(), 0)?;
        let mut places = BTreeMap::new();
        let mut jobs: Vec<NewJob> = Vec::with_capacity(steps.len());
        for (name, step) in steps {
            let unnamed =
                |e: InvalidInput| InvalidInput::new("step", format!("{name:?} has a bad name: it {}", e.problem()));
            let step_name = StepName::new(&name).map_err(unnamed)?;
            let named = |e: InvalidInput| InvalidInput::new(format!("step {name:?}.{}", e.field()), e.problem());
            let mut job = step.into_job().map_err(named)?;
            job.check().map_err(named)?;
            job.step = Some(step_name);
            if places.insert(name.clone(), jobs.len()).is_some() {
                return Err(InvalidInput::new(
                    format!("step {name:?}"),
                    "is there twice; every step needs its own name",
                ));
            }
            jobs.push(job);
        }
        jobs[0].idempotency_key = idempotency_key?;
        let mut plan = Plan::new(jobs);
        let place = |field: &str, name: &str| {
            let known = places.get(name).copied();
            known.ok_or_else(|| {
                InvalidInput::new(field, format!("names step {name:?}, which this workflow does not have"))
            })
        };
        for (name, join) in joins {
            let at = place("join", &name)?;
            if join == Join::Any {
                plan.join_any(at);
            }
        }
        for name in &exclusive {
            place("exclusive", name)?;
        }
        let mut alone: BTreeSet<StepIndex> = places.values().copied().filter(|_| places.len() > 1).collect();
        for (from, to, when) in edges {
            let field = format!("edge {from:?} -> {to:?}");
            let (parent, child) = (place(&field, &from)?, place(&field, &to)?);
            plan.link(parent, child, when, exclusive.contains(&from));
            alone.remove(&parent);
            alone.remove(&child);
        }
        if let Some((name, _)) = places.iter().find(|(_, place)| alone.contains(place)) {
            let problem =
                "has no edge from it or to it; what does not hang together is no workflow: submit_all takes many jobs";
            return Err(InvalidInput::new(format!("step {name:?}"), problem));
        }
        check_count(places.len(), plan.questions(&client))?;
        Ok((plan.unit(&client)?, places))
    }
}

/// Refuses a workflow with too many steps, those counted that ask its conditions.
fn check_count(steps: usize, questions: usize) -> Result<(), InvalidInput> {
    let max = limits::SUBMIT_JOBS_MAX;
    if steps + questions <= max {
        return Ok(());
    }
    let questions = match questions {
        0 => String::new(),
        count => format!(", and {count} more that ask its conditions"),
    };
    Err(InvalidInput::new("workflow", format!("has {steps} steps{questions}; the limit is {max} in all")))
}

/// The handle to a workflow that was just written.
fn created(client: Client, names: BTreeMap<String, StepIndex>, outcome: &[Submitted]) -> WorkflowHandle {
    let steps = names.into_iter().map(|(name, place)| (name, outcome[place].id())).collect();
    WorkflowHandle::new(client, outcome[0].id(), steps, false)
}

/// In a caller's transaction. The handle of a workflow whose idempotency key was used before knows no steps by name; with
/// [`Client::workflow_handle`] and its id they are found.
impl PrepareSubmit for WorkflowBuilder {
    type Handle = WorkflowHandle;
    type Error = SubmitError;

    fn prepare(self) -> Result<PreparedSubmit<WorkflowHandle, SubmitError>, SubmitError> {
        let client = self.client.clone();
        let (unit, names) = self.into_unit()?;
        let unit = client.admit(unit)?;
        let hint = client.hint(Waking::of_ready(&unit.jobs));
        let begins = unit.jobs.iter().find(|job| job.start == StartState::Ready).map(|job| job.id);
        Ok(unit.prepared(hint, move |outcome| {
            let outcome = outcome?;
            if let Submitted::Existing(earlier) = outcome[0] {
                return Ok(WorkflowHandle::new(client, earlier, BTreeMap::new(), true));
            }
            // The caller's commit is not reported here: the pump polls for the first job that can run.
            if let Some(begins) = begins {
                client.wake().expect(begins);
            }
            Ok(created(client, names, &outcome))
        }))
    }
}

/// The workflow that an earlier submit with the same idempotency key made.
async fn existing(client: Client, earlier: ratchet_core::JobId) -> Result<WorkflowHandle, SubmitError> {
    let missing = || {
        let problem = format!("the workflow of an earlier submit with the same key, {earlier}, was deleted since");
        StoreError::new(ratchet_core::ErrorKind::NotFound, "submitting a workflow", problem)
    };
    let id = client.find(earlier).await?.and_then(|job| job.workflow).unwrap_or(earlier);
    let workflow = client.workflow_graph(id).await?.ok_or_else(missing)?;
    Ok(WorkflowHandle::new(client, id, names(&workflow), true))
}
