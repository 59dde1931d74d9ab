//! A rewind, restore, undo or redo that is interrupted anywhere, or that fails
//! anywhere: files and conversation are all old or all new after the next command,
//! the store is whole, and a second attempt works (F15).
//!
//! What is done to the workspace's files and what is done to the store's is counted
//! together; the fault comes at every operation in turn, until there are no more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backtrail::rewind::{Touch, TouchHook};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, When};

use super::kit::{Checked, HOME};
use super::scene::{ACTS, Act, Scene, With, next_process, open};

const EIO: i32 = 5;
const EACCES: i32 = 13;
const EXDEV: i32 = 18;
const ENOSPC: i32 = 28;

/// What comes after the fault.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    /// Another process.
    Another,
    /// The same one continues.
    GoesOn,
    /// The power goes, and takes what the store had not synced.
    Power,
}

/// Lets the move meet a fault at operation `n`; `None` where it never came to that.
fn meet(scene: &Scene, n: u64, count: Count, fault: Fault, then: Then) -> Checked<Option<()>> {
    let memory = scene.again();
    let disk = FaultyStorage::new(memory.clone()).counting(count);
    let options = next_process().storage(disk.clone());
    let store = options.touch_hook(disk.clone()).open(HOME).unwrap();
    let workspace = scene.workspace(&store)?;
    disk.arm(n, fault);
    let outcome = scene.perform(&workspace);
    let fired = disk.fired();
    let context = || {
        let log = disk.log();
        let last = log[log.len().saturating_sub(12)..].join("\n  ");
        format!("{:?} {fault:?} at {n}: {outcome:?}\n  {last}", scene.act)
    };
    let checked = match then {
        Then::GoesOn => {
            disk.disarm();
            scene.check_after(&store, outcome.is_ok())
        }
        Then::Another | Then::Power => {
            drop((workspace, store));
            let after = match then {
                Then::Power => memory.crash(Loss::Unsynced),
                _ => memory.kill(),
            };
            scene.check_after(&open(after), outcome.is_ok())
        }
    };
    checked.map_err(|wrong| format!("{wrong}\n{}", context()))?;
    Ok(fired.then_some(()))
}

/// Lets a fault come at every operation in turn, and returns how many there were.
fn at_every_operation(act: Act, count: Count, fault: impl Fn(u64) -> Fault, then: Then) -> u64 {
    let scene = Scene::new(act);
    for n in 0.. {
        match meet(&scene, n, count, fault(n), then) {
            Ok(Some(())) => {}
            Ok(None) => return n,
            Err(wrong) => panic!("{wrong}"),
        }
    }
    unreachable!("a move ends")
}

#[test]
fn f15_a_move_killed_at_any_operation_is_done_or_not_done() {
    for act in ACTS {
        let crash = |_| Fault::Crash { when: When::Before };
        let operations = at_every_operation(act, Count::Writes, crash, Then::Another);
        assert!(operations > 40, "{act:?} {operations}");
    }
}

#[test]
fn f15_a_record_torn_by_a_kill_leaves_a_move_done_or_not_done() {
    for act in [Act::Rewind(With::Both), Act::Undo(With::Both)] {
        let tear = |n| Fault::Tear {
            numerator: 1 + n as u32 % 2,
            denominator: 3,
        };
        at_every_operation(act, Count::Writes, tear, Then::Another);
    }
}

/// What the trail says of a move is durable before the first file is touched, and
/// what is there is in the store before that.
#[test]
fn f15_a_store_that_loses_power_at_any_operation_knows_what_was_begun() {
    for act in [Act::Rewind(With::Both), Act::Undo(With::Files)] {
        let crash = |_| Fault::Crash { when: When::After };
        at_every_operation(act, Count::Writes, crash, Then::Power);
    }
}

#[test]
fn f15_any_operation_may_fail_once_and_a_move_is_done_or_not_done() {
    let errors = [EIO, ENOSPC, EACCES, EXDEV];
    for (n, act) in ACTS.into_iter().enumerate() {
        let error = |at: u64| Fault::Error(errors[(at as usize + n) % errors.len()]);
        at_every_operation(act, Count::Writes, error, Then::GoesOn);
    }
}

