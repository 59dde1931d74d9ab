//! Lines of the log as they are printed.

use anstyle::{AnsiColor, Style};
use backtrail::rewind::Ending;
use backtrail::snapshot::Diff;
use unicode_width::UnicodeWidthStr;

use crate::commands::diff::{ADDED, Lines, REMOVED, lines_of};
use crate::layout::{
    BOLD, Cell, Column, DIM, Line, Span, Table, cut_middle, styled, width_of, wrap,
};
use crate::text::{count, grouped, one_line, visible};

/// One line as it is printed.
#[derive(Default)]
pub(in crate::commands) struct Row {
    pub(in crate::commands) kind: String,
    pub(in crate::commands) at: String,
    /// The day that it is listed under, if days are headings.
    pub(in crate::commands) day: Option<String>,
    pub(in crate::commands) about: String,
    /// The files that changed, where nothing else says what it was about.
    pub(in crate::commands) files: Vec<String>,
    /// Its labels. They are never cut off.
    pub(in crate::commands) labels: Vec<String>,
    /// How a turn or run ended, if that is known.
    pub(in crate::commands) ending: Option<Ending>,
    /// The short id of its session.
    pub(in crate::commands) session: String,
    /// How long it took.
    pub(in crate::commands) took: String,
    pub(in crate::commands) change: Changed,
    pub(in crate::commands) id: String,
}

/// How much changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Changed {
    /// Lines that were added and removed, and the number of files.
    Lines(u64, u64, u64),
    /// Something else: `files dropped`.
    Text(String),
}

impl Default for Changed {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Changed {
    /// What is printed if it is unknown.
    pub(in crate::commands) fn unknown() -> Self {
        Self::Text("?".to_owned())
    }

    /// Returns the lines that were added and removed, with their signs.
    fn signed(&self) -> (String, String) {
        let signed = |sign: &str, n: u64| match n {
            0 => String::new(),
            n => format!("{sign}{}", grouped(n)),
        };
        match self {
            Self::Lines(added, removed, _) => (signed("+", *added), signed("−", *removed)),
            Self::Text(_) => (String::new(), String::new()),
        }
    }

    /// Returns all of it in one line: `+48 −12  4 files`.
    pub(in crate::commands) fn text(&self) -> String {
        let (added, removed) = self.signed();
        let parts = [added, removed, self.files()].into_iter();
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }

    /// Returns how many files changed, or what else is to be said.
    fn files(&self) -> String {
        match self {
            Self::Lines(_, _, files) => count(*files, "file"),
            Self::Text(text) => text.clone(),
        }
    }
}

/// Returns how much changed: `+48 −12  4 files`.
pub(in crate::commands) fn change(diff: &Diff) -> backtrail::Result<Changed> {
    if diff.is_empty() {
        return Ok(Changed::Text("no change".to_owned()));
    }
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter() {
        if let Lines::Counted(more, less) = lines_of(diff, change)? {
            added += more;
            removed += less;
        }
    }
    let files = diff.changes().len() as u64;
    Ok(Changed::Lines(added, removed, files))
}

/// Labels that people gave.
const LABEL: Style = AnsiColor::Yellow.on_default();
/// A turn or run that did not end well.
const FAILED: Style = AnsiColor::Red.on_default();

/// Returns the colour of a kind: yours, an agent's, a command, a checkpoint, a move.
pub(in crate::commands) fn kind_style(kind: &str) -> Style {
    let colour = match kind {
        _ if kind.starts_with("you") => AnsiColor::Green,
        _ if kind.starts_with("turn") || kind.starts_with("tool") => AnsiColor::Blue,
        _ if kind.starts_with("run") => AnsiColor::Cyan,
        "checkpoint" | "manual" => AnsiColor::Yellow,
        _ => AnsiColor::Magenta,
    };
    colour.on_default().bold()
}

impl Row {
    /// Returns its labels: `[built]`. A label that is all there is needs no brackets.
    fn labels(&self) -> Line {
        let alone = self.about.is_empty() && self.files.is_empty();
        let labels = self.labels.iter().map(|label| match alone {
            true => visible(label).into_owned(),
            false => format!("[{}]", visible(label)),
        });
        let labels: Vec<String> = labels.collect();
        match labels.is_empty() {
            true => Line::new(),
            false => vec![Span::new(LABEL, &labels.join(" "))],
        }
    }

