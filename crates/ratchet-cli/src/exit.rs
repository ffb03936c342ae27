//! How a command ends: exit codes, and errors as people read them.

use std::io::ErrorKind;
use std::process::ExitCode;

use ratchet::{InvalidInput, StoreError};

/// The exit codes, for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done
  1  an error: the database cannot be used, or something broke
  2  wrong usage: an option that is not known, or a value that is not allowed
  3  not found: there is no such job, batch, workflow or schedule
  4  refused: its state, or another job, does not allow it
With several jobs, the highest code of all.";

/// How a command ended. Mostly it is the argument parser that notices wrong usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Done = 0,
    Error = 1,
    Usage = 2,
    NotFound = 3,
    Refused = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Tells of an error on stderr, with its causes, and gives its code.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    let reader_is_gone = error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe));
    if reader_is_gone {
        // `ratchet jobs list | head` has all that it wanted.
        return Exit::Done;
    }
    let mut told = String::new();
    for (depth, cause) in error.chain().enumerate() {
        let text = cause.to_string();
        // Some errors say their cause themselves.
        if !told.contains(&text) {
            eprintln!("{}{text}", if depth == 0 { "error: " } else { "  caused by: " });
            told.push_str(&text);
        }
    }
    if error.chain().any(is_wrong_usage) { Exit::Usage } else { Exit::Error }
}

fn is_wrong_usage(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<InvalidInput>()
        || cause.downcast_ref::<StoreError>().is_some_and(|error| error.refused_input().is_some())
}
