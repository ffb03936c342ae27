//! A thousand schedules, and two nodes that fire them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ratchet::JobFilter;
use ratchet::{JobExt, JobId};
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::{Deal, Work};

use crate::cluster::{Cluster, on_both_servers};
use crate::until::until;

const SCHEDULES: usize = 1_000;

async fn two_nodes_fire_a_thousand_schedules_once_an_instant(database: Database) {
    let cluster = Cluster::on(database).await;
    let nodes = [cluster.node_with(&[]), cluster.node_with(&[])];
    let mut ids = BTreeSet::new();
    for serial in 0..SCHEDULES as u64 {
        let job = Deal { serial, work: Work::Sleep(0) }.with(|step| step.max_retries(0));
        ids.insert(cluster.client.schedule(job).every(Duration::from_secs(4)).create().await.unwrap().id());
    }
    // The first ones fire while the last are created.
    let fired = async || cluster.counts().await.values().sum::<u64>();
    let enough = fired().await + 2 * SCHEDULES as u64;
    until("two more fires of each", async || fired().await >= enough).await;
    drop(nodes);
    let mut instants: BTreeMap<JobId, Vec<i64>> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = cluster.client.list(&JobFilter::default(), after, 1_000).await.unwrap();
        for job in page.items {
            let schedule = job.parent.expect("schedules have fired every job");
            instants.entry(schedule).or_default().push(job.scheduled_time.as_microsecond());
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(instants.keys().copied().collect::<BTreeSet<_>>(), ids, "every schedule has fired");
    for (schedule, mut fires) in instants {
        fires.sort_unstable();
        let gaps: BTreeSet<i64> = fires.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap == 4_000_000), "{schedule}: one job an instant, none left out: {fires:?}");
    }
}

on_both_servers!(two_nodes_fire_a_thousand_schedules_once_an_instant);
