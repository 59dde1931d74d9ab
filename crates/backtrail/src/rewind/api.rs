//! What [`Workspace`], [`Session`] and [`SessionReader`] offer for going back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::apply::MadeReadable;
use super::execution::{Execution, must_stand};
use super::options::Rewind;
use super::outcome::{Outcome, Stage};
use super::plan::{PlannedWork, PresentState, RewindPlan, is_closed};
use super::step_finder::{StepFinder, chat_step};
use super::target::{FileTarget, Request, RewindTarget, trail_reason};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::session::{Session, SessionReader, Step, Steps};
use crate::snapshot::entry::Node;
use crate::store::Store;
use crate::workspace::new_checkpoint::CapturedState;
use crate::workspace::{Checkpoint, Look, Point, Workspace};

const ALWAYS: &str = "a point is always something to go to";

impl Workspace {
    /// Plans to move files and conversation back to a point. Nothing is touched.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) and [`Ambiguous`](ErrorKind::Ambiguous) if the
    /// point or a path does not exist or is not unique, [`Dropped`](ErrorKind::Dropped) if
    /// its files were dropped, and what reading the files and the store can fail with.
    pub fn rewind_plan(&self, point: &Point, options: Rewind) -> Result<RewindPlan> {
        let plan = self.plan_for(Request::Point(point), options, None)?;
        Ok(plan.expect(ALWAYS))
    }

    /// Moves files and conversation back to a point.
    ///
    /// Paths that others changed stop it unless the options say otherwise: the
    /// outcome's stage is [`Stopped`](Stage::Stopped), and nothing is touched.
    ///
    /// # Errors
    ///
    /// As [`rewind_plan`](Self::rewind_plan) and [`RewindPlan::apply`].
    pub fn rewind(&self, point: &Point, options: Rewind) -> Result<Outcome> {
        let outcome = self.attempt(Request::Point(point), options, None)?;
        Ok(outcome.expect(ALWAYS))
    }

    /// Plans to undo the last step: of one session if the options
    /// [name it](Rewind::session), else of all sessions that work here. `None` if there
    /// is nothing to undo.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) if no step changed the paths that are named,
    /// [`Dropped`](ErrorKind::Dropped) if the files of the step were dropped, and what
    /// reading the files and the store can fail with.
    pub fn undo_plan(&self, options: Rewind) -> Result<Option<RewindPlan>> {
        self.plan_for(Request::Undo, options, None)
    }

    /// Returns the step that undo would take, without looking at the files; `None` if there
    /// is nothing to undo.
    ///
    /// # Errors
    ///
    /// What reading the trails of the workspace and its sessions can fail with.
    pub fn next_undo(&self, options: &Rewind) -> Result<Option<Step>> {
        let target = StepFinder::new(self, options)?.to_undo(options)?;
        Ok(target.and_then(|target| target.outcome.step))
    }

    /// Undoes the last step; see [`undo_plan`](Self::undo_plan). Conflicts stop it as
    /// they stop [`rewind`](Self::rewind).
    ///
    /// # Errors
    ///
    /// As [`undo_plan`](Self::undo_plan) and [`RewindPlan::apply`].
    pub fn undo(&self, options: Rewind) -> Result<Option<Outcome>> {
        self.attempt(Request::Undo, options, None)
    }

    /// Plans to redo the step that was undone last; see [`undo_plan`](Self::undo_plan).
    ///
    /// # Errors
    ///
    /// As [`undo_plan`](Self::undo_plan); [`Invalid`](ErrorKind::Invalid) if paths are
    /// named: a step is redone as a whole.
    pub fn redo_plan(&self, options: Rewind) -> Result<Option<RewindPlan>> {
        self.plan_for(Request::Redo, options, None)
    }

    /// Redoes the step that was undone last. Conflicts stop it as they stop
    /// [`rewind`](Self::rewind).
    ///
    /// # Errors
    ///
    /// As [`redo_plan`](Self::redo_plan) and [`RewindPlan::apply`].
    pub fn redo(&self, options: Rewind) -> Result<Option<Outcome>> {
        self.attempt(Request::Redo, options, None)
    }

    /// Returns the steps of all sessions that work here, as undo and redo take them.
    ///
    /// # Errors
    ///
    /// What reading the trails of the workspace and its sessions can fail with.
    pub fn steps(&self) -> Result<Steps> {
        StepFinder::new(self, &Rewind::files_and_chat())?.list()
    }

