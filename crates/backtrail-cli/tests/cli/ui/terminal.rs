//! The terminal: sizes, colours, signals.

use std::fs;

use rustix::process::Signal;

use super::Shop;
use super::screen::Screen;
use crate::pty;

#[test]
fn every_size_shows_what_it_can_and_comes_back_whole() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    screen.press_for("<Enter>", "next prompt");
    for (rows, columns) in [(5, 20), (24, 80), (1, 1), (18, 60), (50, 200)] {
        screen.resize(rows, columns);
    }
    screen.expect("notes.md");
    screen.resize(40, 160);
    screen.expect("next prompt");
    screen.quit();
}

#[test]
fn without_colours_and_in_ascii_nothing_else_is_written() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut command = shop.claude.command(&["ui"]);
    command.env("NO_COLOR", "1");
    let mut screen = Screen::ascii(&mut command);
    screen.expect("write the cart");
    screen.press_for("2", "Timeline - ");
    screen.expect("round the prices");
    assert!(screen.contents().is_ascii(), "{}", screen.contents());
    assert!(!screen.has_colours());
    screen.quit();
}

#[test]
fn sigterm_and_hangup_leave_the_terminal_as_it_was() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let screen = shop.ui();
        screen.signal(signal);
        assert_eq!(screen.end(), (code, true));
    }
}

/// Killed at any moment of an undo, the next command finishes it or nothing happened: as the
/// command's own undo does.
#[test]
fn killed_in_the_middle_of_an_undo_the_next_command_puts_it_right() {
    if !pty::is_there() {
        return;
    }
    for signal in [Signal::KILL, Signal::TERM] {
        let shop = Shop::new();
        let work = shop.cli().work();
        // Enough files for the signal to come in between.
        let many = work.join("many");
        fs::create_dir(&many).unwrap();
        let ran = shop.claude.run(&[
            "run",
            "--",
            "sh",
            "-c",
            "for n in $(seq 400); do echo $n > many/$n; done",
        ]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let mut screen = shop.ui();
        screen.press_for("u", "Enter do it");
        screen.press("<Enter>");
        screen.expect("working");
        screen.signal(signal);
        screen.end();
        let status = shop.claude.run(&["status"]);
        assert_eq!(status.code, 0, "{status:#?}");
        let left = fs::read_dir(&many).map_or(0, Iterator::count);
        assert!(
            left == 0 || left == 400,
            "{signal:?}: {left} files are left"
        );
        assert_eq!(shop.read("keep.txt").as_deref(), Some("mine\n"));
        if left == 0 {
            let redone = shop.claude.run(&["redo"]);
            assert_eq!(redone.code, 0, "{redone:#?}");
            assert_eq!(fs::read_dir(&many).unwrap().count(), 400);
        }
    }
}
