//! Plans: what would happen to files and conversation.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::actions::PathActions;
use super::apply::can_be_readable;
use super::authors::{Author, AuthorKind, intervals};
use super::damage::{contents_of, damaged_contents};
use super::merge::Merger;
use super::options::Rewind;
use super::outcome::{ChatMove, Conflict, Merge, OnConflict, Outcome, Stage};
use super::path_change::PathEntry;
use super::path_history::{PathHistories, may_be, readable};
use super::target::{FileTarget, PathScope, RewindTarget, place_of};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::objects::ObjectId;
use crate::session::Session;
use crate::snapshot::damage::{DamagedPart, DamagedPath, damage_error};
use crate::snapshot::edit::{Edit, edit};
use crate::snapshot::entry::{FileKind, Node, SkippedReason};
use crate::snapshot::scan::capture;
use crate::snapshot::{Difference, Progress, Snapshot, shown};
use crate::store::Store;
use crate::workspace::timeline::{FileStepKind, Timeline};
use crate::workspace::{Activity, Checkpoint, Lost, Workspace};

/// A rewind, restore, undo or redo that is planned. Nothing is touched before it is
/// applied.
#[derive(Debug)]
#[must_use = "a plan does nothing until it is applied"]
pub struct RewindPlan {
    pub(super) store: Store,
    /// `None` for a conversation that has no files beside it.
    pub(super) workspace: Option<Workspace>,
    pub(super) target: RewindTarget,
    pub(super) options: Rewind,
    pub(super) planned: PlannedWork,
    pub(super) outcome: Outcome,
    /// The state of the files that it was made for.
    pub(super) present: Option<ObjectId>,
    /// The writer of the session, if this process is.
    pub(super) writer: Option<Session>,
}

impl RewindPlan {
    /// Returns what would happen.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns whether conflicts stop it: it cannot be done with these options.
    pub fn is_stopped(&self) -> bool {
        self.outcome.is_stopped()
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.planned.is_empty()
    }

    /// Returns a plan of the same move that treats conflicts in another way.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) if files changed since the plan was made, and what
    /// reading the files and the store can fail with.
    pub fn on_conflict(mut self, on_conflict: OnConflict) -> Result<Self> {
        self.options = self.options.on_conflict(on_conflict);
        super::api::plan_again(self)
    }

    /// Sets the receiver of progress reports while it is done.
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.options = self.options.progress(progress);
        self
    }

    /// Does it. A crash leaves it undone, or for the next command to finish.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) if conflicts stop it, or if files or the
    /// conversation changed since the plan was made, and
    /// [`Locked`](ErrorKind::Locked) if another process is writing to the session whose
    /// conversation moves; nothing is touched then. After an I/O error everything is as
    /// it was, or half done and finished by the next command; the error says which.
    pub fn apply(self) -> Result<Outcome> {
        super::api::apply(self)
    }
}

/// What would happen to files and conversation.
#[derive(Debug)]
pub(super) struct PlannedWork {
    pub(super) files: Option<FilePlan>,
    pub(super) chat: Option<ChatMove>,
}

/// What would happen to the files.
#[derive(Debug)]
pub(super) struct FilePlan {
    /// The present state, with what was stored because no snapshot had it.
    pub(super) present: Snapshot,
    pub(super) actions: PathActions,
    pub(super) conflicts: Vec<Conflict>,
    /// Whether a merge would go through, if conflicts stop it.
    pub(super) can_merge: bool,
    pub(super) unchanged: u64,
    /// Other sessions whose work is undone, while their conversations stay.
    pub(super) others: Vec<SessionId>,
    /// What cannot be restored because it is damaged.
    pub(super) damaged: Vec<DamagedPath>,
    /// Paths that would be replaced although the store's copy of them is damaged.
    pub(super) unsaved: Vec<PathBuf>,
}

