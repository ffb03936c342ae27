//! `ratchet breakers`

use anyhow::Result;
use clap::Subcommand;
use ratchet::{BreakerOrdered, BreakerRecord, InvalidInput, ServiceName, Timestamp};
use serde::Serialize;

use crate::exit::Exit;
use crate::nodes;
use crate::output::table;
use crate::session::Session;
use crate::times;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Let no node claim jobs that call the service, until it is reset; jobs that run go on
    Open(Service),
    /// Let jobs that call the service be claimed again, on every node, whoever opened its breaker
    Reset(Service),
}

#[derive(clap::Args)]
pub(crate) struct Service {
    #[arg(value_name = "SERVICE", value_parser = service_name)]
    name: ServiceName,
}

fn service_name(text: &str) -> Result<ServiceName, InvalidInput> {
    ServiceName::new(text)
}

#[derive(Serialize)]
struct Steered {
    service: ServiceName,
    held_open: bool,
    changed: bool,
    /// How many living nodes call it.
    calling: usize,
}

pub(crate) async fn run(session: &Session, command: Option<Command>) -> Result<Exit> {
    let client = session.client().await?;
    let (service, held_open, ordered) = match command {
        None => {
            let breakers = client.breakers().await?;
            let now = client.store().database_time().await?;
            session.output.show(&breakers, |breakers| listed(breakers, now))?;
            return Ok(Exit::Done);
        }
        Some(Command::Open(Service { name })) => {
            let ordered = client.open_breaker(&name).await?;
            (name, true, ordered)
        }
        Some(Command::Reset(Service { name })) => {
            let ordered = client.reset_breaker(&name).await?;
            (name, false, ordered)
        }
    };
    let BreakerOrdered { changed, calling, .. } = ordered;
    session.output.show(&Steered { service, held_open, changed, calling }, told)?;
    Ok(Exit::Done)
}

fn told(Steered { service, held_open, changed, calling }: &Steered) -> String {
    let done = match (held_open, changed) {
        (true, false) => return format!("circuit breaker of {service}: nothing to change, held open already"),
        (true, true) => format!("opened the circuit breaker of {service}"),
        (false, true) => format!("reset the circuit breaker of {service}"),
        (false, false) => format!("reset the circuit breaker of {service}, which was not held open"),
    };
    match calling {
        0 => format!("{done}; no living node calls it"),
        1 => format!("{done}; the living node that calls it heeds it within seconds"),
        _ => format!("{done}; the {calling} living nodes that call it heed it within seconds"),
    }
}

fn listed(breakers: &[BreakerRecord], now: Timestamp) -> String {
    if breakers.is_empty() {
        return "No circuit breaker is held open, and all are closed on every living node.".to_owned();
    }
    let rows = breakers.iter().map(|breaker| {
        let nodes = breaker.not_closed.iter().map(|one| format!("{} {}", one.name, nodes::stand(one.stand, now)));
        vec![
            breaker.service.to_string(),
            breaker.held_open_since.map(|since| times::ago(since, now)).unwrap_or_default(),
            format!("{} of {}", breaker.not_closed.len(), breaker.calling),
            nodes.collect::<Vec<_>>().join(", "),
        ]
    });
    table(&["SERVICE", "HELD OPEN", "NOT CLOSED ON", "NODES"], NODES, rows)
}

/// The only column that may give way: there may be many.
const NODES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_told_with_what_comes_of_it() {
        let check = |held_open, changed, calling, expected: &str| {
            let service = ServiceName::new("payments").unwrap();
            assert_eq!(told(&Steered { service, held_open, changed, calling }), expected);
        };
        check(true, true, 0, "opened the circuit breaker of payments; no living node calls it");
        check(
            true,
            true,
            1,
            "opened the circuit breaker of payments; the living node that calls it heeds it within seconds",
        );
        check(true, false, 3, "circuit breaker of payments: nothing to change, held open already");
        check(
            false,
            true,
            3,
            "reset the circuit breaker of payments; the 3 living nodes that call it heed it within seconds",
        );
        check(
            false,
            false,
            0,
            "reset the circuit breaker of payments, which was not held open; no living node calls it",
        );
    }
}
