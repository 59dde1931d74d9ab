//! What a workspace and a session offer.

use super::options::Rewind;
use super::plan::{Attempt, Recovered, RewindPlan};
use crate::error::Result;
use crate::ids::SessionId;
use crate::session::{Session, Steps};
use crate::workspace::{Point, Workspace};

impl Workspace {
    /// Plans to take files and conversation back to a point. Nothing is touched.
    pub fn rewind_plan(&self, _point: &Point, _options: Rewind) -> Result<RewindPlan> {
        unimplemented!()
    }

    /// Takes files and conversation back to a point, if nobody else changed what is
    /// taken back, or the options say what becomes of that.
    pub fn rewind(&self, _point: &Point, _options: Rewind) -> Result<Attempt> {
        unimplemented!()
    }

    /// Plans to take back the newest step: of one session, or of all that work here.
    /// `None` where there is none.
    pub fn undo_plan(
        &self,
        _session: Option<&SessionId>,
        _options: Rewind,
    ) -> Result<Option<RewindPlan>> {
        unimplemented!()
    }

    /// Takes back the newest step: of one session, or of all that work here. `None`
    /// where there is none.
    pub fn undo(&self, _session: Option<&SessionId>, _options: Rewind) -> Result<Option<Attempt>> {
        unimplemented!()
    }

    /// Plans to bring forward again what was undone last; see [`undo_plan`](Self::undo_plan).
    pub fn redo_plan(
        &self,
        _session: Option<&SessionId>,
        _options: Rewind,
    ) -> Result<Option<RewindPlan>> {
        unimplemented!()
    }

    /// Brings forward again what was undone last; see [`undo`](Self::undo).
    pub fn redo(&self, _session: Option<&SessionId>, _options: Rewind) -> Result<Option<Attempt>> {
        unimplemented!()
    }

    /// Returns what undo and redo would take: of one session, or of all that work
    /// here.
    pub fn steps(&self, _session: Option<&SessionId>) -> Result<Steps> {
        unimplemented!()
    }

    /// Finishes a rewind, restore, undo or redo that a crash interrupted. `None`
    /// where there is none, or where it is still under way.
    ///
    /// Whatever keeps or moves files here does so by itself; this is for who only
    /// reads.
    pub fn recover(&self) -> Result<Option<Recovered>> {
        unimplemented!()
    }
}

impl Session {
    /// Plans to take the files of its workspace and its conversation back to a point;
    /// see [`Workspace::rewind_plan`].
    pub fn rewind_plan(&self, _point: &Point, _options: Rewind) -> Result<RewindPlan> {
        unimplemented!()
    }
}
