//! The metrics of this process in the text form that Prometheus reads.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Once, before nodes and clients are made.
//! let exporter = ratchet::prometheus::install()?;
//! // Wherever the application answers `GET /metrics`.
//! let text: String = exporter.render();
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use ratchet_engine::metrics::names;

/// Upper bounds of the buckets of times, in seconds: from a millisecond to half an hour.
const SECONDS: &[f64] =
    &[0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0];
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Why the metrics of this process cannot be exported.
#[derive(Debug)]
pub struct InstallError(String);

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the Prometheus exporter was not installed: {}; install it once, and before any other recorder",
            self.0
        )
    }
}

impl std::error::Error for InstallError {}

/// Gives the metrics of this process.
#[derive(Clone)]
pub struct Exporter(PrometheusHandle);

impl Exporter {
    /// All metrics as they are now.
    pub fn render(&self) -> String {
        self.0.render()
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

/// Gathers the metrics of this process from now on, Ratchet's and others that go to the `metrics` facade.
///
/// # Errors
/// If the process has a recorder of metrics already.
pub fn install() -> Result<Exporter, InstallError> {
    let failed = |error: metrics_exporter_prometheus::BuildError| InstallError(error.to_string());
    let mut builder = PrometheusBuilder::new();
    for name in [names::DURATION, names::WAIT, names::TURN] {
        builder = builder.set_buckets_for_metric(Matcher::Full(name.replace('.', "_")), SECONDS).map_err(failed)?;
    }
    let handle = builder.install_recorder().map_err(failed)?;
    let kept = handle.clone();
    // What is measured is gathered until somebody asks; if nobody does, it must not grow.
    let upkeep = move || loop {
        std::thread::sleep(UPKEEP_EVERY);
        kept.run_upkeep();
    };
    let spawned = std::thread::Builder::new().name("ratchet-metrics".to_owned()).spawn(upkeep);
    spawned.map_err(|error| InstallError(error.to_string()))?;
    Ok(Exporter(handle))
}
