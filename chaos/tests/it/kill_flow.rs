//! Kills (-9) at the moments on which other jobs depend: the end of a batch's last child, and the delivery of a signal.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ratchet::{Client, JobHandle, JobId, JobRecord, JobState};
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::{Deal, Work};
use ratchet_chaos::errand::{AFTER, Errand, PROGRESS, key, quick, signaled};
use ratchet_chaos::node::Node;
use ratchet_chaos::record::{Deed, Line};
use ratchet_chaos::trial::{self, jobs_in};

use crate::cluster::{Cluster, my_turn, on_both_servers};
use crate::site::Site;
use crate::until::until;

/// A database, and nodes on it.
struct Scene<'a> {
    client: &'a Client,
    node: &'a dyn Fn(&[&str]) -> Node,
    lines: &'a dyn Fn() -> Vec<Line>,
}

/// The short grace keeps the test short: a killed node's jobs wait for it.
const QUICK: [&str; 6] = ["--heartbeat-ms", "100", "--grace-ms", "500", "--scan-ms", "50"];
const BATCHES: u64 = 8;
/// With three that take no time.
const CHILDREN: u64 = 4;
const WAITS: u64 = 40;
const SIGNAL_KILLS: usize = 6;
/// A node sends more than this before it is killed.
const SIGNALS_BETWEEN: usize = 5;

