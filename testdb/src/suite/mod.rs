//! Tests that every SQL store runs, written once, and the databases they run on.
//!
//! A store's test crate implements [`SqlDatabase`], or [`TestServer`] and has the rest in [`ServerDatabase`]. Then
//! [`sql_suite!`](crate::sql_suite) and [`server_suite!`](crate::server_suite) turn every function here into a test of its name.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "tests: a panic is how they fail")]

mod cost;
mod server;
mod statements;
mod take;

use std::future::Future;
use std::sync::Arc;

pub use cost::{
    a_child_costs_about_as_much_as_a_plain_job, dead_children_are_retried_together, plain_jobs_cost_at_most,
};
use ratchet_conformance::Fixture;
use ratchet_core::claim::{Boost, ClaimRequest, Pool};
use ratchet_core::node::{NodeInfo, NodeRegistration};
use ratchet_core::store::ClusterStore;
use ratchet_core::{JobId, JobSpec, JsonText, Kind, NewJob, NodeId, NodeName, QueueName};
use ratchet_store_sql::{Backend, Dialect, SqlStore};
pub use server::{ServerDatabase, TestServer, url_of};
pub use statements::every_statement_prepares;
pub use take::{
    a_job_that_was_put_off_since_the_look_is_not_taken,
    a_limit_that_a_stalled_node_has_locked_holds_up_no_other_resource,
};
use uuid::Uuid;

/// A database that a test has to itself.
pub trait SqlDatabase: Send + Sync + Sized + 'static {
    /// What the store is built on.
    type Backend: Backend;
    /// The driver's connection.
    type Connection: Send;
    /// The SQL that the database speaks.
    const DIALECT: Dialect;

    /// Returns an empty database with the schema.
    fn fresh() -> impl Future<Output = Self> + Send;

    /// Opens the store.
    fn store(&self) -> impl Future<Output = SqlStore<Self::Backend>> + Send;

    /// Returns the name of the schema that holds the tables.
    fn schema(&self) -> &str;

    /// Opens a connection of the driver.
    fn connect(&self) -> impl Future<Output = Self::Connection> + Send;

    /// Prepares a statement, or returns why the database refuses it.
    fn prepare(conn: &mut Self::Connection, text: Arc<str>) -> impl Future<Output = Result<(), String>> + Send;
}

/// What the conformance suite runs on.
pub async fn fixture<D: SqlDatabase>() -> Fixture {
    let database = D::fresh().await;
    Fixture::new(database.store().await, database)
}

/// Runs `test` on a runtime with two threads.
pub fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

/// Registers a new node.
pub async fn register(store: &impl ClusterStore) -> NodeId {
    let id = NodeId(Uuid::new_v4());
    let node = NodeRegistration { id, name: NodeName::new("test").unwrap(), info: NodeInfo::default() };
    store.register(&node).await.unwrap();
    id
}

/// Asks for up to `limit` jobs of these kinds in the default queue.
pub fn request(node: NodeId, kinds: &[&str], limit: usize) -> ClaimRequest {
    let kinds = kinds.iter().map(|kind| Kind::new(kind).unwrap()).collect();
    let pools = vec![Pool { queue: QueueName::default(), kinds, free: limit }];
    ClaimRequest { node, pools, limit, probation: true, boost: Boost::default() }
}

/// A job of the kind `work`, with this number as its id.
pub fn job(number: u128) -> NewJob {
    NewJob::new(JobId(Uuid::from_u128(number)), JobSpec::new(Kind::new("work").unwrap(), JsonText::null()))
}

/// Makes tests of what every SQL store must do on a [`SqlDatabase`](crate::suite::SqlDatabase).
#[macro_export]
macro_rules! sql_suite {
    ($database:ty) => {
        $crate::sql_suite! { $database: every_statement_prepares, dead_children_are_retried_together }
    };
    ($database:ty: $($test:ident),*) => {
        $(
            #[test]
            fn $test() {
                $crate::suite::run($crate::suite::$test::<$database>());
            }
        )*
    };
}

/// Makes tests of what every store on a server must do on a [`TestServer`](crate::suite::TestServer), beside those of
/// [`sql_suite!`].
#[macro_export]
macro_rules! server_suite {
    ($server:ty) => {
        $crate::sql_suite! { $crate::suite::ServerDatabase<$server> }
        $crate::sql_suite! {
            $server:
            a_child_costs_about_as_much_as_a_plain_job,
            a_job_that_was_put_off_since_the_look_is_not_taken,
            a_limit_that_a_stalled_node_has_locked_holds_up_no_other_resource
        }
    };
}
