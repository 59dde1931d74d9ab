//! The damage that a reader skipped.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, ErrorKind, Reason};
use crate::hex::lossy_path;

/// A place in a trail that cannot be read, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file.
    #[serde(serialize_with = "lossy_path")]
    pub file: PathBuf,
    /// The line, counted from 1, if the reader started at the beginning.
    pub line: Option<u64>,
    /// The first byte, counted from 0.
    pub byte: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The reason.
    pub reason: Reason,
}

impl Damage {
    /// Creates damage that affects a trail as a whole.
    pub(crate) fn at_beginning(file: &Path, reason: Reason) -> Self {
        Self {
            file: file.to_owned(),
            line: Some(1),
            byte: 0,
            bytes: 0,
            reason,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at ", self.reason)?;
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        write!(f, "byte {} of {}", self.byte, self.file.display())
    }
}

impl From<Damage> for Error {
    fn from(damage: Damage) -> Self {
        Self::new(ErrorKind::Corrupt, "the trail is damaged")
            .at_path(&damage.file)
            .at_line(damage.line)
            .at_byte(damage.byte)
            .with_reason(damage.reason)
    }
}

/// The damage that a reader skipped: the count, and the first places.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DamageReport {
    count: u64,
    first: Vec<Damage>,
}

/// How many places are kept; a file of garbage has millions.
const KEPT: usize = 10_000;

impl DamageReport {
    /// Returns how many places there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the first places: all, unless there are more than 10,000.
    pub fn first(&self) -> &[Damage] {
        &self.first
    }

    /// Moves the places of another report into this one.
    pub(crate) fn append(&mut self, other: &mut Self) {
        let other = std::mem::take(other);
        self.count += other.count;
        let room = KEPT.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }

    pub(crate) fn add(&mut self, damage: Damage) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(damage);
        }
    }
}
