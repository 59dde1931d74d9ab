//! Everything that changes files, history or sessions: planned, then done.
//!
//! A plan changes nothing and is kept under a token, as the engine made it; only exactly that can
//! be done. The engine refuses it if the files changed since.

mod gate;
mod hunks;
mod moves;
mod sessions;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use backtrail::rewind::Verb;
use backtrail_view::library::{Action, Failure, Line, OnConflict, Plan, Report, Span};

use self::gate::Gate;
use self::sessions::SessionChange;
use super::plain;
use super::{Answer, StoreLibrary, failure};
use crate::commands::fork::PlannedFork;
use crate::commands::moves::PlannedMove;
use crate::error::Result;

/// How many plans are kept.
const KEPT: usize = 4;

/// What is kept of a plan until it is done.
enum Planned {
    Move {
        planned: Box<PlannedMove>,
        /// Whether undo and redo without a name are about the same workspace.
        is_here: bool,
    },
    Fork(Box<PlannedFork>),
    Session(SessionChange),
}

/// The plans that were not done yet, and what is being done.
#[derive(Default)]
pub(super) struct Plans {
    kept: Mutex<Kept>,
    pub(super) gate: Gate,
}

#[derive(Default)]
struct Kept {
    last: u64,
    plans: VecDeque<(u64, Planned)>,
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plans").finish_non_exhaustive()
    }
}

impl Plans {
    /// Returns plans of their own, behind the same gate.
    pub(super) fn beside(&self) -> Self {
        Self {
            kept: Mutex::default(),
            gate: self.gate.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a plan, and forgets older ones. Returns its token.
    fn keep(&self, planned: Planned) -> u64 {
        let mut kept = self.lock();
        kept.last += 1;
        let token = kept.last;
        kept.plans.push_back((token, planned));
        while kept.plans.len() > KEPT {
            kept.plans.pop_front();
        }
        token
    }

    /// Keeps a plan that was not done after all.
    fn put_back(&self, token: u64, planned: Planned) {
        self.lock().plans.push_back((token, planned));
    }

    fn take(&self, token: u64) -> Option<Planned> {
        let mut kept = self.lock();
        let at = kept.plans.iter().position(|(other, _)| *other == token)?;
        kept.plans.remove(at).map(|(_, planned)| planned)
    }
}

/// A plan as it is shown, and what is kept of it if it can be done.
struct Draft {
    plan: Plan,
    planned: Option<Planned>,
}

impl Draft {
    /// Makes a plan that can be done.
    fn possible(title: String, lines: Vec<String>, planned: Planned) -> Self {
        Self {
            plan: Plan {
                title: plain(&title),
                lines: shown(&lines),
                is_possible: true,
                ..Plan::default()
            },
            planned: Some(planned),
        }
    }

    /// Makes a plan that cannot be done; the lines say why.
    fn impossible(title: String, lines: Vec<String>) -> Self {
        Self {
            plan: Plan {
                title: plain(&title),
                lines: shown(&lines),
                ..Plan::default()
            },
            planned: None,
        }
    }
}

/// Returns text as lines of a screen.
fn shown(lines: &[String]) -> Vec<Line> {
    let lines = lines.iter().flat_map(|line| line.split('\n'));
    lines.map(|line| vec![Span::plain(plain(line))]).collect()
}

/// Plans an action. Nothing changes.
pub(super) fn plan(library: &StoreLibrary, action: &Action) -> Answer<Plan> {
    let draft = drafted(library, action).map_err(failure)?;
    let mut plan = draft.plan;
    if let Some(planned) = draft.planned {
        plan.token = library.plans.keep(planned);
    }
    Ok(plan)
}

fn drafted(library: &StoreLibrary, action: &Action) -> Result<Draft> {
    match action {
        Action::Undo => moves::step(library, Verb::Undo),
        Action::Redo => moves::step(library, Verb::Redo),
        Action::Rewind(workspace, moment) => moves::rewind(library, workspace, moment),
        Action::Restore(workspace, moment, paths) => {
            moves::restore(library, workspace, moment, paths)
        }
        Action::RestoreHunks(between, path, hunks) => {
            moves::restore_hunks(library, between, path, hunks)
        }
        Action::Fork(place, dir) => moves::fork(library, place, dir),
        Action::Delete(session) => sessions::delete(library, session),
        Action::Undelete(session) => sessions::undelete(library, session),
        Action::Title(session, title) => sessions::title(library, session, title),
        Action::Tag(session, tags) => sessions::tag(library, session, tags),
        Action::Pin(session, pinned) => sessions::pin(library, session, *pinned),
        Action::Export(session, format, file) => sessions::export(library, session, format, file),
    }
}

/// Does what was planned, and nothing else.
pub(super) fn apply(library: &StoreLibrary, token: u64, on_conflict: OnConflict) -> Answer<Report> {
    let Some(planned) = library.plans.take(token) else {
        return Err(Failure::new("this plan is out of date; look again"));
    };
    if let Planned::Move { planned: only, .. } = &planned
        && on_conflict == OnConflict::Stop
        && let Some(refusal) = only.refusal()
    {
        library.plans.put_back(token, planned);
        return Err(Failure::new(plain(&refusal)));
    }
    let report = done(library, planned, on_conflict).map_err(failure);
    library.next_undo.forget();
    let report = report?;
    Ok(Report {
        message: plain(&report.message),
        ..report
    })
}

fn done(library: &StoreLibrary, planned: Planned, on_conflict: OnConflict) -> Result<Report> {
    let gate = &library.plans.gate;
    match planned {
        Planned::Move { planned, is_here } => {
            let work = gate.begin_looking();
            moves::apply(*planned, is_here, on_conflict, work.progress())
        }
        Planned::Fork(planned) => {
            let _work = gate.begin_moving();
            Ok(Report {
                message: planned.apply()?,
                reverse: None,
            })
        }
        Planned::Session(change) => {
            let _work = gate.begin_moving();
            sessions::apply(library, change)
        }
    }
}

#[cfg(test)]
#[path = "actions_tests.rs"]
mod tests;
