//! A stream of jobs on three nodes, while everything goes wrong.

use std::time::Duration;

use ratchet_chaos::database::Database;
use ratchet_chaos::summary;
use ratchet_chaos::trial::{self, Plan};

use crate::cluster::{my_turn, on_both_servers, program};

on_both_servers! { every_promise_holds_while_nodes_and_the_server_fail }

async fn every_promise_holds_while_nodes_and_the_server_fail(database: Database) {
    let _turn = my_turn().await;
    let seed = trial::seed();
    println!("{database:?}: RATCHET_SEED={seed}");
    let plan = Plan {
        database,
        seed,
        faults_for: Duration::from_secs(25),
        end_limit: Duration::from_mins(2),
        per_second: 60,
        program: program().to_owned(),
    };
    let trial = trial::run(&plan).await.unwrap();
    let table = summary::table(&trial);
    println!("{table}");
    assert!(trial.findings.violations.is_empty(), "RATCHET_SEED={seed}\n{table}");
    assert!(trial.history.jobs.len() > 500, "too little happened:\n{table}");
    assert!(!trial.history.faults.is_empty(), "nothing went wrong:\n{table}");
}