/// The present state of the files, as it was found.
#[derive(Debug, Clone, Copy)]
pub(super) enum PresentState<'a> {
    /// By a look that stored nothing: nothing will be touched.
    Looked(&'a Snapshot),
    /// Also what was made readable for it.
    Stored(&'a Snapshot, &'a BTreeSet<PathBuf>),
}

impl PlannedWork {
    pub(super) fn new(
        workspace: &Workspace,
        target: &RewindTarget,
        options: &Rewind,
        found: Option<PresentState<'_>>,
    ) -> Result<Self> {
        let files = match (&target.files, found) {
            (Some(files), Some(found)) => {
                let timeline = Timeline::read(workspace)?;
                let planner = FilePlanner {
                    workspace,
                    timeline: &timeline,
                    target: files,
                    found,
                };
                Some(planner.plan(options, target.outcome.session.as_ref())?)
            }
            _ => None,
        };
        Ok(Self {
            files,
            chat: target.chat_move(workspace.store())?,
        })
    }

    /// Returns whether any path is merged.
    pub(super) fn merges(&self) -> bool {
        let mut conflicts = self.files.iter().flat_map(|files| &files.conflicts);
        conflicts.any(|conflict| conflict.merge == Some(Merge::Merged))
    }

    /// Returns whether something is damaged: what is to be restored, or the store's copy of
    /// what would be replaced.
    pub(super) fn is_damaged(&self) -> bool {
        let mut files = self.files.iter();
        files.any(|files| !files.damaged.is_empty() || !files.unsaved.is_empty())
    }

    /// Refuses to go on if something is damaged that is to be restored.
    pub(super) fn must_be_undamaged(&self) -> Result<()> {
        let files = self.files.as_ref();
        match files.and_then(|files| damage_error(&files.damaged)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Returns whether nothing would happen.
    pub(super) fn is_empty(&self) -> bool {
        let no_files = |files: &FilePlan| files.actions.by_path.is_empty();
        self.chat.is_none() && self.files.as_ref().is_none_or(no_files)
    }
}

/// The reason why a file is kept that cannot be replaced.
const UNSAVED: &str = "kept: its current content cannot be saved";

struct FilePlanner<'a> {
    workspace: &'a Workspace,
    timeline: &'a Timeline,
    target: &'a FileTarget,
    found: PresentState<'a>,
}

/// Paths that differ from the target, and their histories.
struct PathsToChange {
    differences: Vec<Difference>,
    /// Those that changed since the step.
    moved_on: BTreeSet<PathBuf>,
    /// All of them.
    wanted: BTreeSet<PathBuf>,
    histories: PathHistories,
    /// Directories of which it is not known what differs.
    damaged: Vec<DamagedPath>,
}

/// Files that were stored because no snapshot had them.
struct CapturedFiles {
    /// The present state with them.
    present: Snapshot,
    /// What they are.
    stored: BTreeMap<PathBuf, PathEntry>,
    /// Directories that no snapshot had.
    opened: BTreeSet<PathBuf>,
    /// Paths that cannot be stored.
    refused: Vec<PathBuf>,
}

impl CapturedFiles {
    fn none(present: &Snapshot) -> Self {
        Self {
            present: present.clone(),
            stored: BTreeMap::new(),
            opened: BTreeSet::new(),
            refused: Vec::new(),
        }
    }
}

impl<'a> PresentState<'a> {
    fn snapshot(self) -> &'a Snapshot {
        match self {
            Self::Looked(snapshot) | Self::Stored(snapshot, _) => snapshot,
        }
    }

    /// Returns what was made readable.
    fn opened(self) -> BTreeSet<PathBuf> {
        match self {
            Self::Looked(_) => BTreeSet::new(),
            Self::Stored(_, opened) => opened.clone(),
        }
    }
}

