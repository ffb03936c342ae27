//! Several servers at once.

use anyhow::{Result, ensure};

use crate::kind::Kind;
use crate::packages;
use crate::server::Server;
use crate::site::Profile;
use crate::state::{self, Lock};

/// A set of servers with at most one of a kind. Those that were started here stop when it is dropped; those that
/// `cargo xtask db start` left running go on.
#[derive(Debug, Default)]
pub struct Servers(Vec<Server>);

impl Servers {
    /// New servers of these kinds. PgBouncer brings a PostgreSQL to stand before.
    pub fn start(kinds: &[Kind], profile: Profile) -> Result<Self> {
        let mut servers = Self::default();
        servers.add(kinds, profile)?;
        Ok(servers)
    }

    /// The servers that `cargo xtask db start` left running, and of which some may have ended since.
    pub fn left_running() -> Result<Self> {
        state::read().map(Self)
    }

    /// Those of them that still run.
    pub fn running() -> Result<Self> {
        let mut servers = Self::left_running()?;
        servers.0.retain(Server::is_running);
        Ok(servers)
    }

    /// Starts what is not yet left running, and leaves all of it running: until [`end_left_running`](Self::end_left_running),
    /// whatever becomes of our process.
    pub fn leave_running(kinds: &[Kind], profile: Profile) -> Result<Self> {
        let _lock = Lock::take()?;
        let mut servers = Self::left_running()?;
        // One that has ended keeps its port and its data.
        for server in &mut servers.0 {
            server.start()?;
        }
        servers.add(kinds, profile)?;
        // Written before they are let go: a server that nobody knows would run for ever.
        state::write(&servers.0)?;
        for server in &mut servers.0 {
            server.keep()?;
        }
        Ok(servers)
    }

    /// Stops the servers that were left running and removes their directories; returns their kinds. A process that is
    /// not the one that was started is left alone.
    pub fn end_left_running() -> Result<Vec<Kind>> {
        let _lock = Lock::take()?;
        let mut servers = Self::left_running()?;
        let kinds = servers.iter().map(Server::kind).collect();
        let result = servers.remove_if(|_| true);
        // Those that could not be stopped are still there to be stopped.
        state::write(&servers.0)?;
        result.map(|()| kinds)
    }

    /// Adds new servers of these kinds where they are not in the set.
    pub fn add(&mut self, kinds: &[Kind], profile: Profile) -> Result<()> {
        for server in self.0.iter().filter(|server| kinds.contains(&server.kind())) {
            ensure!(
                server.profile() == profile,
                "{} is there, but {} instead of {profile}; end it first with `cargo xtask db stop`",
                server.kind(),
                server.profile()
            );
        }
        let mut absent: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kinds.contains(kind)).collect();
        if kinds.contains(&Kind::Pgbouncer) && !kinds.contains(&Kind::Postgres) {
            absent.push(Kind::Postgres);
        }
        absent.retain(|kind| self.get(*kind).is_none());
        packages::install(&absent)?;
        let with_pgbouncer = absent.contains(&Kind::Pgbouncer);
        absent.retain(|kind| *kind != Kind::Pgbouncer);
        // Side by side: most of the time, a new server waits for its disk.
        let started: Vec<Result<Server>> = std::thread::scope(|scope| {
            let starts: Vec<_> =
                absent.iter().map(|kind| scope.spawn(|| Server::create(*kind, profile, None))).collect();
            starts.into_iter().map(|start| start.join().expect("starting a server does not panic")).collect()
        });
        for server in started {
            self.0.push(server?);
        }
        if let Some(postgres) = self.get(Kind::Postgres).filter(|_| with_pgbouncer) {
            let pgbouncer = Server::pgbouncer(postgres)?;
            self.0.push(pgbouncer);
        }
        self.0.sort_by_key(Server::kind);
        Ok(())
    }

    /// The server of a kind.
    pub fn get(&self, kind: Kind) -> Option<&Server> {
        self.0.iter().find(|server| server.kind() == kind)
    }

    /// The server of a kind, to be killed and started.
    pub fn get_mut(&mut self, kind: Kind) -> Option<&mut Server> {
        self.0.iter_mut().find(|server| server.kind() == kind)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Server> {
        self.0.iter()
    }

    /// The environment variables by which tests find them, with their URLs.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        self.iter().map(|server| (server.kind().variable(), server.url())).collect()
    }

    /// Stops those that were started here and removes their directories. A drop does the same but cannot say what went
    /// wrong.
    pub fn stop(mut self) -> Result<()> {
        self.remove_if(Server::is_ours)
    }

    /// Removes as many as it can, the last first, since PgBouncer needs PostgreSQL; returns the first error.
    fn remove_if(&mut self, which: impl Fn(&Server) -> bool) -> Result<()> {
        let mut result = Ok(());
        for at in (0..self.0.len()).rev().filter(|at| which(&self.0[*at])).collect::<Vec<_>>() {
            match self.0[at].remove() {
                Ok(()) => drop(self.0.remove(at)),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }
}
