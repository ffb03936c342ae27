//! `ratchet jobs count`

use anyhow::Result;
use clap::Args;
use ratchet::{CountBy, Counted};

use super::list::Which;
use crate::counts::counted;
use crate::exit::Exit;
use crate::output::table;
use crate::session::Session;

#[derive(Args)]
pub(crate) struct Counting {
    #[command(flatten)]
    jobs: Which,
    /// What to count by: state, kind, queue, priority, type, node, or param:NAME for the values of a parameter
    #[arg(long, default_value = "state")]
    by: CountBy,
}

pub(super) async fn run(session: &Session, counting: Counting) -> Result<Exit> {
    let Counting { jobs, by } = counting;
    let found = session.client().await?.count(&jobs.into_filter(), &by).await?;
    session.output.show(&found, shown)?;
    Ok(Exit::Done)
}

fn shown(found: &Counted) -> String {
    if found.jobs == 0 && !found.more {
        return "No jobs.".to_owned();
    }
    let mut groups: Vec<(&String, &u64)> = found.groups.iter().collect();
    groups.sort_by_key(|(_, jobs)| std::cmp::Reverse(**jobs));
    let others = found.jobs - found.groups.values().sum::<u64>();
    let in_none = (others > 0).then(|| [others.to_string(), "(in none)".to_owned()]);
    let rows = groups.into_iter().map(|(group, jobs)| [jobs.to_string(), group.clone()]).chain(in_none);
    let total = counted(found.jobs, "job", "jobs");
    let more = if found.more { ", and more that were not looked at: narrow it down" } else { "" };
    format!("{}\n\n{total}{more}", table(&["JOBS", "GROUP"], 1, rows))
}
