//! What a workspace and a session offer.

use std::sync::Arc;

use super::execution::{Execution, must_stand};
use super::options::{OnConflict, Rewind};
use super::outcome::{Attempt, ChatMove, Conflict, RewindPlan, RewindReport};
use super::plan::{PlannedWork, PresentState};
use super::steps::StepFinder;
use super::target::RewindTarget;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::objects::ObjectId;
use crate::session::{Move, Session, Steps};
use crate::snapshot::Progress;
use crate::workspace::create::CapturedState;
use crate::workspace::{Checkpoint, Point, Workspace};

impl Workspace {
    /// Plans to take files and conversation back to a point. Nothing is touched.
    pub fn rewind_plan(&self, point: &Point, options: Rewind) -> Result<RewindPlan> {
        self.recover()?;
        let target = RewindTarget::at_point(self, point, &options)?;
        self.plan(target, options, None)
    }

    /// Takes files and conversation back to a point, if nobody else changed what is
    /// taken back, or the options say what becomes of that.
    pub fn rewind(&self, point: &Point, options: Rewind) -> Result<Attempt> {
        let attempt = self.attempt(options, None, None, |options| {
            RewindTarget::at_point(self, point, options).map(Some)
        })?;
        Ok(attempt.expect("a point is always something to go to"))
    }

    /// Plans to take back the newest step: of one session, or of all that work here.
    /// `None` where there is none.
    pub fn undo_plan(
        &self,
        session: Option<&SessionId>,
        options: Rewind,
    ) -> Result<Option<RewindPlan>> {
        self.recover()?;
        let target = StepFinder::new(self, session)?.to_undo(&options)?;
        target
            .map(|target| self.plan(target, options, None))
            .transpose()
    }

    /// Takes back the newest step: of one session, or of all that work here. `None`
    /// where there is none.
    pub fn undo(&self, session: Option<&SessionId>, options: Rewind) -> Result<Option<Attempt>> {
        self.attempt(options, None, None, |options| {
            StepFinder::new(self, session)?.to_undo(options)
        })
    }

    /// Plans to bring forward again what was undone last; see
    /// [`undo_plan`](Self::undo_plan).
    pub fn redo_plan(
        &self,
        session: Option<&SessionId>,
        options: Rewind,
    ) -> Result<Option<RewindPlan>> {
        self.recover()?;
        let target = StepFinder::new(self, session)?.to_redo(&options)?;
        target
            .map(|target| self.plan(target, options, None))
            .transpose()
    }

    /// Brings forward again what was undone last; see [`undo`](Self::undo).
    pub fn redo(&self, session: Option<&SessionId>, options: Rewind) -> Result<Option<Attempt>> {
        self.attempt(options, None, None, |options| {
            StepFinder::new(self, session)?.to_redo(options)
        })
    }

    /// Returns what undo and redo would take: of one session, or of all that work
    /// here.
    pub fn steps(&self, session: Option<&SessionId>) -> Result<Steps> {
        StepFinder::new(self, session)?.list()
    }

    /// Takes back the newest step of a session whose speaker asks for it.
    pub(crate) fn undo_through(&self, writer: &Session) -> Result<Option<Move>> {
        let options = Rewind::files_and_chat();
        let attempt = self.attempt(options, None, Some(writer.clone()), |options| {
            StepFinder::new(self, Some(writer.id()))?.to_undo(options)
        })?;
        attempt.map(|attempt| moved(attempt, writer)).transpose()
    }

    /// Brings forward again what a session's speaker undid last.
    pub(crate) fn redo_through(&self, writer: &Session) -> Result<Option<Move>> {
        let options = Rewind::files_and_chat();
        let attempt = self.attempt(options, None, Some(writer.clone()), |options| {
            StepFinder::new(self, Some(writer.id()))?.to_redo(options)
        })?;
        attempt.map(|attempt| moved(attempt, writer)).transpose()
    }

