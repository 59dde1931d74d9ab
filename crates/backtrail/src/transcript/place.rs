//! The file that a transcript persists in.
//!
//! It only ever grows by whole lines. Before each append, under the file's lock,
//! its length is compared with what this value wrote or read: whatever another
//! writer added is never written over and never taken for ours.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::Content;
use super::lines::{Lines, New};
use super::load::{Kind, Loaded, kind_of, read_trail};
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::legacy::directory;
use crate::log::lies_in_store;
use crate::message::Message;
use crate::random::{OsRandomness, new_uuid};
use crate::storage::{Storage, StorageFile, append_all, read_full};
use crate::trail::Sums;
use crate::trail::lines::{PEEK_BUFFER, STREAM_BUFFER};
use crate::trail::reader::{Found, TrailReader};
use crate::trail::record::Position;

#[derive(Debug, Clone)]
pub(super) struct Place {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    /// The file as far as this value wrote or read it; `None` until then.
    known: Option<Known>,
    refusal: Option<Refusal>,
}

/// A file as far as it is known.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// All before it is whole lines.
    pub(super) len: u64,
    /// Whether the last of them lacks its newline.
    pub(super) lacks_newline: bool,
    pub(super) lines: Lines,
}

/// Why nothing is written to a file.
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
        const ELSEWHERE: &str = "save it to another file and go on there";
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
                format!("the file belongs to a store, which alone may write to it; {ELSEWHERE}"),
            ),
            Self::NoOpener => (
                ErrorKind::Conflict,
                format!("the file's first record cannot be read; {ELSEWHERE}"),
            ),
            Self::FailedSync => (
                ErrorKind::Io,
                "the file could not be made durable before; load it again".to_owned(),
            ),
        };
        Error::new(kind, what).at_path(path)
    }
}

impl Place {
    pub(super) fn new(path: PathBuf, storage: Arc<dyn Storage>) -> Self {
        Self {
            path,
            storage,
            known: None,
            refusal: None,
        }
    }

    /// Makes the place of a transcript that was read from there.
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

    /// Returns the seq of the last message in the file.
    pub(super) fn last_message_seq(&self) -> Option<u64> {
        self.known.as_ref()?.lines.seqs.last().copied()
    }

    /// Appends what is new, and before it what of the content is not there yet.
    pub(super) fn append(&mut self, content: &Content, new: &New<'_>) -> Result<()> {
        self.write(content, Some(new))
    }

