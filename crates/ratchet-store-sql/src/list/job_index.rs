//! The ways into the jobs that are listed and counted, where they ended and in the archive: each follows one index.

use crate::archive::archived::archived_columns;
use crate::job_row::record_columns;
use crate::list::ended_index::{asked, entries, looked_up, meant};
use crate::waist::stmt::Stmt;

/// One way into the jobs.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) newest_first: Look,
    pub(crate) oldest_first: Look,
    /// Reads what jobs are counted by, newest first. Its values are those of a list.
    pub(crate) counts: Stmt,
}

/// One way in one direction.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// Lists. Its values: what leads if something does, until and since which job, the states, the columns that narrow, how many.
    pub(crate) list: Stmt,
    /// Tells how far so many entries of the index go. Its values: what leads if something does, until and since which job, how many
    /// before. `None` if the index never has many.
    pub(crate) reach: Option<Stmt>,
}

impl Way {
    /// The same over an index that never has many entries.
    const fn of_few(mut self) -> Self {
        self.newest_first.reach = None;
        self.oldest_first.reach = None;
        self
    }
}

/// The ways into one place.
pub(crate) struct Shelf {
    pub(crate) all: Way,
    pub(crate) by_tag: Way,
    pub(crate) by_business_key: Way,
    pub(crate) by_parent: Way,
    pub(crate) by_principal: Way,
    /// By the state that they ended in.
    pub(crate) by_end: Way,
    /// Jobs that have not ended, if there are such jobs here.
    pub(crate) live: Option<LiveWays>,
}

/// The ways to jobs that have not ended.
pub(crate) struct LiveWays {
    /// In whatever state.
    pub(crate) all: Way,
    pub(crate) running: Way,
}

/// A way to `$jobs`, of texts that a macro makes of columns and a direction: one for all databases, and others where they must differ.
macro_rules! way {
    (
        $jobs:literal, $columns:ident, $counted:ident,
        $shared:ident $shared_parts:tt
        $(, postgres: $postgres:ident $postgres_parts:tt)?
        $(, mysql: $mysql:ident $mysql_parts:tt)?
    ) => {
        Way {
            newest_first: Look {
                list: Stmt::shared(concat!("listing ", $jobs), $shared!(list $columns!(), "DESC", $shared_parts))
                    $(.postgres($postgres!(list $columns!(), "DESC", $postgres_parts)))?
                    $(.mysql($mysql!(list $columns!(), "DESC", $mysql_parts)))?,
                reach: Some(
                    Stmt::shared(concat!("looking how far a page goes of ", $jobs), $shared!(reach "DESC", $shared_parts))
                        $(.postgres($postgres!(reach "DESC", $postgres_parts)))?
                        $(.mysql($mysql!(reach "DESC", $mysql_parts)))?,
                ),
            },
            oldest_first: Look {
                list: Stmt::shared(
                    concat!("listing ", $jobs, ", oldest first"),
                    $shared!(list $columns!(), "ASC", $shared_parts),
                )
                $(.postgres($postgres!(list $columns!(), "ASC", $postgres_parts)))?
                $(.mysql($mysql!(list $columns!(), "ASC", $mysql_parts)))?,
                reach: Some(
                    Stmt::shared(
                        concat!("looking how far a page goes of ", $jobs, ", oldest first"),
                        $shared!(reach "ASC", $shared_parts),
                    )
                    $(.postgres($postgres!(reach "ASC", $postgres_parts)))?
                    $(.mysql($mysql!(reach "ASC", $mysql_parts)))?,
                ),
            },
            counts: Stmt::shared(concat!("counting groups of ", $jobs), $shared!(list $counted!(), "DESC", $shared_parts))
                $(.postgres($postgres!(list $counted!(), "DESC", $postgres_parts)))?
                $(.mysql($mysql!(list $counted!(), "DESC", $mysql_parts)))?,
        }
    };
}

/// What narrows a list beside its states: each value twice. `$row` is one that knows kind, queue and priority.
macro_rules! narrowed_by {
    ($row:literal) => {
        concat!(
            "(? IS NULL OR ",
            $row,
            ".kind = ?) AND (? IS NULL OR ",
            $row,
            ".queue = ?) AND (? IS NULL OR ",
            $row,
            ".priority = ?) AND (? IS NULL OR j.job_type = ?) AND (? IS NULL OR j.business_key = ?) \
             AND (? IS NULL OR j.depends_on = ?) AND (? IS NULL OR j.caller_principal = ?) \
             AND (? IS NULL OR j.terminated_at >= ?) AND (? IS NULL OR j.terminated_at < ?)"
        )
    };
}
pub(crate) use narrowed_by;

