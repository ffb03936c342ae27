//! A long history: jobs that are written straight into the tables of an empty database, and lists that are read of them. Letting ten
//! million jobs run would take hours.

use ratchet_core::page::{JobFilter, ListOrder};
use ratchet_core::{JobState, JobType, Kind, Principal, Priority, QueueName, Tag, Timestamp};

/// Whose SQL the statements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sql {
    /// SQLite's.
    Sqlite,
    /// PostgreSQL's.
    Postgres,
    /// MariaDB's; MySQL lacks its tables of numbers.
    Mariadb,
}

/// One of twenty kinds.
const KIND: &str = "bench.kind-13";
/// One of five queues.
const QUEUE: &str = "bench.queue-3";
/// The tag of one job in eleven.
const TAG: &str = "bench.tag";
/// Whom one job in thirteen was submitted for.
const PRINCIPAL: &str = "ann";
/// What one job in a hundred thousand has, as its kind, its tag, or whom it was submitted for; another one was canceled.
const RARE: &str = "bench.rare";

/// A kind that many jobs have.
pub(crate) fn kind() -> Option<Kind> {
    Kind::new(KIND).ok()
}

/// What lists are narrowed to, each with its name.
pub fn lists() -> Vec<(&'static str, JobFilter)> {
    let all = JobFilter::default;
    let kind = |name| JobFilter { kind: Some(Kind::new(name).expect("a kind")), ..all() };
    let tag = |name| JobFilter { tag: Some(Tag::new(name).expect("a tag")), ..all() };
    let principal = |name| JobFilter { principal: Some(Principal::new(name).expect("a principal")), ..all() };
    let state = |state| JobFilter { states: vec![state], ..all() };
    vec![
        ("nothing", all()),
        ("state", state(JobState::Failed)),
        ("kind", kind(KIND)),
        ("queue", JobFilter { queue: Some(QueueName::new(QUEUE).expect("a queue")), ..all() }),
        ("tag", tag(TAG)),
        ("principal", principal(PRINCIPAL)),
        ("state and kind", JobFilter { states: vec![JobState::Failed], ..kind(KIND) }),
        ("rare state", state(JobState::Canceled)),
        ("rare kind", kind(RARE)),
        ("rare tag", tag(RARE)),
        ("rare principal", principal(RARE)),
        ("tag and a rare kind", JobFilter { tag: tag(TAG).tag, ..kind(RARE) }),
        ("running", state(JobState::Running)),
        ("paused", state(JobState::Paused)),
        ("priority", JobFilter { priority: Some(Priority::Critical), ..all() }),
        ("type", JobFilter { job_type: Some(JobType::Callback), ..all() }),
        ("failed long ago", JobFilter { ended_until: Some(Timestamp::UNIX_EPOCH), ..state(JobState::Failed) }),
        ("oldest first", JobFilter { order: ListOrder::Oldest, ..all() }),
        ("oldest of a kind first", JobFilter { order: ListOrder::Oldest, ..kind(KIND) }),
        ("oldest of a tag first", JobFilter { order: ListOrder::Oldest, ..tag(TAG) }),
        ("oldest pending first", JobFilter { order: ListOrder::Oldest, ..state(JobState::Pending) }),
        ("by priority", JobFilter { order: ListOrder::Priority, ..all() }),
        ("pending by priority", JobFilter { order: ListOrder::Priority, ..state(JobState::Pending) }),
        ("pending of a rare kind", JobFilter { states: vec![JobState::Pending], ..kind(RARE) }),
    ]
}

/// Over how many days the jobs ended: fewer than those after which a node archives them.
const DAYS: i64 = 80;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Jobs of one statement: few enough for one transaction.
const RANGE_JOBS: u64 = 200_000;
/// For so many jobs one more is in the archive.
const PER_ARCHIVED: u64 = 10;

impl Sql {
    /// Statements that fill an empty database with jobs that ended in the eighty days until `now_ms`, and a tenth as many that were
    /// archived, made in the eighty days before. Of a hundred about ten failed; each had one attempt.
    pub fn history(self, jobs: u64, now_ms: i64) -> impl Iterator<Item = String> {
        // The last ones, too, have ended: a second after they were made, or sooner.
        let until = now_ms - 60_000;
        let [older, old] = [2, 1].map(|times| until - times * DAYS * DAY_MS);
        let archived = ranges(older, jobs / PER_ARCHIVED).flat_map(move |range| {
            let columns = [ended(self), vec![("archived_at", self.time(&until.to_string()))]].concat();
            [
                self.insert_jobs("scheduler_job_archive", &range, columns),
                self.insert_tags("scheduler_job_archive_tag", &range),
            ]
        });
        let kept = ranges(old, jobs).flat_map(move |range| {
            [
                self.insert_jobs("scheduler_job", &range, ended(self)),
                self.insert_tags("scheduler_job_tag", &range),
                self.insert_executions(&range),
            ]
        });
        archived.chain(kept).chain(self.tidy().iter().map(|text| (*text).to_owned()))
    }

