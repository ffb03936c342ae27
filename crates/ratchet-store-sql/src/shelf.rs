//! The ways into the jobs that are listed, where they ended and in the archive: each follows one index, newest job first.

use crate::archived::archived_columns;
use crate::read::record_columns;
use crate::stmt::Stmt;

/// One way into the jobs.
pub(crate) struct Way {
    /// Lists. Its values: what leads if something does, until and since which job, the states, the columns that narrow, how many.
    pub(crate) list: Stmt,
    /// Tells how far so many entries of the index go. Its values: what leads if something does, until and since which job, how many
    /// before. `None` if the index never has many.
    pub(crate) floor: Option<Stmt>,
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

/// What every list has after its lead; `$row` is one that knows kind and queue.
macro_rules! narrowed {
    ($state:literal, $row:literal, $order:expr) => {
        concat!(
            $state,
            " IN (/*each*/?/*end*/) AND (? IS NULL OR ",
            $row,
            ".kind = ?) AND (? IS NULL OR ",
            $row,
            ".queue = ?) AND (? IS NULL OR j.business_key = ?) AND (? IS NULL OR j.depends_on = ?) \
             AND (? IS NULL OR j.caller_principal = ?) ORDER BY ",
            $order,
            " LIMIT ?"
        )
    };
}

/// Jobs from `$from`, whose last words are a condition.
macro_rules! list {
    ($columns:expr, $from:expr, $id:literal, $state:literal, $row:literal) => {
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
            narrowed!($state, $row, concat!($id, " DESC"))
        )
    };
}

macro_rules! floor {
    ($from:expr, $id:literal) => {
        concat!(
            "SELECT ",
            $id,
            " AS job_id FROM ",
            $from,
            " AND ",
            $id,
            " < ? AND ",
            $id,
            " >= ? ORDER BY ",
            $id,
            " DESC LIMIT 1 OFFSET ?"
        )
    };
}

/// For PostgreSQL: what leads, and the range of ids, in the order of the other texts.
macro_rules! asked {
    ($lead:literal) => {
        concat!("WITH v AS (SELECT ?::", $lead, " AS lead, ?::uuid AS until, ?::uuid AS since) ")
    };
}
pub(crate) use asked;

/// For PostgreSQL: a row is one of those that were asked for, by an index that begins with `$column` and goes on with the id. If both
/// are compared together, and are the order too, only that index can answer. Asked for one value, in the order of ids, the planner
/// may rather walk through all jobs, which takes long if the newest ones have another value.
macro_rules! within {
    ($row:literal, $column:literal) => {
        concat!(
            $row,
            ".",
            $column,
            " IS NOT NULL AND (",
            $row,
            ".",
            $column,
            ", ",
            $row,
            ".job_id) < ((SELECT lead FROM v), (SELECT until FROM v)) AND (",
            $row,
            ".",
            $column,
            ", ",
            $row,
            ".job_id) >= ((SELECT lead FROM v), (SELECT since FROM v))"
        )
    };
}
pub(crate) use within;

/// For PostgreSQL: the order of such rows.
macro_rules! newest_first {
    ($row:literal, $column:literal) => {
        concat!($row, ".", $column, " DESC, ", $row, ".job_id DESC")
    };
}
pub(crate) use newest_first;

/// For PostgreSQL: the entries of an index, then each job by its key; `$rest` is joined to them. What has an offset is planned by itself:
/// otherwise the planner may merge the entries with all jobs.
macro_rules! list_within {
    ($columns:expr, $lead:literal, $table:literal, $column:literal, $jobs:literal, $rest:literal, $state:literal) => {
        concat!(
            asked!($lead),
            "SELECT ",
            $columns,
            " FROM (SELECT i.job_id, i.",
            $column,
            " AS lead FROM ",
            $table,
            " i WHERE ",
            within!("i", $column),
            " ORDER BY ",
            newest_first!("i", $column),
            " OFFSET 0) t CROSS JOIN LATERAL (SELECT * FROM ",
            $jobs,
            " c WHERE c.job_id = t.job_id OFFSET 0) j ",
            $rest,
            " WHERE ",
            narrowed!($state, "j", newest_first!("t", "lead"))
        )
    };
}

/// For PostgreSQL.
macro_rules! floor_within {
    ($lead:literal, $table:literal, $column:literal) => {
        concat!(
            asked!($lead),
            "SELECT i.job_id AS job_id FROM ",
            $table,
            " i WHERE ",
            within!("i", $column),
            " ORDER BY ",
            newest_first!("i", $column),
            " LIMIT 1 OFFSET ?"
        )
    };
}

/// Jobs that are not archived.
macro_rules! kept {
    ($from:expr, $id:literal) => {
        list!(record_columns!(), $from, $id, "COALESCE(q.status, j.terminal_status)", "j")
    };
}

/// Jobs that have not ended: what the hot row knows is asked of it, so that cold rows are read of those only that are meant.
macro_rules! live {
    ($from:expr) => {
        list!(record_columns!(), $from, "q.job_id", "q.status", "q")
    };
}

