//! Counting jobs by what they have in common.

use std::collections::{BTreeMap, HashMap, HashSet};

use ratchet_core::count::{COUNTED_MAX, CountBy, Counted};
use ratchet_core::page::JobFilter;
use ratchet_core::{JobId, NodeId, Priority, StoreError};

use crate::archive::attempts;
use crate::list::job_index::{ARCHIVE, KEPT, Shelf};
use crate::list::{Walk, reach_of, read, together, walks};
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;

pub(crate) const STATEMENTS: &[Stmt] = &[NODES, ARCHIVED_NODES];

/// Counts jobs, a portion at a time. The groups are made here and not by the database: so one statement serves for all of them, and the
/// name of a parameter means nothing but itself.
pub async fn count(conn: &mut dyn Conn, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
    let mut count = Count { by, counted: Counted::default(), seen: HashSet::new(), left: COUNTED_MAX };
    if filter.archive.has_live() {
        count.walk(conn, &KEPT, filter).await?;
    }
    // Last: a job that is moved meanwhile is seen twice, and counted once.
    if filter.archive.has_archived() {
        count.walk(conn, &ARCHIVE, filter).await?;
    }
    Ok(count.counted)
}

struct Count<'b> {
    by: &'b CountBy,
    counted: Counted,
    seen: HashSet<JobId>,
    /// How many jobs may be looked at.
    left: usize,
}

impl Count<'_> {
    async fn walk(&mut self, conn: &mut dyn Conn, shelf: &'static Shelf, filter: &JobFilter) -> Result<(), StoreError> {
        for Walk { way, lead, .. } in walks(shelf, filter) {
            let (since, mut until) = filter.id_range(None);
            loop {
                if self.left == 0 {
                    self.counted.more = true;
                    return Ok(());
                }
                let reach = reach_of(conn, &way.newest_first, lead.as_ref(), (since, until)).await?;
                let part = (reach.unwrap_or(since), until);
                let rows = read(conn, &way.counts, lead.clone(), part, filter, COUNTED_MAX).await?;
                self.add(conn, shelf, &rows).await?;
                self.left = self.left.saturating_sub(together(lead.as_ref()).max(rows.len()));
                match reach {
                    Some(last) => until = last,
                    None => break,
                }
            }
        }
        Ok(())
    }

    async fn add(&mut self, conn: &mut dyn Conn, shelf: &'static Shelf, rows: &[Row]) -> Result<(), StoreError> {
        let mut fresh = Vec::with_capacity(rows.len());
        for row in rows {
            let id = row.fields().job_id("job_id")?;
            if self.seen.insert(id) {
                fresh.push((id, row));
            }
        }
        let is_kept = shelf.live.is_some();
        let nodes = match self.by {
            CountBy::Node => nodes(conn, &fresh.iter().map(|(id, _)| *id).collect::<Vec<_>>(), is_kept).await?,
            _ => HashMap::new(),
        };
        for (id, row) in fresh {
            self.counted.add(group(self.by, row, is_kept, nodes.get(&id).copied())?);
        }
        Ok(())
    }
}

/// The group of a job; `last` is who ran it last.
fn group(by: &CountBy, row: &Row, is_kept: bool, last: Option<NodeId>) -> Result<Option<String>, StoreError> {
    let mut fields = row.fields();
    fields.job_id("job_id")?;
    let state = fields.text("state")?;
    let (kind, queue) = (fields.text("kind")?, fields.text("queue")?);
    let level: i64 = fields.int("priority")?;
    let job_type = fields.text("job_type")?;
    let params = fields.opt_text("params")?;
    Ok(match by {
        CountBy::State => Some(state.to_owned()),
        CountBy::Kind => Some(kind.to_owned()),
        CountBy::Queue => Some(queue.to_owned()),
        CountBy::Priority => {
            let known = u8::try_from(level).ok().and_then(Priority::from_level);
            Some(known.map_or_else(|| level.to_string(), |priority| priority.as_str().to_owned()))
        }
        CountBy::JobType => Some(job_type.to_owned()),
        CountBy::Node => {
            let runs = if is_kept { fields.opt_node_id("picked_by")? } else { None };
            runs.or(last).map(|node| node.to_string())
        }
        CountBy::Param(name) => {
            let params: BTreeMap<String, String> =
                params.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            params.get(name).cloned()
        }
    })
}

const NODES: Stmt = Stmt::shared(
    "reading on which nodes jobs ran",
    "SELECT job_id, version, node_id FROM scheduler_job_execution WHERE job_id /*any*/",
);

const ARCHIVED_NODES: Stmt = Stmt::shared(
    "reading on which nodes archived jobs ran",
    "SELECT job_id, attempts FROM scheduler_job_archive WHERE attempts IS NOT NULL AND job_id /*any*/",
);

/// Who ran these jobs last.
async fn nodes(conn: &mut dyn Conn, ids: &[JobId], is_kept: bool) -> Result<HashMap<JobId, NodeId>, StoreError> {
    let mut last: HashMap<JobId, (u64, NodeId)> = HashMap::new();
    let mut ran = |id, version, node| {
        let known = last.entry(id).or_insert((version, node));
        if known.0 <= version {
            *known = (version, node);
        }
    };
    if is_kept {
        for row in conn.rows_in(&NODES, &[], ids).await? {
            let mut fields = row.fields();
            ran(fields.job_id("job_id")?, fields.number("version")?, fields.node_id("node_id")?);
        }
    } else {
        for row in conn.rows_in(&ARCHIVED_NODES, &[], ids).await? {
            let mut fields = row.fields();
            let id = fields.job_id("job_id")?;
            for attempt in fields.parsed("attempts", |text| attempts::read(id, text))? {
                ran(id, attempt.version, attempt.node);
            }
        }
    }
    Ok(last.into_iter().map(|(id, (_, node))| (id, node)).collect())
}
