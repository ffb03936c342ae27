//! Failed jobs that nobody can tell whether they are to run.

use std::collections::{BTreeSet, HashMap};

use ratchet_core::flow::{may_be_undecidable, undecidable as why_untold};
use ratchet_core::{JobId, JobRecord, StoreError};

use crate::archive::archived;
use crate::flow::edges;
use crate::waist::conn::Conn;

/// Which of these failed jobs must not be retried because their condition could not be told, and why.
///
/// Two reads for all, and none for jobs that have run.
pub(crate) async fn undecidable<'a>(
    conn: &mut dyn Conn,
    jobs: impl IntoIterator<Item = &'a JobRecord>,
) -> Result<HashMap<JobId, String>, StoreError> {
    let jobs: Vec<&JobRecord> = jobs.into_iter().filter(|job| may_be_undecidable(job)).collect();
    if jobs.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let edges = edges::to(conn, &ids).await?;
    let tested = edges.iter().filter(|edge| edge.condition.test().is_some());
    let parents: BTreeSet<JobId> = tested.map(|edge| edge.parent).collect();
    let parents: Vec<JobId> = parents.into_iter().collect();
    let parents: HashMap<JobId, JobRecord> =
        archived::find(conn, &parents).await?.into_iter().map(|job| (job.id, job)).collect();
    let why = |job: &&JobRecord| {
        let before = edges.iter().filter(|edge| edge.child == job.id);
        why_untold(job, before.map(|edge| (edge, parents.get(&edge.parent)))).map(|why| (job.id, why))
    };
    Ok(jobs.iter().filter_map(why).collect())
}