/// For PostgreSQL.
macro_rules! kept_within {
    ($lead:literal, $table:literal, $column:literal) => {
        list_within!(
            record_columns!(),
            $lead,
            $table,
            $column,
            "scheduler_job",
            "LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id",
            "COALESCE(q.status, j.terminal_status)"
        )
    };
}

/// Jobs that are not archived, by a column of their own, which begins `$index`.
macro_rules! kept_by {
    ($doing:literal, $floor:literal, $column:literal, $lead:literal, $index:literal) => {
        Way {
            list: Stmt::shared(
                $doing,
                kept!(
                    concat!(
                        "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.",
                        $column,
                        " = ?"
                    ),
                    "j.job_id"
                ),
            )
            .postgres(kept_within!($lead, "scheduler_job", $column))
            // The order by primary key tempts it to read all jobs.
            .mysql(kept!(
                concat!(
                    "scheduler_job j FORCE INDEX (",
                    $index,
                    ") LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.",
                    $column,
                    " = ?"
                ),
                "j.job_id"
            )),
            floor: Some(
                Stmt::shared($floor, floor!(concat!("scheduler_job j WHERE j.", $column, " = ?"), "j.job_id"))
                    .postgres(floor_within!($lead, "scheduler_job", $column))
                    .mysql(floor!(
                        concat!("scheduler_job j FORCE INDEX (", $index, ") WHERE j.", $column, " = ?"),
                        "j.job_id"
                    )),
            ),
        }
    };
}

macro_rules! archived {
    ($from:expr, $id:literal) => {
        list!(archived_columns!(), $from, $id, "j.terminal_status", "j")
    };
}

/// For PostgreSQL.
macro_rules! archived_within {
    ($lead:literal, $table:literal, $column:literal) => {
        list_within!(archived_columns!(), $lead, $table, $column, "scheduler_job_archive", "", "j.terminal_status")
    };
}

/// Archived jobs by a column of their own, which begins `$index`.
macro_rules! archived_by {
    ($doing:literal, $floor:literal, $column:literal, $lead:literal, $index:literal) => {
        Way {
            list: Stmt::shared(
                $doing,
                archived!(concat!("scheduler_job_archive j WHERE j.", $column, " = ?"), "j.job_id"),
            )
            .postgres(archived_within!($lead, "scheduler_job_archive", $column))
            .mysql(archived!(
                concat!("scheduler_job_archive j FORCE INDEX (", $index, ") WHERE j.", $column, " = ?"),
                "j.job_id"
            )),
            floor: Some(
                Stmt::shared($floor, floor!(concat!("scheduler_job_archive j WHERE j.", $column, " = ?"), "j.job_id"))
                    .postgres(floor_within!($lead, "scheduler_job_archive", $column))
                    .mysql(floor!(
                        concat!("scheduler_job_archive j FORCE INDEX (", $index, ") WHERE j.", $column, " = ?"),
                        "j.job_id"
                    )),
            ),
        }
    };
}

