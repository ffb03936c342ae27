use ratchet_core::store::{JobLogStore as _, JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{ErrorKind, JsonText, LogLevel, LogLine, NewJob, NodeId, StoreError};
use ratchet_store_mysql::MysqlStore;
use ratchet_store_mysql::sqlx::{self, AssertSqlSafe, Row as _};
use ratchet_store_sql::Dialect;
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_testdb::migrations::Target;

use super::database::TestDatabase;

ratchet_testdb::migration_tests!(super::run, Unprepared);

/// A database without tables.
struct Unprepared(TestDatabase);

impl Target for Unprepared {
    const ROLLS_BACK: bool = false;

    async fn empty() -> Self {
        Self(TestDatabase::without_schema().await)
    }

    async fn open(&self, migrate: bool, steps: &'static [Migration]) -> Result<(), StoreError> {
        MysqlStore::options(self.0.url()).migrate(migrate).steps(steps).connect().await.map(drop)
    }

    async fn execute(&self, sql: &str) {
        self.0.execute(sql).await;
    }

    async fn count(&self, sql: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.0.connect().await).await.unwrap()
    }
}

/// The lines of the catalog: every column with its type, every part of every index.
async fn schema(database: &TestDatabase) -> Vec<String> {
    let mut conn = database.connect().await;
    let columns = "SELECT CONCAT_WS(' ', table_name, column_name, column_type, is_nullable, COALESCE(column_default, ''), \
                   COALESCE(collation_name, '')) AS line FROM information_schema.columns WHERE table_schema = DATABASE() \
                   UNION ALL SELECT CONCAT_WS(' ', table_name, index_name, seq_in_index, column_name, non_unique) \
                   FROM information_schema.statistics WHERE table_schema = DATABASE() ORDER BY 1";
    let rows = sqlx::raw_sql(AssertSqlSafe(columns)).fetch_all(&mut conn).await.unwrap();
    rows.iter().map(|row| row.get_unchecked(0)).collect()
}

#[test]
fn migrations_and_clean_install_give_the_same_schema() {
    super::run(async {
        let migrated = TestDatabase::without_schema().await;
        MysqlStore::options(migrated.url()).migrate(true).connect().await.unwrap();
        let clean = TestDatabase::without_schema().await;
        clean.execute(migrate::clean_install(Dialect::Mysql)).await;
        assert_eq!(schema(&migrated).await, schema(&clean).await);
        MysqlStore::connect(&clean.url()).await.expect("a clean install needs no migration");
    });
}

#[test]
fn a_database_without_a_schema_is_refused_if_it_may_not_be_migrated() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let refused = MysqlStore::connect(&database.url()).await.unwrap_err();
        assert_eq!(*refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("run the migrations first"), "{refused}");
    });
}

#[test]
fn what_cannot_be_reached_is_named() {
    super::run(async {
        let check = async |url: &str, kind: ErrorKind, text: &str| {
            let refused = MysqlStore::connect(url).await.unwrap_err();
            assert_eq!(*refused.kind(), kind, "{refused}");
            assert!(refused.to_string().contains(text), "{refused}");
            assert!(!format!("{refused:?}").contains("s3cret"), "{refused:?}");
        };
        check("jobs.db", ErrorKind::Invalid, "must begin with mysql://").await;
        check("postgres://u@h/d", ErrorKind::Invalid, "must begin with mysql://").await;
        check("mysql://u:s3cret@h:port/d", ErrorKind::Invalid, "the URL cannot be read").await;
        check("mysql://u:s3cret@127.0.0.1:1/d", ErrorKind::Unavailable, "127.0.0.1:1").await;
        let server = ratchet_testdb::mysql_url().unwrap();
        check(&super::database::url_of(&server, "nowhere"), ErrorKind::Invalid, "create it first").await;
    });
}

/// Two lines of one attempt.
fn lines(job: &NewJob, node: NodeId) -> Vec<LogLine> {
    let first = LogLine {
        job_id: job.id,
        version: 3,
        seq: 1,
        attempt: 2,
        node,
        at: "2023-11-14T22:13:20.123456Z".parse().unwrap(),
        level: LogLevel::Info,
        message: String::from("two\nlines"),
        fields: None,
    };
    let fields = JsonText::parse("fields", r#"{"a": "b"}"#, 100).unwrap();
    let second = LogLine {
        seq: 2,
        level: LogLevel::Error,
        message: String::from("rich"),
        fields: Some(fields),
        ..first.clone()
    };
    vec![first, second]
}

#[test]
fn views_show_ids_and_keys_as_text() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let store = database.store().await;
        let mut job = super::job(0x0123_4567_89ab_7def_8123_4567_89ab_cdef);
        job.business_key = Some(ratchet_core::BusinessKey::new("order 7 ").unwrap());
        store.submit(&[SubmitUnit::of(vec![job.clone()])]).await.unwrap();
        let node = super::register(&store).await;
        let claimed = store.settle_and_claim(&[], Some(&super::request(node, &["work"], 1))).await.unwrap().claimed;
        let mut conn = database.connect().await;
        let seen = sqlx::raw_sql("SELECT job_id, business_key, picked_by, status FROM v_scheduler_job");
        let seen = seen.fetch_one(&mut conn).await.unwrap();
        let text = |index| seen.get_unchecked::<String, usize>(index);
        assert_eq!(text(0), job.id.to_string());
        assert_eq!(text(1), "order 7 ");
        assert_eq!(text(2), node.to_string());
        assert_eq!(text(3), "RUNNING");
        store.settle_and_claim(&[super::success(&claimed[0])], None).await.unwrap();
        for (view, column, expected) in [
            ("v_scheduler_job", "status", "SUCCEEDED".to_owned()),
            ("v_scheduler_job_execution", "job_id", job.id.to_string()),
            ("v_scheduler_node", "node_id", node.to_string()),
        ] {
            let row = sqlx::raw_sql(AssertSqlSafe(format!("SELECT {column} FROM {view}"))).fetch_one(&mut conn).await;
            assert_eq!(row.unwrap().get_unchecked::<String, usize>(0), expected, "{view}");
        }
        store.append_log(lines(&job, node).into()).await.unwrap();
        let lines = "SELECT CONCAT_WS('|', job_id, version, seq, attempt, level, node_id, logged_at, message, \
                     JSON_VALUE(fields, '$.a')) FROM v_scheduler_job_log ORDER BY seq";
        let rows = sqlx::raw_sql(lines).fetch_all(&mut conn).await.unwrap();
        let id = job.id;
        let at = "2023-11-14 22:13:20.123456";
        let expected =
            [format!("{id}|3|1|2|INFO|{node}|{at}|two\nlines"), format!("{id}|3|2|2|ERROR|{node}|{at}|rich|b")];
        assert_eq!(rows.iter().map(|row| row.get_unchecked::<String, usize>(0)).collect::<Vec<_>>(), expected);
    });
}

#[test]
fn a_migration_waits_longer_for_another_than_a_transaction_may_take() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let mut other = database.connect().await;
        let lock = "SELECT GET_LOCK(CONCAT('ratchet:', MD5(DATABASE())), 0)";
        sqlx::raw_sql(lock).execute(&mut other).await.unwrap();
        let limit = std::time::Duration::from_millis(100);
        let opening = MysqlStore::options(database.url()).migrate(true).transaction_timeout(limit).connect();
        let mut opening = std::pin::pin!(opening);
        let waited = tokio::time::timeout(limit * 5, &mut opening).await;
        assert!(waited.is_err(), "it waits: {waited:?}");
        drop(other);
        opening.await.unwrap();
    });
}
