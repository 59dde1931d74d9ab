//! Taking in files of version 1, byte for byte as a session's first trail.
//!
//! The file is surveyed, copied and never touched. A second trail of ours says
//! what it is and goes on from it. A crash between the two leaves a session that
//! can be read; whoever writes to it first, or takes the file in again, makes the
//! second trail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SessionOptions;
use super::note::MAX_TEXT;
use crate::error::{Error, ErrorKind, Reason, Result};
use crate::hex::to_hex;
use crate::ids::SessionId;
use crate::legacy::{self, Meta, Summary, id_of_content};
use crate::log::directory::LogDir;
use crate::log::first::second_opener;
use crate::log::lock::{AppendLock, lies_in_store};
use crate::storage::{StorageFile, append_all, read_full};
use crate::store::Store;
use crate::time::Timestamp;
use crate::trail::DamageReport;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::opener::{Because, Continues, Opener};
use crate::trail::origin::{ForkOrigin, Imported};
use crate::trail::present::{Present, WorkspaceRef};
use crate::trail::sum::Sum;
use crate::transcript::{Kind, Transcript, kind_of};

/// A file that was taken in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Import {
    /// The session that holds it.
    pub id: SessionId,
    /// What came of it.
    pub outcome: ImportOutcome,
    /// The file that was read: an older copy, where the file itself is gone.
    pub file: PathBuf,
    /// The id that the file bears, where the session has another.
    pub original_id: Option<String>,
    /// How many messages it holds.
    pub messages: u64,
    /// What of it cannot be read. It was taken in all the same.
    pub damage: DamageReport,
}

/// What came of taking a file in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportOutcome {
    /// A session was made of it.
    New,
    /// It is there already, with the same bytes.
    Unchanged,
}

/// Takes in a file of version 1.
pub(crate) fn import(store: &Store, path: &Path) -> Result<Import> {
    refuse_leftovers(store, path)?;
    // An older copy stands for its file, and the newest of them counts.
    let named = legacy::is_older_copy(path).unwrap_or_else(|| path.to_owned());
    let located = legacy::find_file(store.storage(), &named)?;
    let file = store
        .storage()
        .open_read(&located.path)
        .map_err(|error| Error::io("cannot open the file", &located.path, error))?;
    if kind_of(file.as_ref(), &located.path)? == Kind::Trail {
        refuse_store(store, &located.path)?;
        return take_transcript(store, located.path, None).map_err(|error| match error.reason() {
            // As little as that may be anything.
            Some(Reason::Unfinished) => Error::invalid("this is not a session file")
                .at_path(path)
                .at_line(Some(1))
                .with_reason(Reason::Unfinished),
            _ => error,
        });
    }
    let summary = legacy::survey(&file, &located.path)?;
    if summary.is_ours() {
        return take_transcript(store, located.path, summary.meta.as_ref());
    }
    let source = Source {
        path: located.path,
        file,
        summary,
    };
    // Where another session has the file's id, its content gives one.
    let other = id_of_content(&source.summary.hash);
    for id in [source.summary.session_id.clone(), other] {
        if let Some(outcome) = source.take_in(store, &id)? {
            return Ok(source.into_import(id, outcome));
        }
    }
    let what = "another session has the id that this file's content would give it";
    Err(Error::new(ErrorKind::Corrupt, what).at_path(path))
}

/// Takes in a file that a [`Transcript`] was saved to, or one that was exported
/// as one object.
fn take_transcript(store: &Store, path: PathBuf, meta: Option<&Meta>) -> Result<Import> {
    let transcript = Transcript::load_from_place(&path, store.shared_storage())?;
    let id = transcript.session_id().clone();
    let outcome = if store.files(&id).trails()?.is_empty() {
        store.files(&id).refuse_gone()?;
        let options = exported_options(meta);
        store.create_session_from(&transcript, options)?.close()?;
        ImportOutcome::New
    } else if store.read_session(&id)?.transcript()?.says(&transcript) {
        ImportOutcome::Unchanged
    } else {
        let what = format!("session {id} is there already, and is not what this file holds");
        let last = store.read_session(&id)?.info()?.last_seq;
        return Err(Error::conflict(what, last).at_path(&path));
    };
    Ok(Import {
        id,
        outcome,
        file: path,
        original_id: None,
        messages: transcript.messages().len() as u64,
        damage: transcript.skipped().clone(),
    })
}