    /// Returns how it ended: `(failed, exit 3)`.
    fn ending(&self) -> Line {
        let mark = self.ending.and_then(mark);
        let style = match self.ending {
            Some(Ending::Running) => Style::new(),
            _ => FAILED,
        };
        mark.map(|mark| Span::new(style, &mark))
            .into_iter()
            .collect()
    }

    /// Returns what it was about as plain text of at most `width` columns, labels first.
    pub(in crate::commands) fn plain_about(&self, width: usize) -> String {
        let line = self.about(width, false);
        line.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns what is never cut off: the labels and the ending.
    fn fixed_width(&self) -> usize {
        let parts = [self.labels(), self.ending()];
        let parts = parts.iter().filter(|part| !part.is_empty());
        parts.map(|part| width_of(part) + 1).sum()
    }

    /// Returns what it was about so that it fits: the labels, then the text, then the ending.
    fn about(&self, width: usize, below: bool) -> Line {
        let (labels, ending) = match below {
            true => (Line::new(), Line::new()),
            false => (self.labels(), self.ending()),
        };
        let room = match below {
            true => width,
            false => width.saturating_sub(self.fixed_width()),
        };
        let text = self.text(room);
        let whole = self.text(usize::MAX);
        let text = match room < ABOUT.0 && text != whole && !below {
            true => String::new(),
            false => text,
        };
        let text: Line = match text.is_empty() {
            true => Line::new(),
            false => vec![Span::plain(&text)],
        };
        let parts = [labels, text, ending];
        let parts: Vec<Line> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(&Span::plain(" "))
    }

    /// Returns the text and the names of files after it; if not all of that fits, as many names
    /// as do, which say more.
    fn text(&self, room: usize) -> String {
        let about = visible(&self.about);
        let names = self.names(room);
        if names.is_empty() {
            return one_line(&about, room);
        }
        let both = format!("{about}: {}", self.files.join(", "));
        match !about.is_empty() && both.width() <= room {
            true => both,
            false => names,
        }
    }

    /// Returns as many names of files as fit, and how many more there are.
    fn names(&self, room: usize) -> String {
        let all = self.files.len();
        let rest = |shown: usize| match all - shown {
            0 => String::new(),
            more => format!(", +{more}"),
        };
        let fits = |text: &String| text.width() <= room;
        let some = |shown: usize| self.files[..shown].join(", ") + &rest(shown);
        let whole = Some(some(all)).filter(fits);
        let most = || (1..all).map(some).take_while(fits).last();
        whole.or_else(most).unwrap_or_else(|| {
            let room = room.saturating_sub(rest(1).width());
            match room < ABOUT.0 {
                true => String::new(),
                false => cut_middle(&self.files[0], room) + &rest(1),
            }
        })
    }
}

/// Returns the mark of a turn or run that failed, was interrupted or is running.
pub(in crate::commands) fn mark(ending: Ending) -> Option<String> {
    let text = ending.to_string();
    (!text.is_empty()).then(|| format!("({text})"))
}

/// The narrowest and the widest column for what it was about.
const ABOUT: (usize, usize) = (6, 100);
/// The text keeps this much room before the time it took, the number of files and the session
/// are dropped.
const NARROW: usize = 28;

/// Draws lines in columns, as wide as the terminal allows. Labels and marks that do not fit go
/// below their line.
pub(in crate::commands) fn draw_rows(rows: &[Row], width: Option<usize>) -> String {
    let room = room_for_about(rows, width);
    let numbers = Numbers::of(rows);
    let kept = used_columns(rows);
    let mut table = Table::new(only(&kept, columns(narrowest(rows)).into()));
    let mut day = None;
    for row in rows {
        if row.day.is_some() && row.day != day {
            day.clone_from(&row.day);
            let heading = row.day.as_deref().unwrap_or_default();
            table.push([Cell::Rest(vec![Span::new(BOLD, heading)])]);
        }
        let below = row.fixed_width() > room + 1;
        let mut cells = row.cells(&numbers);
        cells[2] = Cell::Fit(Box::new(move |width| row.about(width, below)));
        table.push(only(&kept, cells));
        for line in below.then(|| row.below(width)).into_iter().flatten() {
            table.push([Cell::Rest(line)]);
        }
    }
    let lines = table.lines(width);
    lines.iter().map(|line| styled(line) + "\n").collect()
}

impl Row {
    /// Returns its cells, except for what it was about.
    fn cells(&self, numbers: &Numbers) -> Vec<Cell<'_>> {
        vec![
            self.at.as_str().into(),
            Cell::new(kind_style(&self.kind), &self.kind),
            "".into(),
            self.session.as_str().into(),
            self.took.as_str().into(),
            Cell::Line(numbers.line(&self.change)),
            self.change.files().into(),
            self.id.as_str().into(),
        ]
    }

