//! A fork into a directory that is interrupted anywhere, or fails anywhere: the
//! directory is not there, or whole; the source and the store are as they should be;
//! and the next fork works and clears away what was left.

use std::fs::{self, File};
use std::path::PathBuf;

use backtrail::rewind::ForkInto;
use backtrail::{Point, Store, Workspace};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage, When};
use tempfile::TempDir;

use super::into::names_in;
use crate::rewind::kit::{Checked, HOME, options, quick_dir, told, turn, verify, write};
use crate::snapshots::tree::{Tree, read_tree, same};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// A workspace with a turn in it, as it is before the fork.
struct Scene {
    dir: TempDir,
    memory: MemoryStorage,
    tree: Tree,
}

impl Scene {
    fn new() -> Self {
        let dir = quick_dir();
        let memory = MemoryStorage::new();
        let store = options(1)
            .storage(memory.clone())
            .open_or_create(HOME)
            .unwrap();
        let root = dir.path().join("work");
        fs::create_dir(&root).unwrap();
        let workspace = store.workspace(&root).unwrap();
        write(&root, "a", "one\n");
        write(&root, "d/e/f", "deep\n");
        fs::create_dir(root.join("empty")).unwrap();
        std::os::unix::fs::symlink("a", root.join("link")).unwrap();
        let session = backtrail::SessionOptions::new().workspace(&workspace);
        let session = store.create_session(session).unwrap();
        turn(&session, "first", || write(&root, "a", "two\n"));
        session.close().unwrap();
        let tree = read_tree(&root);
        Self { dir, memory, tree }
    }

    fn open(&self, memory: MemoryStorage) -> (Store, Workspace) {
        let store = options(77).storage(memory).open(HOME).unwrap();
        let workspace = store.workspace(&self.dir.path().join("work")).unwrap();
        (store, workspace)
    }

    fn target(&self, n: u64) -> PathBuf {
        self.dir.path().join(format!("fork-{n}"))
    }

    /// Looks whether all is as it may be after an attempt, and forks once more.
    fn check(&self, n: u64, memory: MemoryStorage, succeeded: bool, cleared: bool) -> Checked {
        let (store, workspace) = self.open(memory);
        same(&read_tree(&self.dir.path().join("work")), &self.tree)?;
        let target = self.target(n);
        let there = fs::symlink_metadata(&target).is_ok();
        if succeeded && !there {
            return Err("it was done, and is not there".to_owned());
        }
        if there {
            same(&read_tree(&target), &self.tree)?;
        }
        let strays = || {
            names_in(self.dir.path())
                .into_iter()
                .filter(|name| name.starts_with('.'))
        };
        if cleared && let Some(stray) = strays().next() {
            return Err(format!("{stray} is left"));
        }
        verify(&store)?;
        let next = self.dir.path().join("next");
        let forked = workspace.fork_into(&Point::last(), &next, ForkInto::new());
        let forked = forked.map_err(told)?;
        same(&read_tree(&next), &self.tree)?;
        drop(forked);
        if let Some(stray) = strays().next() {
            return Err(format!("{stray} is still left"));
        }
        verify(&store)?;
        fs::remove_dir_all(&next).unwrap();
        if there {
            fs::remove_dir_all(&target).unwrap();
        }
        Ok(())
    }
}

/// Lets a fault come at every operation in turn; returns how many there were.
fn at_every_operation(fault: impl Fn(u64) -> Fault, crashes: bool, power: bool) -> u64 {
    let scene = Scene::new();
    for n in 0.. {
        let memory = scene.memory.kill();
        let disk = FaultyStorage::new(memory.clone()).counting(Count::Writes);
        let store = options(n + 100)
            .storage(disk.clone())
            .touch_hook(disk.clone());
        let store = store.open(HOME).unwrap();
        let workspace = store.workspace(&scene.dir.path().join("work")).unwrap();
        disk.arm(n, fault(n));
        let outcome = workspace.fork_into(&Point::last(), &scene.target(n), ForkInto::new());
        let succeeded = outcome.is_ok();
        let said = format!("{:?}", outcome.map(drop));
        let fired = disk.fired();
        drop((workspace, store));
        let after = match power {
            true => memory.crash(Loss::Unsynced),
            false => memory.kill(),
        };
        let checked = scene.check(n, after, succeeded, !crashes);
        checked.unwrap_or_else(|wrong| {
            let log = disk.log();
            let last = log[log.len().saturating_sub(12)..].join("\n  ");
            panic!("operation {n}: {wrong}\n{said}\n  {last}")
        });
        if !fired {
            assert!(succeeded, "{said}");
            return n;
        }
    }
    unreachable!("a fork ends")
}

#[test]
fn a_fork_killed_at_any_operation_is_complete_or_absent_and_the_next_cleans_up() {
    let crash = |_| Fault::Crash { when: When::Before };
    let operations = at_every_operation(crash, true, false);
    assert!(operations > 30, "{operations}");
}

#[test]
fn a_store_that_loses_power_during_a_fork_is_intact_and_the_next_works() {
    let crash = |_| Fault::Crash { when: When::After };
    at_every_operation(crash, true, true);
}

#[test]
fn a_fork_that_fails_at_any_operation_leaves_nothing_half_done() {
    let errors = [EIO, ENOSPC];
    at_every_operation(|n| Fault::Error(errors[n as usize % 2]), false, false);
}

#[test]
fn a_fork_in_progress_is_not_cleaned_up_by_another() {
    let scene = Scene::new();
    let id = "00000000-0000-4000-8000-000000000000";
    let under_way = scene
        .dir
        .path()
        .join(format!(".backtrail-staging-fork-{id}"));
    fs::create_dir(&under_way).unwrap();
    fs::write(under_way.join("a"), "half").unwrap();
    let lock = File::open(&under_way).unwrap();
    lock.lock().unwrap();
    // Nor is what only looks a little like it.
    let other = scene.dir.path().join(".backtrail-staging-else");
    fs::create_dir(&other).unwrap();
    let link = scene.dir.path().join(".backtrail-staging-fork-link");
    std::os::unix::fs::symlink("work", &link).unwrap();
    let (_, workspace) = scene.open(scene.memory.kill());
    let fork = |n| workspace.fork_into(&Point::last(), &scene.target(n), ForkInto::new());
    fork(0).unwrap();
    assert_eq!(fs::read(under_way.join("a")).unwrap(), b"half");
    drop(lock);
    fork(1).unwrap();
    assert!(!under_way.exists(), "its process is gone");
    assert!(other.exists());
    assert!(fs::symlink_metadata(&link).is_ok());
    same(&read_tree(&scene.dir.path().join("work")), &scene.tree).unwrap();
}
