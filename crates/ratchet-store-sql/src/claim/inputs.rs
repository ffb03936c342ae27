//! What came of the jobs that others waited for.

use std::collections::HashMap;

use ratchet_core::flow::EdgeState;
use ratchet_core::{Claim, Input, JobFlags, JobId, JobState, JsonText, Kind, StepName, StoreError};

use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;

pub(crate) const STATEMENTS: &[Stmt] = &[READ_INPUTS];

// A job that was retried long after those before it had ended finds them in the archive.
const READ_INPUTS: Stmt = Stmt::shared(
    "reading what came of the jobs before",
    "SELECT e.child_job_id AS child_job_id, e.definition_order AS definition_order, e.status AS edge, \
     e.parent_job_id AS job_id, COALESCE(j.kind, a.kind) AS kind, COALESCE(j.step_name, a.step_name) AS step_name, \
     COALESCE(j.terminal_status, a.terminal_status) AS terminal_status, \
     COALESCE(j.job_result, a.job_result) AS job_result, \
     COALESCE(j.terminal_error, a.terminal_error) AS terminal_error \
     FROM scheduler_workflow_condition e LEFT JOIN scheduler_job j ON j.job_id = e.parent_job_id \
     LEFT JOIN scheduler_job_archive a ON a.job_id = e.parent_job_id \
     WHERE (j.job_id IS NOT NULL OR a.job_id IS NOT NULL) AND e.child_job_id /*any*/",
);

/// Adds to claims what came of the jobs that they waited for; one read for all, and none if none waited.
pub(crate) async fn add_inputs(conn: &mut dyn Conn, claims: &mut [Claim]) -> Result<(), StoreError> {
    let waited: Vec<JobId> =
        claims.iter().filter(|claim| claim.job.flow.has(JobFlags::INPUTS)).map(|claim| claim.job.id).collect();
    if waited.is_empty() {
        return Ok(());
    }
    let mut found: HashMap<JobId, Vec<(u32, Input)>> = HashMap::new();
    for row in conn.rows_in(&READ_INPUTS, &[], &waited).await? {
        let mut fields = row.fields();
        let child = fields.job_id("child_job_id")?;
        let order: u32 = fields.number("definition_order")?;
        let held = fields.text("edge")? == EdgeState::Held.as_str();
        let job_id = fields.job_id("job_id")?;
        let kind = fields.parsed("kind", Kind::new)?;
        let step = fields.opt_parsed("step_name", StepName::new)?;
        let state = fields.opt_state("terminal_status")?;
        let result = fields.opt_text("job_result")?.map(JsonText::from_store);
        let error = fields.opt_text("terminal_error")?.map(str::to_owned);
        // A parent that was retried since is live again; what it came to then is gone.
        let (true, Some(state)) = (held, state) else { continue };
        let error = error.filter(|_| state == JobState::Failed);
        let input = Input { job_id, kind, step, state, result, error };
        found.entry(child).or_default().push((order, input));
    }
    for claim in claims {
        let mut inputs = found.remove(&claim.job.id).unwrap_or_default();
        inputs.sort_by_key(|(order, input)| (*order, input.job_id));
        claim.inputs = inputs.into_iter().map(|(_, input)| input).collect();
    }
    Ok(())
}
