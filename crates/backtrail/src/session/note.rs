//! Notes: changes of a session's details, which any process may append.

use std::path::Path;

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};
use crate::json::body;
use crate::log::LogWriter;
use crate::log::directory::LogDir;
use crate::log::lock::LockFile;
use crate::log::present_at;
use crate::log::tail::{Entry, Tail};
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::present::{Present, WorkspaceRef};

/// A change of a session's details.
///
/// ```
/// let note = backtrail::Note::new().title("fix the bug").tags(["urgent"]);
/// # let _ = note;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    title: Option<String>,
    tags: Option<Vec<String>>,
    tags_to_add: Vec<String>,
    tags_to_remove: Vec<String>,
    agent: Option<String>,
    model: Option<String>,
    workspace: Option<WorkspaceRef>,
    pinned: Option<bool>,
    belongs_to: Option<String>,
}

/// The longest title, tag or name that is accepted.
pub(crate) const MAX_TEXT: usize = 4096;
/// The limit for a whole note: every later note and opener repeats it.
const MAX_NOTE: usize = 64 << 10;

impl Note {
    /// Creates a note that changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the title; an empty one unsets it.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the tags, replacing the present ones.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = Some(tags.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a tag to those that are set when the note is written, even if other processes
    /// change them meanwhile.
    #[must_use]
    pub fn add_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags_to_add.push(tag.into());
        self
    }

    /// Removes a tag from those that are set when the note is written.
    #[must_use]
    pub fn remove_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags_to_remove.push(tag.into());
        self
    }

    /// Sets the agent; an empty one unsets it.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Sets the model; an empty one unsets it.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the root of the directory that the session works in.
    #[must_use]
    pub fn workspace_root(mut self, root: &Path) -> Self {
        self.workspace = Some(WorkspaceRef::new(root));
        self
    }

    /// Pins or unpins the session.
    #[must_use]
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.pinned = Some(pinned);
        self
    }

    /// Sets the workspace by its id.
    #[must_use]
    pub(crate) fn workspace(mut self, workspace: WorkspaceRef) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// Creates a note of all present details.
    pub(crate) fn of(present: Present) -> Self {
        Self {
            title: present.title,
            tags: Some(present.tags),
            tags_to_add: Vec::new(),
            tags_to_remove: Vec::new(),
            agent: present.agent,
            model: present.model,
            workspace: present.workspace,
            pinned: Some(present.pinned),
            belongs_to: present.belongs_to,
        }
    }

    fn check(&self) -> Result<()> {
        let root = self.workspace.as_ref().map(WorkspaceRef::text);
        let texts = [
            self.title.as_ref(),
            self.agent.as_ref(),
            self.model.as_ref(),
            root,
        ];
        let tags = self.tags.iter().flatten().chain(&self.tags_to_add);
        check_texts(texts.into_iter().flatten().chain(tags))
    }

    fn apply(&self, present: &mut Present) {
        let or_none = |text: &String| (!text.is_empty()).then(|| text.clone());
        if let Some(title) = &self.title {
            present.title = or_none(title);
        }
        if let Some(agent) = &self.agent {
            present.agent = or_none(agent);
        }
        if let Some(model) = &self.model {
            present.model = or_none(model);
        }
        if let Some(tags) = &self.tags {
            present.tags.clone_from(tags);
        }
        present
            .tags
            .retain(|tag| !self.tags_to_remove.contains(tag));
        for tag in &self.tags_to_add {
            if !present.tags.contains(tag) {
                present.tags.push(tag.clone());
            }
        }
        if let Some(workspace) = &self.workspace {
            present.workspace = Some(workspace.clone());
        }
        if let Some(agent) = &self.belongs_to {
            present.belongs_to = Some(agent.clone());
        }
        if let Some(pinned) = self.pinned {
            present.pinned = pinned;
        }
    }
}

/// Rejects titles, tags and names that would bloat every later opener.
pub(crate) fn check_texts<'a>(texts: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut all = 0;
    for text in texts {
        all += text.len();
        if text.len() > MAX_TEXT {
            return Err(too_long("a title, tag or name", text.len(), MAX_TEXT));
        }
    }
    if all > MAX_NOTE {
        return Err(too_long("a session's metadata", all, MAX_NOTE));
    }
    Ok(())
}

fn too_long(what: &str, bytes: usize, limit: usize) -> Error {
    Error::invalid(format!(
        "{what} is {bytes} bytes long; the limit is {limit}"
    ))
}

/// The fields of a note in its record, after the numbers.
#[derive(Serialize)]
struct NoteBody<'a> {
    at: Timestamp,
    id: uuid::Uuid,
    #[serde(flatten)]
    present: &'a Present,
}

/// Appends a note under the short lock only; it is durable when this returns.
pub(crate) fn append_note(store: &Store, files: &LogDir, note: &Note) -> Result<u64> {
    note.check()?;
    files.head()?;
    let guard = LockFile::append(files)?.hold()?;
    let mut tail = Tail::load(store, files)?;
    let seq = append_to(store, files, &mut tail, note)?;
    drop(guard);
    // Deleted meanwhile: the note was deleted too, and may not be durable.
    tail.sync().map_err(|error| match error.kind() {
        ErrorKind::NotFound => files.not_found(),
        _ => error,
    })?;
    Ok(seq)
}

impl LogWriter {
    /// Appends a note through the session's own writer, while no other thread writes.
    pub(super) fn write_note(&self, note: &Note) -> Result<u64> {
        note.check()?;
        let mut tail = self.lock_tail();
        let guard = self.begin_write(&mut tail)?;
        let from = tail.len();
        let seq = append_to(&self.store, &self.dir, &mut tail, note)?;
        self.note_written(&tail, from);
        drop(guard);
        self.end_write(&mut tail)?;
        Ok(seq)
    }
}

/// Appends a note to a tail that is up to date.
pub(crate) fn append_to(
    store: &Store,
    files: &LogDir,
    tail: &mut Tail,
    note: &Note,
) -> Result<u64> {
    let mut present = present_at(store, files, tail.trail, tail.position())?;
    note.apply(&mut present);
    check_texts(present.tags.iter())?;
    let note = NoteBody {
        at: store.now(),
        id: store.new_id()?,
        present: &present,
    };
    let entry = Entry {
        kind: "note",
        body: &body(&note)?,
    };
    tail.append(&[entry])?;
    Ok(tail.position().seq)
}