    /// Returns the steps of one session, as undo and redo take them.
    ///
    /// # Errors
    ///
    /// As [`steps`](Self::steps).
    pub fn steps_of(&self, session: &SessionId) -> Result<Steps> {
        StepFinder::new(self, &Rewind::files_and_chat().session(session))?.list()
    }

    /// Plans what is asked for; `None` if there is nothing to undo or redo.
    fn plan_for(
        &self,
        request: Request<'_>,
        options: Rewind,
        writer: Option<&Session>,
    ) -> Result<Option<RewindPlan>> {
        self.recover_with(writer)?;
        let target = self.find_target(request, &options, writer)?;
        target
            .map(|target| self.plan(target, options, writer.cloned()))
            .transpose()
    }

    /// Finds what is asked for; `None` if there is nothing to undo or redo.
    fn find_target(
        &self,
        request: Request<'_>,
        options: &Rewind,
        writer: Option<&Session>,
    ) -> Result<Option<RewindTarget>> {
        let mut target = RewindTarget::find(self, request, options)?;
        if let Some(target) = &mut target {
            target.leave_chat_in_use(self.store(), writer.map(Session::id))?;
        }
        Ok(target)
    }

    /// Does what is asked for, in one go; `None` if there is nothing to undo or redo.
    fn attempt(
        &self,
        request: Request<'_>,
        options: Rewind,
        writer: Option<&Session>,
    ) -> Result<Option<Outcome>> {
        self.locked(&options, writer, || {
            let target = self.find_target(request, &options, writer)?;
            target
                .map(|target| self.go(&target, &options, None, writer))
                .transpose()
        })
    }

    /// Does something under the snapshot lock, once no step is unfinished.
    fn locked<T>(
        &self,
        options: &Rewind,
        writer: Option<&Session>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let _held = self.hold_snapshots(options.progress.as_deref())?;
        self.recover_locked(writer)?;
        // Only tidiness: what cannot be cleared away now is cleared away later.
        self.clear_strays().ok();
        work()
    }

    /// Looks at the files, and works out what would be done.
    pub(super) fn plan(
        &self,
        target: RewindTarget,
        options: Rewind,
        writer: Option<Session>,
    ) -> Result<RewindPlan> {
        let (present, planned) = looking_twice(&options, |look| {
            let present = match &target.files {
                Some(_) => {
                    let mode = self.require_last()?.root_mode()?;
                    let progress = options.progress.clone();
                    Some(self.scan_present(mode, look, progress)?.0)
                }
                None => None,
            };
            let found = present.as_ref().map(PresentState::Looked);
            let planned = PlannedWork::new(self, &target, &options, found)?;
            Ok((present, planned))
        })?;
        let outcome = Outcome::planned(&target, &planned, options.on_conflict, self.active()?);
        Ok(RewindPlan {
            store: self.store().clone(),
            workspace: Some(self.clone()),
            target,
            options,
            planned,
            outcome,
            present: present.map(|present| present.id()),
            writer,
        })
    }