    /// Returns the labels and the ending on lines of their own.
    fn below(&self, width: Option<usize>) -> Vec<Line> {
        /// How far they are indented.
        const INDENT: usize = 7;
        let width = width.map_or(usize::MAX, |width| width.saturating_sub(INDENT));
        let parts = [self.labels(), self.ending()];
        let parts: Vec<Line> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let mut lines = wrap(&parts.join(&Span::plain(" ")), width);
        for line in &mut lines {
            line.insert(0, Span::blank(INDENT));
        }
        lines
    }
}

/// How wide the numbers of lines are.
struct Numbers {
    added: usize,
    removed: usize,
}

impl Numbers {
    fn of(rows: &[Row]) -> Self {
        let signed = rows.iter().map(|row| row.change.signed());
        let (added, removed): (Vec<_>, Vec<_>) = signed.unzip();
        let widest = |all: &[String]| all.iter().map(|it| it.width()).max().unwrap_or(0);
        Self {
            added: widest(&added),
            removed: widest(&removed),
        }
    }

    /// Writes the numbers below those of other rows.
    fn line(&self, change: &Changed) -> Line {
        let (added, removed) = change.signed();
        let blank = |text: &str, width: usize| Span::blank(width - text.width());
        let gap = usize::from(self.added > 0 && self.removed > 0);
        vec![
            blank(&added, self.added),
            Span::new(ADDED, &added),
            Span::blank(gap),
            blank(&removed, self.removed),
            Span::new(REMOVED, &removed),
        ]
    }
}

/// Returns how narrow the text may become before columns are dropped.
fn narrowest(rows: &[Row]) -> usize {
    let texts = rows.iter().map(|row| width_of(&row.about(ABOUT.1, false)));
    texts.max().unwrap_or(0).clamp(ABOUT.0, NARROW)
}

fn columns(narrowest: usize) -> [Column; 8] {
    [
        Column::text("").style(DIM),
        Column::text(""),
        Column::text("").between(narrowest, ABOUT.1),
        Column::text("").style(DIM).drop(1),
        Column::number("").style(DIM).drop(3),
        Column::number(""),
        Column::number("").drop(2),
        Column::text("").style(DIM),
    ]
}

/// Returns which columns have something to show.
fn used_columns(rows: &[Row]) -> [bool; 8] {
    let mut used = [true; 8];
    used[3] = rows.iter().any(|row| !row.session.is_empty());
    used[4] = rows.iter().any(|row| !row.took.is_empty());
    used
}

fn only<T>(kept: &[bool; 8], all: Vec<T>) -> Vec<T> {
    let kept = all.into_iter().zip(kept).filter(|(_, kept)| **kept);
    kept.map(|(it, _)| it).collect()
}

/// Returns how wide the text of a line can be, where all that can be dropped is.
fn room_for_about(rows: &[Row], width: Option<usize>) -> usize {
    let Some(width) = width else {
        return ABOUT.1;
    };
    let numbers = Numbers::of(rows);
    let kept = [true, true, true, false, false, true, false, true];
    let mut others = Table::new(only(&kept, columns(0).into()));
    for row in rows {
        others.push(only(&kept, row.cells(&numbers)));
    }
    width.saturating_sub(others.width()).min(ABOUT.1)
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
