//! The suite for coordinators on a bus in memory, and on buses that are broken on purpose.

use std::collections::BTreeSet;

use futures_util::stream::{self, StreamExt};
use ratchet_conformance::coordinator::broken::{BrokenTransport, CoordinatorFlaw};
use ratchet_conformance::coordinator::{Bus, COORDINATOR_CASES, Cluster, CoordinatorFixture};

async fn fresh() -> CoordinatorFixture {
    CoordinatorFixture::new(Bus::default())
}

ratchet_conformance::coordinator_suite!(fresh);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_goes_red_on_the_broken_coordinators_that_it_names() {
    let pairs = COORDINATOR_CASES.iter().flat_map(|case| case.broken_by.iter().map(move |flaw| (case, *flaw)));
    // Most of them wait for something that does not come, so they do it together.
    let green: Vec<_> = stream::iter(pairs)
        .map(|(case, flaw)| async move {
            let broken = BrokenTransport::new(fresh().await, flaw);
            let cluster = Cluster::new(CoordinatorFixture::new(broken));
            let joined = tokio::spawn((case.run)(cluster)).await;
            let red = joined.is_err_and(|error| error.is_panic());
            (!red).then(|| format!("{} passes on a coordinator that {flaw:?}", case.name))
        })
        .buffer_unordered(16)
        .filter_map(|green| async move { green })
        .collect()
        .await;
    assert!(green.is_empty(), "{green:#?}");
}

#[test]
fn every_case_names_a_flaw_and_every_flaw_is_noticed() {
    let unbroken: Vec<_> =
        COORDINATOR_CASES.iter().filter(|case| case.broken_by.is_empty()).map(|case| case.name).collect();
    assert_eq!(unbroken, [""; 0]);
    let noticed: BTreeSet<_> = COORDINATOR_CASES.iter().flat_map(|case| case.broken_by).copied().collect();
    let unnoticed: Vec<_> = CoordinatorFlaw::ALL.iter().filter(|flaw| !noticed.contains(flaw)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}

#[test]
fn case_names_are_unique() {
    let names: BTreeSet<_> = COORDINATOR_CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), COORDINATOR_CASES.len());
}
