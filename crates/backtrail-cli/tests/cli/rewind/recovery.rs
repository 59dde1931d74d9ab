//! A rewind that was interrupted is finished by the next command, which reports it.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};

use backtrail::rewind::{Touch, TouchHook};
use backtrail::{Point, Rewind, StoreOptions};

use super::{Files, files, two_runs};
use crate::kit::Cli;

/// Dies at a change to the files, and lets nobody clean up.
#[derive(Debug)]
struct Dying {
    left: AtomicI64,
}

impl TouchHook for Dying {
    fn before(&self, touch: &Touch<'_>) -> io::Result<()> {
        if touch.call != "renameat2" && self.left.load(Ordering::SeqCst) > 0 {
            return Ok(());
        }
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            2.. => Ok(()),
            1 => panic!("the process dies here"),
            _ => Err(io::Error::other("it is dead")),
        }
    }
}

/// Begins a rewind to `one` that dies at its nth change of a name.
pub(super) fn interrupted(cli: &Cli, n: i64) {
    let hook = Dying {
        left: AtomicI64::new(n),
    };
    let store = StoreOptions::new()
        .touch_hook(hook)
        .open(cli.store())
        .unwrap();
    let workspace = store.find_workspace(&cli.work()).unwrap().unwrap();
    let died = catch_unwind(AssertUnwindSafe(|| {
        workspace.rewind(&Point::label("one"), Rewind::files_and_chat())
    }));
    assert!(died.is_err(), "{died:?}");
}

/// Returns the files but for those that a move has aside.
fn settled(root: &Path) -> Files {
    let mut files = files(root);
    files.retain(|path, _| !path.to_string_lossy().contains(".backtrail-staging"));
    files
}

#[test]
fn the_next_command_finishes_it_and_reports_it() {
    let commands: [&[&str]; 9] = [
        &["status"],
        &["log"],
        &["diff"],
        &["cat", "one", "a"],
        &["log", "--steps"],
        &["checkpoint"],
        &["run", "--", "true"],
        &["rewind", "one"],
        &["restore", "one", "a"],
    ];
    for command in commands {
        let (cli, [first, ..]) = two_runs();
        interrupted(&cli, 2);
        assert_ne!(
            settled(&cli.work()),
            first,
            "{command:?}: it was not interrupted"
        );
        let ran = cli.run(command);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let said = ran.stderr.lines().next().unwrap();
        assert!(
            said.starts_with("finished the interrupted rewind ("),
            "{command:?}: {ran:#?}"
        );
        assert_eq!(files(&cli.work()), first, "{command:?}");
        // Once.
        let ran = cli.run(command);
        assert!(!ran.stderr.contains("finished"), "{ran:#?}");
        assert_eq!(cli.run(&["undo"]).code, 0);
        assert_eq!(cli.run(&["verify"]).code, 0);
    }
}

