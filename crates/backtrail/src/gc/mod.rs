//! Keeping the store small: file states are dropped, and objects that nothing names are
//! removed.
//!
//! What must stay follows from the workspaces' trails alone. A drop is a record, durable
//! before the first object is removed. Objects are removed pack by pack, while no writer
//! relies on one that no record names; see `objects/sweep.rs`.

mod choose;
#[cfg(test)]
mod gc_tests;
mod mark;
mod report;
mod size;
mod trails;

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

pub use report::{DroppedStates, GcOptions, GcReport, KeptStates, SkippedPack, SkippedWorkspace};

use crate::error::Result;
use crate::ids::WorkspaceId;
use crate::objects::{LiveObjects, ObjectId, ObjectTable, SkipReason, Sweep, Swept};
use crate::store::Store;
use crate::time::Timestamp;
use crate::workspace::{DropReason, Workspace, by_id};
use choose::{FileVersion, KeepReason, StatesInUse, by_worth, states};
use mark::{Marked, mark_snapshot, unreadable};
use report::GcProgress;
use size::bytes_below;
use trails::Trails;

/// How many bytes an object takes in the indexes of a pack, at most: a commit and the seal
/// name it.
const INDEXED: u64 = 75;
/// How many bytes a drop record takes, and each checkpoint in it.
const DROP_RECORD: u64 = 512;
const DROPPED_CHECKPOINT: u64 = 48;
/// How many missing contents are counted, at most.
const MISSING: usize = 10_000;

impl Store {
    /// Plans a clean-up, and changes nothing.
    ///
    /// # Errors
    ///
    /// Fails with [`Corrupt`](crate::ErrorKind::Corrupt) where something cannot be read
    /// that may name objects.
    pub fn gc_plan(&self, options: &GcOptions) -> Result<GcPlan> {
        Ok(GcPlan {
            store: self.clone(),
            options: options.clone(),
            report: Collection::begin(self, options, Mode::Plan)?.run()?,
        })
    }

    /// Removes objects that no snapshot names. Where the options set a limit, the files of
    /// checkpoints are dropped first, oldest first: those around tool calls before all
    /// others, but never those of labelled checkpoints or of the newest of each session
    /// and workspace. The checkpoints themselves stay.
    ///
    /// One clean-up runs at a time; other work continues meanwhile.
    ///
    /// # Errors
    ///
    /// Fails with [`Locked`](crate::ErrorKind::Locked) while another clean-up runs, and
    /// with [`Corrupt`](crate::ErrorKind::Corrupt), before anything is removed, where
    /// something cannot be read that may name objects.
    pub fn gc(&self, options: &GcOptions) -> Result<GcReport> {
        let lock = self.lock_file("gc.lock")?;
        let _lock = lock.take(&self.holder(), "another gc is running in")?;
        // The files of a session that is being purged must not count as needed.
        self.clear_emptying()?;
        if options.drops() {
            // Nothing is dropped where what stays cannot be read.
            Collection::begin(self, options, Mode::Plan)?.rehearse()?;
        }
        Collection::begin(self, options, Mode::Apply)?.run()
    }

    /// Returns how many bytes the store has, as far as they can be read.
    pub fn bytes(&self) -> u64 {
        bytes_below(self.storage(), self.root())
    }
}

/// A clean-up that was planned.
#[derive(Debug)]
pub struct GcPlan {
    store: Store,
    options: GcOptions,
    report: GcReport,
}

impl GcPlan {
    /// Returns what the clean-up would do.
    pub fn report(&self) -> &GcReport {
        &self.report
    }

    /// Cleans up the store as it is now; see [`Store::gc`].
    ///
    /// # Errors
    ///
    /// Fails as [`Store::gc`] does.
    pub fn apply(self) -> Result<GcReport> {
        self.store.gc(&self.options)
    }
}

/// Whether a clean-up changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plan,
    Apply,
}

/// A clean-up under way.
struct Collection<'a> {
    store: &'a Store,
    options: &'a GcOptions,
    mode: Mode,
    table: ObjectTable,
    references: References,
    in_use: StatesInUse,
    report: GcReport,
}

/// Finds the objects that the workspaces' trails name.
struct References {
    store: Store,
    trails: Trails,
    /// Contents that are named and not stored.
    missing: HashSet<ObjectId>,
    progress: Option<Arc<GcProgress>>,
}

impl<'a> Collection<'a> {
    fn begin(store: &'a Store, options: &'a GcOptions, mode: Mode) -> Result<Self> {
        let mut trails = Trails::new(store);
        trails.catch_up()?;
        Ok(Self {
            store,
            options,
            mode,
            // After the trails: nothing is cleaned up where one cannot be read.
            table: match mode {
                Mode::Plan => store.objects().object_table()?,
                Mode::Apply => store.objects().clean_up()?,
            },
            references: References {
                store: store.clone(),
                trails,
                missing: HashSet::new(),
                progress: options.progress.clone(),
            },
            in_use: StatesInUse::read(store)?,
            report: GcReport {
                dry_run: mode == Mode::Plan,
                ..GcReport::default()
            },
        })
    }

