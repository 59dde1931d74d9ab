//! What the catalogue knows of workspaces: where they are, what project they belong to,
//! and their checkpoints.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use backtrail::{RecordKind, Store, Timestamp, Workspace, WorkspaceId};
use rusqlite::params;
use serde::Deserialize;

use super::sessions::full_text;
use super::{Catalogue, files, known_trail};
use crate::error::Result;
use crate::projects::Project;
use crate::trail_dirs::{KnownDirs, KnownTrail, TrailDir, TrailFile};

/// The workspaces of the catalogue, as far as they were asked for.
#[derive(Debug)]
pub(super) struct Workspaces<'a> {
    db: &'a Catalogue,
    /// Keys by root, for sessions that name no workspace.
    by_root: HashMap<String, i64>,
}

impl<'a> Workspaces<'a> {
    pub(super) fn new(db: &'a Catalogue) -> Self {
        Self {
            db,
            by_root: HashMap::new(),
        }
    }

    /// Returns the key of a session's workspace, making a row where it is new.
    pub(super) fn key(&mut self, id: Option<&WorkspaceId>, root: &Path) -> Result<i64> {
        if let Some(id) = id {
            let sql = "SELECT key FROM workspaces WHERE id = ?1";
            return match self.db.first(sql, [id.as_str()], |row| row.get(0))? {
                Some(key) => Ok(key),
                // Its own trail is gone, or comes later.
                None => self.insert(Some(id), root),
            };
        }
        let text = root.to_string_lossy().into_owned();
        if let Some(key) = self.by_root.get(&text) {
            return Ok(*key);
        }
        let sql = "SELECT key FROM workspaces WHERE root = ?1 AND id IS NULL";
        let key = match self.db.first(sql, [&text], |row| row.get(0))? {
            Some(key) => key,
            None => self.insert(None, root)?,
        };
        self.by_root.insert(text, key);
        Ok(key)
    }

    fn insert(&self, id: Option<&WorkspaceId>, root: &Path) -> Result<i64> {
        let project = Project::of(root, None);
        self.db.insert(
            "INSERT INTO workspaces (id, root, bytes, remote, project)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                id.map(WorkspaceId::as_str),
                root.to_string_lossy(),
                root_bytes(root),
                project.remote,
                project.name,
            ],
        )
    }
}

/// Returns the bytes of a path that is not UTF-8.
fn root_bytes(root: &Path) -> Option<&[u8]> {
    match root.to_str() {
        Some(_) => None,
        None => Some(root.as_os_str().as_encoded_bytes()),
    }
}

impl Catalogue {
    /// Returns how far each workspace was read.
    pub(crate) fn known_workspaces(&self) -> Result<KnownDirs> {
        let mut known = KnownDirs::new();
        let () = self.rows(
            "SELECT w.id, t.number, t.bytes, t.modified, t.read_to, t.sum, w.settled
             FROM workspaces AS w JOIN workspace_trails AS t ON t.workspace = w.key
             ORDER BY w.key, t.number",
            [],
            |row| {
                let dir = known.entry(row.get(0)?).or_default();
                dir.settled = row.get(6)?;
                dir.trails.push(known_trail(row)?);
                Ok(())
            },
        )?;
        Ok(known)
    }
}

/// Returns whether workspaces are other than they were at the last look.
pub(super) fn have_changed(known: &KnownDirs, seen: &[TrailDir]) -> bool {
    let same = |seen: &TrailDir| {
        let before = known.get(&seen.id);
        before.is_some_and(|before| seen.is_as_known(&before.trails))
    };
    let mut readable = seen.iter().filter(|seen| seen.error.is_none());
    known.len() != readable.clone().count() || !readable.all(same)
}

