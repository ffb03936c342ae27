use std::collections::HashSet;
use std::time::Duration;

use ratchet_core::JobId;
use ratchet_core::store::{JobStore as _, QueryStore as _, SubmitUnit, TurnStore as _};
use ratchet_store_mysql::MysqlStore;

use super::database::TestDatabase;

/// Four claimers settle and claim until nothing is left; the table runs empty, where plans change and deadlocks come.
#[test]
fn four_claimers_drain_to_empty_again_and_again() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let mut stores = Vec::new();
        for _ in 0..4 {
            stores.push(database.store().await);
        }
        let mut next = 1;
        for _round in 0..ROUNDS {
            let jobs: Vec<_> = (next..next + JOBS).map(super::job).collect();
            next += JOBS;
            for outcome in stores[0].submit(&[SubmitUnit { jobs }]).await.unwrap() {
                outcome.unwrap();
            }
            let claimers = stores.iter().map(|store| {
                let store = store.clone();
                tokio::spawn(async move { drain(store).await })
            });
            let mut seen: HashSet<JobId> = HashSet::new();
            for claimed in futures_util::future::join_all(claimers).await {
                for id in claimed.unwrap() {
                    assert!(seen.insert(id), "job {id} was claimed twice");
                }
            }
            assert_eq!(seen.len() as u128, JOBS);
        }
        let retries: u64 = stores.iter().map(|store| store.counts().retries).sum();
        println!("{retries} transactions were tried again");
        let counts = stores[0].count_by_state().await.unwrap();
        assert_eq!(counts.values().sum::<u64>() as u128, JOBS * ROUNDS as u128);
        assert_eq!(counts.len(), 1, "{counts:?}");
    });
}

const JOBS: u128 = 400;
const ROUNDS: usize = 15;

/// Claims and settles until nothing is left; what was claimed.
async fn drain(store: MysqlStore) -> Vec<JobId> {
    let node = super::register(&store).await;
    let request = super::request(node, &["work"], 20);
    let (mut all, mut settlements, mut empty) = (Vec::new(), Vec::new(), 0);
    while empty < 3 {
        let turn = store.turn(&settlements, Some(&request)).await.unwrap();
        assert!(turn.settled.iter().all(|settled| *settled == ratchet_core::Settled::Applied), "{:?}", turn.settled);
        settlements = turn.claimed.iter().map(super::success).collect();
        all.extend(turn.claimed.iter().map(|claim| claim.fence.job_id));
        if turn.claimed.is_empty() {
            empty += 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        } else {
            empty = 0;
        }
    }
    all
}
