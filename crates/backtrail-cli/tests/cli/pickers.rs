//! Pickers: where an argument is missing on a terminal, it is offered; everywhere else nothing
//! changes.

use std::process::Command;

use crate::kit::Cli;
use crate::pty::{self, Terminal};

/// Returns a command on a terminal that can show a picker.
fn command(cli: &Cli, args: &[&str]) -> Command {
    let mut command = cli.command(args);
    command.env("TERM", "xterm-256color");
    // The terminal of these tests answers no questions by itself.
    command.env("COLORFGBG", "15;0").env("PAGER", "cat");
    command
}

/// Starts a command, and tells it where the cursor is.
fn start(cli: &Cli, args: &[&str]) -> Terminal {
    let mut terminal = Terminal::start(&command(cli, args));
    terminal.wait_for("\u{1b}[6n");
    terminal.type_keys("\u{1b}[1;1R");
    terminal
}

#[test]
fn show_without_a_session_offers_them_and_shows_the_chosen_one() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    cli.new_session("zebra");
    cli.new_session("giraffe");
    let mut terminal = start(&cli, &["show"]);
    terminal.wait_for("2/2");
    terminal.type_keys("zebra\r");
    // What the picker had is removed, and then the conversation is shown.
    terminal.wait_for("\u{1b}[?2004l");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let shown = screen.rsplit("\u{1b}[?2004l").next().unwrap();
    assert!(shown.contains("zebra"), "{screen}");
    assert!(!shown.contains("giraffe"), "{screen}");
}