impl Scene<'_> {
    async fn jobs(&self) -> Vec<JobRecord> {
        jobs_in(self.client, &[]).await.unwrap()
    }

    async fn all_ended(&self) -> bool {
        let counts = self.client.count_by_state().await.unwrap();
        counts.iter().all(|(state, count)| state.is_terminal() || *count == 0)
    }

    /// The jobs of which a handler has come to its end.
    fn ended(&self) -> HashSet<JobId> {
        let ended = |line: Line| if let Deed::Ended(run) = line.deed { Some(run.job) } else { None };
        (self.lines)().into_iter().filter_map(ended).collect()
    }

    /// Kills a node whenever a batch's last child has come to its end, before or after that was written.
    async fn kill_at_last_children(&self) {
        let one_slot = [&QUICK[..], &["--slots", "1"]].concat();
        for batch in 0..BATCHES {
            let children = (1..=CHILDREN).map(|child| Deal {
                serial: batch * 10 + child,
                work: Work::Sleep(if child == CHILDREN { 20 } else { 0 }),
            });
            let batch = self.client.batch().children(children);
            batch.then_on_batch_success(quick(AFTER)).then_on_batch_failure(quick(PROGRESS)).submit().await.unwrap();
        }
        let serial = |job: &JobRecord| job.spec.payload.decode::<Deal>().map_or(0, |deal| deal.serial);
        let last = |job: &&JobRecord| job.parent.is_some() && serial(job) % 10 == CHILDREN;
        let mut last: HashSet<JobId> = self.jobs().await.iter().filter(last).map(|job| job.id).collect();
        let mut written = 0;
        let mut node = (self.node)(&one_slot);
        for moment in 0..BATCHES {
            let mut found = None;
            until("the end of a last child", async || {
                found = self.ended().intersection(&last).next().copied();
                found.is_some()
            })
            .await;
            let found = found.unwrap();
            last.remove(&found);
            // It is written within some milliseconds: this is before, then, and after.
            tokio::time::sleep(Duration::from_millis(moment)).await;
            node.kill().unwrap();
            written += usize::from(self.client.find(found).await.unwrap().unwrap().state.is_terminal());
            node = (self.node)(&one_slot);
        }
        until("the end of all batches", async || self.all_ended().await).await;
        drop(node);
        println!("{BATCHES} kills at a last child, {written} of them after its end was written");
        self.batches_are_whole().await;
    }

    async fn batches_are_whole(&self) {
        let jobs = self.jobs().await;
        let batches = self.client.batches(None, 100).await.unwrap().items;
        assert_eq!(batches.len() as u64, BATCHES);
        assert_eq!(jobs.len() as u64, BATCHES * (CHILDREN + 3), "children, the batch, and what may follow");
        let mut followers: HashMap<JobId, Vec<JobState>> = HashMap::new();
        for job in jobs.iter().filter(|job| job.job_type != ratchet_core::JobType::BatchChild) {
            if let Some(batch) = job.workflow.filter(|batch| *batch != job.id) {
                followers.entry(batch).or_default().push(job.state);
            }
        }
        for batch in batches {
            let of =
                |state| jobs.iter().filter(|job| job.parent == Some(batch.id) && job.state == state).count() as u64;
            let counts = batch.counts;
            assert_eq!(counts.total, CHILDREN);
            let found = [of(JobState::Succeeded), of(JobState::Failed), of(JobState::Canceled)];
            assert_eq!([counts.succeeded, counts.failed, counts.canceled], found, "each child is counted once");
            let mut followed = followers.remove(&batch.id).unwrap_or_default();
            followed.sort_unstable();
            let mut expected = [JobState::Succeeded, JobState::Canceled];
            expected.sort_unstable();
            assert_eq!(followed, expected, "of what may follow one does");
        }
    }

    /// Kills a node while it sends signals to jobs that wait, again and again, until all have got theirs.
    async fn kill_at_signals(&self) {
        let seed = trial::seed();
        let mut random = fastrand::Rng::with_seed(seed);
        let waits = (0..WAITS).map(|at| self.client.enqueue(signaled(at)).await_signal(key(at), None));
        let ids: Vec<JobId> = self.client.submit_all(waits).await.unwrap().iter().map(JobHandle::id).collect();
        let errand = Errand::Signal(ids.clone()).to_arg();
        let args = [&QUICK[..], &["--errand", &errand]].concat();
        let given = async || {
            let waits = self.client.store().signals(&ids).await.unwrap();
            waits.iter().filter(|wait| wait.signal.is_some()).count()
        };
        let mut delivered = Vec::new();
        for kill in 0..SIGNAL_KILLS {
            let node = (self.node)(&args);
            until("some more signals", async || given().await > kill * SIGNALS_BETWEEN).await;
            tokio::time::sleep(Duration::from_micros(random.u64(0..4_000))).await;
            node.kill().unwrap();
            delivered.push(given().await);
        }
        println!("signals delivered at each kill: {delivered:?} of {WAITS}; RATCHET_SEED={seed}");
        let node = (self.node)(&args);
        until("the end of all that waited", async || self.all_ended().await).await;
        drop(node);
        for id in &ids {
            let job = self.client.find(*id).await.unwrap().unwrap();
            // Its handler refuses a signal that is another's, or none.
            assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1), "{job:?}; RATCHET_SEED={seed}");
        }
        let next = (0..WAITS).map(|at| self.client.enqueue(signaled(at)).await_signal(key(at), None));
        for job in self.client.submit_all(next).await.unwrap() {
            let state = job.status().await.unwrap();
            assert_eq!(state, JobState::Waiting, "a signal was kept beside the one that came; RATCHET_SEED={seed}");
        }
    }
}

async fn on_sqlite(play: impl AsyncFn(Scene<'_>)) {
    let site = Site::new().await;
    play(Scene { client: &site.client, node: &|args| site.node_with(args), lines: &|| site.lines() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_a_batch_s_last_child_counts_it_once() {
    on_sqlite(async |scene: Scene<'_>| scene.kill_at_last_children().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_a_signal_s_delivery_delivers_it_once() {
    on_sqlite(async |scene: Scene<'_>| scene.kill_at_signals().await).await;
}

on_both_servers!(a_kill_at_a_last_child_or_at_a_signal_does_it_once);

async fn a_kill_at_a_last_child_or_at_a_signal_does_it_once(database: Database) {
    let _turn = my_turn().await;
    let cluster = Cluster::on(database).await;
    let scene = Scene { client: &cluster.client, node: &|args| cluster.node_with(args), lines: &|| cluster.lines() };
    scene.kill_at_last_children().await;
    scene.kill_at_signals().await;
}
