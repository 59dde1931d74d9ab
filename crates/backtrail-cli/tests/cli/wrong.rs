//! Every verb with a wrong reference, a session that is being written to, a read-only store,
//! and no store at all.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::kit::{Cli, Ran, Recording, screen, short};

/// The verbs that read a session or change it, with REF for the reference.
const LOOKING: &[&[&str]] = &[
    &["show", "REF"],
    &["log", "--steps", "REF"],
    &["context", "REF"],
    &["title", "REF"],
    &["tag", "REF"],
    &["stats", "REF"],
    &["export", "REF", "--to", "v1"],
    &["export", "REF", "--to", "json"],
    &["export", "REF", "--to", "markdown"],
];
const NOTING: &[&[&str]] = &[
    &["fork", "REF"],
    &["title", "REF", "new"],
    &["tag", "REF", "new"],
    &["pin", "REF"],
];
const WRITING: &[&[&str]] = &[
    &["rewind", "REF:1", "--chat"],
    &["undo", "REF"],
    &["redo", "REF"],
    &["compact", "REF", "--summary-file", "summary"],
    &["record", "--session", "REF", "--text", "more"],
];

fn all_verbs() -> impl Iterator<Item = &'static [&'static str]> {
    [LOOKING, NOTING, WRITING].into_iter().flatten().copied()
}

fn run(cli: &Cli, verb: &[&str], reference: &str) -> Ran {
    let args: Vec<String> = verb
        .iter()
        .map(|arg| arg.replace("REF", reference))
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    cli.run(&args)
}

fn cli_with_summary() -> Cli {
    let cli = Cli::new();
    std::fs::write(cli.work().join("summary"), "They looked.").unwrap();
    cli
}

