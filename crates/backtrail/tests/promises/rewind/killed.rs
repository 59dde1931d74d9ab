//! Real processes: killed by `kill -9` in the middle of a move, two that move at
//! once, and one that waits for another (F15).
//!
//! The test binary runs itself again, told by the environment what to do. A child
//! that is to be killed says so before one of its changes to the files, and waits.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use backtrail::rewind::{Touch, TouchHook};
use backtrail::snapshot::{Progress, ScanProgress, ScanStage};
use backtrail::{CheckpointOptions, Point, Rewind, Store, StoreOptions};
use tempfile::TempDir;

use super::kit::{done, quick_dir, setting, verify, write};
use super::scene::put;
use crate::snapshots::tree::{Tree, read_tree};

const TASK: &str = "BACKTRAIL_TEST_TASK";
const MIDDLE: &str = "in the middle";
const KILLS: u64 = 200;

/// Runs this test again in a process of its own.
fn child(test: &str, task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("rewind::killed::{test}");
    command
        .args(["--exact", &name, "--nocapture"])
        .env(TASK, task)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Returns what this process is reported to do, if it is a child.
fn task() -> Option<Vec<String>> {
    let task = std::env::var(TASK).ok()?;
    Some(task.split('\t').map(str::to_owned).collect())
}

/// Says that it is in the middle, before its nth change to the files, and waits
/// until it is reported to continue, or killed.
#[derive(Debug)]
struct Pausing {
    at: u64,
    step: AtomicU64,
}

impl Pausing {
    fn at(at: u64) -> Self {
        let step = AtomicU64::new(0);
        Self { at, step }
    }
}

impl TouchHook for Pausing {
    fn before(&self, _: &Touch<'_>) -> io::Result<()> {
        if self.step.fetch_add(1, Ordering::SeqCst) == self.at {
            println!("\n{MIDDLE}");
            io::stdout().flush()?;
            io::stdin().read_exact(&mut [0])?;
        }
        Ok(())
    }
}

/// A store and a workspace on disk with two labelled states.
struct Place {
    dir: TempDir,
    states: [Tree; 2],
}

const LABELS: [&str; 2] = ["one", "two"];

impl Place {
    fn new() -> Self {
        let dir = quick_dir();
        let root = dir.path().join("work");
        fs::create_dir(&root).unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        let workspace = store.workspace(&root).unwrap();
        let states = LABELS.map(|label| {
            fs::remove_dir_all(&root).unwrap();
            fs::create_dir(&root).unwrap();
            write(&root, "same", "in both");
            write(&root, "file", label);
            write(&root, &format!("only-{label}/deep/file"), label);
            write(&root, &format!("mixed/{label}"), label);
            let kept = workspace.checkpoint(CheckpointOptions::new().label(label));
            kept.map(|_| read_tree(&root)).unwrap()
        });
        Self { dir, states }
    }

    fn path(&self) -> &str {
        self.dir.path().to_str().unwrap()
    }

    fn store(&self) -> Store {
        Store::open(self.dir.path().join("store")).unwrap()
    }

    /// Returns which state the files are in.
    fn state(&self) -> usize {
        let tree = read_tree(&self.dir.path().join("work"));
        let found = self.states.iter().position(|state| *state == tree);
        found.unwrap_or_else(|| panic!("in neither state: {tree:#?}"))
    }
}

/// Goes to a labelled state, in the directory of a [`Place`].
fn go(dir: &Path, options: StoreOptions, label: &str, rewind: Rewind) {
    let store = options.open(dir.join("store")).unwrap();
    let workspace = store.workspace(&dir.join("work")).unwrap();
    done(workspace.rewind(&Point::label(label), rewind).unwrap());
}

/// Waits until a child stops in the middle, and returns `false` if it ends first.
fn is_in_the_middle(child: &mut Child) -> bool {
    let mut words = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    words.any(|word| word.unwrap() == MIDDLE)
}

fn exited(child: Child) -> std::process::ExitStatus {
    child.wait_with_output().unwrap().status
}

#[test]
fn f15_a_rewind_of_a_killed_process_is_finished_by_the_next() {
    if let Some(task) = task() {
        let hook = Pausing::at(task[2].parse().unwrap());
        let options = StoreOptions::new().touch_hook(hook);
        return go(
            Path::new(&task[0]),
            options,
            &task[1],
            Rewind::files().overwrite(),
        );
    }
    let place = Place::new();
    let test = "f15_a_rewind_of_a_killed_process_is_finished_by_the_next";
    let kills = KILLS * setting("BACKTRAIL_TEST_LIVES", 1);
    let (mut killed, mut at, mut recovered) = (0, 0, 0);
    while killed < kills {
        let from = place.state();
        let to = 1 - from;
        let task = format!("{}\t{}\t{at}", place.path(), LABELS[to]);
        let mut other = child(test, &task).spawn().unwrap();
        let is_killed = is_in_the_middle(&mut other);
        if is_killed {
            other.kill().unwrap();
        }
        let status = exited(other);
        assert_eq!(is_killed, status.signal() == Some(9), "{status}");
        let store = place.store();
        let workspace = store.workspace(&place.dir.path().join("work")).unwrap();
        recovered += u64::from(workspace.recover().unwrap().is_some());
        if !is_killed {
            // It came to its end: from the first step again, the other way.
            assert!(status.success(), "{status}");
            assert_eq!(place.state(), to, "{at}");
            at = 0;
            continue;
        }
        killed += 1;
        let state = place.state();
        at += 1;
        if state == to {
            put(&place.dir.path().join("work"), &place.states[from]);
        }
    }
    assert!(recovered > kills / 2, "{recovered}");
    verify(&place.store()).unwrap();
}

#[test]
fn f15_two_processes_that_rewind_at_once_take_turns() {
    if let Some(task) = task() {
        for _ in 0..10 {
            let options = Rewind::files().overwrite();
            go(Path::new(&task[0]), StoreOptions::new(), &task[1], options);
        }
        return;
    }
    let place = Place::new();
    let test = "f15_two_processes_that_rewind_at_once_take_turns";
    for _ in 0..3 {
        let both = LABELS.map(|label| {
            let task = format!("{}\t{label}", place.path());
            child(test, &task).spawn().unwrap()
        });
        for status in both.map(exited) {
            assert!(status.success(), "{status}");
        }
        place.state();
    }
    verify(&place.store()).unwrap();
    // Every move is there, and each begins where the one before it ended.
    let workspace = place.store();
    let workspace = workspace.workspace(&place.dir.path().join("work")).unwrap();
    let kept = workspace.checkpoints().unwrap().map(Result::unwrap);
    let moved = kept.filter(|kept| kept.reason().as_str() == "rewind");
    let states: Vec<_> = moved.map(|kept| kept.snapshot_id()).collect();
    assert!(states.len() > 1 && states.windows(2).all(|two| two[0] != two[1]));
}

/// Lets the other process continue as soon as it is reported that it is waited for.
struct Releasing(Mutex<Option<std::process::ChildStdin>>);

impl std::fmt::Debug for Releasing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Releasing")
    }
}

