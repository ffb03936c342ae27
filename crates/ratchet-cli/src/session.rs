//! What every command has: the database and where to print.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, bail};
use ratchet::{Client, Store};

use crate::output::Output;

/// Where the database is unless somebody says otherwise.
pub(crate) const DATABASE_DEFAULT: &str = "./ratchet.db";

/// What every command has.
pub(crate) struct Session {
    /// The path of a SQLite file, or the URL of a server's database.
    pub(crate) database: String,
    pub(crate) output: Output,
    /// The client of the command, once it has one.
    client: OnceLock<Client>,
}

impl Session {
    pub(crate) fn new(database: String, output: Output) -> Self {
        Self { database, output, client: OnceLock::new() }
    }

    /// Lets nodes know of what was done before the process ends.
    pub(crate) async fn end(&self) {
        if let Some(client) = self.client.get() {
            client.flush().await;
        }
    }

    /// A client of the database that is there; it is neither created nor changed.
    pub(crate) async fn client(&self) -> Result<Client> {
        if self.file_is_missing() {
            bail!(
                "there is no database at {}; `ratchet migrate` creates it, `ratchet demo` creates and fills it, \
                 and --database names another",
                self.shown()
            );
        }
        let store = ratchet::open_store(&self.database, false).await;
        let store = store.with_context(|| format!("the database {} cannot be used as it is", self.shown()))?;
        Ok(self.client.get_or_init(|| Client::new(store)).clone())
    }

    /// The store, created and brought up to date if need be.
    pub(crate) async fn create_store(&self) -> Result<Arc<dyn Store>> {
        Ok(ratchet::open_store(&self.database, true).await?)
    }

    /// Whether the database is a file that is not there.
    pub(crate) fn file_is_missing(&self) -> bool {
        !self.database.contains("://") && !Path::new(&self.database).exists()
    }

    /// Whether nobody named a database.
    pub(crate) fn is_default(&self) -> bool {
        self.database == DATABASE_DEFAULT
    }

    /// The database for people: a URL without its password.
    pub(crate) fn shown(&self) -> String {
        without_password(&self.database)
    }
}

fn without_password(database: &str) -> String {
    let Some((scheme, rest)) = database.split_once("://") else { return database.to_owned() };
    let Some((credentials, host)) = rest.rsplit_once('@') else { return database.to_owned() };
    let user = credentials.split_once(':').map_or(credentials, |(user, _)| user);
    format!("{scheme}://{user}@{host}")
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn passwords_are_not_shown() {
        let check = |database: &str, shown: &str| assert_eq!(without_password(database), shown);
        check("./jobs.db", "./jobs.db");
        check("postgres://app:s3cret@db/app", "postgres://app@db/app");
        check("postgres://app:p@ss@db:5432/app?x=1", "postgres://app@db:5432/app?x=1");
        check("mysql://app@db/app", "mysql://app@db/app");
        check("postgres://db/app", "postgres://db/app");
    }
}
