//! `ratchet resources`

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use ratchet::{InvalidInput, ResourceLimit, ResourceName, ResourceRecord};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::table;
use crate::session::Session;
use crate::times;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Set how many jobs that name the resource may run at once, in the whole cluster
    Set {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = resource_name)]
        name: ResourceName,
        /// How many at once; 0 lets none begin
        #[arg(value_name = "COUNT")]
        max_concurrent: u32,
        /// How long a node waits at most before it looks again for a permit, such as 500ms or 10s
        #[arg(long, value_name = "DURATION", value_parser = times::parse, default_value = "5s")]
        retry_delay: Duration,
    },
    /// Remove a limit: the resource's jobs run freely, until a node starts that declares one
    Remove {
        /// The resource
        #[arg(value_name = "RESOURCE", value_parser = resource_name)]
        name: ResourceName,
    },
}

fn resource_name(text: &str) -> Result<ResourceName, InvalidInput> {
    ResourceName::new(text)
}

/// A resource as programs see it.
#[derive(Serialize)]
struct Shown {
    name: ResourceName,
    in_use: u32,
    max_concurrent: Option<u32>,
    retry_delay_ms: Option<f64>,
    by_hand: bool,
    #[serde(skip)]
    looks_again: Option<Duration>,
}

impl Shown {
    fn of(ResourceRecord { name, limit, by_hand, in_use }: ResourceRecord) -> Self {
        let max_concurrent = limit.as_ref().map(|limit| limit.max_concurrent);
        let retry_delay_ms = limit.as_ref().map(|limit| times::millis(limit.retry_delay));
        let looks_again = limit.map(|limit| limit.retry_delay);
        Self { name, in_use, max_concurrent, retry_delay_ms, by_hand, looks_again }
    }
}

#[derive(Serialize)]
struct Removed {
    name: ResourceName,
    removed: bool,
}

pub(crate) async fn run(session: &Session, command: Option<Command>) -> Result<Exit> {
    let client = session.client().await?;
    match command {
        None => {
            let shown: Vec<Shown> = client.resources().await?.into_iter().map(Shown::of).collect();
            session.output.show(&shown, |shown| listed(shown))?;
        }
        Some(Command::Set { name, max_concurrent, retry_delay }) => {
            let limit = ResourceLimit { name: name.clone(), max_concurrent, retry_delay };
            client.set_resource_limit(&limit).await?;
            let in_use =
                client.resources().await?.iter().find(|record| record.name == name).map_or(0, |record| record.in_use);
            let shown = Shown::of(ResourceRecord { name, limit: Some(limit), by_hand: true, in_use });
            session.output.show(&shown, |shown| {
                format!("resource {}: at most {max_concurrent} at once, {} in use", shown.name, shown.in_use)
            })?;
        }
        Some(Command::Remove { name }) => {
            let removed = client.remove_resource_limit(&name).await?;
            session.output.show(&Removed { name, removed }, |Removed { name, removed }| match removed {
                true => format!("resource {name}: no limit any more"),
                false => format!("resource {name}: nothing to change, it has no limit"),
            })?;
        }
    }
    Ok(Exit::Done)
}

fn listed(resources: &[Shown]) -> String {
    if resources.is_empty() {
        return "No resource has a limit or is in use.".to_owned();
    }
    let rows = resources.iter().map(|resource| {
        let set = match (resource.max_concurrent, resource.by_hand) {
            (None, _) => "",
            (Some(_), true) => "by hand",
            (Some(_), false) => "in code",
        };
        vec![
            resource.name.to_string(),
            resource.in_use.to_string(),
            resource.max_concurrent.map_or_else(|| "none".to_owned(), |max| max.to_string()),
            resource.looks_again.map(times::duration).unwrap_or_default(),
            set.to_owned(),
        ]
    });
    table(&["RESOURCE", "IN USE", "LIMIT", "LOOKS AGAIN", "SET"], 0, rows)
}
