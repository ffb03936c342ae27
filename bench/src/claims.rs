//! The time of a claim against what waits.

use std::time::Instant;

use anyhow::{Result, ensure};
use ratchet::{Kind, NodeId, NodeName, QueueName, Store};
use ratchet_bench::metrics::{Sample, median, micros};
use ratchet_core::claim::Boost;
use ratchet_core::node::{NodeInfo, NodeRegistration};
use ratchet_core::{Change, ClaimRequest, Pool, Settlement};
use uuid::Uuid;

use crate::raw::{Lane, RawJob, Take, kind_name};
use crate::site::Site;
use crate::sizes::Sizes;

/// Jobs of one claim.
const CLAIM: usize = 50;
const KINDS: usize = 50;
/// Jobs that are put in together.
const FILL: usize = 5_000;

/// Claims at growing backlogs, with one kind and with many; both in turn on the same rows.
pub(crate) async fn against_backlog(site: &dyn Site, sizes: &Sizes) -> Result<Vec<Sample>> {
    let one = growing(site, sizes, 1, &["claim_1k", "claim_100k", "claim_1m"]).await?;
    let many = growing(site, sizes, KINDS, &["claim_1k_kinds", "claim_100k_kinds", "claim_1m_kinds"]).await?;
    let times = |name, a: &Sample, b: &Sample| Sample::new(name, a.value / b.value, a.raw / b.raw);
    let (first, last) = (&one[0], &one[one.len() - 1]);
    let backlog = times("claim_times_backlog", last, first);
    let kinds = times("claim_times_kinds", &many[many.len() - 1], last);
    Ok(one.into_iter().chain(many).chain([backlog, kinds]).collect())
}

pub(crate) fn what(name: &str) -> String {
    match name {
        "claim_times_backlog" => "the largest backlog against the smallest, one kind".to_owned(),
        "claim_times_kinds" => format!("{KINDS} kinds against one, at the largest backlog"),
        _ => format!("a claim of {CLAIM}; raw: the ranges of all priorities, merged"),
    }
}

async fn growing(site: &dyn Site, sizes: &Sizes, kinds: usize, names: &[&'static str]) -> Result<Vec<Sample>> {
    let address = site.fresh("product").await?;
    let (opened, mut raw) = (site.open(&address).await?, site.raw(&address).await?);
    let (store, lanes) = (opened.store, Lane::mixed(kinds));
    let request = request(&*store, kinds).await?;
    let (mut samples, mut waiting) = (Vec::new(), 0);
    for (name, backlog) in names.iter().zip(sizes.backlogs) {
        while waiting < *backlog {
            let jobs = RawJob::mixed(FILL.min(backlog - waiting), kinds);
            raw.insert(&jobs).await?;
            waiting += jobs.len();
        }
        raw.tidy().await?;
        let (mut product_us, mut raw_us) = (Vec::new(), Vec::new());
        for n in 0..sizes.claims + WARM_CLAIMS {
            let begun = Instant::now();
            let taken = raw.turn(&[], &Take { lanes: &lanes, most: CLAIM }).await?;
            let raw_took = begun.elapsed();
            ensure!(taken.len() == CLAIM, "the bare claim took {} of {CLAIM}", taken.len());
            raw.put_back(&taken).await?;
            let begun = Instant::now();
            let turn = store.settle_and_claim(&[], Some(&request)).await?;
            let took = begun.elapsed();
            ensure!(turn.claimed.len() == CLAIM, "the claim took {} of {CLAIM}", turn.claimed.len());
            let back: Vec<Settlement> = turn.claimed.iter().map(|claim| put_back(claim.fence)).collect();
            store.settle_and_claim(&back, None).await?;
            if n >= WARM_CLAIMS {
                product_us.push(micros(took));
                raw_us.push(micros(raw_took));
            }
        }
        samples.push(Sample::new(name, median(&product_us), median(&raw_us)));
        eprintln!("  {name:<16} {:>8.0}, raw {:>8.0}", median(&product_us), median(&raw_us));
    }
    Ok(samples)
}

/// Claims before those that are timed.
const WARM_CLAIMS: usize = 10;

async fn request(store: &dyn Store, kinds: usize) -> Result<ClaimRequest> {
    let node = NodeId(Uuid::from_u128(2));
    let registration = NodeRegistration { id: node, name: NodeName::new("bench")?, info: NodeInfo::default() };
    store.register(&registration).await?;
    let kinds = (0..kinds).map(|kind| Kind::new(kind_name(kind))).collect::<Result<_, _>>()?;
    let pool = Pool { queue: QueueName::default(), kinds, free: CLAIM };
    Ok(ClaimRequest { node, pools: vec![pool], limit: CLAIM, probation: true, boost: Boost::default() })
}

fn put_back(fence: ratchet_core::Fence) -> Settlement {
    Settlement::of(fence, Change::Defer { delay: std::time::Duration::ZERO })
}
