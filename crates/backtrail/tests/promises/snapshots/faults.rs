//! Nothing that goes wrong on the way costs a checkpoint that was acknowledged,
//! leaves one that is not complete, or lets a later one miss a change.
//!
//! The store is on a disk that fails, tears, stops and loses; the workspace is a
//! real directory. One run makes three checkpoints with changes in between; the
//! fault comes at every operation in turn, until there are no more.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use backtrail::verify::SnapshotsReport;
use backtrail::{
    CheckpointId, CheckpointOptions, Message, Reason, Result, SessionOptions, Store, StoreOptions,
    Workspace,
};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage, When};
use tempfile::TempDir;

use super::tree::{Tree, read_tree, same, stored};

const HOME: &str = "/store-in-memory";
const LOSSES: [Loss; 4] = [
    Loss::Unsynced,
    Loss::Nothing,
    Loss::Tail { keep_bytes: 100 },
    Loss::Shuffled { seed: 7 },
];

/// A workspace that changes in the same way every time.
struct Stage {
    dir: TempDir,
    /// What it was in each state.
    trees: HashMap<usize, Tree>,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        Self {
            dir,
            trees: HashMap::new(),
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Puts the workspace into a state, whichever it was in before.
    fn set(&mut self, state: usize) -> Tree {
        let root = self.root();
        fs::remove_dir_all(&root).unwrap();
        fs::create_dir_all(root.join("dir/deep")).unwrap();
        fs::write(root.join("same"), "in every state").unwrap();
        fs::write(root.join("dir/other"), format!("in state {state}")).unwrap();
        fs::write(root.join(format!("dir/deep/{state}")), "here once").unwrap();
        symlink(format!("to {state}"), root.join("link")).unwrap();
        if state == 2 {
            // In chunks, and more than one write holds.
            let noise = (0..1_200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8);
            fs::write(root.join("large"), noise.collect::<Vec<u8>>()).unwrap();
        }
        let tree = read_tree(&root);
        self.trees.insert(state, tree.clone());
        tree
    }
}

/// What was acknowledged: each checkpoint with the state that it is of.
type Acknowledged = Vec<(CheckpointId, usize)>;

fn open(storage: impl backtrail::Storage) -> Result<Store> {
    StoreOptions::new().storage(storage).open_or_create(HOME)
}

fn keep(workspace: &Workspace) -> Result<CheckpointId> {
    let options = CheckpointOptions::new().unlimited();
    workspace.checkpoint(options).map(|kept| kept.id())
}

/// Does what goes wrong somewhere: each step whether or not the one before failed,
/// and all of it on new handles after a failure.
fn act(stage: &mut Stage, disk: &FaultyStorage) -> Acknowledged {
    let mut acknowledged = Vec::new();
    for state in 1..=3 {
        stage.set(state);
        let kept = (|| {
            let store = open(disk.clone())?;
            let workspace = store.workspace(&stage.root())?;
            let id = keep(&workspace)?;
            acknowledged.push((id, state));
            let session = store.create_session(SessionOptions::new().workspace(&workspace))?;
            session.append(Message::user_text("said"))?;
            session.close()
        })();
        kept.ok();
    }
    acknowledged
}

/// Whether what was being written when the machine stopped may lie about.
#[derive(Clone, Copy, PartialEq)]
enum Rest {
    None,
    Unfinished,
    Anything,
}

fn check_report(report: &SnapshotsReport, rest: Rest) -> std::result::Result<(), String> {
    let allowed = |reason: &Reason| match rest {
        Rest::None => false,
        Rest::Unfinished => *reason == Reason::Unfinished,
        Rest::Anything => true,
    };
    let trails = report.trails.iter();
    let mut damages = trails.flat_map(|(_, report)| report.damage.first());
    match damages.find(|damage| !allowed(&damage.reason)) {
        Some(damage) => return Err(format!("a trail is damaged: {damage}")),
        None if !report.incomplete.is_empty() => return Err(format!("{:?}", report.incomplete)),
        None => {}
    }
    // Bytes that were never synced may be anything, and nobody names them.
    if report.damaged > 0 && rest != Rest::Anything {
        return Err(format!("packs are damaged: {:?}", report.damage));
    }
    Ok(())
}

/// Checks what the next process finds, and that it goes on.
fn check(
    stage: &mut Stage,
    disk: &MemoryStorage,
    acknowledged: &Acknowledged,
    rest: Rest,
) -> std::result::Result<(), String> {
    let told = |error: backtrail::Error| format!("{error:?}");
    let store = open(disk.clone()).map_err(told)?;
    check_report(&store.verify_snapshots().map_err(told)?, rest)?;
    let workspace = store.workspace(&stage.root()).map_err(told)?;
    check_past(stage, &workspace, acknowledged)?;
    // The next ones work, are right, and see what changed.
    for state in [3, 4, 4] {
        let tree = stage.set(state);
        keep(&workspace).map_err(told)?;
        let kept = workspace.last_checkpoint().map_err(told)?.unwrap();
        let snapshot = kept.snapshot().map_err(told)?;
        same(&stored(&snapshot), &tree)?;
    }
    check_past(stage, &workspace, acknowledged)?;
    let rest = match rest {
        Rest::Anything => Rest::Anything,
        _ => Rest::None,
    };
    check_report(&store.verify_snapshots().map_err(told)?, rest)?;
    for id in store.sessions().map_err(told)? {
        let report = store.read_session(&id).map_err(told)?.verify();
        let damage = report.map_err(told)?.damage;
        let bad = |reason: &Reason| rest != Rest::Anything && *reason != Reason::Unfinished;
        if let Some(damage) = damage.first().iter().find(|damage| bad(&damage.reason)) {
            return Err(format!("a session is damaged: {damage}"));
        }
    }
    Ok(())
}

/// Checks that all that was acknowledged is there, and all that is there is
/// complete and was so once.
fn check_past(
    stage: &Stage,
    workspace: &Workspace,
    acknowledged: &Acknowledged,
) -> std::result::Result<(), String> {
    let told = |error: backtrail::Error| format!("{error:?}");
    let mut found = Vec::new();
    for kept in workspace.checkpoints().map_err(told)? {
        let kept = kept.map_err(told)?;
        let tree = stored(&kept.snapshot().map_err(told)?);
        let state = stage.trees.iter().find(|(_, known)| **known == tree);
        let Some((state, _)) = state else {
            return Err(format!("{} never was so", kept.id()));
        };
        found.push((kept.id(), *state));
    }
    let mut rest = found.iter();
    for kept in acknowledged {
        if !rest.any(|found| found == kept) {
            return Err(format!("{kept:?} was acknowledged, and {found:?} is there"));
        }
    }
    Ok(())
}

/// Lets a fault come at every operation in turn, and returns how many there were.
fn at_every_operation(count: Count, fault: Fault, then: impl Fn(u64) -> Vec<(End, Rest)>) -> u64 {
    let mut stage = Stage::new();
    for n in 0.. {
        let memory = MemoryStorage::new();
        let disk = FaultyStorage::new(memory.clone()).counting(count);
        disk.arm(n, fault);
        let acknowledged = act(&mut stage, &disk);
        for (end, rest) in then(n) {
            let after = match end {
                End::Kill => memory.kill(),
                End::Power(loss) => memory.crash(loss),
            };
            if let Err(wrong) = check(&mut stage, &after, &acknowledged, rest) {
                let log = disk.log().join("\n  ");
                panic!("{fault:?} at {n}, {end:?}: {wrong}\n  {log}");
            }
        }
        if !disk.fired() {
            assert_eq!(acknowledged.len(), 3, "without a fault all goes well");
            return n;
        }
    }
    unreachable!("an act ends")
}

/// How it goes on after the fault.
#[derive(Debug, Clone, Copy)]
enum End {
    Kill,
    Power(Loss),
}

fn kill(_: u64) -> Vec<(End, Rest)> {
    vec![(End::Kill, Rest::Unfinished)]
}

#[test]
fn any_operation_may_fail_and_no_acknowledged_checkpoint_is_lost_or_wrong() {
    let operations = at_every_operation(Count::All, Fault::Error(5), kill);
    assert!(operations > 150, "{operations}");
    at_every_operation(Count::Writes, Fault::Error(28), kill);
}

#[test]
fn a_disk_that_fails_from_some_moment_on_costs_nothing_acknowledged() {
    at_every_operation(Count::Writes, Fault::ErrorFrom(28), kill);
}

#[test]
fn a_process_killed_at_any_step_leaves_every_checkpoint_complete() {
    for when in [When::Before, When::After] {
        let operations = at_every_operation(Count::Writes, Fault::Crash { when }, kill);
        assert!(operations > 50, "{operations}");
    }
    let tear = Fault::Tear {
        numerator: 1,
        denominator: 2,
    };
    at_every_operation(Count::Writes, tear, kill);
}

#[test]
fn an_acknowledged_checkpoint_survives_a_power_cut_at_any_step() {
    let crash = Fault::Crash { when: When::After };
    at_every_operation(Count::Writes, crash, |n| {
        let loss = match LOSSES[n as usize % LOSSES.len()] {
            Loss::Shuffled { .. } => Loss::Shuffled { seed: n },
            loss => loss,
        };
        let worst = (End::Power(Loss::Unsynced), Rest::Unfinished);
        let rest = match loss {
            Loss::Shuffled { .. } => Rest::Anything,
            _ => Rest::Unfinished,
        };
        vec![worst, (End::Power(loss), rest)]
    });
}

/// What a cache says is relied on only where its files' times are old, as those of
/// this crate's own sources are.
#[test]
fn a_cache_never_promises_objects_that_a_crash_took() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/trail");
    let expected = read_tree(&root);
    let mut used = false;
    for n in 0.. {
        let memory = MemoryStorage::new();
        let disk = FaultyStorage::new(memory.clone());
        disk.arm(n, Fault::Crash { when: When::After });
        let made = open(disk.clone())
            .and_then(|store| store.workspace(&root))
            .and_then(|workspace| keep(&workspace));
        let shuffled = (0..8).map(|seed| memory.crash(Loss::Shuffled { seed }));
        let others = [memory.kill(), memory.crash(Loss::Unsynced)];
        for after in others.into_iter().chain(shuffled) {
            let store = open(after).unwrap();
            let workspace = store.workspace(&root).unwrap();
            keep(&workspace).unwrap();
            let last = workspace.last_checkpoint().unwrap().unwrap();
            let found = stored(&last.snapshot().unwrap());
            let log = || disk.log().join("\n  ");
            same(&found, &expected).unwrap_or_else(|wrong| panic!("{n}: {wrong}\n  {}", log()));
            let report = store.verify_snapshots().unwrap();
            assert!(
                report.incomplete.is_empty(),
                "{n}: {report:#?}\n  {}",
                log()
            );
        }
        used |= disk.log().iter().any(|line| line.contains("derived"));
        if !disk.fired() {
            made.unwrap();
            assert!(used, "a cache was written");
            return;
        }
    }
}