    /// Goes to a target unless conflicts stop it, or something changed since it was planned.
    /// The caller holds the snapshot lock.
    fn go(
        &self,
        target: &RewindTarget,
        options: &Rewind,
        plan: Option<&RewindPlan>,
        writer: Option<&Session>,
    ) -> Result<Outcome> {
        if options.pick.as_ref().is_some_and(|pick| !pick.is_made()) {
            return Err(Error::invalid("nothing was chosen"));
        }
        let moved = self.writer_for(target, writer)?;
        if let Some(writer) = moved.as_ref().or(writer) {
            // Nothing is touched if another machine continued the session.
            writer.renew_lease()?;
        }
        let writer = moved;
        if let Some(plan) = plan {
            must_stand(writer.as_ref(), plan.outcome.chat.as_ref())?;
        }
        // The same few states are compared again and again.
        let remembering = self.remembering();
        let ((stored, mut readable), planned) = looking_twice(options, |look| {
            let stored = match &target.files {
                Some(_) => {
                    let last = self.require_last()?;
                    let state = self.store_present(&last, look, options.progress.clone())?;
                    if plan.is_some_and(|plan| plan.present != Some(state.id)) {
                        return Err(files_changed(self));
                    }
                    Some((state, last))
                }
                None => None,
            };
            let (stored, readable) = match (stored, &target.files) {
                (Some((state, last)), Some(files)) => {
                    let (state, readable) =
                        self.open_closed(files, (state, &last), look, options)?;
                    (Some((state, last)), readable)
                }
                (stored, _) => (stored, None),
            };
            let opened = readable.iter().flat_map(MadeReadable::paths);
            let opened: BTreeSet<PathBuf> = opened.map(Path::to_owned).collect();
            let snapshot = match &stored {
                Some((state, _)) => Some(remembering.open_snapshot(&state.id)?),
                None => None,
            };
            let found = snapshot.as_ref();
            let found = found.map(|snapshot| PresentState::Stored(snapshot, &opened));
            let planned = PlannedWork::new(&remembering, target, options, found)?;
            Ok(((stored, readable), planned))
        })?;
        let mut outcome = Outcome::planned(target, &planned, options.on_conflict, self.active()?);
        if outcome.is_stopped() {
            outcome.stage = Stage::Stopped;
            return Ok(outcome);
        }
        // A step that changes nothing any more is still undone.
        let nothing = planned.is_empty() && target.step_id.is_none();
        let changes = planned.files.as_ref();
        let changes = changes.map_or_else(BTreeSet::new, |files| {
            files.actions.by_path.keys().cloned().collect()
        });
        let execution = Execution {
            workspace: &remembering,
            target,
            planned,
            writer,
            progress: options.progress.clone(),
        };
        let files = stored.as_ref().map(|(state, last)| (state, last));
        let outcome = execution.run(files.filter(|_| !nothing), outcome)?;
        if let Some(readable) = &mut readable {
            let is_left = |path: &Path| outcome.not_restored.iter().any(|it| it.path == path);
            readable.settle(|path| changes.contains(path) && !is_left(path));
        }
        Ok(outcome)
    }

    /// Makes readable what the target has and its owner closed since, and stores the present
    /// state again. What is not in the plan gets its mode back.
    fn open_closed(
        &self,
        files: &FileTarget,
        (mut state, last): (CapturedState, &Checkpoint),
        look: Look,
        options: &Rewind,
    ) -> Result<(CapturedState, Option<MadeReadable<'_>>)> {
        let mut readable: Option<MadeReadable<'_>> = None;
        // A target that cannot be read is reported with more than its name, when it is planned.
        let target = match self.open_snapshot(&files.state) {
            Ok(target) if state.has_unreadable() => target,
            _ => return Ok((state, None)),
        };
        let only: Vec<&Path> = files.paths.iter().map(PathBuf::as_path).collect();
        let only = (!only.is_empty()).then_some(&only[..]);
        loop {
            let present = self.open_snapshot(&state.id)?;
            // What is damaged stays as it is, readable or not.
            let (mut differences, _) = present.readable_differences(&target, only)?;
            differences.retain(is_closed);
            if differences.is_empty() {
                return Ok((state, readable));
            }
            let readable = match &mut readable {
                Some(readable) => readable,
                none => none.insert(MadeReadable::new(self.root(), self.store().touch_hook())?),
            };
            let mut any = false;
            for closed in &differences {
                let then = closed.after.as_ref().and_then(mode_of);
                any |= readable.make(&closed.path, then);
            }
            if !any {
                break;
            }
            state = self.store_present(last, look, options.progress.clone())?;
        }
        Ok((state, readable))
    }

    fn require_last(&self) -> Result<Checkpoint> {
        self.last_checkpoint()?.ok_or_else(|| self.no_checkpoint())
    }

    /// Returns the writer of the session whose conversation moves.
    fn writer_for(
        &self,
        target: &RewindTarget,
        writer: Option<&Session>,
    ) -> Result<Option<Session>> {
        if target.chat_move(self.store())?.is_none() {
            return Ok(None);
        }
        let Some(chat) = &target.chat else {
            return Ok(None);
        };
        match writer.filter(|writer| *writer.id() == chat.id) {
            Some(writer) => Ok(Some(writer.clone())),
            None => Session::open(self.store(), &chat.id, None).map(Some),
        }
    }
}

fn mode_of(node: &Node) -> Option<u32> {
    match node {
        Node::File { mode, .. } => Some(*mode),
        Node::Dir(dir) => Some(dir.mode),
        Node::Link { .. } | Node::Skipped(_) => None,
    }
}

