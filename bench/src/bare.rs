//! A bare connection to whichever database an address names, for statements that the product has not.

use std::str::FromStr as _;

use anyhow::{Context as _, Result, bail};
use ratchet_testdb::history::Sql;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, MySqlConnection, PgConnection, SqliteConnection};

/// One connection.
#[derive(Debug)]
pub enum Bare {
    /// To a file.
    Sqlite(SqliteConnection),
    /// To PostgreSQL.
    Postgres(PgConnection),
    /// To MariaDB; MySQL lacks its tables of numbers.
    Mysql(MySqlConnection),
}

impl Bare {
    /// Connects to a database that is there, as [`ratchet::open_store`] reads addresses.
    pub async fn open(address: &str) -> Result<Self> {
        let (scheme, rest) = address.split_once("://").unwrap_or(("sqlite", address));
        Ok(match scheme {
            "sqlite" => {
                let options = SqliteConnectOptions::new().filename(rest).disable_statement_logging();
                Self::Sqlite(options.connect().await?)
            }
            "postgres" | "postgresql" => {
                Self::Postgres(PgConnectOptions::from_str(address)?.disable_statement_logging().connect().await?)
            }
            "mysql" | "mariadb" => {
                Self::Mysql(MySqlConnectOptions::from_str(address)?.disable_statement_logging().connect().await?)
            }
            _ => bail!("nothing here opens {scheme:?}"),
        })
    }

    /// Whose SQL it takes.
    pub const fn sql(&self) -> Sql {
        match self {
            Self::Sqlite(_) => Sql::Sqlite,
            Self::Postgres(_) => Sql::Postgres,
            Self::Mysql(_) => Sql::Mariadb,
        }
    }

    /// Runs a statement; what it finds is not looked at.
    pub async fn run(&mut self, text: &str) -> Result<()> {
        let statement = sqlx::raw_sql(AssertSqlSafe(text.to_owned()));
        let ran = match self {
            Self::Sqlite(conn) => statement.execute(conn).await.map(drop),
            Self::Postgres(conn) => statement.execute(conn).await.map(drop),
            Self::Mysql(conn) => statement.execute(conn).await.map(drop),
        };
        ran.with_context(|| text.to_owned())
    }

    /// Has the server do now what it would do later: after many writes, that is not to be in what is measured next.
    pub async fn tidy(&mut self) -> Result<()> {
        for statement in self.sql().tidy() {
            self.run(statement).await?;
        }
        Ok(())
    }

    /// Leaves nothing in some tables.
    pub async fn empty(&mut self, tables: &[&str]) -> Result<()> {
        for table in tables {
            match self {
                Self::Sqlite(_) => self.run(&format!("DELETE FROM {table}")).await?,
                Self::Postgres(_) | Self::Mysql(_) => self.run(&format!("TRUNCATE TABLE {table}")).await?,
            }
        }
        Ok(())
    }
}
