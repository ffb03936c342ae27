//! Where handlers run.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::{AbortHandle, Abortable};
use ratchet_core::JobRecord;
use tokio::runtime::Handle;
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::guard;
use crate::observe::metrics::Meter;

/// Says where the handlers of jobs run: on a runtime of their own, on certain threads, by queue or by kind.
///
/// Without one, a handler runs on the runtime on which the node was started, and a blocking one on that runtime's blocking
/// pool. Slots, timeouts, cancellation, the panic guard, draining and what belongs to the handler's task stay as they are:
/// the node watches over the attempt from its own runtime, wherever the handler itself is. So a handler that blocks its
/// thread, though it should not, holds up those beside it on that executor, and neither the node nor other queues.
///
/// The handle of a tokio runtime is one, for all jobs: `.executor_provider(runtime.handle().clone())`. By queue:
///
/// ```
/// use ratchet_core::JobRecord;
/// use ratchet_engine::{Attempt, ExecutorProvider};
/// use tokio::runtime::Handle;
///
/// struct ReportsApart {
///     reports: Handle,
///     others: Handle,
/// }
///
/// impl ExecutorProvider for ReportsApart {
///     fn spawn(&self, job: &JobRecord, attempt: Attempt) {
///         let runtime = if job.spec.queue.as_str() == "reports" { &self.reports } else { &self.others };
///         runtime.spawn(attempt);
///     }
/// }
/// ```
///
/// An attempt that is dropped before its end, because the executor is gone, goes back after some seconds without having used up
/// an attempt of its job, and an error is logged. Keep the executor until the node has stopped.
pub trait ExecutorProvider: Send + Sync + 'static {
    /// Runs the attempt, which is a future, to its end. It must return at once; if it panics, the attempt goes back.
    fn spawn(&self, job: &JobRecord, attempt: Attempt);

    /// Runs the attempt of a blocking handler on a thread that it may block; on the blocking pool of the node's runtime unless
    /// it says otherwise.
    fn spawn_blocking(&self, job: &JobRecord, attempt: Box<dyn FnOnce() + Send>) {
        let _ = job;
        tokio::task::spawn_blocking(attempt);
    }
}

impl ExecutorProvider for Handle {
    fn spawn(&self, _job: &JobRecord, attempt: Attempt) {
        Self::spawn(self, attempt);
    }

    fn spawn_blocking(&self, _job: &JobRecord, attempt: Box<dyn FnOnce() + Send>) {
        Self::spawn_blocking(self, attempt);
    }
}

/// One run of a handler, to be polled by an [`ExecutorProvider`]: a future without a result.
pub struct Attempt(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Future for Attempt {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attempt")
    }
}

/// Runs handlers as a provider says; without one, as tokio does.
#[derive(Clone, Default)]
pub(crate) struct Executor(pub(crate) Option<std::sync::Arc<dyn ExecutorProvider>>);

/// A handler that runs elsewhere.
pub(crate) struct Elsewhere<T> {
    /// What it came to; an error if it was dropped before its end.
    pub(crate) returned: oneshot::Receiver<T>,
    /// Told when the handler is gone from its thread or its executor.
    gone: oneshot::Receiver<()>,
    abort: Option<AbortHandle>,
}

/// What a handler that was given up still holds; it is told when that is free again.
pub(crate) type Held = oneshot::Receiver<()>;

impl Executor {
    /// Whether async handlers run elsewhere than in the task that watches over them.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.0.is_some()
    }

    /// Runs an async handler where the provider says.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        meter: &Meter,
        job: &JobRecord,
        handler: impl Future<Output = T> + Send + 'static,
    ) -> Elsewhere<T> {
        let ((answer, returned), (holds, gone)) = (oneshot::channel(), oneshot::channel());
        let (abort, registration) = AbortHandle::new_pair();
        let attempt = async move {
            let end = handler.await;
            drop(holds);
            // Nobody waits for the answer of a handler that was given up.
            let _ = answer.send(end);
        };
        let abortable = Abortable::new(attempt, registration);
        let attempt = Attempt(Box::pin(async move {
            let _ = abortable.await;
        }));
        match &self.0 {
            Some(provider) => hand_over(meter, || provider.spawn(job, attempt)),
            None => drop(tokio::spawn(attempt)),
        }
        Elsewhere { returned, gone, abort: Some(abort) }
    }

    /// Runs a blocking handler on a thread. It cannot be taken from there.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        meter: &Meter,
        job: &JobRecord,
        handler: impl FnOnce() -> T + Send + 'static,
    ) -> Elsewhere<T> {
        let ((answer, returned), (holds, gone)) = (oneshot::channel(), oneshot::channel());
        let attempt = move || {
            let end = handler();
            drop(holds);
            let _ = answer.send(end);
        };
        match &self.0 {
            Some(provider) => hand_over(meter, || provider.spawn_blocking(job, Box::new(attempt))),
            None => drop(tokio::task::spawn_blocking(attempt)),
        }
        Elsewhere { returned, gone, abort: None }
    }
}

impl<T> Elsewhere<T> {
    /// Gives the handler up, if it has not ended; what it still holds then.
    pub(crate) fn give_up(mut self) -> Option<Held> {
        self.stop();
        let is_gone = !matches!(self.gone.try_recv(), Err(TryRecvError::Empty));
        let (_, gone) = oneshot::channel();
        (!is_gone).then(|| std::mem::replace(&mut self.gone, gone))
    }

    fn stop(&self) {
        if let Some(abort) = &self.abort {
            abort.abort();
        }
    }
}

/// Whoever watches over the handler may go away itself, with its node.
impl<T> Drop for Elsewhere<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Hands an attempt to a provider. One that panics drops it, which closes the attempt's channels.
fn hand_over(meter: &Meter, spawn: impl FnOnce()) {
    let _ = guard::call(meter, guard::EXECUTOR_PROVIDER, spawn);
}
