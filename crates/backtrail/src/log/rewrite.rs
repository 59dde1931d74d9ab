//! Rewrites trails, to remove text from them.
//!
//! This is the one exception to the rule that written data never changes, and only a purge
//! uses it. The records keep their seqs; their sums and links are recomputed.

use super::chain::{Segment, Walk};
use super::directory::LogDir;
use super::lock::{LockFile, hold_writer};
use super::present::present_at;
use super::tail::Tail;
use super::trail_copy::TrailCopy;
use crate::error::{Error, IoContext, Result};
use crate::json::Fields;
use crate::storage::{if_found, read_range};
use crate::store::Store;
use crate::trail::lines::STREAM_BUFFER;
use crate::trail::opener::{Opener, TrailReason};
use crate::trail::reader::Found;
use crate::trail::{RecordKind, RecordRef, Sums};

/// An editor's decision about a record.
pub(crate) enum Rewritten {
    AsItIs,
    /// Replaces the fields, from `type` on.
    Fields(Fields),
}

/// Decides how to rewrite each record, and which bytes must be removed.
pub(crate) trait Editor {
    fn edit(&self, record: &RecordRef<'_>) -> Result<Rewritten>;

    /// Returns whether bytes that are not a record may stay beside the trail.
    fn may_stay(&self, bytes: &[u8]) -> bool;
}

/// Rewrites the trails of a workspace as one, and removes the old ones. If the editor
/// changes no record, the trails stay. A crash leaves the old line or the new one.
pub(crate) fn rewrite_line(store: &Store, files: &LogDir, editor: &dyn Editor) -> Result<()> {
    let _guard = LockFile::append(files)?.hold()?;
    remove_superseded(files)?;
    remove_asides(files, editor)?;
    let mut tail = Tail::load(store, files)?;
    let (segments, _) = Walk::new(store, files, tail.trail).collect()?;
    if !changes_any(&segments, editor)? {
        return Ok(());
    }
    let opener = Opener {
        given: Some(tail.position().seq),
        present: present_at(store, files, tail.trail, tail.position())?,
        ..files.opener(tail.trail + 1, TrailReason::Purge, store.now())
    };
    tail.sync()?;
    let path = files.trail_path(opener.trail);
    files.create_trail(opener.trail, |file| {
        let mut copy = TrailCopy::new(file, &path);
        copy.opener(&opener)?;
        for segment in &segments {
            copy_segment(&mut copy, files, segment, editor, false)?;
        }
        copy.flush()
    })?;
    remove_superseded(files)
}

fn changes_any(segments: &[Segment], editor: &dyn Editor) -> Result<bool> {
    for segment in segments {
        let mut reader = segment.forwards(0, STREAM_BUFFER, Sums::Check)?;
        while let Some(record) = reader.next_record()? {
            if matches!(editor.edit(&record)?, Rewritten::Fields(_)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Removes the trails that a rewritten one replaces.
fn remove_superseded(files: &LogDir) -> Result<()> {
    let trails = files.trails()?;
    let mut newest = None;
    for trail in trails.iter().rev() {
        let opener = Segment::open(files, *trail, u64::MAX)?.opener;
        if opener.is_some_and(|opener| opener.reason == TrailReason::Purge) {
            newest = Some(*trail);
            break;
        }
    }
    let Some(newest) = newest else {
        return Ok(());
    };
    let what = "cannot remove the old trail";
    for trail in trails.into_iter().filter(|trail| *trail < newest) {
        let path = files.trail_path(trail);
        if_found(files.storage().remove_file(&path)).context(what, &path)?;
    }
    files
        .storage()
        .sync_dir(files.path())
        .context(what, files.path())
}

/// Removes bytes that were set aside, unless the editor lets them stay.
fn remove_asides(files: &LogDir, editor: &dyn Editor) -> Result<()> {
    let what = "cannot remove the old bytes";
    for path in files.asides()? {
        let file = files.storage().open_read(&path);
        let bytes = file.and_then(|file| read_range(file.as_ref(), 0..file.len()?));
        if !editor.may_stay(&bytes.context("cannot read what was set aside", &path)?) {
            files.storage().remove_file(&path).context(what, &path)?;
        }
    }
    files
        .storage()
        .sync_dir(files.path())
        .context(what, files.path())
}

/// Rewrites the only trail of a session in place. The caller makes sure that no other
/// trail continues it. Fails if another process is writing to it.
pub(crate) fn rewrite_only_trail(store: &Store, files: &LogDir, editor: &dyn Editor) -> Result<()> {
    let _writer = hold_writer(store, files)?;
    let _guard = LockFile::append(files)?.hold()?;
    let mut tail = Tail::load(store, files)?;
    tail.sync()?;
    let segment = Segment::open(files, tail.trail, u64::MAX)?;
    let path = files.trail_path(tail.trail);
    let aside = files.path().join("new-trail");
    let failed = |error| Error::io("cannot rewrite the trail", &path, error);
    if_found(files.storage().remove_file(&aside)).map_err(failed)?;
    let file = files.storage().create_new(&aside).map_err(failed)?;
    let mut copy = TrailCopy::new(file.as_ref(), &path);
    copy_segment(&mut copy, files, &segment, editor, true)?;
    copy.flush()?;
    file.sync().map_err(failed)?;
    files.storage().replace(&aside, &path).map_err(failed)?;
    files.storage().sync_dir(files.path()).map_err(failed)
}

/// Copies the records of a segment with the editor's changes. Openers are copied only
/// `with_opener`.
fn copy_segment(
    copy: &mut TrailCopy<'_>,
    files: &LogDir,
    segment: &Segment,
    editor: &dyn Editor,
    with_opener: bool,
) -> Result<()> {
    let mut reader = segment.forwards(0, STREAM_BUFFER, Sums::Check)?;
    while let Some(found) = reader.advance()? {
        if let Found::Damage(damage) = found {
            // The damaged bytes stay beside the trail, if they may.
            let place = damage.byte..damage.byte + damage.bytes;
            let source = segment.file()?;
            let bytes = read_range(source.as_ref(), place.clone());
            if editor.may_stay(&bytes.context("cannot read the trail", &segment.path)?) {
                files.set_aside(segment.trail, source.as_ref(), place, None)?;
            }
            continue;
        }
        let record = reader.record();
        let is_opener = record.kind() == RecordKind::Opener;
        if record.seq() > segment.until || (is_opener && !with_opener) {
            continue;
        }
        let prev = match record.prev() {
            // The record that it continues is unchanged.
            Some(prev) if is_opener => prev,
            _ => copy.prev,
        };
        match editor.edit(&record)? {
            Rewritten::AsItIs => copy.add(record.bytes(), prev)?,
            Rewritten::Fields(fields) => copy.add(&body_of(&fields)?, prev)?,
        }
    }
    Ok(())
}

/// Writes the fields of a record up to `prev`.
fn body_of(fields: &Fields) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut separator = b'{';
    for (name, value) in fields.iter() {
        if name == "prev" || name == "sum" {
            continue;
        }
        out.push(separator);
        serde_json::to_writer(&mut out, name)
            .map_err(|error| Error::json("cannot write the record", &error))?;
        out.push(b':');
        out.extend_from_slice(value.as_str().as_bytes());
        separator = b',';
    }
    Ok(out)
}
