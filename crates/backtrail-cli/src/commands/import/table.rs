//! Prints the result of an import.

use std::collections::BTreeMap;

use backtrail_formats::{AgentReport, ImportReport, SkippedFile};

use super::failed;
use super::own::Own;
use crate::error::{CommandError, Result};
use crate::layout::{Cell, Column, Table};
use crate::text::{count, grouped, one_line, plural, some_of, visible_path};
use crate::ui::Ui;

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
        let long = table(&agents, HEADS);
        match ui.width() {
            Some(width) if long.width() > width => {
                ui.print_table(&table(&agents, SHORT_HEADS), Some(width))?;
            }
            width => ui.print_table(&long, width)?,
        }
    }
    for agent in &agents {
        print_details(agent, ui);
    }
    for error in &report.errors {
        ui.error(&not_imported(error));
    }
    if !report.other_files.is_empty() {
        let all = report.other_files.len();
        let names = some_of(
            report.other_files.iter().map(|path| visible_path(path)),
            3,
            all,
        );
        let belong = plural(all, "belongs", "belong");
        let files = count(all, "file");
        ui.status(&format!(
            "skipped {files} that {belong} to no known agent: {names}"
        ));
    }
    let news: u64 = agents.iter().map(|agent| agent.new + agent.updated).sum();
    match (dry_run, news) {
        (true, _) => ui.status("nothing was imported: --dry-run"),
        (false, 0) => {}
        (false, _) => ui.remark(&format!("see them: {} list --all", ui.program())),
    }
    Ok(())
}

fn print_nothing_found(report: &ImportReport, own: &Own, ui: &Ui) {
    if own.is_empty() && report.errors.is_empty() {
        let names: Vec<_> = report.agents.iter().map(|agent| agent.title).collect();
        ui.status(&format!("found no sessions from {}", names.join(", ")));
        let program = ui.program();
        ui.status(&format!("to import from elsewhere: {program} import PATH"));
    }
}

fn table(agents: &[&AgentReport], heads: [&'static str; 7]) -> Table<'static> {
    let [agent, numbers @ ..] = heads;
    let columns = std::iter::once(Column::text(agent)).chain(numbers.map(Column::number));
    let mut table = Table::new(columns.collect::<Vec<_>>());
    for agent in agents {
        let numbers = [
            agent.found,
            agent.new,
            agent.updated,
            agent.unchanged,
            agent.damaged_lines,
            agent.unknown_records(),
        ];
        let title = std::iter::once(agent.title.to_owned());
        let cells = title.chain(numbers.map(grouped)).map(Cell::from);
        table.push(cells.collect::<Vec<_>>());
    }
    table
}

fn print_details(agent: &AgentReport, ui: &Ui) {
    let title = agent.title;
    if let Some(damaged) = agent.first_damaged.first() {
        let all = count(agent.damaged_lines, "damaged line");
        let first = plural(agent.damaged_lines, ":", "; the first is");
        let place = match damaged.line.line {
            // A database has no lines.
            0 => "in".to_owned(),
            line => format!("line {line} of"),
        };
        let text = format!(
            "{title}: {all} skipped{first} {place} {}: {}",
            visible_path(&damaged.file),
            one_line(&damaged.line.reason, 120)
        );
        ui.warning(&text, None);
    }
    if !agent.unknown_types.is_empty() {
        let kinds = counted(&agent.unknown_types);
        ui.status(&format!(
            "{title}: unknown record types, kept unchanged: {kinds}"
        ));
    }
    if !agent.not_imported.is_empty() {
        let kinds = counted(&agent.not_imported);
        ui.status(&format!("{title}: not imported: {kinds}"));
    }
    if agent.unfinished_files > 0 {
        let files = count(agent.unfinished_files, "file");
        let end = plural(agent.unfinished_files, "ends", "end");
        ui.status(&format!(
            "{title}: {files} {end} in an incomplete line, perhaps still being written; it will be read next time"
        ));
    }
    if agent.without_conversation > 0 {
        let files = count(agent.without_conversation, "file");
        ui.status(&format!("{title}: skipped {files} without a conversation"));
    }
    if !agent.skipped.is_empty() {
        let all = agent.skipped.len();
        let one = |file: &SkippedFile| {
            let path = visible_path(&file.file);
            format!("{path} ({})", one_line(&file.reason, 120))
        };
        let files = some_of(agent.skipped.iter().map(one), 3, all);
        ui.status(&format!("{title}: skipped {}: {files}", count(all, "file")));
    }
    if agent.excluded > 0 {
        let files = count(agent.excluded, "file");
        ui.status(&format!("{title}: skipped {files} (import.exclude)"));
    }
    if agent.deleted_here > 0 {
        let files = count(agent.deleted_here, "file");
        let were = plural(agent.deleted_here, "was", "were");
        ui.status(&format!(
            "{title}: {files} of deleted sessions {were} not imported again"
        ));
    }
    for error in &agent.errors {
        ui.error(&not_imported(error));
    }
}

/// Lists kinds, and how many there are of each.
fn counted(kinds: &BTreeMap<String, u64>) -> String {
    let all = kinds.iter();
    let all = all.map(|(kind, n)| format!("{} ({})", one_line(kind, 40), grouped(*n)));
    some_of(all, 5, kinds.len())
}

/// Names the file first, then the reason.
fn not_imported(error: &backtrail_formats::Error) -> CommandError {
    let reason = failed(error);
    let Some(path) = reason.path.as_deref().filter(|_| error.store().is_none()) else {
        return reason;
    };
    let not_imported = CommandError::invalid(format!("{} was not imported", visible_path(path)));
    not_imported.cause(reason.with_causes())
}