    /// Checks that everything that stays can be read. Changes nothing.
    fn rehearse(mut self) -> Result<()> {
        self.drop_all()?;
        self.references.mark_all(&mut self.table)
    }

    /// Drops what is over the limits.
    fn drop_all(&mut self) -> Result<()> {
        if let Some(age) = self.options.older_than {
            self.drop_by_age(age)?;
        }
        match self.options.max_size {
            Some(bytes) => self.drop_by_size(bytes),
            None => Ok(()),
        }
    }

    fn run(mut self) -> Result<GcReport> {
        self.drop_all()?;
        self.references.mark_all(&mut self.table)?;
        let swept = match self.mode {
            Mode::Plan => self.table.sweep_plan()?,
            Mode::Apply => Sweep::run(&mut self.table, &mut self.references)?,
        };
        self.finish(swept)
    }

    fn finish(mut self, swept: Swept) -> Result<GcReport> {
        self.count_kept()?;
        let report = &mut self.report;
        report.packs_removed = swept.removed;
        report.packs_rewritten = swept.rewritten;
        report.objects = swept.objects;
        report.freed = swept.freed;
        report.missing = self.references.missing.len() as u64;
        let packs = swept.skipped.into_iter().map(|pack| SkippedPack {
            file: pack.path,
            damaged: match pack.reason {
                SkipReason::Busy => None,
                SkipReason::Damaged(id) => Some(id),
            },
        });
        report.skipped_packs = packs.collect();
        report.store_bytes = self.store.bytes();
        if self.mode == Mode::Plan {
            report.store_bytes = report.store_bytes.saturating_sub(report.freed);
        }
        let limit = self.options.max_size.unwrap_or(u64::MAX);
        report.over = report.store_bytes.saturating_sub(limit);
        Ok(self.report)
    }

    fn count_kept(&mut self) -> Result<()> {
        let states = self.states()?;
        let kept = &mut self.report.kept;
        kept.states = states.len() as u64;
        for state in &states {
            match state.kept_for {
                Some(KeepReason::Labelled) => kept.labelled += 1,
                Some(KeepReason::Newest) => kept.newest += 1,
                Some(KeepReason::InUse | KeepReason::Unknown) => kept.in_use += 1,
                None => {}
            }
        }
        Ok(())
    }

    /// Returns all states that were not dropped.
    fn states(&mut self) -> Result<Vec<FileVersion>> {
        let mut all = Vec::new();
        let ids: Vec<WorkspaceId> = self.references.trails.workspaces.keys().cloned().collect();
        for id in ids {
            all.extend(self.states_of(&id)?);
        }
        Ok(all)
    }

    fn states_of(&mut self, id: &WorkspaceId) -> Result<Vec<FileVersion>> {
        let Some(records) = self.references.trails.workspaces.get(id) else {
            return Ok(Vec::new());
        };
        if records.kept.is_empty() {
            return Ok(Vec::new());
        }
        let active = by_id(self.store, id)?.active()?;
        let active = active.into_iter().map(|activity| activity.checkpoint);
        self.in_use.active.extend(active);
        Ok(states(id, records, &self.in_use))
    }

    fn drop_by_age(&mut self, age: Duration) -> Result<()> {
        let moment = before(self.store.now(), age);
        let mut chosen = self.states()?;
        chosen.retain(|state| state.is_older_than(moment));
        self.drop_states(chosen, DropReason::Age)
    }

    /// Drops what is worth least, until the rest fits.
    fn drop_by_size(&mut self, limit: u64) -> Result<()> {
        let bytes = self.store.bytes();
        if bytes <= limit {
            return Ok(());
        }
        let rest = bytes.saturating_sub(self.store.objects().size()?);
        let mut states = self.states()?;
        let checkpoints: usize = states.iter().map(|state| state.checkpoints.len()).sum();
        let room =
            limit.saturating_sub(rest + DROP_RECORD + checkpoints as u64 * DROPPED_CHECKPOINT);
        by_worth(&mut states, self.store.now());
        let mut taken = 0;
        let mut chosen = Vec::new();
        for state in states {
            let may_go = state.kept_for.is_none();
            if may_go && !chosen.is_empty() {
                chosen.push(state);
                continue;
            }
            self.table.begin_trial();
            let named_by = format!("checkpoint {}", state.checkpoints[0].prefix(8));
            let marked = self
                .references
                .mark(&mut self.table, &state.snapshot, &named_by)?;
            let more = marked.bytes + marked.objects * INDEXED;
            let fits = !may_go || taken + more <= room;
            self.table.end_trial(fits);
            if fits {
                taken += more;
            } else {
                chosen.push(state);
            }
        }
        self.drop_states(chosen, DropReason::Size)
    }

