//! What migrating promises, with made-up steps, for the tests of every SQL store: [`migration_tests!`](crate::migration_tests)
//! writes one test for each function here.

#![expect(missing_docs, reason = "a promise is named by its function")]

use futures_util::future::join_all;
use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_sql::migrate::Migration;

/// A database of one test.
pub trait Target {
    /// Whether a step that fails leaves nothing behind, because DDL is part of a transaction.
    const ROLLS_BACK: bool;

    /// A database without tables.
    fn empty() -> impl Future<Output = Self>;

    /// Opens it as a store whose schema these steps make.
    fn open(&self, migrate: bool, steps: &'static [Migration]) -> impl Future<Output = Result<(), StoreError>>;

    /// Runs a statement.
    fn execute(&self, sql: &str) -> impl Future<Output = ()>;

    /// Asks for a count.
    fn count(&self, sql: &str) -> impl Future<Output = i64>;
}

/// Writes one test for each promise: `$run` runs a future, `$target` is a [`Target`](crate::migrations::Target).
#[macro_export]
macro_rules! migration_tests {
    ($run:path, $target:ty) => {
        $crate::migration_tests! {
            $run, $target,
            every_step_runs_once_and_in_order,
            an_older_schema_is_upgraded_and_keeps_its_rows,
            many_at_once_migrate_once,
            a_schema_that_lacks_a_step_is_refused_if_it_may_not_be_migrated,
            a_newer_schema_is_refused,
            a_changed_step_is_refused,
            an_unfinished_step_is_refused,
            a_gap_is_refused,
            a_step_that_fails_is_undone_or_stays_marked,
        }
    };
    ($run:path, $target:ty, $($test:ident),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                $run($crate::migrations::$test::<$target>());
            }
        )*
    };
}

const CREATE: Migration = Migration {
    version: 1,
    description: "made up",
    sql: "-- A comment;\nCREATE TABLE made_up (\n    id INTEGER NOT NULL PRIMARY KEY\n);\nINSERT INTO made_up (id)\nVALUES (1);\n",
};
const WIDEN: Migration = Migration {
    version: 2,
    description: "wider",
    sql: "ALTER TABLE made_up ADD COLUMN amount INTEGER NOT NULL DEFAULT 7;\nUPDATE made_up SET amount = id + 10;\n",
};
const ADD: Migration = Migration { version: 3, description: "a row", sql: "INSERT INTO made_up (id) VALUES (3);" };
/// Its second statement fails.
const BROKEN: Migration = Migration {
    version: 2,
    description: "wider",
    sql: "INSERT INTO made_up (id) VALUES (2);\nCREATE TABLE made_up (id INTEGER);\n",
};
const CHANGED: Migration = Migration { sql: "CREATE TABLE other (id INTEGER);", ..CREATE };

const OLD: &[Migration] = &[CREATE];
const NEW: &[Migration] = &[CREATE, WIDEN];
const NEWEST: &[Migration] = &[CREATE, WIDEN, ADD];

const ROWS: &str = "SELECT COUNT(*) FROM made_up";
const APPLIED: &str = "SELECT COUNT(*) FROM ratchet_schema_version";

/// Checks that a store with these steps is refused, whether it may migrate or not.
async fn assert_refused(target: &impl Target, steps: &'static [Migration], text: &str) {
    for migrate in [true, false] {
        let refused = target.open(migrate, steps).await.expect_err("such a schema is refused");
        assert_eq!(*refused.kind(), ErrorKind::Invalid, "{refused}");
        assert!(refused.to_string().contains(text), "{refused}");
    }
}

async fn migrated<T: Target>(steps: &'static [Migration]) -> T {
    let target = T::empty().await;
    target.open(true, steps).await.expect("the steps run");
    target
}

pub async fn every_step_runs_once_and_in_order<T: Target>() {
    let target = migrated::<T>(NEWEST).await;
    for migrate in [true, false] {
        target.open(migrate, NEWEST).await.expect("there is nothing to do");
    }
    assert_eq!(target.count(APPLIED).await, 3);
    assert_eq!(target.count(ROWS).await, 2);
    assert_eq!(target.count("SELECT COUNT(*) FROM made_up WHERE id = 1 AND amount = 11").await, 1);
    assert_eq!(target.count("SELECT COUNT(*) FROM made_up WHERE id = 3 AND amount = 7").await, 1);
}

pub async fn an_older_schema_is_upgraded_and_keeps_its_rows<T: Target>() {
    let target = migrated::<T>(OLD).await;
    target.execute("INSERT INTO made_up (id) VALUES (20)").await;
    target.open(true, NEWEST).await.expect("it is upgraded");
    assert_eq!(target.count(APPLIED).await, 3);
    assert_eq!(target.count("SELECT COUNT(*) FROM made_up WHERE amount = id + 10").await, 2);
}

pub async fn many_at_once_migrate_once<T: Target>() {
    let target = T::empty().await;
    for opened in join_all((0..8).map(|_| target.open(true, NEWEST))).await {
        opened.expect("it waits for the one that migrates");
    }
    assert_eq!(target.count(ROWS).await, 2);
}

pub async fn a_schema_that_lacks_a_step_is_refused_if_it_may_not_be_migrated<T: Target>() {
    let target = migrated::<T>(OLD).await;
    let refused = target.open(false, NEW).await.expect_err("a step is missing");
    assert_eq!(*refused.kind(), ErrorKind::Invalid, "{refused}");
    assert!(refused.to_string().contains("lacks version 2 (wider); run the migrations first"), "{refused}");
    assert_eq!(target.count(APPLIED).await, 1);
}

pub async fn a_newer_schema_is_refused<T: Target>() {
    let target = migrated::<T>(NEW).await;
    assert_refused(&target, OLD, "version 2, this program knows versions up to 1; use a newer program").await;
}

pub async fn a_changed_step_is_refused<T: Target>() {
    const STEPS: &[Migration] = &[CHANGED, WIDEN];
    let target = migrated::<T>(OLD).await;
    assert_refused(&target, STEPS, &format!("different script (checksum {}", CREATE.checksum())).await;
    assert_eq!(target.count(APPLIED).await, 1);
}

pub async fn an_unfinished_step_is_refused<T: Target>() {
    let target = migrated::<T>(OLD).await;
    target.execute("UPDATE ratchet_schema_version SET dirty = (1 = 1)").await;
    assert_refused(&target, NEW, "begun and not finished").await;
}

pub async fn a_gap_is_refused<T: Target>() {
    let target = migrated::<T>(NEW).await;
    target.execute("DELETE FROM ratchet_schema_version WHERE version = 1").await;
    assert_refused(&target, NEW, "version 1 was left out").await;
}

pub async fn a_step_that_fails_is_undone_or_stays_marked<T: Target>() {
    const STEPS: &[Migration] = &[CREATE, BROKEN];
    let target = migrated::<T>(OLD).await;
    let failed = target.open(true, STEPS).await.expect_err("the table exists");
    assert_eq!(*failed.kind(), ErrorKind::Invalid, "{failed}");
    if !T::ROLLS_BACK {
        assert_refused(&target, NEW, "begun and not finished").await;
        target.execute("DELETE FROM made_up WHERE id = 2").await;
        target.execute("DELETE FROM ratchet_schema_version WHERE version = 2").await;
    }
    assert_eq!(target.count(ROWS).await, 1);
    target.open(true, NEW).await.expect("the step was repaired");
}