/// What every list has after its lead.
macro_rules! narrowed {
    ($state:literal, $row:literal, $order:expr) => {
        concat!($state, " IN (/*each*/?/*end*/) AND ", narrowed_by!($row), " ORDER BY ", $order, " LIMIT ?")
    };
}

/// Jobs from `$from`, or the entries that lead to them from `$entries`; the last words of both are a condition.
macro_rules! plain {
    (list $columns:expr, $direction:literal, ($from:expr, $entries:expr, $id:literal, $state:literal, $row:literal)) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM ",
            $from,
            " AND ",
            $id,
            " < ? AND ",
            $id,
            " >= ? AND ",
            narrowed!($state, $row, concat!($id, " ", $direction))
        )
    };
    (reach $direction:literal, ($from:expr, $entries:expr, $id:literal, $state:literal, $row:literal)) => {
        concat!(
            "SELECT ",
            $id,
            " AS job_id FROM ",
            $entries,
            " AND ",
            $id,
            " < ? AND ",
            $id,
            " >= ? ORDER BY ",
            $id,
            " ",
            $direction,
            " LIMIT 1 OFFSET ?"
        )
    };
}

/// For PostgreSQL: the entries of an index, then each job by its key; `$rest` is joined to them. What has a limit or an offset is
/// planned by itself: otherwise the planner may merge the entries with all jobs.
macro_rules! by_entries {
    (
        list $columns:expr, $direction:tt,
        ($lead:literal, $table:literal, $column:literal, $jobs:literal, $rest:literal, $state:literal)
    ) => {
        concat!(
            asked!($lead),
            "SELECT ",
            $columns,
            " FROM ",
            looked_up!("i.job_id", $table, $column, $direction),
            " t CROSS JOIN LATERAL (SELECT * FROM ",
            $jobs,
            " c WHERE c.job_id = t.job_id OFFSET 0) j ",
            $rest,
            " WHERE ",
            meant!("t"),
            " AND ",
            narrowed!($state, "j", concat!("t.lead ", $direction, ", t.job_id ", $direction))
        )
    };
    (
        reach $direction:tt,
        ($lead:literal, $table:literal, $column:literal, $jobs:literal, $rest:literal, $state:literal)
    ) => {
        concat!(
            asked!($lead),
            "SELECT t.job_id AS job_id FROM ",
            entries!("i.job_id", $table, $column, $direction, "LIMIT 1 OFFSET ?"),
            " t WHERE ",
            meant!("t")
        )
    };
}

/// What a job that is not archived is counted by, read by [`crate::list::count`].
macro_rules! kept_counts {
    () => {
        "j.job_id AS job_id, COALESCE(q.status, j.terminal_status) AS state, j.kind AS kind, j.queue AS queue, \
         j.priority AS priority, j.job_type AS job_type, j.params AS params, q.picked_by AS picked_by"
    };
}

/// The same of an archived one, which nobody runs.
macro_rules! archived_counts {
    () => {
        "j.job_id AS job_id, j.terminal_status AS state, j.kind AS kind, j.queue AS queue, j.priority AS priority, \
         j.job_type AS job_type, j.params AS params"
    };
}

/// Jobs that are not archived.
macro_rules! kept {
    (list $columns:expr, $direction:literal, ($from:expr, $entries:expr, $id:literal)) => {
        plain!(list $columns, $direction, ($from, $entries, $id, "COALESCE(q.status, j.terminal_status)", "j"))
    };
    (reach $direction:literal, ($from:expr, $entries:expr, $id:literal)) => {
        plain!(reach $direction, ($from, $entries, $id, "", "j"))
    };
}

/// Jobs that have not ended: what the hot row knows is asked of it, so that cold rows are read of those only that are meant.
macro_rules! live {
    (list $columns:expr, $direction:literal, ($from:expr, $entries:expr)) => {
        plain!(list $columns, $direction, ($from, $entries, "q.job_id", "q.status", "q"))
    };
    (reach $direction:literal, ($from:expr, $entries:expr)) => {
        plain!(reach $direction, ($from, $entries, "q.job_id", "", "q"))
    };
}

