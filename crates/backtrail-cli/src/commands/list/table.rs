//! The table of sessions, as wide as the terminal.

use std::io;

use backtrail_index::{SessionRow, Spending};
use unicode_width::UnicodeWidthStr;

use super::families::words_of;
use crate::derived::prefix;
use crate::pager;
use crate::text::{cost, count, grouped, one_line, pad_end, pad_start, tokens};
use crate::ui::{BOLD, DIM, Ui};
use crate::when;

/// What a line of the table is about.
pub(super) struct Line<'a> {
    pub(super) row: &'a SessionRow,
    /// How far it stands below the session that it all began with.
    pub(super) depth: usize,
    pub(super) pinned: bool,
    /// How many others are folded into it.
    pub(super) forks: usize,
    pub(super) sub_agents: usize,
    pub(super) files: u64,
    pub(super) spending: Spending,
}

impl<'a> Line<'a> {
    /// Makes the line of one session.
    pub(super) fn of(row: &'a SessionRow, depth: usize) -> Self {
        Self {
            row,
            depth,
            pinned: row.pinned,
            forks: 0,
            sub_agents: 0,
            files: row.files_changed,
            spending: row.spending,
        }
    }

    /// Returns what stands before the title: how far below it is, and what sets it apart.
    fn marks(&self) -> String {
        /// Deeper ones stand below each other: the title needs the room.
        const DEEPEST: usize = 6;
        let mut marks = match self.depth.min(DEEPEST) {
            0 => String::new(),
            depth => format!("{}└ ", "  ".repeat(depth - 1)),
        };
        if self.pinned {
            marks += "* ";
        }
        match (&self.row.family.branch, &self.row.family.forked_from) {
            (Some(name), Some(_)) => marks += &format!("[fork {name}] "),
            (None, Some(_)) => marks += "[fork] ",
            _ => {}
        }
        if self.row.family.spawned_by.is_some() {
            marks += "[sub-agent] ";
        }
        if self.row.damaged > 0 {
            marks += "[damaged] ";
        }
        marks
    }

    /// Returns how many others are folded into it: `+2 forks`.
    fn folded(&self) -> String {
        let others = [(self.forks, "fork"), (self.sub_agents, "sub-agent")];
        let others = others.into_iter().filter(|(n, _)| *n > 0);
        let words: Vec<String> = others
            .map(|(n, thing)| format!("+{}", count(n as u64, thing)))
            .collect();
        words.join(" ")
    }

    /// Writes the title so that it fits; what is folded into it is never cut off.
    fn title(&self, width: usize) -> (String, String) {
        let indent = self.marks().chars().take_while(|c| *c == ' ').count();
        let words = words_of(self.row).unwrap_or_default();
        let text = format!("{}{words}", self.marks());
        let mut folded = self.folded();
        if folded.width() * 2 > width {
            folded = format!("+{}", self.forks + self.sub_agents);
        }
        let room = match folded.width() {
            0 => width,
            taken => width.saturating_sub(taken + 1),
        };
        let text = one_line(&text, room.saturating_sub(indent));
        let text = format!("{}{text}", " ".repeat(indent));
        match (text.is_empty(), folded.is_empty()) {
            (_, true) => (text, String::new()),
            (true, false) => (folded, String::new()),
            (false, false) => (text, format!(" {folded}")),
        }
    }
}

/// What stands between two columns.
const GAP: usize = 2;
/// A title narrower than this says little: columns go before that.
const NARROW: usize = 20;
/// How wide a title may be where there is no terminal to fit.
const WIDE: usize = 80;
/// The widest names of agents and projects that are written whole.
const NAMES: usize = 16;

const LEFT: [&str; 3] = ["WHEN", "AGENT", "PROJECT"];
const RIGHT: [&str; 4] = ["TURNS", "FILES", "TOKENS", "COST"];