/// Plans with a quick look at the files. If something is damaged, looks again, and thoroughly:
/// what the files still have is stored again, and nothing of it is lost. Then damage stops
/// it, unless what is damaged is to be skipped.
fn looking_twice<T>(
    options: &Rewind,
    plan: impl Fn(Look) -> Result<(T, PlannedWork)>,
) -> Result<(T, PlannedWork)> {
    match plan(Look::Quick) {
        Ok((found, planned)) if !planned.is_damaged() => return Ok((found, planned)),
        Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
        _ => {}
    }
    let (found, planned) = plan(Look::Thorough)?;
    if !options.skip_damaged {
        planned.must_be_undamaged()?;
    }
    Ok((found, planned))
}

/// Plans again what another plan is for, whose options changed since.
pub(super) fn plan_again(plan: RewindPlan) -> Result<RewindPlan> {
    let Some(workspace) = plan.workspace else {
        return Ok(plan);
    };
    let again = workspace.plan(plan.target, plan.options, plan.writer)?;
    match again.present == plan.present {
        true => Ok(again),
        false => Err(files_changed(&workspace)),
    }
}

/// The error of a plan whose files changed since.
fn files_changed(workspace: &Workspace) -> Error {
    let what = "the files changed since the plan was made; nothing was touched";
    Error::new(ErrorKind::Conflict, what).at_path(workspace.root())
}

/// Does what was planned, if everything is still as it was then.
pub(super) fn apply(plan: RewindPlan) -> Result<Outcome> {
    let writer = plan.writer.as_ref();
    let Some(workspace) = &plan.workspace else {
        return apply_chat(&plan);
    };
    let outcome = workspace.locked(&plan.options, writer, || {
        workspace.go(&plan.target, &plan.options, Some(&plan), writer)
    })?;
    outcome.done()
}

/// Moves a conversation that has no files beside it.
fn apply_chat(plan: &RewindPlan) -> Result<Outcome> {
    let mut outcome = plan.outcome.clone();
    outcome.stage = Stage::Done;
    let (Some(to), Some(chat)) = (&plan.target.chat, &mut outcome.chat) else {
        return Ok(outcome);
    };
    let writer = match &plan.writer {
        Some(writer) => writer.clone(),
        None => Session::open(&plan.store, &to.id, None)?,
    };
    must_stand(Some(&writer), Some(chat))?;
    let reason = trail_reason(&outcome.verb.reason());
    chat.trail = writer.alone(|| writer.go_to(reason, (to.trail, to.seq)))?;
    Ok(outcome)
}

/// Plans to move a conversation that has no files beside it.
fn chat_plan(store: &Store, target: RewindTarget, writer: Option<&Session>) -> Result<RewindPlan> {
    let planned = PlannedWork {
        files: None,
        chat: target.chat_move(store)?,
    };
    let options = Rewind::chat();
    let outcome = Outcome::planned(&target, &planned, options.on_conflict, Vec::new());
    Ok(RewindPlan {
        store: store.clone(),
        workspace: None,
        target,
        options,
        planned,
        outcome,
        present: None,
        writer: writer.cloned(),
    })
}

/// Plans to undo or redo a step of a conversation that has no files beside it.
fn chat_step_plan(
    reader: &SessionReader,
    request: Request<'_>,
    writer: Option<&Session>,
) -> Result<Option<RewindPlan>> {
    let store = &reader.log.store;
    let target = chat_step(store, reader.id(), request)?;
    target
        .map(|target| chat_plan(store, target, writer))
        .transpose()
}

impl SessionReader {
    /// Plans to end the conversation at a record, the last that stays; 0 empties it.
    /// Files stay as they are.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) if the session has no such record, and
    /// [`Invalid`](ErrorKind::Invalid) if another agent keeps the session.
    pub fn rewind_chat_plan(&self, seq: u64) -> Result<RewindPlan> {
        let target = RewindTarget::at_record(&self.log.store, self.id(), seq)?;
        chat_plan(&self.log.store, target, None)
    }

    /// Plans to undo the last step of the conversation: a rewind or a compaction. Files
    /// stay as they are. `None` if there is nothing to undo.
    ///
    /// # Errors
    ///
    /// What reading the session can fail with.
    pub fn undo_chat_plan(&self) -> Result<Option<RewindPlan>> {
        chat_step_plan(self, Request::Undo, None)
    }