    /// Looks at what is there, and works out what would be done.
    pub(super) fn plan(
        &self,
        target: RewindTarget,
        options: Rewind,
        writer: Option<Session>,
    ) -> Result<RewindPlan> {
        let present = match &target.files {
            Some(_) => {
                let last = self.require_last()?.snapshot()?;
                Some(self.scan_present(&last, options.progress.clone())?.0)
            }
            None => None,
        };
        let found = present.as_ref().map(PresentState::Looked);
        let planned = PlannedWork::new(self, &target, &options, found)?;
        let present = present.map(|present| present.id());
        self.make_plan(target, options, planned, present, writer)
    }

    /// Makes a plan of what was worked out.
    fn make_plan(
        &self,
        target: RewindTarget,
        options: Rewind,
        planned: PlannedWork,
        present: Option<ObjectId>,
        writer: Option<Session>,
    ) -> Result<RewindPlan> {
        let files = planned.files.as_ref();
        let skipped = target.to.as_ref().map(|to| to.skipped().clone());
        Ok(RewindPlan {
            changes: files.map_or_else(Vec::new, |files| files.actions.changes()),
            planned,
            skipped: skipped.unwrap_or_default(),
            active: self.active()?,
            present,
            workspace: self.clone(),
            target,
            options,
            writer,
        })
    }

    /// Does what `find` finds, in one go and under one lock. `planned` is what a plan
    /// was made for.
    pub(super) fn attempt(
        &self,
        options: Rewind,
        expected: Option<Expected>,
        writer: Option<Session>,
        find: impl FnOnce(&Rewind) -> Result<Option<RewindTarget>>,
    ) -> Result<Option<Attempt>> {
        let lock = self.snapshot_lock()?;
        let _turn = lock.wait(options.progress.as_deref())?;
        self.recover_locked(writer.as_ref())?;
        // Only tidiness: what cannot be cleared away now is cleared away later.
        self.clear_strays().ok();
        match find(&options)? {
            Some(target) => self.go(target, options, expected, writer).map(Some),
            None => Ok(None),
        }
    }

    /// Goes where a goal is, unless something stands in the way. The caller holds the
    /// snapshot lock.
    fn go(
        &self,
        target: RewindTarget,
        options: Rewind,
        expected: Option<Expected>,
        writer: Option<Session>,
    ) -> Result<Attempt> {
        if options.pick.as_ref().is_some_and(|pick| !pick.is_made()) {
            return Err(Error::invalid("nothing was chosen"));
        }
        let writer = self.writer_for(&target, writer)?;
        if let Some(expected) = &expected {
            must_stand(writer.as_ref(), expected.chat.as_ref())?;
        }
        let expected = expected.and_then(|expected| expected.files);
        let stored = match &target.files {
            Some(_) => Some(self.stored_present(&options.progress, expected)?),
            None => None,
        };
        // The same few states are compared again and again.
        let remembering = self.remembering();
        let snapshot = match &stored {
            Some((state, _)) => Some(remembering.open_snapshot(&state.id)?),
            None => None,
        };
        let found = snapshot.as_ref().map(PresentState::CheckpointRecord);
        let planned = PlannedWork::new(&remembering, &target, &options, found)?;
        if planned.is_stopped(options.on_conflict) {
            let present = snapshot.map(|snapshot| snapshot.id());
            let plan = self.make_plan(target, options, planned, present, writer)?;
            return Ok(Attempt::InConflict(Box::new(plan)));
        }
        // A step that changes nothing any more is still taken back.
        let nothing = planned.is_empty() && target.step_id.is_none();
        let execution = Execution {
            workspace: &remembering,
            target: &target,
            planned,
            writer,
            active: self.active()?,
            progress: options.progress.clone(),
        };
        let files = stored.as_ref().map(|(state, last)| (state, last));
        let report = execution.run(files.filter(|_| !nothing))?;
        Ok(Attempt::Done(Box::new(report)))
    }