/// Returns what an export says of the session beside its messages.
fn exported_options(meta: Option<&Meta>) -> SessionOptions {
    let Some(meta) = meta else {
        return SessionOptions::new();
    };
    let options = SessionOptions::of(Present {
        title: meta.title.clone(),
        tags: meta.tags.clone(),
        agent: meta.agent.clone(),
        ..present_of(meta)
    });
    // Names that no note takes are not worth a failure.
    match options.check() {
        Ok(()) => options,
        Err(_) => SessionOptions::new(),
    }
}

/// Returns what a file says of the session that can be noted.
fn present_of(meta: &Meta) -> Present {
    let root = noted(meta.workspace_root.as_ref());
    Present {
        model: noted(meta.model.as_ref()).cloned(),
        workspace: root.map(|root| WorkspaceRef::new(Path::new(root))),
        ..Present::default()
    }
}

/// Refuses a trail that lies in a store: it may be a part of a session, and large
/// parts of its messages lie beside it.
fn refuse_store(store: &Store, path: &Path) -> Result<()> {
    if !lies_in_store(store.storage(), path)? {
        return Ok(());
    }
    let what = "this is a trail of a session in a store; export the session there, \
                and import what that gives";
    Err(Error::invalid(what).at_path(path))
}

/// Refuses files that other programs leave beside their sessions.
fn refuse_leftovers(store: &Store, path: &Path) -> Result<()> {
    if legacy::is_temporary(path) {
        let what = "this is a temporary file of another program, no session";
        return Err(Error::invalid(what).at_path(path));
    }
    if let Some(newer) = legacy::is_older_copy(path)
        && store.storage().exists(&newer).unwrap_or(false)
    {
        let what = format!(
            "this is an older copy of {}; import that one",
            newer.display()
        );
        return Err(Error::invalid(what).at_path(path));
    }
    Ok(())
}

/// Gives a session whose first trail was taken in the second one.
pub(crate) fn finish(store: &Store, files: &LogDir) -> Result<()> {
    let file = files.open_read(0)?;
    // The file's own name is not known any more; the id was often made of it.
    let path = files.path().with_extension("jsonl");
    let summary = legacy::survey(&file, &path)?;
    begin_second(store, files, &summary)
}

/// How much of a file a session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is no such session.
    Absent,
    /// The first trail alone.
    Half,
    /// All but the first trail, which somebody removed.
    Headless,
    Whole,
    /// It is another session.
    Taken,
}

struct Source {
    path: PathBuf,
    file: Arc<dyn StorageFile>,
    summary: Summary,
}

