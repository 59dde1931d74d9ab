//! What other processes do while the screen is open.

use std::fs::{self, File};

use super::Shop;
use super::screen::Screen;
use crate::kit::{Cli, Recording};
use crate::live::{Claude, write};
use crate::pty;

#[test]
fn a_session_that_another_process_writes_grows_by_itself() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let session = cli.new_session("hello there");
    let mut screen = Screen::start(&mut cli.command(&["ui"]));
    screen.expect("hello there");
    let ran = cli.run(&[
        "record",
        "--session",
        &session,
        "--text",
        "and then some more",
    ]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    screen.expect("and then some more");
    screen.quit();
}

#[test]
fn an_agent_that_goes_on_is_followed_and_undo_is_up_to_date() {
    if !pty::is_there() {
        return;
    }
    let mut shop = Shop::new();
    let mut screen = shop.ui();
    screen.expect("add the notes");
    shop.claude.turn("paint it green", "call-4", |work| {
        write(work, "paint.txt", "green")
    });
    screen.expect("paint it green");
    screen.wait("the footer", |screen| {
        let mut lines = screen.lines().rev();
        lines.any(|line| line.contains("undo: ") && line.contains("paint it green"))
    });
    screen.quit();
}

#[test]
fn a_new_session_appears() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let mut screen = shop.ui();
    shop.cli().new_session("a brand new session");
    screen.expect("a brand new session");
    screen.quit();
}

#[test]
fn a_session_that_is_deleted_meanwhile_leaves_the_screen_usable() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let other = shop.cli().new_session("soon to be gone");
    let mut screen = shop.ui();
    screen.expect("soon to be gone");
    assert_eq!(shop.cli().run(&["delete", &other]).code, 0);
    screen.expect_gone("soon to be gone");
    screen.press_for("<Enter>", "next prompt");
    screen.quit();
}

#[test]
fn a_session_that_another_process_holds_can_be_read() {
    if !pty::is_there() {
        return;
    }
    let shop = Shop::new();
    let session = shop.cli().new_session("held by another");
    let mut holder = Recording::start(shop.cli().command(&["record", "--session", &session]));
    holder.say("first of the holder");
    let mut screen = shop.ui();
    screen.press_for("/holder", "first of the holder");
    screen.press_for("<Enter>", "next prompt");
    holder.say("second of the holder");
    screen.expect("second of the holder");
    screen.quit();
}

/// What undo would do is told when the lock is free.
#[test]
fn the_timeline_of_a_workspace_that_another_process_holds_is_shown() {
    if !pty::is_there() {
        return;
    }
    let mut claude = Claude::new();
    claude.turn("write a", "call-1", |work| write(work, "a.txt", "a\n"));
    // What the agent wrote is imported, which is a change.
    assert_eq!(claude.run(&["list", "--json"]).code, 0);
    let mut locks = fs::read_dir(claude.cli.store().join("workspaces")).unwrap();
    let lock = locks.find_map(|entry| {
        let path = entry.unwrap().path().join("append.lock");
        File::open(path).ok()
    });
    let lock = lock.unwrap();
    lock.lock().unwrap();
    let mut screen = Screen::start(&mut claude.command(&["ui"]));
    screen.expect("write a");
    screen.press_for("2", "Timeline · ");
    screen.expect("turn 1");
    lock.unlock().unwrap();
    screen.expect("undo: ");
    screen.quit();
}