    /// Stores what is there now, and refuses if it is not what a plan was made for.
    fn stored_present(
        &self,
        progress: &Option<Arc<dyn Progress>>,
        expected: Option<ObjectId>,
    ) -> Result<(CapturedState, Checkpoint)> {
        let last = self.require_last()?;
        let state = self.store_present(&last, progress.clone())?;
        if expected.is_some_and(|expected| expected != state.id) {
            let what = "the files changed since this was planned; nothing was touched, plan again";
            return Err(Error::new(ErrorKind::Conflict, what).at_path(self.root()));
        }
        Ok((state, last))
    }

    fn require_last(&self) -> Result<Checkpoint> {
        self.last_checkpoint()?.ok_or_else(|| self.no_checkpoint())
    }

    /// Returns who speaks in the session whose conversation moves.
    fn writer_for(
        &self,
        target: &RewindTarget,
        writer: Option<Session>,
    ) -> Result<Option<Session>> {
        if target.chat_move(self.store())?.is_none() {
            return Ok(None);
        }
        let Some(chat) = &target.chat else {
            return Ok(None);
        };
        match writer.filter(|writer| *writer.id() == chat.session) {
            Some(writer) => Ok(Some(writer)),
            None => Session::open(self.store(), &chat.session, None).map(Some),
        }
    }
}

/// Says how a session's conversation moved.
fn moved(attempt: Attempt, writer: &Session) -> Result<Move> {
    let report = match attempt {
        Attempt::Done(report) => report,
        Attempt::InConflict(plan) => return Err(in_conflict(&plan)),
    };
    let stands = writer.stands_at()?;
    let step = report
        .step
        .ok_or_else(|| Error::invalid("there was no step"))?;
    Ok(Move {
        from: report.chat.map_or(stands.seq, |chat| chat.from),
        to: stands.seq,
        trail: stands.trail,
        step,
    })
}

/// What a plan was made for.
pub(super) struct Expected {
    /// The state of the files.
    files: Option<ObjectId>,
    /// How the conversation was to move.
    chat: Option<ChatMove>,
}

/// Does what was planned, if everything is as it was then.
pub(super) fn apply(plan: RewindPlan) -> Result<RewindReport> {
    let RewindPlan {
        workspace,
        target,
        options,
        planned,
        present,
        writer,
        ..
    } = plan;
    let expected = Expected {
        files: present,
        chat: planned.chat,
    };
    let attempt = workspace.attempt(options, Some(expected), writer, |_| Ok(Some(target)))?;
    match attempt.expect("the plan says what to do") {
        Attempt::Done(report) => Ok(*report),
        Attempt::InConflict(plan) => Err(in_conflict(&plan)),
    }
}

/// Says that somebody else changed what would be taken back.
pub(super) fn in_conflict(plan: &RewindPlan) -> Error {
    let merges = plan.options.on_conflict == OnConflict::Merge;
    let stops = |conflict: &&Conflict| !merges || conflict.is_unmerged();
    let paths: Vec<&Conflict> = plan.conflicts().iter().filter(stops).collect();
    let (is, it) = match paths.len() {
        1 => ("1 path was".to_owned(), "it"),
        n => (format!("{n} paths were"), "them"),
    };
    let first = paths.first().map(|conflict| conflict.path.clone());
    let first = first.unwrap_or_default();
    let which = crate::snapshot::shown(&first);
    let what = match merges {
        false => "changed by someone else",
        true => "changed by someone else in the same places",
    };
    let what = format!("{is} {what} ({which}); nothing was touched: keep {it}, or overwrite {it}");
    Error::new(ErrorKind::Conflict, what).at_path(&first)
}

impl Session {
    /// Plans to take the files of its workspace and its conversation back to a point;
    /// see [`Workspace::rewind_plan`].
    pub fn rewind_plan(&self, point: &Point, options: Rewind) -> Result<RewindPlan> {
        let workspace = self.own_workspace()?;
        workspace.recover_with(Some(self))?;
        let target = RewindTarget::at_point(&workspace, point, &options)?;
        workspace.plan(target, options, Some(self.clone()))
    }
}
