use std::future::Future;

use ratchet_core::{ErrorKind, StoreError};
use tokio::runtime::{Builder, Runtime};

/// Runs a store's transactions apart from the application's runtime.
///
/// A transaction is several statements, and between them somebody has to go on. If that were a worker of the
/// application, a handler that blocks it would hold the transaction's locks meanwhile. And a connection belongs to the
/// runtime that opened it, while a store may be used from several.
#[derive(Debug)]
pub struct StoreThread {
    runtime: Option<Runtime>,
}

impl StoreThread {
    /// Starts `threads` threads with this name.
    pub fn start(name: &str, threads: usize) -> Result<Self, StoreError> {
        let built = Builder::new_multi_thread().worker_threads(threads).thread_name(name).enable_all().build();
        let runtime = built.map_err(|error| {
            let problem = "the operating system refused a thread for the store";
            StoreError::new(ErrorKind::Unavailable, "opening a store", problem).with_source(error)
        })?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs a transaction to its end, even if the caller does not wait for it.
    pub async fn run<T: Send + 'static>(
        &self,
        transaction: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let runtime = self.runtime.as_ref().expect("it is there until the drop");
        runtime.spawn(transaction).await.unwrap_or_else(|error| {
            let problem = "the store's thread ended; what was asked may or may not have happened";
            Err(StoreError::new(ErrorKind::Unavailable, "using a store", problem).with_source(error))
        })
    }

    /// Runs something for as long as the store lives.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> tokio::task::AbortHandle {
        let runtime = self.runtime.as_ref().expect("it is there until the drop");
        runtime.spawn(task).abort_handle()
    }
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        // Whoever drops the store may be a task, which must not wait for a thread.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
