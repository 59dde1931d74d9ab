//! What a hostile review of rewinding found in the command's words and exit codes, so
//! that none of it comes back. What shows without them is tested in the engine.

use std::fs;
use std::io;
use std::sync::{Arc, Mutex};

use backtrail::rewind::{Touch, TouchHook};
use backtrail::{Message, Point, Rewind, SessionOptions, StoreOptions};

use super::recovery::interrupted;
use super::turns::Agent;
use super::{files, run, two_runs, write};
use crate::kit::{Cli, Ran, command, finish, short};

/// An agent that had two turns; the second one wrote `2` into `a`.
fn two_turns() -> (Agent, String) {
    let agent = Agent::new();
    let session = agent.session(SessionOptions::new());
    agent.turn(&session, "first", "1\n");
    agent.turn(&session, "second", "2\n");
    let id = session.id().to_string();
    session.close().unwrap();
    (agent, id)
}

/// A store whose snapshots leave out what has more than a MiB.
fn capped() -> Cli {
    let cli = Cli::new();
    write(&cli, "small", "1\n");
    assert_eq!(cli.run(&["checkpoint"]).code, 0);
    fs::write(cli.store().join("config.toml"), "snapshot_cap = \"1 MiB\"").unwrap();
    cli
}

fn one_line(ran: &Ran) -> &str {
    ran.stdout.lines().next().unwrap_or_default()
}

/// Finding 2.
#[test]
fn f31_other_sessions_whose_work_is_undone_are_named() {
    let (agent, first) = two_turns();
    let other = agent.session(SessionOptions::new());
    agent.turn(&other, "of another", "3\n");
    let other = other.id().to_string();
    let cli = &agent.cli;
    for (args, code) in [
        (&["rewind", "last~3", "--dry-run"][..], 0),
        (&["rewind", "last~3", "--files"], 0),
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, code, "{ran:#?}");
        let both = [&first, &other].map(|id| ran.stdout.contains(&short(id)));
        assert!(both[1], "{ran:#?}");
        let words = "This includes changes by session";
        assert!(ran.stdout.contains(words), "{ran:#?}");
    }
    assert_eq!(agent.a(), "0\n");
}

/// Refuses to change names, once for all.
#[derive(Debug)]
struct Refusing;

impl TouchHook for Refusing {
    fn before(&self, touch: &Touch<'_>) -> io::Result<()> {
        match touch.call {
            "renameat2" => Err(io::Error::other("refused")),
            _ => Ok(()),
        }
    }
}

