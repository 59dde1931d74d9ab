//! Keeping the store small: file states are let go, and objects that nothing names
//! are removed.
//!
//! What must stay follows from the workspaces' trails alone. Letting go is a record,
//! durable before the first object goes. Objects go by pack, while nobody relies on
//! one that no record names; see `objects/sweep.rs`.

mod choose;
#[cfg(test)]
mod gc_tests;
mod lock;
mod mark;
mod report;
mod size;
mod trails;

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

pub use report::{GcOptions, GcReport, KeptStates, LeftBehind, LetGoStates};

use crate::error::Result;
use crate::ids::WorkspaceId;
use crate::objects::{LiveObjects, ObjectId, ObjectTable, SkipReason, Sweep, Swept};
use crate::store::Store;
use crate::time::Timestamp;
use crate::workspace::{LetGoBecause, Workspace, by_id};
use choose::{Around, Never, State, by_worth, states};
use lock::GcLock;
use mark::{Marked, mark_snapshot, unreadable};
use size::bytes_below;
use trails::Trails;

/// What an object takes in the indexes of a pack, at the most: a commit and the seal
/// name it.
const INDEXED: u64 = 75;
/// What it takes to say that files were let go, and of one checkpoint.
const SAID: u64 = 512;
const SAID_OF_ONE: u64 = 48;
/// How many contents that are not stored are told apart.
const MISSING: usize = 10_000;

impl Store {
    /// Removes objects that no snapshot reaches. Where the options set a limit, file
    /// states are let go before, the oldest first: those around tool calls before
    /// all others; labelled ones and the newest of each session and workspace never.
    /// The checkpoints stay, and say so.
    ///
    /// Fails before anything is removed where something cannot be read that may name
    /// objects. One may run at a time; everybody else goes on meanwhile.
    pub fn gc(&self, options: &GcOptions) -> Result<GcReport> {
        let _lock = match options.dry_run {
            true => None,
            false => {
                let lock = GcLock::take(self)?;
                // What a purge was about to give up must not count as needed.
                self.clear_emptying()?;
                Some(lock)
            }
        };
        if !options.dry_run && options.lets_go() {
            // Nothing is given up where what stays cannot be read.
            let foretold = GcOptions {
                dry_run: true,
                ..options.clone()
            };
            Run::begin(self, &foretold)?.rehearse()?;
        }
        Run::begin(self, options)?.run()
    }

    /// Returns how many bytes the store has, as far as they can be looked at.
    pub fn bytes(&self) -> u64 {
        bytes_below(self.storage(), self.root())
    }
}

/// A clean-up under way.
struct Run<'a> {
    store: &'a Store,
    options: &'a GcOptions,
    table: ObjectTable,
    watching: Watching,
    around: Around,
    report: GcReport,
}

/// Knows which objects are referenced.
struct Watching {
    store: Store,
    trails: Trails,
    /// Contents that are not stored.
    missing: HashSet<ObjectId>,
}

impl<'a> Run<'a> {
    fn begin(store: &'a Store, options: &'a GcOptions) -> Result<Self> {
        let mut trails = Trails::new(store);
        trails.catch_up()?;
        Ok(Self {
            store,
            options,
            // Only now: nothing is tidied up where something cannot be read.
            table: match options.dry_run {
                true => store.objects().object_table()?,
                false => store.objects().clean_up()?,
            },
            watching: Watching {
                store: store.clone(),
                trails,
                missing: HashSet::new(),
            },
            around: Around::look(store)?,
            report: GcReport {
                dry_run: options.dry_run,
                ..GcReport::default()
            },
        })
    }

    /// Finds out that everything can be read that stays. Nothing is changed.
    fn rehearse(mut self) -> Result<()> {
        self.let_go_all()?;
        self.watching.mark_all(&mut self.table)
    }

    /// Lets go of what the limits say.
    fn let_go_all(&mut self) -> Result<()> {
        if let Some(age) = self.options.older_than {
            self.let_go_by_age(age)?;
        }
        match self.options.max_size {
            Some(bytes) => self.let_go_by_size(bytes),
            None => Ok(()),
        }
    }

    fn run(mut self) -> Result<GcReport> {
        self.let_go_all()?;
        self.watching.mark_all(&mut self.table)?;
        let swept = match self.options.dry_run {
            true => self.table.sweep_plan()?,
            false => Sweep::run(&mut self.table, &mut self.watching)?,
        };
        self.tell(swept)
    }

    fn tell(mut self, swept: Swept) -> Result<GcReport> {
        self.count_kept()?;
        let report = &mut self.report;
        report.packs_removed = swept.removed;
        report.packs_rewritten = swept.rewritten;
        report.objects = swept.objects;
        report.freed = swept.freed;
        report.missing = self.watching.missing.len() as u64;
        let left = swept.skipped.into_iter().map(|pack| LeftBehind {
            file: pack.path,
            damaged: match pack.reason {
                SkipReason::Busy => None,
                SkipReason::Damaged(id) => Some(id),
            },
        });
        report.left = left.collect();
        report.store_bytes = self.store.bytes();
        if self.options.dry_run {
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
            match state.never {
                Some(Never::Labelled) => kept.labelled += 1,
                Some(Never::Newest) => kept.newest += 1,
                Some(Never::InUse | Never::Unknown) => kept.in_use += 1,
                None => {}
            }
        }
        Ok(())
    }

    /// Returns all states that were not let go.
    fn states(&mut self) -> Result<Vec<State>> {
        let mut all = Vec::new();
        let ids: Vec<WorkspaceId> = self.watching.trails.workspaces.keys().cloned().collect();
        for id in ids {
            all.extend(self.states_of(&id)?);
        }
        Ok(all)
    }

