//! The authors of changes.
//!
//! A change belongs to the turns and runs that were in progress when it appeared, else to
//! the session that asked for the checkpoint that captured it first, else to the user. What Backtrail itself
//! restored has no author. Instead of the user it may be a process that outlived its run, or an
//! agent that went back in its own session.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::path_history::AuthoredChange;
use crate::ids::{CheckpointId, SessionId};
use crate::log::Line;
use crate::objects::ObjectId;
use crate::session::Program;
use crate::store::Store;
use crate::time::Timestamp;
use crate::workspace::agent_rewinds::{AgentRewind, agent_rewinds};
use crate::workspace::calls::calls_of;
use crate::workspace::spans::{
    RunWithTurns, ends, is_first_in_run, newest_of, state_before, turns_in_runs,
};
use crate::workspace::step_record::{MergedWork, StepRecord};
use crate::workspace::timeline::Timeline;
use crate::workspace::{Checkpoint, CheckpointReason, Description, SessionPlace, Workspace};

/// A possible author of the changes of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) kind: AuthorKind,
    /// The checkpoint that the turn or run began with.
    pub(crate) start: Option<CheckpointId>,
    /// When the changes were seen.
    pub(super) at: Timestamp,
    /// The index of the state that they were seen in.
    pub(super) n: usize,
    /// Whether no checkpoint has them yet.
    pub(super) unsaved: bool,
    /// Whether a checkpoint of the user's own has them.
    pub(super) held: bool,
    /// The turn or run.
    pub(super) step: Option<Description>,
    /// What it is, if it is not the user.
    pub(super) program: Option<Program>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthorKind {
    Person,
    /// A turn or run of a session, or a checkpoint that it asked for.
    Session(SessionPlace),
    /// A turn of another program whose session is not here, by that program's own ids.
    Agent(String, String),
    /// A turn or run without a session.
    Unnamed,
    /// A process that outlived its run.
    Process,
}

impl AuthorKind {
    /// Returns the author of the turn or run that began with a checkpoint.
    fn of_start(start: &Checkpoint) -> Self {
        match (start.session(), start.agent()) {
            (Some(place), _) => Self::Session(place.clone()),
            (None, Some(agent)) => Self::Agent(agent.name.clone(), agent.session.clone()),
            (None, None) => Self::Unnamed,
        }
    }
}

impl Author {
    pub(super) fn new(kind: AuthorKind, (n, at): (usize, Timestamp)) -> Self {
        Self {
            kind,
            start: None,
            at,
            n,
            unsaved: false,
            held: false,
            step: None,
            program: None,
        }
    }

    /// Returns whether it is the same author of the same change, saved or not.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.n == other.n && self.kind == other.kind && self.step == other.step
    }
}

/// What happened between two consecutive states.
#[derive(Debug)]
pub(super) struct Interval {
    pub(super) before: ObjectId,
    pub(super) after: ObjectId,
    /// Empty if Backtrail itself restored.
    pub(super) by: Rc<[Author]>,
    /// Whether the state after it was saved on request.
    pub(super) saves: bool,
    /// Whether the user asked for it.
    pub(super) is_users: bool,
    /// The index of the last state before it that the user asked for; 0 for none.
    pub(super) last_held: usize,
    /// The index of the state after it.
    pub(super) n: usize,
    /// The state that Backtrail restored.
    pub(super) to: Option<usize>,
    /// The state that an agent went back to in its own session meanwhile.
    pub(super) agent_went_to: Option<usize>,
    /// What a merge undid.
    pub(super) merge_undid: Option<MergeUndid>,
}

/// What a merge undid: what some authors did after one state and up to another.
#[derive(Debug)]
pub(super) struct MergeUndid {
    pub(super) authors: WhoseWork,
    pub(super) since: usize,
    pub(super) until: usize,
}

impl MergeUndid {
    /// Returns what a step undid, if it was a merge and that is known.
    fn by(begun: &StepRecord, store: &Store, timeline: &Timeline) -> Option<Self> {
        let merge = begun.merge.as_ref()?;
        Some(Self {
            authors: match merge.authors {
                MergedWork::Session => WhoseWork::of(store, begun.of_session.as_ref()?),
                MergedWork::Sessions => WhoseWork::Sessions,
                MergedWork::Everyone => WhoseWork::Everyone,
                // The undo of a step with files undid nobody's work.
                MergedWork::Move | MergedWork::Other => return None,
            },
            since: timeline.index_of(merge.since)?,
            until: merge
                .until
                .and_then(|until| timeline.index_of(until))
                .unwrap_or(usize::MAX),
        })
    }