/// Jobs that are not archived, by a column of their own, which begins `$index`.
macro_rules! kept_by {
    ($jobs:literal, $column:literal, $lead:literal, $index:literal) => {
        way!(
            $jobs, record_columns, kept_counts,
            kept(
                concat!("scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.", $column, " = ?"),
                concat!("scheduler_job j WHERE j.", $column, " = ?"),
                "j.job_id"
            ),
            postgres: by_entries(
                $lead, "scheduler_job", $column, "scheduler_job",
                "LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id", "COALESCE(q.status, j.terminal_status)"
            ),
            // The order by primary key tempts it to read all jobs.
            mysql: kept(
                concat!(
                    "scheduler_job j FORCE INDEX (", $index,
                    ") LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.", $column, " = ?"
                ),
                concat!("scheduler_job j FORCE INDEX (", $index, ") WHERE j.", $column, " = ?"),
                "j.job_id"
            )
        )
    };
}

/// Jobs in the archive.
macro_rules! archived {
    (list $columns:expr, $direction:literal, ($from:expr, $entries:expr, $id:literal)) => {
        plain!(list $columns, $direction, ($from, $entries, $id, "j.terminal_status", "j"))
    };
    (reach $direction:literal, ($from:expr, $entries:expr, $id:literal)) => {
        plain!(reach $direction, ($from, $entries, $id, "", "j"))
    };
}

/// Jobs in the archive, by a column of their own, which begins `$index`.
macro_rules! archived_by {
    ($jobs:literal, $column:literal, $lead:literal, $index:literal) => {
        way!(
            $jobs, archived_columns, archived_counts,
            archived(
                concat!("scheduler_job_archive j WHERE j.", $column, " = ?"),
                concat!("scheduler_job_archive j WHERE j.", $column, " = ?"),
                "j.job_id"
            ),
            postgres: by_entries(
                $lead, "scheduler_job_archive", $column, "scheduler_job_archive", "", "j.terminal_status"
            ),
            mysql: archived(
                concat!("scheduler_job_archive j FORCE INDEX (", $index, ") WHERE j.", $column, " = ?"),
                concat!("scheduler_job_archive j FORCE INDEX (", $index, ") WHERE j.", $column, " = ?"),
                "j.job_id"
            )
        )
    };
}