#[test]
fn a_cancelled_picker_does_nothing() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    cli.new_session("zebra");
    for line in [&["show"][..], &["export", "--to", "html"], &["fork"]] {
        let mut terminal = start(&cli, line);
        terminal.wait_for("1/1");
        terminal.type_keys("\u{1b}");
        let (code, screen) = terminal.end();
        assert_eq!(code, 1, "{line:?}: {screen}");
    }
    assert_eq!(
        cli.run(&["list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn search_without_words_searches_as_you_type() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    cli.new_session("zebra");
    cli.new_session("giraffe");
    let mut terminal = start(&cli, &["search"]);
    terminal.wait_for("0/0");
    terminal.type_keys("giraffe");
    // In one piece it is only in the list: the keys are drawn one by one.
    terminal.wait_for("giraffe");
    terminal.type_keys("\r");
    terminal.wait_for("\u{1b}[?2004l");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let shown = screen.rsplit("\u{1b}[?2004l").next().unwrap();
    assert!(shown.contains("giraffe"), "{screen}");
}

#[test]
fn restore_offers_a_point_and_then_the_files_that_differ() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let file = cli.work().join("notes");
    for text in ["one", "two"] {
        std::fs::write(&file, text).unwrap();
        assert_eq!(cli.run(&["checkpoint", text]).code, 0);
    }
    let mut terminal = start(&cli, &["restore"]);
    terminal.wait_for("2/2");
    terminal.type_keys("one\r");
    terminal.wait_for("\u{1b}[6n");
    terminal.type_keys("\u{1b}[1;1R");
    terminal.wait_for("1/1");
    terminal.type_keys("\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
}

/// Where half of the width is the preview, day and counts go before the words do.
#[test]
fn the_words_of_a_point_are_in_sight_at_100_columns() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    for text in ["prices-are-rounded-down", "prices-are-rounded-up"] {
        std::fs::write(cli.work().join("notes"), text).unwrap();
        assert_eq!(cli.run(&["checkpoint", text]).code, 0);
    }
    for verb in ["rewind", "restore"] {
        let mut terminal = Terminal::sized(&command(&cli, &[verb]), 24, 100);
        next_picker(&mut terminal);
        terminal.wait_for("prices-are-rounded-down");
        terminal.type_keys("\u{1b}");
        assert_eq!(terminal.end().0, 1, "{verb}");
    }
}

/// Answers the next picker when it asks where the cursor is.
fn next_picker(terminal: &mut Terminal) {
    terminal.wait_for("\u{1b}[6n");
    terminal.type_keys("\u{1b}[1;1R");
}

/// Two turns of an agent in `notes`, and a later line of the user's.
fn conflicting() -> Cli {
    let cli = Cli::new();
    let file = cli.work().join("notes");
    std::fs::write(&file, "1\n2\n3\n4\n5\n").unwrap();
    assert_eq!(cli.run(&["checkpoint", "start"]).code, 0);
    let edit = |script: &str| {
        let ran = cli.run(&["run", "--", "sed", "-i", script, "notes"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    };
    edit("s/1/one/");
    edit("s/2/two/");
    std::fs::write(&file, "one\ntwo\n3\n4\nmine\n").unwrap();
    cli
}

#[test]
fn rewind_shows_what_it_would_do_and_asks_what_becomes_of_other_changes() {
    if !pty::is_there() {
        return;
    }
    const DOWN: &str = "\u{1b}[B";
    for (keys, left) in [
        ("", "one\ntwo\n3\n4\nmine\n"),
        (DOWN, "1\n2\n3\n4\nmine\n"),
        (&DOWN.repeat(2), "1\n2\n3\n4\n5\n"),
    ] {
        let cli = conflicting();
        let mut terminal = start(&cli, &["rewind"]);
        terminal.wait_for("3/3");
        terminal.type_keys("start");
        // The plan, before anything is decided: whose changes are in the way.
        terminal.wait_for("your");
        terminal.type_keys("\r");
        next_picker(&mut terminal);
        terminal.wait_for("files with other changes:");
        terminal.wait_for("3/3");
        terminal.type_keys(&format!("{keys}\r"));
        let (code, screen) = terminal.end();
        let notes = std::fs::read_to_string(cli.work().join("notes")).unwrap();
        assert_eq!((code, notes.as_str()), (0, left), "{screen}");
        // If all was kept, nothing was done.
        if !keys.is_empty() {
            assert_eq!(cli.run(&["undo"]).code, 0);
        }
        let notes = std::fs::read_to_string(cli.work().join("notes")).unwrap();
        assert_eq!(notes, "one\ntwo\n3\n4\nmine\n");
    }
}

#[test]
fn a_decision_that_is_cancelled_touches_nothing() {
    if !pty::is_there() {
        return;
    }
    let cli = conflicting();
    let mut terminal = start(&cli, &["rewind"]);
    terminal.wait_for("3/3");
    terminal.type_keys("start\r");
    next_picker(&mut terminal);
    terminal.wait_for("3/3");
    terminal.type_keys("\u{1b}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 1, "{screen}");
    let notes = std::fs::read_to_string(cli.work().join("notes")).unwrap();
    assert_eq!(notes, "one\ntwo\n3\n4\nmine\n");
    let log = cli.run(&["log"]).stdout;
    assert!(log.contains("sed") && !log.contains("rewind"), "{log}");
}

#[test]
fn restore_shows_what_it_would_do_to_a_file() {
    if !pty::is_there() {
        return;
    }
    let cli = conflicting();
    let mut terminal = start(&cli, &["restore"]);
    terminal.wait_for("3/3");
    terminal.type_keys("start\r");
    next_picker(&mut terminal);
    terminal.wait_for("1/1");
    // Words that did not change are not drawn again, so that they are not in one piece.
    terminal.wait_for("would");
    terminal.wait_for("replaced;");
    terminal.type_keys("\u{1b}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 1, "{screen}");
    assert!(screen.contains("Restore to checkpoint"), "{screen}");
}

#[test]
fn in_a_pipe_and_with_json_a_missing_argument_is_the_same_error_as_ever() {
    let cli = Cli::new();
    cli.new_session("zebra");
    for (verb, missing) in [("show", "<REF>"), ("cat", "<POINT>"), ("search", "<WORDS>")] {
        let ran = cli.run(&[verb]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:#?}");
        assert!(
            ran.stderr.contains("required arguments were not provided"),
            "{ran:#?}"
        );
        assert!(ran.stderr.contains(missing), "{ran:#?}");
        if pty::is_there() {
            let (code, screen) = Terminal::start(&command(&cli, &[verb, "--json"])).end();
            assert_eq!(code, 2, "{screen}");
            assert!(screen.starts_with("{\"error\""), "{screen}");
        }
    }
}