    /// Returns whether a change was undone. `by_now` returns an author as it was then.
    pub(super) fn holds(&self, link: &AuthoredChange, by_now: impl Fn(&Author) -> Author) -> bool {
        let is_within = self.since < link.n && link.n <= self.until;
        let mut by = link.by.iter();
        let is_own = !link.by.is_empty() && by.all(|by| self.authors.is_own(&by_now(by)));
        is_within && (is_own || link.is_behind(self.since))
    }
}

/// A turn or run, also one inside another, or a part of one that was interrupted and continued.
struct AuthorSpan<'a> {
    start: usize,
    end: usize,
    /// Its process died: the last changes may be the user's.
    died: bool,
    checkpoint: &'a Checkpoint,
    /// Its tool calls of which the beginning and the end are known.
    calls: Vec<(usize, usize)>,
    /// The state before which changes may be the user's as well: its snapshot came late.
    doubtful: Option<usize>,
    /// The last state that its agent reported.
    last_own: usize,
}

impl<'a> AuthorSpan<'a> {
    fn new((start, end): (usize, usize), checkpoint: &'a Checkpoint) -> Self {
        Self {
            start,
            end,
            died: false,
            checkpoint,
            calls: Vec::new(),
            doubtful: None,
            last_own: start,
        }
    }

    /// Returns whether a change before state `n` may be the user's as well: it came after the
    /// last sign of one that died, or while an agent's turn had no call open and the agent did
    /// not report the state. An agent that the user interrupts may not say so.
    fn may_be_over(&self, n: usize, state: Option<&Checkpoint>) -> bool {
        let start = self.checkpoint.id();
        let is_own = state.is_some_and(|it| it.id() == start || it.begun_by() == Some(start));
        // Another agent's moment says nothing about one that goes on afterwards.
        let goes_on = n <= self.last_own && state.is_some_and(|it| it.agent().is_some());
        let is_known = is_own || goes_on || self.was_calling(n);
        let is_waiting = self.checkpoint.agent().is_some() && !is_known;
        is_waiting || self.died && self.end == n
    }

    /// Returns whether a tool call was running before state `n`, or may have been.
    fn was_calling(&self, n: usize) -> bool {
        let mut calls = self.calls.iter();
        self.checkpoint.agent().is_none() || calls.any(|(start, end)| *start < n && *end >= n)
    }
}

/// Returns the intervals between the states since the checkpoint at `since`, up to the
/// present.
pub(super) fn intervals(
    workspace: &Workspace,
    timeline: &Timeline,
    since: usize,
    present: ObjectId,
) -> Vec<Interval> {
    let around = Around {
        timeline,
        spans: all_spans(timeline),
        rewinds: agent_rewinds(&timeline.checkpoints),
    };
    let checkpoints = &timeline.checkpoints;
    let mut last_held = 0;
    let mut interval = |n: usize, after| {
        let checkpoint = checkpoints.get(n);
        let begun = checkpoint.and_then(|checkpoint| timeline.moves.get(&checkpoint.id()));
        let is_users = checkpoint.is_some_and(Checkpoint::is_users);
        let before = last_held;
        if is_users {
            last_held = n;
        }
        let to = begun.and_then(|begun| timeline.index_of(begun.to?));
        // A step that went back further is undone itself, with all that it undid.
        let goes_on = to.is_some_and(|to| to >= since);
        Interval {
            before: checkpoints[n - 1].snapshot_id(),
            after,
            by: match checkpoint {
                Some(checkpoint) => around.authors_of_checkpoint(checkpoint, n),
                None => around.authors_of_present(n, workspace.store().now()),
            }
            .into(),
            saves: checkpoint.is_some_and(|checkpoint| {
                let reason = checkpoint.reason();
                !reason.moved() && *reason != CheckpointReason::BeforeRewind
            }),
            is_users,
            last_held: before,
            n,
            to,
            agent_went_to: around.rewind_before(n).map(|it| it.to),
            merge_undid: begun
                .filter(|_| goes_on)
                .and_then(|begun| MergeUndid::by(begun, workspace.store(), timeline)),
        }
    };
    let saved = checkpoints.iter().map(Checkpoint::snapshot_id);
    let states = saved.chain([present]).enumerate().skip(since + 1);
    states.map(|(n, after)| interval(n, after)).collect()
}