impl Source {
    /// Makes the session `id` of the file; `None` where another session has it.
    fn take_in(&self, store: &Store, id: &SessionId) -> Result<Option<ImportOutcome>> {
        let files = store.files(id);
        if let State::Whole | State::Taken = self.state(&files)? {
            return self.complete(store, &files);
        }
        files.refuse_gone()?;
        match store.storage().create_dir(files.path()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                let what = "cannot create the session";
                return Err(Error::io(what, files.path(), error));
            }
            _ => {}
        }
        // Whoever takes in the same file at the same time is waited for.
        let lock = AppendLock::open(&files)?;
        let _guard = lock.hold()?;
        self.complete(store, &files)
    }

    /// Makes what is missing of the session. What is there was perhaps made by a
    /// process that died before it was durable.
    fn complete(&self, store: &Store, files: &LogDir) -> Result<Option<ImportOutcome>> {
        let state = self.state(files)?;
        if state == State::Taken {
            return Ok(None);
        }
        if matches!(state, State::Absent | State::Headless) {
            files.create_trail(0, |to| self.copy(to))?;
        }
        if matches!(state, State::Absent | State::Half) {
            begin_second(store, files, &self.summary)?;
        }
        if state == State::Whole && hash_of(files)? != to_hex(&self.summary.hash) {
            let what = format!(
                "session {} was made of this file, but its first trail has changed since",
                files.id()
            );
            return Err(Error::new(ErrorKind::Corrupt, what).at_path(&files.trail_path(0)));
        }
        files.sync_names()?;
        Ok(Some(match state {
            State::Whole => ImportOutcome::Unchanged,
            _ => ImportOutcome::New,
        }))
    }

    /// Returns how much of this file a session has.
    fn state(&self, files: &LogDir) -> Result<State> {
        let trails = files.trails()?;
        if trails.is_empty() {
            return Ok(State::Absent);
        }
        let known = second_opener(files)?.and_then(|opener| opener.imported);
        let has_first = trails.first() == Some(&0);
        let hash = match known {
            Some(known) => known.hash,
            None if has_first => hash_of(files)?,
            None => return Ok(State::Taken),
        };
        Ok(match trails.len() {
            _ if hash != to_hex(&self.summary.hash) => State::Taken,
            _ if !has_first => State::Headless,
            1 => State::Half,
            _ => State::Whole,
        })
    }

    /// Copies the file, and makes sure that it is still the one that was looked at.
    fn copy(&self, to: &dyn StorageFile) -> Result<()> {
        let mut hasher = blake3::Hasher::new();
        let read = |error| Error::io("cannot read the file", &self.path, error);
        each_chunk(self.file.as_ref(), read, |bytes| {
            hasher.update(bytes);
            append_all(to, bytes)
                .map_err(|error| Error::io("cannot copy the file", &self.path, error))
        })?;
        if *hasher.finalize().as_bytes() == self.summary.hash {
            return Ok(());
        }
        let what = "the file changed while it was read; import it again";
        Err(Error::new(ErrorKind::Io, what).at_path(&self.path))
    }

    fn into_import(self, id: SessionId, outcome: ImportOutcome) -> Import {
        Import {
            original_id: original_id(&self.summary, &id),
            id,
            outcome,
            file: self.path,
            messages: self.summary.messages,
            damage: self.summary.damage,
        }
    }
}

fn begin_second(store: &Store, files: &LogDir, summary: &Summary) -> Result<()> {
    let meta = summary.meta.as_ref();
    let millis = |ms: i64| Timestamp::from_millis(ms).unwrap_or_else(|| store.now());
    let opener = Opener {
        present: meta.map(present_of).unwrap_or_default(),
        fork: meta.and_then(|meta| meta.fork.as_ref()).and_then(fork_of),
        imported: Some(Imported {
            hash: to_hex(&summary.hash),
            bytes: summary.bytes,
            original_id: original_id(summary, files.id()),
            uninstructed: summary.uninstructed,
            begins: summary.begins.clone(),
            created_at: millis(summary.created_at_ms),
            updated_at: millis(summary.updated_at_ms),
        }),
        ..Opener::new(files.id(), 1, Because::Import, store.now())
    };
    let opener = match last_place(files, summary)? {
        Some(last) => opener.continuing(last, None),
        None => opener,
    };
    files.create_opened(&opener).map(drop)
}

fn fork_of(fork: &legacy::Fork) -> Option<ForkOrigin> {
    let parent = noted(Some(&fork.parent_session_id))?;
    let name = noted(fork.branch_name.as_ref());
    Some(ForkOrigin::new(parent, name.map(String::as_str), None))
}

