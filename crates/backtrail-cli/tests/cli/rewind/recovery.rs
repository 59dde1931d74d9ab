//! A rewind that was interrupted is finished by the next command, which reports it.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
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
fn staged(cli: &Cli) -> std::path::PathBuf {
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
