//! `--patch`: hunks are shown, and the user at a terminal chooses among them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::{files, run, write};
use crate::kit::Cli;
use crate::pty::{self, CTRL_C, Terminal};

fn lines(changed: &[(usize, &str)]) -> String {
    let line = |n: usize| {
        let other = changed.iter().find(|(at, _)| *at == n);
        other.map_or_else(|| format!("{n}\n"), |(_, line)| format!("{line}\n"))
    };
    (1..=30).map(line).collect()
}

/// A run that changed two places of `a` near each other and one apart, a mode, and
/// made and deleted files.
fn changed() -> Cli {
    let cli = Cli::new();
    write(&cli, "a", &lines(&[]));
    write(&cli, "gone", "back\n");
    write(&cli, "x.sh", "#!/bin/sh\n");
    let mode = |name: &str, mode| {
        fs::set_permissions(cli.work().join(name), Permissions::from_mode(mode)).unwrap();
    };
    mode("x.sh", 0o644);
    assert_eq!(cli.run(&["checkpoint", "one"]).code, 0);
    run(
        &cli,
        "sed -i 's/^3$/three/; s/^6$/six/; s/^20$/twenty/' a; rm gone; echo n > new; chmod 755 x.sh",
    );
    cli
}

/// Answers one question after the other.
fn answer(cli: &Cli, args: &[&str], replies: &[(&str, &str)]) -> (i32, String) {
    let mut terminal = Terminal::start(&cli.command(args));
    for (question, reply) in replies {
        terminal.wait_for(question);
        terminal.wait_for("]?");
        terminal.type_keys(&format!("{reply}\n"));
    }
    terminal.end()
}

fn read(cli: &Cli, name: &str) -> String {
    fs::read_to_string(cli.work().join(name)).unwrap()
}

fn mode(cli: &Cli, name: &str) -> u32 {
    let meta = fs::metadata(cli.work().join(name)).unwrap();
    meta.permissions().mode() & 0o777
}

#[test]
fn chosen_hunks_are_restored_and_the_rest_stays() {
    if !pty::is_there() {
        return;
    }
    let cli = changed();
    let now = files(&cli.work());
    let (code, screen) = answer(
        &cli,
        &["rewind", "one", "--patch"],
        &[
            ("(1/2) Restore this hunk [y,n,q,a,d,s,?", "s"),
            ("(1/3) Restore this hunk [y,n,q,a,d,?", "n"),
            ("(2/3) Restore this hunk", "?"),
            ("q - quit: restore what you chose", "y"),
            ("(3/3) Restore this hunk", "n"),
            ("Restore this deleted file", "y"),
            ("Delete this file", "n"),
            ("Restore the mode, 755 to 644", "y"),
        ],
    );
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("-six") && screen.contains("+6"), "{screen}");
    let chosen = lines(&[(3, "three"), (20, "twenty")]);
    assert_eq!(read(&cli, "a"), chosen);
    assert_eq!(read(&cli, "gone"), "back\n");
    assert_eq!(read(&cli, "new"), "n\n");
    assert_eq!(mode(&cli, "x.sh"), 0o644);
    assert!(screen.contains("to reverse: backtrail undo"), "{screen}");
    let steps = cli.run(&["log", "--steps"]).stdout;
    assert!(
        steps.contains("the restore of parts of a and 2 more"),
        "{steps}"
    );
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(files(&cli.work()), now);
    assert_eq!(mode(&cli, "x.sh"), 0o755);
    assert_eq!(cli.run(&["verify"]).code, 0);
}

#[test]
fn all_and_none_answer_for_the_rest_of_a_file() {
    if !pty::is_there() {
        return;
    }
    let cli = changed();
    let (code, screen) = answer(
        &cli,
        &["rewind", "one", "--patch", "a", "new"],
        &[("(1/2)", "a"), ("(1/1) Delete this file", "d")],
    );
    assert_eq!(code, 0, "{screen}");
    assert_eq!(read(&cli, "a"), lines(&[]));
    assert!(cli.work().join("new").exists() && !cli.work().join("gone").exists());
    let (code, screen) = answer(
        &cli,
        &["restore", "one", "-p", "new", "gone"],
        &[
            ("Restore this deleted file", "n"),
            ("Delete this file", "y"),
        ],
    );
    assert_eq!(code, 0, "{screen}");
    assert!(!cli.work().join("new").exists() && !cli.work().join("gone").exists());
}