/// Returns where the first trail ends, by what is known of it: the file is not
/// gone through once more.
fn last_place(files: &LogDir, summary: &Summary) -> Result<Option<Continues>> {
    let Some(last) = &summary.last_record else {
        return Ok(None);
    };
    let path = files.trail_path(0);
    let mut bytes = vec![0; (last.place.end - last.place.start) as usize];
    read_full(files.open_read(0)?.as_ref(), &mut bytes, last.place.start)
        .map_err(|error| Error::io("cannot read the trail", &path, error))?;
    Ok(Some(Continues {
        session_id: files.id().clone(),
        trail: 0,
        seq: last.seq,
        sum: Sum::of(&bytes),
    }))
}

fn original_id(summary: &Summary, id: &SessionId) -> Option<String> {
    let named = noted(summary.original_id.as_ref()).cloned();
    let other = || (summary.session_id != *id).then(|| summary.session_id.to_string());
    named.or_else(other)
}

/// Returns a name that can be noted. One that is too long for that stays in the
/// file: every later note and opener would repeat it.
fn noted(name: Option<&String>) -> Option<&String> {
    name.filter(|name| name.len() <= MAX_TEXT)
}

/// Hashes a session's first trail.
pub(crate) fn hash_of(files: &LogDir) -> Result<String> {
    let path = files.trail_path(0);
    let mut hasher = blake3::Hasher::new();
    let read = |error| Error::io("cannot read the trail", &path, error);
    each_chunk(files.open_read(0)?.as_ref(), read, |bytes| {
        hasher.update(bytes);
        Ok(())
    })?;
    Ok(to_hex(hasher.finalize().as_bytes()))
}

fn each_chunk(
    file: &dyn StorageFile,
    failed: impl Fn(io::Error) -> Error,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut buffer = vec![0; STREAM_BUFFER];
    let mut at = 0;
    loop {
        let n = read_full(file, &mut buffer, at).map_err(&failed)?;
        if n == 0 {
            return Ok(());
        }
        take(&buffer[..n])?;
        at += n as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::chain::Segment;

    // A8, A9: what follows a file of version 1 continues its last record.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the file is another program's")]
    fn the_second_trail_continues_the_last_record_that_the_first_gives_when_read() {
        const META: &str = r#"{"type":"session_meta","session_id":"s-1","version":1}"#;
        const MESSAGE: &str =
            r#"{"type":"message","message":{"role":"user","blocks":[{"type":"text","text":"a"}]}}"#;
        const PROMPT: &str = r#"{"type":"prompt_history","timestamp_ms":5,"text":"a"}"#;
        const SUMMARY: &str =
            r#"{"type":"compaction","count":1,"removed_message_count":2,"summary":"s"}"#;
        let object = r#"{"version":1,"messages":[{"role":"user","blocks":[]},{"role":"tool","blocks":[]},7]}"#;
        let files = [
            format!("{META}\n{MESSAGE}\n"),
            format!("{META}\n{MESSAGE}\r\n\n{META}\n"),
            format!("{MESSAGE}\n{PROMPT}\n \n"),
            format!("{MESSAGE}\n{SUMMARY}"),
            format!("{MESSAGE}\n{MESSAGE}\nnot a record\n"),
            format!("{MESSAGE}\n{}", &MESSAGE[..40]),
            format!("{META}\n"),
            object.to_owned(),
        ];
        for content in files {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("file.jsonl");
            std::fs::write(&path, &content).unwrap();
            let store = Store::open_or_create(dir.path().join("store")).unwrap();
            let id = store.import(&path).unwrap().id;
            let files = store.files(&id);
            let read = Segment::open(&files, 0, u64::MAX).unwrap().last_position();
            let continues = second_opener(&files).unwrap().unwrap().continues;
            assert_eq!(
                continues.map(|from| (from.seq, from.sum)),
                read.unwrap().map(|last| (last.seq, last.sum)),
                "{content}"
            );
        }
    }
}
