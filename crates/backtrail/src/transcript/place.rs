//! The file that a transcript persists in.
//!
//! The file only grows by complete lines, which a [`FileTail`] writes. Before each append,
//! under the file's lock, its length is compared with what this value wrote or read:
//! additions of another writer are never overwritten and never mistaken for ours.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::Content;
use super::lines::{Lines, New};
use super::load::{Kind, Loaded, kind_of, read_trail};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::log::{FileTail, LockFile, copy_aside, create_whole, lies_in_store};
use crate::message::Message;
use crate::random::{OsRandomness, new_uuid};
use crate::storage::{Storage, StorageFile, directory, make_dirs};

#[derive(Debug, Clone)]
pub(super) struct Place {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    /// The file as far as this value wrote or read it; `None` until then.
    known: Option<Known>,
    refusal: Option<Refusal>,
}

/// The known part of a file.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// The length, up to which there are only complete lines.
    pub(super) len: u64,
    /// Whether the last of them lacks its newline.
    pub(super) lacks_newline: bool,
    pub(super) lines: Lines,
}

impl Known {
    /// A file in which nothing is written yet.
    pub(super) fn nothing() -> Self {
        Self {
            len: 0,
            lacks_newline: false,
            lines: Lines::new(),
        }
    }
}

/// A reason not to write to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Version1,
    Newer(u32),
    InStore,
    NoOpener,
    FailedSync,
}

impl Refusal {
    fn error(self, path: &Path) -> Error {
        const ELSEWHERE: &str = "save it to another file and continue there";
        let (kind, what) = match self {
            Self::Version1 => (
                ErrorKind::Invalid,
                format!("a version-1 file is never written to; {ELSEWHERE}"),
            ),
            Self::Newer(version) => (
                ErrorKind::NewerFormat,
                format!("the file has format version {version}, which this program cannot write"),
            ),
            Self::InStore => (
                ErrorKind::Invalid,
                format!(
                    "the file belongs to a store, and only the store may write to it; {ELSEWHERE}"
                ),
            ),
            Self::NoOpener => (
                ErrorKind::Conflict,
                format!("the file's first record cannot be read; {ELSEWHERE}"),
            ),
            Self::FailedSync => (
                ErrorKind::Io,
                "an earlier sync of the file failed; load it again".to_owned(),
            ),
        };
        Error::new(kind, what).at_path(path)
    }
}

impl Place {
    pub(super) fn new(path: PathBuf, storage: Arc<dyn Storage>) -> Self {
        Self::loaded(path, storage, None, None)
    }

