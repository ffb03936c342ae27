//! Carrying a trace from whoever submits a job to whoever runs it.

use std::sync::Arc;

use ratchet_core::TraceContext;
use ratchet_core::store::SubmitUnit;

use crate::client::Client;
use crate::guard;
use crate::run::context::JobContext;

/// Knows the tracing system of the application: which trace is current where a job is submitted, and how a run goes on
/// with it.
///
/// Without one, jobs belong to the trace that they were given with `.trace_context(…)`, or to that of the job whose handler
/// submits them. It is called on every submit and at the begin of every run that has a trace, so it should be quick. One
/// that panics is passed over.
///
/// ```
/// use ratchet_core::TraceContext;
/// use ratchet_engine::TraceCapture;
///
/// tokio::task_local! {
///     /// Set for each request from its headers, by `TraceContext::from_headers`.
///     static TRACE: TraceContext;
/// }
///
/// struct OfTheRequest;
///
/// impl TraceCapture for OfTheRequest {
///     fn current(&self) -> Option<TraceContext> {
///         TRACE.try_with(Clone::clone).ok()
///     }
/// }
/// ```
pub trait TraceCapture: Send + Sync + 'static {
    /// The trace that is current here, if there is one.
    fn current(&self) -> Option<TraceContext>;

    /// Ties the span of a run, which has not been entered yet, to the trace that its job was submitted in: whatever makes
    /// `parent` the parent of `span`.
    fn attach(&self, span: &tracing::Span, parent: &TraceContext) {
        let _ = (span, parent);
    }
}

impl Client {
    /// Uses this to find out which trace is current where jobs are submitted. The first one that a client is given counts, and
    /// its clones have it too; for a node, see the builder's `trace_capture(…)`.
    #[must_use]
    pub fn with_trace_capture(self, capture: impl TraceCapture) -> Self {
        self.capture_traces(Arc::new(capture));
        self
    }

    /// The trace that is current: of the application, or of the job whose handler this is.
    pub(crate) fn current_trace(&self) -> Option<TraceContext> {
        let current =
            |capture: &Arc<dyn TraceCapture>| guard::call(self.meter(), guard::TRACE_CAPTURE, || capture.current());
        let captured = self.trace_capture().and_then(|capture| current(capture).ok().flatten());
        captured.or_else(JobContext::current_trace)
    }

    /// Jobs that were given no trace go on with that of the job with which they hang together, or with the one that is
    /// current.
    pub(crate) fn trace(&self, unit: &mut SubmitUnit) {
        let tied = !unit.edges.is_empty() || unit.batch.is_some();
        let given = unit.jobs.first().filter(|_| tied).and_then(|first| first.spec.trace.clone());
        let Some(trace) = given.or_else(|| self.current_trace()) else { return };
        let hook = unit.batch.as_mut().and_then(|batch| batch.hook.as_mut());
        for spec in unit.jobs.iter_mut().map(|job| &mut job.spec).chain(hook.map(|hook| &mut hook.spec)) {
            spec.trace.get_or_insert_with(|| trace.clone());
        }
    }

    /// Makes the span of a run part of its job's trace.
    pub(crate) fn attach_trace(&self, span: &tracing::Span, parent: &TraceContext) {
        if let Some(capture) = self.trace_capture() {
            let _ = guard::call(self.meter(), guard::TRACE_CAPTURE, || capture.attach(span, parent));
        }
    }
}
