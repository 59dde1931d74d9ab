//! One step: files and conversation both move, or neither does.
//!
//! Under the locks of the workspace and the session: the present state and the new one
//! are stored; the trail records that the step begins; every new file is written aside;
//! every path is checked once more, and the step is given up if one changed. Only then
//! the files change, then the conversation, and the trail records that it is done.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::apply::{FileWork, WorkResult};
use super::outcome::{ChatMove, NotRestored, Outcome, Stage};
use super::path_change::{PathChange, PathEntry};
use super::plan::{FilePlan, PlannedWork};
use super::target::{RewindTarget, trail_reason};
use crate::error::{Error, ErrorKind, Result};
use crate::objects::ObjectId;
use crate::session::Session;
use crate::snapshot::name::bytes_of;
use crate::snapshot::{Progress, ScanProgress, Snapshot, Totals, shown};
use crate::workspace::checkpoint_record::CheckpointRecord;
use crate::workspace::new_checkpoint::CapturedState;
use crate::workspace::step_record::{ChatMoveRecord, MergeRecord, StepRecord, TrailPlace};
use crate::workspace::{Checkpoint, CheckpointReason, GitHead, Workspace};

/// A step that is about to be done. Its caller holds the workspace's lock.
pub(super) struct Execution<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) target: &'a RewindTarget,
    pub(super) planned: PlannedWork,
    /// The writer of the session whose conversation moves.
    pub(super) writer: Option<Session>,
    pub(super) progress: Option<Arc<dyn Progress>>,
}

