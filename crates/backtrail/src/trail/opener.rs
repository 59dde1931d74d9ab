//! A trail's first record: its owner, and what it continues.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::damage::Damage;
use super::origin::{ForkOrigin, Imported, SpawnedBy};
use super::present::Present;
use super::record::{Front, RecordRef, write_line};
use super::sum::Sum;
use crate::error::{Error, Reason, Result};
use crate::ids::SessionId;
use crate::json::write_fields;
use crate::time::Timestamp;

/// The version of trails that this engine writes.
pub const FORMAT_VERSION: u32 = 2;

/// The reason why a trail was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TrailReason {
    /// A session was created.
    Start,
    /// The trail before it exceeded its limit.
    Rotation,
    /// The conversation was rewound.
    Rewind,
    /// A step was undone.
    Undo,
    /// A step was redone.
    Redo,
    /// Another session was forked.
    Fork,
    /// A session of another program was imported.
    Import,
    /// The readable part of a damaged session was collected.
    Repair,
    /// A session was purged, and its text removed from the trail of a workspace.
    Purge,
    /// Another reason, from a newer version.
    #[serde(untagged)]
    Other(String),
}

impl TrailReason {
    /// Returns the reason as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Start => "start",
            Self::Rotation => "rotation",
            Self::Rewind => "rewind",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Fork => "fork",
            Self::Import => "import",
            Self::Repair => "repair",
            Self::Purge => "purge",
            Self::Other(name) => name,
        }
    }
}

/// The record that a trail continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Continues {
    pub(crate) session_id: SessionId,
    pub(crate) trail: u32,
    pub(crate) seq: u64,
    pub(crate) sum: Sum,
}

impl Continues {
    /// Returns the place, if it is in one of the session's own trails.
    pub(crate) fn spot(&self) -> Spot {
        Spot {
            trail: self.trail,
            seq: self.seq,
            sum: self.sum,
        }
    }
}

impl fmt::Display for Continues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, trail, .. } = self;
        write!(
            f,
            "record {seq} in trail {trail} of session {}",
            self.session_id
        )
    }
}

/// A place in one of a session's own trails: the end of a line of history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Spot {
    pub(crate) trail: u32,
    pub(crate) seq: u64,
    pub(crate) sum: Sum,
}

/// The owner of a trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Owner {
    #[default]
    Session,
    Workspace,
}

impl Owner {
    /// Returns the type of its openers.
    fn opener_type(self) -> &'static str {
        match self {
            Self::Session => "session_meta",
            Self::Workspace => WORKSPACE_META,
        }
    }

    /// Returns its name for messages.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Workspace => "workspace",
        }
    }
}

/// The type of the openers of a workspace's trails.
pub(crate) const WORKSPACE_META: &str = "workspace_meta";

/// The value of `at_from`.
pub(crate) const AT_FROM_FILE: &str = "file";

/// A trail's first record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opener {
    #[serde(skip)]
    pub(crate) owner: Owner,
    #[serde(skip_serializing)]
    pub(crate) version: u32,
    #[serde(skip_serializing)]
    pub(crate) seq: u64,
    /// The newest compaction on the line that the trail continues.
    #[serde(default, skip_serializing)]
    pub(crate) compacted: Option<u64>,
    #[serde(skip_serializing)]
    pub(crate) at: Timestamp,
    /// The session or workspace that owns the trail.
    #[serde(skip_serializing, alias = "workspace_id")]
    pub(crate) session_id: SessionId,
    #[serde(default)]
    pub(crate) trail: u32,
    #[serde(default = "start", rename = "because")]
    pub(crate) reason: TrailReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) continues: Option<Continues>,
    /// Where the conversation was before it was moved here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Spot>,
    /// For an undo or redo: the place whose steps this trail has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) as_at: Option<Spot>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fork: Option<ForkOrigin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) spawned_by: Option<SpawnedBy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) imported: Option<Imported>,
    /// A name by which the session can be referred to; that of a fork is in its origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The id that another program gives the session, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) original_id: Option<String>,
    /// What `at` is, if it is not when the session began: the time of the file that it was
    /// imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at_from: Option<String>,
    /// The damage that a repair bypassed, so that it is not reported again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) repaired: Vec<Repaired>,
    /// The highest seq that may have been assigned before a repair: records at the end
    /// may be lost, but their numbers are not reused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) given: Option<u64>,
    /// When a transcript last changed, if no record has that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) updated_at_ms: Option<i64>,
    /// Read separately: flattened, any unknown field that serde cannot hold (a lone
    /// surrogate, 1e400) would make the whole opener unreadable.
    #[serde(flatten, skip_deserializing)]
    pub(crate) present: Present,
}