/// Finding 4: the command that is printed undoes what it says.
#[test]
fn a_chat_rewind_after_one_that_was_given_up_is_reversed_by_the_command_it_prints() {
    let (agent, id) = two_turns();
    let cli = &agent.cli;
    let store = StoreOptions::new().touch_hook(Refusing).open(cli.store());
    let workspace = store.unwrap().workspace(&cli.work()).unwrap();
    let to = Point::record(
        agent.workspace.store().sessions().unwrap().first().unwrap(),
        4,
    );
    workspace.rewind(&to, Rewind::files_and_chat()).unwrap_err();
    let before = cli.conversation(&id);
    let ran = cli.run(&["rewind", &format!("{id}:4"), "--chat"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_ne!(cli.conversation(&id), before);
    let back = cli.reverse(&ran);
    assert!(
        one_line(&back).starts_with("Undid the rewind from record 8 to record 4"),
        "{back:#?}"
    );
    assert_eq!(cli.conversation(&id), before);
    assert_eq!(agent.a(), "2\n");
}

/// Finding 6: what a run's last line names undoes what the run did.
#[test]
fn a_run_that_continued_after_a_rewind_is_reversed_by_the_command_it_prints() {
    let cli = Cli::new();
    write(&cli, "a", "0\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    let program = env!("CARGO_BIN_EXE_backtrail");
    let script = format!("echo 1 > a; {program} rewind one --files; echo late > c");
    let ran = cli.run(&["run", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stderr.contains("undo: backtrail undo"), "{ran:#?}");
    assert!(cli.work().join("c").exists());
    let ran = cli.run(&["undo"]);
    assert!(one_line(&ran).starts_with("Undid the run "), "{ran:#?}");
    assert!(!cli.work().join("c").exists());
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"0\n");
}

/// Finding 7: a program that logs blocks no rewind.
#[test]
fn a_directory_that_stays_stops_nothing() {
    let cli = Cli::new();
    write(&cli, ".gitignore", "*.log\n");
    write(&cli, "a", "1\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "echo 2 > a");
    write(&cli, "logs/app.log", "l\n");
    let ran = cli.run(&["rewind", "one"]);
    assert_eq!(
        (ran.code, ran.stderr.contains("logs")),
        (0, false),
        "{ran:#?}"
    );
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"1\n");
    assert!(cli.work().join("logs/app.log").exists());
}

/// Finding 9.
#[test]
fn an_undo_that_can_restore_nothing_is_reported() {
    let cli = capped();
    fs::write(cli.work().join("big"), vec![b'.'; 1_500_000]).unwrap();
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "head -c 1600000 /dev/zero > big");
    let ran = cli.run(&["undo"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        one_line(&ran).starts_with("Cannot restore any of the run "),
        "{ran:#?}"
    );
    assert!(ran.stdout.contains("not restored  big"), "{ran:#?}");
    assert!(!ran.stderr.contains("to reverse"), "{ran:#?}");
}

/// Finding 10.
#[test]
fn a_restore_that_restored_nothing_is_not_reported_as_done() {
    let cli = Cli::new();
    write(&cli, ".gitignore", "ig/\n");
    write(&cli, "ig/i", "1\n");
    write(&cli, "d/a", "1\n");
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(&cli, "echo 2 > ig/i; rm -r d; echo file > d");
    let before = files(&cli.work());
    for (path, why) in [
        ("ig/i", "was skipped then: ignored"),
        ("d/a", "d is not a directory now"),
    ] {
        for how in [&[][..], &["--dry-run"]] {
            let ran = cli.run(&[&["restore", "one"], how, &["--", path]].concat());
            assert_eq!(ran.code, 1, "{ran:#?}");
            assert!(
                one_line(&ran).starts_with("Cannot restore anything to "),
                "{ran:#?}"
            );
            assert!(ran.stdout.contains(path), "{ran:#?}");
            assert!(ran.stdout.contains(why), "{ran:#?}");
            assert!(!ran.stderr.contains("already"), "{ran:#?}");
        }
    }
    assert_eq!(files(&cli.work()), before);
}

/// Finding 12: after damage there is a way on, by whatever comes next.
#[test]
fn f15_a_rewind_that_cannot_be_finished_is_given_up_and_reported() {
    for args in [&["status"][..], &["checkpoint"], &["run", "--", "true"]] {
        let (cli, _) = two_runs();
        interrupted(&cli, 2);
        for path in cli.packs() {
            let length = fs::read(&path).unwrap().len();
            fs::write(&path, vec![0xff; length]).unwrap();
        }
        let ran = cli.run(args);
        let said = ran.stderr.lines().next().unwrap();
        assert!(said.starts_with("the rewind from "), "{args:?}: {ran:#?}");
        let words = " was interrupted and cannot be finished: ";
        assert!(said.contains(words), "{args:?}: {ran:#?}");
        assert!(said.contains("; the files stay as they are"), "{ran:#?}");
        // Once; then all is as ever.
        let ran = cli.run(&["checkpoint", "new"]);
        assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
        assert!(!ran.stderr.contains("interrupted"), "{ran:#?}");
        write(&cli, "k", "changed\n");
        let ran = cli.run(&["rewind", "new", "--overwrite"]);
        assert_eq!(ran.code, 0, "{args:?}: {ran:#?}");
        assert_eq!(fs::read(cli.work().join("k")).unwrap(), b"kept\n");
    }
}

/// Finding 13.
#[test]
fn f15_status_names_files_of_an_unknown_rewind() {
    let (cli, _) = two_runs();
    interrupted(&cli, 2);
    let trails = fs::read_dir(cli.store().join("workspaces")).unwrap();
    let mut trails = trails.map(|entry| entry.unwrap().path().join("0000.jsonl"));
    let trail = trails.find(|trail| trail.exists()).unwrap();
    let text = fs::read_to_string(&trail).unwrap();
    fs::write(&trail, &text[..text.len() - 20]).unwrap();
    let ran = cli.run(&["status"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let words = "/ has files from an old rewind";
    let named = ran.stderr.lines().find(|line| line.contains(words));
    let named = named.unwrap_or_else(|| panic!("{ran:#?}"));
    assert!(named.contains(".backtrail-staging-"), "{ran:#?}");
}

/// Looks at the workspace with the real program while its files move.
#[derive(Debug, Clone)]
struct Looking {
    at: Arc<Place>,
    seen: Arc<Mutex<Option<Ran>>>,
}

/// Where the program is used.
#[derive(Debug)]
struct Place {
    store: std::path::PathBuf,
    work: std::path::PathBuf,
}

impl TouchHook for Looking {
    fn before(&self, touch: &Touch<'_>) -> io::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        if touch.call == "renameat2" && seen.is_none() {
            let mut status = command(&self.at.store, &self.at.work, &["status"]);
            *seen = Some(finish(&mut status, b""));
        }
        Ok(())
    }
}

/// Finding 14: who looks while files move is reported so, and finishes nothing.
#[test]
fn readers_are_warned_while_files_move() {
    let (cli, [first, ..]) = two_runs();
    let hook = Looking {
        at: Arc::new(Place {
            store: cli.store(),
            work: cli.work(),
        }),
        seen: Arc::default(),
    };
    let store = StoreOptions::new()
        .touch_hook(hook.clone())
        .open(cli.store());
    let workspace = store.unwrap().workspace(&cli.work()).unwrap();
    workspace
        .rewind(&Point::label("one"), Rewind::files())
        .unwrap();
    assert_eq!(files(&cli.work()), first);
    let ran = hook.seen.lock().unwrap().take().unwrap();
    let words = "warning: another process is rewinding here\n";
    assert!(ran.stderr.starts_with(words), "{ran:#?}");
    assert!(!ran.stderr.contains("finished"), "{ran:#?}");
    assert!(!cli.run(&["status"]).stderr.contains("moved"), "it is over");
}

/// Finding 15.
#[test]
fn a_lost_session_does_not_keep_files_from_moving() {
    let (agent, id) = two_turns();
    let cli = &agent.cli;
    assert_eq!(cli.run(&["undo"]).code, 0);
    fs::remove_dir_all(cli.store().join("sessions").join(&id)).unwrap();
    let ran = cli.run(&["redo"]);
    assert_eq!((ran.code, agent.a().as_str()), (0, "2\n"), "{ran:#?}");
    let ran = cli.run(&["rewind", "last~2", "--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let ran = cli.run(&["rewind", "last~2"]);
    assert_eq!((ran.code, agent.a().as_str()), (0, "0\n"), "{ran:#?}");
}

/// Finding 16.
#[test]
fn log_steps_lists_no_redo_that_is_refused() {
    let (agent, id) = two_turns();
    let cli = &agent.cli;
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert!(cli.run(&["log", "--steps"]).stdout.contains("redo"));
    let session = agent.workspace.store().open_session(&id.parse().unwrap());
    let session = session.unwrap();
    session.append(Message::user_text("and now?")).unwrap();
    session.close().unwrap();
    let ran = cli.run(&["log", "--steps"]);
    assert!(!ran.stdout.contains("redo"), "{ran:#?}");
    assert!(!ran.stderr.contains("redo"), "{ran:#?}");
    assert_eq!(cli.run(&["redo"]).code, 1);
}

/// Finding 17.
#[test]
fn restored_messages_are_not_called_a_rewind() {
    let (agent, id) = two_turns();
    let cli = &agent.cli;
    let before = cli.conversation(&id);
    let ran = cli.run(&["undo", "--chat"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let back = cli.reverse(&ran);
    assert!(
        one_line(&back).starts_with("Redid records 5 to"),
        "{back:#?}"
    );
    assert_eq!(cli.conversation(&id), before);
}

/// Finding 18: the command that is named restores them.
#[test]
fn the_verb_that_restores_overwritten_files_is_named() {
    let (cli, _) = two_runs();
    write(&cli, "a", "mine\n");
    let ran = cli.run(&["undo"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("(redo restores it)"), "{ran:#?}");
    let ran = cli.run(&["undo", "--overwrite"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(cli.run(&["redo"]).code, 0);
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"mine\n");
    for verb in ["undo", "redo", "rewind", "restore"] {
        let help = cli.run(&[verb, "--help"]).stdout;
        let overwrite = help.split("--overwrite").nth(1).unwrap();
        let overwrite = overwrite.split("--").next().unwrap();
        let names_undo = overwrite.split_whitespace().any(|word| word == "undo");
        assert!(!names_undo, "{verb}: {overwrite}");
    }
}

/// Findings 19 and 22.
#[test]
fn the_restore_of_everything_is_named_and_has_no_count() {
    let (cli, [first, .., third]) = two_runs();
    let ran = cli.run(&["restore", "one", "--", "."]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(!ran.stdout.contains("unchanged"), "{ran:#?}");
    assert_eq!(files(&cli.work()), first);
    let log = cli.run(&["log"]).stdout;
    assert!(log.lines().next().unwrap().contains(" . "), "{log}");
    let back = cli.reverse(&ran);
    assert!(
        one_line(&back).starts_with("Undid the restore of . ("),
        "{back:#?}"
    );
    assert_eq!(files(&cli.work()), third);
}

/// Finding 22: what is kept is not as it should be.
#[test]
fn f29_kept_files_are_not_called_unchanged() {
    let (cli, _) = two_runs();
    write(&cli, "k", "mine\n");
    let ran = cli.run(&["rewind", "one", "--keep"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("k (has your changes)"), "{ran:#?}");
    assert!(!ran.stdout.contains("unchanged"), "{ran:#?}");
}
