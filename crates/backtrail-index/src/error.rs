//! Errors of derived data.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why derived data could not be read or updated. The trails are the truth:
/// nothing is lost.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A session or the store could not be read.
    Store(backtrail::Error),
    /// The disk failed.
    Io {
        /// What was attempted.
        doing: String,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The catalogue's database failed.
    Database {
        /// What was attempted.
        doing: &'static str,
        /// The SQLite error.
        source: rusqlite::Error,
    },
    /// The full-text index failed.
    Search {
        /// What was attempted.
        doing: &'static str,
        /// The error text.
        what: String,
    },
    /// The query cannot be parsed.
    Query(String),
    /// The prices in the settings cannot be parsed.
    Prices(String),
}

impl Error {
    pub(crate) fn io(doing: impl Into<String>, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            doing: doing.into(),
            path: path.to_owned(),
            source,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Io { doing, path, .. } => write!(f, "{doing}: {}", path.display()),
            Self::Database { doing, .. } | Self::Search { doing, .. } => f.write_str(doing),
            Self::Query(what) | Self::Prices(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => std::error::Error::source(error),
            Self::Io { source, .. } => Some(source),
            Self::Database { source, .. } => Some(source),
            Self::Search { .. } | Self::Query(_) | Self::Prices(_) => None,
        }
    }
}

impl From<backtrail::Error> for Error {
    fn from(error: backtrail::Error) -> Self {
        Self::Store(error)
    }
}
