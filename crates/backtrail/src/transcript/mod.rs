//! A session as a plain value in memory, which needs no store.
//!
//! A [`Transcript`] is created, pushed to, forked, compacted, saved and loaded. On disk
//! it is one trail of version 2, which grows by a line with each push and is never
//! rewritten. It also loads files of version 1, in both their forms, but never writes to
//! them.

mod content;
mod lines;
mod load;
mod place;
mod serial;
mod session;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use content::{Content, now_ms};
use lines::New;
use place::Place;

use crate::error::Result;
use crate::ids::SessionId;
use crate::json::Text;
use crate::message::{CompactionSummary, Message};
use crate::storage::{LocalStorage, Storage};
use crate::trail::{DamageReport, FORMAT_VERSION, ForkOrigin};
use crate::version1::{Losses, V1Meta, V1Writer};

/// A session as a plain value: messages with their times, and optionally a file in which
/// they persist.
///
/// Two transcripts are compared without their files.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("talk.jsonl");
/// use backtrail::{Message, Transcript};
///
/// let mut talk = Transcript::new().with_path(&path);
/// talk.push_user_text("fix the bug")?;
/// talk.push(Message::assistant([backtrail::Block::text("Done.")]))?;
/// assert_eq!(Transcript::load_from_path(&path)?, talk);
///
/// let other = talk.fork_as("try-2");
/// assert_eq!(other.messages(), talk.messages());
/// assert_eq!(other.fork_origin().unwrap().branch_name.as_deref(), Some("try-2"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Transcript {
    content: Content,
    place: Option<Place>,
    skipped: DamageReport,
}

impl Default for Transcript {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Transcript {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl Eq for Transcript {}

impl Transcript {
    /// Creates an empty transcript with a new id.
    pub fn new() -> Self {
        Self::from_content(Content::new())
    }

    fn from_content(content: Content) -> Self {
        Self {
            content,
            place: None,
            skipped: DamageReport::default(),
        }
    }

    /// Sets the file in which it persists from now on. Nothing is written before the first
    /// push, which starts a missing or empty file with all messages so far, and creates the
    /// directories above it that are missing.
    #[must_use]
    pub fn with_path(self, path: impl Into<PathBuf>) -> Self {
        self.with_place(path, Arc::new(LocalStorage))
    }

    /// Like [`with_path`](Self::with_path), in another storage.
    #[must_use]
    pub fn with_place(mut self, path: impl Into<PathBuf>, storage: Arc<dyn Storage>) -> Self {
        self.place = Some(Place::new(path.into(), storage));
        self
    }

    /// Appends a message, and persists it if there is a file.
    ///
    /// Returns after one line was written in one write and synced. If that fails, the
    /// transcript and its file are unchanged. If another writer has added to the file, it
    /// fails with [`Conflict`](crate::ErrorKind::Conflict): load the file again.
    ///
    /// # Errors
    ///
    /// Fails if its file cannot be written, or another writer has added to it.
    pub fn push(&mut self, message: Message) -> Result<()> {
        let at_ms = now_ms();
        self.persist(&New::Message(&message, at_ms))?;
        self.content.add_message(message, at_ms);
        Ok(())
    }

    /// Appends a user message.
    ///
    /// # Errors
    ///
    /// Fails as `push` does.
    pub fn push_user_text(&mut self, text: impl Into<Text>) -> Result<()> {
        self.push(Message::user_text(text))
    }

    /// Records that a summary replaces the next `removed_message_count` messages from now
    /// on. They stay in [`messages`](Self::messages).
    ///
    /// # Errors
    ///
    /// Fails as `push` does.
    pub fn record_compaction(
        &mut self,
        summary: impl Into<Text>,
        removed_message_count: u64,
    ) -> Result<()> {
        let at_ms = now_ms();
        let compacted = self
            .content
            .next_compaction(summary.into(), removed_message_count, at_ms);
        self.persist(&New::Compaction(&compacted))?;
        self.content.set_compaction(compacted);
        Ok(())
    }

    fn persist(&mut self, new: &New<'_>) -> Result<()> {
        match &mut self.place {
            Some(place) => place.append(&self.content, new),
            None => Ok(()),
        }
    }

    /// Creates a transcript that continues from here under its own id, with the same messages.
    /// It records this one's id and the seq at which it forked. It has no file yet.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.forked(None)
    }

    /// Creates a [`fork`](Self::fork) with a branch name, which is trimmed; a blank one is
    /// ignored.
    #[must_use]
    pub fn fork_as(&self, branch_name: &str) -> Self {
        self.forked(Some(branch_name))
    }

