//! What a codec wrote for a job, decoded before its handler sees it.

use ratchet_core::{Input, JobRecord, JsonText, Origin, Signal};

use crate::client::Client;
use crate::job::failure::Failure;
use crate::protect::codec::CodecError;
use crate::workflow::open_result;

/// The parts of a claimed job that a codec may have written, as JSON.
#[derive(Debug)]
pub(crate) struct DecodedInputs {
    pub(crate) payload: JsonText,
    pub(crate) inputs: Vec<Input>,
    pub(crate) origin: Option<Origin>,
    pub(crate) signal: Option<Signal>,
}

impl DecodedInputs {
    /// Decodes them all.
    ///
    /// # Errors
    /// The first that cannot be decoded: not to be retried, because what is stored will not change.
    pub(crate) fn of(
        client: &Client,
        job: &JobRecord,
        inputs: &[Input],
        signal: Option<&Signal>,
    ) -> Result<Self, Failure> {
        let payload = client.decoded(&job.spec.payload).map_err(|error| {
            undecodable(&format!("the arguments of this job of kind {:?}", job.spec.kind.as_str()), &error)
        })?;
        let opened = |input: &Input| -> Result<Input, Failure> {
            let result = open_result(client, input).map_err(|error| {
                undecodable(&format!("the result of job {} ({}) before this one", input.job_id, input.kind), &error)
            })?;
            Ok(Input { result, ..input.clone() })
        };
        let inputs = inputs.iter().map(opened).collect::<Result<_, _>>()?;
        let opened = |origin: &Origin| -> Result<Origin, Failure> {
            let result = origin.result.as_ref().map(|result| client.decoded(result)).transpose();
            let result = result.map_err(|error| {
                undecodable(&format!("the result of job {} that this follows", origin.job_id), &error)
            })?;
            Ok(Origin { result, ..origin.clone() })
        };
        let origin = job.origin.as_ref().map(opened).transpose()?;
        let opened = |signal: &Signal| -> Result<Signal, Failure> {
            let payload = client.decoded(&signal.payload);
            let payload = payload.map_err(|error| undecodable("what the signal of this job says", &error))?;
            Ok(Signal { payload, ..signal.clone() })
        };
        let signal = signal.map(opened).transpose()?;
        Ok(Self { payload, inputs, origin, signal })
    }
}

fn undecodable(what: &str, error: &CodecError) -> Failure {
    Failure::do_not_retry(format!("{what} cannot be decoded: {error}"), "what is stored will not change")
}
