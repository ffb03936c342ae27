//! The indexes by which jobs are found, and the statements that walk them.
//!
//! Every statement walks one index and returns nothing but ids, which leaves a planner no choice, whatever statistics say.
//! ADR 0024 explains why.

use std::sync::LazyLock;

use ratchet_core::{JobId, StoreError};

use crate::list::heads::{ARCHIVED_HEADS, HEADS};
use crate::waist::conn::Conn;
use crate::waist::dialect::Dialect;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

/// The order in which an index is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    NewestFirst,
    OldestFirst,
}

impl Direction {
    /// Returns the part of a range that does not lie behind a job.
    pub(crate) fn up_to(self, (since, until): (JobId, JobId), last: JobId) -> (JobId, JobId) {
        match self {
            Self::NewestFirst => (since.max(last), until),
            Self::OldestFirst => (since, until.min(last.following())),
        }
    }

    /// Returns the part of a range that lies behind a job.
    pub(crate) fn behind(self, (since, until): (JobId, JobId), last: JobId) -> (JobId, JobId) {
        match self {
            Self::NewestFirst => (since, until.min(last)),
            Self::OldestFirst => (since.max(last.following()), until),
        }
    }

    /// Sorts jobs, each of them once.
    pub(crate) fn sort(self, ids: &mut Vec<JobId>) {
        ids.sort_unstable();
        ids.dedup();
        if self == Self::NewestFirst {
            ids.reverse();
        }
    }

    const fn sql(self) -> &'static str {
        match self {
            Self::NewestFirst => "DESC",
            Self::OldestFirst => "ASC",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::NewestFirst => "newest first",
            Self::OldestFirst => "oldest first",
        }
    }
}

/// An index whose entries are in the order of ids, all of them or those of each leading value.
pub(crate) struct JobIndex {
    newest_first: Stmt,
    oldest_first: Stmt,
}

impl JobIndex {
    /// Reads up to `count` ids of a range, in order: the range is exhausted if there are fewer. `lead` is the leading value, for
    /// an index that has one.
    pub(crate) async fn ids(
        &self,
        conn: &mut dyn Conn,
        direction: Direction,
        lead: Option<&Value>,
        (since, until): (JobId, JobId),
        count: usize,
    ) -> Result<Vec<JobId>, StoreError> {
        let stmt = match direction {
            Direction::NewestFirst => &self.newest_first,
            Direction::OldestFirst => &self.oldest_first,
        };
        let mut values: Vec<Value> = lead.cloned().into_iter().collect();
        values.extend([until.into(), since.into(), Value::count(count)]);
        conn.rows(stmt, values).await?.iter().map(|row| row.fields().job_id("job_id")).collect()
    }
}

/// The indexes of one of the places where jobs are stored.
pub(crate) struct JobIndexes {
    pub(crate) all: JobIndex,
    pub(crate) by_tag: JobIndex,
    pub(crate) by_business_key: JobIndex,
    pub(crate) by_parent: JobIndex,
    pub(crate) by_principal: JobIndex,
    /// By the state in which they ended.
    pub(crate) by_end: JobIndex,
    /// Jobs that have not ended, if the place has any.
    pub(crate) live: Option<LiveIndexes>,
    /// Reads the heads of jobs by their ids.
    pub(crate) heads: &'static Stmt,
}

/// The indexes of jobs that have not ended.
pub(crate) struct LiveIndexes {
    pub(crate) all: JobIndex,
    pub(crate) running: JobIndex,
}

/// The jobs that are not archived.
pub(crate) static UNARCHIVED: LazyLock<JobIndexes> = LazyLock::new(|| {
    let job = |lead, kind, name| Entries::of("scheduler_job", lead, kind, name);
    let child = Entries::of("scheduler_job_child", "parent_id", "uuid", None);
    JobIndexes {
        all: index("jobs", |_| Entries::by_id("scheduler_job")),
        by_tag: index("jobs by tag", |_| Entries::of("scheduler_job_tag", "tag", "text", None)),
        by_business_key: index("jobs by business key", |_| job("business_key", "text", Some("idx_job_business_key"))),
        by_parent: index("the children of a job", |dialect| match dialect {
            Dialect::Sqlite | Dialect::Postgres => job("depends_on", "uuid", Some("idx_job_depends_on")),
            Dialect::Mysql | Dialect::Mariadb => child,
        }),
        by_principal: index("jobs by principal", |_| job("caller_principal", "text", Some("idx_job_principal"))),
        by_end: index("ended jobs", |_| job("terminal_status", "text", Some("idx_job_terminal"))),
        live: Some(LiveIndexes {
            all: index("live jobs", |_| Entries::by_id("scheduler_job_queue")),
            running: JobIndex {
                newest_first: running("finding running jobs, newest first", Direction::NewestFirst),
                oldest_first: running("finding running jobs, oldest first", Direction::OldestFirst),
            },
        }),
        heads: &HEADS,
    }
});

