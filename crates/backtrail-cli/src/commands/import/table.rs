//! Prints the result of an import.

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
    "UNKNOWN RECORDS",
];
/// For narrow terminals.
const SHORT_HEADS: [&str; 7] = ["AGENT", "FOUND", "NEW", "UPD", "SAME", "DAMAGED", "UNKNOWN"];

/// Prints the table, and what the numbers alone do not show.
pub(super) fn print(dry_run: bool, report: &ImportReport, own: &Own, ui: &Ui) -> Result<()> {
    own.print(ui)?;
    let seen = |agent: &&AgentReport| agent.found > 0 || !agent.errors.is_empty();
    let agents: Vec<&AgentReport> = report.agents.iter().filter(seen).collect();
    if agents.is_empty() {
        print_nothing_found(report, own, ui);
    } else {
        let mut out = ui.out();
        let mut lines = lines(&agents, ui.width()).into_iter();
        lines
            .try_for_each(|line| writeln!(out, "{}", styled(&line)))
            .and_then(|()| out.flush())
            .map_err(|error| unwritable(&error))?;
    }
    for agent in &agents {
        print_details(agent, ui);
    }
    for error in &report.errors {
        ui.error(&not_imported(error));
    }
    if !report.other_files.is_empty() {
        let files = many(report.other_files.len(), "file");
        let first = report.other_files.iter().take(3);
        let first: Vec<_> = first.map(|path| shown(path)).collect();
        ui.status(&format!(
            "skipped {files} that {} to no known agent: {}{}",
            if report.other_files.len() == 1 {
                "belongs"
            } else {
                "belong"
            },
            first.join(", "),
            if report.other_files.len() > 3 {
                ", …"
            } else {
                ""
            }
        ));
    }
    let news: u64 = agents.iter().map(|agent| agent.new + agent.updated).sum();
    match (dry_run, news) {
        (true, _) => ui.status("nothing was imported: --dry-run"),
        (false, 0) => {}
        (false, _) => ui.remark("see them: backtrail list --all"),
    }
    Ok(())
}

fn print_nothing_found(report: &ImportReport, own: &Own, ui: &Ui) {
    if own.is_empty() && report.errors.is_empty() {
        let names: Vec<_> = report.agents.iter().map(|agent| agent.title).collect();
        ui.status(&format!("no sessions found from {}", names.join(", ")));
    }
}

/// Returns the table, with shorter heads if the terminal is narrow.
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

fn print_details(agent: &AgentReport, ui: &Ui) {
    let title = agent.title;
    if let Some(damaged) = agent.first_damaged.first() {
        let all = match agent.damaged_lines {
            1 => "1 damaged line".to_owned(),
            n => format!("{} damaged lines", grouped(n)),
        };
        let first = match agent.damaged_lines {
            1 => ":",
            _ => "; the first is",
        };
        let text = format!(
            "{title}: {all} skipped{first} line {} of {}: {}",
            damaged.line.line,
            shown(&damaged.file),
            one_line(&damaged.line.reason, 120)
        );
        ui.warning(&text, None);
    }
    if !agent.unknown_types.is_empty() {
        let kinds = agent.unknown_types.iter().take(5);
        let kinds: Vec<_> = kinds
            .map(|(kind, count)| format!("{} ({})", one_line(kind, 40), grouped(*count)))
            .collect();
        let more = if agent.unknown_types.len() > 5 {
            ", …"
        } else {
            ""
        };
        ui.status(&format!(
            "{title}: unknown record types, kept unchanged: {}{more}",
            kinds.join(", ")
        ));
    }
    if agent.unfinished_files > 0 {
        let (files, end) = match agent.unfinished_files {
            1 => ("1 file".to_owned(), "ends"),
            n => (format!("{} files", grouped(n)), "end"),
        };
        ui.status(&format!(
            "{title}: {files} {end} in an incomplete line, perhaps still being written; it will be read next time"
        ));
    }
    if agent.deleted_here > 0 {
        ui.status(&format!(
            "{title}: {} of deleted sessions {} not imported again",
            many(agent.deleted_here as usize, "file"),
            if agent.deleted_here == 1 {
                "was"
            } else {
                "were"
            }
        ));
    }
    for error in &agent.errors {
        ui.error(&not_imported(error));
    }
}

/// Names the file first, then the reason.
fn not_imported(error: &backtrail_formats::Error) -> CommandError {
    let reason = failed(error);
    let Some(path) = reason.path().filter(|_| error.store().is_none()) else {
        return reason;
    };
    let not_imported = CommandError::invalid(format!("{} was not imported", shown(path)));
    not_imported.cause(super::in_one_line(&reason))
}

fn shown(path: &std::path::Path) -> String {
    clean(&path.to_string_lossy()).into_owned()
}
