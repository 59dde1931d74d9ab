//! `backtrail ui`, driven by keys on a terminal of its own, in a store with 10,000 sessions.
//!
//! A test waits for what must be on the screen; nothing depends on time.

mod acts;
mod browses;
mod lives;
mod screen;
mod shop;
mod terminal;

use self::screen::Screen;
use self::shop::Shop;
use crate::kit::Cli;
use crate::pty;

#[test]
fn without_a_terminal_the_screen_is_refused_and_names_the_ways_around_it() {
    let cli = Cli::new();
    cli.new_session("hello");
    let ran = cli.run(&["ui"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("needs a terminal"), "{ran:#?}");
    assert!(ran.stderr.contains("backtrail list"), "{ran:#?}");
    assert_eq!(ran.stdout, "");
}

#[test]
fn without_a_store_the_screen_says_how_to_begin_and_creates_nothing() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let screen = Screen::start(&mut cli.command(&["ui"]));
    let (code, is_restored) = screen.end();
    assert_eq!((code, is_restored), (2, true));
    assert!(!cli.store().exists());
}

#[test]
fn an_empty_store_says_how_to_begin() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    let id = cli.new_session("hello");
    assert_eq!(cli.run(&["delete", &id]).code, 0);
    let mut screen = Screen::start(&mut cli.command(&["ui"]));
    screen.expect("backtrail run -- COMMAND");
    // None of these has anything to work on.
    screen.press("2");
    screen.expect("Nothing happened here yet");
    screen.press("3");
    screen.expect("no usage recorded yet");
    screen.press("1");
    screen.expect("backtrail run -- COMMAND");
    screen.quit();
}

/// `backtrail` alone keeps answering; it opens the screen only if that is set, on a terminal.
#[test]
fn the_screen_is_the_default_command_if_it_is_set_so() {
    if !pty::is_there() {
        return;
    }
    let cli = Cli::new();
    cli.new_session("hello there");
    let refused = cli.run(&["config", "set", "default_command", "nothing"]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    let set = cli.run(&["config", "set", "default_command", "ui"]);
    assert_eq!(set.code, 0, "{set:#?}");
    let piped = cli.run(&[]);
    assert_eq!(piped.code, 0, "{piped:#?}");
    assert!(!piped.stdout.contains('\u{1b}'), "{piped:#?}");
    let mut screen = Screen::start(&mut cli.command(&[]));
    screen.expect("1 sessions");
    screen.expect("hello there");
    screen.quit();
}