pub(crate) static KEPT: Shelf = Shelf {
    all: Way {
        list: Stmt::shared(
            "listing jobs",
            kept!("scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE 1 = 1", "j.job_id"),
        ),
        floor: Some(Stmt::shared(
            "looking how far a page of jobs goes",
            floor!("scheduler_job j WHERE 1 = 1", "j.job_id"),
        )),
    },
    by_tag: Way {
        list: Stmt::shared(
            "listing jobs by tag",
            kept!(
                "scheduler_job_tag t JOIN scheduler_job j ON j.job_id = t.job_id \
                 LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id WHERE t.tag = ?",
                "t.job_id"
            ),
        )
        .postgres(kept_within!("text", "scheduler_job_tag", "tag"))
        // It must not begin with all jobs.
        .mysql(kept!(
            "scheduler_job_tag t STRAIGHT_JOIN scheduler_job j ON j.job_id = t.job_id \
             LEFT JOIN scheduler_job_queue q ON q.job_id = t.job_id WHERE t.tag = ?",
            "t.job_id"
        )),
        floor: Some(
            Stmt::shared(
                "looking how far a page of jobs with a tag goes",
                floor!("scheduler_job_tag t WHERE t.tag = ?", "t.job_id"),
            )
            .postgres(floor_within!("text", "scheduler_job_tag", "tag")),
        ),
    },
    by_business_key: kept_by!(
        "listing jobs by business key",
        "looking how far a page of jobs with a business key goes",
        "business_key",
        "text",
        "idx_job_business_key"
    ),
    by_parent: Way {
        list: Stmt::shared(
            "listing the children of a job",
            kept!(
                "scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.depends_on = ?",
                "j.job_id"
            ),
        )
        .postgres(kept_within!("uuid", "scheduler_job", "depends_on"))
        .mysql(kept!(
            "scheduler_job_child c STRAIGHT_JOIN scheduler_job j ON j.job_id = c.job_id \
             LEFT JOIN scheduler_job_queue q ON q.job_id = c.job_id WHERE c.parent_id = ?",
            "c.job_id"
        )),
        floor: Some(
            Stmt::shared(
                "looking how far a page of children goes",
                floor!("scheduler_job j WHERE j.depends_on = ?", "j.job_id"),
            )
            .postgres(floor_within!("uuid", "scheduler_job", "depends_on"))
            .mysql(floor!("scheduler_job_child c WHERE c.parent_id = ?", "c.job_id")),
        ),
    },
    by_principal: kept_by!(
        "listing jobs by principal",
        "looking how far a page of a principal's jobs goes",
        "caller_principal",
        "text",
        "idx_job_principal"
    ),
    by_end: kept_by!(
        "listing ended jobs",
        "looking how far a page of ended jobs goes",
        "terminal_status",
        "text",
        "idx_job_terminal"
    ),
    live: Some(LiveWays {
        all: Way {
            list: Stmt::shared(
                "listing live jobs",
                live!("scheduler_job_queue q CROSS JOIN scheduler_job j WHERE j.job_id = q.job_id"),
            )
            .postgres(live!(
                "scheduler_job_queue q CROSS JOIN LATERAL \
                 (SELECT * FROM scheduler_job c WHERE c.job_id = q.job_id OFFSET 0) j WHERE 1 = 1"
            ))
            .mysql(live!(
                "scheduler_job_queue q FORCE INDEX (PRIMARY) STRAIGHT_JOIN scheduler_job j ON j.job_id = q.job_id \
                 WHERE 1 = 1"
            )),
            floor: Some(
                Stmt::shared(
                    "looking how far a page of live jobs goes",
                    floor!("scheduler_job_queue q WHERE 1 = 1", "q.job_id"),
                )
                .mysql(floor!("scheduler_job_queue q FORCE INDEX (PRIMARY) WHERE 1 = 1", "q.job_id")),
            ),
        },
        // However many wait, few run; and those that run were made before those that wait.
        running: Way {
            list: Stmt::shared(
                "listing running jobs",
                live!(
                    "scheduler_job_queue q INDEXED BY idx_queue_running CROSS JOIN scheduler_job j \
                     WHERE j.job_id = q.job_id AND q.status = /*state:running*/"
                ),
            )
            .postgres(live!(
                "(SELECT * FROM scheduler_job_queue r WHERE r.status = /*state:running*/ OFFSET 0) q \
                 CROSS JOIN LATERAL (SELECT * FROM scheduler_job c WHERE c.job_id = q.job_id OFFSET 0) j WHERE 1 = 1"
            ))
            .mysql(live!(
                "scheduler_job_queue q FORCE INDEX (idx_queue_claim) STRAIGHT_JOIN scheduler_job j \
                 ON j.job_id = q.job_id WHERE q.status = /*state:running*/"
            )),
            floor: None,
        },
    }),
};

pub(crate) static ARCHIVE: Shelf = Shelf {
    all: Way {
        list: Stmt::shared("listing archived jobs", archived!("scheduler_job_archive j WHERE 1 = 1", "j.job_id")),
        floor: Some(Stmt::shared(
            "looking how far a page of archived jobs goes",
            floor!("scheduler_job_archive j WHERE 1 = 1", "j.job_id"),
        )),
    },
    by_tag: Way {
        list: Stmt::shared(
            "listing archived jobs by tag",
            archived!(
                "scheduler_job_archive_tag t JOIN scheduler_job_archive j ON j.job_id = t.job_id WHERE t.tag = ?",
                "t.job_id"
            ),
        )
        .postgres(archived_within!("text", "scheduler_job_archive_tag", "tag"))
        .mysql(archived!(
            "scheduler_job_archive_tag t STRAIGHT_JOIN scheduler_job_archive j ON j.job_id = t.job_id WHERE t.tag = ?",
            "t.job_id"
        )),
        floor: Some(
            Stmt::shared(
                "looking how far a page of archived jobs with a tag goes",
                floor!("scheduler_job_archive_tag t WHERE t.tag = ?", "t.job_id"),
            )
            .postgres(floor_within!("text", "scheduler_job_archive_tag", "tag")),
        ),
    },
    by_business_key: archived_by!(
        "listing archived jobs by business key",
        "looking how far a page of archived jobs with a business key goes",
        "business_key",
        "text",
        "idx_archive_business_key"
    ),
    by_parent: archived_by!(
        "listing the archived children of a job",
        "looking how far a page of archived children goes",
        "depends_on",
        "uuid",
        "idx_archive_depends_on"
    ),
    by_principal: archived_by!(
        "listing archived jobs by principal",
        "looking how far a page of a principal's archived jobs goes",
        "caller_principal",
        "text",
        "idx_archive_principal"
    ),
    by_end: archived_by!(
        "listing archived jobs by state",
        "looking how far a page of archived jobs of a state goes",
        "terminal_status",
        "text",
        "idx_archive_status"
    ),
    live: None,
};

impl Shelf {
    /// All its statements.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &Stmt> {
        let Self { all, by_tag, by_business_key, by_parent, by_principal, by_end, live } = self;
        let live = live.iter().flat_map(|LiveWays { all, running }| [all, running]);
        let ways = [all, by_tag, by_business_key, by_parent, by_principal, by_end].into_iter().chain(live);
        ways.flat_map(|way| std::iter::once(&way.list).chain(&way.floor))
    }
}