    /// Plans to redo the step of the conversation that was undone last. Files stay as
    /// they are. `None` if there is nothing to redo.
    ///
    /// # Errors
    ///
    /// What reading the session can fail with.
    pub fn redo_chat_plan(&self) -> Result<Option<RewindPlan>> {
        chat_step_plan(self, Request::Redo, None)
    }
}

impl Session {
    /// Plans to move the files of its workspace and its conversation back to a point;
    /// see [`Workspace::rewind_plan`].
    ///
    /// # Errors
    ///
    /// As [`Workspace::rewind_plan`]; [`Invalid`](ErrorKind::Invalid) if the session
    /// works in no workspace.
    pub fn rewind_plan(&self, point: &Point, options: Rewind) -> Result<RewindPlan> {
        let workspace = self.own_workspace()?;
        let plan = workspace.plan_for(Request::Point(point), options, Some(self))?;
        Ok(plan.expect(ALWAYS))
    }

    /// Moves the files of its workspace and its conversation back to a point.
    ///
    /// # Errors
    ///
    /// As [`rewind_plan`](Self::rewind_plan); [`Conflict`](ErrorKind::Conflict) if files
    /// have changes by others: [`rewind_with`](Self::rewind_with) takes options that say
    /// what happens to them.
    pub fn rewind(&self, point: &Point) -> Result<Outcome> {
        self.rewind_with(point, Rewind::files_and_chat())?.done()
    }

    /// Moves the files of its workspace and its conversation back to a point, as the options
    /// say. If conflicts stop it, the outcome's stage is [`Stopped`](Stage::Stopped), and
    /// nothing is touched.
    ///
    /// # Errors
    ///
    /// As [`rewind_plan`](Self::rewind_plan) and [`RewindPlan::apply`].
    pub fn rewind_with(&self, point: &Point, options: Rewind) -> Result<Outcome> {
        let workspace = self.own_workspace()?;
        let outcome = workspace.attempt(Request::Point(point), options, Some(self))?;
        Ok(outcome.expect(ALWAYS))
    }

    /// Undoes its last step as the options say; see [`undo`](Self::undo). If conflicts stop
    /// it, the outcome's stage is [`Stopped`](Stage::Stopped), and nothing is touched.
    ///
    /// # Errors
    ///
    /// As [`Workspace::undo_plan`] and [`RewindPlan::apply`].
    pub fn undo_with(&self, options: Rewind) -> Result<Option<Outcome>> {
        self.step_with(Request::Undo, options)
    }

    /// Redoes the step of it that was undone last, as the options say; see
    /// [`undo_with`](Self::undo_with).
    ///
    /// # Errors
    ///
    /// As [`Workspace::redo_plan`] and [`RewindPlan::apply`].
    pub fn redo_with(&self, options: Rewind) -> Result<Option<Outcome>> {
        self.step_with(Request::Redo, options)
    }

    fn step_with(&self, request: Request<'_>, options: Rewind) -> Result<Option<Outcome>> {
        let Some(workspace) = self.workspace()? else {
            let plan = chat_step_plan(&self.reader(), request, Some(self))?;
            return plan.map(RewindPlan::apply).transpose();
        };
        workspace.attempt(request, options.session(self.id()), Some(self))
    }

    /// Plans to undo its last step; see [`undo`](Self::undo).
    ///
    /// # Errors
    ///
    /// As [`Workspace::undo_plan`].
    pub fn undo_plan(&self, options: Rewind) -> Result<Option<RewindPlan>> {
        self.step_plan(Request::Undo, options)
    }

    /// Plans to redo the step of it that was undone last; see [`redo`](Self::redo).
    ///
    /// # Errors
    ///
    /// As [`Workspace::redo_plan`].
    pub fn redo_plan(&self, options: Rewind) -> Result<Option<RewindPlan>> {
        self.step_plan(Request::Redo, options)
    }

    fn step_plan(&self, request: Request<'_>, options: Rewind) -> Result<Option<RewindPlan>> {
        match self.workspace()? {
            Some(workspace) => workspace.plan_for(request, options.session(self.id()), Some(self)),
            None => chat_step_plan(&self.reader(), request, Some(self)),
        }
    }

    /// Undoes or redoes a step of it with its files.
    pub(super) fn step(&self, request: Request<'_>) -> Result<Option<Outcome>> {
        let outcome = self.step_with(request, Rewind::files_and_chat())?;
        outcome.map(Outcome::done).transpose()
    }
}
