//! The real program on a terminal of its own: keys in, a screen out.

use std::process::Command;

use rustix::process::{Signal, kill_process};

use crate::pty::Terminal;

/// A program and its screen.
pub(super) struct Screen {
    terminal: Terminal,
    parser: vt100::Parser,
    has_ended: bool,
}

impl Screen {
    /// Starts a command on a screen of 40 rows and 160 columns.
    pub(super) fn start(command: &mut Command) -> Self {
        Self::sized(command, 40, 160)
    }

    pub(super) fn sized(command: &mut Command, rows: u16, columns: u16) -> Self {
        command
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("SSH_CONNECTION")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        Self {
            terminal: Terminal::sized(command, rows, columns),
            parser: vt100::Parser::new(rows, columns, 0),
            has_ended: false,
        }
    }

    /// Presses keys: letters, and names such as `<Enter>`.
    pub(super) fn press(&mut self, keys: &str) {
        let mut typed = keys.to_owned();
        let names = [
            ("<Enter>", "\r"),
            ("<Esc>", "\u{1b}"),
            ("<Tab>", "\t"),
            ("<Space>", " "),
            ("<Down>", "\u{1b}[B"),
            ("<Up>", "\u{1b}[A"),
            ("<Backspace>", "\u{7f}"),
            ("<Ctrl-C>", "\u{3}"),
            ("<Ctrl-Z>", "\u{1a}"),
            ("<Ctrl-U>", "\u{15}"),
        ];
        for (name, key) in names {
            typed = typed.replace(name, key);
        }
        self.terminal.type_keys(&typed);
    }

    /// Returns what is on the screen.
    pub(super) fn contents(&self) -> String {
        self.parser.screen().contents()
    }

    pub(super) fn shows(&self, text: &str) -> bool {
        self.contents().contains(text)
    }

    /// Waits until the screen is as it should be.
    pub(super) fn wait(&mut self, what: &str, is_right: impl Fn(&str) -> bool) {
        while !is_right(&self.contents()) {
            let bytes = self.terminal.read_bytes();
            self.has_ended = bytes.is_empty();
            self.parser.process(&bytes);
            assert!(!self.has_ended, "it ended without {what}:\n{}", self.contents());
        }
    }

    /// Waits until a text is on the screen.
    pub(super) fn expect(&mut self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    /// Waits until a text is no longer on the screen.
    pub(super) fn expect_gone(&mut self, text: &str) {
        self.wait(&format!("{text} being gone"), |screen| !screen.contains(text));
    }

    /// Presses keys and waits for a text.
    pub(super) fn press_for(&mut self, keys: &str, text: &str) {
        self.press(keys);
        self.expect(text);
    }

    pub(super) fn resize(&mut self, rows: u16, columns: u16) {
        self.parser.screen_mut().set_size(rows, columns);
        self.terminal.resize(rows, columns);
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.terminal.pid(), signal).unwrap();
    }

    pub(super) fn pid(&self) -> rustix::process::Pid {
        self.terminal.pid()
    }

    /// Waits for the end; returns the exit code, and whether the terminal was left as it was
    /// found.
    pub(super) fn end(mut self) -> (i32, bool) {
        loop {
            let bytes = self.terminal.read_bytes();
            if bytes.is_empty() {
                break;
            }
            self.parser.process(&bytes);
        }
        let screen = self.parser.screen();
        let is_restored = !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None;
        let (code, _) = self.terminal.end();
        (code, is_restored)
    }

    /// Leaves with `q`, from wherever it is.
    pub(super) fn quit(mut self) {
        self.press("<Ctrl-C><Ctrl-C>");
        let (code, is_restored) = self.end();
        assert_eq!((code, is_restored), (0, true));
    }
}
