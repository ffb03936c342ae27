//! A job that writes a row and completes in one transaction: however often it runs, there is one row.

use std::time::Duration;

use anyhow::Result;
use ratchet::{BoxError, Failure, Job, JobContext, Requirement};
use serde::{Deserialize, Serialize};

use crate::record::{Deed, Record, Run};

/// The table of the rows. Nothing in it keeps a job from having two.
pub const CREATE_LEDGER: &str = "create table if not exists ledger (job varchar(36) not null)";

/// Where the rows go.
#[derive(Debug, Clone)]
pub enum Ledger {
    /// In the store's own PostgreSQL.
    Postgres(ratchet::postgres::sqlx::PgPool),
    /// In the store's own MariaDB.
    Mysql(ratchet::mysql::sqlx::MySqlPool),
    /// Nowhere: the store is none that has these.
    Closed,
}

impl Ledger {
    /// The ledger beside a store at this address; connections are made when they are needed.
    ///
    /// # Errors
    /// If the address cannot be read.
    pub fn beside(address: &str) -> Result<Self> {
        Ok(match address.split_once("://").map(|(scheme, _)| scheme) {
            Some("postgres") => {
                Self::Postgres(ratchet::postgres::sqlx::postgres::PgPoolOptions::new().connect_lazy(address)?)
            }
            Some("mysql") => Self::Mysql(ratchet::mysql::sqlx::mysql::MySqlPoolOptions::new().connect_lazy(address)?),
            _ => Self::Closed,
        })
    }
}

/// Books a row and completes, taking so many milliseconds in the middle of its transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Book(pub u64);

impl Job for Book {
    const KIND: &'static str = "book";
    type Output = ();

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<Record>(), Requirement::state::<Ledger>()]
    }

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        let (record, run) = (ctx.state::<Record>(), Run::of(&ctx));
        record.add(Deed::Began(run));
        let booked = self.book(&ctx).await.map_err(Failure::new);
        record.add(Deed::Ended(run));
        booked
    }
}

impl Book {
    async fn book(&self, ctx: &JobContext) -> Result<(), BoxError> {
        let id = ctx.id().to_string();
        let pause = || tokio::time::sleep(Duration::from_millis(self.0));
        match &*ctx.state::<Ledger>() {
            Ledger::Postgres(pool) => {
                use ratchet::postgres::{CompleteIn, sqlx};
                let mut transaction = pool.begin().await?;
                sqlx::query("insert into ledger (job) values ($1)").bind(id).execute(&mut *transaction).await?;
                pause().await;
                ctx.complete_in(&mut transaction, &()).await?;
                transaction.commit().await?;
            }
            Ledger::Mysql(pool) => {
                use ratchet::mysql::{CompleteIn, sqlx};
                let mut transaction = pool.begin().await?;
                sqlx::query("insert into ledger (job) values (?)").bind(id).execute(&mut *transaction).await?;
                pause().await;
                ctx.complete_in(&mut transaction, &()).await?;
                transaction.commit().await?;
            }
            Ledger::Closed => return Err("there is no ledger beside this store".into()),
        }
        Ok(())
    }
}
