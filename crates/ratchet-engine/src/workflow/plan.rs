use std::collections::{BTreeMap, BTreeSet};

use ratchet_core::flow::{Condition, Edge};
use ratchet_core::store::SubmitUnit;
use ratchet_core::{InvalidInput, JobFlags, JobId, JobSpec, JobType, NewJob};

use super::branch::When;
use super::condition::{Answers, Conditional};
use crate::client::Client;
use crate::node::ids::new_job_id;
use crate::protect::codec::Part;

/// A workflow in the making: its jobs, and which follows which on what condition.
#[derive(Debug)]
pub(crate) struct Plan {
    jobs: Vec<NewJob>,
    links: Vec<Link>,
}

/// A job's place in the plan.
pub(crate) type StepIndex = usize;

#[derive(Debug)]
struct Link {
    /// Where it was defined among the links.
    at: usize,
    parent: StepIndex,
    child: StepIndex,
    when: When,
    exclusive: bool,
}

impl Plan {
    pub(crate) fn new(jobs: Vec<NewJob>) -> Self {
        Self { jobs, links: Vec::new() }
    }

    pub(crate) fn add(&mut self, job: NewJob) -> StepIndex {
        self.jobs.push(job);
        self.jobs.len() - 1
    }

    pub(crate) fn link(&mut self, parent: StepIndex, child: StepIndex, when: When, exclusive: bool) {
        self.links.push(Link { at: self.links.len(), parent, child, when, exclusive });
    }

    /// How many steps will be added that ask conditions.
    pub(crate) fn questions(&self, client: &Client) -> usize {
        let steps = self.stepped(&self.links, client);
        let in_turn = in_turn(&self.links, &steps);
        steps.union(&asked(&in_turn)).count()
    }

    /// Where the links are whose conditions need code, or look at a result which the store cannot read.
    fn stepped(&self, links: &[Link], client: &Client) -> BTreeSet<usize> {
        let needs_step = |link: &&Link| match &link.when.condition {
            Ok(Conditional::Function(_)) => true,
            Ok(Conditional::Data(Condition::Result(_))) => {
                client.rules().codec.covers(client.meter(), Part::Result(&self.jobs[link.parent].spec.kind))
            }
            Ok(Conditional::Data(_)) | Err(_) => false,
        };
        links.iter().filter(needs_step).map(|link| link.at).collect()
    }

