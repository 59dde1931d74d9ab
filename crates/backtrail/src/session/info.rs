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
use crate::trail::present::{Present, WorkspaceRef};
use crate::trail::record::Position;
use crate::trail::{ForkOrigin, RecordKind, SpawnedBy, Sums};

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
    /// When its last record was made; `None` if no record has a time.
    pub updated_at: Option<Timestamp>,
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
    /// Reads the openers and the last record only.
    pub(crate) fn read(store: &Store, files: &LogDir) -> Result<Self> {
        let trails = files.trails()?;
        let (Some(&first), Some(&head)) = (trails.first(), trails.last()) else {
            return Err(files.not_found());
        };
        let beginning = Beginning::read(files, first)?;
        let created_at = beginning.at;
        let mut walk = Walk::new(store, files, head);
        let mut version = None;
        let mut end = None;
        // If nothing in the head can be read, use the trails before it.
        while end.is_none()
            && let Some(segment) = walk.next()?
        {
            version = version.or(segment.opener.as_ref().map(|opener| opener.version));
            end = last_record(&segment)?.map(|(position, at)| (segment.trail, position, at));
        }
        let present = match &end {
            Some((trail, position, _)) => present_at(store, files, *trail, position)?,
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
            updated_at: end.and_then(|(.., at)| at).or(created_at),
            last_seq: end.map_or(0, |(_, position, _)| position.seq),
            begins: beginning.begins,
            name: beginning.name,
            forked_from: beginning.fork,
            spawned_by: beginning.spawned_by,
            original_id: beginning.original_id,
            trails: u32::try_from(trails.len()).unwrap_or(u32::MAX),
            version,
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

/// Returns the end of a segment, and when its last record was made.
fn last_record(segment: &Segment) -> Result<Option<(Position, Option<Timestamp>)>> {
    let mut reader = segment.backwards(Sums::Check)?;
    while let Some(record) = reader.next_record()? {
        if record.seq() <= segment.until {
            let position = Position::after(&record);
            let imported = segment.opener.as_ref().and_then(|o| o.imported.as_ref());
            let at = match imported {
                // The import itself is not an event of the session.
                Some(imported) if record.kind() == RecordKind::Opener => Some(imported.updated_at),
                _ => record.at(),
            };
            return Ok(Some((position, at)));
        }
    }
    Ok(None)
}
