//! A session's details, found without reading its history.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::Result;
use crate::ids::{SessionId, WorkspaceId};
use crate::log::chain::{Segment, Walk};
use crate::log::directory::LogDir;
use crate::log::present_at;
use crate::log::version1::second_opener;
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::lines::PEEK_BUFFER;
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::present::{Present, WorkspaceRef};
use crate::trail::record::Position;
use crate::trail::{ForkOrigin, RecordKind, RecordRef, SpawnedBy, Sums};

/// A session's details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id.
    pub id: SessionId,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// The agent that writes to it.
    pub agent: Option<String>,
    /// The model that it uses.
    pub model: Option<String>,
    /// The agent that keeps the conversation itself, if it does: here the session can only
    /// be continued in a fork.
    pub belongs_to: Option<String>,
    /// The directory that it works in.
    #[serde(skip)]
    pub workspace_root: Option<PathBuf>,
    /// The workspace, if that directory has checkpoints.
    #[serde(skip)]
    pub workspace_id: Option<WorkspaceId>,
    /// When it began; `None` if no record has a time.
    pub created_at: Option<Timestamp>,
    /// When it was last active: the time of its last record that is not a note, such as a
    /// title, a tag or a pin. `None` if no record has a time.
    pub updated_at: Option<Timestamp>,
    /// Whether these times come from the file that it was imported from, because neither its
    /// lines nor its id have any: they are approximate.
    pub times_from_file: bool,
    /// When its newest message of its own was made, even if it was undone since; `None` if
    /// it has none.
    #[serde(skip)]
    pub(crate) spoken_at: Option<Timestamp>,
    /// The seq of its last record; 0 if there is none.
    pub last_seq: u64,
    /// The beginning of the first prompt, if the session was imported from a file. In other
    /// sessions it is quick to read.
    pub begins: Option<String>,
    /// The name that it was given when it was forked. It is a reference to the session.
    pub name: Option<String>,
    /// The record it was forked from, if it was.
    pub forked_from: Option<ForkOrigin>,
    /// The tool call that started it, if one did.
    pub spawned_by: Option<SpawnedBy>,
    /// The id that it had in the file it was imported from, if that differs.
    pub original_id: Option<String>,
    /// How many trails it has.
    pub trails: u32,
    /// The format version of its head trail; `None` if its opener is lost.
    pub version: Option<u32>,
}

impl SessionInfo {
    /// Returns the session that `latest` means: the one with the newest message of its own. A
    /// session without one comes after all others, and a fork without one last. A sub-agent's
    /// session never counts: its parent continues it.
    pub fn latest<'a>(infos: impl IntoIterator<Item = &'a Self>) -> Option<&'a Self> {
        let infos = infos.into_iter().filter(|info| info.spawned_by.is_none());
        infos.max_by_key(|info| {
            let has_spoken = info.spoken_at.is_some();
            let counts = has_spoken || info.forked_from.is_none();
            let at = info.spoken_at.or(info.updated_at);
            (has_spoken, counts, at, &info.id)
        })
    }

    /// Reads the openers and the last records only.
    pub(crate) fn read(store: &Store, files: &LogDir) -> Result<Self> {
        let trails = files.trails()?;
        let (Some(&first), Some(&head)) = (trails.first(), trails.last()) else {
            return Err(files.not_found());
        };
        let beginning = Beginning::read(files, first)?;
        let mut last = Ending::read(files, &trails)?;
        // The times of an imported file may be out of order, or its own until others are known.
        let created_at = match (beginning.at, last.active_at) {
            (Some(created), Some(active)) => Some(created.min(active)),
            (created, _) => created,
        };
        let mut walk = Walk::new(store, files, head);
        // If nothing in its own trails can be read, use those that it continues.
        while last.end.is_none()
            && let Some(segment) = walk.next()?
        {
            last.end = segment.last_position()?.map(|end| (segment.trail, end));
        }
        let present = match &last.end {
            Some((trail, position)) => present_at(store, files, *trail, position)?,
            None => Present::default(),
        };
        Ok(Self {
            id: files.id().clone(),
            title: present.title,
            tags: present.tags,
            pinned: present.pinned,
            agent: present.agent,
            model: present.model,
            belongs_to: present.belongs_to,
            workspace_root: present.workspace.as_ref().map(WorkspaceRef::root),
            workspace_id: present.workspace.and_then(|workspace| workspace.id),
            created_at,
            updated_at: last.active_at.or(created_at),
            times_from_file: beginning.times_from_file,
            spoken_at: last.message.map(|at| {
                let known = at.or(last.active_at).or(created_at);
                known.unwrap_or(Timestamp::MIN)
            }),
            last_seq: last.end.map_or(0, |(_, position)| position.seq),
            begins: beginning.begins,
            name: beginning.name,
            forked_from: beginning.fork,
            spawned_by: beginning.spawned_by,
            original_id: beginning.original_id,
            trails: u32::try_from(trails.len()).unwrap_or(u32::MAX),
            version: last.version,
        })
    }
}

