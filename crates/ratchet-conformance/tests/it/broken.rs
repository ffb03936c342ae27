//! A case that cannot fail is a defect: each is run on the broken stores that it names, and must go red.

use std::collections::BTreeSet;
use std::sync::Arc;

use ratchet_conformance::broken::{BrokenStore, Flaw};
use ratchet_conformance::{CASES, Case, Fixture, Harness};

/// Races and random walks may miss a flaw: the flaw that a walk comes by least often is seen by more than half of the
/// walks, so that all of twenty miss it once in ten million runs.
async fn goes_red(case: &Case, flaw: Flaw) -> bool {
    for _ in 0..20 {
        if fails_with(case, flaw).await {
            return true;
        }
    }
    false
}

async fn fails_with(case: &Case, flaw: Flaw) -> bool {
    let good = crate::memory::fresh().await;
    let store = Arc::new(BrokenStore::new(good.store, flaw));
    let harness = Harness::new(Fixture { store, ..good }).await;
    let joined = tokio::spawn((case.run)(harness)).await;
    joined.is_err_and(|error| error.is_panic())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_goes_red_on_the_broken_stores_that_it_names() {
    let mut green = Vec::new();
    for case in CASES {
        for flaw in case.broken_by {
            if !goes_red(case, *flaw).await {
                green.push(format!("{} passes on a store that {flaw:?}", case.name));
            }
        }
    }
    assert!(green.is_empty(), "{green:#?}");
}

#[test]
fn every_case_names_a_flaw() {
    let unbroken: Vec<_> = CASES.iter().filter(|case| case.broken_by.is_empty()).map(|case| case.name).collect();
    assert_eq!(unbroken, [""; 0]);
}

#[test]
fn every_flaw_is_noticed_by_a_case() {
    let noticed: BTreeSet<_> = CASES.iter().flat_map(|case| case.broken_by).copied().collect();
    let unnoticed: Vec<_> = Flaw::ALL.iter().filter(|flaw| !noticed.contains(flaw)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}

#[test]
fn case_names_are_unique() {
    let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len());
}
