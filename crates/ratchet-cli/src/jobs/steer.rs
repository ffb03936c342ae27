//! `ratchet jobs cancel`, `pause`, `resume`, `retry`, `delete`

use anyhow::Result;
use clap::Args;
use ratchet::{Client, ErrorKind, JobId, JobState, StoreError};
use ratchet_core::Event;
use ratchet_core::transition::{Place, sources};
use serde::Serialize;

use crate::exit::Exit;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Ids {
    /// The jobs
    #[arg(required = true, value_name = "ID")]
    ids: Vec<JobId>,
}

/// What a person may ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb {
    Cancel,
    Pause,
    Resume,
    Retry,
    Delete,
}

/// What came of it for one job.
#[derive(Serialize)]
struct Steered {
    id: JobId,
    done: bool,
    /// Where the job now stands; nothing if there is no such job.
    state: Option<JobState>,
    /// Why it was not done.
    problem: Option<String>,
    #[serde(skip)]
    exit: Exit,
}

pub(super) async fn run(session: &Session, verb: Verb, ids: Ids) -> Result<Exit> {
    let client = session.client().await?;
    let mut all = Vec::with_capacity(ids.ids.len());
    for id in ids.ids {
        let steered = steer(&client, verb, id).await?;
        match &steered.problem {
            Some(problem) => eprintln!("error: {problem}"),
            None if session.output.is_json() => {}
            None => session.output.say(format!("{} {id}", verb.done()))?,
        }
        all.push(steered);
    }
    if session.output.is_json() {
        session.output.show(&all, |_| String::new())?;
    }
    Ok(all.iter().map(|steered| steered.exit).max().unwrap_or(Exit::Done))
}

async fn steer(client: &Client, verb: Verb, id: JobId) -> Result<Steered, StoreError> {
    let refusal = match verb.apply(client, id).await {
        Ok(true) => None,
        Ok(false) => Some(None),
        // Only these two mean that the job, or another one, and not the database stands in the way.
        Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Duplicate { .. }) => {
            Some(Some(error.to_string()))
        }
        Err(error) => return Err(error),
    };
    let job = client.find(id).await?;
    let state = job.as_ref().map(|job| job.state);
    let Some(reason) = refusal else {
        return Ok(Steered { id, done: true, state, problem: None, exit: Exit::Done });
    };
    let (problem, exit) = match job {
        None => (format!("there is no job {id}"), Exit::NotFound),
        Some(job) if job.archived_at.is_some() => {
            (format!("job {id} is {} and archived; nothing can be asked of it any more", job.state), Exit::Refused)
        }
        // Where it stands is the reason, unless it stands where it should.
        Some(job) if verb.places().contains(&job.place()) => {
            (reason.unwrap_or_else(|| format!("job {id} has just changed; look again")), Exit::Refused)
        }
        Some(job) => (verb.refusal(id, job.place()), Exit::Refused),
    };
    Ok(Steered { id, done: false, state, problem: Some(problem), exit })
}

impl Verb {
    async fn apply(self, client: &Client, id: JobId) -> Result<bool, StoreError> {
        match self {
            Self::Cancel => client.cancel(id).await,
            Self::Pause => client.pause(id).await,
            Self::Resume => client.resume(id).await,
            Self::Retry => client.retry(id).await,
            Self::Delete => client.delete(id).await,
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Cancel => "canceled",
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Retry => "will be tried again:",
            Self::Delete => "deleted",
        }
    }

    /// Where a job has to stand.
    fn places(self) -> Vec<Place> {
        let event = match self {
            Self::Cancel => Event::Cancel,
            Self::Pause => Event::Pause,
            Self::Resume => Event::Resume,
            Self::Retry => Event::Retry,
            Self::Delete => return Place::ALL.into_iter().filter(|place| place.state().is_terminal()).collect(),
        };
        sources(event).collect()
    }

    /// Where the job stands, and where it would have to stand.
    fn refusal(self, id: JobId, place: Place) -> String {
        let verb = match self {
            Self::Cancel => "canceled",
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Retry => "retried",
            Self::Delete => "deleted",
        };
        let places = self.places().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("job {id} is {place}; it can be {verb} only from {places}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_where_the_job_stands_and_where_it_should() {
        let id: JobId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let check = |verb: Verb, place: Place, expected: &str| {
            let text = verb.refusal(id, place);
            assert!(text.ends_with(expected), "{text}");
        };
        check(Verb::Retry, Place::Succeeded, "is SUCCEEDED; it can be retried only from FAILED");
        check(
            Verb::Resume,
            Place::Pending,
            "is PENDING; it can be resumed only from PAUSED (from PENDING), PAUSED (from FAILED)",
        );
        check(Verb::Delete, Place::Running, "is RUNNING; it can be deleted only from SUCCEEDED, FAILED, CANCELED");
    }
}
