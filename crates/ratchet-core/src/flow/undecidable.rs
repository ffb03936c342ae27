use super::{Edge, EdgeState, JobFlags, Join};
use crate::record::JobRecord;

/// Why a failed job must not be retried: it never ran, because whether it is to run could not be told from a job before it.
///
/// The result of a job that has succeeded does not change, so a retry could only fail the same way, or run the job unjudged.
/// `before` are the edges that lead to it, each with its parent, as far as that is still there.
pub fn undecidable<'a>(
    job: &JobRecord,
    before: impl IntoIterator<Item = (&'a Edge, Option<&'a JobRecord>)>,
) -> Option<String> {
    if !may_be_undecidable(job) {
        return None;
    }
    let (edge, _) = before.into_iter().find(|(edge, parent)| is_undecidable(job, edge, *parent))?;
    let (id, parent, condition) = (job.id, edge.parent, &edge.condition);
    Some(format!(
        "job {id} never ran: whether to run could not be told from job {parent} ({condition}), whose result does not \
         change; submit what it was to do anew"
    ))
}

/// Whether [`undecidable`] has to be asked at all: it costs a look at the edges.
pub fn may_be_undecidable(job: &JobRecord) -> bool {
    job.flow.has(JobFlags::INPUTS) && job.attempts == 0 && job.crash_count == 0
}

fn is_undecidable(job: &JobRecord, edge: &Edge, parent: Option<&JobRecord>) -> bool {
    if edge.state != EdgeState::NotHeld || edge.condition.test().is_none() {
        return false;
    }
    match parent {
        Some(parent) => edge.condition.holds(parent.state, parent.result.as_ref()).is_err(),
        // One that said no would have canceled it.
        None => job.flow.join() == Join::All,
    }
}
