//! Counting jobs by what they have in common.

use std::collections::{HashMap, HashSet};

use ratchet_core::count::{COUNTED_MAX, CountBy, Counted};
use ratchet_core::page::JobFilter;
use ratchet_core::{JobHead, JobId, NodeId, StoreError};

use crate::archive::attempts;
use crate::list::heads;
use crate::list::job_index::{ARCHIVE, Direction, JobIndexes, UNARCHIVED};
use crate::list::scan::{EXAMINED_MAX, scans};
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;

pub(crate) const STATEMENTS: &[Stmt] = &[NODES, NODES_OF_SUCCESSES, ARCHIVED_NODES];

/// Counts jobs, a portion at a time. The groups are made here and not by the database: so one statement serves for all of them, and the
/// name of a parameter means nothing but itself.
pub async fn count(conn: &mut dyn Conn, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
    let mut count = Count { filter, by, counted: Counted::default(), seen: HashSet::new(), left: COUNTED_MAX };
    if filter.archive.has_live() {
        count.walk(conn, &UNARCHIVED).await?;
    }
    // Last: a job that is moved meanwhile is seen twice, and counted once.
    if filter.archive.has_archived() {
        count.walk(conn, &ARCHIVE).await?;
    }
    Ok(count.counted)
}

struct Count<'f> {
    filter: &'f JobFilter,
    by: &'f CountBy,
    counted: Counted,
    seen: HashSet<JobId>,
    /// How many jobs may be examined.
    left: usize,
}

impl Count<'_> {
    async fn walk(&mut self, conn: &mut dyn Conn, indexes: &'static JobIndexes) -> Result<(), StoreError> {
        let direction = Direction::NewestFirst;
        for scan in scans(indexes, self.filter) {
            let mut range = self.filter.id_range(None);
            loop {
                let count = EXAMINED_MAX.min(self.left);
                if count == 0 {
                    self.counted.more = true;
                    return Ok(());
                }
                let ids = scan.ids(conn, direction, range, count).await?;
                self.left -= ids.len();
                self.add(conn, indexes, &ids).await?;
                match ids.last() {
                    Some(last) if ids.len() == count => range = direction.behind(range, *last),
                    _ => break,
                }
            }
        }
        Ok(())
    }

    async fn add(&mut self, conn: &mut dyn Conn, indexes: &JobIndexes, ids: &[JobId]) -> Result<(), StoreError> {
        let rows = heads::rows(conn, indexes, ids, matches!(self.by, CountBy::Param(_))).await?;
        let mut passing: Vec<JobHead<'_>> = Vec::with_capacity(rows.len());
        for row in &rows {
            let head = heads::head_of_row(row, indexes)?;
            if self.filter.passes(&head) && self.seen.insert(head.id) {
                passing.push(head);
            }
        }
        let nodes = match self.by {
            CountBy::Node => {
                nodes(conn, &passing.iter().map(|head| head.id).collect::<Vec<_>>(), indexes.live.is_some()).await?
            }
            _ => HashMap::new(),
        };
        for head in passing {
            self.counted.add(self.by.group(&head, nodes.get(&head.id).copied()));
        }
        Ok(())
    }
}

const NODES: Stmt = Stmt::shared(
    "reading on which nodes jobs ran",
    "SELECT job_id, version, node_id FROM scheduler_job_execution WHERE job_id /*any*/",
);

const NODES_OF_SUCCESSES: Stmt = Stmt::shared(
    "reading on which nodes jobs succeeded",
    "SELECT job_id, version, ended_by AS node_id FROM scheduler_job /*by_id*/ WHERE ended_by IS NOT NULL AND job_id /*any*/",
);

const ARCHIVED_NODES: Stmt = Stmt::shared(
    "reading on which nodes archived jobs ran",
    "SELECT job_id, attempts, version, ended_by FROM scheduler_job_archive \
     WHERE (attempts IS NOT NULL OR ended_by IS NOT NULL) AND job_id /*any*/",
);

/// Who ran these jobs last.
async fn nodes(conn: &mut dyn Conn, ids: &[JobId], is_unarchived: bool) -> Result<HashMap<JobId, NodeId>, StoreError> {
    let mut last: HashMap<JobId, (u64, NodeId)> = HashMap::new();
    let mut ran = |id, version, node| {
        let known = last.entry(id).or_insert((version, node));
        if known.0 <= version {
            *known = (version, node);
        }
    };
    if is_unarchived {
        let mut rows = conn.rows_in(&NODES, &[], ids).await?;
        rows.append(&mut conn.rows_in(&NODES_OF_SUCCESSES, &[], ids).await?);
        for row in rows {
            let mut fields = row.fields();
            ran(fields.job_id("job_id")?, fields.number("version")?, fields.node_id("node_id")?);
        }
    } else {
        for row in conn.rows_in(&ARCHIVED_NODES, &[], ids).await? {
            let mut fields = row.fields();
            let id = fields.job_id("job_id")?;
            for attempt in fields.opt_parsed("attempts", |text| attempts::read(id, text))?.unwrap_or_default() {
                ran(id, attempt.version, attempt.node);
            }
            let version = fields.number("version")?;
            if let Some(node) = fields.opt_node_id("ended_by")? {
                ran(id, version, node);
            }
        }
    }
    Ok(last.into_iter().map(|(id, (_, node))| (id, node)).collect())
}