/// `q` goes on with what was chosen so far, within a file and over several, and asks nothing
/// further.
#[test]
fn quitting_keeps_what_was_chosen() {
    if !pty::is_there() {
        return;
    }
    let cli = changed();
    let now = files(&cli.work());
    let patch = ["rewind", "one", "--patch"];
    let (code, screen) = answer(&cli, &patch, &[("(1/2)", "y"), ("(2/2)", "q")]);
    assert_eq!(code, 0, "{screen}");
    assert_eq!(read(&cli, "a"), lines(&[(20, "twenty")]));
    assert!(!screen.contains("deleted file ["), "{screen}");
    assert!(!cli.work().join("gone").exists() && cli.work().join("new").exists());
    assert_eq!(cli.run(&["undo"]).code, 0);
    assert_eq!(files(&cli.work()), now);
    let replies = [
        ("(1/2)", "a"),
        ("Restore this deleted file", "y"),
        ("Delete this file", "Q"),
    ];
    let (code, screen) = answer(&cli, &patch, &replies);
    assert_eq!(code, 0, "{screen}");
    assert_eq!(read(&cli, "a"), lines(&[]));
    assert_eq!(read(&cli, "gone"), "back\n");
    assert!(cli.work().join("new").exists());
    assert_eq!(mode(&cli, "x.sh"), 0o755, "nothing was asked of it");
}

#[test]
fn without_an_answer_nothing_is_touched() {
    if !pty::is_there() {
        return;
    }
    let cli = changed();
    let now = files(&cli.work());
    let log = cli.run(&["log", "--all", "--json"]).stdout;
    for (first, last) in [("y\n", CTRL_C), ("y\n", "\u{4}"), ("n\n", "q\n")] {
        let mut terminal = Terminal::start(&cli.command(&["rewind", "one", "--patch"]));
        terminal.wait_for("(1/2)");
        terminal.type_keys(first);
        terminal.wait_for("(2/2)");
        terminal.wait_for("]?");
        terminal.type_keys(last);
        let (code, screen) = terminal.end();
        assert_ne!(code, 0, "{screen}");
        assert_eq!(files(&cli.work()), now, "{last:?}");
    }
    let none: Vec<(&str, &str)> = vec![("(1/", "d"); 4];
    let (code, screen) = answer(&cli, &["rewind", "one", "--patch"], &none);
    assert_eq!(code, 1, "{screen}");
    assert!(
        screen.contains("nothing was chosen; nothing was touched"),
        "{screen}"
    );
    assert_eq!(files(&cli.work()), now);
    assert_eq!(cli.run(&["log", "--all", "--json"]).stdout, log);
}

#[test]
fn the_users_changes_are_named_and_changes_meanwhile_stop_it() {
    if !pty::is_there() {
        return;
    }
    let cli = changed();
    write(&cli, "a", &(read(&cli, "a") + "mine\n"));
    let mut terminal = Terminal::start(&cli.command(&["rewind", "one", "-p", "a"]));
    terminal.wait_for("also changed by you, since the last checkpoint");
    terminal.wait_for("(1/3)");
    terminal.wait_for("]?");
    write(&cli, "a", &(read(&cli, "a") + "more\n"));
    let now = files(&cli.work());
    terminal.type_keys("a\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 2, "{screen}");
    assert!(
        screen.contains("changed since the plan was made"),
        "{screen}"
    );
    assert_eq!(files(&cli.work()), now);
}

#[test]
fn without_a_terminal_it_is_refused_with_hints() {
    let cli = changed();
    let now = files(&cli.work());
    for args in [
        &["rewind", "one", "--patch"][..],
        &["restore", "one", "--patch", "a"],
        &["rewind", "one", "--patch", "--json"],
    ] {
        let ran = cli.run(args);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains("--patch needs a terminal"), "{ran:#?}");
        assert!(
            ran.stderr.contains("backtrail restore POINT PATHS"),
            "{ran:#?}"
        );
    }
    assert_eq!(files(&cli.work()), now);
}

/// Readable without colours; what is in files commands no terminal.
#[test]
fn hunks_are_shown_without_colours_and_escapes() {
    if !pty::is_there() {
        return;
    }
    let cli = changed();
    write(&cli, "new", "\u{1b}[31mred\n");
    let mut command = cli.command(&["rewind", "one", "--patch", "new"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(&command);
    terminal.resize(24, 60);
    terminal.wait_for("Delete this file [y,n,q,a,d,?]? ");
    terminal.type_keys("y\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("-^[[31mred"), "{screen:?}");
    assert!(!screen.contains('\u{1b}'), "{screen:?}");
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