pub(crate) static KEPT: Shelf = Shelf {
    all: way!(
        "jobs",
        record_columns,
        kept_counts,
        kept(
            "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE 1 = 1",
            "scheduler_job j WHERE 1 = 1",
            "j.job_id"
        )
    ),
    by_tag: way!(
        "jobs by tag", record_columns, kept_counts,
        kept(
            "scheduler_job_tag t JOIN scheduler_job j ON j.job_id = t.job_id \
             LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id WHERE t.tag = ?",
            "scheduler_job_tag t WHERE t.tag = ?",
            "t.job_id"
        ),
        postgres: by_entries(
            "text", "scheduler_job_tag", "tag", "scheduler_job",
            "LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id", "COALESCE(q.status, j.terminal_status)"
        ),
        // It must not begin with all jobs.
        mysql: kept(
            "scheduler_job_tag t STRAIGHT_JOIN scheduler_job j ON j.job_id = t.job_id \
             LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id WHERE t.tag = ?",
            "scheduler_job_tag t WHERE t.tag = ?",
            "t.job_id"
        )
    ),
    by_business_key: kept_by!("jobs by business key", "business_key", "text", "idx_job_business_key"),
    by_parent: way!(
        "the children of a job", record_columns, kept_counts,
        kept(
            "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.depends_on = ?",
            "scheduler_job j WHERE j.depends_on = ?",
            "j.job_id"
        ),
        postgres: by_entries(
            "uuid", "scheduler_job", "depends_on", "scheduler_job",
            "LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id", "COALESCE(q.status, j.terminal_status)"
        ),
        // It keeps children in a table of their own.
        mysql: kept(
            "scheduler_job_child c STRAIGHT_JOIN scheduler_job j ON j.job_id = c.job_id \
             LEFT JOIN scheduler_job_queue q ON q.job_id = c.job_id WHERE c.parent_id = ?",
            "scheduler_job_child c WHERE c.parent_id = ?",
            "c.job_id"
        )
    ),
    by_principal: kept_by!("jobs by principal", "caller_principal", "text", "idx_job_principal"),
    by_end: kept_by!("ended jobs", "terminal_status", "text", "idx_job_terminal"),
    live: Some(LiveWays {
        all: way!(
            "live jobs", record_columns, kept_counts,
            live(
                "scheduler_job_queue q CROSS JOIN scheduler_job j WHERE j.job_id = q.job_id",
                "scheduler_job_queue q WHERE 1 = 1"
            ),
            postgres: live(
                "scheduler_job_queue q CROSS JOIN LATERAL \
                 (SELECT * FROM scheduler_job c WHERE c.job_id = q.job_id OFFSET 0) j WHERE 1 = 1",
                "scheduler_job_queue q WHERE 1 = 1"
            ),
            mysql: live(
                "scheduler_job_queue q FORCE INDEX (PRIMARY) STRAIGHT_JOIN scheduler_job j ON j.job_id = q.job_id \
                 WHERE 1 = 1",
                "scheduler_job_queue q FORCE INDEX (PRIMARY) WHERE 1 = 1"
            )
        ),
        // However many wait, few run; and those that run were made before those that wait.
        running: way!(
            "running jobs", record_columns, kept_counts,
            live(
                "scheduler_job_queue q INDEXED BY idx_queue_running CROSS JOIN scheduler_job j \
                 WHERE j.job_id = q.job_id AND q.status = /*state:running*/",
                "scheduler_job_queue q INDEXED BY idx_queue_running WHERE q.status = /*state:running*/"
            ),
            postgres: live(
                "(SELECT * FROM scheduler_job_queue r WHERE r.status = /*state:running*/ OFFSET 0) q \
                 CROSS JOIN LATERAL (SELECT * FROM scheduler_job c WHERE c.job_id = q.job_id OFFSET 0) j WHERE 1 = 1",
                "scheduler_job_queue q WHERE q.status = /*state:running*/"
            ),
            mysql: live(
                "scheduler_job_queue q FORCE INDEX (idx_queue_claim) STRAIGHT_JOIN scheduler_job j \
                 ON j.job_id = q.job_id WHERE q.status = /*state:running*/",
                "scheduler_job_queue q FORCE INDEX (idx_queue_claim) WHERE q.status = /*state:running*/"
            )
        )
        .of_few(),
    }),
};

pub(crate) static ARCHIVE: Shelf = Shelf {
    all: way!(
        "archived jobs",
        archived_columns,
        archived_counts,
        archived("scheduler_job_archive j WHERE 1 = 1", "scheduler_job_archive j WHERE 1 = 1", "j.job_id")
    ),
    by_tag: way!(
        "archived jobs by tag", archived_columns, archived_counts,
        archived(
            "scheduler_job_archive_tag t JOIN scheduler_job_archive j ON j.job_id = t.job_id WHERE t.tag = ?",
            "scheduler_job_archive_tag t WHERE t.tag = ?",
            "t.job_id"
        ),
        postgres: by_entries("text", "scheduler_job_archive_tag", "tag", "scheduler_job_archive", "", "j.terminal_status"),
        mysql: archived(
            "scheduler_job_archive_tag t STRAIGHT_JOIN scheduler_job_archive j ON j.job_id = t.job_id WHERE t.tag = ?",
            "scheduler_job_archive_tag t WHERE t.tag = ?",
            "t.job_id"
        )
    ),
    by_business_key: archived_by!("archived jobs by business key", "business_key", "text", "idx_archive_business_key"),
    by_parent: archived_by!("the archived children of a job", "depends_on", "uuid", "idx_archive_depends_on"),
    by_principal: archived_by!("archived jobs by principal", "caller_principal", "text", "idx_archive_principal"),
    by_end: archived_by!("archived jobs by state", "terminal_status", "text", "idx_archive_status"),
    live: None,
};

impl Shelf {
    /// All its statements.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &Stmt> {
        let Self { all, by_tag, by_business_key, by_parent, by_principal, by_end, live } = self;
        let live = live.iter().flat_map(|LiveWays { all, running }| [all, running]);
        let ways = [all, by_tag, by_business_key, by_parent, by_principal, by_end].into_iter().chain(live);
        ways.flat_map(|Way { newest_first, oldest_first, counts }| {
            let looks = [newest_first, oldest_first].into_iter();
            looks.flat_map(|look| std::iter::once(&look.list).chain(&look.reach)).chain([counts])
        })
    }
}