    /// Creates the place of a transcript that was loaded from there.
    pub(super) fn loaded(
        path: PathBuf,
        storage: Arc<dyn Storage>,
        known: Option<Known>,
        refusal: Option<Refusal>,
    ) -> Self {
        Self {
            path,
            storage,
            known,
            refusal,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file is a trail in a store.
    pub(super) fn is_in_store(&self) -> bool {
        self.refusal == Some(Refusal::InStore)
    }

    /// Returns the seq of the last message in the file.
    pub(super) fn last_message_seq(&self) -> Option<u64> {
        self.known.as_ref()?.lines.seqs.last().copied()
    }

    /// Appends `new`, after the part of the content that is missing.
    pub(super) fn append(&mut self, content: &Content, new: &New<'_>) -> Result<()> {
        self.write(content, Some(new))
    }

    /// Makes the file hold the content, or changes nothing.
    pub(super) fn save(&mut self, content: &Content) -> Result<()> {
        self.write(content, None)
    }

    fn write(&mut self, content: &Content, new: Option<&New<'_>>) -> Result<()> {
        if self.known.is_none() && lies_in_store(self.storage.as_ref(), &self.path)? {
            self.refusal = Some(Refusal::InStore);
        }
        if let Some(refusal) = self.refusal {
            return Err(refusal.error(&self.path));
        }
        let file = match self.storage.open_append(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.create(content, new);
            }
            Err(error) => return Err(Error::io("cannot open the file", &self.path, error)),
        };
        let lock = LockFile {
            path: self.path.clone(),
            file: Arc::clone(&file),
        };
        let _guard = lock.hold()?;
        let mut tail = FileTail::new(&self.path, file);
        self.attach(&mut tail, content)?;
        self.write_rest(&mut tail, content, new)
    }

    /// Finds the end of the file, which must be where this value left it.
    fn attach(&mut self, tail: &mut FileTail, content: &Content) -> Result<()> {
        let len = tail.file_len()?;
        if len == 0 {
            self.known = Some(Known::nothing());
        } else if self.known.is_none() {
            self.known = Some(self.adopt(&tail.file, content)?);
        }
        let known = self.known.as_mut().expect("it was just set");
        if len < known.len {
            let lost = known.len - len;
            let what = format!("{lost} bytes that were written are gone from the end of the file");
            return Err(Error::new(ErrorKind::Conflict, what).at_path(&self.path));
        }
        tail.len = known.len;
        tail.position = known.lines.position;
        let appended = tail.appended()?;
        if appended.as_ref().is_some_and(|appended| appended.has_lines) {
            let what = "another writer has added to the file; nothing was changed, load it again";
            return Err(Error::new(ErrorKind::Conflict, what).at_path(&self.path));
        }
        let (storage, path, file) = (&self.storage, &self.path, Arc::clone(&tail.file));
        let keep_aside = |part: std::ops::Range<u64>, _| {
            let name = format!(".aside-{}", part.start);
            let beside = |again| beside(path, &name, again);
            copy_aside(storage.as_ref(), file.as_ref(), part, beside)
        };
        match &appended {
            Some(appended) if appended.ended || !known.lacks_newline => {
                tail.take(appended, &keep_aside)?;
            }
            _ if known.lacks_newline => drop(tail.mend(known.len, len, &keep_aside)?),
            _ => {}
        }
        known.len = tail.len;
        known.lacks_newline = false;
        known.lines.position = tail.position;
        Ok(())
    }

    /// Returns the known part of a file that holds the beginning of this transcript.
    fn adopt(&self, file: &Arc<dyn StorageFile>, content: &Content) -> Result<Known> {
        if kind_of(file.as_ref(), &self.path)? == Kind::Version1 {
            return Err(Refusal::Version1.error(&self.path));
        }
        let Some(loaded) = read_trail(file, &self.path)? else {
            // A process died while writing the very first record.
            return Ok(Known::nothing());
        };
        if let Some(refusal) = loaded.refusal {
            return Err(refusal.error(&self.path));
        }
        if let Some(what) = in_the_way(&loaded, content) {
            let what = format!("{what}; it was not changed, save to another file");
            return Err(Error::new(ErrorKind::Conflict, what).at_path(&self.path));
        }
        Ok(loaded.known)
    }

    /// Writes at the known end and syncs; truncates the file if anything fails.
    fn write_rest(
        &mut self,
        tail: &mut FileTail,
        content: &Content,
        new: Option<&New<'_>>,
    ) -> Result<()> {
        let known = self.known.as_mut().expect("the end is known before");
        let (before, mark) = (known.len, known.lines.mark());
        let written = known
            .lines
            .rest(content, new, &mut |bytes| tail.write(bytes));
        if tail.len == before && written.is_ok() {
            return Ok(());
        }
        let synced = written.and_then(|()| {
            tail.file.sync().map_err(|error| {
                self.refusal = Some(Refusal::FailedSync);
                Error::io("cannot make the file durable", &self.path, error)
            })
        });
        match synced {
            Ok(()) => known.len = tail.len,
            Err(_) => {
                // If this fails too, the next append finds the remains.
                tail.file.truncate(before).ok();
                known.lines.go_back(mark);
            }
        }
        synced
    }

    /// Creates the complete file, without replacing anything.
    fn create(&mut self, content: &Content, new: Option<&New<'_>>) -> Result<()> {
        let failed = |error| Error::io("cannot create the file", &self.path, error);
        let id = new_uuid(&OsRandomness).map_err(failed)?;
        let storage = Arc::clone(&self.storage);
        make_dirs(storage.as_ref(), directory(&self.path)).map_err(failed)?;
        let aside = beside(&self.path, &format!(".tmp-{id}"), 0);
        let mut known = Known::nothing();
        let placed = create_whole(storage.as_ref(), &aside, &self.path, |file| {
            let mut tail = FileTail::new(&self.path, Arc::clone(file));
            known
                .lines
                .rest(content, new, &mut |bytes| tail.write(bytes))?;
            known.len = tail.len;
            Ok(())
        });
        storage.remove_file(&aside).ok();
        if let Err(error) = placed {
            if storage.exists(&self.path).unwrap_or(false) {
                let what = "another writer has created the file; load it";
                return Err(Error::new(ErrorKind::Conflict, what).at_path(&self.path));
            }
            return Err(error);
        }
        if let Err(error) = storage.sync_dir(directory(&self.path)) {
            storage.remove_file(&self.path).ok();
            return Err(failed(error));
        }
        self.known = Some(known);
        Ok(())
    }
}

/// Returns the path of a file beside another one: its name, an ending, and a number if
/// the name is in use.
fn beside(path: &Path, ending: &str, again: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    if again > 0 {
        name.push(format!(".{again}"));
    }
    path.with_file_name(name)
}

/// Returns the reason why a transcript cannot continue in a file.
fn in_the_way(loaded: &Loaded, content: &Content) -> Option<&'static str> {
    let there = &loaded.content;
    let damaged = loaded
        .skipped
        .first()
        .iter()
        .any(|damage| damage.reason != Reason::Unfinished);
    let summary = |content: &Content| content.compaction.as_ref().map(|c| c.summary.clone());
    if there.session_id != content.session_id {
        Some("the file holds another session")
    } else if damaged {
        Some("the file is damaged")
    } else if there.messages.len() > content.messages.len()
        || there.compactions() > content.compactions()
        || (there.compactions() == content.compactions() && summary(there) != summary(content))
        || !content.kept.starts_with(&there.kept)
    {
        Some("the file has more than this copy")
    } else if !there.messages.iter().zip(&content.messages).all(is_same) {
        Some("the file has different messages")
    } else {
        None
    }
}

/// Returns whether two messages are equal, or are at least written the same way.
fn is_same((a, b): (&Message, &Message)) -> bool {
    let json = |message: &Message| {
        let mut out = Vec::new();
        message.write_json(&mut out).ok().map(|()| out)
    };
    a == b || json(a).is_some_and(|a| Some(a) == json(b))
}
