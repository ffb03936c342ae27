//! Where a job comes from, as one column holds it: the finished job that it is a callback of, and its trace.

use std::collections::BTreeMap;

use ratchet_core::{JobId, JsonText, Kind, NewJob, Origin, StoreError, TraceContext};
use serde::{Deserialize, Serialize};

use crate::job_row::json_of;
use crate::waist::value::Value;

/// The column of a new job. Most jobs have neither, and then it is NULL.
pub(crate) fn value_of(job: &NewJob) -> Result<Value, StoreError> {
    let NewJob { origin, spec, .. } = job;
    if origin.is_none() && spec.trace.is_none() {
        return Ok(Value::Json(None));
    }
    json_of(&Written {
        job_id: origin.as_ref().map(|origin| origin.job_id),
        kind: origin.as_ref().map(|origin| &origin.kind),
        params: origin.as_ref().map(|origin| &origin.params),
        result: origin.as_ref().and_then(|origin| origin.result.as_ref()),
        error: origin.as_ref().and_then(|origin| origin.error.as_deref()),
        trace: spec.trace.as_ref(),
    })
}

/// Reads the column: whose callback it is, and its trace.
pub(crate) fn read(text: &str) -> Result<(Option<Origin>, Option<TraceContext>), serde_json::Error> {
    let Stored { job_id, kind, params, result, error, trace } = serde_json::from_str(text)?;
    let origin = job_id.zip(kind).map(|(job_id, kind)| Origin { job_id, kind, params, result, error });
    Ok((origin, trace))
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceContext>,
}

#[derive(Deserialize)]
struct Stored {
    job_id: Option<JobId>,
    kind: Option<Kind>,
    #[serde(default)]
    params: BTreeMap<String, String>,
    result: Option<JsonText>,
    error: Option<String>,
    trace: Option<TraceContext>,
}
