use ratchet_core::error::ErrorKind;
use ratchet_core::flow::Condition;
use ratchet_core::page::JobFilter;
use ratchet_core::record::JobRecord;
use ratchet_core::store::{StoreDecorator, SubmitOutcome, SubmitUnit, Submitted};
use ratchet_core::{
    BusinessKey, Due, IdempotencyKey, JobFlags, JobId, JobSpec, JobState, JsonText, NewJob, Principal, StartState,
    Store, StoreError, Tag,
};

use super::{Broken, Flaw, Layer, mangled};

#[derive(Debug)]
pub(super) enum Jobs {}

impl StoreDecorator for Layer<Jobs> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let mut units: Vec<SubmitUnit> = units.to_vec();
        if self.has(Flaw::RefusesNothing) && units.iter().all(|unit| unit.jobs.is_empty()) {
            return Err(StoreError::new(ErrorKind::Invalid, "submit jobs", "there are none"));
        }
        for job in units.iter_mut().flat_map(|unit| &mut unit.jobs) {
            self.spoil(job).await;
        }
        for unit in &mut units {
            self.spoil_edges(unit);
            self.spoil_batch(unit);
        }
        match self.flaw {
            Flaw::SplitsUnits => self.submit_split(&units).await,
            Flaw::StopsAtRefusal => self.submit_until_refusal(&units).await,
            Flaw::KeepsBusinessKeys => self.submit_with_kept_keys(units).await,
            Flaw::ExistingTakesKey => self.submit_checking_keys_first(units).await,
            Flaw::RefusesResubmit => self.submit_new_only(units).await,
            Flaw::StopsAtFiveHundred => {
                let outcomes =
                    units.iter().map(|unit| Ok(unit.jobs.iter().map(|j| Submitted::Created(j.id)).collect()));
                let outcomes: Vec<SubmitOutcome> = outcomes.collect();
                self.good.submit(&units[..units.len().min(500)]).await?;
                Ok(outcomes)
            }
            _ => {
                let outcomes = self.good.submit(&units).await?;
                if self.has(Flaw::TouchesTwice) {
                    for job in units.iter().flat_map(|unit| &unit.jobs) {
                        self.good.pause(job.id).await?;
                        self.good.resume(job.id).await?;
                    }
                }
                self.give_kept_again(&units).await?;
                Ok(outcomes)
            }
        }
    }

    async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
        let mut ids = ids.to_vec();
        match self.flaw {
            Flaw::FindsInItsOwnOrder => ids.sort(),
            Flaw::StopsAtFiveHundred => ids.truncate(500),
            _ => {}
        }
        let mut found = self.good.find(&ids).await?;
        if self.has(Flaw::FindsNeighbors) && found.len() < ids.len() {
            found = self.good.list(&JobFilter::default(), None, 2).await?.items;
        }
        Ok(found.into_iter().map(|job| self.shown(job)).collect())
    }

    async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError> {
        match self.flaw {
            Flaw::KeepsBusinessKeys => Ok(self.seen().keys.get(key).copied()),
            Flaw::MixesKeys => Ok(self.seen().keys.values().last().copied()),
            Flaw::FoldsKeys => self.good.find_by_business_key(&BusinessKey::new(folded(key.as_str())).unwrap()).await,
            _ => self.good.find_by_business_key(key).await,
        }
    }

    async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError> {
        match self.flaw {
            Flaw::IdempotencyDiesWithJob => {
                let first = self.seen().once.get(key).copied();
                Ok(match first {
                    Some(id) if self.is_archived(id).await => None,
                    first => first,
                })
            }
            Flaw::FoldsKeys => {
                self.good.find_by_idempotency_key(&IdempotencyKey::new(folded(key.as_str())).unwrap()).await
            }
            _ => self.good.find_by_idempotency_key(key).await,
        }
    }

    async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        match self.flaw {
            Flaw::DeletesNothing => return Ok(true),
            Flaw::DeletesAnything => drop(self.good.cancel(id).await?),
            Flaw::DeletesAllHistory => self.seen().deleted = true,
            Flaw::IdempotencyDiesWithJob => self.seen().once.retain(|_, job| *job != id),
            _ => {}
        }
        self.good.delete(id).await
    }
}

