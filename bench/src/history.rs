//! A long history: ended jobs, written straight into the tables. Letting ten million jobs run would take hours.

use anyhow::Result;
use ratchet::Timestamp;

use crate::bare::Bare;

/// One of twenty kinds.
pub const KIND: &str = "bench.kind-13";
/// The kind of one job in a hundred thousand.
pub const RARE_KIND: &str = "bench.rare";
/// One of five queues.
pub const QUEUE: &str = "bench.queue-3";
/// The tag of one job in eleven.
pub const TAG: &str = "bench.tag";
/// Whom one job in thirteen was submitted for.
pub const PRINCIPAL: &str = "ann";
/// Whom one job in a hundred thousand was submitted for.
pub const RARE_PRINCIPAL: &str = "zoe";

/// Over how many days the jobs ended: fewer than those after which a node archives them.
const DAYS: i64 = 80;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Jobs of one statement: few enough for one transaction.
const PORTION: u64 = 200_000;
/// For so many jobs one more is in the archive.
const PER_ARCHIVED: u64 = 10;

/// Fills an empty database with jobs that ended in the eighty days until `now`, and a tenth as many that were archived, made
/// in the eighty days before. Ninety of a hundred succeeded, eight failed, two were cancelled; each had one attempt.
pub async fn fill(bare: &mut Bare, jobs: u64, now: Timestamp) -> Result<()> {
    // The last ones, too, have ended: a second after they were made, or sooner.
    let until = now.as_millisecond() - 60_000;
    let [older, old] = [2, 1].map(|times| until - times * DAYS * DAY_MS);
    for portion in portions(older, jobs / PER_ARCHIVED)? {
        let columns = [("archived_at", time(bare, &until.to_string()))];
        bare.run(&insert_jobs(bare, "scheduler_job_archive", &portion, &columns)).await?;
        bare.run(&insert_tags(bare, "scheduler_job_archive_tag", &portion)).await?;
    }
    for portion in portions(old, jobs)? {
        bare.run(&insert_jobs(bare, "scheduler_job", &portion, &[])).await?;
        bare.run(&insert_tags(bare, "scheduler_job_tag", &portion)).await?;
        bare.run(&insert_executions(bare, &portion)).await?;
    }
    for statement in tidy(bare) {
        bare.run(statement).await?;
    }
    Ok(())
}

/// What the server would do of itself, while something is measured.
fn tidy(bare: &Bare) -> &'static [&'static str] {
    match bare {
        // No ANALYZE: the product never asks for one, so a file in use has no statistics either.
        Bare::Sqlite(_) => &["PRAGMA wal_checkpoint(TRUNCATE)"],
        Bare::Postgres(_) => &["VACUUM ANALYZE", "CHECKPOINT"],
        Bare::Mysql(_) => {
            &["ANALYZE TABLE scheduler_job, scheduler_job_tag, scheduler_job_execution, scheduler_job_archive"]
        }
    }
}

/// Jobs that are written by one statement.
struct Portion {
    from: u64,
    until: u64,
    /// When job 0 was made, and from each to the next, in milliseconds.
    begin: i64,
    step: i64,
}

fn portions(begin: i64, jobs: u64) -> Result<impl Iterator<Item = Portion>> {
    let step = DAYS * DAY_MS / i64::try_from(jobs.max(1))?;
    let first = (1..=jobs).step_by(usize::try_from(PORTION)?);
    Ok(first.map(move |from| Portion { from, until: jobs.min(from + PORTION - 1), begin, step }))
}

/// A query for the jobs of a portion: `n` the number, `job_id`, `ms` when it was made, `state` how it ended.
///
/// All that differs between jobs is a remainder of the number. What must not go together has divisors without a common one.
fn made(bare: &Bare, portion: &Portion) -> String {
    let Portion { from, until, begin, step } = portion;
    let ms = format!("({begin} + n * {step})");
    // A UUID of version 7: the time, then bits that are scattered.
    let hex = |number: &str, width: usize| match bare {
        Bare::Sqlite(_) => format!("printf('%0{width}x', {number})"),
        Bare::Postgres(_) => format!("lpad(to_hex({number}), {width}, '0')"),
        Bare::Mysql(_) => format!("LPAD(HEX({number}), {width}, '0')"),
    };
    let [time, counter, end] = [hex(&ms, 12), hex("n % 4096", 3), hex("n * 2654435761 % 4294967296", 8)];
    let digits = format!("{time} || '7' || {counter} || '80000000' || {end}");
    let (id, numbers) = match bare {
        Bare::Sqlite(_) => {
            let numbers = format!("SELECT {from} AS n UNION ALL SELECT n + 1 FROM s WHERE n < {until}");
            (format!("unhex({digits})"), format!("(WITH RECURSIVE s AS ({numbers}) SELECT n FROM s)"))
        }
        Bare::Postgres(_) => {
            (format!("CAST({digits} AS uuid)"), format!("generate_series({from}::bigint, {until}) AS s (n)"))
        }
        Bare::Mysql(_) => (format!("UNHEX({digits})"), format!("(SELECT seq AS n FROM seq_{from}_to_{until}) s")),
    };
    format!(
        "SELECT n, {id} AS job_id, {ms} AS ms, CASE WHEN n % 101 < 2 THEN 'CANCELED' WHEN n % 101 < 10 THEN 'FAILED' \
         ELSE 'SUCCEEDED' END AS state FROM {numbers}"
    )
}

