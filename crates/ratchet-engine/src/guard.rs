//! The guard around code that may panic: what users plug in, and the node's own loops.
//!
//! Nothing else in the engine catches panics. A panic is logged, counted and returned to the caller, which decides what happens
//! instead. The count is the metric `ratchet.panics` and [`Stats::panics`](crate::Stats::panics).
//!
//! Handlers have [`attempt`]. Stores and clocks have no guard of their own: loops call them, which run under the guard, and
//! clients, whose callers get the panic. So does the caller of `start` get that of a node's identity.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt as _;

use crate::observe::metrics::{Meter, names};

/// Code that runs under the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuardedCode {
    /// Its name in the log, in metrics and in statistics.
    pub(crate) name: &'static str,
    /// The consequence of its panic, for the log.
    pub(crate) instead: &'static str,
}

macro_rules! extensions {
    ($($code:ident $name:literal $instead:literal)*) => {
        $(pub(crate) const $code: GuardedCode = GuardedCode { name: $name, instead: $instead };)*

        #[cfg(test)]
        const EXTENSIONS: &[GuardedCode] = &[$($code),*];
    };
}

// The guide's operations page lists the names; a test compares them. Loops have theirs from `Loop`.
extensions! {
    AUTHORIZER "authorizer" "nothing is allowed, and nothing is shown"
    COORDINATOR "coordinator" "hints are lost, and work is found by polling"
    ERROR_SANITIZER "error_sanitizer" "the error's text is withheld"
    EVENT_LISTENER "event_listener" "the listener stays registered"
    EXECUTOR_PROVIDER "executor_provider" "the job is deferred"
    GATE "gate" "the attempt has panicked"
    JOB_LOG_SINK "job_log_sink" "the lines are refused"
    JOB_POLICY "job_policy" "the job is refused"
    LIFECYCLE_HOOK "lifecycle_hook" "the hook has failed"
    METRICS_COLLECTOR "metrics_collector" "the collector is not called again"
    PAYLOAD_CODEC "payload_codec" "the text is neither written nor read"
    POLLING_STRATEGY "polling_strategy" "the next poll follows after two seconds"
    RESILIENCE_STRATEGY "resilience_strategy" "the job runs as if there were no strategy"
    RETRY_POLICY "retry_policy" "the job's own settings decide"
    TRACE_CAPTURE "trace_capture" "the trace ends here"
}

/// A panic that was caught.
#[derive(Debug)]
pub(crate) struct Panicked(Box<dyn Any + Send>);

impl Panicked {
    /// The message of the panic.
    pub(crate) fn text(&self) -> String {
        let text = self.0.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| self.0.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
    }
}

/// Calls a function that may panic.
pub(crate) fn call<T>(meter: &Meter, code: GuardedCode, function: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| caught(meter, code, panic))
}

/// Waits for a future that may panic.
pub(crate) async fn run<T>(meter: &Meter, code: GuardedCode, future: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|panic| caught(meter, code, panic))
}

/// Waits for the handler of a job.
///
/// Its panic is an outcome and has records of its own: the attempt, an event, and `ratchet.jobs.failed` with the class
/// `panicked`. So it is neither logged nor counted here, and any growth of `ratchet.panics` is a fault of the node or of what was
/// plugged into it.
pub(crate) async fn attempt<T>(handler: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(handler).catch_unwind().await.map_err(Panicked)
}

/// Counts a panic; logs the first, the second, the fourth and so on, so that a listener that panics at every event does not
/// fill the log.
fn caught(meter: &Meter, code: GuardedCode, panic: Box<dyn Any + Send>) -> Panicked {
    let GuardedCode { name, instead } = code;
    let panics = meter.panics().add(name);
    if panics.is_power_of_two() {
        tracing::error!(what = name, panics, "caught a panic: {instead}");
    }
    // A collector that has just panicked is not called to count that.
    if code != METRICS_COLLECTOR {
        meter.count(names::PANICS, &[("what", name)], 1);
    }
    Panicked(panic)
}

