//! Errors of commands, with hints.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use backtrail::ErrorKind;

use crate::secret_url::{without_secrets, words};
use crate::shell::quote;

/// An error with hints. Hints are data, printed last.
#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) kind: &'static str,
    message: Box<str>,
    pub(crate) path: Option<Box<Path>>,
    pub(crate) causes: Vec<String>,
    pub(crate) hints: Vec<String>,
    /// Files and directories that are damaged in the store.
    pub(crate) damaged: Box<[PathBuf]>,
    /// Whether the reader of our output closed it.
    pub(crate) broken_pipe: bool,
}

/// The result of a command.
pub(crate) type Result<T, E = CommandError> = std::result::Result<T, E>;

impl CommandError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind: kind.as_str(),
            message: message.into().into(),
            path: None,
            causes: Vec::new(),
            hints: Vec::new(),
            damaged: Box::default(),
            broken_pipe: false,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Makes an error of an I/O failure; `doing` is what was attempted.
    pub(crate) fn io(doing: impl Into<String>, path: Option<&Path>, error: &io::Error) -> Self {
        Self {
            path: path.map(Into::into),
            causes: vec![error.to_string()],
            broken_pipe: error.kind() == io::ErrorKind::BrokenPipe,
            ..Self::new(ErrorKind::Io, doing)
        }
    }

    /// Makes an error of arguments that clap refused.
    pub(crate) fn misuse(error: &clap::Error) -> Self {
        let text = without_secrets(&error.render().to_string(), words());
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        Self {
            kind: "usage",
            hints: lines.map(str::to_owned).collect(),
            ..Self::invalid(message)
        }
    }

    /// Replaces the message.
    pub(crate) fn message(mut self, message: String) -> Self {
        self.message = message.into();
        self
    }

    /// Adds what could not be done; the message so far becomes its cause.
    pub(crate) fn context(mut self, message: impl Into<String>) -> Self {
        let cause = std::mem::replace(&mut self.message, message.into().into());
        self.causes.insert(0, cause.into());
        self
    }

    pub(crate) fn at_path(mut self, path: &Path) -> Self {
        self.path = Some(path.into());
        self
    }

    pub(crate) fn cause(mut self, cause: String) -> Self {
        self.causes.push(cause);
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Removes the hints, where the caller has better ones.
    pub(crate) fn without_hints(mut self) -> Self {
        self.hints.clear();
        self
    }

    /// Returns the message and its causes on one line.
    pub(crate) fn with_causes(&self) -> String {
        let causes = self.causes.iter();
        causes.fold(self.message.to_string(), |text, cause| {
            format!("{text}: {cause}")
        })
    }
}

/// Output that cannot be written: the only I/O that commands do without a message of their own.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::io("cannot write the output", None, &error)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<backtrail::Error> for CommandError {
    fn from(error: backtrail::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&backtrail::Error> for CommandError {
    fn from(error: &backtrail::Error) -> Self {
        let mut causes = Vec::new();
        let mut broken_pipe = false;
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            // The engine writes exports to our output.
            let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            broken_pipe |= io == Some(io::ErrorKind::BrokenPipe);
            source = cause.source();
        }
        let command = Self {
            kind: error.kind().as_str(),
            message: error.message().into(),
            path: error.path().map(Into::into),
            causes,
            hints: Vec::new(),
            damaged: error.damaged().into(),
            broken_pipe,
        };
        match error.kind() {
            ErrorKind::Conflict => command.hint("read the new messages, then try again"),
            ErrorKind::DiskFull => command.hint("free some disk space, then try again"),
            ErrorKind::Dropped if !error.points().is_empty() => {
                let near: Vec<String> = error.points().iter().map(|near| quote(near)).collect();
                command.hint(format!("nearest with files: {}", near.join(", ")))
            }
            ErrorKind::Corrupt if !error.damaged().is_empty() => command
                .hint("see all damage: backtrail verify")
                .hint("repair what can be repaired: backtrail repair"),
            _ => command,
        }
    }
}

/// Returns an error and its causes on one line.
pub(crate) fn full_text(error: &backtrail::Error) -> String {
    let text = CommandError::from(error).with_causes();
    match error.path().map(Path::to_string_lossy) {
        Some(path) if !text.contains(&*path) => format!("{text} (in {path})"),
        _ => text,
    }
}