/// A session's beginning, from its first trails.
struct Beginning {
    at: Option<Timestamp>,
    fork: Option<ForkOrigin>,
    spawned_by: Option<SpawnedBy>,
    name: Option<String>,
    original_id: Option<String>,
    begins: Option<String>,
    times_from_file: bool,
}

impl Beginning {
    fn read(files: &LogDir, first: u32) -> Result<Self> {
        let segment = Segment::open(files, first, u64::MAX)?;
        let (at, opener) = if segment.is_version_1() {
            (None, second_opener(files)?)
        } else {
            (first_time(&segment)?, segment.opener)
        };
        let imported = opener.as_ref().and_then(|opener| opener.imported.clone());
        let original_id = opener
            .as_ref()
            .and_then(|opener| opener.original_id.clone());
        let fork = opener.as_ref().and_then(|opener| opener.fork.clone());
        let branch = fork.as_ref().and_then(|fork| fork.branch_name.clone());
        Ok(Self {
            name: branch.or_else(|| opener.as_ref().and_then(|opener| opener.name.clone())),
            fork,
            at: at.or(imported.as_ref().map(|imported| imported.created_at)),
            times_from_file: opener.as_ref().is_some_and(Opener::is_at_from_file),
            spawned_by: opener.and_then(|opener| opener.spawned_by),
            begins: imported
                .as_ref()
                .and_then(|imported| imported.begins.clone()),
            original_id: original_id.or(imported.and_then(|imported| imported.original_id)),
        })
    }
}

/// Returns the time of a trail's first readable record.
fn first_time(segment: &Segment) -> Result<Option<Timestamp>> {
    if let Some(opener) = &segment.opener {
        return Ok(Some(opener.at));
    }
    let mut reader = segment.forwards(0, PEEK_BUFFER, Sums::Check)?;
    Ok(reader.next_record()?.and_then(|record| record.at()))
}

/// What the ends of a session's own trails say.
#[derive(Default)]
struct Ending {
    /// The last record, and its trail.
    end: Option<(u32, Position)>,
    version: Option<u32>,
    active_at: Option<Timestamp>,
    /// The time of the newest message, if there is a message and it has a time.
    message: Option<Option<Timestamp>>,
}

impl Ending {
    /// Reads the trails backwards up to the newest message.
    fn read(files: &LogDir, trails: &[u32]) -> Result<Self> {
        let mut found = Self::default();
        for trail in trails.iter().rev() {
            let segment = Segment::open(files, *trail, u64::MAX)?;
            if segment.is_version_1() {
                // A long file, whose import is recorded in the trail after it.
                found.message = Some(None);
                break;
            }
            let opener = segment.opener.as_ref();
            found.version = found.version.or(opener.map(|opener| opener.version));
            let mut reader = segment.backwards(Sums::Check)?;
            while let Some(record) = reader.next_record()? {
                if found.end.is_none() {
                    found.end = Some((*trail, Position::after(&record)));
                }
                let at = active_at(&record, opener);
                found.active_at = found.active_at.or(at);
                if record.kind() == RecordKind::Message {
                    found.message = Some(at);
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }
}

/// Returns when a session was active, if a record shows that it was: a note does not, nor
/// does a new trail that only continues the one before.
fn active_at(record: &RecordRef<'_>, opener: Option<&Opener>) -> Option<Timestamp> {
    match (record.kind(), opener) {
        (RecordKind::Note, _) => None,
        (RecordKind::Opener, Some(opener)) => match opener.reason {
            TrailReason::Rotation | TrailReason::Repair => None,
            // The import itself is not an event of the session.
            _ => match &opener.imported {
                Some(imported) => Some(imported.updated_at),
                None => record.at(),
            },
        },
        _ => record.at(),
    }
}
