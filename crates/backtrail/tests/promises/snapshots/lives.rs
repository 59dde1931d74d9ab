//! Random lives of directories: whatever is done to one, every snapshot is what it
//! was, and every diff is the truth (F12, F13, F18).
//!
//! `BACKTRAIL_TEST_LIVES` sets how many there are, `BACKTRAIL_TEST_SEED` where the
//! seeds begin. A failing life is told by its seed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backtrail::snapshot::{Progress, ScanProgress, ScanStage};
use backtrail::{Checkpoint, CheckpointOptions, Snapshot, Store, Workspace};
use tempfile::TempDir;

use super::desk::{Desk, check_checkpoint};
use super::tree::{Tree, read_tree, stored};
use super::truth::check_diff;
use super::world::{World, rewrite_unnoticed};

const LIVES: u64 = 24;
const ROUNDS: usize = 6;

fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap())
}

#[test]
fn f12_f13_f18_whatever_is_done_to_a_directory_snapshots_equal_it_and_diffs_are_the_truth() {
    let first = setting("BACKTRAIL_TEST_SEED", 0);
    let store = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(store.path().join("store")).unwrap();
    let lives = setting("BACKTRAIL_TEST_LIVES", LIVES);
    let mut lives: Vec<Life> = (first..first + lives)
        .map(|seed| Life::new(&store, seed))
        .collect();
    // In turns, so that files come of age in between and the stat cache is used.
    for _ in 0..ROUNDS {
        for life in &mut lives {
            if let Err(wrong) = life.live() {
                let log = life.world.log.join("\n  ");
                panic!("seed {}: {wrong}\n  {log}", life.seed);
            }
        }
    }
    for life in &lives {
        life.check_any_two().unwrap();
    }
    let report = store.verify_snapshots().unwrap();
    assert!(report.is_ok(), "{report:#?}");
    assert_eq!(report.checkpoints, (lives.len() * ROUNDS) as u64);
}

/// A directory and what is kept of it.
struct Life {
    seed: u64,
    _dir: TempDir,
    world: World,
    workspace: Workspace,
    past: Vec<(Checkpoint, Snapshot, Tree)>,
}

impl Life {
    fn new(store: &Store, seed: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("work");
        fs::create_dir(&root).unwrap();
        let world = World::new(&root, seed);
        Self {
            seed,
            workspace: store.workspace(&root).unwrap(),
            _dir: dir,
            world,
            past: Vec::new(),
        }
    }

    /// Makes a checkpoint, changes something at once, and looks.
    fn live(&mut self) -> Result<(), String> {
        let told = |error: backtrail::Error| error.to_string();
        let tree = read_tree(&self.world.root);
        self.world.log.push("checkpoint".to_owned());
        let checkpoint = self.workspace.checkpoint(CheckpointOptions::new());
        let checkpoint = checkpoint.map_err(told)?;
        check_checkpoint(&checkpoint, &tree)?;
        let snapshot = checkpoint.snapshot().map_err(told)?;
        if let Some((_, before, old)) = self.past.last() {
            let diff = before.diff(&snapshot).map_err(told)?;
            check_diff(&diff, old, &tree)?;
            if checkpoint.changed() != diff.changes().len() as u64 {
                return Err(format!("{} changes are counted", checkpoint.changed()));
            }
            if (before.id() == snapshot.id()) != (*old == tree) {
                return Err("equal states have equal names, and no others".to_owned());
            }
        }
        self.past.push((checkpoint, snapshot, tree));
        self.world.change();
        let tree = read_tree(&self.world.root);
        let (_, before, old) = &self.past[self.world.dice.below(self.past.len())];
        let present = self.workspace.changes_since(before).map_err(told)?;
        check_diff(&present, old, &tree).map_err(|wrong| format!("looking: {wrong}"))
    }

