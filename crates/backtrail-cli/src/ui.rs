//! Output: data on stdout, everything else on stderr.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::{CommandError, Result};
use crate::home;
use crate::layout::{DIM, Table, styled};
use crate::pager;
use crate::shell::quote_path;
use crate::text::{Filtered, clean, harmless, path_json};

/// How a command writes its output, and the store that it uses.
#[derive(Debug)]
pub(crate) struct Ui {
    json: bool,
    /// Whether nothing is printed: the terminal belongs to a screen.
    is_quiet: bool,
    color: ColorChoice,
    /// The store that was named on the command line.
    store: Option<PathBuf>,
    /// How suggested commands begin, so that they use the same store.
    program: String,
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

impl Ui {
    pub(crate) fn new(json: bool, color: clap::ColorChoice) -> Self {
        let color = match color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        Self {
            json,
            is_quiet: false,
            color,
            store: None,
            program: "backtrail".to_owned(),
        }
    }

    /// Sets the store that was named on the command line.
    pub(crate) fn store(mut self, dir: Option<&Path>) -> Self {
        if let Some(dir) = dir {
            self.program = format!("backtrail --store {}", quote_path(dir));
            self.store = Some(dir.to_owned());
        }
        self
    }

    /// Returns an output for the same store that prints nothing and asks nothing.
    pub(crate) fn quiet(&self) -> Self {
        Self {
            json: false,
            is_quiet: true,
            color: ColorChoice::Never,
            store: self.store.clone(),
            program: self.program.clone(),
        }
    }

    /// Returns whether nothing is printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Returns the store's directory, and what its path comes from.
    pub(crate) fn store_dir(&self) -> Result<(PathBuf, &'static str)> {
        home::store_dir(self.store.as_deref())
    }

    /// Returns the store's directory if it was named on the command line.
    pub(crate) fn named_store(&self) -> Result<Option<PathBuf>> {
        let named = self.store.is_some();
        named
            .then(|| self.store_dir())
            .transpose()
            .map(|dir| Some(dir?.0))
    }

    /// Returns whether data is printed as JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Returns standard output for styled text; styles are removed where they are not
    /// wanted. It is buffered: flush it.
    pub(crate) fn out(&self) -> BufWriter<AutoStream<io::StdoutLock<'static>>> {
        BufWriter::new(AutoStream::new(io::stdout().lock(), self.color))
    }

    /// Returns stderr for a dialogue with the user; styles are removed where they are not
    /// wanted.
    pub(crate) fn dialogue(&self) -> AutoStream<io::Stderr> {
        AutoStream::new(io::stderr(), self.color)
    }

    /// Returns whether data is printed with styles.
    pub(crate) fn styles_stdout(&self) -> bool {
        let stream = AutoStream::new(io::stdout(), self.color);
        stream.current_choice() != ColorChoice::Never
    }

    /// Returns whether text has styles that another program shows: it need not be a terminal.
    pub(crate) fn styles_for_others(&self) -> bool {
        let is_set = |name| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        match self.color {
            ColorChoice::Auto => !is_set("NO_COLOR"),
            choice => choice != ColorChoice::Never,
        }
    }

