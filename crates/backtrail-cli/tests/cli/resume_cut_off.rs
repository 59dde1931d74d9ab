//! `resume --agent` that does not come to its end: killed, on a full disk, stopped by your files,
//! or waiting for another process. The session is there whole or not at all, and so are the files.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::disk::SmallDisk;
use crate::kit::{Ran, finish};
use crate::pty::{self, Terminal};
use crate::resume::{Home, write};
use crate::resume_elsewhere::{recorded, session_with_files};
use crate::traced;

/// The command that hands a session over.
fn resume(home: &Home, id: &str, agent: &str, more: &[&str]) -> Command {
    let words = ["resume", id, "--agent", agent, "--print"];
    let mut command = home.cli.command(&[&words[..], more].concat());
    command.env("HOME", home.dir());
    command
}

fn sessions(home: &Home) -> Vec<Value> {
    let ran = home.run(&["list", "--all", "--forks", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran.json().as_array().unwrap().clone()
}

/// Returns the files in a directory of an agent that the agent may take for its own.
fn visible(home: &Home, folder: &str) -> BTreeSet<PathBuf> {
    let folder = home.dir().join(folder);
    let is_hidden = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with('.') && name.ends_with(".tmp")
    };
    let paths = home.files().into_keys();
    paths
        .filter(|path| path.starts_with(&folder) && !is_hidden(path))
        .collect()
}

/// Asserts that what a kill left is whole: every file that the agent finds, and every session here.
fn assert_whole(home: &Home, folder: &str, original: &Value, at: &str) {
    for path in visible(home, folder) {
        let text = std::fs::read_to_string(&path).unwrap();
        let is_whole = match path.extension().is_some_and(|it| it == "jsonl") {
            true => text.contains("the last answer") && text.ends_with("}\n"),
            false => text.ends_with('\n'),
        };
        assert!(is_whole, "{at}: {path:?}: {} bytes", text.len());
    }
    for session in sessions(home) {
        let id = session["id"].as_str().unwrap();
        let shown = home.run(&["show", id, "--json"]);
        assert_eq!(shown.code, 0, "{at}: {shown:#?}");
        assert_eq!(&texts(&shown), original, "{at}");
    }
    // Nothing in the agent's files is new, whatever was written.
    let again = home.run(&["import", "--json"]);
    assert_eq!(again.code, 0, "{at}: {again:#?}");
    for (agent, report) in again.json()["agents"].as_object().unwrap() {
        let news = (&report["new"], &report["messages"]);
        assert_eq!(news, (&json!(0), &json!(0)), "{at}: {agent}");
    }
}

/// Returns the texts of a session's messages.
fn texts(shown: &Ran) -> Value {
    let shown = shown.json();
    let messages = shown["messages"].as_array().unwrap().iter();
    messages.map(|message| message["blocks"].clone()).collect()
}

// F1
#[test]
fn f1_kill_9_at_any_write_leaves_a_whole_session_or_none() {
    if !traced::is_there("resume was not killed between its steps") {
        return;
    }
    for (agent, folder) in [("codex", ".codex"), ("copilot-cli", ".copilot")] {
        let home = Home::new();
        let long = "x".repeat(50_000);
        let id = recorded(
            &home,
            &[
                json!({"role": "user", "text": format!("the prompt {long}")}),
                json!({"role": "assistant", "text": "the last answer"}),
            ],
        );
        let original = texts(&home.run(&["show", &id, "--json"]));
        let (mut killed, mut whole) = (Vec::new(), BTreeSet::new());
        for call in [
            "write",
            "pwrite64",
            "mkdir",
            "rename,renameat,renameat2,link,linkat",
            "fsync,fdatasync",
        ] {
            // Until it comes to its end before the nth call.
            for nth in 1.. {
                let command = resume(&home, &id, agent, &[]);
                let ran = finish(&mut traced::killed_at(call, nth, &command), b"");
                let at = format!("{agent}: {call} {nth}");
                assert_whole(&home, folder, &original, &at);
                let before = whole.len();
                whole.extend(visible(&home, folder));
                if ran.code == 0 {
                    assert!(whole.len() > before, "{at}: a retry works: {ran:#?}");
                    break;
                }
                assert!(nth < 200, "{at}: it never ends: {ran:#?}");
                killed.push((call, nth, whole.len() > before));
            }
        }
        // Some kills came before the session was there, and some after.
        let is_there = |wanted: bool| killed.iter().filter(|it| it.2 == wanted).count();
        assert!(is_there(false) > 5, "{killed:?}");
        assert!(is_there(true) > 0, "{killed:?}");
        assert!(killed.iter().any(|it| it.0.starts_with("rename")));
        assert!(killed.iter().any(|it| it.0.starts_with("fsync")));
        let verified = home.run(&["verify"]);
        assert_eq!(verified.code, 0, "{verified:#?}");
    }
}

// F22
#[test]
fn a_full_disk_of_the_agent_leaves_no_session_here_or_there() {
    let home = Home::new();
    std::fs::create_dir_all(home.dir()).unwrap();
    let Some(disk) = SmallDisk::mount(&home.dir().join(".codex")) else {
        return;
    };
    let (id, _) = session_with_files(&home);
    let text = "x".repeat(400 << 10);
    let mut record = home.cli.command(&["record", "--session", &id]);
    let line = format!("{}\n", json!({"role": "assistant", "text": text}));
    assert_eq!(finish(&mut record, line.as_bytes()).code, 0);
    let before = sessions(&home);
    let ran = finish(&mut resume(&home, &id, "codex", &["--with-files"]), b"");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot write the session"), "{ran:#?}");
    assert!(ran.stderr.contains("No space left"), "{ran:#?}");
    assert_eq!(sessions(&home), before);
    let there = home.files().into_keys();
    let there: Vec<_> = there.filter(|path| path.starts_with(disk.path())).collect();
    assert!(there.is_empty(), "{there:?}");
}

#[test]
fn a_name_that_cannot_be_made_durable_leaves_no_session_here_or_there() {
    if !traced::is_there("every name was made durable") {
        return;
    }
    let home = Home::new();
    let id = recorded(&home, &[json!({"role": "user", "text": "P1"})]);
    let made = finish(&mut resume(&home, &id, "pi", &["--json"]), b"").json();
    let folder = Path::new(made["file"].as_str().unwrap()).parent().unwrap();
    let before = (visible(&home, ".pi"), sessions(&home));
    let options = [
        "-P",
        folder.to_str().unwrap(),
        "-e",
        "inject=fsync,fdatasync:error=EIO",
    ];
    let command = resume(&home, &id, "pi", &[]);
    let ran = finish(&mut traced::under(&options, &command), b"");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot write the session"), "{ran:#?}");
    assert_eq!((visible(&home, ".pi"), sessions(&home)), before);
}

/// The state of the files, and what is known to have happened to them.
fn files_and_log(home: &Home) -> (String, Value) {
    let a = std::fs::read_to_string(home.cli.work().join("a")).unwrap();
    (a, home.run(&["log", "--json"]).json())
}

#[test]
fn the_files_stay_if_the_session_cannot_be_written() {
    let home = Home::new();
    let (id, seqs) = session_with_files(&home);
    write(&home.dir().join(".codex"), b"not a directory");
    let before = (files_and_log(&home), sessions(&home));
    let place = format!("{id}:{}", seqs[0]);
    let ran = finish(&mut resume(&home, &place, "codex", &["--with-files"]), b"");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("cannot write the session"), "{ran:#?}");
    assert_eq!((files_and_log(&home), sessions(&home)), before);
    // In another agent both are possible.
    let ran = finish(&mut resume(&home, &place, "pi", &["--with-files"]), b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(files_and_log(&home).0, "1\n");
}

#[test]
fn no_session_is_left_if_the_files_cannot_go_back() {
    if !traced::is_there("the files could always go back") {
        return;
    }
    let home = Home::new();
    let (id, seqs) = session_with_files(&home);
    let before = (files_and_log(&home).0, sessions(&home));
    let place = format!("{id}:{}", seqs[0]);
    let command = resume(&home, &place, "codex", &["--with-files"]);
    let work = home.project();
    let options = ["-P", &work, "-e", "inject=renameat2:error=EIO"];
    let ran = finish(&mut traced::under(&options, &command), b"");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(!ran.stderr.contains("wrote session"), "{ran:#?}");
    assert_eq!((files_and_log(&home).0, sessions(&home)), before);
    assert_eq!(visible(&home, ".codex"), BTreeSet::new());
    let ran = finish(&mut resume(&home, &place, "codex", &["--with-files"]), b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(files_and_log(&home).0, "1\n");
    assert_eq!(visible(&home, ".codex").len(), 1);
}

#[test]
fn a_resume_that_waits_for_another_import_says_so() {
    if !pty::is_there() {
        return;
    }
    let home = Home::new();
    let sample = home.sample("claude-code");
    home.import();
    let own = recorded(&home, &[json!({"role": "user", "text": "P1"})]);
    let path = home.cli.store().join("derived/import.lock");
    // One that is imported waits for that first, the other one when it is handed over.
    for id in [sample.id, &own] {
        let lock = File::options().write(true).open(&path).unwrap();
        lock.lock().unwrap();
        let mut terminal = Terminal::start(&resume(&home, id, "codex", &[]));
        terminal.wait_for("waiting for another import");
        drop(lock);
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        assert!(screen.contains("codex resume "), "{screen}");
    }
}
