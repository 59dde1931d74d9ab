//! The one step: files and conversation go where they shall, or nowhere.
//!
//! Under the workspace's lock and the session's: what is there now is stored, and
//! so is what shall be; the trail says that the step begins; every new file is
//! written aside; every path is looked at once more, and everything is given up if
//! one moved; only then the files change, then the conversation, and the trail says
//! that it is done.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::actions::PathActions;
use super::apply::{FileWork, WorkResult};
use super::outcome::{ChatMove, NotRestored, PlannedChange, PlannedKind, RewindReport};
use super::path_change::{PathChange, PathEntry};
use super::plan::{FilePlan, PlannedWork};
use super::target::{RewindTarget, because};
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
use crate::workspace::create::CapturedState;
use crate::workspace::journal::{ChatMoveRecord, Ending, MergeRecord, StepRecord};
use crate::workspace::{Activity, Checkpoint, CheckpointReason, SessionPlace, Workspace};

/// A step that is about to be done. Its caller holds the workspace's lock.
pub(super) struct Execution<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) target: &'a RewindTarget,
    pub(super) planned: PlannedWork,
    /// Who speaks in the session whose conversation moves.
    pub(super) writer: Option<Session>,
    pub(super) active: Vec<Activity>,
    pub(super) progress: Option<Arc<dyn Progress>>,
}

/// What the files come to.
struct MovedFiles {
    from: CheckpointId,
    now: CheckpointId,
    left: Vec<NotRestored>,
}

impl Execution<'_> {
    /// Does it. `state` and `last` are what is there now and what was kept last,
    /// where files may move.
    pub(super) fn run(self, files: Option<(&CapturedState, &Checkpoint)>) -> Result<RewindReport> {
        let moved = match (files, &self.planned.files) {
            (Some((state, last)), Some(planned)) => {
                let writer = self.writer.clone();
                let work = || self.move_files(planned, state, last);
                Some(match writer {
                    Some(writer) => writer.alone(work)?,
                    None => work()?,
                })
            }
            _ => {
                self.move_chat_alone()?;
                None
            }
        };
        Ok(self.report(moved))
    }

    fn move_chat_alone(&self) -> Result<()> {
        let (Some(writer), Some(chat)) = (&self.writer, &self.target.chat) else {
            return Ok(());
        };
        if self.planned.chat.is_none() {
            return Ok(());
        }
        let because = because(&self.target.verb.reason());
        writer.alone(|| writer.go_to(because, (chat.to.trail, chat.to.seq)))
    }

    fn move_files(
        &self,
        planned: &FilePlan,
        state: &CapturedState,
        last: &Checkpoint,
    ) -> Result<MovedFiles> {
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
        // The files are where they shall be; the rest follows.
        ended.map_err(interrupted)?;
        Ok(MovedFiles {
            from: begun.from,
            now: begun.id,
            left,
        })
    }

    /// Stages, checks and performs. After an error everything is as it was, or the
    /// next who comes finishes it; the error says which.
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
        // What could not be tidied up is carried on as after a crash.
        let performed = staged.perform().or_else(|_| work.resume());
        let mut outcome = performed.map_err(interrupted)?;
        match outcome.rolled_back.take() {
            Some(error) => self.give_up(begun, put_back(error, &outcome.left)),
            None => Ok(outcome),
        }
    }

    fn give_up(&self, begun: &StepRecord, error: Error) -> Result<WorkResult> {
        self.workspace.give_up_step(begun)?;
        Err(error)
    }

    /// Stores the state that shall be.
    fn result(&self, planned: &FilePlan) -> Result<(ObjectId, Totals)> {
        if planned.actions.by_path.is_empty() {
            return Ok((planned.present.id(), planned.present.totals()));
        }
        store_edited(self.workspace, &planned.present, &planned.actions.edits())
    }

    /// Makes the checkpoint of what is there now, unless the last one has the same.
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

    /// Says what is taken back, where something is merged.
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
        writer.go_to(because(&begun.reason), (chat.to.trail, chat.to.seq))?;
        Ok(Some(chat.place()))
    }

    fn new_id(&self) -> Result<CheckpointId> {
        let id = new_uuid(self.workspace.store().random());
        id.map(CheckpointId::from_uuid)
            .map_err(|error| Error::machine("cannot make an id", error))
    }

    fn report(self, moved: Option<MovedFiles>) -> RewindReport {
        let PlannedWork { files, chat } = self.planned;
        let (from, now, left) = match moved {
            Some(moved) => (Some(moved.from), Some(moved.now), moved.left),
            None => (None, None, Vec::new()),
        };
        let mut report = RewindReport {
            verb: self.target.verb,
            step: self.target.step.clone(),
            session: self.target.session.clone(),
            from,
            to: self.target.to.clone().filter(|_| files.is_some()),
            now,
            restored: Vec::new(),
            merged: Vec::new(),
            deleted: Vec::new(),
            kept: Vec::new(),
            not_restored: Vec::new(),
            conflicts: Vec::new(),
            unchanged: 0,
            tool_calls: self.target.tool_calls.clone(),
            other_sessions: Vec::new(),
            chat,
            belongs_to: self.target.belongs_to.clone(),
            active: self.active,
        };
        if let Some(planned) = files {
            report.take_files(planned, left);
        }
        report
    }
}

