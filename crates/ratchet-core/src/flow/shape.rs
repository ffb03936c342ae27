use std::collections::{BTreeSet, HashMap};

use super::{Edge, JobFlags};
use crate::id::JobId;
use crate::invalid::InvalidInput;
use crate::limits;
use crate::spec::{NewJob, StartState};

/// Ties jobs together that are to be submitted as one workflow: checks the edges, and makes every job wait for its own.
///
/// # Errors
/// If an edge begins or ends outside, joins a job with itself, is there twice, or if the edges run in a circle. The text
/// names the jobs by their steps.
pub fn link(jobs: &mut [NewJob], edges: &[Edge]) -> Result<(), InvalidInput> {
    limits::check_submit_count(jobs.len())?;
    let places: HashMap<JobId, usize> = jobs.iter().enumerate().map(|(place, job)| (job.id, place)).collect();
    let mut seen = BTreeSet::new();
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); jobs.len()];
    let mut incoming = vec![0_u32; jobs.len()];
    for edge in edges {
        let field = || format!("edge {} -> {}", name_of(jobs, edge.parent), name_of(jobs, edge.child));
        let place = |id: JobId| {
            let problem = || format!("names {}, which is not a step of this workflow", name_of(jobs, id));
            places.get(&id).copied().ok_or_else(|| InvalidInput::new(field(), problem()))
        };
        let (parent, child) = (place(edge.parent)?, place(edge.child)?);
        if parent == child {
            return Err(InvalidInput::new(field(), "joins a step with itself"));
        }
        if !seen.insert((edge.parent, edge.child)) {
            let problem = "is there twice; between two steps one edge with one condition is enough";
            return Err(InvalidInput::new(field(), problem));
        }
        if let Some(test) = edge.condition.test() {
            test.check().map_err(|refused| InvalidInput::new(field(), format!("has a bad condition: {refused}")))?;
        }
        if let Some(description) = &edge.description {
            let field = format!("{}.description", field());
            limits::check_length(&field, description, limits::DESCRIPTION_CHARS_MAX)?;
            limits::check_no_nul(&field, description)?;
        }
        outgoing[parent].push(child);
        incoming[child] += 1;
    }
    if let Some(place) = in_a_circle(&outgoing, &incoming) {
        let field = format!("step {}", name_of(jobs, jobs[place].id));
        return Err(InvalidInput::new(field, "waits for itself: the edges run in a circle"));
    }
    for (place, job) in jobs.iter_mut().enumerate() {
        if !outgoing[place].is_empty() {
            job.flow = job.flow.with(JobFlags::DEPENDANTS);
        }
        if incoming[place] > 0 {
            job.flow = job.flow.with(JobFlags::INPUTS);
            job.waits_for += incoming[place];
            job.start = StartState::Waiting;
        }
    }
    Ok(())
}

/// What people call a job of a workflow.
fn name_of(jobs: &[NewJob], id: JobId) -> String {
    let job = jobs.iter().find(|job| job.id == id);
    match job {
        None => format!("job {id}"),
        Some(job) => match &job.step {
            Some(step) => format!("{:?}", step.as_str()),
            None => format!("{:?}", job.spec.kind.as_str()),
        },
    }
}

/// A job that the edges lead back to, if there is one.
fn in_a_circle(outgoing: &[Vec<usize>], incoming: &[u32]) -> Option<usize> {
    let mut left = incoming.to_vec();
    let mut free: Vec<usize> = (0..left.len()).filter(|place| left[*place] == 0).collect();
    let mut passed = 0;
    while let Some(place) = free.pop() {
        passed += 1;
        for child in &outgoing[place] {
            left[*child] -= 1;
            if left[*child] == 0 {
                free.push(*child);
            }
        }
    }
    if passed == left.len() { None } else { left.iter().position(|count| *count > 0) }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::flow::{Condition, Operator, ResultTest};
    use crate::json::JsonText;
    use crate::name::{Kind, StepName};
    use crate::spec::JobSpec;

    fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn jobs(names: &[&str]) -> Vec<NewJob> {
        let job = |(place, name): (usize, &&str)| NewJob {
            step: Some(StepName::new(name).unwrap()),
            ..NewJob::new(id(place as u128 + 1), JobSpec::new(Kind::new("test").unwrap(), JsonText::null()))
        };
        names.iter().enumerate().map(job).collect()
    }

    fn edge(parent: u128, child: u128) -> Edge {
        Edge::new(id(1), id(parent), id(child), Condition::Success)
    }

    #[test]
    fn every_job_waits_for_its_edges() {
        let mut jobs = jobs(&["a", "b", "c", "d"]);
        link(&mut jobs, &[edge(1, 2), edge(1, 3), edge(2, 4), edge(3, 4)]).unwrap();
        let waits: Vec<_> = jobs.iter().map(|job| (job.waits_for, job.start)).collect();
        assert_eq!(
            waits,
            [(0, StartState::Ready), (1, StartState::Waiting), (1, StartState::Waiting), (2, StartState::Waiting)]
        );
        assert_eq!(jobs[0].flow, JobFlags::DEPENDANTS);
        assert_eq!(jobs[1].flow, JobFlags::DEPENDANTS.with(JobFlags::INPUTS));
        assert_eq!(jobs[3].flow, JobFlags::INPUTS);
    }

    #[test]
    fn what_cannot_be_a_workflow_is_refused_by_name() {
        let check = |edges: &[Edge], expected: &str| {
            let refused = link(&mut jobs(&["a", "b", "c"]), edges).unwrap_err();
            assert_eq!(refused.to_string(), expected);
        };
        check(&[edge(1, 2), edge(2, 3), edge(3, 2)], "`step \"b\"` waits for itself: the edges run in a circle");
        check(&[edge(2, 2)], "`edge \"b\" -> \"b\"` joins a step with itself");
        check(
            &[edge(1, 2), edge(1, 2)],
            "`edge \"a\" -> \"b\"` is there twice; between two steps one edge with one condition is enough",
        );
        let lost = format!("`edge \"a\" -> job {0}` names job {0}, which is not a step of this workflow", id(9));
        check(&[edge(1, 9)], &lost);
        let test = ResultTest { pointer: "total".into(), operator: Operator::Is, value: 1.into() };
        check(
            &[Edge { condition: Condition::Result(test), ..edge(1, 2) }],
            "`edge \"a\" -> \"b\"` has a bad condition: `pointer` is \"total\"; a JSON pointer is empty or begins with \
             a slash, like /total",
        );
    }
}
