//! The loop in a real terminal: whatever happens, the terminal is given back as it was.
//!
//! The program that runs in the terminal is this one: an ignored test, started with a variable.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crossterm::event::KeyCode;
use ratatui::widgets::Paragraph;
use rustix::process::Signal;

use super::*;
use crate::fake_tests::Fake;
use crate::terminal_tests::TestTerminal;
use backtrail_view::library::{OnConflict, Place};

/// The directory of the test, for the program in the terminal.
const DIR: &str = "BACKTRAIL_TUI_TEST_DIR";

/// A state with a key for each effect.
struct Keys {
    size: (u16, u16),
    log: Vec<String>,
}

impl State for Keys {
    fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) => {
                self.log.push(format!("key {}", key.code));
                return self.pressed(key.code);
            }
            Event::Resize(columns, rows) => self.size = (columns, rows),
            Event::Returned(message) => self.log.push(format!("returned {message:?}")),
            Event::Reply(_, reply) => self.log.push(format!("{reply:?}")),
            Event::Woken => self.log.push("woken".to_owned()),
            Event::Paste(text) => self.log.push(format!("paste {text}")),
            Event::Mouse(_) | Event::Changed(_) => {}
        }
        Vec::new()
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        assert!(
            self.log.last().is_none_or(|last| last != "key p"),
            "drawing broke"
        );
        let text = format!("size {:?}\n{}", self.size, self.log.join("\n"));
        frame.render_widget(Paragraph::new(text), frame.area());
    }

    fn look(&self) -> Look {
        Look::default()
    }

    fn set_background(&mut self, background: Background) -> Vec<Effect> {
        self.log.push(format!("{background:?}"));
        Vec::new()
    }
}

fn anywhere() -> Place {
    Place {
        session: String::new(),
        seq: 0,
        trail: None,
    }
}

impl Keys {
    fn pressed(&self, code: KeyCode) -> Vec<Effect> {
        let KeyCode::Char(key) = code else {
            return Vec::new();
        };
        vec![match key {
            'a' => Effect::Ask(Request::Apply(1, OnConflict::Stop)),
            'b' => Effect::Ask(Request::Head("broken".to_owned())),
            'c' => Effect::Copy("copied".to_owned()),
            'r' => Effect::Continue(
                anywhere(),
                "sh\n-c\nstty -a; read x; echo got $x".to_owned(),
            ),
            'R' => Effect::Continue(anywhere(), "/nowhere/to/be/found".to_owned()),
            'w' => Effect::Wake(Duration::from_millis(1)),
            'z' => Effect::Suspend,
            'q' => Effect::Quit,
            _ => return Vec::new(),
        }]
    }
}

/// What runs in the terminal. An `Apply` writes `begun`, and ends when `go` is written to.
#[test]
#[ignore = "run by the other tests, in a terminal"]
#[expect(clippy::disallowed_methods, reason = "files of the test")]
fn the_program_in_the_terminal() {
    let dir = PathBuf::from(env::var_os(DIR).expect("started by another test"));
    let fake = Fake::new(move |name| {
        assert!(name != "head broken", "it broke");
        if name == "apply 1" {
            fs::write(dir.join("begun"), "").unwrap();
            fs::read(dir.join("go")).unwrap();
            fs::write(dir.join("done"), "").unwrap();
        }
    });
    let make = |size| {
        let log = Vec::new();
        (Keys { size, log }, Vec::new())
    };
    run_state(Arc::new(fake), true, Some("\x1b]11;?\x1b\\"), make).unwrap();
}

fn arguments() -> Vec<String> {
    crate::terminal_tests::this_program("runtime::tests::the_program_in_the_terminal")
}

fn start_in(dir: &Path) -> TestTerminal {
    let arguments = arguments();
    let command: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    let mut terminal = TestTerminal::start(&command, &variables(dir));
    terminal.wait_for("size (80, 24)");
    terminal
}

fn variables(dir: &Path) -> [(&str, &OsStr); 4] {
    let far = OsStr::new("far");
    let term = OsStr::new("xterm-256color");
    let no_backtrace = OsStr::new("0");
    [
        (DIR, dir.as_os_str()),
        ("SSH_CONNECTION", far),
        ("TERM", term),
        ("RUST_BACKTRACE", no_backtrace),
    ]
}

fn start() -> (TestTerminal, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (start_in(dir.path()), dir)
}

#[test]
fn quitting_gives_the_terminal_back() {
    let (mut terminal, _dir) = start();
    assert!(!terminal.is_restored());
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.is_restored());
}

#[test]
fn signals_end_the_program_with_the_terminal_restored() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let (mut terminal, _dir) = start();
        terminal.send(signal);
        assert_eq!(terminal.end(), code);
        assert!(terminal.is_restored(), "{signal:?}");
    }
}

