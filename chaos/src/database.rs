//! A private server that a run may kill, and what a person would do to it.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use ratchet_testdb::{Profile, Server};

use crate::commit::Protocol;
use crate::proxy::Proxy;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Database {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mysql,
}

impl Database {
    /// Its language.
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Postgres => Protocol::Postgres,
            Self::Mysql => Protocol::Mysql,
        }
    }
}

/// A server of our own. All of its methods block.
#[derive(Debug)]
pub struct OwnServer {
    /// Which database it is.
    pub database: Database,
    server: Server,
}

impl OwnServer {
    /// A new one, whose commits survive a kill.
    ///
    /// # Errors
    /// If its packages are missing and cannot be installed, or it does not start; the text says what to do.
    pub fn start_new(database: Database) -> Result<Self> {
        let server = match database {
            Database::Postgres => Server::postgres(Profile::Fast),
            Database::Mysql => Server::mysql(Profile::Fast),
        };
        Ok(Self { database, server: server.context("the fault tests need a database server of their own")? })
    }

    /// How to reach it directly.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// How to reach it through a proxy.
    pub fn url_through(&self, proxy: &Proxy) -> String {
        self.url().replace(&format!(":{}/", self.server.port()), &format!(":{}/", proxy.port()))
    }

    /// A proxy before it.
    ///
    /// # Errors
    /// If there is no port to be had.
    pub async fn proxy(&self) -> Result<Proxy> {
        Proxy::before(self.server.port(), self.database.protocol()).await
    }

    /// Stops it in good order and starts it again.
    ///
    /// # Errors
    /// If it does not.
    pub fn restart(&mut self) -> Result<()> {
        self.server.stop()?;
        self.server.start()
    }

    /// Kills it (-9).
    ///
    /// # Errors
    /// If it lives on.
    pub fn kill(&mut self) -> Result<()> {
        self.server.kill()
    }

    /// Starts it after a kill.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&mut self) -> Result<()> {
        self.server.start()
    }

    /// Ends every connection but the one that asks for it.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn terminate_connections(&self) -> Result<()> {
        match self.database {
            Database::Postgres => self.ask(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                 where pid <> pg_backend_pid() and backend_type = 'client backend'",
            ),
            Database::Mysql => {
                let ids = self.ask(
                    "select id from information_schema.processlist where user = 'ratchet' and id <> connection_id()",
                )?;
                let kills: Vec<String> = ids.lines().map(|id| format!("kill {id}")).collect();
                // One that has just ended is no longer there to be killed.
                self.ask_each(&kills)
            }
        }
        .map(drop)
    }

    /// How many deadlocks it has resolved since it started.
    ///
    /// # Errors
    /// If the server refuses.
    pub fn deadlocks(&self) -> Result<u64> {
        let said = match self.database {
            Database::Postgres => self.ask("select sum(deadlocks) from pg_stat_database")?,
            Database::Mysql => self.ask(
                "select variable_value from information_schema.global_status where variable_name = 'innodb_deadlocks'",
            )?,
        };
        said.parse().with_context(|| format!("{said:?} is not a number of deadlocks"))
    }

    /// One statement's values, a line each, by the client that comes with the server.
    ///
    /// # Errors
    /// What the server said.
    pub fn ask(&self, statement: &str) -> Result<String> {
        let mut client = self.client();
        match self.database {
            Database::Postgres => client.args(["--command", statement]),
            Database::Mysql => client.args(["--execute", statement]),
        };
        let output = client.stdin(Stdio::null()).output().context("cannot run the server's client")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Statements of which any may fail.
    fn ask_each(&self, statements: &[String]) -> Result<String> {
        let mut client = self.client();
        client.args(["--force", "--execute", &statements.join("; ")]);
        let output = client.stdin(Stdio::null()).output().context("cannot run the server's client")?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn client(&self) -> Command {
        match self.database {
            Database::Postgres => {
                let mut psql = Command::new("psql");
                psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--dbname"]).arg(self.url());
                psql
            }
            Database::Mysql => {
                let mut mariadb = Command::new("mariadb");
                mariadb.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=ratchet"]);
                mariadb.args(["--password=ratchet", "--database=ratchet", "--skip-column-names", "--batch"]);
                mariadb.arg(format!("--port={}", self.server.port()));
                mariadb
            }
        }
    }
}
