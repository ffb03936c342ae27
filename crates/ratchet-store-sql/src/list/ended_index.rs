//! For PostgreSQL: entries of an index that begins with a column and goes on with the id.
//!
//! What leads and the id are compared together, and are the order too: so only that index can answer. Asked for one value in the order of
//! ids, the planner may rather walk through all jobs, which takes long if the newest ones have another value. But it ends such a scan
//! only where the first of the two leaves its bound: with the range's other end among the conditions, it would go on to the last entry of
//! the value. So a scan ends by number, and what lies behind the range is left out afterwards.

use ratchet_core::page::PAGE_LIMIT_MAX;

use crate::list::LOOKED_UP_MAX;

/// What leads, and the range of ids, in the order of the other databases' texts.
macro_rules! asked {
    ($lead:literal) => {
        concat!("WITH v AS (SELECT ?::", $lead, " AS lead, ?::uuid AS until, ?::uuid AS since) ")
    };
}
pub(crate) use asked;

/// Entries from where the range begins, as many as `$most` says, as a table; `i` is the row, and what leads is its column `lead`.
macro_rules! entries {
    ($columns:expr, $table:literal, $column:literal, "DESC", $most:literal) => {
        entries!($columns, $table, $column, "<", "until", "DESC", $most)
    };
    ($columns:expr, $table:literal, $column:literal, "ASC", $most:literal) => {
        entries!($columns, $table, $column, ">=", "since", "ASC", $most)
    };
    ($columns:expr, $table:literal, $column:literal, $from:literal, $bound:literal, $direction:literal, $most:literal) => {
        concat!(
            "(SELECT ",
            $columns,
            ", i.",
            $column,
            " AS lead FROM ",
            $table,
            " i WHERE i.",
            $column,
            " IS NOT NULL AND (i.",
            $column,
            ", i.job_id) ",
            $from,
            " ((SELECT lead FROM v), (SELECT ",
            $bound,
            " FROM v)) ORDER BY i.",
            $column,
            " ",
            $direction,
            ", i.job_id ",
            $direction,
            " ",
            $most,
            ")"
        )
    };
}
pub(crate) use entries;

/// An entry is one of those that were asked for.
macro_rules! meant {
    ($row:literal) => {
        concat!(
            $row,
            ".lead = (SELECT lead FROM v) AND ",
            $row,
            ".job_id < (SELECT until FROM v) AND ",
            $row,
            ".job_id >= (SELECT since FROM v)"
        )
    };
}
pub(crate) use meant;

/// As many entries as are looked up together.
macro_rules! looked_up {
    ($columns:literal, $table:literal, $column:literal, $direction:tt) => {
        entries!($columns, $table, $column, $direction, "LIMIT 2000")
    };
}
pub(crate) use looked_up;
const _: () = assert!(LOOKED_UP_MAX == 2_000 && PAGE_LIMIT_MAX < LOOKED_UP_MAX, "`looked_up` says how many");
