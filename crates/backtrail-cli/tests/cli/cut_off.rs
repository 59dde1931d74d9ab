//! Backtrail itself is killed (F15, F25): what the run changed while Backtrail lived is undone,
//! what changed later is the user's or the run's, and a turn that was cut off continues.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use backtrail::workspace::LogKind;
use backtrail::{Message, SessionOptions, Store, ToolUse};
use serde_json::{Value, json};

use crate::kit::{Cli, Recording};

/// Returns the files of turns and runs in progress.
fn active_files(cli: &Cli) -> Vec<PathBuf> {
    let Ok(workspaces) = fs::read_dir(cli.store().join("workspaces")) else {
        return Vec::new();
    };
    let dirs = workspaces.map(|entry| entry.unwrap().path());
    let names = dirs
        .filter(|dir| dir.is_dir())
        .flat_map(|dir| fs::read_dir(dir).unwrap());
    let paths = names.map(|entry| entry.unwrap().path());
    let is_active = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("active-")
    };
    paths.filter(is_active).collect()
}

/// Waits for a sign of life after a file's last change.
fn wait_for_sign_after(cli: &Cli, file: &Path) {
    loop {
        let sign = active_files(cli).first().and_then(|path| {
            let text = fs::read_to_string(path).ok()?;
            serde_json::from_str::<Value>(text.split_once('\n')?.1).ok()
        });
        let changed = fs::metadata(file).ok().filter(|file| file.len() > 0);
        let changed = changed.map(|file| file.ctime() * 1000 + file.ctime_nsec() / 1_000_000);
        if let (Some(sign), Some(changed)) = (sign, changed)
            && sign["at"].as_i64() > Some(changed + 100)
        {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn f15_a_run_whose_backtrail_was_killed_is_undone_up_to_its_last_sign_of_life() {
    let cli = Cli::new();
    for name in ["edited", "later"] {
        fs::write(cli.work().join(name), "before\n").unwrap();
    }
    let script = "echo run > edited; echo run > new; read go; echo orphan > later; echo > end";
    let mut running = cli.command(&["run", "--", "sh", "-c", script]);
    let mut running = running.stdin(Stdio::piped()).spawn().unwrap();
    wait_for_sign_after(&cli, &cli.work().join("new"));
    let mut stdin = running.stdin.take().unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    // The command itself lives on.
    stdin.write_all(b"go\n").unwrap();
    while !cli.work().join("end").exists() {
        std::thread::yield_now();
    }
    let ran = cli.run(&["log"]);
    assert!(ran.stdout.contains("(interrupted)"), "{ran:#?}");
    let ran = cli.run(&["undo"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let said = "2 files changed after this run was cut off, by you or the run; nothing was touched";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    assert!(ran.stderr.contains("you or the run, since"), "{ran:#?}");
    let ran = cli.run(&["undo", "--keep"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let read = |name: &str| fs::read_to_string(cli.work().join(name)).unwrap();
    assert_eq!(read("edited"), "before\n");
    assert_eq!(read("later"), "orphan\n");
    assert!(!cli.work().join("new").exists());
    assert_eq!(active_files(&cli), [] as [PathBuf; 0]);
    let log = cli.run(&["log"]).stdout;
    assert!(log.contains("(interrupted)"), "{log}");
}

/// `record --session` continues the turn, and ends it with the answer.
#[test]
fn f25_record_continues_a_turn_that_was_cut_off() {
    let cli = Cli::new();
    fs::write(cli.work().join("a"), "before").unwrap();
    let store = Store::open_or_create(cli.store()).unwrap();
    let workspace = store.workspace(&cli.work()).unwrap();
    let options = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(options).unwrap();
    let turn = session.begin_turn(Message::user_text("edit it")).unwrap();
    let call = ToolUse::new("one", "edit", &json!({})).unwrap();
    turn.append(Message::assistant([call.into()])).unwrap();
    drop(turn);
    let id = session.id().to_string();
    session.close().unwrap();
    let turns = || {
        let log = workspace.log().unwrap().into_iter();
        let turns = log.filter(|entry| entry.kind() == LogKind::Turn);
        turns.map(|entry| entry.ended()).collect::<Vec<_>>()
    };
    assert_eq!(turns(), [false]);

    let result = r#"{"type":"message","message":{"role":"tool","blocks":[{"type":"tool_result","tool_use_id":"one","tool_name":"edit","output":"ok","is_error":false}]}}"#;
    let ran = cli.run_with(
        &["record", "--session", &id],
        format!("{result}\n").as_bytes(),
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(turns(), [false], "no answer yet: it can still continue");

    let mut recording = Recording::start(cli.command(&["record", "--session", &id]));
    recording.send_line(r#"{"role":"assistant","text":"editing"}"#);
    recording.answer().unwrap();
    fs::write(cli.work().join("a"), "of the turn").unwrap();
    assert_eq!(recording.end(), 0);
    assert_eq!(turns(), [true]);
    let ran = cli.run(&["undo"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read_to_string(cli.work().join("a")).unwrap(), "before");
}

/// A new prompt is a new turn.
#[test]
fn f25_a_new_prompt_does_not_continue_a_turn_that_was_cut_off() {
    let cli = Cli::new();
    let store = Store::open_or_create(cli.store()).unwrap();
    let workspace = store.workspace(&cli.work()).unwrap();
    let options = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(options).unwrap();
    drop(session.begin_turn(Message::user_text("edit it")).unwrap());
    let id = session.id().to_string();
    session.close().unwrap();
    let before = workspace.checkpoints().unwrap().count();
    let said = b"{\"role\":\"user\",\"text\":\"something else\"}\n{\"role\":\"assistant\",\"text\":\"ok\"}\n";
    let ran = cli.run_with(&["record", "--session", &id], said);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(workspace.checkpoints().unwrap().count(), before);
}