    fn drop_states(&mut self, chosen: Vec<FileVersion>, reason: DropReason) -> Result<()> {
        let mut by_workspace: BTreeMap<WorkspaceId, HashSet<ObjectId>> = BTreeMap::new();
        for state in chosen {
            let snapshots = by_workspace.entry(state.workspace).or_default();
            snapshots.insert(state.snapshot);
        }
        for (id, snapshots) in by_workspace {
            let workspace = by_id(self.store, &id)?;
            self.drop_in(&workspace, &snapshots, reason)?;
        }
        Ok(())
    }

    /// Drops states of one workspace, as far as nothing needs them by now.
    fn drop_in(
        &mut self,
        workspace: &Workspace,
        snapshots: &HashSet<ObjectId>,
        reason: DropReason,
    ) -> Result<()> {
        let guard = match self.mode {
            Mode::Plan => None,
            Mode::Apply => Some(workspace.hold_snapshots(None)?),
        };
        if guard.is_some() {
            // An interrupted step is finished first: it may need what is dropped.
            if let Err(error) = workspace.recover_locked(None) {
                self.report.skipped_workspaces.push(SkippedWorkspace {
                    root: workspace.root().to_owned(),
                    error: error.to_string(),
                });
                return Ok(());
            }
            self.references.trails.catch_up_with(workspace.id())?;
        }
        let mut going = self.states_of(workspace.id())?;
        going.retain(|state| state.kept_for.is_none() && snapshots.contains(&state.snapshot));
        let Some(dropped) = summary(workspace, &going, reason) else {
            return Ok(());
        };
        let ids = going
            .iter()
            .flat_map(|state| state.checkpoints.iter().copied());
        let ids: Vec<_> = ids.collect();
        if self.mode == Mode::Plan {
            self.references.trails.pretend_drop(workspace.id(), ids);
        } else {
            workspace.drop_files(&ids, reason)?;
            self.references.trails.catch_up_with(workspace.id())?;
        }
        self.report.dropped.push(dropped);
        Ok(())
    }
}

/// Sums up dropped states; `None` where there are none.
fn summary(
    workspace: &Workspace,
    going: &[FileVersion],
    reason: DropReason,
) -> Option<DroppedStates> {
    let checkpoints = going.iter().map(|state| state.checkpoints.len() as u64);
    Some(DroppedStates {
        workspace: workspace.id().clone(),
        root: workspace.root().to_owned(),
        reason,
        states: going.len() as u64,
        checkpoints: checkpoints.sum(),
        oldest: going.iter().map(|state| state.oldest).min()?,
        newest: going.iter().map(|state| state.newest).max()?,
    })
}

/// Returns the moment that is `age` before another, or the first moment there is.
fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let millis = now.as_millis().saturating_sub(age);
    Timestamp::from_millis(millis).unwrap_or(Timestamp::MIN)
}

impl References {
    fn mark_all(&mut self, table: &mut ObjectTable) -> Result<()> {
        self.trails.catch_up()?;
        let ids = self.trails.workspaces.keys();
        let roots: Vec<_> = ids.flat_map(|id| self.trails.roots(id)).collect();
        for (n, root) in roots.iter().enumerate() {
            if let Some(progress) = &self.progress {
                progress(n as u64, roots.len() as u64);
            }
            self.mark(table, &root.snapshot, &root.named_by)?;
        }
        Ok(())
    }

    fn mark_roots(&mut self, table: &mut ObjectTable, id: &WorkspaceId) -> Result<()> {
        for root in self.trails.roots(id) {
            self.mark(table, &root.snapshot, &root.named_by)?;
        }
        Ok(())
    }

    fn mark(
        &mut self,
        table: &mut ObjectTable,
        snapshot: &ObjectId,
        named_by: &str,
    ) -> Result<Marked> {
        let mut missing = Vec::new();
        let marked = mark_snapshot(table, snapshot, &mut |id| missing.push(id));
        for id in missing {
            table.add_missing(id);
            if self.missing.len() < MISSING {
                self.missing.insert(id);
            }
        }
        marked.map_err(|error| unreadable(named_by, &error))
    }
}

impl LiveObjects for References {
    fn catch_up(&mut self, table: &mut ObjectTable) -> Result<()> {
        for id in self.trails.catch_up()? {
            self.mark_roots(table, &id)?;
        }
        Ok(())
    }

    fn wait_until_alone(&self) -> Result<Option<Box<dyn Any>>> {
        let alone = self.store.own_objects()?;
        Ok(alone.map(|alone| Box::new(alone) as Box<dyn Any>))
    }
}
