//! A moment that continues in a directory of its own, told as people and programs need
//! it.

use std::fs;

use serde_json::json;

use crate::kit::{Cli, normal};

/// Makes a workspace with a checkpoint, and a session with one.
fn desk() -> (Cli, String) {
    let cli = Cli::new();
    let work = cli.work();
    fs::create_dir(work.join("src")).unwrap();
    fs::write(work.join("a"), "one\n").unwrap();
    fs::write(work.join("src/b"), "two\n").unwrap();
    assert_eq!(cli.run(&["checkpoint", "base"]).code, 0);
    let ran = cli.run(&[
        "run",
        "--title",
        "edits",
        "--",
        "sh",
        "-c",
        "echo more >> a",
    ]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let sessions = cli.run(&["list", "--json"]).json();
    let id = sessions[0]["id"].as_str();
    (cli, id.unwrap().to_owned())
}

fn beside(cli: &Cli, name: &str) -> (std::path::PathBuf, String) {
    let dir = cli.work().parent().unwrap().join(name);
    let text = dir.to_str().unwrap().to_owned();
    (dir, text)
}

#[test]
fn a_fork_into_a_directory_reports_what_it_has_and_how_to_continue() {
    let (cli, _) = desk();
    let (dir, into) = beside(&cli, "fork");
    let ran = cli.run(&["fork", "base", "--into", &into, "--name", "try it"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "one\n");
    assert_eq!(fs::read_to_string(dir.join("src/b")).unwrap(), "two\n");
    let out = ran.stdout.trim_end();
    let created = format!("created {into} as session ");
    assert!(out.starts_with(&created), "{out}");
    assert!(out.ends_with(" \"try it\""), "{out}");
    let err = ran.stderr;
    assert!(err.contains("2 files (8 bytes) from "), "{err}");
    assert!(err.contains(": checkpoint \"base\"\n"), "{err}");
    let go_on = format!("to continue: cd {into} && backtrail run --session ");
    assert!(err.contains(&go_on), "{err}");
    // And that works as it is typed.
    let id = err
        .split("--session ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let mut there = crate::kit::command(
        &cli.store(),
        &dir,
        &["run", "--session", id, "--", "sh", "-c", "echo there > a"],
    );
    let ran = crate::kit::finish(&mut there, b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(
        fs::read_to_string(cli.work().join("a")).unwrap(),
        "one\nmore\n"
    );
    let mut there = crate::kit::command(&cli.store(), &dir, &["undo"]);
    assert_eq!(crate::kit::finish(&mut there, b"").code, 0);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "one\n");
}

#[test]
fn a_session_is_a_point_too_wherever_it_works() {
    let (cli, id) = desk();
    let elsewhere = cli.work().parent().unwrap().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let point = format!("{id}:1");
    for (n, point) in [&id[..8], &point].into_iter().enumerate() {
        let (dir, into) = beside(&cli, &format!("fork-{n}"));
        let args = ["fork", point, "--into", &into, "--json"];
        let mut command = crate::kit::command(&cli.store(), &elsewhere, &args);
        let told = crate::kit::finish(&mut command, b"").json();
        assert_eq!(told["parent"], json!(id), "{told}");
        assert_eq!(told["root"], json!(into));
        assert_eq!(told["dry_run"], json!(false));
        assert_eq!(told["files"], json!(2));
        assert_eq!(told["git"], json!(false));
        assert_eq!(told["skipped"]["count"], json!(0));
        assert!(dir.join("a").exists());
        let shown = cli.run(&["list", "--json"]).json();
        let sessions = shown.as_array().unwrap();
        let fork = sessions.iter().find(|one| one["id"] == told["session"]);
        assert!(fork.is_some(), "{shown}");
    }
}

#[test]
fn a_dry_run_creates_nothing() {
    let (cli, _) = desk();
    let (dir, into) = beside(&cli, "fork");
    let before = cli.run(&["list", "--json"]).stdout;
    let ran = cli.run(&["fork", "base", "--into", &into, "--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(
        ran.stdout,
        format!("would create {into} as a new session\n")
    );
    let line = format!("to do it: backtrail fork base --into {into}\n");
    assert!(ran.stderr.ends_with(&line), "{}", ran.stderr);
    let told = cli
        .run(&["fork", "last", "--into", &into, "--dry-run", "--json"])
        .json();
    assert_eq!(told["dry_run"], json!(true));
    assert_eq!(told["session"], json!(null));
    assert!(!dir.exists());
    assert_eq!(cli.run(&["list", "--json"]).stdout, before);
}

#[test]
fn files_that_are_not_copied_are_named() {
    let (cli, _) = desk();
    let work = cli.work();
    fs::create_dir(work.join("target")).unwrap();
    fs::write(work.join("target/x"), "built").unwrap();
    fs::write(work.join(".gitignore"), "target/\n").unwrap();
    fs::create_dir(work.join(".git")).unwrap();
    assert_eq!(cli.run(&["checkpoint", "later"]).code, 0);
    let (_, into) = beside(&cli, "fork");
    let ran = cli.run(&["fork", "later", "--into", &into]);
    let err = normal(&ran.stderr, &cli, &[]);
    assert!(err.contains("not copied: target/ (ignored)\n"), "{err}");
    assert!(err.contains(".git is not copied"), "{err}");
}

#[test]
fn wrong_arguments_are_reported_with_hints() {
    let (cli, id) = desk();
    let (dir, into) = beside(&cli, "fork");
    let fails = |args: &[&str], what: &str| {
        let ran = cli.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        assert!(ran.stderr.contains(what), "{}", ran.stderr);
        assert!(!dir.exists());
    };
    fails(&["fork", "base", "--into", "below"], "is in the workspace");
    fails(&["fork", "base", "--into", "."], "is already a workspace");
    fails(
        &["fork", "last~9", "--into", &into],
        "there is only one turn or run to go back to: last~1",
    );
    fails(&["fork", "~1", "--into", &into], "is not a point");
    fails(&["fork", &id, "--dry-run"], "--into");
    fails(
        &["fork", &id, "--workspace", "."],
        "pick a directory for the files: --into DIR",
    );
    let ran = cli.run(&["fork", "base", "--into", "below", "--json"]);
    let told: serde_json::Value = serde_json::from_str(ran.stderr.trim()).unwrap();
    assert_eq!(told["error"]["kind"], json!("invalid"), "{told}");
}

/// A fork's name is a reference for every verb, with and without files, and where no session
/// is continued.
#[test]
fn the_name_of_a_fork_is_a_reference_everywhere() {
    let (cli, id) = desk();
    let talk = cli.talk();
    let (dir, into) = beside(&cli, "fork");
    // The checkpoint has no session, so an empty one begins.
    let made: [&[&str]; 3] = [
        &[
            "fork", "base", "--into", &into, "--name", "try it", "--json",
        ],
        &["fork", &talk, "--name", "b", "--json"],
        &["fork", &id, "--name", "0ther-try", "--json"],
    ];
    for args in made {
        let forked = cli.run(args).json();
        let name = args[args.len() - 2];
        let session = forked["session"].as_str().unwrap();
        let line = crate::kit::line("more");
        let recorded = cli.run_with(&["record", "--session", name], line.as_bytes());
        assert_eq!(
            recorded.json_lines()[0]["session"],
            session,
            "{recorded:#?}"
        );
        let record = format!("{name}:1");
        let point = format!("{name}:0");
        let verbs: [&[&str]; 12] = [
            &["show", name],
            &["stats", name],
            &["context", name],
            &["log", "--steps", name],
            &["export", name, "--to", "json"],
            &["rewind", &point, "--chat"],
            &["undo", name],
            &["redo", name],
            &["tag", name, "x"],
            &["run", "--session", name, "--", "true"],
            &["fork", &record],
            &["verify", name],
        ];
        for verb in verbs {
            let ran = cli.run(verb);
            assert_eq!(ran.code, 0, "{verb:?}: {ran:#?}");
        }
        let titled = cli.run(&["title", name, "--json"]).json();
        assert_eq!(titled["session"], session);
        // It is taken now.
        let ran = cli.run(&["fork", &talk, "--name", name]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains("already means session"), "{ran:#?}");
        assert_eq!(cli.run(&["delete", name]).code, 0);
    }
    assert!(dir.join("a").exists());
    // What could not be a reference is refused.
    for name in [
        "a/b",
        "../a",
        "a:1",
        "-x",
        "latest",
        "last",
        "last~1",
        &id[..8],
    ] {
        let arg = format!("--name={name}");
        let ran = cli.run(&["fork", &talk, &arg]);
        assert_eq!(ran.code, 2, "{name}: {ran:#?}");
        assert!(ran.stderr.contains("hint: pick a"), "{name}: {ran:#?}");
    }
    // A blank one is none.
    assert_eq!(cli.run(&["fork", &talk, "--name", " "]).code, 0);
}
