//! One step: files and conversation both move, or neither does.
//!
//! Under the locks of the workspace and the session: the present state and the new one
//! are stored; the trail records that the step begins; every new file is written aside;
//! every path is checked once more, and the step is given up if one changed. Only then
//! the files change, then the conversation, and the trail records that it is done.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::apply::{FileWork, WorkResult};
use super::outcome::{ChatMove, NotRestored};
use super::path_change::{PathChange, PathEntry};
use super::plan::{FilePlan, PlannedWork};
use super::target::{RewindTarget, trail_reason};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::CheckpointId;
use crate::objects::ObjectId;
use crate::random::new_uuid;
use crate::session::Session;
use crate::snapshot::edit::{Edit, edit};
use crate::snapshot::entry::Node;
use crate::snapshot::name::bytes_of;
use crate::snapshot::{Progress, ScanProgress, Snapshot, Totals, shown};
use crate::workspace::checkpoint_record::CheckpointRecord;
use crate::workspace::journal::{ChatMoveRecord, Ending, MergeRecord, StepRecord};
use crate::workspace::new_checkpoint::CapturedState;
use crate::workspace::{Checkpoint, CheckpointReason, SessionPlace, Workspace};

/// A step that is about to be done. Its caller holds the workspace's lock.
pub(super) struct Execution<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) target: &'a RewindTarget,
    pub(super) planned: PlannedWork,
    /// The writer of the session whose conversation moves.
    pub(super) writer: Option<Session>,
    pub(super) progress: Option<Arc<dyn Progress>>,
}

/// What was done.
#[derive(Default)]
pub(super) struct Executed {
    /// `None` if no file moved.
    pub(super) files: Option<MovedFiles>,
    /// The trail that the conversation's move began.
    pub(super) trail: Option<u32>,
}

/// Files that were moved.
pub(super) struct MovedFiles {
    /// The checkpoint before.
    pub(super) from: CheckpointId,
    /// The checkpoint after.
    pub(super) now: CheckpointId,
    /// Paths that were left alone.
    pub(super) left: Vec<NotRestored>,
}