impl Execution<'_> {
    /// Does what the outcome says. `files` is the present state and the last checkpoint, if
    /// files may move.
    pub(super) fn run(
        self,
        files: Option<(&CapturedState, &Checkpoint)>,
        mut outcome: Outcome,
    ) -> Result<Outcome> {
        let mut work = || match (files, &self.planned.files) {
            (Some((state, last)), Some(plan)) => self.move_files(plan, state, last, &mut outcome),
            _ => self.move_chat(&mut outcome),
        };
        match &self.writer {
            Some(writer) => writer.alone(work)?,
            None => work()?,
        }
        outcome.stage = Stage::Done;
        Ok(outcome)
    }

    fn move_chat(&self, outcome: &mut Outcome) -> Result<()> {
        if let (Some(writer), Some(to), Some(chat)) =
            (&self.writer, &self.target.chat, &mut outcome.chat)
        {
            let reason = trail_reason(&outcome.verb.reason());
            chat.trail = writer.go_to(reason, (to.trail, to.seq))?;
        }
        Ok(())
    }

    fn move_files(
        &self,
        planned: &FilePlan,
        state: &CapturedState,
        last: &Checkpoint,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let workspace = self.workspace;
        let makes_root = !workspace.root_exists()?;
        let (after, totals, items) = self.result(planned, makes_root)?;
        let before = self.before(planned, state, last)?;
        let begun = StepRecord {
            at: workspace.store().now(),
            id: workspace.new_checkpoint_id()?,
            reason: outcome.verb.reason(),
            step: self.target.step_id,
            of_session: self.target.one_session(),
            from: before.as_ref().map_or(last.id(), |before| before.id),
            to: self.target.to.as_ref().map(Checkpoint::id),
            before: planned.present.id(),
            after,
            chat: self.begun_chat()?,
            makes_root,
            about: self.target.about.text.clone(),
            prompt: self.target.about.prompt.clone(),
            merge: self.begun_merge(),
        };
        if let Some(progress) = &self.progress {
            progress.update(ScanProgress::moving(planned.actions.by_path.len() as u64));
        }
        workspace.begin_step(before.as_ref(), &begun)?;
        let left = self.stage_check_and_move(&begun, &items)?;
        let mut ended = CheckpointRecord {
            changed: items.len() as u64,
            skipped: state.skipped.clone(),
            included: last.included().to_vec(),
            left: last.still_left(),
            ..begun.end((after, totals))
        };
        let mut end = || {
            leave_alone(workspace, &mut ended, &left, &planned.present)?;
            if let (Some(writer), Some(chat)) = (&self.writer, &begun.chat) {
                writer.go_to(trail_reason(&begun.reason), (chat.to.trail, chat.to.seq))?;
                writer.keep_written();
                ended.session = Some(chat.place_after());
            }
            workspace.end_step(&ended)
        };
        // The files are in place; the rest follows.
        end().map_err(interrupted)?;
        if let Some(chat) = &mut outcome.chat {
            chat.trail = begun.chat.map(|chat| chat.trail);
        }
        outcome.from = Some(begun.from);
        outcome.now = Some(begun.id);
        let is_left = |path: &Path| left.iter().any(|left| left.path == path);
        outcome.changes.retain(|change| !is_left(&change.path));
        outcome.not_restored.extend(left);
        Ok(())
    }

    /// Stages, checks and moves the files. After an error everything is as it was, or
    /// the next command here finishes it; the error says which.
    fn stage_check_and_move(
        &self,
        begun: &StepRecord,
        items: &[PathChange],
    ) -> Result<Vec<NotRestored>> {
        if items.iter().all(|item| item.old == item.new) {
            return Ok(Vec::new());
        }
        let work = work(self.workspace, begun, items);
        let staged = work.stage().and_then(|staged| match staged.check() {
            Ok(()) => Ok(staged),
            Err(error) => {
                staged.give_up();
                Err(error)
            }
        });
        let staged = match staged {
            Ok(staged) => staged,
            Err(error) => return self.give_up(begun, error.with_note("nothing was touched")),
        };
        // What could be neither finished nor put back is resumed as after a crash.
        let moved = staged
            .move_files()
            .or_else(|error| work.resume().map_err(|_| error));
        let WorkResult { left, rolled_back } = moved.map_err(|error| stuck(error, &work))?;
        match rolled_back {
            Some(error) => self.give_up(begun, put_back(error, &left)),
            None => Ok(left),
        }
    }

    fn give_up(&self, begun: &StepRecord, error: Error) -> Result<Vec<NotRestored>> {
        self.workspace.give_up_step(begun)?;
        Err(error)
    }

    /// Stores the new state, and returns how to get there.
    fn result(
        &self,
        planned: &FilePlan,
        makes_root: bool,
    ) -> Result<(ObjectId, Totals, Vec<PathChange>)> {
        let present = &planned.present;
        let store = || -> Result<_> {
            let (after, totals) = match planned.actions.by_path.is_empty() {
                true => (present.id(), present.totals()),
                false => (self.workspace).store_edited(present, &planned.actions.edits())?,
            };
            let snapshot = self.workspace.open_snapshot(&after)?;
            Ok((after, totals, items(makes_root, present, &snapshot)?))
        };
        match store() {
            // The store had a part of it, and that is damaged; now it is stored again.
            Err(error) if error.kind() == ErrorKind::Corrupt => store(),
            stored => stored,
        }
    }

    /// Makes the checkpoint of the present state, unless the last one has the same.
    fn before(
        &self,
        planned: &FilePlan,
        state: &CapturedState,
        last: &Checkpoint,
    ) -> Result<Option<CheckpointRecord>> {
        let present = &planned.present;
        if present.id() == last.snapshot_id() {
            return Ok(None);
        }
        let changed = last.snapshot().and_then(|last| last.diff(present));
        let now = self.workspace.store().now();
        let id = self.workspace.new_checkpoint_id()?;
        let state_now = (present.id(), present.totals());
        Ok(Some(CheckpointRecord {
            // A damaged snapshot must not stop those that come after it.
            changed: changed.map_or(0, |diff| diff.changes().len() as u64),
            skipped: state.skipped.clone(),
            included: last.included().to_vec(),
            left: last.still_left(),
            git: GitHead::read(self.workspace.root()),
            ..CheckpointRecord::new((now, id), CheckpointReason::BeforeRewind, state_now)
        }))
    }

    fn begun_chat(&self) -> Result<Option<ChatMoveRecord>> {
        let (Some(writer), Some(chat)) = (&self.writer, &self.target.chat) else {
            return Ok(None);
        };
        if self.planned.chat.is_none() {
            return Ok(None);
        }
        let stands = writer.stands_at()?;
        Ok(Some(ChatMoveRecord {
            session: chat.id.clone(),
            from: stands.into(),
            to: TrailPlace {
                trail: chat.trail,
                seq: chat.seq,
            },
            trail: stands.trail + 1,
        }))
    }

    /// Returns what is undone, if something is merged.
    fn begun_merge(&self) -> Option<MergeRecord> {
        let files = self
            .target
            .files
            .as_ref()
            .filter(|_| self.planned.merges())?;
        Some(MergeRecord {
            authors: files.authors.as_merged(),
            since: files.since,
            until: files.until,
        })
    }
}

