//! Recognizes a COMMIT, and the answer to it, in the bytes of a connection.

use anyhow::{Result, ensure};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Whose language goes over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's, which MariaDB speaks too.
    Mysql,
}

/// A simple query: its letter, the length, the text, a zero.
const POSTGRES_COMMIT: &[u8] = b"Q\x00\x00\x00\x0bCOMMIT\x00";
/// A packet of seven bytes, the first of its exchange: the command for a query, the text.
const MYSQL_COMMIT: &[u8] = b"\x07\x00\x00\x00\x03COMMIT";
/// Ready for the next query, outside of a transaction.
const POSTGRES_READY: &[u8] = b"Z\x00\x00\x00\x05I";

/// Finds COMMITs in what a client sends, wherever the reads happen to cut it.
#[derive(Debug)]
pub struct CommitFinder {
    protocol: Protocol,
    /// The end of what was seen, too short to hold a whole COMMIT.
    tail: Vec<u8>,
}

impl CommitFinder {
    /// For a connection in this language.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, tail: Vec::new() }
    }

    /// Whether a COMMIT ends in these bytes.
    pub fn find(&mut self, bytes: &[u8]) -> bool {
        let commit = match self.protocol {
            Protocol::Postgres => POSTGRES_COMMIT,
            Protocol::Mysql => MYSQL_COMMIT,
        };
        self.tail.extend_from_slice(bytes);
        let found = holds(&self.tail, commit);
        let keep = self.tail.len().min(commit.len() - 1);
        self.tail.drain(..self.tail.len() - keep);
        found
    }

    /// Reads until the server has answered.
    ///
    /// # Errors
    /// If the server closes the connection instead.
    pub async fn wait_for_answer(&self, server: &mut TcpStream, to_commit: bool) -> Result<()> {
        let mut answer = Vec::new();
        loop {
            let read = server.read_buf(&mut answer).await?;
            ensure!(read > 0, "the server closed the connection without an answer");
            // MySQL's answer to a COMMIT is one small packet. What else is asked may be answered in parts; the first
            // is enough to know that it arrived.
            if self.protocol == Protocol::Mysql || !to_commit || holds(&answer, POSTGRES_READY) {
                return Ok(());
            }
        }
    }
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_found_wherever_the_reads_cut_it() {
        for (protocol, commit) in [(Protocol::Postgres, POSTGRES_COMMIT), (Protocol::Mysql, MYSQL_COMMIT)] {
            for at in 1..commit.len() {
                let mut finder = CommitFinder::new(protocol);
                assert!(!finder.find(b"Q\x00\x00\x00\x0aBEGIN\x00"));
                assert!(!finder.find(&commit[..at]));
                assert!(finder.find(&[&commit[at..], b"rest"].concat()), "{protocol:?} at {at}");
                assert!(!finder.find(b"COMMIT"), "{protocol:?}: it is found once");
            }
        }
    }
}
