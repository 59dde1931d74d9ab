//! The table of sessions, as wide as the terminal.

use backtrail::Timestamp;
use backtrail_formats::agent_title;
use backtrail_index::{SessionRow, Spending};
use unicode_width::UnicodeWidthStr;

use super::families::{Family, agent_of, title_of};
use crate::commands::conversation::NO_TITLE;
use crate::error::Result;
use crate::layout::{BOLD, Cell, Column, DIM, Span, Table, hanging, styled};
use crate::short::short;
use crate::text::{cost, count, grouped, one_line, plus_note, tokens};
use crate::ui::Ui;
use crate::when;

/// A line of the table: a session, or a family of them.
pub(in crate::commands) struct SessionLine<'a> {
    pub(in crate::commands) row: &'a SessionRow,
    /// How many generations it is below the first session of its family.
    pub(in crate::commands) depth: usize,
    pub(super) pinned: bool,
    /// How many others are folded into it.
    pub(super) forks: usize,
    pub(super) sub_agents: usize,
    /// The other agents of those forks.
    pub(super) other_agents: Vec<&'a str>,
    pub(in crate::commands) files: u64,
    pub(in crate::commands) spending: Spending,
}

impl<'a> SessionLine<'a> {
    /// Makes the line of one session.
    pub(super) fn of(row: &'a SessionRow, depth: usize) -> Self {
        Self {
            row,
            depth,
            pinned: row.pinned,
            forks: 0,
            sub_agents: 0,
            other_agents: Vec::new(),
            files: row.files_changed,
            spending: row.spending,
        }
    }

    /// Returns the marks before the title: the indent, pinned, fork, sub-agent, damaged.
    fn marks(&self) -> String {
        /// Deeper ones are not indented further: the title needs the room.
        const DEEPEST: usize = 6;
        let mut marks = match self.depth.min(DEEPEST) {
            0 => String::new(),
            depth => format!("{}└ ", "  ".repeat(depth - 1)),
        };
        if self.pinned {
            marks += "* ";
        }
        marks += &self.fork_mark();
        if self.row.family.spawned_by.is_some() {
            marks += "[sub-agent] ";
        }
        if self.row.damaged > 0 {
            marks += "[damaged] ";
        }
        marks
    }

    fn fork_mark(&self) -> String {
        match (&self.row.family.branch, &self.row.family.forked_from) {
            (Some(name), Some(_)) => format!("[fork {name}] "),
            (None, Some(_)) => "[fork] ".to_owned(),
            _ => String::new(),
        }
    }

    /// Returns the title for a list that shows the other marks by itself.
    pub(in crate::commands) fn full_title(&self) -> String {
        let title = title_of(self.row).unwrap_or(NO_TITLE);
        format!("{}{title}", self.fork_mark())
    }

    /// Returns when it was last active, in a few characters.
    pub(in crate::commands) fn when(&self) -> String {
        self.row.updated_at.map_or_else(
            || "?".to_owned(),
            |at| when::about(when::brief(at), self.row.times_from_file),
        )
    }

    /// Returns the agent, as people call it.
    pub(in crate::commands) fn agent(&self) -> String {
        let agent = agent_of(self.row).map(agent_title);
        one_line(agent.unwrap_or_default(), NAMES)
    }

    /// Returns the name of the project.
    pub(in crate::commands) fn project(&self) -> String {
        let project = self.row.project.as_ref();
        one_line(project.map_or("", |project| &project.name), NAMES)
    }

    /// Returns how many others are folded into it: `+2 forks (Codex)`.
    fn folded(&self) -> String {
        let agents: Vec<&str> = self.other_agents.iter().map(|it| agent_title(it)).collect();
        let agents = match agents.is_empty() {
            true => String::new(),
            false => format!(" ({})", agents.join(", ")),
        };
        let others = [
            (self.forks, "fork", agents),
            (self.sub_agents, "sub-agent", String::new()),
        ];
        let others = others.into_iter().filter(|(n, ..)| *n > 0);
        let words: Vec<String> = others
            .map(|(n, thing, agents)| format!("+{}{agents}", count(n, thing)))
            .collect();
        words.join(" ")
    }