/// Returns the authors of what changed before each of some states, which are in order; none for
/// what Backtrail itself restored. The state after the last checkpoint is the present.
pub(crate) fn authors_of_states(
    workspace: &Workspace,
    timeline: &Timeline,
    states: &[usize],
) -> Vec<Vec<Author>> {
    let mut ahead = all_spans(timeline);
    ahead.sort_by_key(|span| std::cmp::Reverse(span.start));
    let mut around = Around {
        timeline,
        spans: Vec::new(),
        rewinds: agent_rewinds(&timeline.checkpoints),
    };
    let mut authors_of = |n: usize| {
        while ahead.last().is_some_and(|next| next.start < n) {
            around.spans.extend(ahead.pop());
        }
        around.spans.retain(|span| span.end >= n);
        match timeline.checkpoints.get(n) {
            Some(checkpoint) => around.authors_of_checkpoint(checkpoint, n),
            None => around.authors_of_present(n, workspace.store().now()),
        }
    };
    states.iter().map(|n| authors_of(*n)).collect()
}

/// What happened around the states of a workspace.
struct Around<'a> {
    timeline: &'a Timeline,
    spans: Vec<AuthorSpan<'a>>,
    rewinds: Vec<AgentRewind>,
}

impl Around<'_> {
    fn authors_of_checkpoint(&self, checkpoint: &Checkpoint, n: usize) -> Vec<Author> {
        if checkpoint.reason().moved() {
            return Vec::new();
        }
        let at = checkpoint.at();
        let by = in_progress_at(&self.spans, n, (Some(checkpoint), at));
        if !by.is_empty() {
            return by;
        }
        let asked = checkpoint
            .session()
            .filter(|_| *checkpoint.reason() == CheckpointReason::Manual);
        if let Some(asked) = asked {
            return vec![Author::new(AuthorKind::Session(asked.clone()), (n, at))];
        }
        let mut by = self.person_or_program(n, at);
        for author in &mut by {
            // The state before a rewind is not saved on request.
            author.unsaved = *checkpoint.reason() == CheckpointReason::BeforeRewind;
        }
        by
    }

    fn authors_of_present(&self, last: usize, now: Timestamp) -> Vec<Author> {
        let mut by = in_progress_at(&self.spans, last, (None, now));
        if by.is_empty() {
            by = self.person_or_program(last, now);
        }
        for author in &mut by {
            author.unsaved = true;
        }
        by
    }

    /// Returns the user, after the programs that it may have been instead.
    fn person_or_program(&self, n: usize, at: Timestamp) -> Vec<Author> {
        let checkpoints = &self.timeline.checkpoints;
        let program = |kind, program| Author {
            program: Some(program),
            ..Author::new(kind, (n, at))
        };
        let left = self.timeline.left_names.after(&checkpoints[n - 1]);
        let left = left.into_iter().map(Program::Process);
        let mut by: Vec<Author> = left.map(|it| program(AuthorKind::Process, it)).collect();
        if let Some(rewind) = self.rewind_before(n) {
            let turn = &checkpoints[rewind.until];
            by.push(program(AuthorKind::of_start(turn), turn.program()));
        }
        // A turn of which there is no checkpoint came before.
        let next = checkpoints.get(n).filter(|it| !it.record.missed.is_empty());
        by.extend(next.map(|it| program(AuthorKind::of_start(it), it.program())));
        by.push(Author::new(AuthorKind::Person, (n, at)));
        by
    }

    /// Returns how an agent went back in its own session before state `n`.
    fn rewind_before(&self, n: usize) -> Option<&AgentRewind> {
        let at = self.rewinds.partition_point(|it| it.until < n);
        self.rewinds.get(at).filter(|it| it.from < n)
    }
}