    /// Statements that let jobs wait, one made each millisecond until `now_ms`; the first five run.
    pub fn backlog(self, jobs: u64, now_ms: i64) -> impl Iterator<Item = String> {
        let begin = now_ms - i64::try_from(jobs).unwrap_or(0);
        let waiting = ranges_from(jobs, begin, 1).flat_map(move |range| {
            let columns = [
                ("job_id", "job_id".to_owned()),
                ("status", "CASE WHEN n <= 5 THEN 'RUNNING' ELSE 'PENDING' END".to_owned()),
                ("queue", QUEUES.to_owned()),
                ("kind", kinds()),
                ("priority", "2".to_owned()),
                ("scheduled_time", self.time("ms")),
                ("picked_by", format!("CASE WHEN n <= 5 THEN {} END", self.node())),
                ("updated_at", self.time("ms")),
            ];
            [
                self.insert_jobs("scheduler_job", &range, Vec::new()),
                insert("scheduler_job_queue", &columns, &self.made(&range)),
            ]
        });
        waiting.chain(self.tidy().iter().map(|text| (*text).to_owned()))
    }

    /// What the server would do of itself, while something is measured.
    pub fn tidy(self) -> &'static [&'static str] {
        match self {
            // No ANALYZE: the product never asks for one, so a file in use has no statistics either.
            Self::Sqlite => &["PRAGMA wal_checkpoint(TRUNCATE)"],
            Self::Postgres => &["VACUUM ANALYZE", "CHECKPOINT"],
            Self::Mariadb => &["ANALYZE TABLE scheduler_job, scheduler_job_queue, scheduler_job_tag, \
                            scheduler_job_execution, scheduler_job_archive, scheduler_job_archive_tag"],
        }
    }

    /// A query for the jobs of a range: `n` the number, `job_id`, `ms` when it was made, `state` how it ended.
    ///
    /// All that differs between jobs is a remainder of the number. What must not go together has divisors without a common one.
    fn made(self, range: &JobRange) -> String {
        let JobRange { from, until, begin, step } = range;
        let ms = format!("({begin} + n * {step})");
        // A UUID of version 7: the time, then bits that are scattered.
        let hex = |number: &str, width: usize| match self {
            Self::Sqlite => format!("printf('%0{width}x', {number})"),
            Self::Postgres => format!("lpad(to_hex({number}), {width}, '0')"),
            Self::Mariadb => format!("LPAD(HEX({number}), {width}, '0')"),
        };
        let [time, counter, end] = [hex(&ms, 12), hex("n % 4096", 3), hex("n * 2654435761 % 4294967296", 8)];
        let digits = format!("{time} || '7' || {counter} || '80000000' || {end}");
        let (id, numbers) = match self {
            Self::Sqlite => {
                let numbers = format!("SELECT {from} AS n UNION ALL SELECT n + 1 FROM s WHERE n < {until}");
                (format!("unhex({digits})"), format!("(WITH RECURSIVE s AS ({numbers}) SELECT n FROM s)"))
            }
            Self::Postgres => {
                (format!("CAST({digits} AS uuid)"), format!("generate_series({from}::bigint, {until}) AS s (n)"))
            }
            Self::Mariadb => (format!("UNHEX({digits})"), format!("(SELECT seq AS n FROM seq_{from}_to_{until}) s")),
        };
        format!(
            "SELECT n, {id} AS job_id, {ms} AS ms, CASE WHEN n % 100000 = 3 THEN 'CANCELED' WHEN n % 101 < 10 THEN 'FAILED' \
         ELSE 'SUCCEEDED' END AS state FROM {numbers}"
        )
    }

    fn insert_jobs(self, table: &str, range: &JobRange, more: Vec<(&str, String)>) -> String {
        let mut columns = vec![
            ("job_id", "job_id".to_owned()),
            ("kind", kinds()),
            ("queue", QUEUES.to_owned()),
            ("job_type", "'SINGLE'".to_owned()),
            ("priority", "2".to_owned()),
            ("payload", self.json("'{\"n\":' || n || '}'")),
            ("tags", self.json(&format!("CASE WHEN {HAS_TAG} THEN '[\"' || {} || '\"]' END", tags()))),
            ("max_retries", "3".to_owned()),
            ("backoff_policy", "'EXPONENTIAL'".to_owned()),
            ("backoff_param_us", "1000000".to_owned()),
            (
                "caller_principal",
                format!("CASE WHEN n % 100000 = 2 THEN '{RARE}' WHEN n % 13 = 0 THEN '{PRINCIPAL}' END"),
            ),
            ("created_at", self.time("ms")),
            ("version", "2".to_owned()),
            ("crash_count", "0".to_owned()),
            ("flow", "0".to_owned()),
        ];
        columns.extend(more);
        insert(table, &columns, &self.made(range))
    }

    fn insert_tags(self, table: &str, range: &JobRange) -> String {
        let columns = [("tag", tags()), ("job_id", "job_id".to_owned())];
        insert(table, &columns, &format!("{} WHERE {HAS_TAG}", self.made(range)))
    }

    fn node(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Mariadb => "x'0198f2a17c0070008000000000000001'",
            Self::Postgres => "uuid '0198f2a1-7c00-7000-8000-000000000001'",
        }
    }

    fn insert_executions(self, range: &JobRange) -> String {
        let columns = [
            ("job_id", "job_id".to_owned()),
            ("version", "1".to_owned()),
            ("attempt", "1".to_owned()),
            ("node_id", self.node().to_owned()),
            ("status", "state".to_owned()),
            ("started_at", self.time(BEGAN_MS)),
            ("ended_at", self.time(ENDED_MS)),
            ("duration_us", DURATION_US.to_owned()),
            ("queue_wait_us", WAIT_US.to_owned()),
            ("error_class", "CASE WHEN state = 'FAILED' THEN 'Unreachable' END".to_owned()),
            ("error_message", ERROR.to_owned()),
        ];
        // Of a success the row of its job says the same.
        insert("scheduler_job_execution", &columns, &self.made(range)) + " WHERE state <> 'SUCCEEDED'"
    }

    /// A time, of milliseconds since 1970.
    fn time(self, ms: &str) -> String {
        match self {
            Self::Sqlite => format!("({ms}) * 1000"),
            Self::Postgres => format!("timestamptz 'epoch' + ({ms}) * interval '1 millisecond'"),
            Self::Mariadb => format!("timestamp '1970-01-01 00:00:00' + INTERVAL ({ms}) * 1000 MICROSECOND"),
        }
    }

    fn json(self, text: &str) -> String {
        match self {
            Self::Sqlite | Self::Mariadb => text.to_owned(),
            Self::Postgres => format!("CAST({text} AS jsonb)"),
        }
    }
}