    /// Returns the title, cut to fit, and the number of folded sessions, which is never cut.
    fn title(&self, width: usize) -> (String, String) {
        let indent = self.marks().chars().take_while(|c| *c == ' ').count();
        let title = title_of(self.row).unwrap_or(NO_TITLE);
        let text = format!("{}{title}", self.marks());
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

/// Runs without a conversation, in one line.
pub(super) struct FoldedRuns {
    count: u64,
    newest: Option<Timestamp>,
}

impl FoldedRuns {
    pub(super) fn of(runs: &[Family]) -> Option<Self> {
        let newest = runs.iter().filter_map(|run| run.head().updated_at).max();
        let count = runs.iter().map(Family::runs).sum();
        (count > 0).then_some(Self { count, newest })
    }

    fn cells(&self) -> Vec<Cell<'_>> {
        let when = self.newest.map(when::brief).unwrap_or_default();
        let title = format!("+{}", count(self.count, "run"));
        let mut cells: Vec<Cell<'_>> = ["", &when, "", ""].map(Cell::from).into();
        cells.push(Cell::new(DIM, &title));
        cells
    }
}

/// The title keeps this much room; other columns are dropped before that.
const NARROW: usize = 24;
/// The widest title.
const WIDE: usize = 80;
/// The widest names of agents and projects that are not cut.
const NAMES: usize = 16;

/// Where the terminal is too narrow, columns are dropped: numbers first, but the cost last of
/// them.
const COLUMNS: [Column; 9] = [
    Column::text("ID").style(BOLD),
    Column::text("WHEN").drop(1),
    Column::text("AGENT").drop(3),
    Column::text("PROJECT").drop(4),
    Column::text("TITLE").between(NARROW, WIDE),
    Column::number("TURNS").drop(5),
    Column::number("FILES").drop(6),
    Column::number("TOKENS").drop(7),
    Column::number("COST").drop(2),
];
/// Which of them is the project, which is the same for all sessions of one workspace.
const PROJECT: usize = 3;

/// Prints the table, on a terminal through the pager, and what its signs mean.
pub(super) fn print(
    lines: &[SessionLine<'_>],
    runs: Option<&FoldedRuns>,
    only_here: bool,
    ui: &Ui,
) -> Result<()> {
    let table = draw(lines, runs, only_here, ui.width());
    ui.page(&table)?;
    let notes = notes(lines, &table);
    let wrapped = notes.iter().map(|note| hanging(0, note, ui.width()));
    wrapped.for_each(|note| ui.status(&note));
    Ok(())
}

/// Explains the signs that a table has.
fn notes(lines: &[SessionLine<'_>], table: &str) -> Vec<String> {
    let readable = || lines.iter().filter(|line| line.row.error.is_none());
    let has_column = |name: &str| table.lines().next().is_some_and(|head| head.contains(name));
    let mut sum = Spending::default();
    let lower_bounds = readable().filter(|line| plus_note(&line.spending).is_some());
    lower_bounds.for_each(|line| sum.add(&line.spending));
    let mut notes: Vec<String> = plus_note(&sum).into_iter().collect();
    notes.retain(|_| has_column("COST"));
    if has_column("WHEN") && readable().any(|line| line.row.times_from_file) {
        notes.push(format!("~ before a time: {}", when::FROM_FILE));
    }
    notes
}

/// Draws the table, without projects if all sessions are of this workspace.
fn draw(
    lines: &[SessionLine<'_>],
    runs: Option<&FoldedRuns>,
    only_here: bool,
    width: Option<usize>,
) -> String {
    let has_signs = lines
        .iter()
        .any(|line| line.row.error.is_none() && cost(&line.spending).ends_with('+'));
    let mut columns = COLUMNS.to_vec();
    let mut rows: Vec<Vec<Cell<'_>>> = lines.iter().map(|line| cells(line, has_signs)).collect();
    rows.extend(runs.map(FoldedRuns::cells));
    if only_here {
        columns.remove(PROJECT);
        rows.iter_mut().for_each(|row| drop(row.remove(PROJECT)));
    }
    let mut table = Table::new(columns);
    rows.into_iter().for_each(|row| table.push(row));
    let lines = table.lines(width);
    lines.iter().map(|line| styled(line) + "\n").collect()
}

fn cells<'a>(line: &'a SessionLine<'a>, has_signs: bool) -> Vec<Cell<'a>> {
    let row = line.row;
    let mut cells: Vec<Cell<'_>> = vec![
        short(&row.id).into(),
        line.when().into(),
        line.agent().into(),
        line.project().into(),
    ];
    if let Some(error) = &row.error {
        let reason = one_line(&format!("unreadable: {error}"), usize::MAX);
        cells.push(Cell::Rest(vec![Span::plain(&reason)]));
        return cells;
    }
    cells.push(Cell::Fit(Box::new(|width| {
        let (title, folded) = line.title(width);
        vec![Span::plain(&title), Span::new(DIM, &folded)]
    })));
    let mut cost = cost(&line.spending);
    if has_signs && cost.ends_with(|c: char| c.is_ascii_digit()) {
        // Amounts line up whether a + follows them or not.
        cost.push(' ');
    }
    let numbers = [
        grouped(row.turns),
        grouped(line.files),
        tokens(&line.spending),
        cost,
    ];
    cells.extend(numbers.map(Cell::from));
    cells
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
