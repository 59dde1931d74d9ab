//! What can go wrong when other programs' files are read and taken in.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of reading another program's file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file was not read, or not taken in. It names the file.
#[derive(Debug)]
pub struct Error {
    what: String,
    path: Option<PathBuf>,
    cause: Option<Cause>,
}

#[derive(Debug)]
enum Cause {
    Io(io::Error),
    Store(backtrail::Error),
}

impl Error {
    /// Makes an error of an input or output that failed.
    pub fn io(doing: impl Into<String>, path: &Path, error: io::Error) -> Self {
        Self {
            what: doing.into(),
            path: Some(path.to_owned()),
            cause: Some(Cause::Io(error)),
        }
    }

    /// Makes an error that says what is wrong with a file.
    pub fn invalid(what: impl Into<String>, path: &Path) -> Self {
        Self {
            what: what.into(),
            path: Some(path.to_owned()),
            cause: None,
        }
    }

    /// Returns the file, where it is of one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns what is wrong, without the file's name.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the store's own error, where the store failed and not the file.
    pub fn store(&self) -> Option<&backtrail::Error> {
        match &self.cause {
            Some(Cause::Store(error)) => Some(error),
            _ => None,
        }
    }
}

impl From<backtrail::Error> for Error {
    fn from(error: backtrail::Error) -> Self {
        Self {
            what: error.message(),
            path: error.path().map(Path::to_owned),
            cause: Some(Cause::Store(error)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, &self.path) {
            (Some(Cause::Store(error)), _) => error.fmt(f),
            (_, Some(path)) => write!(f, "{}: {}", self.what, path.display()),
            (_, None) => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Some(Cause::Io(error)) => Some(error),
            Some(Cause::Store(error)) => std::error::Error::source(error),
            None => None,
        }
    }
}