impl FilePlanner<'_> {
    /// `own` is the session whose conversation moves.
    fn plan(&self, options: &Rewind, own: Option<&SessionId>) -> Result<FilePlan> {
        let target = match self.open(&self.target.state)? {
            Ok(target) => target,
            Err(damaged) => return self.all_damaged(damaged, own),
        };
        let merges = options.on_conflict == OnConflict::Merge;
        let mut captured = CapturedFiles::none(self.found.snapshot());
        let mut paths = self.look(&captured, &target, merges)?;
        let mut actions = PathActions::on(&paths.differences, &paths.histories, &captured.opened);
        if matches!(self.found, PresentState::Stored(..)) && !actions.to_capture.is_empty() {
            captured = self.capture(&actions.to_capture, &captured.present)?;
            paths = self.look(&captured, &target, merges)?;
            actions = PathActions::on(&paths.differences, &paths.histories, &captured.opened);
            for path in &captured.refused {
                actions.cannot(path, UNSAVED);
            }
        }
        let present = captured.present.clone();
        self.plan_readable(&mut actions, &paths.differences);
        let mut damaged = self.damaged_files(&actions, &present)?;
        damaged.append(&mut paths.damaged);
        actions.leave_damaged(&damaged);
        let unsaved = self.unsaved_files(&actions)?;
        for path in &unsaved {
            actions.cannot(path, UNSAVED);
        }
        self.name_uncaptured(&mut actions, &target)?;
        self.name_unchanged(&mut actions, &target)?;
        self.name_lost(&mut actions, &present)?;
        // What is not touched anyway is no conflict.
        actions.fit(&present, &target)?;
        let makes_new = merges || options.pick.is_some();
        let writer = match self.found {
            PresentState::Stored(..) if makes_new => Some(self.workspace.objects().writer()?),
            _ => None,
        };
        let named_files = self.named_files(&present, &target)?;
        let merger = Merger {
            named_files: &named_files,
            writer: writer.as_ref(),
            skips_damaged: options.skip_damaged,
            ..self.merger(&paths, &present)?
        };
        let mut conflicts = merger.conflicts(&mut actions, options.on_conflict)?;
        let stops = options.on_conflict == OnConflict::Stop;
        let can_merge = stops
            && conflicts.iter().any(|one| !one.named)
            && self.try_merge(&captured, &target, &mut conflicts, &damaged)?;
        if let Some(pick) = &options.pick {
            pick.choose(&mut actions, &present, &merger)?;
            let is_chosen = |conflict: &Conflict| actions.is_touched(&conflict.path);
            conflicts.retain(is_chosen);
        }
        if let Some(writer) = writer {
            // All that the step needs is in the store before it begins.
            writer.finish()?;
        }
        let settles = matches!(options.on_conflict, OnConflict::Keep | OnConflict::Merge);
        if settles || options.pick.is_some() {
            // Directories stay for what is kept in them.
            actions.fit(&present, &target)?;
        }
        if matches!(self.found, PresentState::Stored(..)) {
            // The directories that change must be readable as a whole.
            edit(&present, &actions.edits(), &mut |bytes| {
                Ok(ObjectId::of(bytes))
            })?;
        }
        Ok(FilePlan {
            unchanged: present
                .totals()
                .files
                .saturating_sub(actions.touched() + actions.kept.len() as u64),
            present,
            actions,
            conflicts,
            can_merge,
            others: self.others(own)?,
            damaged,
            unsaved,
        })
    }

    /// Plans to do nothing, since nothing of the target can be read.
    fn all_damaged(&self, damaged: DamagedPath, own: Option<&SessionId>) -> Result<FilePlan> {
        let damaged = vec![damaged];
        let mut actions = PathActions::default();
        actions.leave_damaged(&damaged);
        Ok(FilePlan {
            present: self.found.snapshot().clone(),
            actions,
            conflicts: Vec::new(),
            can_merge: false,
            unchanged: 0,
            others: self.others(own)?,
            damaged,
            unsaved: Vec::new(),
        })
    }

    /// Returns the files whose content to restore is damaged.
    fn damaged_files(&self, actions: &PathActions, present: &Snapshot) -> Result<Vec<DamagedPath>> {
        let mut found = damaged_contents(self.workspace.objects(), &actions.restored_files())?;
        if matches!(self.found, PresentState::Looked(_)) && !found.is_empty() {
            // Storing the present files would store these contents again.
            let here = contents_of(present)?;
            found.retain(|one| !here.contains(&one.content));
        }
        let of = self.name_of(&self.target.state);
        let named = found
            .into_iter()
            .map(|one| DamagedPath::new(one.path, DamagedPart::Content, of.as_ref(), one.error));
        named.collect()
    }

    /// Returns the files that would be replaced although the store's copy of their present
    /// content is damaged.
    fn unsaved_files(&self, actions: &PathActions) -> Result<Vec<PathBuf>> {
        if matches!(self.found, PresentState::Looked(_)) {
            return Ok(Vec::new());
        }
        let found = damaged_contents(self.workspace.objects(), &actions.replaced_files())?;
        Ok(found.into_iter().map(|one| one.path.to_owned()).collect())
    }

    /// Returns what merges paths, and stores nothing.
    fn merger<'p>(&'p self, paths: &'p PathsToChange, present: &'p Snapshot) -> Result<Merger<'p>> {
        Ok(Merger {
            workspace: self.workspace,
            histories: &paths.histories,
            authors: &self.target.authors,
            moved_on: &paths.moved_on,
            wanted: &paths.wanted,
            named_files: &[],
            since: place_of(self.timeline, self.target.since)?,
            until: self.until()?,
            present,
            skips_damaged: false,
            writer: None,
        })
    }

    /// Adds to conflicts that stop it what a merge would come to, and returns whether it
    /// would go through and change something in them.
    fn try_merge(
        &self,
        captured: &CapturedFiles,
        target: &Snapshot,
        conflicts: &mut [Conflict],
        damaged: &[DamagedPath],
    ) -> Result<bool> {
        let paths = self.look(captured, target, true)?;
        let mut actions = PathActions::on(&paths.differences, &paths.histories, &captured.opened);
        actions.leave_damaged(damaged);
        actions.fit(&captured.present, target)?;
        let merger = self.merger(&paths, &captured.present)?;
        let merged = merger.conflicts(&mut actions, OnConflict::Merge)?;
        for conflict in conflicts.iter_mut() {
            let found = merged.iter().find(|one| one.path == conflict.path);
            conflict.merge = found.and_then(|found| found.merge.clone());
        }
        let is_merged = |one: &Conflict| one.merge == Some(Merge::Merged);
        Ok(conflicts.iter().any(is_merged) && !merged.iter().any(Conflict::is_unmerged))
    }

    /// Returns the other sessions with messages in the turns and runs that are undone.
    fn others(&self, own: Option<&SessionId>) -> Result<Vec<SessionId>> {
        let is_whole = self.target.scope == PathScope::Whole && self.target.paths.is_empty();
        let mut others: Vec<SessionId> = Vec::new();
        if !is_whole || !self.target.authors.are_several() {
            return Ok(others);
        }
        let since = place_of(self.timeline, self.target.since)?;
        let steps = self.timeline.steps().done.into_iter();
        let steps = steps.filter(|step| step.before >= since && step.kind != FileStepKind::Move);
        for step in steps {
            let Some(place) = self.timeline.checkpoints[step.begun].session() else {
                continue;
            };
            if own == Some(&place.id) || others.contains(&place.id) {
                continue;
            }
            let reader = self.workspace.store().read_session(&place.id);
            // A session that cannot be read does not count.
            if reader.is_ok_and(|reader| reader.log.is_spoken_after(place.seq).unwrap_or(false)) {
                others.push(place.id.clone());
            }
        }
        Ok(others)
    }

    /// Finds what differs from the target, and who changed it.
    fn look(
        &self,
        captured: &CapturedFiles,
        target: &Snapshot,
        merges: bool,
    ) -> Result<PathsToChange> {
        let present = &captured.present;
        let mut moved_on = BTreeSet::new();
        if self.target.scope == PathScope::Whole {
            for path in &self.target.paths {
                self.must_be_known(path, present, target)?;
            }
        }
        let only = self.named();
        let (mut differences, damaged) = match &self.target.scope {
            PathScope::Whole | PathScope::ChangedUntilNow => {
                let (found, damaged) = present.readable_differences(target, only.as_deref())?;
                (found, damaged.all())
            }
            PathScope::Changed(after) => {
                self.differences_of_step(after, present, target, &mut moved_on)?
            }
        };
        let histories = self.histories(&differences, captured, target, merges)?;
        if self.target.only_own {
            // Changes that others made meanwhile do not belong to this step.
            let authors = &self.target.authors;
            differences.retain(|want| {
                let mut by = histories.by(&want.path).iter();
                by.any(|author| authors.is_own(author))
            });
        }
        Ok(PathsToChange {
            wanted: differences.iter().map(|want| want.path.clone()).collect(),
            differences,
            moved_on,
            histories,
            damaged,
        })
    }

    /// Returns the files that are to go to a point and are named themselves.
    fn named_files(&self, present: &Snapshot, target: &Snapshot) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        if self.target.scope != PathScope::Whole {
            return Ok(files);
        }
        for path in &self.target.paths {
            let node = match present.walk_down(path)? {
                // One that is damaged stays.
                None => readable(target.walk_down(path))?.flatten(),
                now => now,
            };
            if node.is_some_and(|node| !matches!(node, Node::Dir(_))) {
                files.push(path.clone());
            }
        }
        Ok(files)
    }

    /// Returns the paths that are named; `None` means all.
    fn named(&self) -> Option<Vec<&Path>> {
        let paths = &self.target.paths;
        let all = paths.iter().map(PathBuf::as_path);
        (!paths.is_empty()).then(|| all.collect())
    }

    /// Returns what a step changed and is not as it was before it. Paths that changed since
    /// go to `moved_on`.
    fn differences_of_step(
        &self,
        after: &ObjectId,
        present: &Snapshot,
        target: &Snapshot,
        moved_on: &mut BTreeSet<PathBuf>,
    ) -> Result<(Vec<Difference>, Vec<DamagedPath>)> {
        let mut differences = Vec::new();
        let opened = self.found.opened();
        let after = match self.open(after)? {
            Ok(after) => after,
            Err(damaged) => return Ok((differences, vec![damaged])),
        };
        let only = self.named();
        let (changes, damaged) = after.readable_differences(target, only.as_deref())?;
        for change in changes {
            let now = present.walk_down_to(&change, [after.id(), target.id()])?;
            if is_skipped_dir(&change.before) && is_dir(&now) && is_dir(&change.after) {
                // The step's end does not say what is in it.
                let below = present.differences(target, Some(&[&change.path]))?;
                let below = below.into_iter().filter(|it| it.path != change.path);
                for difference in below {
                    if !opened.iter().any(|it| difference.path.starts_with(it)) {
                        moved_on.insert(difference.path.clone());
                    }
                    differences.push(difference);
                }
            }
            if is_same(&now, &change.after) {
                continue;
            }
            let regained =
                may_be(now.as_ref(), change.before.as_ref()) || opened.contains(&change.path);
            if !is_same(&now, &change.before) && !regained {
                moved_on.insert(change.path.clone());
            }
            differences.push(Difference {
                before: now,
                ..change
            });
        }
        Ok((differences, damaged.all()))
    }

    /// Opens a state that is needed, unless its files were dropped. The inner error is
    /// damage.
    fn open(&self, id: &ObjectId) -> Result<Result<Snapshot, DamagedPath>> {
        if let Some(kept) = self.checkpoint_of(id) {
            self.workspace.must_be_kept(kept.id())?;
        }
        let name = self.name_of(id);
        // What the present files have may be damaged in the store.
        match self.found.snapshot().sibling(*id) {
            Ok(snapshot) => Ok(Ok(match &name {
                Some(name) => snapshot.of_checkpoint(name),
                None => snapshot,
            })),
            Err(error) => {
                let part = DamagedPart::AllNames;
                DamagedPath::new(Path::new(""), part, name.as_ref(), error).map(Err)
            }
        }
    }

    /// Returns the last checkpoint with a state.
    fn checkpoint_of(&self, id: &ObjectId) -> Option<&Checkpoint> {
        let mut checkpoints = self.timeline.checkpoints.iter().rev();
        checkpoints.find(|one| one.snapshot_id() == *id)
    }

    /// Returns the name of that checkpoint, for errors.
    fn name_of(&self, id: &ObjectId) -> Option<Arc<str>> {
        self.checkpoint_of(id).map(Checkpoint::name_for_errors)
    }

    /// Returns the last state of the work that is undone.
    fn until(&self) -> Result<usize> {
        match self.target.until {
            Some(until) => place_of(self.timeline, until),
            None => Ok(usize::MAX),
        }
    }

    /// Names paths that were asked for and were skipped then.
    fn name_uncaptured(&self, actions: &mut PathActions, target: &Snapshot) -> Result<()> {
        if self.target.scope != PathScope::Whole {
            return Ok(());
        }
        for path in &self.target.paths {
            let named = actions.not_restored.iter().any(|known| known.path == *path);
            let then = readable(target.walk_down(path))?.flatten();
            if let Some(Node::Skipped(then)) = then
                && !named
            {
                actions.cannot(path, format!("was skipped then: {}", then.reason));
            }
        }
        Ok(())
    }

    /// Plans to restore directories that only have to be made readable first.
    fn plan_readable(&self, actions: &mut PathActions, differences: &[Difference]) {
        if !matches!(self.found, PresentState::Looked(_)) {
            return;
        }
        let root = self.workspace.root();
        for want in differences.iter().filter(|want| is_closed(want)) {
            if can_be_readable(root, &want.path) {
                actions.not_restored.retain(|it| it.path != want.path);
                actions.act(want);
            }
        }
    }

    /// Names unprotected paths that were lost in the work that is undone, and are not back.
    fn name_lost(&self, actions: &mut PathActions, present: &Snapshot) -> Result<()> {
        let since = place_of(self.timeline, self.target.since)?;
        let until = self.until()?;
        let ends = self.timeline.checkpoints.iter().enumerate().skip(since + 1);
        let ends = ends.filter(|(n, end)| *n <= until && self.is_undone(*n, end));
        for lost in ends.flat_map(|(_, end)| &end.unprotected().lost) {
            let is_asked = self.named().is_none_or(|named| {
                let mut named = named.into_iter();
                named.any(|path| lost.path.starts_with(path))
            });
            let now = present.walk_down(&lost.path)?.as_ref().map(kind_of);
            let is_back = lost.after.is_none() && now == Some(lost.kind);
            if is_asked && !is_back {
                // The reason is better than what the states alone say.
                actions.not_restored.retain(|it| it.path != lost.path);
                actions.cannot(&lost.path, lost_reason(lost));
            }
        }
        Ok(())
    }

    /// Returns whether the turn or run that ends with a checkpoint is undone.
    fn is_undone(&self, n: usize, end: &Checkpoint) -> bool {
        match &self.target.scope {
            PathScope::Whole => {
                let kind = end.session().cloned();
                let kind = kind.map_or(AuthorKind::Unnamed, AuthorKind::Session);
                let author = Author::new(kind, (n, end.at()));
                self.target.authors.is_own(&author)
            }
            _ => Some(end.id()) == self.target.until,
        }
    }

    /// Names paths that were asked for and that the step did not change.
    fn name_unchanged(&self, actions: &mut PathActions, target: &Snapshot) -> Result<()> {
        let PathScope::Changed(after) = &self.target.scope else {
            return Ok(());
        };
        for path in &self.target.paths {
            let Ok(after) = self.open(after)? else {
                continue;
            };
            let (changes, damaged) = after.readable_differences(target, Some(&[path]))?;
            if changes.is_empty() && damaged.all().is_empty() {
                actions.cannot(path, "that step did not change it");
            }
        }
        Ok(())
    }

    /// Refuses a path that exists neither now nor in the target.
    fn must_be_known(&self, path: &Path, present: &Snapshot, target: &Snapshot) -> Result<()> {
        let then = readable(target.walk_down(path))?;
        let was_there = then.is_none_or(|then| then.is_some());
        if was_there || present.walk_down(path)?.is_some() {
            return Ok(());
        }
        let what = format!("{} does not exist now or at that point", shown(path));
        Err(Error::new(ErrorKind::NotFound, what).at_path(path))
    }

    /// Follows the paths from the state that changes are counted from.
    fn histories(
        &self,
        differences: &[Difference],
        captured: &CapturedFiles,
        target: &Snapshot,
        merges: bool,
    ) -> Result<PathHistories> {
        let since = place_of(self.timeline, self.target.since)?;
        let base = self
            .open(&self.timeline.checkpoints[since].snapshot_id())?
            .ok();
        let mut histories = PathHistories {
            stored: captured.stored.clone(),
            opened: self.found.opened(),
            every: (merges && self.target.scope == PathScope::Whole)
                .then(|| self.target.paths.clone()),
            ..PathHistories::default()
        };
        let between = [captured.present.id(), target.id()];
        histories.begin(base.as_ref(), between, differences)?;
        let present = self.found.snapshot();
        let intervals = intervals(self.workspace, self.timeline, since, present.id());
        let gone = self.dropped_states()?;
        histories.follow(intervals, &|id| match *id == present.id() {
            true => Ok(present.clone()),
            // A part of it may still exist, but says nothing about the rest.
            false if gone.contains(id) => {
                Err(Error::new(ErrorKind::Dropped, "its files were dropped"))
            }
            false => present.sibling(*id),
        })?;
        Ok(histories)
    }

    /// Returns the states whose files were dropped.
    fn dropped_states(&self) -> Result<HashSet<ObjectId>> {
        let dropped = self.workspace.all_dropped()?;
        let checkpoints = self.timeline.checkpoints.iter();
        let (gone, kept): (Vec<&Checkpoint>, Vec<&Checkpoint>) =
            checkpoints.partition(|kept| dropped.contains_key(&kept.id()));
        // The same state may occur again.
        let kept: HashSet<ObjectId> = kept.into_iter().map(Checkpoint::snapshot_id).collect();
        let gone = gone.into_iter().map(Checkpoint::snapshot_id);
        Ok(gone.filter(|id| !kept.contains(id)).collect())
    }

    /// Stores what no snapshot has and would be replaced.
    fn capture(&self, paths: &[PathBuf], present: &Snapshot) -> Result<CapturedFiles> {
        let writer = self.workspace.objects().writer()?;
        let options = self
            .workspace
            .scan_options(&self.workspace.included()?, None, None);
        let mut edits = BTreeMap::new();
        let mut captured = CapturedFiles::none(present);
        for path in paths {
            let Some(node) = capture(self.workspace.root(), path, &options, &writer)? else {
                captured.refused.push(path.clone());
                continue;
            };
            if matches!(node, Node::Dir(_)) {
                captured.opened.insert(path.clone());
            }
            let entry = PathEntry::of(&node).map(|entry| (path.clone(), entry));
            captured.stored.extend(entry);
            edits.insert(path.clone(), Edit::Put(node));
        }
        let (id, _) = edit(present, &edits, &mut |bytes| writer.put(bytes))?;
        writer.finish()?;
        captured.present = self.workspace.open_snapshot(&id)?;
        Ok(captured)
    }
}

