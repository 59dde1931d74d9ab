//! Turns and runs whose process died: what changed up to its last sign of life is theirs.
//!
//! The next process that takes the snapshot lock compares the files with the last checkpoint
//! and ends them with a checkpoint of its own. That has a path as it is now if the system says
//! that it changed before the last sign of life, and as it was otherwise: later changes may be
//! the user's as well as the run's.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeInclusive};
use std::path::Path;

use super::Workspace;
use super::active::DeadActivity;
use super::agent_place::AgentPlace;
use super::checkpoint::{Checkpoint, CheckpointReason};
use super::checkpoint_record::{CHECKPOINT, CheckpointRecord};
use super::git_head::GitHead;
use super::left_running::may_be_alive;
use super::new_checkpoint::CapturedState;
use super::scan::Look;
use super::sign_of_life::{NEVER, SignOfLife};
use super::spans::ends;
use super::timeline::Timeline;
use crate::error::Result;
use crate::objects::ObjectId;
use crate::snapshot::edit::Edit;
use crate::snapshot::entry::{Node, Totals};
use crate::snapshot::scan::survey::Survey;
use crate::snapshot::{Difference, Snapshot};

impl Workspace {
    /// Returns whether a process died here and its turns and runs are not ended yet.
    pub(crate) fn has_dead(&self) -> Result<bool> {
        self.has_dead_activity()
    }

    /// Ends the turns and runs whose process died. The caller holds the snapshot lock. If it
    /// fails, all changes since may be theirs or the user's.
    pub(crate) fn end_dead(&self) -> Result<()> {
        let dead = self.dead()?;
        if dead.is_empty() {
            return Ok(());
        }
        let timeline = Timeline::read(self)?;
        let ended = ends(&timeline.checkpoints);
        let mut open: Vec<(DeadActivity, &Checkpoint)> = Vec::new();
        for one in dead {
            match timeline.index_of(one.start) {
                Some(start) if !ended.contains_key(&one.start) => {
                    open.push((one, &timeline.checkpoints[start]));
                }
                _ => self.forget_dead(&one),
            }
        }
        let Some(last) = timeline.checkpoints.last().filter(|_| !open.is_empty()) else {
            return Ok(());
        };
        open.sort_by_key(|(dead, _)| dead.sign.as_ref().map(|sign| sign.at));
        let present = self.store_present(last, Look::Quick, None)?;
        let from = open
            .iter()
            .filter_map(|(dead, _)| Some(dead.sign.as_ref()?.from));
        let from = from.min().unwrap_or(i64::MIN);
        let changes = ChangesSince::look(self, last, &present, from)?;
        let mut before = last.snapshot_id();
        for (dead, start) in open {
            let lived = dead.sign.as_ref().map_or(NEVER, SignOfLife::lived);
            let (id, totals) = changes.until(self, &lived)?;
            let state = (before, id, totals);
            self.end_one((start, last), dead.sign.as_ref(), state, &present)?;
            self.forget_dead(&dead);
            before = id;
        }
        Ok(())
    }

    /// Records the end of a turn or run whose process died.
    fn end_one(
        &self,
        (start, last): (&Checkpoint, &Checkpoint),
        sign: Option<&SignOfLife>,
        (before, id, totals): (ObjectId, ObjectId, Totals),
        present: &CapturedState,
    ) -> Result<()> {
        let now = (self.store().now(), self.new_checkpoint_id()?);
        let place = start.session().map(|place| {
            let now = self.store().session_place(&place.id);
            now.unwrap_or_else(|_| place.clone())
        });
        // What was in it when it began is not known any more, but what is gone as a whole is.
        let ended = self.open_snapshot(&id)?;
        let unprotected = self.unprotected_since(start.id(), &ended, &Survey::default());
        let record = CheckpointRecord {
            session: place,
            agent: start.agent().map(AgentPlace::without_text),
            of: Some(start.id()),
            about: start.record.about.clone(),
            changed: self.count_changes(&before, &id)?,
            skipped: present.skipped.clone(),
            included: last.included().to_vec(),
            unprotected,
            git: GitHead::read(self.root()),
            left: may_be_alive(Some(last), Vec::new()),
            last_seen: Some(sign.and_then(SignOfLife::timestamp).unwrap_or(start.at())),
            ..CheckpointRecord::new(now, CheckpointReason::Interrupted, (id, totals))
        };
        self.append(CHECKPOINT, &record).map(drop)
    }

