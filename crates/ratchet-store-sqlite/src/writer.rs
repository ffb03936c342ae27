//! The one connection that writes.

use std::sync::atomic::{AtomicBool, Ordering};

use ratchet_core::{ErrorKind, StoreError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};

use crate::error::store_error;

/// How a transaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the file's write lock.
    Immediate,
    /// Without; the first write takes the lock, or fails if another process has written since the first read.
    Deferred,
}

impl Begin {
    pub(crate) const fn statement(self) -> &'static str {
        match self {
            Self::Immediate => "BEGIN IMMEDIATE",
            Self::Deferred => "BEGIN DEFERRED",
        }
    }
}

/// The connection, one user at a time.
///
/// Transactions run to their end on the [store's own thread](ratchet_store_pool::StoreThread), whether or not their caller still waits. If
/// that thread ends, the driver's transaction is rolled back when it is dropped, before the lock is given back.
#[derive(Debug)]
pub(crate) struct Writer {
    options: SqliteConnectOptions,
    conn: Mutex<Option<SqliteConnection>>,
    /// Set when the connection is of no more use.
    broken: AtomicBool,
}

impl Writer {
    pub(crate) fn new(options: SqliteConnectOptions) -> Self {
        Self { options, conn: Mutex::new(None), broken: AtomicBool::new(false) }
    }

    /// Waits for whoever uses the connection; opens it if it is not open.
    pub(crate) async fn lock(&self) -> Result<WriterGuard<'_>, StoreError> {
        let mut conn = self.conn.lock().await;
        if self.broken.swap(false, Ordering::SeqCst) {
            *conn = None;
        }
        if conn.is_none() {
            *conn = Some(self.options.connect().await.map_err(|error| store_error("opening the database", error))?);
        }
        Ok(WriterGuard { conn })
    }

    /// Classifies an error of BEGIN or COMMIT. Unless the file was just busy, the next user opens the connection anew:
    /// SQLite rolls back by itself when a disk is full, and the driver then believes in a transaction that is gone.
    pub(crate) fn failed(&self, doing: &'static str, error: sqlx::Error) -> StoreError {
        let error = store_error(doing, error);
        if *error.kind() != ErrorKind::Transient {
            self.broken.store(true, Ordering::SeqCst);
        }
        error
    }

    /// Looks at an error of what was done inside a transaction.
    pub(crate) fn noticed(&self, error: &StoreError) {
        if *error.kind() == ErrorKind::Unavailable {
            self.broken.store(true, Ordering::SeqCst);
        }
    }
}

pub(crate) struct WriterGuard<'a> {
    conn: MutexGuard<'a, Option<SqliteConnection>>,
}

impl WriterGuard<'_> {
    pub(crate) fn conn(&mut self) -> &mut SqliteConnection {
        self.conn.as_mut().expect("it was opened when it was locked")
    }
}