/// Returns whether a path cannot be read now, and a snapshot has it.
pub(super) fn is_closed(want: &Difference) -> bool {
    let is_unreadable = |node: &Node| matches!(node, Node::Skipped(skipped) if skipped.reason == SkippedReason::Unreadable);
    let is_captured = |node: &Node| !matches!(node, Node::Skipped(_));
    want.before.as_ref().is_some_and(is_unreadable) && want.after.as_ref().is_some_and(is_captured)
}

fn kind_of(node: &Node) -> FileKind {
    match node {
        Node::File { .. } => FileKind::File,
        Node::Link { .. } => FileKind::Link,
        Node::Dir(_) => FileKind::Dir,
        Node::Skipped(skipped) => skipped.kind,
    }
}

fn is_skipped_dir(node: &Option<Node>) -> bool {
    matches!(node, Some(Node::Skipped(skipped)) if skipped.kind == FileKind::Dir)
}

fn is_dir(node: &Option<Node>) -> bool {
    matches!(node, Some(Node::Dir(_)))
}

/// Returns why something that was not protected cannot be restored.
fn lost_reason(lost: &Lost) -> String {
    let what = match lost.after {
        None => "deleted",
        Some(_) => "made smaller",
    };
    format!("{what} while not protected ({})", lost.reason)
}