/// The jobs in the archive.
pub(crate) static ARCHIVE: LazyLock<JobIndexes> = LazyLock::new(|| {
    let job = |lead, kind, name| Entries::of("scheduler_job_archive", lead, kind, Some(name));
    JobIndexes {
        all: index("archived jobs", |_| Entries::by_id("scheduler_job_archive")),
        by_tag: index("archived jobs by tag", |_| Entries::of("scheduler_job_archive_tag", "tag", "text", None)),
        by_business_key: index("archived jobs by business key", |_| {
            job("business_key", "text", "idx_archive_business_key")
        }),
        by_parent: index("the archived children of a job", |_| job("depends_on", "uuid", "idx_archive_depends_on")),
        by_principal: index("archived jobs by principal", |_| job("caller_principal", "text", "idx_archive_principal")),
        by_end: index("archived jobs by state", |_| job("terminal_status", "text", "idx_archive_status")),
        live: None,
        heads: &ARCHIVED_HEADS,
    }
});

/// The entries of an index, as one database has them.
#[derive(Clone, Copy)]
struct Entries {
    table: &'static str,
    /// The column before the id, and its type on PostgreSQL.
    lead: Option<(&'static str, &'static str)>,
    /// The name of the index; `None` for the primary key.
    name: Option<&'static str>,
}

impl Entries {
    const fn by_id(table: &'static str) -> Self {
        Self { table, lead: None, name: None }
    }

    const fn of(table: &'static str, lead: &'static str, kind: &'static str, name: Option<&'static str>) -> Self {
        Self { table, lead: Some((lead, kind)), name }
    }

    /// Returns the text that reads ids from one end of a range. Its values: what leads, if something does, the id at which the range
    /// ends, the id with which it begins, how many entries.
    ///
    /// Asked for one leading value in the order of ids, PostgreSQL may rather walk through all jobs, which takes long if the newest
    /// ones have another value. There the leading column and the id are compared as a pair and are the order too, which only this
    /// index can serve. PostgreSQL ends such a scan only where the first of the two leaves its bound: with the range's other
    /// end among the conditions, it would go on to the last entry of the value. So the scan ends by number, and entries
    /// behind the range are left out afterwards. The other databases take the name of the index.
    fn text(&self, dialect: Dialect, direction: Direction) -> String {
        let Self { table, lead, name } = *self;
        let order = direction.sql();
        let ids = |from: &str| {
            let only = lead.map_or_else(String::new, |(lead, _)| format!("{lead} = ? AND "));
            format!("SELECT job_id FROM {from} WHERE {only}job_id < ? AND job_id >= ? ORDER BY job_id {order} LIMIT ?")
        };
        match (dialect, lead) {
            (Dialect::Postgres, Some((lead, kind))) => {
                let begin = match direction {
                    Direction::NewestFirst => "< (v.lead, v.until)",
                    Direction::OldestFirst => ">= (v.lead, v.since)",
                };
                format!(
                    "WITH v AS (SELECT ?::{kind} AS lead, ?::uuid AS until, ?::uuid AS since) \
                     SELECT t.job_id AS job_id FROM v CROSS JOIN LATERAL \
                     (SELECT i.{lead} AS lead, i.job_id FROM {table} i \
                     WHERE i.{lead} IS NOT NULL AND (i.{lead}, i.job_id) {begin} \
                     ORDER BY i.{lead} {order}, i.job_id {order} LIMIT ?) t \
                     WHERE t.lead = v.lead AND t.job_id < v.until AND t.job_id >= v.since ORDER BY t.job_id {order}"
                )
            }
            (Dialect::Postgres, None) => ids(table),
            (Dialect::Sqlite, _) => {
                ids(&name.map_or_else(|| table.to_owned(), |name| format!("{table} INDEXED BY {name}")))
            }
            (Dialect::Mysql | Dialect::Mariadb, _) => {
                ids(&format!("{table} FORCE INDEX ({})", name.unwrap_or("PRIMARY")))
            }
        }
    }
}

