//! The columns that several statements share, each listed once, in the order in which they are bound and read.
//!
//! | token | becomes |
//! |---|---|
//! | `/*columns:job.end*/`, `/*columns:job.end j.*/` | the columns of a group, or those of the row `j` |
//! | `/*columns:job.end j.as*/` | the same, under their own names in an answer |
//! | `/*values:job.end*/`, `/*values:job.end as*/` | a placeholder for each, or one with the name of its column |
//! | `/*set:job.end*/` | a placeholder assigned to each |
//! | `/*set:job.end v.*/`, `/*set:job.end j. v.*/` | the column of the row `v` assigned to each, or to that of the row `j` |
//! | `/*clear:job.end*/` | NULL assigned to each |
//!
//! Groups are separated by commas, and `job` is all groups of `job`. In `/*rows:…*/` a group is `@job.end`.

/// A column, and the kind of its values as `/*rows:…*/` spells it.
type Column = (&'static str, &'static str);

const GROUPS: &[(&str, &[Column])] = &[
    // What every job has. Most have nothing else.
    (
        "job.plain",
        &[
            ("job_id", "id"),
            ("kind", "text"),
            ("queue", "text"),
            ("job_type", "text"),
            ("priority", "int"),
            ("payload", "json"),
            ("max_retries", "int"),
            ("backoff_policy", "text"),
            ("backoff_param_us", "int"),
        ],
    ),
    // What a submit may add.
    (
        "job.optional",
        &[
            ("params", "json"),
            ("tags", "json"),
            ("timeout_us", "int"),
            ("resource_name", "text"),
            ("caller_principal", "text"),
            ("idempotency_key", "text"),
            ("business_key", "text"),
            ("on_success", "json"),
            ("on_failure", "json"),
            ("origin", "json"),
            ("depends_on", "id"),
            ("workflow_id", "id"),
            ("step_name", "text"),
        ],
    ),
    // What a live job has in the hot row, and an ended one here.
    ("job.ties", &[("flow", "int"), ("release_delay_us", "int")]),
    // What the settlement that ends a job writes. A live job has the same in its hot row.
    ("job.end", &[("terminal_status", "text"), ("scheduled_time", "time"), ("terminal_error", "text")]),
    ("job.life", &[("version", "int"), ("total_attempts", "int"), ("crash_count", "int")]),
    // What only an ended job has.
    ("job.outcome", &[("terminated_at", "time"), ("job_result", "json")]),
    // The jobs that ended this one.
    ("job.causes", &[("canceled_because", "id"), ("superseded_by", "id")]),
    (
        "job.timing",
        &[
            ("execution_start_time", "time"),
            ("execution_end_time", "time"),
            ("execution_duration_us", "int"),
            ("queue_wait_us", "int"),
            // The node, if the row describes the attempt that succeeded.
            ("ended_by", "id"),
        ],
    ),
    // What filters and counts read of a job, beside its state.
    (
        "head",
        &[
            ("job_id", "id"),
            ("kind", "text"),
            ("queue", "text"),
            ("job_type", "text"),
            ("priority", "int"),
            ("tags", "json"),
            ("business_key", "text"),
            ("depends_on", "id"),
            ("caller_principal", "text"),
            ("terminated_at", "time"),
        ],
    ),
    // What every live job has in the hot row. Its due time is beside it, because some statements compute it.
    ("queue.plain", &[("job_id", "id"), ("status", "text"), ("queue", "text"), ("kind", "text"), ("priority", "int")]),
    // How far a live job has come.
    ("queue.life", &[("version", "int"), ("attempts", "int"), ("crash_count", "int"), ("scheduled_time", "time")]),
    (
        "attempt.plain",
        &[
            ("job_id", "id"),
            ("version", "int"),
            ("attempt", "int"),
            ("node_id", "id"),
            ("status", "text"),
            ("started_at", "time"),
            ("ended_at", "time"),
            ("duration_us", "int"),
            ("queue_wait_us", "int"),
        ],
    ),
    ("attempt.error", &[("error_class", "text"), ("error_message", "text")]),
    // The number of a batch's children, and how they ended.
    (
        "batch.counts",
        &[
            ("total_items", "int"),
            ("completed_items", "int"),
            ("failed_items", "int"),
            ("canceled_items", "int"),
            ("child_execution_us", "int"),
            ("sealed", "bool"),
        ],
    ),
    (
        "edge",
        &[
            ("parent_job_id", "id"),
            ("child_job_id", "id"),
            ("workflow_id", "id"),
            ("condition_type", "text"),
            ("condition_expression", "json"),
            ("description", "text"),
            ("condition_priority", "int"),
            ("definition_order", "int"),
            ("exclusive", "bool"),
            ("status", "text"),
        ],
    ),
    // Lines of a job's log that share a row.
    (
        "log",
        &[
            ("job_id", "id"),
            ("version", "int"),
            ("seq", "int"),
            ("seq_last", "int"),
            ("attempt", "int"),
            ("level", "int"),
            ("node_id", "id"),
            ("logged_at", "time"),
            ("content", "text"),
        ],
    ),
    ("wait", &[("job_id", "id"), ("signal_key", "text"), ("signal_timeout_us", "int"), ("expires_at", "time")]),
    // A signal that has come, for a job or to be taken.
    (
        "signal",
        &[
            ("payload", "json"),
            ("outcome", "text"),
            ("rejection_reason", "text"),
            ("delivered_by", "text"),
            ("delivered_at", "time"),
            ("delivery_id", "id"),
        ],
    ),
    // What a schedule submits, and when.
    (
        "schedule.definition",
        &[
            ("spec", "json"),
            ("on_success", "json"),
            ("on_failure", "json"),
            ("schedule", "json"),
            ("misfire_policy", "text"),
            ("max_catch_up", "int"),
            ("overlap_policy", "text"),
        ],
    ),
    (
        "schedule.life",
        &[
            ("business_key", "text"),
            ("declared", "bool"),
            ("next_fire_time", "time"),
            ("paused", "bool"),
            ("last_fire_time", "time"),
            ("last_job_id", "id"),
            ("fired_count", "int"),
            ("skipped_count", "int"),
            ("created_at", "time"),
            ("updated_at", "time"),
        ],
    ),
];