/// Returns whether a path is the same, as far as a snapshot says.
fn is_same(a: &Option<Node>, b: &Option<Node>) -> bool {
    match (a, b) {
        (Some(Node::Skipped(a)), Some(Node::Skipped(b))) => a == b,
        _ => a.as_ref().map(PathEntry::of) == b.as_ref().map(PathEntry::of),
    }
}

impl Outcome {
    /// Adds what is planned to what is known of the target.
    pub(super) fn planned(
        target: &RewindTarget,
        planned: &PlannedWork,
        on_conflict: OnConflict,
        active: Vec<Activity>,
    ) -> Self {
        let outcome = Self {
            on_conflict,
            chat: planned.chat.clone(),
            active,
            ..target.outcome.clone()
        };
        let Some(files) = &planned.files else {
            return Self {
                to: None,
                ..outcome
            };
        };
        let to = target.to.as_ref();
        let mut outcome = Self {
            changes: files.actions.changes(),
            can_merge: files.can_merge,
            kept: files.actions.kept.clone(),
            not_restored: files.actions.not_restored.clone(),
            conflicts: files.conflicts.clone(),
            unchanged: files.unchanged,
            other_sessions: files.others.clone(),
            skipped: to.map(|to| to.skipped().clone()).unwrap_or_default(),
            ..outcome
        };
        // What stops it is a conflict, and no change.
        let stopping: BTreeSet<PathBuf> = outcome.stopping().map(|one| one.path.clone()).collect();
        outcome
            .changes
            .retain(|change| !stopping.contains(&change.path));
        outcome
    }

    /// Returns the outcome unless conflicts stopped it.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) if conflicts stopped it.
    pub fn done(self) -> Result<Self> {
        match self.stage {
            Stage::Stopped => Err(self.conflict_error()),
            _ => Ok(self),
        }
    }

    fn conflict_error(&self) -> Error {
        let first = self.stopping().next();
        let first = first.map(|conflict| conflict.path.clone());
        let first = first.unwrap_or_default();
        let more = match self.stopping().count() {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let other = match self.on_conflict {
            OnConflict::Merge => "other changes to the same lines",
            _ => "other changes",
        };
        let has = if more.is_empty() { "has" } else { "have" };
        let what = format!(
            "{}{more} {has} {other}; nothing was touched: keep or overwrite them",
            shown(&first)
        );
        Error::new(ErrorKind::Conflict, what).at_path(&first)
    }
}
