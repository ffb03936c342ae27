//! Which jobs of a unit are stored, by the ids and keys that are taken.

use std::collections::{HashMap, HashSet};

use super::DOING;
use crate::batch::NewBatch;
use crate::error::StoreError;
use crate::flow::Edge;
use crate::id::JobId;
use crate::spec::NewJob;
use crate::store::{SubmitUnit, Submitted};

/// The ids and keys that are taken: by stored jobs, which the store adds, and by the units decided so far.
///
/// ```
/// use ratchet_core::submit::KeyReservations;
/// use ratchet_core::store::{SubmitUnit, Submitted};
/// use ratchet_core::{JobId, JobSpec, JsonText, Kind, NewJob};
///
/// let id = JobId("0197f5a2-7c3e-7000-8000-000000000001".parse().unwrap());
/// let unit = SubmitUnit::of(vec![NewJob::new(id, JobSpec::new(Kind::new("greet")?, JsonText::null()))]);
/// let mut reservations = KeyReservations::default();
///
/// let first = reservations.decide_unit(&unit).unwrap();
/// assert_eq!((first.submitted, first.jobs.len()), (vec![Submitted::Created(id)], 1));
/// let again = reservations.decide_unit(&unit).unwrap();
/// assert_eq!((again.submitted, again.jobs.len()), (vec![Submitted::Created(id)], 0));
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct KeyReservations {
    ids: HashSet<JobId>,
    idempotency: HashMap<String, JobId>,
    business: HashMap<String, JobId>,
}

/// What is stored of a unit, and what its caller is told.
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptedUnit<'a> {
    /// One entry per job of the unit, in order.
    pub submitted: Vec<Submitted>,
    /// The jobs to store.
    pub jobs: Vec<&'a NewJob>,
    /// The edges to store.
    pub edges: &'a [Edge],
    /// The batch to store.
    pub batch: Option<&'a NewBatch>,
}

impl KeyReservations {
    /// Adds the id of a stored job.
    pub fn add_id(&mut self, id: JobId) {
        self.ids.insert(id);
    }

    /// Adds an idempotency key and the job that was first submitted with it.
    pub fn add_idempotency_key(&mut self, key: impl Into<String>, owner: JobId) {
        self.idempotency.insert(key.into(), owner);
    }

    /// Adds a business key and the job or schedule that holds it.
    pub fn add_business_key(&mut self, key: impl Into<String>, holder: JobId) {
        self.business.insert(key.into(), holder);
    }