    /// The unit to be stored: every condition that the store cannot judge has become a step of its own.
    pub(crate) fn unit(mut self, client: &Client) -> Result<SubmitUnit, InvalidInput> {
        if self.links.is_empty() {
            return Ok(SubmitUnit::of(self.jobs));
        }
        self.name_types();
        let workflow = self.jobs[0].id;
        let links = std::mem::take(&mut self.links);
        let mut edges = Edges { workflow, edges: Vec::new() };
        let stepped = self.stepped(&links, client);
        let in_turn = in_turn(&links, &stepped);
        let asked_in_turn = asked(&in_turn);
        for link in &links {
            let condition = link.when.condition.clone().map_err(|refused| {
                let field = format!("edge {} -> {}", self.name(link.parent), self.name(link.child));
                InvalidInput::new(field, format!("has a bad condition: {refused}"))
            })?;
            match condition {
                _ if asked_in_turn.contains(&link.at) => {}
                Conditional::Data(condition) if !stepped.contains(&link.at) => {
                    edges.add(Edge {
                        description: link.when.description.clone(),
                        priority: link.when.priority,
                        exclusive: link.exclusive,
                        ..Edge::new(workflow, self.jobs[link.parent].id, self.jobs[link.child].id, condition)
                    });
                }
                Conditional::Data(_) | Conditional::Function(_) => {
                    self.ask(link, &condition, Condition::Success, None, &mut edges)?;
                }
            }
        }
        for InTurn { mut links, of_parent } in in_turn {
            links.sort_by_key(|link| link.when.priority);
            let mut asked_before = None;
            for link in links {
                let condition = link.when.condition.clone()?;
                let asked = self.ask(link, &condition, of_parent.clone(), asked_before, &mut edges)?;
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
        asked_before: Option<Asked>,
        edges: &mut Edges,
    ) -> Result<Asked, InvalidInput> {
        let (parent, child) = (&self.jobs[link.parent], &self.jobs[link.child]);
        // One edge that holds is enough for a join of any: there the answer has to stand alone, and bring the result along.
        let alone = child.flow.has(JobFlags::JOIN_ANY);
        let answers = if alone { Answers::WithResult } else { Answers::Plainly };
        let spec = JobSpec { priority: child.spec.priority, ..condition.spec(answers)? };
        let (parent, child) = (parent.id, child.id);
        let id = new_job_id();
        // Without a name: any that it had could be that of a user's step.
        self.jobs.push(NewJob { job_type: JobType::Condition, ..NewJob::new(id, spec) });
        let workflow = edges.workflow;
        edges.add(Edge {
            description: link.when.description.clone(),
            priority: link.when.priority,
            ..Edge::new(workflow, parent, id, of_parent.clone())
        });
        if let Some(before) = asked_before {
            edges.add(Edge::new(workflow, before.step, id, before.answers.said(false)?));
        }
        if !alone {
            edges.add(Edge::new(workflow, parent, child, of_parent));
        }
        edges.add(Edge::new(workflow, id, child, answers.said(true)?));
        Ok(Asked { step: id, answers })
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

    pub(crate) fn join_any(&mut self, place: StepIndex) {
        let flow = &mut self.jobs[place].flow;
        *flow = flow.with(JobFlags::JOIN_ANY);
    }

    fn name(&self, place: StepIndex) -> String {
        let job = &self.jobs[place];
        job.step.as_ref().map_or_else(|| format!("{:?}", job.spec.kind.as_str()), |step| format!("{:?}", step.as_str()))
    }
}

/// Exclusive links of one parent that are asked one after the other, because one of them needs a step.
struct InTurn<'a> {
    links: Vec<&'a Link>,
    /// The end of the parent that they are asked on.
    of_parent: Condition,
}

/// The links that have to be asked in turn.
///
/// They are asked when the parent succeeds, as they would be if they were not exclusive: a failure cancels them, and a retry
/// brings them back. A link that follows a failure needs no question, and meets none of the others. Only one that follows
/// either end has to be asked on either, and then all of them are.
fn in_turn<'a>(links: &'a [Link], stepped: &BTreeSet<usize>) -> Vec<InTurn<'a>> {
    let mut of_parent: BTreeMap<StepIndex, Vec<&Link>> = BTreeMap::new();
    for link in links.iter().filter(|link| link.exclusive) {
        of_parent.entry(link.parent).or_default().push(link);
    }
    of_parent.retain(|_, links| links.iter().any(|link| stepped.contains(&link.at)));
    of_parent.into_values().map(InTurn::of).collect()
}

/// Where the links are that are asked in turn.
fn asked(in_turn: &[InTurn<'_>]) -> BTreeSet<usize> {
    in_turn.iter().flat_map(|turn| &turn.links).map(|link| link.at).collect()
}

impl<'a> InTurn<'a> {
    fn of(mut links: Vec<&'a Link>) -> Self {
        let on_either =
            |link: &&Link| matches!(link.when.condition, Ok(Conditional::Data(Condition::Finished | Condition::Ended)));
        if links.iter().any(on_either) {
            return Self { links, of_parent: Condition::Finished };
        }
        links.retain(|link| !matches!(link.when.condition, Ok(Conditional::Data(Condition::Failure))));
        Self { links, of_parent: Condition::Success }
    }
}

/// A step that tells whether a condition holds.
#[derive(Debug, Clone, Copy)]
struct Asked {
    step: JobId,
    answers: Answers,
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