#[test]
fn as_json_it_is_a_warning() {
    let (cli, [first, ..]) = two_runs();
    interrupted(&cli, 1);
    let ran = cli.run(&["status", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json();
    let warning: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
    let message = warning["warning"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("finished the interrupted rewind ("),
        "{message}"
    );
    assert_eq!(files(&cli.work()), first);
}

#[test]
fn files_changed_since_are_skipped_and_named() {
    let (cli, _) = two_runs();
    interrupted(&cli, 1);
    fs::write(cli.work().join("a"), "mine\n").unwrap();
    let ran = cli.run(&["status"]);
    assert!(ran.stderr.contains("; skipped 1 file: a ("), "{ran:#?}");
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"mine\n");
    assert!(cli.work().join("src/x").exists());
}

#[test]
fn writing_to_a_session_there_finishes_it_first() {
    let commands: [&[&str]; 2] = [
        &["record", "--session", "latest", "--text", "hello"],
        &["compact", "latest", "--summary-file", "-"],
    ];
    for command in commands {
        let (cli, [first, ..]) = two_runs();
        let said = cli.run(&["record", "--session", "latest", "--text", "before"]);
        assert_eq!(said.code, 0, "{said:#?}");
        interrupted(&cli, 2);
        let ran = cli.run_with(command, b"a summary");
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(
            ran.stderr.starts_with("finished the interrupted rewind ("),
            "{ran:#?}"
        );
        assert_eq!(files(&cli.work()), first, "{command:?}");
    }
}

/// Who only reads continues; who would change something does not.
#[test]
fn a_rewind_that_cannot_be_finished_warns_readers_and_stops_writers() {
    let (cli, _) = two_runs();
    interrupted(&cli, 2);
    // Something else is where the new files waited.
    let staged = staged(&cli);
    fs::rename(&staged, cli.work().with_extension("staged")).unwrap();
    fs::write(&staged, "mine").unwrap();
    let before = files(&cli.work());
    let what = "a rewind was interrupted and cannot be finished";
    let ran = cli.run(&["log"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stderr.starts_with(&format!("warning: {what}: ")),
        "{ran:#?}"
    );
    for args in [
        &["checkpoint"][..],
        &["rewind", "one"],
        &["undo"],
        &["restore", "one", "a"],
    ] {
        let ran = cli.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        assert!(
            ran.stderr.starts_with(&format!("error: {what}\n")),
            "{ran:#?}"
        );
        assert!(ran.stderr.contains("  caused by: "), "{ran:#?}");
    }
    assert_eq!(files(&cli.work()), before);
}

/// Returns the directory in which new files wait.
fn staged(cli: &Cli) -> PathBuf {
    let paths = fs::read_dir(cli.work()).unwrap();
    let mut paths = paths.map(|entry| entry.unwrap().path());
    let staged = paths.find(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(".backtrail-staging-")
    });
    staged.expect("new files wait somewhere")
}

/// Damage must not hold up a workspace for ever: the files stay as they are, and what
/// was moved out of the way is where the user finds it.
#[test]
fn a_damaged_rewind_is_given_up_and_named() {
    let (cli, _) = two_runs();
    interrupted(&cli, 2);
    let held = files(&staged(&cli));
    for pack in cli.packs() {
        fs::remove_file(pack).unwrap();
    }
    let ran = cli.run(&["checkpoint"]);
    assert!(
        ran.stderr
            .contains("was interrupted and cannot be finished: object "),
        "{ran:#?}"
    );
    let saved = fs::read_dir(cli.work()).unwrap();
    let mut saved = saved.map(|entry| entry.unwrap().path());
    let saved = saved.find(|path| path.to_string_lossy().contains("/backtrail-saved-"));
    assert_eq!(files(&saved.expect("it is saved")), held);
    let again = cli.run(&["checkpoint"]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert!(!again.stderr.contains("interrupted"), "{again:#?}");
}

/// A run's last checkpoint is not taken of half of a rewind.
#[test]
fn a_run_finishes_a_rewind_that_was_interrupted_meanwhile() {
    let (cli, [first, ..]) = two_runs();
    let mut command = cli.command(&["run", "--", "sh", "-c", "echo ready; read line"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    interrupted(&cli, 2);
    drop(child.stdin.take());
    let ran = child.wait_with_output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.starts_with("finished the interrupted rewind ("),
        "{said}"
    );
    assert_eq!(files(&cli.work()), first);
    assert_eq!(
        cli.run(&["status", "--json"]).json()["changed"],
        serde_json::json!([])
    );
}

/// A directory that is read-only for everybody until it is dropped.
struct ReadOnly(PathBuf);

impl ReadOnly {
    /// `None` if that is not allowed here, and the test is skipped.
    fn make(dir: &Path) -> Option<Self> {
        let mount = |args: &[&str]| {
            let mounted = Command::new("mount").args(args).arg(dir).output();
            mounted.is_ok_and(|output| output.status.success())
        };
        if !mount(&["--bind", dir.to_str().unwrap()]) {
            eprintln!("SKIPPED: needs mount; the engine's tests inject the errors instead");
            return None;
        }
        let made = Self(dir.to_owned());
        assert!(mount(&["-o", "remount,ro,bind"]));
        Some(made)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

// F15, F37: reading works, writing waits, and every path is named.
#[test]
fn f15_on_a_read_only_disk_it_stays_open_and_is_finished_when_it_can_be() {
    let (cli, [first, ..]) = two_runs();
    interrupted(&cli, 2);
    let Some(read_only) = ReadOnly::make(&cli.work()) else {
        return;
    };
    for reading in [&["log"][..], &["diff"], &["list"], &["cat", "one", "a"]] {
        let ran = cli.run(reading);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    let status = cli.run(&["status"]);
    assert_eq!(status.code, 0, "{status:#?}");
    assert!(status.stderr.contains("the rewind from "), "{status:#?}");
    let listed = cli.run(&["status", "--json"]).json()["unfinished"].clone();
    let paths = |name: &str| -> Vec<String> {
        let paths = listed[name].as_array().unwrap().iter();
        paths
            .map(|path| path.as_str().unwrap().to_owned())
            .collect()
    };
    let (moved, waiting) = (paths("moved"), paths("waiting"));
    assert!(!moved.is_empty() && !waiting.is_empty(), "{listed}");
    for path in moved.iter().chain(&waiting) {
        assert!(
            status.stderr.contains(&format!("  {path}  ")),
            "{status:#?}"
        );
    }
    for writing in [
        &["run", "--", "true"][..],
        &["run", "--unprotected", "--", "true"],
        &["checkpoint"],
        &["undo"],
        &["rewind", "one"],
    ] {
        let ran = cli.run(writing);
        assert!(![0, 1].contains(&ran.code), "{ran:#?}");
        assert!(
            ran.stderr.contains("hint: leave them as they are: "),
            "{ran:#?}"
        );
        assert!(!ran.stderr.contains("run without protection"), "{ran:#?}");
    }
    drop(read_only);
    assert_eq!(cli.run(&["run", "--", "true"]).code, 0);
    assert_eq!(files(&cli.work()), first);
}

#[test]
fn f15_the_user_can_abandon_it() {
    let (cli, _) = two_runs();
    let ran = cli.run(&["undo", "--abandon"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (1, "no unfinished rewind here\n")
    );
    interrupted(&cli, 2);
    let mixed = settled(&cli.work());
    let ran = cli.run(&["undo", "--abandon"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    // Every path of it is named: those that are restored, and those that are not.
    for state in ["  restored already\n", "  not restored\n"] {
        assert!(ran.stderr.contains(state), "{ran:#?}");
    }
    assert!(
        ran.stderr.starts_with("abandoned the rewind from "),
        "{ran:#?}"
    );
    let mut now = settled(&cli.work());
    now.retain(|path, _| !path.to_string_lossy().starts_with("backtrail-saved-"));
    assert_eq!(now, mixed);
    // Later commands leave it alone.
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    assert_eq!(cli.run(&["verify"]).code, 0);
    let ran = cli.run(&["undo", "--abandon", "--chat"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
}