/// Brings the workspaces up to date; returns the sessions whose changes of files differ
/// from before.
pub(super) fn catch_up(
    db: &Catalogue,
    store: &Store,
    seen: &[TrailDir],
) -> Result<BTreeSet<String>> {
    let mut sessions = BTreeSet::new();
    let mut all = db.known_workspaces()?;
    let mut workspaces = Workspaces::new(db);
    for seen in seen {
        let known = all.remove(&seen.id).unwrap_or_default().trails;
        if !known.is_empty() && seen.error.is_none() && seen.is_as_known(&known) {
            continue;
        }
        let opened = seen
            .id
            .parse::<WorkspaceId>()
            .and_then(|id| store.workspace_by_id(&id));
        match opened {
            Ok(workspace) => {
                let key = workspaces.key(Some(workspace.id()), workspace.root())?;
                index_workspace(db, key, &workspace, seen, &known, &mut sessions)?;
            }
            // What is known of it stays.
            Err(error) => {
                let sql = "UPDATE workspaces SET error = ?2 WHERE id = ?1";
                db.run(sql, [&seen.id, &full_text(&error)])?;
            }
        }
    }
    Ok(sessions)
}

fn index_workspace(
    db: &Catalogue,
    key: i64,
    workspace: &Workspace,
    seen: &TrailDir,
    known: &[KnownTrail],
    sessions: &mut BTreeSet<String>,
) -> Result<()> {
    let project = Project::of(workspace.root(), workspace.remote()?);
    db.run(
        "UPDATE workspaces SET root = ?2, bytes = ?3, remote = ?4, project = ?5, settled = ?6,
         error = NULL WHERE key = ?1",
        params![
            key,
            workspace.root().to_string_lossy(),
            root_bytes(workspace.root()),
            project.remote,
            project.name,
            seen.settled,
        ],
    )?;
    db.run("DELETE FROM former_roots WHERE workspace = ?1", [key])?;
    for former in workspace.former_roots()? {
        db.run(
            "INSERT OR REPLACE INTO former_roots VALUES (?1, ?2, ?3, ?4)",
            params![
                former.root.to_string_lossy(),
                key,
                former.since.map(Timestamp::as_millis),
                former.until.as_millis(),
            ],
        )?;
    }
    let continues = seen.continues(known, |known| {
        workspace.trail_has(known.seen.number, known.read_to, known.sum)
    });
    if !continues {
        forget_checkpoints(db, key, sessions)?;
    }
    for (trail, from) in seen.unread(if continues { known } else { &[] }) {
        read_trail(db, key, workspace, trail, from, sessions)?;
    }
    files::write_changes(db, key, workspace)
}

fn forget_checkpoints(db: &Catalogue, key: i64, sessions: &mut BTreeSet<String>) -> Result<()> {
    let of_checkpoints: Vec<String> = db.rows(
        "SELECT DISTINCT session FROM checkpoints WHERE workspace = ?1 AND session IS NOT NULL",
        [key],
        |row| row.get(0),
    )?;
    sessions.extend(of_checkpoints);
    db.run("DELETE FROM checkpoints WHERE workspace = ?1", [key])?;
    db.run("DELETE FROM workspace_trails WHERE workspace = ?1", [key])
}

/// What the catalogue keeps of a checkpoint.
#[derive(Debug, Deserialize)]
struct Checkpoint {
    id: String,
    why: String,
    session: Option<Place>,
    label: Option<String>,
    about: Option<String>,
    prompt: Option<Place>,
    #[serde(default)]
    changed: u64,
    git: Option<GitHead>,
}