impl Progress for Releasing {
    fn update(&self, at: ScanProgress) {
        if at.stage == ScanStage::Waiting
            && let Some(mut stdin) = self.0.lock().unwrap().take()
        {
            stdin.write_all(b".").unwrap();
        }
    }
}

#[test]
fn f15_a_rewind_waits_for_one_in_progress_in_another_process() {
    if let Some(task) = task() {
        let options = StoreOptions::new().touch_hook(Pausing::at(5));
        return go(Path::new(&task[0]), options, &task[1], Rewind::files());
    }
    let place = Place::new();
    let test = "f15_a_rewind_waits_for_one_in_progress_in_another_process";
    let task = format!("{}\t{}", place.path(), LABELS[0]);
    let mut other = child(test, &task).spawn().unwrap();
    assert!(is_in_the_middle(&mut other));
    // It is in progress: nobody finishes it for it.
    let store = place.store();
    let workspace = store.workspace(&place.dir.path().join("work")).unwrap();
    assert!(workspace.recover().unwrap().is_none());
    let releasing = Arc::new(Releasing(Mutex::new(other.stdin.take())));
    let options = Rewind::files().progress(Arc::clone(&releasing) as Arc<dyn Progress>);
    let report = done(workspace.rewind(&Point::label(LABELS[1]), options).unwrap());
    assert!(releasing.0.lock().unwrap().is_none(), "it waited");
    assert!(exited(other).success());
    assert_eq!(place.state(), 1);
    assert!(
        report.restored().contains(&Path::new("file")),
        "{report:#?}"
    );
    verify(&store).unwrap();
}