#[test]
fn a_panic_while_drawing_restores_the_terminal_before_its_message() {
    let (mut terminal, _dir) = start();
    terminal.type_keys("p");
    assert_eq!(terminal.end(), 101);
    assert!(terminal.is_restored());
    assert!(
        terminal.contents().contains("drawing broke"),
        "{}",
        terminal.contents()
    );
}

#[test]
fn a_panic_of_the_library_is_shown_on_the_screen() {
    let (mut terminal, _dir) = start();
    terminal.type_keys("b");
    terminal.wait_for("internal error: it broke");
    assert!(!terminal.is_restored());
    assert!(!terminal.written.contains("panicked at"));
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "files of the test")]
fn sigterm_in_the_middle_of_an_apply_waits_for_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let made = Command::new("mkfifo").arg(&go).status().unwrap();
    assert!(made.success());
    let mut terminal = start_in(dir.path());
    terminal.type_keys("a");
    terminal.wait_for("key a");
    // Opening returns when the apply opened the other end, so it has begun.
    let gate = fs::OpenOptions::new().write(true).open(&go).unwrap();
    terminal.send(Signal::TERM);
    // The terminal is given back first.
    terminal.wait_for_written("\x1b[?1049l");
    assert!(!dir.path().join("done").exists());
    drop(gate);
    assert_eq!(terminal.end(), 143);
    assert!(dir.path().join("done").exists());
}

#[test]
fn a_command_gets_the_terminal_and_every_key_typed_meanwhile() {
    let (mut terminal, _dir) = start();
    terminal.type_keys("r");
    terminal.wait_for("icanon");
    assert!(
        terminal.contents().contains(" echo "),
        "{}",
        terminal.contents()
    );
    terminal.type_keys("qqq\n");
    terminal.wait_for_written("got qqq");
    terminal.wait_for("returned None");
    assert!(!terminal.is_restored());
    terminal.type_keys("R");
    terminal.wait_for("cannot run /nowhere/to/be/found");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn suspending_gives_the_terminal_to_the_shell_and_takes_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let script = "set -m; \"$@\"; echo shell again; read x; fg >/dev/null; echo left with $?";
    let arguments = arguments();
    let shell = ["sh", "-c", script, "sh"].map(str::to_owned);
    let command: Vec<&OsStr> = shell.iter().chain(&arguments).map(OsStr::new).collect();
    let mut terminal = TestTerminal::start(&command, &variables(dir.path()));
    terminal.wait_for("size (80, 24)");
    terminal.type_keys("z");
    terminal.wait_for("shell again");
    assert!(terminal.is_restored());
    terminal.resize(30, 100);
    terminal.type_keys("\n");
    terminal.wait_for("size (100, 30)");
    assert!(!terminal.is_restored());
    terminal.type_keys("q");
    terminal.wait_for("left with 0");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.is_restored());
}

#[test]
fn without_a_shell_to_return_to_suspending_does_nothing() {
    let (mut terminal, _dir) = start();
    terminal.type_keys("z");
    terminal.wait_for("key z");
    terminal.type_keys("x");
    terminal.wait_for("key x");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_new_size_is_drawn_whole() {
    let (mut terminal, _dir) = start();
    terminal.resize(5, 20);
    terminal.wait_for("size (20, 5)");
    terminal.resize(24, 80);
    terminal.wait_for("size (80, 24)");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn every_frame_is_shown_at_once() {
    let (mut terminal, _dir) = start();
    terminal.type_keys("x");
    terminal.wait_for("key x");
    terminal.type_keys("q");
    terminal.end();
    let begins = terminal.written.matches("\x1b[?2026h").count();
    let drawn = terminal.written.find("size").unwrap();
    // The terminal is asked for its background when something is there to see.
    assert!(terminal.written.find("\x1b]11;?").unwrap() > drawn);
    assert!(terminal.written.find("\x1b[?2026h").unwrap() < drawn);
    assert!(begins >= 2, "{:?}", terminal.written);
}

#[test]
fn pastes_wakes_and_copies_arrive() {
    let (mut terminal, _dir) = start();
    terminal.type_keys("\x1b[200~q is not a key here\x1b[201~");
    terminal.wait_for("paste q is not a key here");
    terminal.type_keys("w");
    terminal.wait_for("woken");
    terminal.type_keys("c");
    terminal.wait_for_written("\x1b]52;c;Y29waWVk\x07");
    terminal.type_keys("\x1b]11;rgb:ffff/ffff/ffff\x07");
    terminal.wait_for("Light");
    terminal.type_keys("q");
    assert_eq!(terminal.end(), 0);
}