    /// Compares each with each, forwards and backwards, as they are read anew.
    fn check_any_two(&self) -> Result<(), String> {
        for (checkpoint, before, old) in &self.past {
            check_checkpoint(checkpoint, old)?;
            for (_, after, new) in &self.past {
                let diff = before.diff(after).map_err(|error| error.to_string())?;
                check_diff(&diff, old, new)
                    .map_err(|wrong| format!("seed {}: {wrong}", self.seed))?;
            }
        }
        Ok(())
    }
}

/// Lets files come of age with a life or two of their own, so that the cache is
/// trusted with them.
fn until_of_age(root: &Path) {
    let store = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(store.path().join("store")).unwrap();
    let age = |path: &Path| {
        let since = fs::metadata(path).unwrap().modified().unwrap();
        SystemTime::now().duration_since(since).unwrap_or_default()
    };
    let mut seed = 1_000_000;
    while age(root) < Duration::from_millis(2_100) {
        Life::new(&store, seed).live().unwrap();
        seed += 1;
    }
}

#[test]
fn the_stat_cache_never_hides_a_change_of_files_that_it_is_trusted_with() {
    let desk = Desk::new();
    for n in 0..30 {
        desk.write(&format!("d{}/f{n}", n % 3), format!("content {n}"));
    }
    desk.write("marker", "");
    desk.keep();
    until_of_age(&desk.path("marker"));
    // All of it is hashed again and old enough to be trusted from now on.
    let trusted = desk.keep();
    assert_eq!(trusted.changed(), 0);
    assert_eq!(desk.keep().snapshot_id(), trusted.snapshot_id());

    let mut changed = 0;
    for n in 0..10 {
        rewrite_unnoticed(&desk.path(&format!("d{}/f{n}", n % 3)));
        changed += 1;
        let looked = desk.workspace.changes_since(&trusted.snapshot().unwrap());
        assert_eq!(looked.unwrap().changes().len(), changed, "looking");
        assert_eq!(desk.keep().changed(), 1, "same size, old mtime");
    }
    // Two of one size change places: neither's content nor times are new.
    let (a, b) = (desk.path("d0/f12"), desk.path("d2/f14"));
    let between = desk.path("between");
    fs::rename(&a, &between).unwrap();
    fs::rename(&b, &a).unwrap();
    fs::rename(&between, &b).unwrap();
    assert_eq!(desk.keep().changed(), 2, "swapped");
    // Within the tick of the last one, again and again.
    let mut last = desk.keep();
    for n in 0..50_u8 {
        fs::write(desk.path("d1/f10"), [b'0' + n % 10, b'0' + n / 10]).unwrap();
        let next = desk.keep();
        assert_ne!(next.snapshot_id(), last.snapshot_id(), "within a tick: {n}");
        last = next;
    }
    desk.verify();
}

/// Rewrites files whenever some have been read.
#[derive(Debug)]
struct Meddler(Vec<PathBuf>);

impl Progress for Meddler {
    fn update(&self, at: ScanProgress) {
        if at.stage == ScanStage::Reading {
            self.0.iter().for_each(|path| rewrite_unnoticed(path));
        }
    }
}

#[test]
fn a_file_that_changes_as_soon_as_it_was_read_is_seen_by_the_next_snapshot() {
    let desk = Desk::new();
    let names: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
    let paths: Vec<PathBuf> = names.iter().map(|name| desk.path(name)).collect();
    for round in 0..20 {
        for name in &names {
            desk.write(name, [b'a' + round, name.len() as u8]);
        }
        let before = read_tree(desk.root());
        let meddler = Arc::new(Meddler(paths.clone()));
        let options = CheckpointOptions::new().progress(meddler);
        let kept = desk.workspace.checkpoint(options).unwrap();
        let after = read_tree(desk.root());
        assert_ne!(before, after, "it was meddled with");
        // Each file is as it was at one of the moments, never a bit of both.
        for (path, thing) in stored(&kept.snapshot().unwrap()) {
            let was = [before.get(&path), after.get(&path)].contains(&Some(&thing));
            assert!(was, "{path:?} never was {thing:?}");
        }
        desk.keep();
    }
}