/// Jobs that are written by one statement.
struct JobRange {
    from: u64,
    until: u64,
    /// When job 0 was made, and from each to the next, in milliseconds.
    begin: i64,
    step: i64,
}

fn ranges(begin: i64, jobs: u64) -> impl Iterator<Item = JobRange> {
    ranges_from(jobs, begin, DAYS * DAY_MS / i64::try_from(jobs.max(1)).unwrap_or(i64::MAX))
}

fn ranges_from(jobs: u64, begin: i64, step: i64) -> impl Iterator<Item = JobRange> {
    let first = (0..jobs.div_ceil(RANGE_JOBS)).map(|number| 1 + number * RANGE_JOBS);
    first.map(move |from| JobRange { from, until: jobs.min(from + RANGE_JOBS - 1), begin, step })
}

const BEGAN_MS: &str = "ms + 5";
const ENDED_MS: &str = "ms + 5 + n % 1000";
const DURATION_US: &str = "n % 1000 * 1000";
const WAIT_US: &str = "5000";
const ERROR: &str = "CASE WHEN state = 'FAILED' THEN 'Unreachable: gateway ' || n || ' is silent' END";
const QUEUES: &str = "'bench.queue-' || (n % 5 + 1)";
const HAS_TAG: &str = "(n % 11 = 0 OR n % 100000 = 4)";

fn kinds() -> String {
    format!("CASE WHEN n % 100000 = 1 THEN '{RARE}' ELSE 'bench.kind-' || (n % 20 + 1) END")
}

fn tags() -> String {
    format!("CASE WHEN n % 11 = 0 THEN '{TAG}' ELSE '{RARE}' END")
}

/// Columns of jobs that have ended.
fn ended(sql: Sql) -> Vec<(&'static str, String)> {
    let [made_at, began_at, ended_at] = ["ms", BEGAN_MS, ENDED_MS].map(|ms| sql.time(ms));
    vec![
        ("terminal_status", "state".to_owned()),
        ("terminal_error", ERROR.to_owned()),
        ("total_attempts", "CASE WHEN state = 'CANCELED' THEN 0 ELSE 1 END".to_owned()),
        ("scheduled_time", made_at),
        ("terminated_at", ended_at.clone()),
        ("execution_start_time", began_at),
        ("execution_end_time", ended_at),
        ("execution_duration_us", DURATION_US.to_owned()),
        ("queue_wait_us", WAIT_US.to_owned()),
        ("ended_by", format!("CASE WHEN state = 'SUCCEEDED' THEN {} END", sql.node())),
        ("job_result", sql.json("CASE WHEN state = 'SUCCEEDED' THEN '' || n END")),
    ]
}

fn insert(table: &str, columns: &[(&str, String)], of: &str) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let values: Vec<&str> = columns.iter().map(|(_, value)| value.as_str()).collect();
    format!("INSERT INTO {table} ({}) SELECT {} FROM ({of}) m", names.join(", "), values.join(", "))
}