impl Execution<'_> {
    /// Does it. `files` is the present state and the last checkpoint, if files may move.
    pub(super) fn run(self, files: Option<(&CapturedState, &Checkpoint)>) -> Result<Executed> {
        let (Some((state, last)), Some(plan)) = (files, &self.planned.files) else {
            let trail = self.move_chat_alone()?;
            return Ok(Executed { files: None, trail });
        };
        let work = || self.move_files(plan, state, last);
        match &self.writer {
            Some(writer) => writer.alone(work),
            None => work(),
        }
    }

    fn move_chat_alone(&self) -> Result<Option<u32>> {
        let (Some(writer), Some(chat)) = (&self.writer, &self.target.chat) else {
            return Ok(None);
        };
        if self.planned.chat.is_none() {
            return Ok(None);
        }
        let reason = trail_reason(&self.target.verb.reason());
        writer.alone(|| writer.go_to(reason, (chat.to.trail, chat.to.seq)))
    }

    fn move_files(
        &self,
        planned: &FilePlan,
        state: &CapturedState,
        last: &Checkpoint,
    ) -> Result<Executed> {
        let workspace = self.workspace;
        let (after, totals) = self.result(planned)?;
        let before = self.before(planned, state, last)?;
        let begun = StepRecord {
            at: workspace.store().now(),
            id: self.new_id()?,
            reason: self.target.verb.reason(),
            step: self.target.step_id,
            of_session: self.target.one_session(),
            from: before.as_ref().map_or(last.id(), |before| before.id),
            to: self.target.to.as_ref().map(Checkpoint::id),
            before: planned.present.id(),
            after,
            chat: self.begun_chat()?,
            makes_root: !workspace.root_exists()?,
            about: self.target.about.text.clone(),
            prompt: self.target.about.prompt.clone(),
            merge: self.begun_merge(),
        };
        if let Some(progress) = &self.progress {
            progress.update(ScanProgress::moving(planned.actions.by_path.len() as u64));
        }
        workspace.begin_step(before.as_ref(), &begun)?;
        let items = items(&begun, &planned.present, &workspace.open_snapshot(&after)?)?;
        let outcome = self.act(&begun, &items)?;
        let ending = Ending {
            snapshot: after,
            totals,
            skipped: state.skipped.clone(),
            changed: items.len() as u64,
            session: None,
        };
        let left = outcome.left;
        let ended = left_alone(workspace, ending, &left, &planned.present).and_then(|ending| {
            let session = self.move_chat(&begun)?;
            workspace.end_step(&begun, Ending { session, ..ending })
        });
        // The files are in place; the rest follows.
        ended.map_err(interrupted)?;
        Ok(Executed {
            trail: begun.chat.map(|chat| chat.trail),
            files: Some(MovedFiles {
                from: begun.from,
                now: begun.id,
                left,
            }),
        })
    }

    /// Stages, checks and moves the files. After an error everything is as it was, or
    /// the next command here finishes it; the error says which.
    fn act(&self, begun: &StepRecord, items: &[PathChange]) -> Result<WorkResult> {
        if items.iter().all(|item| item.old == item.new) {
            return Ok(WorkResult::default());
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
        // What could not be cleaned up is resumed as after a crash.
        let moved = staged.move_files().or_else(|_| work.resume());
        let mut outcome = moved.map_err(interrupted)?;
        match outcome.rolled_back.take() {
            Some(error) => self.give_up(begun, put_back(error, &outcome.left)),
            None => Ok(outcome),
        }
    }

    fn give_up(&self, begun: &StepRecord, error: Error) -> Result<WorkResult> {
        self.workspace.give_up_step(begun)?;
        Err(error)
    }

    /// Stores the new state.
    fn result(&self, planned: &FilePlan) -> Result<(ObjectId, Totals)> {
        if planned.actions.by_path.is_empty() {
            return Ok((planned.present.id(), planned.present.totals()));
        }
        store_edited(self.workspace, &planned.present, &planned.actions.edits())
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
        let totals = present.totals();
        let changed = last.snapshot().and_then(|last| last.diff(present));
        Ok(Some(CheckpointRecord {
            at: self.workspace.store().now(),
            id: self.new_id()?,
            reason: CheckpointReason::BeforeRewind,
            session: None,
            of: None,
            label: None,
            about: None,
            prompt: None,
            snapshot: present.id(),
            files: totals.files,
            bytes: totals.bytes,
            // A damaged snapshot must not stop those that come after it.
            changed: changed.map_or(0, |diff| diff.changes().len() as u64),
            skipped: state.skipped.clone(),
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
            session: chat.session.clone(),
            from: stands.into(),
            to: chat.to,
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

    fn move_chat(&self, begun: &StepRecord) -> Result<Option<SessionPlace>> {
        let (Some(writer), Some(chat)) = (&self.writer, &begun.chat) else {
            return Ok(None);
        };
        writer.go_to(trail_reason(&begun.reason), (chat.to.trail, chat.to.seq))?;
        Ok(Some(chat.place()))
    }

    fn new_id(&self) -> Result<CheckpointId> {
        let id = new_uuid(self.workspace.store().random());
        id.map(CheckpointId::from_uuid)
            .map_err(|error| Error::machine("cannot make an id", error))
    }
}

/// Adds that the next command finishes the step.
fn interrupted(error: Error) -> Error {
    error.with_note("it is half done; the next command here finishes it")
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
    begun: &StepRecord,
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
    if begun.makes_root {
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

/// Stores a snapshot with some paths changed.
fn store_edited(
    workspace: &Workspace,
    snapshot: &Snapshot,
    edits: &BTreeMap<PathBuf, Edit>,
) -> Result<(ObjectId, Totals)> {
    let writer = workspace.objects().writer()?;
    let (id, root) = edit(snapshot, edits, &mut |bytes| writer.put(bytes))?;
    writer.finish()?;
    Ok((id, root.totals))
}

/// Records paths that were left alone as they were before: what they are now is a change
/// that no checkpoint has.
pub(super) fn left_alone(
    workspace: &Workspace,
    ending: Ending,
    left: &[NotRestored],
    before: &Snapshot,
) -> Result<Ending> {
    if left.is_empty() {
        return Ok(ending);
    }
    let after = workspace.open_snapshot(&ending.snapshot)?;
    let mut edits = BTreeMap::new();
    for left in left {
        // A path that is left alone keeps the directories that it is in.
        for dir in left.path.ancestors().skip(1) {
            let is_dir = |node: &Option<Node>| matches!(node, Some(Node::Dir(_)));
            if let Some(Node::Dir(was)) = before.walk_down(dir)?
                && !is_dir(&after.walk_down(dir)?)
            {
                edits.entry(dir.to_owned()).or_insert(Edit::Dir(was.mode));
            }
        }
        let edit = match before.walk_down(&left.path)? {
            Some(Node::Dir(was)) => Edit::Dir(was.mode),
            Some(node) => Edit::Put(node),
            None => Edit::Remove,
        };
        edits.insert(left.path.clone(), edit);
    }
    let (snapshot, totals) = store_edited(workspace, &after, &edits)?;
    Ok(Ending {
        snapshot,
        totals,
        ..ending
    })
}

impl ChatMoveRecord {
    /// Returns where the conversation is after the move.
    pub(super) fn place(&self) -> SessionPlace {
        SessionPlace {
            id: self.session.clone(),
            trail: self.trail,
            seq: self.to.seq,
        }
    }
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
    let what = "the conversation continued since this was planned; nothing was touched, plan again";
    Err(Error::new(ErrorKind::Conflict, what))
}
