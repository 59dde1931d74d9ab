//! What an import found, for people.

use std::io::Write;

use backtrail_formats::{AgentReport, ImportReport};

use super::own::Own;
use super::{failed, many};
use crate::error::{CommandError, Result};
use crate::layout::{Cell, Column, Line, Table, styled};
use crate::text::{clean, grouped, one_line};
use crate::ui::{Ui, unwritable};

const HEADS: [&str; 7] = [
    "AGENT",
    "FOUND",
    "NEW",
    "UPDATED",
    "UNCHANGED",
    "DAMAGED LINES",
    "NOT UNDERSTOOD",
];
/// For narrow terminals.
const SHORT_HEADS: [&str; 7] = ["AGENT", "FOUND", "NEW", "UPD", "SAME", "DAMAGED", "UNKNOWN"];

/// Prints the table, and what there is to be said about it.
pub(super) fn tell(dry_run: bool, report: &ImportReport, own: &Own, ui: &Ui) -> Result<()> {
    own.print(ui)?;
    let seen = |agent: &&AgentReport| agent.found > 0 || !agent.errors.is_empty();
    let agents: Vec<&AgentReport> = report.agents.iter().filter(seen).collect();
    if agents.is_empty() {
        nothing(report, own, ui);
    } else {
        let mut out = ui.out();
        let mut lines = lines(&agents, ui.width()).into_iter();
        lines
            .try_for_each(|line| writeln!(out, "{}", styled(&line)))
            .and_then(|()| out.flush())
            .map_err(|error| unwritable(&error))?;
    }
    for agent in &agents {
        remarks(agent, ui);
    }
    for error in &report.errors {
        ui.error(&not_taken_in(error));
    }
    if !report.strangers.is_empty() {
        let files = many(report.strangers.len(), "file");
        let first = report.strangers.iter().take(3);
        let first: Vec<_> = first.map(|path| shown(path)).collect();
        ui.status(&format!(
            "{files} of no agent that is known were left alone: {}{}",
            first.join(", "),
            if report.strangers.len() > 3 {
                ", …"
            } else {
                ""
            }
        ));
    }
    let news: u64 = agents.iter().map(|agent| agent.new + agent.updated).sum();
    match (dry_run, news) {
        (true, _) => ui.status("nothing was taken in: --dry-run"),
        (false, 0) => {}
        (false, _) => ui.remark("see them: backtrail list --all"),
    }
    Ok(())
}

fn nothing(report: &ImportReport, own: &Own, ui: &Ui) {
    if own.is_empty() && report.errors.is_empty() {
        let names: Vec<_> = report.agents.iter().map(|agent| agent.title).collect();
        ui.status(&format!("no sessions found of {}", names.join(", ")));
    }
}

/// Returns the table, with shorter heads where the terminal is narrow.
fn lines(agents: &[&AgentReport], width: Option<usize>) -> Vec<Line> {
    let table = |heads: [&'static str; 7]| {
        let [agent, numbers @ ..] = heads;
        let columns = std::iter::once(Column::text(agent)).chain(numbers.map(Column::number));
        let mut table = Table::new(columns.collect::<Vec<_>>());
        for agent in agents {
            table.push(row(agent).map(Cell::from));
        }
        table
    };
    let long = table(HEADS);
    match width {
        Some(width) if long.width() > width => table(SHORT_HEADS).lines(Some(width)),
        _ => long.lines(width),
    }
}

fn row(agent: &AgentReport) -> [String; 7] {
    [
        agent.title.to_owned(),
        grouped(agent.found),
        grouped(agent.new),
        grouped(agent.updated),
        grouped(agent.unchanged),
        grouped(agent.damaged_lines),
        grouped(agent.unknown_records()),
    ]
}

/// Says what the numbers alone do not.
fn remarks(agent: &AgentReport, ui: &Ui) {
    let title = agent.title;
    if let Some((path, line)) = agent.damaged.first() {
        let all = match agent.damaged_lines {
            1 => "1 damaged line".to_owned(),
            n => format!("{} damaged lines", grouped(n)),
        };
        let first = match agent.damaged_lines {
            1 => ":",
            _ => ", the first of them",
        };
        let text = format!(
            "{title}: {all} passed over{first} line {} of {}: {}",
            line.line,
            shown(path),
            one_line(&line.reason, 120)
        );
        ui.warning(&text, None);
    }
    if !agent.unknown.is_empty() {
        let kinds = agent.unknown.iter().take(5);
        let kinds: Vec<_> = kinds
            .map(|(kind, count)| format!("{} ({})", one_line(kind, 40), grouped(*count)))
            .collect();
        let more = if agent.unknown.len() > 5 { ", …" } else { "" };
        ui.status(&format!(
            "{title}: records of kinds that are not known, kept as they are: {}{more}",
            kinds.join(", ")
        ));
    }
    if agent.unfinished > 0 {
        let (files, end) = match agent.unfinished {
            1 => ("1 file".to_owned(), "ends"),
            n => (format!("{} files", grouped(n)), "end"),
        };
        ui.status(&format!(
            "{title}: {files} {end} half-way, as if still being written; the rest is read next time"
        ));
    }
    if agent.deleted > 0 {
        ui.status(&format!(
            "{title}: {} of sessions that you deleted {} not taken in again",
            many(agent.deleted as usize, "file"),
            if agent.deleted == 1 { "was" } else { "were" }
        ));
    }
    for error in &agent.errors {
        ui.error(&not_taken_in(error));
    }
}

/// Names what was not taken in first, then why.
fn not_taken_in(error: &backtrail_formats::Error) -> CommandError {
    let why = failed(error);
    let Some(path) = why.path().filter(|_| error.store().is_none()) else {
        return why;
    };
    let told = CommandError::invalid(format!("{} was not taken in", shown(path)));
    told.cause(super::in_one_line(&why))
}

fn shown(path: &std::path::Path) -> String {
    clean(&path.to_string_lossy()).into_owned()
}
