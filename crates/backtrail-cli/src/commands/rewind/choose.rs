//! Choosing the turn or run to go back before.

use std::io::{self, BufRead, Write};

use backtrail::workspace::{LogEntry, LogKind};
use backtrail::{Checkpoint, ErrorKind, Point, Workspace};
use serde_json::{Value, json};

use crate::commands::log::{
    Changed, Row, about, about_with_labels, add_ending, change, draw_rows, kind, labels,
};
use crate::commands::workspace::WorkspaceArgs;
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::ui::Ui;
use crate::when;

/// How many are listed.
const LISTED: usize = 10;

/// Lists the last turns and runs, and asks for one on a terminal. `None` if nothing was
/// chosen.
pub(super) fn choose(
    workspace: &Workspace,
    here: &WorkspaceArgs,
    ui: &Ui,
) -> Result<Option<Point>> {
    let entries = last_turns(workspace)?;
    if ui.json() {
        ui.print_json(&numbered(&entries).map(to_json).collect::<Vec<_>>())?;
        return Ok(None);
    }
    if entries.is_empty() {
        let place = tilde(workspace.root());
        ui.status(&format!("no turns or runs in {place} yet"));
        let log = here.command(ui, "log");
        ui.status(&format!("you can also go back to a checkpoint: {log}"));
        return Ok(None);
    }
    let rows: Vec<Row> = numbered(&entries).map(row).collect();
    let mut out = ui.out();
    write!(out, "{}", draw_rows(&rows, ui.width()))?;
    out.flush()?;
    if !ui.can_ask() {
        let rewind = here.command(ui, "rewind");
        ui.status(&format!("choose one: {rewind} last~1"));
        return Ok(None);
    }
    let chosen = ask(entries.len(), &mut io::stdin().lock(), &mut io::stderr())?;
    let Some(n) = chosen else {
        return Ok(None);
    };
    let start = entries[n - 1].before().map(Checkpoint::id);
    if start != Some(workspace.resolve(&point(n))?.id()) {
        let what = "another turn or run has begun; nothing was touched";
        let again = format!("choose again: {}", here.command(ui, "rewind"));
        return Err(CommandError::invalid(what).hint(again));
    }
    Ok(Some(point(n)))
}

/// Returns the last turns and runs, the newest first: those that `last~N` counts.
fn last_turns(workspace: &Workspace) -> Result<Vec<LogEntry>> {
    let log = workspace.log()?;
    let mut entries = Vec::new();
    for n in 1..=LISTED {
        let start = match workspace.resolve(&point(n)) {
            Err(error) if error.kind() == ErrorKind::NotFound => break,
            start => start?,
        };
        let begins = |entry: &&LogEntry| {
            let first = entry.before().map(Checkpoint::id);
            matches!(entry.kind(), LogKind::Turn | LogKind::Run) && first == Some(start.id())
        };
        entries.extend(log.iter().find(begins).cloned());
    }
    Ok(entries)
}

fn numbered(entries: &[LogEntry]) -> impl Iterator<Item = (usize, &LogEntry)> {
    (1..).zip(entries)
}

fn row((n, entry): (usize, &LogEntry)) -> Row {
    let changed = entry
        .changes()
        .and_then(|diff| diff.as_ref().map(change).transpose());
    Row {
        kind: kind(entry).into_owned(),
        at: format!("{n:>2}  {}", when::brief(entry.at())),
        about: about(entry),
        labels: labels(entry),
        ending: entry.ending(),
        // Damage is reported by log and verify.
        change: changed.ok().flatten().unwrap_or_else(Changed::unknown),
        id: point(n).to_string(),
        ..Row::default()
    }
}

fn point(n: usize) -> Point {
    Point::turns_back(n as u64)
}

fn to_json((n, entry): (usize, &LogEntry)) -> Value {
    let mut row = json!({
        "point": point(n).to_string(),
        "checkpoint": entry.before().map(|start| start.id()),
        "kind": kind(entry),
        "about": about_with_labels(entry),
        "at": entry.at(),
        "ended": entry.ended(),
    });
    add_ending(&mut row, entry.ending());
    row
}

/// Asks for a number until one fits. `None` if the user cancels.
fn ask(
    count: usize,
    keyboard: &mut impl BufRead,
    screen: &mut impl Write,
) -> io::Result<Option<usize>> {
    loop {
        let range = match count {
            1 => "1".to_owned(),
            count => format!("1-{count}"),
        };
        write!(
            screen,
            "go back to before which one? ({range}, Enter to cancel) "
        )?;
        screen.flush()?;
        let mut answer = String::new();
        if keyboard.read_line(&mut answer)? == 0 {
            writeln!(screen)?;
            return Ok(None);
        }
        match answer.trim() {
            "" | "q" | "Q" => return Ok(None),
            answer => match answer.parse() {
                Ok(n) if (1..=count).contains(&n) => return Ok(Some(n)),
                _ => writeln!(screen, "not in the list")?,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ask;

    fn answered(count: usize, keys: &str) -> (Option<usize>, String) {
        let mut screen = Vec::new();
        let chosen = ask(count, &mut keys.as_bytes(), &mut screen).unwrap();
        (chosen, String::from_utf8(screen).unwrap())
    }

    #[test]
    fn a_wrong_answer_is_asked_again_and_enter_cancels() {
        assert_eq!(answered(10, "3\n").0, Some(3));
        assert_eq!(answered(10, " 10 \n").0, Some(10));
        for keys in ["\n", "q\n", "", "11\nq\n", "0\n\n", "last~1\n-1\n"] {
            assert_eq!(answered(10, keys).0, None, "{keys:?}");
        }
        let (chosen, screen) = answered(2, "3\nx\n2\n");
        assert_eq!(chosen, Some(2));
        assert_eq!(screen.matches("(1-2, Enter to cancel)").count(), 3);
        assert_eq!(screen.matches("not in the list\n").count(), 2);
    }
}