/// Returns the turns and runs in progress before state `n`: those with a tool call in progress,
/// or all if none has one; and the user, if all of them may have been over.
fn in_progress_at(
    around: &[AuthorSpan<'_>],
    n: usize,
    (state, at): (Option<&Checkpoint>, Timestamp),
) -> Vec<Author> {
    let open = around.iter().filter(|span| span.start < n && span.end >= n);
    let is_any_calling = open.clone().any(|span| span.was_calling(n));
    let open = open.filter(|span| !is_any_calling || span.was_calling(n));
    let mut by: Vec<Author> = open
        .clone()
        .map(|span| {
            let kind = AuthorKind::of_start(span.checkpoint);
            Author {
                start: Some(span.checkpoint.id()),
                step: Some(Description::of_start(span.checkpoint)),
                program: Some(span.checkpoint.program()),
                ..Author::new(kind, (n, at))
            }
        })
        .collect();
    if open.clone().any(|span| span.doubtful == Some(n)) {
        by.push(Author::new(AuthorKind::Person, (n, at)));
    }
    let mut open = open.peekable();
    if open.peek().is_some() && open.all(|span| span.may_be_over(n, state)) {
        by.push(Author::new(AuthorKind::Person, (n, at)));
    }
    by
}

/// Returns all turns and runs. One in progress reaches to the present, and one that died to
/// the state after its last sign of life.
fn all_spans(timeline: &Timeline) -> Vec<AuthorSpan<'_>> {
    let checkpoints = &timeline.checkpoints;
    let mut own: HashMap<CheckpointId, Vec<usize>> = HashMap::new();
    for (n, checkpoint) in checkpoints.iter().enumerate() {
        if let Some(start) = checkpoint
            .begun_by()
            .filter(|_| !checkpoint.reason().begins())
        {
            own.entry(start).or_default().push(n);
        }
    }
    let (turns, ends) = (turns_in_runs(checkpoints), ends(checkpoints));
    let starts = checkpoints.iter().enumerate();
    let starts = starts.filter(|(_, checkpoint)| checkpoint.reason().begins());
    starts
        .flat_map(|(start, checkpoint)| match turns.get(&start) {
            Some(turns) => {
                let end = ends.get(&checkpoint.id()).copied();
                let run = RunWithTurns { start, end, turns };
                let parts = run.parts(checkpoints, &ends).into_iter();
                let part = |(start, end)| AuthorSpan::new((start, end), checkpoint);
                parts.map(part).collect()
            }
            None => {
                let own = own.get(&checkpoint.id()).map_or(&[][..], Vec::as_slice);
                parts_of(timeline, start, own)
            }
        })
        .collect()
}

/// Returns the parts of a turn or run. `own` are its checkpoints after the first: one after an
/// end continues it.
fn parts_of<'a>(timeline: &'a Timeline, start: usize, own: &[usize]) -> Vec<AuthorSpan<'a>> {
    let checkpoints = &timeline.checkpoints;
    let checkpoint = &checkpoints[start];
    let calls = calls_of(checkpoints, start, own.iter().copied());
    let before = state_before(checkpoints, start);
    let is_doubtful = before < start && !is_first_in_run(checkpoints, start);
    let is_reported = |n: &&usize| *checkpoints[**n].reason() != CheckpointReason::Interrupted;
    let last_own = own.iter().rev().find(is_reported);
    let part = |from, end, died| AuthorSpan {
        died,
        calls: calls.clone(),
        doubtful: is_doubtful.then_some(start),
        last_own: last_own.copied().unwrap_or(start),
        ..AuthorSpan::new((from, end), checkpoint)
    };
    let (mut parts, mut open) = (Vec::new(), Some(before));
    // Where another program's turn seemed to end and went on, it had not ended.
    let is_early = |n: usize| {
        let is_end = *checkpoints[n].reason() == CheckpointReason::TurnEnd;
        is_end && checkpoint.agent().is_some() && own.last() != Some(&n)
    };
    for &n in own {
        let began = *open.get_or_insert(n);
        if checkpoints[n].reason().ends() && !is_early(n) {
            let died = checkpoints[n].last_seen().is_some();
            parts.push(part(began, n + usize::from(died), died));
            open = None;
        }
    }
    if let Some(began) = open {
        let is_active = timeline.active.contains(&checkpoint.id());
        let end = match is_active {
            true => usize::MAX,
            false => newest_of(checkpoints, start) + 1,
        };
        parts.push(part(began, end, !is_active));
    }
    parts
}

