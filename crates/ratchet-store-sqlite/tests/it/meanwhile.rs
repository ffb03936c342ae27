//! Jobs that change between the statements of a list.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::count::CountBy;
use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::ClusterStore as _;
use ratchet_core::{JobId, JobState, JobType, StoreError};
use ratchet_store_sql::{Conn, Row, StoreContext, Value, calls};
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, AssertSqlSafe, ConnectOptions as _, SqliteConnection};
use ratchet_testdb::history::Sql;

/// What another connection would do to the newest dead letter.
#[derive(Debug, Clone, Copy)]
enum Change {
    Retry,
    Archive,
}

impl Change {
    fn texts(self) -> Vec<String> {
        let newest = format!(
            "WHERE job_id = (SELECT MAX(job_id) FROM scheduler_job WHERE terminal_status = '{}')",
            JobState::Failed
        );
        match self {
            Self::Retry => vec![
                format!(
                    "INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at) \
                     SELECT job_id, '{}', queue, kind, priority, terminated_at, terminated_at FROM scheduler_job {newest}",
                    JobState::Pending
                ),
                format!("UPDATE scheduler_job SET terminal_status = NULL, terminated_at = NULL {newest}"),
            ],
            Self::Archive => {
                let columns = "job_id, kind, queue, job_type, priority, payload, max_retries, backoff_policy, \
                               backoff_param_us, created_at, version, terminal_status, total_attempts, crash_count, \
                               scheduled_time, terminated_at, flow";
                vec![
                    format!(
                        "INSERT INTO scheduler_job_archive ({columns}, archived_at) \
                         SELECT {columns}, terminated_at FROM scheduler_job {newest}"
                    ),
                    format!("DELETE FROM scheduler_job {newest}"),
                ]
            }
        }
    }
}

/// Makes a change before a statement runs for the first time.
struct Meanwhile<'c> {
    conn: &'c mut dyn Conn,
    before: &'static str,
    change: Option<Change>,
}

#[async_trait]
impl Conn for Meanwhile<'_> {
    fn context(&self) -> &StoreContext {
        self.conn.context()
    }

    async fn execute(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<u64, StoreError> {
        self.conn.execute(doing, text, values).await
    }

    async fn fetch(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        if doing == self.before {
            for change in self.change.take().into_iter().flat_map(Change::texts) {
                self.conn.execute("changing a job", change.into(), Vec::new()).await?;
            }
        }
        self.conn.fetch(doing, text, values).await
    }
}

async fn listed(conn: &mut dyn Conn, filter: &JobFilter) -> Vec<JobId> {
    let page = calls::list(conn, filter, None, 100).await.unwrap();
    assert_eq!(page.next, None);
    page.items.iter().map(|job| job.id).collect()
}

async fn dead_letter_ids(conn: &mut dyn Conn, filter: &JobFilter) -> Vec<JobId> {
    let page = calls::dead_letters(conn, filter, None, 100).await.unwrap();
    page.items.iter().map(|letter| letter.id).collect()
}

#[derive(Debug, Clone, Copy)]
enum Read {
    List,
    DeadLetters,
    Count,
}

/// Reads failed jobs while the newest of them changes; says whether it is among them.
async fn has_changed(
    conn: &mut SqliteConnection,
    read: Read,
    archive: ArchiveScope,
    change: (&'static str, Change),
) -> bool {
    // With a type, which all have, so that heads are read.
    let filter =
        JobFilter { states: vec![JobState::Failed], job_type: Some(JobType::Single), archive, ..JobFilter::default() };
    sqlx::raw_sql("BEGIN").execute(&mut *conn).await.unwrap();
    let mut inner = ratchet_store_sqlite::conn(conn);
    let all = listed(&mut inner, &filter).await;
    let (before, what) = change;
    let mut changing = Meanwhile { conn: &mut inner, before, change: Some(what) };
    let has_changed = match read {
        Read::List | Read::DeadLetters => {
            let found = match read {
                Read::DeadLetters => dead_letter_ids(&mut changing, &filter).await,
                Read::List | Read::Count => listed(&mut changing, &filter).await,
            };
            assert!(found == all || found == all[1..], "{found:?} of {all:?}");
            found == all
        }
        Read::Count => {
            let jobs = calls::count(&mut changing, &filter, &CountBy::State).await.unwrap().jobs;
            let all = all.len() as u64;
            assert!(jobs == all || jobs == all - 1, "{jobs} of {all}");
            jobs == all
        }
    };
    assert!(changing.change.is_none(), "{before:?} is one of the statements");
    drop(inner);
    sqlx::raw_sql("ROLLBACK").execute(conn).await.unwrap();
    has_changed
}

#[test]
fn a_job_that_changes_meanwhile_is_listed_once_or_left_out() {
    super::run(async {
        use ArchiveScope::{Both, Live};
        use Change::{Archive, Retry};

        let (store, dir) = super::fresh().await;
        let mut conn = SqliteConnectOptions::new().filename(dir.path().join("jobs.db")).connect().await.unwrap();
        let now = store.database_time().await.unwrap();
        for statement in Sql::Sqlite.history(50, now.as_millisecond()) {
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut conn).await.unwrap();
        }
        let mut check = async |read, archive, before, change, expected: bool| {
            let found = has_changed(&mut conn, read, archive, (before, change)).await;
            assert_eq!(found, expected, "{read:?} of {archive:?}, {change:?} before {before:?}");
        };
        for (scope, of_archived) in [(Live, false), (Both, true)] {
            for before in ["reading the heads of jobs", "reading jobs"] {
                check(Read::List, scope, before, Retry, false).await;
                check(Read::List, scope, before, Archive, of_archived).await;
            }
        }
        for read in [Read::List, Read::Count] {
            check(read, Both, "finding archived jobs by state, newest first", Archive, true).await;
            check(read, Both, "reading the heads of jobs", Archive, true).await;
        }
        check(Read::Count, Live, "reading the heads of jobs", Retry, false).await;
        for change in [Retry, Archive] {
            check(Read::DeadLetters, Live, "reading the heads of jobs", change, false).await;
            check(Read::DeadLetters, Live, "reading dead letters", change, false).await;
        }
    });
}
