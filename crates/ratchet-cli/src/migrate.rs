//! `ratchet migrate`

use anyhow::Result;
use serde::Serialize;

use crate::exit::Exit;
use crate::session::Session;

#[derive(Serialize)]
struct Migrated {
    database: String,
    created: bool,
}

/// Creates the database, or brings its schema up to date; doing it again changes nothing.
pub(crate) async fn run(session: &Session) -> Result<Exit> {
    let created = session.file_is_missing();
    drop(session.create_store().await?);
    let migrated = Migrated { database: session.shown(), created };
    session.output.show(&migrated, |Migrated { database, created }| {
        format!(
            "{database} {}",
            if *created { "created; its schema is up to date" } else { "has an up-to-date schema" }
        )
    })?;
    Ok(Exit::Done)
}