/// The authors whose work is undone.
#[derive(Debug)]
pub(super) enum WhoseWork {
    /// None: only what Backtrail itself did.
    Nobody,
    /// One session, with its sub-agents and what it was forked from.
    One(SessionFamily),
    /// One session of another program that is not here.
    Agent(AuthorKind),
    /// Every session.
    Sessions,
    /// Every session, and the user as far as a checkpoint of their own has it.
    Everyone,
}

impl WhoseWork {
    /// Returns one session and its family.
    pub(super) fn of(store: &Store, session: &SessionId) -> Self {
        Self::One(SessionFamily {
            store: store.clone(),
            root: session.clone(),
            line: OnceCell::new(),
            known: RefCell::default(),
        })
    }

    /// Returns whose work a turn or run is that began with a checkpoint.
    pub(super) fn of_start(store: &Store, start: &Checkpoint) -> Self {
        match AuthorKind::of_start(start) {
            AuthorKind::Session(place) => Self::of(store, &place.id),
            kind @ AuthorKind::Agent(..) => Self::Agent(kind),
            AuthorKind::Person | AuthorKind::Unnamed | AuthorKind::Process => Self::Sessions,
        }
    }

    /// Returns it as the record of a merge stores it.
    pub(super) fn as_merged(&self) -> MergedWork {
        match self {
            Self::Nobody => MergedWork::Move,
            Self::One(_) => MergedWork::Session,
            Self::Agent(_) => MergedWork::Sessions,
            Self::Sessions => MergedWork::Sessions,
            Self::Everyone => MergedWork::Everyone,
        }
    }

    /// Returns whether it is several authors.
    pub(super) fn are_several(&self) -> bool {
        matches!(self, Self::Sessions | Self::Everyone)
    }

    /// Returns whether an author's work is undone.
    pub(super) fn is_own(&self, author: &Author) -> bool {
        match (self, &author.kind) {
            (Self::Nobody, _) => false,
            (Self::One(family), AuthorKind::Session(place)) => family.holds(place),
            (Self::One(_), _) => false,
            (Self::Agent(own), kind) => own == kind,
            (Self::Sessions, kind) => *kind != AuthorKind::Person,
            (Self::Everyone, AuthorKind::Person) => author.held,
            (Self::Everyone, _) => true,
        }
    }
}

/// A session, its sub-agents, and the line that it continues.
#[derive(Debug)]
pub(super) struct SessionFamily {
    store: Store,
    root: SessionId,
    /// `None` if it cannot be read.
    line: OnceCell<Option<Line>>,
    known: RefCell<HashMap<SessionId, bool>>,
}

impl SessionFamily {
    fn holds(&self, place: &SessionPlace) -> bool {
        if place.id == self.root {
            return true;
        }
        // A turn is inherited with its first message: one that began where the line
        // branches off is on another line.
        let line = self.line.get_or_init(|| {
            let reader = self.store.read_anywhere(&self.root);
            reader.and_then(|reader| reader.log.line()).ok()
        });
        if line
            .as_ref()
            .is_some_and(|line| line.holds(&place.id, place.trail, place.seq + 1))
        {
            return true;
        }
        if let Some(known) = self.known.borrow().get(&place.id) {
            return *known;
        }
        let holds = self.began(&place.id);
        self.known.borrow_mut().insert(place.id.clone(), holds);
        holds
    }

    /// Returns whether a session is a sub-agent's, at any depth.
    fn began(&self, id: &SessionId) -> bool {
        let mut id = id.clone();
        // The depth has a limit in case of forged records.
        for _ in 0..64 {
            let reader = self.store.read_anywhere(&id);
            let spawned_by = reader.and_then(|reader| reader.info()).ok();
            match spawned_by.and_then(|info| info.spawned_by) {
                Some(by) if by.session_id == self.root => return true,
                Some(by) => id = by.session_id,
                None => return false,
            }
        }
        false
    }
}
