//! What is already there when jobs are submitted: ids, idempotency keys and business keys.

use std::collections::HashSet;

use ratchet_core::submit::KeyReservations;
use ratchet_core::{JobId, NewJob, StoreError};

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

/// Reads which ids and keys of these jobs are taken; `latest` if this transaction may not see it otherwise, because it began
/// before.
pub(crate) async fn read(conn: &mut dyn Conn, jobs: &[&NewJob], latest: bool) -> Result<KeyReservations, StoreError> {
    let [stored_ids, idempotency_owners, business_key_holders] = if latest {
        [LATEST_IDS, LATEST_IDEMPOTENCY_OWNERS, LATEST_BUSINESS_KEY_HOLDERS]
    } else {
        [STORED_IDS, IDEMPOTENCY_OWNERS, BUSINESS_KEY_HOLDERS]
    };
    let mut taken = KeyReservations::default();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    for row in conn.rows_in(&stored_ids, &[], &ids).await? {
        taken.add_id(row.fields().job_id("job_id")?);
    }
    let keys: Vec<&str> = jobs.iter().filter_map(|job| job.idempotency_key.as_ref()).map(AsRef::as_ref).collect();
    for row in conn.rows_in(&idempotency_owners, &[], &keys).await? {
        let mut fields = row.fields();
        taken.add_idempotency_key(fields.text("idempotency_key")?, fields.job_id("original_job_id")?);
    }
    let keys: Vec<&str> = jobs.iter().filter_map(|job| job.business_key.as_ref()).map(AsRef::as_ref).collect();
    for row in conn.rows_in(&business_key_holders, &[], &keys).await? {
        let mut fields = row.fields();
        taken.add_business_key(fields.text("business_key")?, fields.job_id("owner_job_id")?);
    }
    Ok(taken)
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
