use std::collections::BTreeMap;

use ratchet_core::flow::{Condition, Edge, Operator, ResultTest};
use ratchet_core::store::SubmitUnit;
use ratchet_core::{Flow, InvalidInput, JobId, JobSpec, JobType, NewJob, StepName};
use serde_json::Value;

use super::branch::When;
use super::condition::Conditional;
use crate::ids::new_job_id;

/// A workflow in the making: its jobs, and which follows which on what condition.
#[derive(Debug)]
pub(crate) struct Plan {
    jobs: Vec<NewJob>,
    links: Vec<Link>,
}

/// A job's place in the plan.
pub(crate) type Place = usize;

#[derive(Debug)]
struct Link {
    parent: Place,
    child: Place,
    when: When,
    exclusive: bool,
}

impl Plan {
    pub(crate) fn new(jobs: Vec<NewJob>) -> Self {
        Self { jobs, links: Vec::new() }
    }

    pub(crate) fn add(&mut self, job: NewJob) -> Place {
        self.jobs.push(job);
        self.jobs.len() - 1
    }

    pub(crate) fn link(&mut self, parent: Place, child: Place, when: When, exclusive: bool) {
        self.links.push(Link { parent, child, when, exclusive });
    }

    /// The unit to be stored: every condition that needs code has become a step of its own.
    pub(crate) fn unit(mut self) -> Result<SubmitUnit, InvalidInput> {
        if self.links.is_empty() {
            return Ok(SubmitUnit::of(self.jobs));
        }
        self.name_types();
        let workflow = self.jobs[0].id;
        let links = std::mem::take(&mut self.links);
        let mut edges = Edges { workflow, edges: Vec::new() };
        // Exclusive links of one parent are asked one after the other if one of them needs code.
        let mut in_turn: BTreeMap<Place, Vec<&Link>> = BTreeMap::new();
        for link in links.iter().filter(|link| link.exclusive) {
            in_turn.entry(link.parent).or_default().push(link);
        }
        in_turn.retain(|_, links| links.iter().any(|link| matches!(link.when.condition, Ok(Conditional::Function(_)))));
        for link in &links {
            let condition = link.when.condition.clone().map_err(|refused| {
                let field = format!("edge {} -> {}", self.name(link.parent), self.name(link.child));
                InvalidInput::new(field, format!("has a bad condition: {refused}"))
            })?;
            match condition {
                _ if link.exclusive && in_turn.contains_key(&link.parent) => {}
                Conditional::Data(condition) => {
                    edges.add(Edge {
                        description: link.when.description.clone(),
                        priority: link.when.priority,
                        exclusive: link.exclusive,
                        ..Edge::new(workflow, self.jobs[link.parent].id, self.jobs[link.child].id, condition)
                    });
                }
                Conditional::Function(_) => {
                    self.ask(link, &condition, Condition::Success, None, &mut edges)?;
                }
            }
        }
        for mut links in in_turn.into_values() {
            links.sort_by_key(|link| link.when.priority);
            let mut asked_before = None;
            for link in links {
                let condition = link.when.condition.clone()?;
                let asked = self.ask(link, &condition, Condition::Finished, asked_before, &mut edges)?;
                asked_before = Some(asked);
            }
        }
        for job in &mut self.jobs {
            job.workflow = Some(workflow);
        }
        SubmitUnit::workflow(self.jobs, edges.edges)
    }

    /// Adds a step that tells whether a link's condition holds: after the parent, after the one asked before if that said
    /// no, and before the child, which still waits for the parent itself and so has its result.
    fn ask(
        &mut self,
        link: &Link,
        condition: &Conditional,
        of_parent: Condition,
        asked_before: Option<JobId>,
        edges: &mut Edges,
    ) -> Result<JobId, InvalidInput> {
        let mut spec: JobSpec = condition.spec()?;
        let (parent, child) = (self.jobs[link.parent].clone(), self.jobs[link.child].clone());
        if let Conditional::Function(_) = condition {
            // Where the branch runs, its condition is asked.
            spec.queue = child.spec.queue.clone();
            spec.priority = child.spec.priority;
        }
        let name = format!("{}?", self.name(link.child).trim_matches('"'));
        let id = new_job_id();
        let step = StepName::new(name.chars().take(ratchet_core::limits::STEP_NAME_CHARS_MAX).collect::<String>())?;
        self.jobs.push(NewJob { job_type: JobType::Condition, step: Some(step), ..NewJob::new(id, spec) });
        let workflow = edges.workflow;
        edges.add(Edge {
            description: link.when.description.clone(),
            priority: link.when.priority,
            ..Edge::new(workflow, parent.id, id, of_parent.clone())
        });
        if let Some(before) = asked_before {
            edges.add(Edge::new(workflow, before, id, said(false)?));
        }
        // One edge that holds is enough for a join of any: there the answer has to stand alone.
        if !child.flow.has(Flow::JOIN_ANY) {
            edges.add(Edge::new(workflow, parent.id, child.id, of_parent));
        }
        edges.add(Edge::new(workflow, id, child.id, said(true)?));
        Ok(id)
    }

    /// What each job is, by how many it waits for.
    fn name_types(&mut self) {
        let mut incoming = vec![0_usize; self.jobs.len()];
        let mut conditional = vec![false; self.jobs.len()];
        for link in &self.links {
            incoming[link.child] += 1;
            conditional[link.child] |= !matches!(link.when.condition, Ok(Conditional::Data(Condition::Success)));
        }
        for (place, job) in self.jobs.iter_mut().enumerate() {
            job.job_type = match (incoming[place], conditional[place]) {
                (0, _) => job.job_type,
                (1, false) => JobType::ChainStep,
                (1, true) => JobType::WorkflowBranch,
                _ => JobType::WorkflowJoin,
            };
        }
    }

    pub(crate) fn join_any(&mut self, place: Place) {
        let flow = &mut self.jobs[place].flow;
        *flow = flow.with(Flow::JOIN_ANY);
    }

    fn name(&self, place: Place) -> String {
        let job = &self.jobs[place];
        job.step.as_ref().map_or_else(|| format!("{:?}", job.spec.kind.as_str()), |step| format!("{:?}", step.as_str()))
    }
}

struct Edges {
    workflow: JobId,
    edges: Vec<Edge>,
}

impl Edges {
    fn add(&mut self, edge: Edge) {
        let order = u32::try_from(self.edges.len()).unwrap_or(u32::MAX);
        self.edges.push(Edge { order, ..edge });
    }
}

/// What a condition's step said.
fn said(yes: bool) -> Result<Condition, InvalidInput> {
    ResultTest::new("", Operator::Is, Value::Bool(yes)).map(Condition::Result)
}
