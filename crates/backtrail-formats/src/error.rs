//! Errors of reading and importing other programs' files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The result of reading or importing another program's file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a file could not be read or imported. It names the file.
#[derive(Debug)]
pub struct Error {
    message: String,
    path: Option<PathBuf>,
    cause: Option<Cause>,
}

#[derive(Debug)]
enum Cause {
    Io(io::Error),
    Store(backtrail::Error),
}

impl Error {
    /// Creates an error from a failed input or output.
    pub fn io(doing: impl Into<String>, path: &Path, error: io::Error) -> Self {
        Self {
            message: doing.into(),
            path: Some(path.to_owned()),
            cause: Some(Cause::Io(error)),
        }
    }

    /// Creates an error about the content of a file.
    pub fn invalid(message: impl Into<String>, path: &Path) -> Self {
        Self {
            message: message.into(),
            path: Some(path.to_owned()),
            cause: None,
        }
    }

    /// Returns the file, if the error is about one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the message without the file's name.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the store's error, if the store failed and not the file.
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
            message: error.message(),
            path: error.path().map(Path::to_owned),
            cause: Some(Cause::Store(error)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.cause, &self.path) {
            (Some(Cause::Store(error)), _) => error.fmt(f),
            (_, Some(path)) => write!(f, "{}: {}", self.message, path.display()),
            (_, None) => f.write_str(&self.message),
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

/// Serialises as the message with all causes, and the file.
impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut text = self.message.clone();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        let mut fields = serializer.serialize_struct("Error", 2)?;
        fields.serialize_field("error", &text)?;
        let file = self.path.as_deref().map(Path::to_string_lossy);
        fields.serialize_field("file", &file)?;
        fields.end()
    }
}