const BEGAN_MS: &str = "ms + 5";
const ENDED_MS: &str = "ms + 5 + n % 1000";
const DURATION_US: &str = "n % 1000 * 1000";
const WAIT_US: &str = "5000";
const ERROR: &str = "CASE WHEN state = 'FAILED' THEN 'Unreachable: gateway ' || n || ' is silent' END";

fn insert_jobs(bare: &Bare, table: &str, portion: &Portion, more: &[(&str, String)]) -> String {
    let [made_at, began_at, ended_at] = ["ms", BEGAN_MS, ENDED_MS].map(|ms| time(bare, ms));
    let mut columns = vec![
        ("job_id", "job_id".to_owned()),
        ("kind", format!("CASE WHEN n % 100000 = 1 THEN '{RARE_KIND}' ELSE 'bench.kind-' || (n % 20 + 1) END")),
        ("queue", "'bench.queue-' || (n % 5 + 1)".to_owned()),
        ("job_type", "'SINGLE'".to_owned()),
        ("priority", "2".to_owned()),
        ("payload", json(bare, "'{\"n\":' || n || '}'")),
        ("tags", json(bare, &format!("CASE WHEN n % 11 = 0 THEN '[\"{TAG}\"]' END"))),
        ("max_retries", "3".to_owned()),
        ("backoff_policy", "'EXPONENTIAL'".to_owned()),
        ("backoff_param_us", "1000000".to_owned()),
        (
            "caller_principal",
            format!("CASE WHEN n % 100000 = 2 THEN '{RARE_PRINCIPAL}' WHEN n % 13 = 0 THEN '{PRINCIPAL}' END"),
        ),
        ("created_at", made_at.clone()),
        ("version", "2".to_owned()),
        ("terminal_status", "state".to_owned()),
        ("terminal_error", ERROR.to_owned()),
        ("total_attempts", "CASE WHEN state = 'CANCELED' THEN 0 ELSE 1 END".to_owned()),
        ("crash_count", "0".to_owned()),
        ("scheduled_time", made_at),
        ("terminated_at", ended_at.clone()),
        ("execution_start_time", began_at),
        ("execution_end_time", ended_at),
        ("execution_duration_us", DURATION_US.to_owned()),
        ("queue_wait_us", WAIT_US.to_owned()),
        ("job_result", json(bare, "CASE WHEN state = 'SUCCEEDED' THEN '' || n END")),
        ("flow", "0".to_owned()),
    ];
    columns.extend_from_slice(more);
    insert(table, &columns, &made(bare, portion))
}

fn insert_tags(bare: &Bare, table: &str, portion: &Portion) -> String {
    let columns = [("tag", format!("'{TAG}'")), ("job_id", "job_id".to_owned())];
    insert(table, &columns, &format!("{} WHERE n % 11 = 0", made(bare, portion)))
}

fn insert_executions(bare: &Bare, portion: &Portion) -> String {
    let node = match bare {
        Bare::Sqlite(_) | Bare::Mysql(_) => "x'0198f2a17c0070008000000000000001'",
        Bare::Postgres(_) => "uuid '0198f2a1-7c00-7000-8000-000000000001'",
    };
    let columns = [
        ("job_id", "job_id".to_owned()),
        ("version", "1".to_owned()),
        ("attempt", "1".to_owned()),
        ("node_id", node.to_owned()),
        ("status", "state".to_owned()),
        ("started_at", time(bare, BEGAN_MS)),
        ("ended_at", time(bare, ENDED_MS)),
        ("duration_us", DURATION_US.to_owned()),
        ("queue_wait_us", WAIT_US.to_owned()),
        ("error_class", "CASE WHEN state = 'FAILED' THEN 'Unreachable' END".to_owned()),
        ("error_message", ERROR.to_owned()),
    ];
    insert("scheduler_job_execution", &columns, &made(bare, portion))
}

fn insert(table: &str, columns: &[(&str, String)], of: &str) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let values: Vec<&str> = columns.iter().map(|(_, value)| value.as_str()).collect();
    format!("INSERT INTO {table} ({}) SELECT {} FROM ({of}) m", names.join(", "), values.join(", "))
}

/// A time, of milliseconds since 1970.
fn time(bare: &Bare, ms: &str) -> String {
    match bare {
        Bare::Sqlite(_) => format!("({ms}) * 1000"),
        Bare::Postgres(_) => format!("timestamptz 'epoch' + ({ms}) * interval '1 millisecond'"),
        Bare::Mysql(_) => format!("timestamp '1970-01-01 00:00:00' + INTERVAL ({ms}) * 1000 MICROSECOND"),
    }
}

fn json(bare: &Bare, text: &str) -> String {
    match bare {
        Bare::Sqlite(_) | Bare::Mysql(_) => text.to_owned(),
        Bare::Postgres(_) => format!("CAST({text} AS jsonb)"),
    }
}