impl RewindReport {
    fn take_files(&mut self, planned: FilePlan, left: Vec<NotRestored>) {
        let is_left = |path: &PathBuf| left.iter().any(|left| left.path == *path);
        (self.restored, self.deleted, self.merged) = split(&planned.actions);
        self.merged.retain(|change| !is_left(&change.path));
        self.restored.retain(|path| !is_left(path));
        self.deleted.retain(|path| !is_left(path));
        self.kept = planned.actions.kept;
        self.not_restored = planned.actions.not_restored;
        self.not_restored.extend(left);
        self.conflicts = planned.conflicts;
        self.unchanged = planned.unchanged;
        self.other_sessions = planned.others;
    }
}

/// Returns what is restored, what is deleted, and what is merged.
fn split(actions: &PathActions) -> (Vec<PathBuf>, Vec<PathBuf>, Vec<PlannedChange>) {
    let (mut restored, mut deleted, mut merged) = (Vec::new(), Vec::new(), Vec::new());
    for change in actions.changes() {
        match change.kind {
            PlannedKind::Delete => deleted.push(change.path),
            PlannedKind::Merge { .. } => merged.push(change),
            _ => restored.push(change.path),
        }
    }
    (restored, deleted, merged)
}

/// Says that the next who comes goes on.
fn interrupted(error: Error) -> Error {
    error.with_note("this is half done; the next command here finishes it")
}

/// Says that everything is as it was, save what could not be put back.
fn put_back(error: Error, left: &[NotRestored]) -> Error {
    match left {
        [] => error.with_note("everything was put back as it was"),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let path = shown(&first.path);
            error.with_note(format!("everything was put back, but for {path}{more}"))
        }
    }
}

/// The bits that a directory needs to be written in.
const WRITABLE: u32 = 0o300;

/// Returns what is to be done to go from one snapshot to another, in the order of
/// the paths' bytes.
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
        // It is made writable for the time being: whoever carries this on must know.
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

/// Says of paths that were left alone what was there before: what they are now is
/// somebody's change that no checkpoint has.
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
        // What is left alone keeps the directories that it is in.
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
    /// Returns where the conversation stands when it has moved.
    pub(super) fn place(&self) -> SessionPlace {
        SessionPlace {
            id: self.session.clone(),
            trail: self.trail,
            seq: self.to.seq,
        }
    }
}

/// Refuses to go on from a conversation that moved since it was looked at. `speaker`
/// is who would move it now, and `chat` how it was to move then.
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
    let what = "the conversation went on since this was planned; nothing was touched, plan again";
    Err(Error::new(ErrorKind::Conflict, what))
}