#[derive(Debug, Deserialize)]
struct GitHead {
    branch: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Place {
    id: String,
    trail: u32,
    seq: u64,
}

impl Checkpoint {
    /// Returns the text of its own, and the message that it names. Earlier versions copied
    /// the prompt of a turn: that is text of the session, which has it right after the place
    /// that the checkpoint names.
    fn text(&self) -> (Option<&str>, Option<Place>) {
        match &self.prompt {
            None if self.why == "turn-start" => {
                let place = self.session.clone();
                let prompt = place.map(|place| Place {
                    seq: place.seq + 1,
                    ..place
                });
                (None, prompt)
            }
            prompt => (self.about.as_deref(), prompt.clone()),
        }
    }
}

/// The places that checkpoints got after they were made.
#[derive(Debug, Deserialize)]
struct Bound {
    checkpoints: Vec<Binding>,
}

#[derive(Debug, Deserialize)]
struct Binding {
    checkpoint: String,
    session: Place,
    prompt: Option<Place>,
}

/// Gives checkpoints the places that a record names.
fn bind(db: &Catalogue, key: i64, record: &[u8], sessions: &mut BTreeSet<String>) -> Result<()> {
    let Ok(bound) = serde_json::from_slice::<Bound>(record) else {
        return Ok(());
    };
    for binding in bound.checkpoints {
        let prompt = binding.prompt.as_ref();
        db.run(
            "UPDATE checkpoints SET session = ?3,
             prompt_session = coalesce(?4, prompt_session),
             prompt_trail = coalesce(?5, prompt_trail), prompt_seq = coalesce(?6, prompt_seq)
             WHERE workspace = ?1 AND id = ?2",
            params![
                key,
                binding.checkpoint,
                binding.session.id,
                prompt.map(|place| &place.id),
                prompt.map(|place| place.trail),
                prompt.map(|place| place.seq as i64),
            ],
        )?;
        sessions.insert(binding.session.id);
    }
    Ok(())
}

/// The checkpoints whose files were dropped.
#[derive(Debug, Deserialize)]
struct Dropped {
    checkpoints: Vec<String>,
}

fn forget_dropped(
    db: &Catalogue,
    key: i64,
    record: &[u8],
    sessions: &mut BTreeSet<String>,
) -> Result<()> {
    let dropped = serde_json::from_slice::<Dropped>(record);
    let ids = dropped.map_or_else(|_| Vec::new(), |dropped| dropped.checkpoints);
    ids.iter()
        .try_for_each(|id| files::forget_dropped(db, key, id, sessions))
}

fn read_trail(
    db: &Catalogue,
    key: i64,
    workspace: &Workspace,
    trail: &TrailFile,
    from: u64,
    sessions: &mut BTreeSet<String>,
) -> Result<()> {
    let mut records = workspace.trail_records(trail.number, from)?;
    let mut end = (from, [0; 8]);
    while let Some(found) = records.next()? {
        let record = found.record;
        end = (found.end, record.sum_bytes());
        if record.kind() == RecordKind::Bound {
            bind(db, key, record.bytes(), sessions)?;
            continue;
        }
        if record.kind() == RecordKind::Dropped {
            forget_dropped(db, key, record.bytes(), sessions)?;
            continue;
        }
        if !matches!(record.kind(), RecordKind::Checkpoint | RecordKind::Done) {
            continue;
        }
        let Ok(checkpoint) = serde_json::from_slice::<Checkpoint>(record.bytes()) else {
            continue;
        };
        let (about, prompt) = checkpoint.text();
        let session = checkpoint.session.as_ref().map(|place| place.id.clone());
        sessions.extend(session.clone());
        db.run(
            "INSERT OR REPLACE INTO checkpoints
             (workspace, trail, seq, id, at, why, session, label, about, prompt_session,
              prompt_trail, prompt_seq, changed, branch)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            params![
                key,
                trail.number,
                record.seq() as i64,
                checkpoint.id,
                record.at().map(|at| at.as_millis()),
                checkpoint.why,
                session,
                checkpoint.label,
                about,
                prompt.as_ref().map(|place| &place.id),
                prompt.as_ref().map(|place| place.trail),
                prompt.as_ref().map(|place| place.seq as i64),
                checkpoint.changed as i64,
                checkpoint.git.as_ref().and_then(|git| git.branch.as_ref()),
            ],
        )?;
    }
    let (read_to, sum) = end;
    db.run(
        "INSERT INTO workspace_trails (workspace, number, bytes, modified, read_to, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT DO UPDATE SET bytes = ?3, modified = ?4, read_to = ?5,
         sum = CASE WHEN ?5 > read_to THEN ?6 ELSE sum END",
        params![
            key,
            trail.number,
            trail.bytes as i64,
            trail.modified,
            read_to as i64,
            i64::from_be_bytes(sum),
        ],
    )
}