/// Adds that the next command finishes the step.
fn interrupted(error: Error) -> Error {
    error.with_note("it is half done; the next command here finishes it")
}

/// Adds how far a step is that could be neither finished nor put back.
fn stuck(error: Error, work: &FileWork<'_>) -> Error {
    let (moved, all) = match work.progress() {
        Ok(progress) => (progress.moved.len(), work.items.len()),
        Err(_) => return interrupted(error),
    };
    error.with_note(format!(
        "it is half done: {moved} of {all} paths are restored; the next command here tries to \
         finish it"
    ))
}

/// Adds that everything is as it was, apart from what could not be put back.
fn put_back(error: Error, left: &[NotRestored]) -> Error {
    match left {
        [] => error.with_note("everything was put back as it was"),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let path = shown(&first.path);
            error.with_note(format!("everything was put back except {path}{more}"))
        }
    }
}

/// The mode bits without which names in a directory cannot change.
const WRITABLE: u32 = 0o300;

/// Returns the changes from one snapshot to another, in the order of the paths' bytes.
pub(super) fn items(
    makes_root: bool,
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<PathChange>> {
    let entry = |node: Option<_>| node.as_ref().and_then(PathEntry::of);
    let differences = before.differences(after, None)?.into_iter();
    let mut items: Vec<PathChange> = differences
        .map(|difference| PathChange {
            path: difference.path,
            old: entry(difference.before),
            new: entry(difference.after),
        })
        .collect();
    let mode = after.root().mode;
    if makes_root {
        items.retain(|item| !item.path.as_os_str().is_empty());
        items.push(PathChange {
            path: PathBuf::new(),
            old: None,
            new: Some(PathEntry::Dir { mode }),
        });
    }
    let has_root = items.iter().any(|item| item.path.as_os_str().is_empty());
    if mode & WRITABLE != WRITABLE && !has_root {
        // It is made writable for now: a command that resumes this must know.
        let root = Some(PathEntry::Dir { mode });
        items.push(PathChange {
            path: PathBuf::new(),
            old: root.clone(),
            new: root,
        });
    }
    items.sort_unstable_by(|a, b| bytes_of(&a.path).cmp(bytes_of(&b.path)));
    Ok(items)
}

pub(super) fn work<'a>(
    workspace: &'a Workspace,
    begun: &StepRecord,
    items: &'a [PathChange],
) -> FileWork<'a> {
    FileWork {
        root: workspace.root(),
        id: begun.id,
        items,
        objects: workspace.objects(),
        hook: workspace.store().touch_hook(),
    }
}

/// Records paths that were left alone as they were before: what they are now is a change
/// that no checkpoint has.
pub(super) fn leave_alone(
    workspace: &Workspace,
    ended: &mut CheckpointRecord,
    left: &[NotRestored],
    before: &Snapshot,
) -> Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    let after = workspace.open_snapshot(&ended.snapshot)?;
    let paths = left.iter().map(|left| left.path.as_path());
    let (snapshot, totals) = workspace.store_with_old((before, &after), paths)?;
    ended.snapshot = snapshot;
    (ended.files, ended.bytes) = (totals.files, totals.bytes);
    Ok(())
}

/// Refuses if the conversation continued since it was planned. `writer` would move it
/// now, and `chat` is the move that was planned.
pub(super) fn must_stand(writer: Option<&Session>, chat: Option<&ChatMove>) -> Result<()> {
    let stands = match (writer, chat) {
        (None, None) => true,
        (Some(writer), Some(chat)) => {
            !writer.is_spoken_after(chat.from)? && writer.stands_at()?.seq >= chat.from
        }
        _ => false,
    };
    if stands {
        return Ok(());
    }
    let what = "the conversation continued since the plan was made; nothing was touched";
    Err(Error::new(ErrorKind::Conflict, what))
}