/// The number of panics by the name of the code. It has at most as many entries as there are names in the engine's code.
#[derive(Debug, Default)]
pub(crate) struct Panics(Mutex<BTreeMap<&'static str, u64>>);

impl Panics {
    /// Returns the number of panics of this code, with the new one.
    fn add(&self, name: &'static str) -> u64 {
        let mut panics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let panics = panics.entry(name).or_default();
        *panics += 1;
        *panics
    }

    pub(crate) fn read(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::log_lines::LogLines;
    use crate::metrics::{Labels, MetricsCollector};

    const CODE: GuardedCode = GuardedCode { name: "code", instead: "the test goes on" };

    /// The calls of a collector, and whether it panics at each.
    #[derive(Default)]
    struct Calls {
        calls: Mutex<Vec<String>>,
        panics: bool,
    }

    impl MetricsCollector for Arc<Calls> {
        fn count(&self, name: &'static str, labels: Labels<'_>, times: u64) {
            self.calls.lock().unwrap().push(format!("{name} {labels:?} {times}"));
            assert!(!self.panics, "a collector gone wrong");
        }
        fn time(&self, _: &'static str, _: Labels<'_>, _: f64) {}
        fn gauge(&self, _: &'static str, _: Labels<'_>, _: f64) {}
    }

    fn meter(panics: bool) -> (Arc<Calls>, Meter) {
        let calls = Arc::new(Calls { panics, ..Calls::default() });
        (calls.clone(), Meter::new(Arc::new(calls)))
    }

    async fn panics_or(panics: bool) -> u32 {
        tokio::task::yield_now().await;
        assert!(!panics, "code gone wrong");
        7
    }

    #[tokio::test]
    async fn a_panic_is_caught_and_counted_in_a_function_and_in_a_future() {
        let (calls, meter) = meter(false);
        assert_eq!(call(&meter, CODE, || 7).unwrap(), 7);
        assert_eq!(run(&meter, CODE, panics_or(false)).await.unwrap(), 7);
        assert_eq!(meter.panics().read(), BTreeMap::new());
        assert_eq!(call(&meter, CODE, || panic!("a reason")).map(|()| "?").unwrap_err().text(), "a reason");
        assert_eq!(run(&meter, CODE, panics_or(true)).await.unwrap_err().text(), "code gone wrong");
        let number = 1;
        let formatted = call(&meter, GATE, || panic!("reason {number}")).map(|()| "?");
        assert_eq!(formatted.unwrap_err().text(), "reason 1");
        assert_eq!(meter.panics().read(), BTreeMap::from([("code", 2), ("gate", 1)]));
        let counted = |name: &str| format!("ratchet.panics [(\"what\", {name:?})] 1");
        assert_eq!(*calls.calls.lock().unwrap(), [counted("code"), counted("code"), counted("gate")]);
    }

    #[tokio::test]
    async fn code_that_panics_all_the_time_is_logged_ever_less_often() {
        let (lines, _listening) = LogLines::listen();
        let (_, meter) = meter(false);
        for _ in 0..50 {
            call(&meter, CODE, || panic!("a function gone wrong")).map(|()| "?").unwrap_err();
            run(&meter, CODE, panics_or(true)).await.unwrap_err();
        }
        call(&meter, GATE, || panic!("another")).map(|()| "?").unwrap_err();
        assert_eq!(lines.field("panics"), ["1", "2", "4", "8", "16", "32", "64", "1"]);
        assert_eq!(lines.field("what")[0], "\"code\"");
        assert_eq!(lines.field("message")[0], "caught a panic: the test goes on");
        assert_eq!(meter.panics().read()["code"], 100);
    }

    #[test]
    fn a_collector_that_panics_is_counted_without_being_called() {
        let (calls, meter) = meter(true);
        call(&meter, CODE, || panic!("code gone wrong")).map(|()| "?").unwrap_err();
        meter.count("another", &[], 1);
        assert_eq!(calls.calls.lock().unwrap().len(), 1, "it is not called again");
        assert_eq!(meter.panics().read(), BTreeMap::from([("code", 1), ("metrics_collector", 1)]));
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_neither_logged_nor_counted() {
        let (lines, _listening) = LogLines::listen();
        assert_eq!(attempt(panics_or(true)).await.unwrap_err().text(), "code gone wrong");
        assert_eq!(lines.field("message"), Vec::<String>::new());
    }

    #[test]
    fn the_guide_names_everything_that_is_guarded() {
        let guide = include_str!("../../../docs/guide/operations.md");
        let row = guide.lines().find(|line| line.starts_with("| `ratchet.panics` ")).expect("the metric has a row");
        for GuardedCode { name, .. } in EXTENSIONS {
            assert!(row.contains(&format!("`{name}`")), "{name} is missing: {row}");
        }
    }
}