/// A damaged place that a repair bypassed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repaired {
    pub(crate) trail: u32,
    pub(crate) byte: u64,
    pub(crate) bytes: u64,
}

impl Repaired {
    /// Returns whether a damaged place of a trail is in this one.
    pub(crate) fn covers(&self, trail: u32, damage: &Damage) -> bool {
        self.trail == trail
            && damage.byte >= self.byte
            && damage.byte + damage.bytes <= self.byte + self.bytes
    }
}

fn start() -> TrailReason {
    TrailReason::Start
}

impl Opener {
    /// Creates the opener of a trail that continues nothing.
    pub(crate) fn new(
        session_id: &SessionId,
        trail: u32,
        reason: TrailReason,
        at: Timestamp,
    ) -> Self {
        Self {
            owner: Owner::Session,
            version: FORMAT_VERSION,
            seq: 0,
            compacted: None,
            at,
            session_id: session_id.clone(),
            trail,
            reason,
            continues: None,
            before: None,
            as_at: None,
            fork: None,
            spawned_by: None,
            imported: None,
            name: None,
            original_id: None,
            at_from: None,
            repaired: Vec::new(),
            given: None,
            updated_at_ms: None,
            present: Present::default(),
        }
    }

    /// Returns whether its time is that of a file.
    pub(crate) fn is_at_from_file(&self) -> bool {
        self.at_from.as_deref() == Some(AT_FROM_FILE)
    }

    /// Makes the opener continue a place: after its record, and with the compaction
    /// there.
    #[must_use]
    pub(crate) fn continuing(mut self, from: Continues, compacted: Option<u64>) -> Self {
        self.seq = from.seq;
        self.compacted = compacted;
        self.continues = Some(from);
        self
    }

    /// Parses the opener of a trail of `session`. One of a newer version is parsed as far
    /// as possible, at least enough to see that it is newer.
    pub(crate) fn read(
        record: &RecordRef<'_>,
        session: &SessionId,
        trail: u32,
    ) -> Result<Self, Reason> {
        let error = match serde_json::from_slice::<Self>(record.bytes()) {
            Ok(opener) if opener.trail != trail || opener.session_id != *session => {
                return Err(Reason::BadOpener);
            }
            Ok(opener) => {
                let present = serde_json::from_slice(record.bytes()).unwrap_or_default();
                return Ok(Self { present, ..opener });
            }
            Err(error) => Reason::Syntax(error.to_string()),
        };
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        match serde_json::from_slice(record.bytes()) {
            Ok(Version { version }) if version > FORMAT_VERSION => Ok(Self {
                version,
                seq: record.seq(),
                ..Self::new(
                    session,
                    trail,
                    TrailReason::Start,
                    record.at().or(Timestamp::from_millis(0)).ok_or(error)?,
                )
            }),
            _ => Err(error),
        }
    }

    /// Returns whether this version must not change the trail.
    pub(crate) fn is_newer(&self) -> bool {
        self.version > FORMAT_VERSION
    }

    /// Writes the opener as a line and returns its sum.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<Sum> {
        let mut body = Vec::new();
        let is_session = self.owner == Owner::Session;
        let first = FirstFields {
            at: self.at,
            session_id: is_session.then_some(&self.session_id),
            workspace_id: (!is_session).then_some(&self.session_id),
        };
        write_fields(&mut body, &first)
            .and_then(|()| write_fields(&mut body, self))
            .map_err(|error| Error::json("cannot write the trail's opener", &error))?;
        let front = Front {
            kind: self.owner.opener_type(),
            version: Some(self.version),
            seq: self.seq,
            noted: None,
            compacted: self.compacted,
        };
        let prev = self.continues.as_ref().map_or(Sum::ZERO, |from| from.sum);
        Ok(write_line(out, front, &body, prev))
    }
}

/// The first fields of an opener, with the id of its session or workspace.
#[derive(Serialize)]
struct FirstFields<'a> {
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<&'a SessionId>,
}