    /// Stores a snapshot in which some paths are as they were in an earlier one. It is durable
    /// when this returns.
    pub(crate) fn store_with_old<'p>(
        &self,
        (before, after): (&Snapshot, &Snapshot),
        paths: impl IntoIterator<Item = &'p Path>,
    ) -> Result<(ObjectId, Totals)> {
        let mut edits = BTreeMap::new();
        for path in paths {
            // The path keeps the directories that it is in.
            for dir in path.ancestors().skip(1) {
                let is_dir = |node: &Option<Node>| matches!(node, Some(Node::Dir(_)));
                if let Some(Node::Dir(was)) = before.walk_down(dir)?
                    && !is_dir(&after.walk_down(dir)?)
                {
                    edits.entry(dir.to_owned()).or_insert(Edit::Dir(was.mode));
                }
            }
            let edit = match before.walk_down(path)? {
                Some(Node::Dir(was)) => Edit::Dir(was.mode),
                Some(node) => Edit::Put(node),
                None => Edit::Remove,
            };
            edits.insert(path.to_owned(), edit);
        }
        self.store_edited(after, &edits)
    }
}

/// What changed since a checkpoint, and when.
struct ChangesSince {
    before: Snapshot,
    after: Snapshot,
    /// Each with its time in milliseconds, if the system says.
    changes: Vec<(Difference, Option<i64>)>,
}

impl ChangesSince {
    /// `from` is when the first of the turns and runs began.
    fn look(
        workspace: &Workspace,
        last: &Checkpoint,
        present: &CapturedState,
        from: i64,
    ) -> Result<Self> {
        let before = last.snapshot()?;
        let after = workspace.open_snapshot(&present.id)?;
        let changes = before.differences(&after, None)?.into_iter();
        let root = workspace.root();
        Ok(Self {
            changes: changes
                .map(|change| {
                    let at = changed_ms(root, &change.path, from);
                    (change, at)
                })
                .collect(),
            before,
            after,
        })
    }

    /// Stores the state with only the changes of a time.
    fn until(
        &self,
        workspace: &Workspace,
        times: &RangeInclusive<i64>,
    ) -> Result<(ObjectId, Totals)> {
        let is_then = |at: &Option<i64>| at.is_some_and(|at| times.contains(&at));
        let then = self.changes.iter().filter(|(_, at)| is_then(at));
        let then: BTreeSet<&Path> = then.map(|(change, _)| change.path.as_path()).collect();
        // A directory stays for what is in it: its own time changes with every name.
        let is_around = |path: &Path| {
            let after = (Bound::Excluded(path), Bound::Unbounded);
            let next = then.range::<Path, _>(after).next();
            next.is_some_and(|next| next.starts_with(path))
        };
        let is_old = |change: &&Difference| {
            let is_dir = matches!(change.after, Some(Node::Dir(_)));
            let is_then = then.contains(change.path.as_path());
            !is_then && (!is_dir || !is_around(&change.path))
        };
        let old = self.changes.iter().map(|(change, _)| change).filter(is_old);
        let old: Vec<&Path> = old.map(|change| change.path.as_path()).collect();
        workspace.store_with_old((&self.before, &self.after), old)
    }
}

/// Returns when a path changed last, by the time that the system sets and programs cannot. For
/// a path that is gone, that is the time of the directory that it was in. A path that is older
/// than `from` was moved with a directory above it.
fn changed_ms(root: &Path, path: &Path, from: i64) -> Option<i64> {
    let mut there = path
        .ancestors()
        .map(|path| (path, times_ms(&root.join(path))));
    let (path, (changed, _)) = there.find_map(|(path, times)| Some((path, times?)))?;
    let is_old = changed < from;
    let dirs = path.ancestors().skip(1).filter(|dir| *dir != Path::new(""));
    let moved = dirs.filter_map(|dir| {
        let (changed, written) = times_ms(&root.join(dir))?;
        // A new name in a directory sets both times. Only one is set if the directory itself
        // was moved, and all that is in it with it.
        (changed != written || is_old).then_some(changed)
    });
    moved.chain([changed]).max()
}

/// Returns when a file was changed in any way, and when its content was.
#[allow(
    clippy::unnecessary_cast,
    reason = "the fields' types differ between platforms"
)]
fn times_ms(path: &Path) -> Option<(i64, i64)> {
    let stat = rustix::fs::lstat(path).ok()?;
    let millis = |seconds: i64, nanos: i64| Some(seconds.checked_mul(1000)? + nanos / 1_000_000);
    Some((
        millis(stat.st_ctime as i64, stat.st_ctime_nsec as i64)?,
        millis(stat.st_mtime as i64, stat.st_mtime_nsec as i64)?,
    ))
}
