//! Private database servers for tests and benchmarks, how tests find them, in [`history`] what they are filled with, and in
//! `suite`, a feature, the tests that all SQL stores share.
//!
//! A test that needs a database asks [`postgres_url`] and its siblings: the environment decides, or the servers that
//! `cargo xtask db start` left running. A test that wants to kill a database starts a [`Server`] of its own:
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use ratchet_testdb::{Profile, Server};
//!
//! let mut postgres = Server::postgres(Profile::Fast)?;
//! println!("{}", postgres.url());
//! postgres.kill()?; // no goodbye, as in a power cut of the process
//! postgres.start()?; // the same port, the same data
//! # Ok(())
//! # }
//! ```
//!
//! Servers come from Debian's packages, listen on 127.0.0.1 only, never run as root, and live in a directory of their
//! own below `/tmp`, which goes when they go. All of it is blocking: call it before a runtime, or on a thread that may
//! wait.

mod account;
mod find;
mod guardian;
pub mod history;
mod kind;
pub mod looks;
pub mod migrations;
mod packages;
mod port;
mod process;
mod recipe;
mod server;
mod servers;
mod site;
mod state;
#[cfg(feature = "suite")]
pub mod suite;

pub use find::{
    ALLOW_MISSING, from_environment, is_missing_allowed, mysql_url, pgbouncer_url, postgres_url, redis_url,
};
pub use kind::Kind;
pub use packages::install;
pub use server::Server;
pub use servers::Servers;
pub use site::Profile;
