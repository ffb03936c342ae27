//! `ratchet jobs explain`

use std::fmt::Write as _;

use anyhow::Result;
use ratchet::{Explanation, Timestamp};

use super::show::Which;
use crate::exit::Exit;
use crate::session::Session;
use crate::times;

pub(super) async fn run(session: &Session, which: Which) -> Result<Exit> {
    let client = session.client().await?;
    let Some(explanation) = client.explain(which.id).await? else {
        eprintln!("error: there is no job {}", which.id);
        return Ok(Exit::NotFound);
    };
    let now = client.store().database_time().await?;
    session.output.show(&explanation, |explanation| text(explanation, now))?;
    Ok(Exit::Done)
}

fn text(explanation: &Explanation, now: Timestamp) -> String {
    let mut text = format!("job {} is {}", explanation.job_id, explanation.state);
    for reason in &explanation.reasons {
        text.push_str("\n  ");
        text.push_str(&reason.to_string());
    }
    match explanation.expected {
        None => {}
        Some(_) if explanation.reasons.is_empty() => {
            text.push_str("\n  nothing holds it up: the next claim of a node takes it");
        }
        Some(at) => {
            let _ = write!(text, "\nexpected {at:.3} ({})", times::relative(at, now));
        }
    }
    text
}
