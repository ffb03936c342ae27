//! A thread of the store's own for everything that holds the file's write lock.

use std::future::Future;

use ratchet_core::{ErrorKind, StoreError};
use tokio::runtime::{Builder, Runtime};

/// Runs transactions apart from the application's runtime.
///
/// A transaction is several statements, and between them somebody has to go on. If that were a worker of the
/// application, a handler that blocks it would hold the write lock meanwhile, and with it every heartbeat on the file.
#[derive(Debug)]
pub(crate) struct WriterThread {
    runtime: Option<Runtime>,
}

impl WriterThread {
    pub(crate) fn start() -> Result<Self, StoreError> {
        let built = Builder::new_multi_thread().worker_threads(1).thread_name("ratchet-sqlite").enable_all().build();
        let runtime = built.map_err(|error| {
            let problem = "the operating system refused a thread for writing";
            StoreError::new(ErrorKind::Unavailable, "opening a SQLite store", problem).with_source(error)
        })?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs a transaction to its end, even if the caller does not wait for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        transaction: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let runtime = self.runtime.as_ref().expect("it is there until the drop");
        runtime.spawn(transaction).await.unwrap_or_else(|error| {
            let problem = "the store's thread ended; what was asked may or may not have happened";
            Err(StoreError::new(ErrorKind::Unavailable, "writing to a SQLite store", problem).with_source(error))
        })
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        // Whoever drops the store may be a task, which must not wait for a thread.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
