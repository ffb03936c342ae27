use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use ratchet_core::JobState;
use ratchet_core::store::{JobStore as _, QueryStore as _, SubmitUnit, TurnStore as _};

/// A future that is dropped at any point of a transaction leaves the store as if it had never begun, or as if it had
/// come to its end; the next call finds a connection that is in no transaction.
#[test]
fn a_dropped_write_leaves_no_transaction_behind() {
    super::run(async {
        let (store, _dir) = super::fresh().await;
        for polls in 0..60_u32 {
            let number = u128::from(polls) + 1;
            let unit = [SubmitUnit::of(vec![super::job(number)])];
            {
                let mut write = pin!(store.submit(&unit));
                for _ in 0..polls {
                    if write.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                        break;
                    }
                    // The driver's thread needs a moment to answer; how long it takes decides only how far we come.
                    tokio::time::sleep(Duration::from_micros(200)).await;
                }
            }
            super::submit(&store, vec![super::job(1_000 + number)]).await;
            let found = store.find(&[super::job(number).id]).await.unwrap();
            let counted = store.count_by_state().await.unwrap();
            assert!(counted[&JobState::Pending] > u64::from(polls), "what was submitted after is there");
            assert!(found.len() <= 1);
        }
    });
}

#[test]
fn an_idle_poll_writes_nothing() {
    super::run(async {
        let (store, dir) = super::fresh().await;
        let node = super::register(&store).await;
        super::submit(&store, vec![super::job(1)]).await;
        let mut other = super::watch::Version::open(dir.path()).await;
        let before = other.read().await;
        let turn = store.settle_and_claim(&[], Some(&super::request(node, &["other"], 10))).await.unwrap();
        assert!(turn.claimed.is_empty());
        assert_eq!(other.read().await, before, "nothing was claimed, so nothing was written");
        let turn = store.settle_and_claim(&[], Some(&super::request(node, &["work"], 10))).await.unwrap();
        assert_eq!(turn.claimed.len(), 1);
        assert_ne!(other.read().await, before, "a claim is seen by others");
    });
}

#[test]
fn a_turn_takes_a_few_statements_however_many_jobs() {
    super::run(async {
        let (store, _dir) = super::fresh().await;
        let node = super::register(&store).await;
        super::submit(&store, (1..=512).map(super::job).collect()).await;
        let request = super::request(node, &["work"], 200);
        let claimed = store.settle_and_claim(&[], Some(&request)).await.unwrap().claimed;
        assert_eq!(claimed.len(), 200);
        let settlements: Vec<_> = claimed.iter().map(ratchet_conformance::success).collect();
        let before = store.counts();
        let turn = store.settle_and_claim(&settlements, Some(&request)).await.unwrap();
        assert_eq!((turn.settled.len(), turn.claimed.len()), (200, 200));
        let after = store.counts();
        assert_eq!(after.commits - before.commits, 1);
        assert!(after.statements - before.statements <= 10, "{} statements", after.statements - before.statements);
    });
}

/// On a runtime of one thread, a task that blocks that thread must not hold the write lock meanwhile.
#[test]
fn a_blocked_executor_does_not_hold_the_write_lock() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (store, dir) = super::fresh().await;
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(dir.path().join("jobs.db"))
            .busy_timeout(Duration::from_millis(300));
        let write = tokio::spawn(async move {
            let jobs = (1..=500).map(super::job).collect();
            store.submit(&[SubmitUnit::of(jobs)]).await.map(|_| ())
        });
        // Its transaction begins.
        tokio::task::yield_now().await;
        let probe = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut conn = sqlx::ConnectOptions::connect(&options).await.unwrap();
                tokio::time::sleep(Duration::from_millis(300)).await;
                sqlx::raw_sql("BEGIN IMMEDIATE; ROLLBACK").execute(&mut conn).await.is_ok()
            })
        });
        // Blocks the executor, as a careless handler does.
        std::thread::sleep(Duration::from_millis(1_200));
        assert!(probe.join().unwrap(), "the lock was held by a task that could not go on");
        write.await.unwrap().unwrap();
    });
}