    /// Makes the file hold the content, or leaves it alone.
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
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.create(content, new);
            }
            Err(error) => return Err(self.failed("cannot open the file", error)),
        };
        let held = Held::take(&file).map_err(|error| self.failed("cannot lock the file", error))?;
        self.attach(&file, content)?;
        let written = self.write_rest(&file, content, new);
        drop(held);
        written
    }

    /// Makes sure that the end of the file is where this value left it.
    fn attach(&mut self, file: &Arc<dyn StorageFile>, content: &Content) -> Result<()> {
        let len = self.len_of(file)?;
        if len == 0 {
            self.known = Some(Known::nothing());
            return Ok(());
        }
        match self.known.as_ref().map(Known::end) {
            Some(end) => self.check_end(file, end, len),
            None => self.adopt(file, content, len),
        }
    }

    fn len_of(&self, file: &Arc<dyn StorageFile>) -> Result<u64> {
        file.len()
            .map_err(|error| self.failed("cannot read the file", error))
    }

    /// Takes over a file that holds the beginning of this transcript.
    fn adopt(&mut self, file: &Arc<dyn StorageFile>, content: &Content, len: u64) -> Result<()> {
        if kind_of(file.as_ref(), &self.path)? == Kind::Version1 {
            return Err(Refusal::Version1.error(&self.path));
        }
        let Some(loaded) = read_trail(file, &self.path)? else {
            // A process died while it wrote the very first record.
            self.cut(file, 0..len)?;
            self.known = Some(Known::nothing());
            return Ok(());
        };
        if let Some(refusal) = loaded.refusal {
            return Err(refusal.error(&self.path));
        }
        if let Some(what) = in_the_way(&loaded, content) {
            let what = format!("{what}; it is left as it is, save to another file");
            return Err(Error::new(ErrorKind::Conflict, what).at_path(&self.path));
        }
        let end = loaded.known.end();
        self.known = Some(loaded.known);
        self.check_end(file, end, len)
    }

    /// Looks at what lies behind the known end: a line that nobody finished is
    /// set aside, anything else is somebody's.
    fn check_end(&mut self, file: &Arc<dyn StorageFile>, end: End, len: u64) -> Result<()> {
        if len == end.len {
            return Ok(());
        }
        if len < end.len {
            let lost = end.len - len;
            let what = format!("{lost} bytes that were written are gone from the end of the file");
            return Err(Error::new(ErrorKind::Conflict, what).at_path(&self.path));
        }
        let mut reader = TrailReader::forwards(
            Arc::clone(file),
            &self.path,
            end.len,
            PEEK_BUFFER,
            Sums::Check,
        );
        let mut torn = false;
        while let Some(found) = reader.advance()? {
            let ended = reader.last_line().is_none_or(|(.., ended)| ended);
            if ended || matches!(found, Found::Record) {
                let what = "another writer added to the file since; load it again, \
                            nothing was changed";
                return Err(Error::new(ErrorKind::Conflict, what).at_path(&self.path));
            }
            torn = true;
        }
        if torn {
            return self.cut(file, end.len..len);
        }
        // Blank lines are nobody's.
        let known = self.known.as_mut().expect("it was just known");
        known.len = len;
        known.lacks_newline = reader.last_line().is_some_and(|(.., ended)| !ended);
        Ok(())
    }

    /// Copies the unfinished end of the file aside, synced, then cuts it off.
    fn cut(&self, file: &Arc<dyn StorageFile>, place: Range<u64>) -> Result<()> {
        let what = "cannot set the file's unfinished end aside";
        let from = place.start;
        let (aside, copy) = self.new_beside(&format!(".aside-{from}"), what)?;
        let copied = copy_part(file.as_ref(), place, copy.as_ref())
            .and_then(|()| copy.sync())
            .and_then(|()| self.storage.sync_dir(directory(&self.path)));
        if let Err(error) = copied {
            self.storage.remove_file(&aside).ok();
            return Err(self.failed(what, error));
        }
        file.truncate(from)
            .map_err(|error| self.failed("cannot cut off an unfinished line", error))
    }

    /// Makes a file beside this one: its name, this ending, and a number if that
    /// is taken.
    fn new_beside(
        &self,
        ending: &str,
        what: &'static str,
    ) -> Result<(PathBuf, Arc<dyn StorageFile>)> {
        let name = |again: u32| {
            let mut name = self.path.file_name().unwrap_or_default().to_owned();
            name.push(ending);
            if again > 0 {
                name.push(format!(".{again}"));
            }
            self.path.with_file_name(name)
        };
        let mut again = 0;
        loop {
            match self.storage.create_new(&name(again)) {
                Ok(file) => return Ok((name(again), file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => again += 1,
                Err(error) => return Err(self.failed(what, error)),
            }
        }
    }

    /// Writes at the known end, and takes it back if anything fails.
    fn write_rest(
        &mut self,
        file: &Arc<dyn StorageFile>,
        content: &Content,
        new: Option<&New<'_>>,
    ) -> Result<()> {
        let path = &self.path;
        let known = self.known.as_mut().expect("the end is known before");
        let before = known.end();
        let result = known.write_rest(file.as_ref(), path, content, new);
        if known.len == before.len && result.is_ok() {
            return Ok(());
        }
        let synced = result.and_then(|()| {
            file.sync().map_err(|error| {
                self.refusal = Some(Refusal::FailedSync);
                Error::io("cannot make the file durable", path, error)
            })
        });
        if synced.is_err() {
            // If this fails too, the next append finds what is left behind.
            file.truncate(before.len).ok();
            known.take_back(before);
        }
        synced
    }

    /// Makes the file whole: written aside, synced, and put in place without
    /// replacing anything.
    fn create(&mut self, content: &Content, new: Option<&New<'_>>) -> Result<()> {
        let what = "cannot create the file";
        let id =
            new_uuid(&OsRandomness).map_err(|error| self.failed("cannot make an id", error))?;
        let (aside, file) = self.new_beside(&format!(".tmp-{id}"), what)?;
        self.known = Some(Known::nothing());
        let placed = self.write_rest(&file, content, new).and_then(|()| {
            self.storage.link_new(&aside, &self.path).map_err(|error| {
                if error.kind() == io::ErrorKind::AlreadyExists {
                    let what = "another writer made the file meanwhile; load it";
                    return Error::new(ErrorKind::Conflict, what).at_path(&self.path);
                }
                self.failed(what, error)
            })
        });
        let in_place = placed.is_ok();
        let result = placed.and_then(|()| {
            let synced = self.storage.sync_dir(directory(&self.path));
            synced.map_err(|error| self.failed(what, error))
        });
        if result.is_err() {
            self.known = None;
            self.refusal = None;
            if in_place {
                self.storage.remove_file(&self.path).ok();
            }
        }
        self.storage.remove_file(&aside).ok();
        result
    }

    fn failed(&self, what: &str, error: io::Error) -> Error {
        Error::io(what, &self.path, error)
    }
}

/// A known end, to go back to.
#[derive(Debug, Clone, Copy)]
struct End {
    len: u64,
    lacks_newline: bool,
    position: Position,
    messages: usize,
    compactions: u64,
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

    fn end(&self) -> End {
        End {
            len: self.len,
            lacks_newline: self.lacks_newline,
            position: self.lines.position,
            messages: self.lines.seqs.len(),
            compactions: self.lines.compactions,
        }
    }

    fn take_back(&mut self, end: End) {
        self.len = end.len;
        self.lacks_newline = end.lacks_newline;
        self.lines.position = end.position;
        self.lines.seqs.truncate(end.messages);
        self.lines.compactions = end.compactions;
    }

    fn write_rest(
        &mut self,
        file: &dyn StorageFile,
        path: &Path,
        content: &Content,
        new: Option<&New<'_>>,
    ) -> Result<()> {
        let (len, lacks_newline) = (&mut self.len, &mut self.lacks_newline);
        self.lines.rest(content, new, &mut |bytes| {
            let bytes = match *lacks_newline {
                true => Cow::Owned([b"\n", bytes].concat()),
                false => Cow::Borrowed(bytes),
            };
            append_all(file, &bytes).map_err(|error| {
                let what = "cannot write to the file; what was said before is safe";
                Error::io(what, path, error)
            })?;
            *lacks_newline = false;
            *len += bytes.len() as u64;
            Ok(())
        })
    }
}

/// Says what in a file keeps a transcript from going on there.
fn in_the_way(loaded: &Loaded, content: &Content) -> Option<&'static str> {
    let there = &loaded.content;
    let damaged = loaded
        .skipped
        .first()
        .iter()
        .any(|damage| damage.reason != Reason::Unfinished);
    let count = |content: &Content| content.compaction.as_ref().map_or(0, |c| c.summary.count);
    let summary = |content: &Content| content.compaction.as_ref().map(|c| c.summary.clone());
    if there.session_id != content.session_id {
        Some("the file holds another session")
    } else if damaged {
        Some("the file is damaged")
    } else if there.messages.len() > content.messages.len()
        || count(there) > count(content)
        || (count(there) == count(content) && summary(there) != summary(content))
    {
        Some("the file holds what this copy does not")
    } else if !there.messages.iter().zip(&content.messages).all(is_same) {
        Some("the file holds other messages than this copy")
    } else {
        None
    }
}

/// Returns whether two messages are the same, or at least are written so.
fn is_same((a, b): (&Message, &Message)) -> bool {
    let json = |message: &Message| {
        let mut out = Vec::new();
        message.write_json(&mut out).ok().map(|()| out)
    };
    a == b || json(a).is_some_and(|a| Some(a) == json(b))
}

/// Copies a part of a file to the end of another, a little at a time.
fn copy_part(from: &dyn StorageFile, place: Range<u64>, to: &dyn StorageFile) -> io::Result<()> {
    let mut buffer = vec![0; STREAM_BUFFER];
    let mut at = place.start;
    while at < place.end {
        let want = usize::try_from(place.end - at).map_or(buffer.len(), |n| n.min(buffer.len()));
        let n = read_full(from, &mut buffer[..want], at)?;
        if n == 0 {
            break;
        }
        append_all(to, &buffer[..n])?;
        at += n as u64;
    }
    Ok(())
}

/// A file's lock, held until it is dropped.
struct Held<'a>(&'a dyn StorageFile);

impl<'a> Held<'a> {
    fn take(file: &'a Arc<dyn StorageFile>) -> io::Result<Self> {
        loop {
            match file.lock() {
                Ok(()) => return Ok(Self(file.as_ref())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}