/// Renders the statements of an index, which leads to `jobs`, from its entries on each database.
fn index(jobs: &str, entries: impl Fn(Dialect) -> Entries) -> JobIndex {
    let stmt = |direction: Direction| {
        let text = |dialect| rendered(entries(dialect).text(dialect, direction));
        Stmt::shared(rendered(format!("finding {jobs}, {}", direction.name())), text(Dialect::Sqlite))
            .postgres(text(Dialect::Postgres))
            .mysql(text(Dialect::Mysql))
    };
    JobIndex { newest_first: stmt(Direction::NewestFirst), oldest_first: stmt(Direction::OldestFirst) }
}

/// Makes a text live as long as the statements, which are never dropped.
fn rendered(text: String) -> &'static str {
    text.leak()
}

/// Renders a statement for running jobs. However many jobs wait, few run, and those were created before the ones that wait: the
/// small index of what runs is read as a whole and sorted.
fn running(doing: &'static str, direction: Direction) -> Stmt {
    let (runs, order) = ("q.status = /*state:running*/", direction.sql());
    let text = |from: &str| {
        let ordered = format!("q.job_id < ? AND q.job_id >= ? ORDER BY q.job_id {order} LIMIT ?");
        rendered(format!("SELECT q.job_id AS job_id FROM {from} AND {ordered}"))
    };
    Stmt::shared(doing, text(&format!("scheduler_job_queue q INDEXED BY idx_queue_running WHERE {runs}")))
        // What has an offset is planned by itself.
        .postgres(text(&format!("(SELECT q.job_id FROM scheduler_job_queue q WHERE {runs} OFFSET 0) q WHERE TRUE")))
        .mysql(text(&format!("scheduler_job_queue q FORCE INDEX (idx_queue_claim) WHERE {runs}")))
}

/// Returns the statements of all indexes.
pub(crate) fn statements() -> impl Iterator<Item = &'static Stmt> {
    let of_one_place = |indexes: &'static JobIndexes| {
        let JobIndexes { all, by_tag, by_business_key, by_parent, by_principal, by_end, live, heads: _ } = indexes;
        let live = live.iter().flat_map(|LiveIndexes { all, running }| [all, running]);
        [all, by_tag, by_business_key, by_parent, by_principal, by_end].into_iter().chain(live)
    };
    let indexes = of_one_place(&UNARCHIVED).chain(of_one_place(&ARCHIVE));
    indexes.flat_map(|JobIndex { newest_first, oldest_first }| [newest_first, oldest_first])
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_range_is_cut_at_a_job() {
        let id = |number| JobId(Uuid::from_u128(number));
        let check = |direction: Direction, last, up_to: (u128, u128), behind: (u128, u128)| {
            let range = (id(10), id(20));
            let cut = (direction.up_to(range, id(last)), direction.behind(range, id(last)));
            let expected = [up_to, behind].map(|(since, until)| (id(since), id(until)));
            assert_eq!(cut, expected.into(), "{direction:?} at {last}");
        };
        check(Direction::NewestFirst, 15, (15, 20), (10, 15));
        check(Direction::NewestFirst, 19, (19, 20), (10, 19));
        check(Direction::NewestFirst, 10, (10, 20), (10, 10));
        check(Direction::NewestFirst, 5, (10, 20), (10, 5));
        check(Direction::OldestFirst, 15, (10, 16), (16, 20));
        check(Direction::OldestFirst, 10, (10, 11), (11, 20));
        check(Direction::OldestFirst, 19, (10, 20), (20, 20));
        check(Direction::OldestFirst, 25, (10, 20), (26, 20));
    }

    #[test]
    fn jobs_are_sorted_each_once() {
        let ids =
            |numbers: &[u128]| -> Vec<JobId> { numbers.iter().map(|number| JobId(Uuid::from_u128(*number))).collect() };
        let check = |direction: Direction, expected: &[u128]| {
            let mut found = ids(&[2, 3, 1, 2]);
            direction.sort(&mut found);
            assert_eq!(found, ids(expected), "{direction:?}");
        };
        check(Direction::NewestFirst, &[3, 2, 1]);
        check(Direction::OldestFirst, &[1, 2, 3]);
    }
}
