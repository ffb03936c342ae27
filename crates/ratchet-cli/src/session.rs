//! What every command has: the database and where to print.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use ratchet::sqlite::SqliteStore;
use ratchet::{Client, Ratchet};

use crate::output::Output;

/// Where the database is unless somebody says otherwise.
pub(crate) const DATABASE_DEFAULT: &str = "./ratchet.db";

/// What every command has.
pub(crate) struct Session {
    pub(crate) database: PathBuf,
    pub(crate) output: Output,
}

impl Session {
    /// A client of the database that is there; it is neither created nor changed.
    pub(crate) async fn client(&self) -> Result<Client> {
        let path = self.database.display();
        if !self.database.exists() {
            bail!(
                "there is no database at {path}; `ratchet migrate` creates it, `ratchet demo` creates and fills it, \
                 and --database names another"
            );
        }
        let store = SqliteStore::options(&self.database).create(false).migrate(false).open().await;
        let store =
            store.context("the database cannot be used as it is; `ratchet migrate` brings its schema up to date")?;
        Ok(Ratchet::client(store))
    }

    /// The store, created and brought up to date if need be.
    pub(crate) async fn create_store(&self) -> Result<SqliteStore> {
        Ok(SqliteStore::open(&self.database).await?)
    }
}
