//! What is already there when jobs are submitted: ids, idempotency keys and business keys, and what follows from that.

use std::collections::{HashMap, HashSet};

use ratchet_core::store::{SubmitOutcome, SubmitUnit, Submitted};
use ratchet_core::{BusinessKey, JobId, NewJob, StoreError};

use crate::submit::DOING;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;

pub(crate) const STATEMENTS: &[Stmt] = &[
    STORED_IDS,
    IDEMPOTENCY_OWNERS,
    BUSINESS_KEY_HOLDERS,
    LATEST_IDS,
    LATEST_IDEMPOTENCY_OWNERS,
    LATEST_BUSINESS_KEY_HOLDERS,
];

/// Ids and keys that are taken, by what is stored and by the units decided so far.
#[derive(Default)]
pub(crate) struct Taken {
    ids: HashSet<JobId>,
    idempotency: HashMap<String, JobId>,
    business: HashMap<String, JobId>,
}

impl Taken {
    /// Reads what is taken; `latest` if this transaction may not see it otherwise, because it began before.
    pub(crate) async fn read(conn: &mut dyn Conn, jobs: &[&NewJob], latest: bool) -> Result<Self, StoreError> {
        let [stored_ids, idempotency_owners, business_key_holders] = if latest {
            [LATEST_IDS, LATEST_IDEMPOTENCY_OWNERS, LATEST_BUSINESS_KEY_HOLDERS]
        } else {
            [STORED_IDS, IDEMPOTENCY_OWNERS, BUSINESS_KEY_HOLDERS]
        };
        let mut taken = Self::default();
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        for row in conn.rows_in(&stored_ids, &[], &ids).await? {
            taken.ids.insert(row.fields().job_id("job_id")?);
        }
        let keys: Vec<&str> = jobs.iter().filter_map(|job| job.idempotency_key.as_ref()).map(AsRef::as_ref).collect();
        for row in conn.rows_in(&idempotency_owners, &[], &keys).await? {
            let mut fields = row.fields();
            taken.idempotency.insert(fields.text("idempotency_key")?.to_owned(), fields.job_id("original_job_id")?);
        }
        let keys: Vec<&str> = jobs.iter().filter_map(|job| job.business_key.as_ref()).map(AsRef::as_ref).collect();
        for row in conn.rows_in(&business_key_holders, &[], &keys).await? {
            let mut fields = row.fields();
            taken.business.insert(fields.text("business_key")?.to_owned(), fields.job_id("owner_job_id")?);
        }
        Ok(taken)
    }

    /// Decides about one unit; one whose jobs belong together is a whole.
    pub(crate) fn decide_unit<'a>(&mut self, unit: &'a SubmitUnit, accepted: &mut Vec<&'a NewJob>) -> SubmitOutcome {
        if let Some(owner) = unit.stand_in(|job| self.ids.contains(&job.id), |job| self.owner(job)) {
            return Ok(vec![Submitted::Existing(owner); unit.jobs.len()]);
        }
        self.decide(unit.jobs.iter(), accepted)
    }

    /// Decides about the jobs of one unit; new ones are added to `accepted`, unless the unit is refused.
    pub(crate) fn decide<'a>(
        &mut self,
        unit: impl Iterator<Item = &'a NewJob>,
        accepted: &mut Vec<&'a NewJob>,
    ) -> SubmitOutcome {
        let accepted_before = accepted.len();
        let mut submitted = Vec::with_capacity(unit.size_hint().0);
        for job in unit {
            if self.ids.contains(&job.id) {
                // Submitted again after a lost reply.
                submitted.push(Submitted::Created(job.id));
            } else if let Some(owner) = self.owner(job) {
                submitted.push(Submitted::Existing(owner));
            } else if let Some((key, holder)) = self.holder(job) {
                let refused = StoreError::duplicate(DOING, key.clone(), holder);
                accepted.drain(accepted_before..).for_each(|job| self.give_back(job));
                return Err(refused);
            } else {
                self.take(job);
                accepted.push(job);
                submitted.push(Submitted::Created(job.id));
            }
        }
        Ok(submitted)
    }

    /// The job that was first submitted with this job's idempotency key.
    fn owner(&self, job: &NewJob) -> Option<JobId> {
        job.idempotency_key.as_ref().and_then(|key| self.idempotency.get(key.as_str()).copied())
    }

    fn holder<'a>(&self, job: &'a NewJob) -> Option<(&'a BusinessKey, JobId)> {
        let key = job.business_key.as_ref()?;
        Some((key, *self.business.get(key.as_str())?))
    }

    fn take(&mut self, job: &NewJob) {
        self.ids.insert(job.id);
        if let Some(key) = &job.idempotency_key {
            self.idempotency.insert(key.as_str().to_owned(), job.id);
        }
        if let Some(key) = &job.business_key {
            self.business.insert(key.as_str().to_owned(), job.id);
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

/// Which of these jobs are stored, live or not.
pub(crate) async fn stored(conn: &mut dyn Conn, ids: &[JobId]) -> Result<HashSet<JobId>, StoreError> {
    conn.rows_in(&STORED_IDS, &[], ids).await?.iter().map(|row| row.fields().job_id("job_id")).collect()
}

const STORED_IDS: Stmt =
    Stmt::shared("looking for jobs that are already stored", "SELECT job_id FROM scheduler_job WHERE job_id /*any*/");

const IDEMPOTENCY_OWNERS: Stmt = Stmt::shared(
    "looking for idempotency keys that are taken",
    "SELECT idempotency_key, original_job_id FROM scheduler_idempotency_key WHERE idempotency_key /*any*/",
);

const BUSINESS_KEY_HOLDERS: Stmt = Stmt::shared(
    "looking for business keys that are held",
    "SELECT business_key, owner_job_id FROM scheduler_business_key_reservation WHERE business_key /*any*/",
);

// A caller's transaction on MySQL may be REPEATABLE READ, where only a locking read sees what was committed since. Not at
// the first look: of keys that nobody has it would lock the gaps.
const LATEST_IDS: Stmt = Stmt::shared(
    "looking again for jobs that are already stored",
    "SELECT job_id FROM scheduler_job WHERE job_id /*any*/",
)
.mysql("SELECT job_id FROM scheduler_job WHERE job_id /*any*/ LOCK IN SHARE MODE");

const LATEST_IDEMPOTENCY_OWNERS: Stmt = Stmt::shared(
    "looking again for idempotency keys that are taken",
    "SELECT idempotency_key, original_job_id FROM scheduler_idempotency_key WHERE idempotency_key /*any*/",
)
.mysql(
    "SELECT idempotency_key, original_job_id FROM scheduler_idempotency_key WHERE idempotency_key /*any*/ \
     LOCK IN SHARE MODE",
);

const LATEST_BUSINESS_KEY_HOLDERS: Stmt = Stmt::shared(
    "looking again for business keys that are held",
    "SELECT business_key, owner_job_id FROM scheduler_business_key_reservation WHERE business_key /*any*/",
)
.mysql(
    "SELECT business_key, owner_job_id FROM scheduler_business_key_reservation WHERE business_key /*any*/ \
     LOCK IN SHARE MODE",
);
