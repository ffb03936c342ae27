//! Which servers there are.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB, which speaks MySQL's protocol.
    Mysql,
    /// Redis.
    Redis,
    /// PgBouncer in transaction mode, in front of a PostgreSQL of ours.
    Pgbouncer,
}

impl Kind {
    /// Every kind; one that needs another comes after it.
    pub const ALL: [Self; 4] = [Self::Postgres, Self::Mysql, Self::Redis, Self::Pgbouncer];

    /// Its name on the command line and in the state file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Redis => "redis",
            Self::Pgbouncer => "pgbouncer",
        }
    }

    /// The environment variable that names a server of this kind to tests.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "RATCHET_TEST_POSTGRES",
            Self::Mysql => "RATCHET_TEST_MYSQL",
            Self::Redis => "RATCHET_TEST_REDIS",
            Self::Pgbouncer => "RATCHET_TEST_PGBOUNCER",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => Ok(kind),
            None => bail!("there is no server {name:?}; there are {}", Self::ALL.map(Self::name).join(", ")),
        }
    }
}
