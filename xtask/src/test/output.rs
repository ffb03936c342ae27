//! Where the output of a step goes.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::workspace::shown;

/// The terminal, or a file for a step that runs beside another.
pub(crate) enum Output {
    Terminal,
    File(File),
}

impl Output {
    /// A file without a name.
    pub(crate) fn file() -> Result<Self> {
        Ok(Self::File(tempfile::tempfile().context("cannot create a file for the output of a step")?))
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, command: &mut Command) -> Result<()> {
        let status = command
            .stdout(self.stdio(Stdio::inherit)?)
            .stderr(self.stdio(Stdio::inherit)?)
            .status()
            .with_context(|| format!("cannot run {}", shown(command)))?;
        ensure!(status.success(), "{} ended with {status}", shown(command));
        Ok(())
    }

    /// Writes a line.
    pub(crate) fn line(&self, text: &str) {
        match self {
            Self::Terminal => println!("{text}"),
            // It is a file of our own, which only a full disk refuses; then the step's commands fail too.
            Self::File(file) => drop(writeln!(&*file, "{text}")),
        }
    }

    /// The text so far. There is none of the terminal.
    pub(crate) fn text(self) -> Result<String> {
        let mut text = Vec::new();
        if let Self::File(mut file) = self {
            file.rewind()?;
            file.read_to_end(&mut text)?;
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn stdio(&self, terminal: fn() -> Stdio) -> Result<Stdio> {
        match self {
            Self::Terminal => Ok(terminal()),
            Self::File(file) => Ok(file.try_clone()?.into()),
        }
    }
}
