//! The real program on a terminal of its own: keys in, a screen out.

use std::num::NonZero;
use std::process::Command;

use rustix::process::{Signal, kill_process};

use crate::pty::Terminal;

/// A program and its screen.
pub(super) struct Screen {
    terminal: Terminal,
    parser: vt100::Parser,
    /// Everything that the program wrote.
    written: Vec<u8>,
}

impl Screen {
    /// Starts a command on a screen of 40 rows and 160 columns.
    pub(super) fn start(command: &mut Command) -> Self {
        Self::sized(command, 40, 160)
    }

    /// Starts a command on a terminal that knows nothing but ASCII.
    pub(super) fn ascii(command: &mut Command) -> Self {
        Self::in_locale(command, "C", 40, 160)
    }

    pub(super) fn sized(command: &mut Command, rows: u16, columns: u16) -> Self {
        Self::in_locale(command, "C.UTF-8", rows, columns)
    }

    fn in_locale(command: &mut Command, locale: &str, rows: u16, columns: u16) -> Self {
        command
            .env("TERM", "xterm-256color")
            .env("LC_ALL", locale)
            .env_remove("SSH_CONNECTION")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        Self {
            terminal: Terminal::sized(command, rows, columns),
            parser: vt100::Parser::new(cells(rows), cells(columns), 0),
            written: Vec::new(),
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
            let is_there = self.read(what);
            assert!(is_there, "it ended without {what}:\n{}", self.contents());
        }
    }

    /// Shows what there is; returns `false` at the end.
    fn read(&mut self, wanted: &str) -> bool {
        let Some(bytes) = self.terminal.read_bytes() else {
            panic!("nothing more came, and no {wanted}:\n{}", self.contents());
        };
        self.parser.process(&bytes);
        self.written.extend_from_slice(&bytes);
        !bytes.is_empty()
    }

    /// Returns whether the program wrote these bytes.
    pub(super) fn wrote(&self, bytes: &[u8]) -> bool {
        self.written.windows(bytes.len()).any(|part| part == bytes)
    }

    /// Waits until a text is on the screen.
    pub(super) fn expect(&mut self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    /// Waits until a text is no longer on the screen.
    pub(super) fn expect_gone(&mut self, text: &str) {
        self.wait(&format!("{text} being gone"), |screen| {
            !screen.contains(text)
        });
    }

    /// Presses keys and waits for a text.
    pub(super) fn press_for(&mut self, keys: &str, text: &str) {
        self.press(keys);
        self.expect(text);
    }

    /// Does what was planned, and waits until it is done.
    pub(super) fn apply(&mut self) {
        self.press("<Enter>");
        self.wait("the end of it", |screen| {
            !screen.contains("Enter do it") && !screen.contains("working")
        });
    }

    pub(super) fn resize(&mut self, rows: u16, columns: u16) {
        self.parser
            .screen_mut()
            .set_size(cells(rows), cells(columns));
        self.terminal.resize(rows, columns);
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.terminal.pid(), signal).unwrap();
    }

    pub(super) fn is_on_alternate_screen(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    /// Returns whether any cell has a colour.
    pub(super) fn has_colours(&self) -> bool {
        let screen = self.parser.screen();
        let (rows, columns) = screen.size();
        let (rows, columns) = (rows.get(), columns.get());
        let mut cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        cells.any(|(row, column)| {
            screen.cell(row, column).is_some_and(|cell| {
                cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default
            })
        })
    }

    /// Waits for the end; returns the exit code, and whether the terminal was left as it was
    /// found.
    pub(super) fn end(mut self) -> (i32, bool) {
        self.read_to_the_end()
    }

    fn read_to_the_end(&mut self) -> (i32, bool) {
        while self.read("end") {}
        let screen = self.parser.screen();
        let is_restored = !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None;
        (self.terminal.exit_code(), is_restored)
    }

    /// Leaves with `q`, from wherever it is.
    pub(super) fn quit(mut self) {
        self.press("<Ctrl-C><Ctrl-C>");
        let ended = self.read_to_the_end();
        let last = self.written.len().saturating_sub(600);
        let last = String::from_utf8_lossy(&self.written[last..]);
        assert_eq!(ended, (0, true), "{last}");
    }
}

fn cells(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap()
}