impl Broken {
    /// Changes a job on its way in, and remembers it.
    pub(super) async fn spoil(&self, job: &mut NewJob) {
        let known = self.inner_job(job.id).await.is_some();
        {
            let mut seen = self.seen();
            seen.jobs.push(job.id);
            seen.kinds.insert(job.spec.kind.clone());
            seen.queues.insert(job.spec.queue.clone());
            seen.awaited.extend(job.signal.as_ref().map(|wait| wait.key.clone()));
            if let (Some(key), Flaw::MixesKeys) = (&job.business_key, self.flaw) {
                seen.keys.insert(key.clone(), job.id);
            }
        }
        match self.flaw {
            Flaw::LosesSpec => {
                job.spec = JobSpec { queue: job.spec.queue.clone(), ..bare(&job.spec) };
                job.on_success = None;
                job.origin = None;
            }
            Flaw::LosesLoneOptions if job.spec.timeout.is_none() => job.spec.resource = None,
            Flaw::MangledText => mangle(job),
            Flaw::LosesLargeText => {
                if job.spec.payload.as_str().len() > 10_000 {
                    job.spec.payload = JsonText::null();
                }
                job.spec.params.retain(|_, value| value.len() < 1_000);
                job.spec.tags.retain(|tag| tag.as_str().len() < 200);
            }
            Flaw::RoundsNumbers => job.spec.payload = rounded(&job.spec.payload),
            Flaw::FoldsKeys => {
                job.business_key = job.business_key.take().map(|key| BusinessKey::new(folded(key.as_str())).unwrap());
                job.idempotency_key =
                    job.idempotency_key.take().map(|key| IdempotencyKey::new(folded(key.as_str())).unwrap());
            }
            Flaw::LosesDelay => job.due = Due::NOW,
            Flaw::ClampsTime => {
                if matches!(job.due, Due::At(_)) {
                    job.due = Due::NOW;
                }
            }
            Flaw::LosesWaits => job.signal = None,
            Flaw::ExpiresEarly => {
                if let Some(wait) = &mut job.signal {
                    wait.timeout = wait.timeout.map(|_| std::time::Duration::from_nanos(1));
                }
            }
            Flaw::IgnoresStart => job.start = StartState::Ready,
            Flaw::ForgetsBusinessKeys => job.business_key = None,
            Flaw::InventsKeys => {
                job.business_key.get_or_insert_with(|| BusinessKey::new("none").unwrap());
            }
            Flaw::ForgetsIdempotency => job.idempotency_key = None,
            Flaw::IdempotencyDiesWithJob => {
                let key = job.idempotency_key.take();
                let first = key.and_then(|key| {
                    let mut seen = self.seen();
                    let first = *seen.once.entry(key).or_insert(job.id);
                    (first != job.id).then_some(first)
                });
                job.id = first.unwrap_or(job.id);
            }
            Flaw::ResubmitsAfresh if known => {
                let _ = self.good.cancel(job.id).await;
                let _ = self.good.delete(job.id).await;
            }
            _ => {}
        }
    }

    /// Spoils what ties the jobs of a unit together.
    pub(super) fn spoil_edges(&self, unit: &mut SubmitUnit) {
        match self.flaw {
            Flaw::LosesEdges => unit.edges.clear(),
            Flaw::LosesEdgeOptions => {
                for edge in &mut unit.edges {
                    (edge.priority, edge.order, edge.exclusive, edge.description) = (0, 0, false, None);
                }
            }
            Flaw::IgnoresConditions => {
                for edge in &mut unit.edges {
                    edge.condition = Condition::Ended;
                }
            }
            Flaw::CountsOneParent => {
                for job in &mut unit.jobs {
                    job.waits_for = job.waits_for.min(1);
                }
            }
            Flaw::JoinsAny => {
                for job in &mut unit.jobs {
                    job.flow = job.flow.with(JobFlags::JOIN_ANY);
                }
            }
            Flaw::JoinsAll => {
                for job in &mut unit.jobs {
                    job.flow = job.flow.without(JobFlags::JOIN_ANY);
                }
            }
            _ => {}
        }
    }

