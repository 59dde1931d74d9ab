//! Records of the files that a session was imported from.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{RecordKind, RecordRef};
use crate::error::{Error, Result};
use crate::hex::path_fields;
use crate::ids::ObjectId;
use crate::ids::SessionId;
use crate::json::{Json, write_fields};
use crate::message::parts::Reference;
use crate::time::Timestamp;

/// One reading of a file that a session was imported from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SourceRecord {
    /// The program that keeps the file.
    pub agent: String,
    /// The file.
    #[serde(flatten, with = "path_fields")]
    pub path: PathBuf,
    /// The session that holds the file's bytes, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<SessionId>,
    /// The first of the bytes that this reading stored; earlier readings stored those before.
    pub from: u64,
    /// The end of those bytes.
    pub to: u64,
    /// The importer's state, which it needs to continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Json>,
    /// When the file's last entry was made; by default, when the file was read.
    #[serde(default, skip_serializing)]
    pub at: Option<Timestamp>,
    #[serde(default)]
    pub(crate) pieces: Vec<Piece>,
}

impl SourceRecord {
    /// Creates a reading that stored nothing yet.
    pub fn new(agent: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            agent: agent.into(),
            path: path.into(),
            held_by: None,
            from: 0,
            to: 0,
            note: None,
            at: None,
            pieces: Vec::new(),
        }
    }

    /// Sets when the file's last entry was made.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = Some(at);
        self
    }

    /// Sets the session that holds the bytes.
    #[must_use]
    pub fn held_by(mut self, session: &SessionId) -> Self {
        self.held_by = Some(session.clone());
        self
    }

    /// Sets the first byte of this reading; 0 starts the file again.
    #[must_use]
    pub fn from(mut self, byte: u64) -> Self {
        self.from = byte;
        self.to = byte;
        self
    }

    /// Sets the importer's state, which it needs to continue.
    #[must_use]
    pub fn note(mut self, note: Json) -> Self {
        self.note = Some(note);
        self
    }

    /// Encodes the part between the record's numbers and its `prev`.
    pub(crate) fn encode(&self, at: Timestamp, id: uuid::Uuid) -> Result<Vec<u8>> {
        #[derive(Serialize)]
        struct FirstFields {
            at: Timestamp,
            id: uuid::Uuid,
        }
        let first = FirstFields {
            at: self.at.unwrap_or(at),
            id,
        };
        let mut out = Vec::new();
        let written = write_fields(&mut out, &first).and_then(|()| write_fields(&mut out, self));
        let what = "cannot record which file the session was imported from";
        written.map_err(|error| Error::json(what, &error))?;
        Ok(out)
    }
}

/// A piece of a file, and its place in the payload file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    pub(crate) payload: ObjectId,
    /// Its compressed length.
    pub(crate) bytes: u64,
    /// Where it begins in the payload file.
    pub(crate) at: u64,
    /// Its uncompressed length.
    pub(crate) unpacked: u64,
}

impl RecordRef<'_> {
    /// Parses the record of a file that the session was imported from; `None` for other kinds,
    /// and for a record that cannot be read.
    #[doc(hidden)]
    pub fn source(&self) -> Option<SourceRecord> {
        self.parse_as(RecordKind::Source).ok().flatten()
    }
}

/// Returns the pieces of a file as references to the payload file.
pub(super) fn piece_references(record: &RecordRef<'_>) -> Vec<Reference> {
    let pieces = record.source().map(|source| source.pieces);
    let reference = |piece: Piece| Reference {
        hash: piece.payload,
        bytes: piece.bytes,
        at: piece.at,
        base64: false,
        preview: String::new(),
    };
    let pieces = pieces.into_iter().flatten();
    pieces.map(reference).collect()
}