    /// Decides about one unit and reserves what it takes.
    ///
    /// # Errors
    /// [`Duplicate`](crate::ErrorKind::Duplicate) if the business key of one of its jobs is held. Nothing of the unit is
    /// stored or reserved then.
    pub fn decide_unit<'a>(&mut self, unit: &'a SubmitUnit) -> Result<AcceptedUnit<'a>, StoreError> {
        if let Some(owner) = self.owner_of_all(unit) {
            let submitted = vec![Submitted::Existing(owner); unit.jobs.len()];
            return Ok(AcceptedUnit { submitted, jobs: Vec::new(), edges: &[], batch: None });
        }
        let mut accepted = Vec::new();
        let mut submitted = Vec::with_capacity(unit.jobs.len());
        for job in &unit.jobs {
            match self.decide(job) {
                Ok((answer, is_new)) => {
                    submitted.push(answer);
                    accepted.extend(is_new.then_some(job));
                }
                Err(refused) => {
                    for job in accepted {
                        self.give_back(job);
                    }
                    return Err(refused);
                }
            }
        }
        let is_new = |batch: &&NewBatch| accepted.iter().any(|job| job.id == batch.id);
        let batch = unit.batch.as_ref().filter(is_new);
        let edges = if accepted.is_empty() { &[][..] } else { &unit.edges[..] };
        Ok(AcceptedUnit { submitted, jobs: accepted, edges, batch })
    }

    /// Decides about jobs that follow from something else: those that are stored already are left out.
    ///
    /// # Errors
    /// [`Duplicate`](crate::ErrorKind::Duplicate) if the business key of one of them is held.
    pub fn decide_following<'a>(
        &mut self,
        jobs: impl IntoIterator<Item = &'a NewJob>,
    ) -> Result<Vec<&'a NewJob>, StoreError> {
        let mut accepted = Vec::new();
        for job in jobs {
            let (_, is_new) = self.decide(job)?;
            accepted.extend(is_new.then_some(job));
        }
        Ok(accepted)
    }

    /// The earlier job that counts for the whole unit, if one does.
    ///
    /// The key of any job of a workflow counts for all, and so does the key of a batch's parent job. A unit of which such a job is
    /// stored was submitted again: then no key counts.
    fn owner_of_all(&self, unit: &SubmitUnit) -> Option<JobId> {
        let counts = |job: &&NewJob| unit.is_one_thing() || unit.batch.as_ref().is_some_and(|batch| batch.id == job.id);
        let mut counting = unit.jobs.iter().filter(counts);
        let is_stored = counting.clone().any(|job| self.ids.contains(&job.id));
        if is_stored { None } else { counting.find_map(|job| self.owner(job)) }
    }

    /// The answer about one job, and whether it is to be stored.
    fn decide(&mut self, job: &NewJob) -> Result<(Submitted, bool), StoreError> {
        if self.ids.contains(&job.id) {
            // Submitted again after a lost reply.
            return Ok((Submitted::Created(job.id), false));
        }
        if let Some(owner) = self.owner(job) {
            return Ok((Submitted::Existing(owner), false));
        }
        if let Some(key) = &job.business_key
            && let Some(holder) = self.business.get(key.as_str())
        {
            return Err(StoreError::duplicate(DOING, key.clone(), *holder));
        }
        self.take(job);
        Ok((Submitted::Created(job.id), true))
    }

    /// The job that was first submitted with this job's idempotency key.
    fn owner(&self, job: &NewJob) -> Option<JobId> {
        job.idempotency_key.as_ref().and_then(|key| self.idempotency.get(key.as_str()).copied())
    }

    fn take(&mut self, job: &NewJob) {
        self.add_id(job.id);
        if let Some(key) = &job.idempotency_key {
            self.add_idempotency_key(key.as_str(), job.id);
        }
        if let Some(key) = &job.business_key {
            self.add_business_key(key.as_str(), job.id);
        }
    }

    fn give_back(&mut self, job: &NewJob) {
        self.ids.remove(&job.id);
        if let Some(key) = &job.idempotency_key {
            self.idempotency.remove(key.as_str());
        }
        if let Some(key) = &job.business_key {
            self.business.remove(key.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::flow::Condition;
    use crate::json::JsonText;
    use crate::name::{BusinessKey, IdempotencyKey, Kind};
    use crate::spec::JobSpec;

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn job(number: u128) -> NewJob {
        NewJob::new(id(number), JobSpec::new(Kind::new("test").unwrap(), JsonText::null()))
    }

    fn once(number: u128, key: &str) -> NewJob {
        NewJob { idempotency_key: Some(IdempotencyKey::new(key).unwrap()), ..job(number) }
    }

    fn holding(number: u128, key: &str) -> NewJob {
        NewJob { business_key: Some(BusinessKey::new(key).unwrap()), ..job(number) }
    }

    /// Job 7 is stored; it was submitted with the key `once` and holds the key `held`.
    fn taken() -> KeyReservations {
        let mut taken = KeyReservations::default();
        taken.add_id(id(7));
        taken.add_idempotency_key("once", id(7));
        taken.add_business_key("held", id(7));
        taken
    }

    /// What the caller is told and which jobs are stored, in one text: `+` for created, `=` for existing.
    fn summary(decided: &Result<AcceptedUnit<'_>, StoreError>) -> String {
        let number = |id: JobId| id.0.as_u128().to_string();
        match decided {
            Ok(accepted) => {
                let submitted = accepted.submitted.iter().map(|one| match one {
                    Submitted::Created(id) => format!("+{}", number(*id)),
                    Submitted::Existing(id) => format!("={}", number(*id)),
                });
                let stored: Vec<String> = accepted.jobs.iter().map(|job| number(job.id)).collect();
                format!("{}; stores {}", submitted.collect::<Vec<_>>().join(" "), stored.join(" "))
            }
            Err(refused) => refused.to_string(),
        }
    }

    #[test]
    fn jobs_of_a_unit_are_stored_by_what_is_taken() {
        let check = |jobs: Vec<NewJob>, expected: &str| {
            let unit = SubmitUnit::of(jobs);
            assert_eq!(summary(&taken().decide_unit(&unit)), expected);
        };
        check(vec![], "; stores ");
        check(vec![job(1), job(2)], "+1 +2; stores 1 2");
        check(vec![job(7)], "+7; stores ");
        check(vec![once(1, "once"), job(2)], "=7 +2; stores 2");
        check(vec![once(1, "new"), once(2, "new")], "+1 =1; stores 1");
        check(vec![holding(7, "held")], "+7; stores ");
        let text = "submitting jobs: the business key BusinessKey(\"held\") is held by job \
                    00000000-0000-0000-0000-000000000007; wait for it, cancel it or replace it";
        let text = text.replace("BusinessKey(\"held\")", &format!("{:?}", BusinessKey::new("held").unwrap()));
        check(vec![job(1), holding(2, "held")], &text);
    }

    #[test]
    fn a_refused_unit_reserves_nothing_and_an_accepted_one_does() {
        let mut taken = taken();
        let refused = [job(1), once(2, "a"), holding(3, "b"), holding(4, "held")];
        assert!(taken.decide_unit(&SubmitUnit::of(refused.to_vec())).is_err());
        let free = SubmitUnit::of(vec![job(1), once(5, "a"), holding(6, "b")]);
        assert_eq!(summary(&taken.decide_unit(&free)), "+1 +5 +6; stores 1 5 6");
        assert!(taken.decide_unit(&SubmitUnit::of(vec![holding(8, "b")])).is_err());
    }

    #[test]
    fn one_job_counts_for_all_of_a_workflow_and_a_parent_job_for_its_batch() {
        let edge = Edge::new(id(1), id(1), id(2), Condition::Success);
        let workflow = |jobs| SubmitUnit { jobs, edges: vec![edge.clone()], batch: None };
        let batch = NewBatch { id: id(1), sealed: true, hook: None };
        let batch = |jobs| SubmitUnit { jobs, edges: Vec::new(), batch: Some(batch.clone()) };
        let check = |unit: &SubmitUnit, expected: &str, edges, batches| {
            let decided = taken().decide_unit(unit);
            assert_eq!(summary(&decided), expected);
            let accepted = decided.unwrap();
            assert_eq!((accepted.edges.len(), accepted.batch.is_some()), (edges, batches), "{expected}");
        };
        check(&workflow(vec![job(1), job(2)]), "+1 +2; stores 1 2", 1, false);
        check(&workflow(vec![job(1), once(2, "once")]), "=7 =7; stores ", 0, false);
        check(&workflow(vec![job(7)]), "+7; stores ", 0, false);
        check(&workflow(vec![job(7), once(2, "once")]), "+7 =7; stores ", 0, false);
        check(&batch(vec![job(1), once(2, "once")]), "+1 =7; stores 1", 0, true);
        check(&batch(vec![once(1, "once"), job(2)]), "=7 =7; stores ", 0, false);
    }

    #[test]
    fn what_follows_is_stored_once() {
        let jobs = [job(1), job(7), once(2, "once"), job(1)];
        let stored: Vec<JobId> = taken().decide_following(&jobs).unwrap().iter().map(|job| job.id).collect();
        assert_eq!(stored, [id(1)]);
        assert!(taken().decide_following(&[holding(1, "held")]).is_err());
    }
}
