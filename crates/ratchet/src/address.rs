//! Opening whichever store an address names.

use std::sync::Arc;

use ratchet_core::{ErrorKind, Store, StoreError};

/// Opens the store at an address, as it stands in a configuration: `postgres://…`, `mysql://…`, or the path of a SQLite
/// file, with or without `sqlite://` before it. With `migrate` its schema is brought up to date, and a missing file is created.
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let address = dir.path().join("jobs.db").display().to_string();
/// let store = ratchet::open_store(&address, true).await?;
/// assert_eq!(store.name(), "sqlite");
/// # Ok(()) }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) for a database whose feature was not compiled in; and what opening that store says.
pub async fn open_store(address: &str, migrate: bool) -> Result<Arc<dyn Store>, StoreError> {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    if rest.is_empty() {
        let problem = "the address is empty; write postgres://…, mysql://… or the path of a SQLite file";
        return Err(StoreError::new(ErrorKind::Invalid, "opening a store", problem));
    }
    let scheme = scheme.to_ascii_lowercase();
    let url = format!("{scheme}://{rest}");
    match scheme.as_str() {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => {
            let store = crate::postgres::PostgresStore::options(&url).migrate(migrate).connect().await?;
            Ok(Arc::new(store))
        }
        #[cfg(feature = "mysql")]
        "mysql" | "mariadb" => {
            let store = crate::mysql::MysqlStore::options(&url).migrate(migrate).connect().await?;
            Ok(Arc::new(store))
        }
        #[cfg(feature = "sqlite")]
        "" | "sqlite" => {
            let store = crate::sqlite::SqliteStore::options(rest).create(migrate).migrate(migrate).open().await?;
            Ok(Arc::new(store))
        }
        _ => {
            let _ = (migrate, url);
            let problem = format!(
                "nothing here opens {scheme:?}; compile ratchet with the feature postgres, mysql or sqlite, and write \
                 postgres://…, mysql://… or the path of a SQLite file"
            );
            Err(StoreError::new(ErrorKind::Invalid, "opening a store", problem))
        }
    }
}