    /// Returns how wide data may be; see [`terminal_width`].
    pub(crate) fn width(&self) -> Option<usize> {
        terminal_width()
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn print_json(&self, value: &impl Serialize) -> Result<()> {
        let out = Filtered::new(io::stdout().lock(), harmless);
        let mut out = BufWriter::with_capacity(64 << 10, out);
        serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Prints a table in at most `width` columns.
    pub(crate) fn print_table(&self, table: &Table<'_>, width: Option<usize>) -> Result<()> {
        let mut out = self.out();
        for line in table.lines(width) {
            writeln!(out, "{}", styled(&line))?;
        }
        Ok(out.flush()?)
    }

    /// Prints styled text, through the pager if it does not fit on the terminal.
    pub(crate) fn page(&self, text: &str) -> Result<()> {
        Ok(match self.styles_stdout() {
            true => pager::print(text),
            false => pager::print(&anstream::adapter::strip_str(text).to_string()),
        }?)
    }

    /// Prints one line of data, without its terminal escapes.
    pub(crate) fn print_line(&self, line: &str) -> Result<()> {
        let mut out = AutoStream::new(io::stdout().lock(), self.color);
        writeln!(out, "{}", clean(line))?;
        Ok(out.flush()?)
    }

    /// Prints a note to stderr, but only on a terminal: a log keeps what matters.
    pub(crate) fn remark(&self, text: &str) {
        if !self.json && io::stderr().is_terminal() {
            self.write_err(&format!("{DIM}{}{DIM:#}", clean(text)));
        }
    }

    /// Prints a message to stderr.
    pub(crate) fn status(&self, text: &str) {
        if !self.json {
            self.write_err(&clean(text));
        }
    }

    /// Prints a line of JSON to stderr, if data is printed as JSON.
    pub(crate) fn status_json(&self, value: &Value) {
        if self.json {
            self.write_err(&harmless(&value.to_string()));
        }
    }

    /// Prints the result of a command to stderr. The lines must be clean: they contain our
    /// own styles.
    pub(crate) fn summary(&self, lines: &[String]) {
        if !self.json {
            lines.iter().for_each(|line| self.write_err(line));
        }
    }

    /// Returns whether the user can be asked: both ends of the dialogue are a terminal.
    pub(crate) fn can_ask(&self) -> bool {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        !self.json && !self.is_quiet && is_terminal
    }

    /// Asks the user to confirm something final. Fails where nobody can be asked.
    pub(crate) fn confirm(&self, question: &str) -> Result<bool> {
        if !self.can_ask() {
            let error = CommandError::invalid(format!("not a terminal, cannot ask: {question}"));
            return Err(error.hint("pass --yes to confirm"));
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

    /// Returns how suggested commands begin, so that they use the same store.
    pub(crate) fn program(&self) -> &str {
        &self.program
    }

    /// Returns the width of the terminal that stderr is, if it is one.
    pub(crate) fn remark_width(&self) -> Option<usize> {
        let size = terminal_size::terminal_size_of(io::stderr());
        size.map(|(width, _)| usize::from(width.0))
    }

    /// Prints the command that reverses what was done.
    pub(crate) fn to_reverse(&self, command: &str) {
        self.status(&format!("to reverse: {} {command}", self.program));
    }

    pub(crate) fn warning(&self, text: &str, hint: Option<&str>) {
        if self.json {
            let hints: Vec<&str> = hint.into_iter().collect();
            let warning = json!({"warning": {"message": text, "hints": hints}});
            self.write_err(&harmless(&warning.to_string()));
            return;
        }
        self.write_err(&format!("{WARNING}warning:{WARNING:#} {}", clean(text)));
        if let Some(hint) = hint {
            self.hint(hint);
        }
    }

    pub(crate) fn error(&self, error: &CommandError) {
        if self.json {
            let mut value = json!({"error": {
                "kind": error.kind,
                "message": error.with_causes(),
                "path": error.path.as_deref().map(path_json),
                "hints": error.hints,
            }});
            if !error.damaged.is_empty() {
                let damaged: Vec<Value> = error.damaged.iter().map(|it| path_json(it)).collect();
                value["error"]["damaged"] = damaged.into();
            }
            self.write_err(&harmless(&value.to_string()));
            return;
        }
        let message = error.to_string();
        self.write_err(&format!("{ERROR}error:{ERROR:#} {}", clean(&message)));
        for cause in &error.causes {
            self.write_err(&format!("  caused by: {}", clean(cause)));
        }
        let path = error.path.as_deref().map(Path::to_string_lossy);
        let mut texts = error.causes.iter().chain([&message]);
        if let Some(path) = path.filter(|path| !texts.any(|text| text.contains(&**path))) {
            self.write_err(&format!("  in: {}", clean(&path)));
        }
        if !error.hints.is_empty() {
            self.write_err("");
        }
        for hint in &error.hints {
            self.hint(hint);
        }
    }

    fn hint(&self, text: &str) {
        self.write_err(&format!("{HINT}hint:{HINT:#} {}", clean(text)));
    }

    /// Writes a line to stderr. It must be clean: it contains our own styles.
    fn write_err(&self, line: &str) {
        if self.is_quiet {
            return;
        }
        let mut err = AutoStream::new(io::stderr().lock(), self.color);
        // If stderr is closed there is nowhere left to report it.
        writeln!(err, "{line}").ok();
    }
}

/// Returns how wide output to stdout may be: `COLUMNS` if it is a sensible width, else the
/// width of the terminal; `None` if stdout is not a terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|it| it.parse().ok());
    let terminal = || {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map(|(width, _)| usize::from(width.0))
    };
    columns
        .filter(|columns| (10..=10_000).contains(columns))
        .or_else(terminal)
}