/// Returns the columns of a group, or of all groups of a table.
fn columns(name: &str) -> Vec<Column> {
    let is_named = |group: &str| group.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let found = GROUPS.iter().filter(|(group, _)| is_named(group)).flat_map(|(_, columns)| columns.iter().copied());
    let found: Vec<Column> = found.collect();
    assert!(!found.is_empty(), "{name} is one of the groups of columns");
    found
}

/// Writes each column of groups, which have commas between them.
fn written(groups: &str, write: impl Fn(&str) -> String) -> String {
    let columns = groups.split(',').flat_map(columns).map(|(column, _)| write(column));
    columns.collect::<Vec<_>>().join(", ")
}

/// Returns what `/*columns:…*/` becomes.
pub(super) fn listed(argument: &str) -> String {
    let (groups, form) = argument.split_once(' ').unwrap_or((argument, ""));
    let (row, named) = form.split_once('.').map_or(("", false), |(row, named)| (row, named == "as"));
    written(groups, |column| match (row, named) {
        ("", _) => column.to_owned(),
        (row, false) => format!("{row}.{column}"),
        (row, true) => format!("{row}.{column} AS {column}"),
    })
}

/// Returns what `/*set:…*/` becomes.
pub(super) fn assigned(argument: &str) -> String {
    let (groups, rows) = argument.split_once(' ').unwrap_or((argument, ""));
    let (to, from) = rows.split_once(' ').unwrap_or(("", rows));
    written(groups, |column| match from {
        "" => format!("{column} = ?"),
        from => format!("{to}{column} = {from}{column}"),
    })
}

/// Returns what `/*clear:…*/` becomes.
pub(super) fn cleared(groups: &str) -> String {
    written(groups, |column| format!("{column} = NULL"))
}

/// Returns what `/*values:…*/` becomes.
pub(super) fn placeholders(argument: &str) -> String {
    let (groups, form) = argument.split_once(' ').unwrap_or((argument, ""));
    written(groups, |column| if form == "as" { format!("? AS {column}") } else { "?".to_owned() })
}

/// Returns the kinds of the columns of `/*rows:…*/`.
pub(super) fn kinds(argument: &str) -> Vec<&str> {
    let kinds = argument.split(' ').flat_map(|word| match word.strip_prefix('@') {
        Some(name) => columns(name).into_iter().map(|(_, kind)| kind).collect(),
        None => vec![word],
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_written_as_it_is_needed() {
        let check = |argument: &str, expected: &str| assert_eq!(listed(argument), expected);
        check("job.ties", "flow, release_delay_us");
        check("job.ties,attempt.error", "flow, release_delay_us, error_class, error_message");
        check("job.ties v.", "v.flow, v.release_delay_us");
        check("job.ties j.as", "j.flow AS flow, j.release_delay_us AS release_delay_us");
        check("attempt", &listed("attempt.plain,attempt.error"));
        assert_eq!(placeholders("job.ties"), "?, ?");
        assert_eq!(placeholders("job.ties as"), "? AS flow, ? AS release_delay_us");
        assert_eq!(assigned("job.ties"), "flow = ?, release_delay_us = ?");
        assert_eq!(assigned("job.ties v."), "flow = v.flow, release_delay_us = v.release_delay_us");
        assert_eq!(assigned("job.ties j. v."), "j.flow = v.flow, j.release_delay_us = v.release_delay_us");
        assert_eq!(cleared("job.ties"), "flow = NULL, release_delay_us = NULL");
        assert_eq!(kinds("id @job.ties time"), ["id", "int", "int", "time"]);
    }

    #[test]
    fn a_column_is_listed_once_for_each_table() {
        for (at, (name, columns)) in GROUPS.iter().enumerate() {
            let table = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
            let others = GROUPS[at + 1..].iter().filter(|(other, _)| table(other) == table(name));
            for (_, other) in others {
                let twice = other.iter().find(|(column, _)| columns.iter().any(|(listed, _)| listed == column));
                assert_eq!(twice, None, "{name}");
            }
        }
    }
}