/// Prints the table, on a terminal through the pager.
pub(super) fn print(lines: &[Line<'_>], ids: &[String], ui: &Ui) -> io::Result<()> {
    let mut text = draw(lines, ids, ui.width());
    if !ui.styles_stdout() {
        text = anstream::adapter::strip_str(&text).to_string();
    }
    pager::print(&text)
}

/// Draws the table. `ids` are those of all sessions, in order: what is printed tells a
/// session from all of them.
fn draw(lines: &[Line<'_>], ids: &[String], width: Option<usize>) -> String {
    let cells: Vec<Cells> = lines.iter().map(|line| Cells::new(line, ids)).collect();
    let columns = Columns::new(lines, &cells, width);
    let mut out = String::new();
    let head = Cells {
        id: "ID".to_owned(),
        left: LEFT.map(str::to_owned),
        right: RIGHT.map(str::to_owned),
    };
    let line = columns.row(&head, "TITLE", "");
    out += &format!("{DIM}{}{DIM:#}\n", anstream::adapter::strip_str(&line));
    for (line, cells) in lines.iter().zip(&cells) {
        let row = match &line.row.error {
            Some(error) => columns.unreadable(cells, error),
            None => {
                let (title, folded) = line.title(columns.title);
                columns.row(cells, &title, &folded)
            }
        };
        out += &row;
        out.push('\n');
    }
    out
}

/// What stands in a line, the title aside.
struct Cells {
    id: String,
    left: [String; 3],
    right: [String; 4],
}

impl Cells {
    fn new(line: &Line<'_>, ids: &[String]) -> Self {
        let row = line.row;
        let name = |name: Option<&str>| one_line(name.unwrap_or_default(), NAMES);
        let project = row.project.as_ref().map(|project| project.name.as_str());
        let right = match &row.error {
            Some(_) => Default::default(),
            None => [
                grouped(row.turns),
                grouped(line.files),
                tokens(&line.spending),
                cost(&line.spending),
            ],
        };
        Self {
            id: prefix(row.id.as_str(), ids).to_owned(),
            left: [
                row.updated_at.map_or_else(|| "?".to_owned(), when::brief),
                name(row.agent.as_deref().or(row.belongs_to.as_deref())),
                name(project),
            ],
            right,
        }
    }
}

/// Returns whether a cost is an amount without a sign at its end.
fn is_exact(cost: &str) -> bool {
    cost.ends_with(|c: char| c.is_ascii_digit())
}

/// How wide the columns are. A line that wraps hurts: where the terminal is too narrow,
/// columns go, those to the right of the title first.
struct Columns {
    id: usize,
    /// Which of those left of the title are shown, and how wide they are.
    left: Vec<(usize, usize)>,
    title: usize,
    right: Vec<usize>,
    /// Whether a cost has a sign at its end that others must leave room for.
    signs: bool,
    width: Option<usize>,
}

impl Columns {
    fn new(lines: &[Line<'_>], cells: &[Cells], width: Option<usize>) -> Self {
        let widest = |head: &str, cell: &dyn Fn(&Cells) -> usize| {
            let cells = cells.iter().map(cell).max().unwrap_or(0);
            cells.max(head.width())
        };
        let signs = cells.iter().any(|cells| cells.right[3].ends_with('+'));
        let left = (0..LEFT.len()).map(|n| (n, widest(LEFT[n], &|it| it.left[n].width())));
        let right = (0..RIGHT.len()).map(|n| {
            let sign = |it: &Cells| usize::from(n == 3 && signs && is_exact(&it.right[3]));
            widest(RIGHT[n], &|it| it.right[n].width() + sign(it))
        });
        let titles = lines.iter().map(|line| {
            let (title, folded) = line.title(WIDE);
            title.width() + folded.width()
        });
        let mut columns = Self {
            id: widest("ID", &|it| it.id.width()),
            left: left.collect(),
            title: titles.max().unwrap_or(0).max("TITLE".len()),
            right: right.collect(),
            signs,
            width,
        };
        if let Some(width) = width {
            let is_blank = |n: usize| cells.iter().all(|it| it.left[n].is_empty());
            columns.fit(width, &is_blank);
        }
        columns
    }

    /// Returns how wide a line is without its title.
    fn others(&self) -> usize {
        let left = self.left.iter().map(|(_, width)| width);
        let columns = left.chain(&self.right);
        self.id + GAP + columns.map(|width| width + GAP).sum::<usize>()
    }

    /// Drops columns until the title has room: first those in which nothing stands.
    fn fit(&mut self, width: usize, is_blank: &dyn Fn(usize) -> bool) {
        let wanted = self.title.min(NARROW);
        if self.others() + wanted > width {
            self.left.retain(|(n, _)| !is_blank(*n));
        }
        while self.others() + wanted > width {
            if self.right.pop().is_none() && self.left.pop().is_none() {
                break;
            }
        }
        self.title = self.title.min(width.saturating_sub(self.others())).max(1);
    }

    fn row(&self, cells: &Cells, title: &str, folded: &str) -> String {
        let mut line = self.start(cells);
        let room = self.title.saturating_sub(title.width() + folded.width());
        line += title;
        if !folded.is_empty() {
            line += &format!("{DIM}{folded}{DIM:#}");
        }
        line += &" ".repeat(room);
        for (n, width) in self.right.iter().enumerate() {
            let mut cell = cells.right[n].clone();
            if n == 3 && self.signs && is_exact(&cell) {
                cell.push(' ');
            }
            line += &format!("  {}", pad_start(&cell, *width));
        }
        self.cut(line)
    }

    /// Returns the line of a session that cannot be read: why not has all the room.
    fn unreadable(&self, cells: &Cells, error: &str) -> String {
        let room: usize = self.right.iter().map(|width| width + GAP).sum();
        let room = match self.width {
            Some(width) => width.saturating_sub(self.others()) + room,
            None => usize::MAX,
        };
        let reason = one_line(&format!("unreadable: {error}"), room.max(1));
        self.cut(self.start(cells) + &reason)
    }

    /// Returns what stands before the title.
    fn start(&self, cells: &Cells) -> String {
        let mut line = format!("{BOLD}{}{BOLD:#}  ", pad_end(&cells.id, self.id));
        for (n, width) in &self.left {
            line += &format!("{}  ", pad_end(&cells.left[*n], *width));
        }
        line
    }

    /// Leaves nothing at the end of a line, and cuts one that cannot fit: an id that
    /// somebody else gave may be longer than the terminal is wide.
    fn cut(&self, line: String) -> String {
        let line = line.trim_end();
        let plain = anstream::adapter::strip_str(line).to_string();
        match self.width {
            Some(width) if plain.width() > width => one_line(&plain, width),
            _ => line.to_owned(),
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