    async fn submit_split(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let mut outcomes = Vec::new();
        for unit in units {
            let mut answers = Ok(Vec::new());
            for job in &unit.jobs {
                let one = SubmitUnit::of(vec![job.clone()]);
                match (self.good.submit(&[one]).await?.remove(0), &mut answers) {
                    (Ok(one), Ok(all)) => all.extend(one),
                    (Err(refused), Ok(_)) => answers = Err(refused),
                    (_, Err(_)) => {}
                }
            }
            outcomes.push(answers);
        }
        Ok(outcomes)
    }

    async fn submit_until_refusal(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let mut outcomes: Vec<SubmitOutcome> = Vec::new();
        for unit in units {
            let refused = outcomes.iter().any(Result::is_err);
            outcomes.push(if refused {
                Err(StoreError::new(ErrorKind::Transient, "submit jobs", "a neighbor was refused"))
            } else {
                self.good.submit(std::slice::from_ref(unit)).await?.remove(0)
            });
        }
        Ok(outcomes)
    }

    async fn submit_with_kept_keys(&self, units: Vec<SubmitUnit>) -> Result<Vec<SubmitOutcome>, StoreError> {
        for job in units.iter().flat_map(|unit| &unit.jobs) {
            if let Some(key) = &job.business_key {
                let holder = *self.seen().keys.entry(key.clone()).or_insert(job.id);
                if holder != job.id {
                    return Ok(vec![Err(StoreError::duplicate("submit a job", key.clone(), holder))]);
                }
            }
        }
        self.good.submit(&units).await
    }

    /// Refuses a job for its business key though another stands for it.
    async fn submit_checking_keys_first(&self, units: Vec<SubmitUnit>) -> Result<Vec<SubmitOutcome>, StoreError> {
        for job in units.iter().flat_map(|unit| &unit.jobs) {
            if let Some(key) = &job.business_key
                && let Some(holder) = self.good.find_by_business_key(key).await?
                && holder != job.id
            {
                return Ok(vec![Err(StoreError::duplicate("submit a job", key.clone(), holder))]);
            }
        }
        self.good.submit(&units).await
    }

    async fn submit_new_only(&self, units: Vec<SubmitUnit>) -> Result<Vec<SubmitOutcome>, StoreError> {
        for job in units.iter().flat_map(|unit| &unit.jobs) {
            if self.inner_job(job.id).await.is_some() {
                return Ok(vec![Err(StoreError::new(ErrorKind::Conflict, "submit a job", "its id is taken"))]);
            }
        }
        self.good.submit(&units).await
    }

    /// A live job that the flaw lets be claimed though it is paused.
    pub(super) async fn resume_all(&self) -> Result<(), StoreError> {
        let filter = JobFilter { states: vec![JobState::Paused], ..JobFilter::default() };
        for job in self.good.list(&filter, None, 1_000).await?.items {
            self.good.resume(job.id).await?;
        }
        Ok(())
    }
}

fn bare(spec: &JobSpec) -> JobSpec {
    JobSpec { priority: spec.priority, ..JobSpec::new(spec.kind.clone(), spec.payload.clone()) }
}

fn folded(key: &str) -> String {
    key.trim().to_lowercase()
}

fn mangle(job: &mut NewJob) {
    let spec = &mut job.spec;
    spec.params = spec.params.iter().map(|(key, value)| (mangled(key), mangled(value))).collect();
    spec.tags = spec.tags.iter().map(|tag| Tag::new(mangled(tag.as_str())).unwrap()).collect();
    spec.principal = spec.principal.take().map(|principal| Principal::new(mangled(principal.as_str())).unwrap());
    spec.payload = JsonText::from_store(mangled(spec.payload.as_str()));
}

/// The same JSON with every integer as a floating point number.
pub(super) fn rounded(text: &JsonText) -> JsonText {
    fn round(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Number(number) => *value = number.as_f64().unwrap_or(0.0).into(),
            serde_json::Value::Array(items) => items.iter_mut().for_each(round),
            serde_json::Value::Object(fields) => fields.values_mut().for_each(round),
            _ => {}
        }
    }
    let mut value = text.decode().unwrap();
    round(&mut value);
    JsonText::encode("value", &value, usize::MAX).unwrap()
}
