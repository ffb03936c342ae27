use ratchet_core::batch::BATCH_KIND;
use ratchet_core::{BatchSummary, InvalidInput, JobSpec, JsonText, QueueName};
use serde::{Deserialize, Serialize};

use crate::job::failure::Failure;
use crate::job::{Job, JobDefaults, spec_of};
use crate::pump::slots::INTERNAL_QUEUE;
use crate::run::context::JobContext;

/// The step that stands for a batch: it runs when the last child has ended, and its result is the summary.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BatchEnd;

impl BatchEnd {
    pub(crate) fn spec() -> Result<JobSpec, InvalidInput> {
        let mut spec = spec_of(&Self)?;
        spec.queue = QueueName::new(INTERNAL_QUEUE)?;
        Ok(spec)
    }
}

impl Job for BatchEnd {
    const KIND: &'static str = BATCH_KIND;
    type Output = BatchSummary;

    fn defaults() -> JobDefaults {
        // It fails only if the database does.
        JobDefaults::default().max_retries(100)
    }

    async fn run(self, ctx: JobContext) -> Result<BatchSummary, Failure> {
        let found = ctx.client().store().find_batches(&[ctx.id()]).await.map_err(Failure::new)?;
        match found.first() {
            Some(batch) => Ok(batch.summary()),
            None => Err(Failure::do_not_retry("there is no batch that this job stands for", "nothing will come")),
        }
    }
}

/// What a batch came to, by the result of the job that stands for it.
pub(crate) fn summary_of(result: Option<&JsonText>) -> Option<BatchSummary> {
    result.and_then(|result| result.decode().ok())
}