#[test]
fn f15_any_read_may_fail_once_and_a_move_is_done_or_not_done() {
    let error = |_| Fault::Error(EIO);
    at_every_operation(Act::Rewind(With::Both), Count::All, error, Then::GoesOn);
}

#[test]
fn f15_a_disk_that_fails_from_some_moment_on_leaves_a_move_done_or_not_done() {
    for (act, error) in [
        (Act::Rewind(With::Both), ENOSPC),
        (Act::Undo(With::Files), EIO),
    ] {
        let fails = |_| Fault::ErrorFrom(error);
        at_every_operation(act, Count::Writes, fails, Then::GoesOn);
    }
}

/// The next command is killed as well, at any of its operations.
#[test]
fn f15_a_recovery_that_is_killed_is_resumed_by_the_next() {
    for act in [Act::Rewind(With::Both), Act::Redo(With::Files)] {
        let scene = Scene::new(act);
        let mut killed = 0;
        for n in (0..).step_by(3) {
            let memory = scene.again();
            let disk = FaultyStorage::new(memory.clone());
            let hooked = |disk: &FaultyStorage| {
                let options = next_process().storage(disk.clone());
                options.touch_hook(disk.clone()).open(HOME).unwrap()
            };
            let store = hooked(&disk);
            let workspace = scene.workspace(&store).unwrap();
            disk.arm(n, Fault::Crash { when: When::Before });
            scene.perform(&workspace).ok();
            if !disk.fired() {
                break;
            }
            // Each time a few operations later.
            let memory = memory.kill();
            let second = FaultyStorage::new(memory.clone());
            let store = hooked(&second);
            let workspace = scene.workspace(&store).unwrap();
            second.arm(n / 3 % 23, Fault::Crash { when: When::Before });
            workspace.recover().ok();
            killed += u64::from(second.fired());
            let checked = scene.check_after(&open(memory.kill()), false);
            checked.unwrap_or_else(|wrong| {
                panic!(
                    "{act:?} {n}: {wrong}\n{:#?}\n{:#?}",
                    disk.log(),
                    second.log()
                )
            });
        }
        assert!(killed > 10, "{act:?} {killed}");
    }
}

/// Fails every change to the files from some moment on, until told otherwise.
#[derive(Debug, Clone, Default)]
struct Refusing(Arc<(AtomicU64, AtomicU64)>);

impl TouchHook for Refusing {
    fn before(&self, _: &Touch<'_>) -> io::Result<()> {
        let (from, step) = (&self.0.0, &self.0.1);
        match step.fetch_add(1, Ordering::SeqCst) >= from.load(Ordering::SeqCst) {
            true => Err(io::Error::from_raw_os_error(EIO)),
            false => Ok(()),
        }
    }
}

/// The files' disk fails, the store's does not. Everything is put back, or the move stays
/// open; once the disk works again, the next command finishes it.
#[test]
fn f15_files_that_cannot_be_changed_from_some_moment_on_are_put_back_or_moved_later() {
    for act in [Act::Rewind(With::Both), Act::Undo(With::Files)] {
        let scene = Scene::new(act);
        let mut open = 0;
        for n in 0.. {
            let hook = Refusing::default();
            hook.0.0.store(n, Ordering::SeqCst);
            let options = next_process().storage(scene.again());
            let store = options.touch_hook(hook.clone()).open(HOME).unwrap();
            let outcome = scene.perform(&scene.workspace(&store).unwrap());
            let fired = hook.0.1.load(Ordering::SeqCst) > n;
            hook.0.0.store(u64::MAX, Ordering::SeqCst);
            let stays_open = |error: &String| error.contains("half done");
            let is_open = outcome.as_ref().is_err_and(stays_open);
            open += u32::from(is_open);
            let checked = scene.check_untidy(&store, is_open || outcome.is_ok());
            checked.unwrap_or_else(|wrong| panic!("{act:?} from {n}: {wrong}\n{outcome:?}"));
            if !fired {
                break;
            }
        }
        assert!(open > 3, "{open}");
    }
}
