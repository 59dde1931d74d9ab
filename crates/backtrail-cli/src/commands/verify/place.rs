//! Places in files of the store.

use std::path::{Path, PathBuf};

use backtrail::{Damage, SetAside, Store};
use serde_json::{Value, json};

use crate::commands::relative;
use crate::text::path_json;

/// A damaged place, as seen from the store.
pub(crate) struct Place {
    pub(super) file: PathBuf,
    pub(super) line: Option<u64>,
    pub(super) byte: Option<u64>,
    pub(super) reason: String,
}

impl Place {
    pub(crate) fn new(store: &Store, damage: &Damage) -> Self {
        Self {
            file: relative(store, &damage.file).to_owned(),
            line: damage.line,
            byte: Some(damage.byte),
            reason: damage.reason.to_string(),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "file": path_json(&self.file),
            "line": self.line,
            "byte": self.byte,
            "reason": self.reason,
        })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, " line {line}")?;
        }
        if let Some(byte) = self.byte {
            write!(f, " (byte {byte})")?;
        }
        write!(f, ": {}", self.reason)
    }
}

pub(super) fn aside_json((file, bytes): &(PathBuf, u64)) -> Value {
    json!({"file": path_json(file), "bytes": bytes})
}

/// Writes what a repair set aside.
pub(crate) fn set_aside_json(store: &Store, aside: &SetAside) -> Value {
    let file: &Path = relative(store, &aside.file);
    aside_json(&(file.to_owned(), aside.bytes))
}
