//! What is printed, and where: data on stdout, all else on stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use crate::error::{CommandError, Result};
use crate::shell::quote;
use crate::text::{clean, is_unsafe, path_json};

/// How a command talks.
#[derive(Debug)]
pub(crate) struct Ui {
    json: bool,
    color: ColorChoice,
    /// What a command that we name must begin with, to mean the same store.
    program: String,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();
/// For what matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// For what the eye should find.
pub(crate) const BOLD: Style = Style::new().bold();

impl Ui {
    pub(crate) fn new(json: bool, color: clap::ColorChoice) -> Self {
        let color = match color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        Self {
            json,
            color,
            program: "backtrail".to_owned(),
        }
    }

    /// Says that the store was named on the command line.
    pub(crate) fn store(mut self, dir: Option<&Path>) -> Self {
        if let Some(dir) = dir {
            self.program = format!("backtrail --store {}", quote(&dir.to_string_lossy()));
        }
        self
    }

    /// Returns whether data goes out as JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Returns standard output for text with styles, stripped where they are
    /// not wanted. Buffered: flush it.
    pub(crate) fn out(&self) -> io::BufWriter<AutoStream<io::StdoutLock<'static>>> {
        io::BufWriter::new(AutoStream::new(io::stdout().lock(), self.color))
    }

    /// Returns stderr for a dialogue with the person, stripped of styles where they are
    /// not wanted.
    pub(crate) fn dialogue(&self) -> AutoStream<io::Stderr> {
        AutoStream::new(io::stderr(), self.color)
    }

    /// Returns whether data goes out with styles.
    pub(crate) fn styles_stdout(&self) -> bool {
        let stream = AutoStream::new(io::stdout(), self.color);
        stream.current_choice() != ColorChoice::Never
    }

    /// Returns how wide data may be: what `COLUMNS` says, else the width of the terminal
    /// it goes to; none where it goes elsewhere.
    pub(crate) fn width(&self) -> Option<usize> {
        if let Some(columns) = columns() {
            return Some(columns);
        }
        if !io::stdout().is_terminal() {
            return None;
        }
        terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
    }

    /// Prints one JSON value as a line.
    pub(crate) fn print_json(&self, value: &Value) -> Result<()> {
        self.print_json_text(&value.to_string())
    }

    /// Prints one JSON value, already written, as a line.
    pub(crate) fn print_json_text(&self, json: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", harmless(json))
            .and_then(|()| out.flush())
            .map_err(|error| unwritable(&error))
    }

    /// Prints one line of data. What came from outside is stripped of what could
    /// command a terminal.
    pub(crate) fn print_line(&self, line: &str) -> Result<()> {
        let mut out = AutoStream::new(io::stdout().lock(), self.color);
        writeln!(out, "{}", clean(line))
            .and_then(|()| out.flush())
            .map_err(|error| unwritable(&error))
    }

    /// Tells the person something that is not data. Only on a terminal: what
    /// goes into a log should be worth keeping.
    pub(crate) fn remark(&self, text: &str) {
        if !self.json && io::stderr().is_terminal() {
            self.say(&format!("{DIM}{}{DIM:#}", clean(text)));
        }
    }

    /// Tells the person something that is not data, wherever stderr goes.
    pub(crate) fn status(&self, text: &str) {
        if !self.json {
            self.say(&clean(text));
        }
    }

    /// Tells the person in a few lines what a command did. They are clean already:
    /// our own styles are in them.
    pub(crate) fn summary(&self, lines: &[String]) {
        if !self.json {
            lines.iter().for_each(|line| self.say(line));
        }
    }

    /// Asks a person whether something final shall be done. Where nobody can be asked
    /// it is refused, with the way to say so.
    pub(crate) fn confirm(&self, question: &str) -> Result<bool> {
        if self.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let error = CommandError::invalid(format!("nobody is there to ask: {question}"));
            return Err(error.hint("say so beforehand: --yes"));
        }
        let mut err = AutoStream::new(io::stderr().lock(), self.color);
        write!(err, "{} [y/N] ", clean(question)).ok();
        err.flush().ok();
        let mut answer = String::new();
        io::stdin()
            .read_line(&mut answer)
            .map_err(|error| CommandError::io("cannot read the answer", None, &error))?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Returns what a command that we name must begin with, to mean the same store.
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Returns how wide the terminal is that remarks go to, if it is one.
    pub(crate) fn remark_width(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(io::stderr());
        size.map(|(width, _)| usize::from(width.0))
    }

    /// Tells the person which command takes back what was done.
    pub(crate) fn take_back(&self, command: &str) {
        self.status(&format!("to reverse: {} {command}", self.program));
    }

    pub(crate) fn warning(&self, text: &str, hint: Option<&str>) {
        if self.json {
            let hints: Vec<&str> = hint.into_iter().collect();
            self.say(&json!({"warning": {"message": text, "hints": hints}}).to_string());
            return;
        }
        self.say(&format!("{WARNING}warning:{WARNING:#} {}", clean(text)));
        if let Some(hint) = hint {
            self.hint(hint);
        }
    }

    pub(crate) fn error(&self, error: &CommandError) {
        if self.json {
            let message = error
                .causes()
                .iter()
                .fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
            let value = json!({"error": {
                "kind": error.kind(),
                "message": message,
                "path": error.path().map(path_json),
                "hints": error.hints(),
            }});
            self.say(&value.to_string());
            return;
        }
        let message = error.to_string();
        self.say(&format!("{ERROR}error:{ERROR:#} {}", clean(&message)));
        for cause in error.causes() {
            self.say(&format!("  caused by: {}", clean(cause)));
        }
        if let Some(path) = error
            .path()
            .filter(|path| !message.contains(&*path.to_string_lossy()))
        {
            self.say(&format!("  in: {}", clean(&path.to_string_lossy())));
        }
        if !error.hints().is_empty() {
            self.say("");
        }
        for hint in error.hints() {
            self.hint(hint);
        }
    }

    fn hint(&self, text: &str) {
        self.say(&format!("{HINT}hint:{HINT:#} {}", clean(text)));
    }

    /// Writes a line to stderr. What came from outside must be clean already: our
    /// own styles are in it.
    fn say(&self, line: &str) {
        let mut err = AutoStream::new(io::stderr().lock(), self.color);
        // There is nowhere else to say that stderr is closed.
        writeln!(err, "{line}").ok();
    }
}

/// Returns the width that the environment asks for; what is no width is passed over.
fn columns() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?.parse().ok()?;
    (10..=10_000).contains(&columns).then_some(columns)
}

/// Writes what could command a terminal as escapes, in JSON: it means the same.
pub(crate) fn harmless(json: &str) -> Cow<'_, str> {
    // Those below the space are escaped already, and newlines between values are ours.
    let is_bad = |c: char| is_unsafe(c) && c > ' ';
    // The bytes that one of them begins with; most text has none.
    let may_begin = |byte: u8| matches!(byte, 0x7f | 0xc2 | 0xe2);
    if !json.bytes().any(may_begin) || !json.contains(is_bad) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_bad(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Makes an error of output that could not be written.
pub(crate) fn unwritable(error: &io::Error) -> CommandError {
    CommandError::io("cannot write the output", None, error)
}
