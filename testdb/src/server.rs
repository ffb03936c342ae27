//! One server, from its first start to the removal of its directory.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::guardian::Guardian;
use crate::kind::Kind;
use crate::process::Process;
use crate::site::{Profile, Site};
use crate::{packages, port};

/// How long a server may take until it answers; recovery after a kill is part of it.
const START_LIMIT: Duration = Duration::from_mins(1);
const ASK_EVERY: Duration = Duration::from_millis(20);
/// How often another process may take the port before ours has it.
const PORTS_TRIED: usize = 5;

/// A private server. When the value is dropped, the server stops and its directory goes; if our process dies without
/// that, a helper process does it.
#[derive(Debug)]
pub struct Server {
    pub(crate) site: Site,
    pub(crate) process: Option<Process>,
    /// None for a server that is to outlive us.
    guardian: Option<Guardian>,
}

impl Server {
    /// A new PostgreSQL that trusts the loopback; `postgres` is its superuser.
    pub fn postgres(profile: Profile) -> Result<Self> {
        Self::create(Kind::Postgres, profile, None)
    }

    /// A new MariaDB whose user `ratchet`, with the password `ratchet`, may do everything.
    pub fn mysql(profile: Profile) -> Result<Self> {
        Self::create(Kind::Mysql, profile, None)
    }

    /// A new Redis. Only a durable one keeps its data over a restart.
    pub fn redis(profile: Profile) -> Result<Self> {
        Self::create(Kind::Redis, profile, None)
    }

    /// A new PgBouncer before a PostgreSQL, whose every database is reached through it. It must not outlive that one,
    /// but either may be killed and started again.
    pub fn pgbouncer(postgres: &Self) -> Result<Self> {
        ensure!(
            postgres.kind() == Kind::Postgres,
            "pgbouncer stands before a PostgreSQL, not before {}",
            postgres.kind()
        );
        Self::create(Kind::Pgbouncer, postgres.profile(), Some(postgres.port()))
    }

    pub(crate) fn create(kind: Kind, profile: Profile, postgres_port: Option<u16>) -> Result<Self> {
        packages::install(&[kind])?;
        let mut site = Site::new(kind, profile)?;
        site.postgres_port = postgres_port;
        let guardian = Guardian::over(&site.directory, kind.recipe().end_signal())?;
        // From here on, an error drops the value, and that removes the directory.
        let mut server = Self { site, process: None, guardian: Some(guardian) };
        server.first_start().with_context(|| format!("cannot make a private {kind} server"))?;
        Ok(server)
    }

    fn first_start(&mut self) -> Result<()> {
        let recipe = self.kind().recipe();
        recipe.prepare(&self.site)?;
        let mut ports_left = PORTS_TRIED;
        loop {
            ports_left -= 1;
            self.site.port = port::free()?;
            recipe.configure(&self.site)?;
            let started = self.start();
            // Ours has ended, so a port that is taken was lost to somebody else.
            if started.is_ok() || ports_left == 0 || port::is_free(self.site.port) {
                started?;
                break;
            }
        }
        recipe.furnish(&self.site)
    }

    /// A server that an earlier command started and left running.
    pub(crate) fn known(site: Site, process: Process) -> Self {
        Self { site, process: Some(process), guardian: None }
    }

    /// Lets the server live on when the value is dropped, and when our process ends.
    pub(crate) fn keep(&mut self) -> Result<()> {
        self.guardian.take().map_or(Ok(()), Guardian::dismiss)
    }

    /// Whether it ends with us.
    pub(crate) fn is_ours(&self) -> bool {
        self.guardian.is_some()
    }

    /// What kind of server it is.
    pub fn kind(&self) -> Kind {
        self.site.kind
    }

    /// How it treats commits.
    pub fn profile(&self) -> Profile {
        self.site.profile
    }

    /// Its port on 127.0.0.1, the same over all restarts.
    pub fn port(&self) -> u16 {
        self.site.port
    }

    /// Its directory, with its data and its log.
    pub fn directory(&self) -> &Path {
        &self.site.directory
    }

    /// The processor time that the server has used, in microseconds; zero if it does not run.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn cpu_micros(&self) -> Result<u64> {
        self.process.as_ref().map_or(Ok(0), Process::cpu_micros)
    }

    /// How to connect to it: a database in which everything is allowed.
    pub fn url(&self) -> String {
        self.kind().recipe().url(self.port())
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        self.site.log_tail()
    }

    /// Whether its process lives.
    pub fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_running)
    }

    /// Starts it again after [`stop`](Self::stop) or [`kill`](Self::kill), with its data and on its port, and waits until
    /// it answers. Nothing happens if it runs.
    ///
    /// # Errors
    ///
    /// If it ends, or does not answer in time; the text holds the end of its log.
    pub fn start(&mut self) -> Result<()> {
        if self.is_running() {
            return Ok(());
        }
        // One that ended by itself has still to be waited for.
        self.kill()?;
        let kind = self.kind();
        ensure!(self.site.directory.is_dir(), "the directory of {kind}, {}, is gone", self.site.directory.display());
        let process = Process::spawn(&mut kind.recipe().command(&self.site)?, self.site.log()?)?;
        self.process = Some(process);
        self.tell_guardian()?;
        self.wait_until_it_answers().map_err(|error| {
            // It is of no use if it does not answer, and the caller may try again.
            let killed = self.kill().err().map_or_else(String::new, |error| format!(" ({error:#})"));
            anyhow!("{kind} does not start: {error:#}{killed}; its log ends with:\n{}", self.log_tail())
        })
    }

    /// Stops it in good order, without waiting for its clients. Nothing happens if it does not run.
    pub fn stop(&mut self) -> Result<()> {
        self.end(|process, site| process.stop(site.kind.recipe().stop_signal()))
    }

    /// Ends it with all its child processes by SIGKILL: nothing is written, no client hears a word. Nothing happens if it
    /// does not run.
    pub fn kill(&mut self) -> Result<()> {
        self.end(|process, _| process.kill())
    }

    fn end(&mut self, how: impl FnOnce(&Process, &Site) -> Result<()>) -> Result<()> {
        let Some(process) = &self.process else { return Ok(()) };
        let ended = how(process, &self.site).with_context(|| format!("cannot end {}", self.kind()));
        if process.is_running() {
            return ended;
        }
        // In this order: the id may be given anew as soon as the process was waited for.
        let process = self.process.take();
        self.tell_guardian()?;
        process.map_or(Ok(()), Process::reap)?;
        ended
    }

    /// Stops it and removes its directory; says what went wrong, which a drop cannot.
    pub(crate) fn remove(&mut self) -> Result<()> {
        let stopped = self.stop();
        if !self.is_running() {
            self.site.remove()?;
        }
        stopped
    }

    fn tell_guardian(&mut self) -> Result<()> {
        let process = self.process.as_ref();
        self.guardian.as_mut().map_or(Ok(()), |guardian| guardian.watch(process))
    }

    fn wait_until_it_answers(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            if !self.is_running() {
                bail!("its process ended");
            }
            // A cheap question first: the other one may cost a process.
            let listens = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port())).is_ok();
            if listens && self.kind().recipe().answers(&self.site).unwrap_or(false) && self.is_running() {
                return Ok(());
            }
            if begun.elapsed() > START_LIMIT {
                bail!("it did not answer within {START_LIMIT:?}");
            }
            std::thread::sleep(ASK_EVERY);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_ours()
            && let Err(error) = self.remove()
        {
            eprintln!("{} was not cleaned up: {error:#}", self.kind());
        }
    }
}