    fn states_of(&mut self, id: &WorkspaceId) -> Result<Vec<State>> {
        let Some(told) = self.watching.trails.workspaces.get(id) else {
            return Ok(Vec::new());
        };
        if told.kept.is_empty() {
            return Ok(Vec::new());
        }
        let active = by_id(self.store, id)?.at_work()?;
        let active = active.into_iter().map(|activity| activity.checkpoint);
        self.around.active.extend(active);
        Ok(states(id, told, &self.around))
    }

    fn let_go_by_age(&mut self, age: Duration) -> Result<()> {
        let moment = before(self.store.now(), age);
        let mut chosen = self.states()?;
        chosen.retain(|state| state.is_older_than(moment));
        self.let_go(chosen, LetGoBecause::Age)
    }

    /// Lets go of what is worth least, until the rest fits in.
    fn let_go_by_size(&mut self, limit: u64) -> Result<()> {
        let bytes = self.store.bytes();
        if bytes <= limit {
            return Ok(());
        }
        let rest = bytes.saturating_sub(self.store.objects().size()?);
        let mut states = self.states()?;
        let checkpoints: usize = states.iter().map(|state| state.checkpoints.len()).sum();
        let room = limit.saturating_sub(rest + SAID + checkpoints as u64 * SAID_OF_ONE);
        by_worth(&mut states, self.store.now());
        let mut taken = 0;
        let mut chosen = Vec::new();
        for state in states {
            let may_go = state.never.is_none();
            if may_go && !chosen.is_empty() {
                chosen.push(state);
                continue;
            }
            self.table.begin_trial();
            let named_by = format!("checkpoint {}", state.checkpoints[0].prefix(8));
            let marked = self
                .watching
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
        self.let_go(chosen, LetGoBecause::Size)
    }

    fn let_go(&mut self, chosen: Vec<State>, because: LetGoBecause) -> Result<()> {
        let mut by_workspace: BTreeMap<WorkspaceId, HashSet<ObjectId>> = BTreeMap::new();
        for state in chosen {
            let snapshots = by_workspace.entry(state.workspace).or_default();
            snapshots.insert(state.snapshot);
        }
        for (id, snapshots) in by_workspace {
            let workspace = by_id(self.store, &id)?;
            self.let_go_in(&workspace, &snapshots, because)?;
        }
        Ok(())
    }

    /// Lets go of states of one workspace, those that may still go.
    fn let_go_in(
        &mut self,
        workspace: &Workspace,
        snapshots: &HashSet<ObjectId>,
        because: LetGoBecause,
    ) -> Result<()> {
        let lock = match self.options.dry_run {
            true => None,
            false => Some(workspace.snapshot_lock()?),
        };
        let _turn = lock.as_ref().map(|lock| lock.wait(None)).transpose()?;
        if lock.is_some() {
            // What was begun is ended first: it may need what is let go.
            if let Err(error) = workspace.recover_locked(None) {
                let skipped = (workspace.root().to_owned(), error.to_string());
                self.report.skipped.push(skipped);
                return Ok(());
            }
            self.watching.trails.catch_up_with(workspace.id())?;
        }
        let mut going = self.states_of(workspace.id())?;
        going.retain(|state| state.never.is_none() && snapshots.contains(&state.snapshot));
        let Some(told) = told(workspace, &going, because) else {
            return Ok(());
        };
        let ids = going
            .iter()
            .flat_map(|state| state.checkpoints.iter().copied());
        let ids: Vec<_> = ids.collect();
        if self.options.dry_run {
            self.watching.trails.pretend_let_go(workspace.id(), ids);
        } else {
            workspace.let_go(&ids, because)?;
            self.watching.trails.catch_up_with(workspace.id())?;
        }
        self.report.let_go.push(told);
        Ok(())
    }
}

/// Sums up states that are let go; `None` where there are none.
fn told(workspace: &Workspace, going: &[State], because: LetGoBecause) -> Option<LetGoStates> {
    let checkpoints = going.iter().map(|state| state.checkpoints.len() as u64);
    Some(LetGoStates {
        workspace: workspace.id().clone(),
        root: workspace.root().to_owned(),
        because,
        states: going.len() as u64,
        checkpoints: checkpoints.sum(),
        oldest: going.iter().map(|state| state.oldest).min()?,
        newest: going.iter().map(|state| state.newest).max()?,
    })
}

/// Returns the moment that lies so long before another; the first of all where the
/// calendar does not go back that far.
fn before(now: Timestamp, age: Duration) -> Timestamp {
    let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    let millis = now.as_millis().saturating_sub(age);
    Timestamp::from_millis(millis).unwrap_or(Timestamp::MIN)
}

impl Watching {
    fn mark_all(&mut self, table: &mut ObjectTable) -> Result<()> {
        self.trails.catch_up()?;
        let ids: Vec<WorkspaceId> = self.trails.workspaces.keys().cloned().collect();
        ids.iter().try_for_each(|id| self.mark_roots(table, id))
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

impl LiveObjects for Watching {
    fn catch_up(&mut self, table: &mut ObjectTable) -> Result<()> {
        for id in self.trails.catch_up()? {
            self.mark_roots(table, &id)?;
        }
        Ok(())
    }

    fn wait_until_alone(&self) -> Result<Option<Box<dyn Any>>> {
        let alone = self.store.alone_with_objects()?;
        Ok(alone.map(|alone| Box::new(alone) as Box<dyn Any>))
    }
}
