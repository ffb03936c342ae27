//! How a driver runs a few statements as one transaction.

use std::future::Future;
use std::pin::Pin;

use ratchet_core::StoreError;

use crate::waist::conn::Conn;

/// What a piece of work is going to do, so that the driver can choose the cheapest way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// It only reads.
    Read,
    /// It is one statement, or one round trip, which needs no transaction around it. If its answer is lost it is run again:
    /// it changes nothing that it has changed before.
    Statement,
    /// The same of many rows. To put it together takes long enough that nobody else should wait on the thread that does: a driver
    /// with threads of its own does it there.
    LongStatement,
    /// It writes.
    Write,
    /// It writes if there is something to write, and often there is not.
    MaybeWrite,
}

/// What runs in a transaction. It may run more than once, if the database rolled it back to resolve a conflict.
pub type Work<T> = Box<
    dyn for<'c> Fn(&'c mut (dyn Conn + 'c)) -> Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'c>>
        + Send
        + Sync,
>;

/// Work for [`Backend::transact`](crate::Backend::transact): what it uses is cloned for every run.
#[doc(hidden)]
#[macro_export]
macro_rules! work {
    ([$($used:ident),*], |$conn:ident| $call:expr) => {
        $crate::__private::work(move |$conn| {
            $(let $used = $used.clone();)*
            ::std::boxed::Box::pin(async move { $call.await })
        })
    };
}

/// Tells the compiler what a closure is to be.
#[doc(hidden)]
pub fn work<T, F>(run: F) -> Work<T>
where
    F: for<'c> Fn(&'c mut (dyn Conn + 'c)) -> Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'c>>
        + Send
        + Sync
        + 'static,
{
    Box::new(run)
}