    fn forked(&self, branch_name: Option<&str>) -> Self {
        let seq = self.place.as_ref().and_then(Place::last_message_seq);
        Self::from_content(self.content.fork(branch_name, seq))
    }

    /// Loads a file of version 2, or of version 1 in either form.
    ///
    /// [`skipped`](Self::skipped) lists what cannot be read, with its line; for version 1 also
    /// records of unsupported types, and numbers that are out of range. Such records, and the
    /// `prompt_history` of version 1, are kept as they are when the transcript is saved or
    /// [written as version 1](Self::write_v1). If the file itself is missing,
    /// the newest older copy that version 1 left beside it is loaded.
    ///
    /// # Errors
    ///
    /// Fails with `NotFound` if there is no such file, and with `Invalid` or `Corrupt` if it is not a
    /// session file.
    pub fn load_from_path(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_from_place(path, Arc::new(LocalStorage))
    }

    /// Like [`load_from_path`](Self::load_from_path), from another storage.
    ///
    /// # Errors
    ///
    /// Fails as `load_from_path` does.
    pub fn load_from_place(path: impl AsRef<Path>, storage: Arc<dyn Storage>) -> Result<Self> {
        load::load(path.as_ref(), storage)
    }

    /// Saves the transcript: creates a missing file and the directories above it, appends the rest to a file that holds its
    /// beginning, and does not touch one that holds all of it.
    ///
    /// Refuses any other file (another session, messages that are not here, damage, a file of
    /// version 1) and does not change it.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn save_to_path(&self, path: impl AsRef<Path>) -> Result<()> {
        self.save_to_place(path, Arc::new(LocalStorage))
    }

    /// Like [`save_to_path`](Self::save_to_path), to another storage.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn save_to_place(&self, path: impl AsRef<Path>, storage: Arc<dyn Storage>) -> Result<()> {
        Place::new(path.as_ref().to_owned(), storage).save(&self.content)
    }

    /// Writes the transcript as version-1 lines, which older programs read, and returns what
    /// became text or was dropped.
    ///
    /// Messages that a summary replaces are dropped, as in version 1. In the losses each
    /// message is named by its position, counted from 1.
    ///
    /// # Errors
    ///
    /// Fails if `out` cannot be written.
    pub fn write_v1(&self, out: &mut dyn io::Write) -> Result<Losses> {
        let content = &self.content;
        let covered = content.covered();
        let mut writer = V1Writer::new(out);
        writer.meta(&V1Meta {
            session_id: Some(content.session_id.to_string()),
            created_at_ms: Some(content.created_at_ms),
            updated_at_ms: Some(content.updated_at_ms),
            fork: content.fork.clone(),
            ..V1Meta::default()
        })?;
        if let Some(last) = self.compaction() {
            writer.compaction(last)?;
        }
        for (n, message) in content.messages.iter().enumerate() {
            let seq = n as u64 + 1;
            for line in content.kept_at(n) {
                writer.kept_line(line)?;
            }
            if n < covered {
                writer.skip(message, seq);
            } else {
                writer.message(message, seq)?;
            }
        }
        for line in content.kept_at(content.messages.len()) {
            writer.kept_line(line)?;
        }
        writer.finish()
    }

    /// Returns the format version.
    pub fn version(&self) -> u32 {
        FORMAT_VERSION
    }

    /// Returns its id.
    pub fn session_id(&self) -> &SessionId {
        &self.content.session_id
    }

    /// Returns when it was created, in milliseconds since 1970.
    pub fn created_at_ms(&self) -> i64 {
        self.content.created_at_ms
    }

    /// Returns when it last changed, in milliseconds since 1970.
    pub fn updated_at_ms(&self) -> i64 {
        self.content.updated_at_ms
    }

    /// Returns all messages, including those that a summary replaces.
    pub fn messages(&self) -> &[Message] {
        &self.content.messages
    }

    /// Returns the messages that no summary replaces.
    pub fn kept_messages(&self) -> &[Message] {
        &self.content.messages[self.content.covered()..]
    }

    /// Returns the last compaction.
    pub fn compaction(&self) -> Option<&CompactionSummary> {
        self.content.compaction.as_ref().map(|last| &last.summary)
    }

    /// Returns where it was forked from.
    pub fn fork_origin(&self) -> Option<&ForkOrigin> {
        self.content.fork.as_ref()
    }

    /// Returns the file that it persists in.
    pub fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(Place::path)
    }

    /// Returns the damage that was skipped when it was loaded.
    pub fn skipped(&self) -> &DamageReport {
        &self.skipped
    }
}
