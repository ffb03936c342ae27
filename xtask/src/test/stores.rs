//! Which stores the test run really covered: no store is left out in silence.

use anyhow::Result;

use super::binaries::TestBinaries;
use super::steps::Ended;

/// A store and the package whose integration tests hold it to the conformance suite.
struct StoreUnderTest {
    name: &'static str,
    package: &'static str,
    /// The module of those tests.
    module: &'static str,
}

const STORES: &[StoreUnderTest] = &[
    StoreUnderTest { name: "memory", package: "ratchet-conformance", module: "memory" },
    StoreUnderTest { name: "sqlite", package: "ratchet-store-sqlite", module: "conformance" },
    StoreUnderTest { name: "postgres", package: "ratchet-store-postgres", module: "conformance" },
    StoreUnderTest { name: "mysql", package: "ratchet-store-mysql", module: "conformance" },
];

/// Counts the conformance cases of every store; a store without any was not tested.
pub(crate) fn covered(binaries: &TestBinaries) -> Result<Ended> {
    let mut missing = Vec::new();
    for store in STORES {
        let mut binaries = binaries.iter();
        let binary = binaries.find(|binary| binary.package == store.package && binary.integration.is_some());
        let cases = binary.map_or(Ok(0), |binary| binary.count(store.module))?;
        println!("{:<10}{cases} conformance cases", store.name);
        if cases == 0 {
            missing.push(store.name);
        }
    }
    Ok(if missing.is_empty() { Ended::Done } else { Ended::Skipped(format!("not tested: {}", missing.join(", "))) })
}
