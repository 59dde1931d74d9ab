//! Signals at a certain moment of a move, in processes of their own: the test runs itself
//! again, and the environment says where and when.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use backtrail::{CheckpointOptions, Point, Rewind, Store};
use signal_hook::low_level::raise;

use super::*;

const TASK: &str = "BACKTRAIL_TEST_TASK";

/// Sends itself a signal once files move.
#[derive(Debug)]
struct Raising {
    guard: Arc<dyn Progress>,
    signal: i32,
}

impl Progress for Raising {
    fn update(&self, at: ScanProgress) {
        self.guard.update(at);
        if at.stage == ScanStage::Moving {
            raise(self.signal).unwrap();
        }
    }
}

/// Goes back to `one`, with a signal before that or in the middle of it.
fn go(dir: &Path, signal: i32, when: &str) {
    let guard = SignalGuard::around(None);
    if when == "before" {
        raise(signal).unwrap();
    }
    let raising = Raising { guard, signal };
    let store = Store::open(dir.join("store")).unwrap();
    let workspace = store.workspace(&dir.join("work")).unwrap();
    let options = Rewind::files().progress(Arc::new(raising));
    workspace
        .rewind(&Point::label("one"), options)
        .unwrap()
        .done()
        .unwrap();
}

fn child(dir: &Path, signal: i32, when: &str) -> ExitStatus {
    let name = "commands::moves::signal_guard::tests::a_signal_ends_a_move_only_before_files_move";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name])
        .env(TASK, format!("{}\t{signal}\t{when}", dir.display()));
    command.output().unwrap().status
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]
fn a_signal_ends_a_move_only_before_files_move() {
    if let Ok(task) = std::env::var(TASK) {
        let task: Vec<&str> = task.split('\t').collect();
        return go(Path::new(task[0]), task[1].parse().unwrap(), task[2]);
    }
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let workspace = store.workspace(&work).unwrap();
    let keep = |text: &str, label: &str| {
        std::fs::write(work.join("a"), text).unwrap();
        let options = CheckpointOptions::new().label(label);
        workspace.checkpoint(options).unwrap();
    };
    keep("1", "one");
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        keep("2", "two");
        let status = child(dir.path(), signal, "before");
        assert_eq!(status.signal(), Some(signal), "{status}");
        assert_eq!(std::fs::read(work.join("a")).unwrap(), b"2");
        let status = child(dir.path(), signal, "while it moves");
        assert!(status.success(), "{signal}: {status}");
        assert_eq!(std::fs::read(work.join("a")).unwrap(), b"1");
        assert!(workspace.recover().unwrap().is_none(), "it is complete");
    }
}
