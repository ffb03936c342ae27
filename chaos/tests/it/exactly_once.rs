//! A handler that writes its row and completes in one transaction has written exactly once, whatever happens.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ratchet::{Backoff, JobState};
use ratchet_chaos::book::{Book, CREATE_LEDGER};
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::Work;
use ratchet_chaos::trial;

use crate::cluster::{Cluster, my_turn, on_both_servers};
use crate::until::until;

on_both_servers! {
    a_handler_that_books_and_completes_in_one_transaction_has_booked_once_however_often_it_is_killed
    a_transaction_that_submits_and_rolls_back_leaves_nothing_and_one_that_meets_a_taken_key_goes_on
}

const JOBS: usize = 1_000;
/// The short grace keeps the test short: a killed node's jobs wait for it.
const TIMERS: [&str; 8] = ["--heartbeat-ms", "100", "--grace-ms", "400", "--scan-ms", "50", "--slots", "1"];

async fn a_handler_that_books_and_completes_in_one_transaction_has_booked_once_however_often_it_is_killed(
    database: Database,
) {
    let _turn = my_turn().await;
    let seed = trial::seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let cluster = Cluster::on(database).await;
    cluster.server.ask(CREATE_LEDGER).unwrap();
    let jobs = (0..JOBS).map(|_| {
        let book = cluster.client.enqueue(Book(random.u64(5..=20)));
        book.max_retries(20).backoff(Backoff::Fixed(Duration::from_millis(20)))
    });
    cluster.client.submit_all(jobs.collect::<Vec<_>>()).await.unwrap();
    let begun = Instant::now();
    let mut nodes = [0, 1].map(|_| cluster.node_with(&TIMERS));
    let mut kills = 0;
    let mut ended = 0;
    until("the last job's end", async || {
        tokio::time::sleep(Duration::from_millis(random.u64(100..=300))).await;
        let victim = random.usize(0..2);
        let next = cluster.node_with(&TIMERS);
        std::mem::replace(&mut nodes[victim], next).kill().unwrap();
        kills += 1;
        let counts = cluster.counts().await;
        ended = counts.iter().filter(|(state, _)| state.is_terminal()).map(|(_, count)| *count).sum();
        ended == JOBS as u64
    })
    .await;
    // A job whose node died three times in a row is a dead letter: a person has it tried again, in peace.
    let dead = trial::jobs_in(&cluster.client, &[JobState::Failed]).await.unwrap();
    for job in &dead {
        assert!(cluster.client.retry(job.id).await.unwrap());
    }
    until("the end of those", async || cluster.count(JobState::Succeeded).await == JOBS as u64).await;
    drop(nodes);
    let rows = cluster.server.ask("select job from ledger").unwrap();
    let mut booked: HashMap<&str, usize> = HashMap::new();
    for job in rows.lines() {
        *booked.entry(job).or_default() += 1;
    }
    let runs = cluster.begun().len();
    println!(
        "{database:?}: {JOBS} jobs in {:.1} s, {kills} kills, {runs} runs, {} dead letters, {} rows; RATCHET_SEED={seed}",
        begun.elapsed().as_secs_f64(),
        dead.len(),
        booked.values().sum::<usize>()
    );
    for job in trial::all_jobs(&cluster.client).await.unwrap() {
        let rows = booked.remove(job.id.to_string().as_str()).unwrap_or(0);
        assert_eq!(rows, 1, "{} is {} with version {}; RATCHET_SEED={seed}", job.id, job.state, job.version);
    }
    assert!(booked.is_empty(), "rows of no job: {booked:?}");
    assert!(kills >= 20, "only {kills} kills");
    assert!(runs > JOBS, "no kill ever hit a run");
}

async fn a_transaction_that_submits_and_rolls_back_leaves_nothing_and_one_that_meets_a_taken_key_goes_on(
    database: Database,
) {
    let _turn = my_turn().await;
    let cluster = Cluster::on(database).await;
    let job = |ms| cluster.client.enqueue(Work::Sleep(ms).unnumbered()).business_key("invoice:7");
    let url = cluster.server.url();
    cluster.server.ask(CREATE_LEDGER).unwrap();
    macro_rules! submits_in {
        ($driver:ident, $connection:ty) => {{
            use ratchet::$driver::SubmitIn;
            use ratchet::$driver::sqlx::{self, Connection};
            let mut conn = <$connection>::connect(&url).await.unwrap();
            let mut rolled_back = conn.begin().await.unwrap();
            let gone = job(1).submit_in(&mut rolled_back).await.unwrap().id();
            rolled_back.rollback().await.unwrap();
            assert_eq!(cluster.client.find(gone).await.unwrap(), None);

            let mut first = conn.begin().await.unwrap();
            let held = job(2).submit_in(&mut first).await.unwrap().id();
            first.commit().await.unwrap();
            let mut second = conn.begin().await.unwrap();
            sqlx::query("insert into ledger (job) values ('before')").execute(&mut *second).await.unwrap();
            let refused = job(3).submit_in(&mut second).await.unwrap_err();
            assert!(matches!(refused, ratchet::SubmitError::Duplicate { holder, .. } if holder == held), "{refused}");
            sqlx::query("insert into ledger (job) values ('after')").execute(&mut *second).await.unwrap();
            second.commit().await.unwrap();
        }};
    }
    match database {
        Database::Postgres => submits_in!(postgres, ratchet::postgres::sqlx::PgConnection),
        Database::Mysql => submits_in!(mysql, ratchet::mysql::sqlx::MySqlConnection),
    }
    assert_eq!(cluster.server.ask("select job from ledger order by job").unwrap(), "after\nbefore");
    assert_eq!(trial::all_jobs(&cluster.client).await.unwrap().len(), 1);
}