/// Records a conversation with a step to undo and one to redo.
fn with_steps(cli: &Cli) -> String {
    let id = cli.talk();
    for verb in [
        &["rewind", "REF:3", "--chat"][..],
        &["rewind", "REF:2", "--chat"],
        &["undo", "REF"],
    ] {
        let ran = run(cli, verb, &id);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    id
}

#[test]
fn every_verb_refuses_an_unknown_reference_and_names_the_nearest() {
    let cli = cli_with_summary();
    let id = cli.talk();
    let before = cli.run(&["show", &id, "--json"]).stdout;
    for verb in all_verbs() {
        let ran = run(&cli, verb, "gggg");
        assert_eq!(
            screen(&ran, &cli, &[&id]),
            "\
exit 2
err: error: no session begins with \"gggg\"
err:
err: hint: see all sessions: backtrail list --all
",
            "{verb:?}"
        );
        let near = format!("{}zz", &id[..6]);
        let ran = run(&cli, verb, &near);
        let seen = screen(&ran, &cli, &[&id]);
        assert!(
            seen.contains("hint: did you mean <id> (a talk, "),
            "{verb:?}: {seen}"
        );
        let ran = run(&cli, verb, "./summary");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{verb:?}");
        assert!(
            ran.stderr.contains("is not a session"),
            "{verb:?}: {}",
            ran.stderr
        );
    }
    assert_eq!(cli.run(&["show", &id, "--json"]).stdout, before);
}

#[test]
fn every_verb_refuses_an_ambiguous_reference() {
    let cli = cli_with_summary();
    for n in 1..=2 {
        let line = format!(
            r#"{{"type":"session_meta","version":1,"session_id":"session-1794726326-{n}"}}"#
        );
        let message = r#"{"type":"message","message":{"role":"user","blocks":[{"type":"text","text":"hi"}]}}"#;
        let file = format!("{n}.jsonl");
        std::fs::write(cli.work().join(&file), format!("{line}\n{message}\n")).unwrap();
        assert_eq!(cli.run(&["import", &file]).code, 0);
    }
    for verb in all_verbs() {
        let ran = run(&cli, verb, "session-17947");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{verb:?}");
        for session in ["session-1794726326-1", "session-1794726326-2"] {
            let named = format!("hint: {} (hi", short(session));
            assert!(ran.stderr.contains(&named), "{verb:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_record_out_of_range_names_the_last_one() {
    let cli = Cli::new();
    let id = cli.talk();
    let sessions = || cli.run(&["list", "--json"]).stdout;
    let before = sessions();
    for verb in [&["fork", "REF:6"][..], &["rewind", "REF:6", "--chat"]] {
        let ran = run(&cli, verb, &id);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        let what = format!("error: session {id} has no record 6; its last is 5\n");
        assert!(ran.stderr.starts_with(&what), "{}", ran.stderr);
    }
    let ran = cli.run(&["fork", &format!("{id}:6"), "--json"]);
    let error: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(error["error"]["kind"], "not_found");
    assert_eq!(sessions(), before);
}

#[test]
fn a_session_in_use_names_its_writer_and_what_to_do() {
    let cli = cli_with_summary();
    let id = with_steps(&cli);
    let mut speaker = Recording::start(cli.command(&["record", "--session", &id]));
    speaker.say("mine");
    let before = cli.conversation(&id);
    // The message ended what redo could do: that is said, whoever writes.
    let ran = run(&cli, &["redo", "REF"], &id);
    assert_eq!(ran.code, 1, "{ran:#?}");
    for verb in WRITING.iter().filter(|verb| verb[0] != "redo") {
        let ran = run(&cli, verb, &id);
        let seen = screen(&ran, &cli, &[&id]).replace(&speaker.child.id().to_string(), "<pid>");
        let (since, rest) = seen.split_once(", since ").expect("it says since when");
        let rest = &rest[rest.find(')').unwrap()..];
        assert_eq!(
            format!("{since}, since <when>{rest}"),
            "\
exit 2
err: error: process <pid> is writing to session <id> (backtrail, since <when>)
err:   in: <store>/sessions/<session>/speaker.lock
err:
err: hint: to follow it: backtrail show <id> --follow
err: hint: to continue separately: backtrail fork <id>
",
            "{verb:?}"
        );
        let json = [*verb, &["--json"][..]].concat();
        let error: Value = serde_json::from_str(&run(&cli, &json, &id).stderr).unwrap();
        assert_eq!(error["error"]["kind"], "locked", "{verb:?}");
    }
    for verb in LOOKING {
        assert_eq!(run(&cli, verb, &id).code, 0, "{verb:?}");
    }
    assert_eq!(cli.conversation(&id), before);
    assert_eq!(speaker.end(), 0);
    let ran = cli.run(&["rewind", &format!("{id}:1"), "--chat"]);
    assert_eq!(ran.code, 0, "free again: {ran:#?}");
}

#[test]
fn without_a_store_every_verb_fails_and_creates_none() {
    let cli = cli_with_summary();
    for verb in all_verbs() {
        let ran = run(&cli, verb, "latest");
        assert_eq!(
            screen(&ran, &cli, &[]),
            "\
exit 2
err: error: no store in <store>
err:
err: hint: start with: backtrail run -- COMMAND, or backtrail import
",
            "{verb:?}"
        );
        assert!(!cli.store().exists(), "{verb:?}");
    }
}

#[test]
fn in_an_empty_store_there_is_no_latest() {
    let cli = cli_with_summary();
    assert_eq!(
        cli.run(&["record"]).code,
        0,
        "it creates the store and no session"
    );
    for verb in all_verbs() {
        let ran = run(&cli, verb, "latest");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{verb:?}");
        assert!(
            ran.stderr.starts_with("error: no sessions yet"),
            "{verb:?}: {}",
            ran.stderr
        );
    }
    let ran = cli.run(&["list"]);
    assert_eq!(
        screen(&ran, &cli, &[]),
        "exit 0\nerr: no sessions yet; start with: backtrail run -- COMMAND, or backtrail import\n"
    );
}

/// A read-only directory, until this is dropped.
struct ReadOnly<'a> {
    dir: &'a Path,
    mounted: bool,
}

impl<'a> ReadOnly<'a> {
    /// Removes the permission to write. Root can write anyway: for root the directory is
    /// mounted read-only over itself, if that is allowed; otherwise the test is skipped.
    fn make(dir: &'a Path) -> Option<Self> {
        let quiet = |args: &[&str]| {
            let done = Command::new(args[0]).args(&args[1..]).arg(dir).output();
            done.is_ok_and(|output| output.status.success())
        };
        assert!(quiet(&["chmod", "-R", "a-w"]));
        let only = Self {
            dir,
            mounted: false,
        };
        let probe = dir.join("probe");
        if std::fs::write(&probe, "").is_err() {
            return Some(only);
        }
        std::fs::remove_file(&probe).unwrap();
        let mounted = quiet(&["mount", "--bind", dir.to_str().unwrap()])
            && quiet(&["mount", "-o", "remount,bind,ro"]);
        if mounted {
            return Some(Self { dir, mounted });
        }
        eprintln!("SKIPPED: needs mount; root can write everywhere else");
        None
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        if self.mounted {
            Command::new("umount").arg(self.dir).status().ok();
        }
        Command::new("chmod")
            .args(["-R", "u+w"])
            .arg(self.dir)
            .status()
            .ok();
    }
}

#[test]
#[cfg(unix)]
fn a_read_only_store_can_be_read_and_every_change_names_the_reason() {
    let cli = cli_with_summary();
    let id = with_steps(&cli);
    let before = cli.conversation(&id);
    let store = cli.store();
    let Some(_read_only) = ReadOnly::make(&store) else {
        return;
    };
    for verb in LOOKING {
        let ran = run(&cli, verb, &id);
        assert_eq!(ran.code, 0, "{verb:?}: {ran:#?}");
    }
    let doctor = cli.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:#?}");
    let what = "FAIL  permissions  cannot be written: ";
    assert!(doctor.stdout.contains(what), "{doctor:#?}");
    for verb in NOTING.iter().chain(WRITING) {
        let ran = run(&cli, verb, &id);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (2, ""),
            "{verb:?}: {ran:#?}"
        );
        assert!(
            ran.stderr.starts_with("error: cannot "),
            "{verb:?}: {}",
            ran.stderr
        );
        let why = ["Read-only file system", "Permission denied"];
        assert!(
            why.iter().any(|why| ran.stderr.contains(why)),
            "{verb:?}: {}",
            ran.stderr
        );
        let json = [verb, &["--json"][..]].concat();
        let error: Value = serde_json::from_str(&run(&cli, &json, &id).stderr).unwrap();
        assert_eq!(error["error"]["kind"], "io", "{verb:?}");
    }
    std::fs::write(cli.work().join("s.json"), r#"{"version":1,"messages":[]}"#).unwrap();
    let ran = cli.run(&["import", "s.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
    assert!(ran.stderr.starts_with("error: cannot "), "{}", ran.stderr);
    assert_eq!(cli.conversation(&id), before);
}
