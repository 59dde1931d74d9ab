//! Conflicts as text: which files others changed too, and what to do.

use backtrail::rewind::{ChangedBy, Conflict, Ending, OnConflict, Overlap, Verb};
use unicode_width::UnicodeWidthStr;

use super::lists::{self, Item, shortened};
use super::outcome_text::{OutcomeText, program_name};
use super::reverse;
use crate::commands::short;
use crate::layout::{Cell, Column, Table, styled};
use crate::text::{count, one_line, plural, visible, visible_path};
use crate::when;

/// How many conflicts are listed.
const ROWS: usize = 20;
/// How many overlaps of a file are shown, and how many lines of each.
const PLACES: usize = 5;
const LINES: usize = 6;

impl OutcomeText<'_> {
    /// Returns what stops it, in one line.
    pub(super) fn refusal(&self) -> String {
        let stopping: Vec<&Conflict> = self.outcome.stopping().collect();
        let files = count(stopping.len(), "file");
        if self.merges() {
            return format!("{files} cannot be merged; nothing was touched");
        }
        let have = plural(stopping.len(), "has", "have");
        let is_persons = |one: &Conflict| one.changed_by == ChangedBy::Person;
        let is_yours = |one: &&Conflict| is_persons(one) && !one.overlapped && one.or.is_none();
        let are_yours = stopping.iter().all(is_yours);
        let step = self.outcome.step.as_ref().map(|step| step.kind.as_str());
        let is_doubtful = |one: &&Conflict| is_persons(one) && one.overlapped;
        let or = one_program(&stopping);
        let ending = self.outcome.step.as_ref().and_then(|step| step.ending);
        let what = match step {
            Some(step) if stopping.iter().all(is_doubtful) && ending == Some(Ending::Running) => {
                let or = or.unwrap_or_else(|| format!("the {step}"));
                format!("changed since the last sign of this {step}, by you or {or}")
            }
            Some(step) if stopping.iter().all(is_doubtful) => {
                let or = or.unwrap_or_else(|| format!("the {step}"));
                format!("changed after this {step} was cut off, by you or {or}")
            }
            Some(step) if stopping.iter().all(|one| one.overlapped) => {
                format!("changed while this {step} and others overlapped")
            }
            Some(step) if or.is_some() => {
                let or = or.unwrap_or_default();
                format!("{have} changes since this {step}, by you or {or}")
            }
            Some(step) if are_yours => format!("{have} your changes since this {step}"),
            Some(step) => format!("{have} later changes that are not part of this {step}"),
            None if are_yours => format!("{have} your changes since that point"),
            None => format!("{have} other changes since that point"),
        };
        format!("{files} {what}; nothing was touched")
    }

    fn merges(&self) -> bool {
        self.outcome.on_conflict == OnConflict::Merge
    }

    /// Lists who changed what, and the options that continue.
    pub(super) fn conflicts(&self, width: Option<usize>) -> Vec<String> {
        let mut lines = vec![String::new()];
        lines.extend(self.changed_by_others(width));
        lines.push(String::new());
        let ways = self.ways_on().into_iter().map(|(_, way)| way);
        lines.extend(lists::lines(&ways.collect::<Vec<_>>(), width));
        if !self.merges() {
            lines.extend(self.unmergeable());
        }
        lines
    }

    /// Lists who changed what.
    pub(super) fn changed_by_others(&self, width: Option<usize>) -> Vec<String> {
        let stopping: Vec<&Conflict> = self.outcome.stopping().collect();
        let shown = &stopping[..stopping.len().min(ROWS)];
        let rows: Vec<[String; 3]> = shown.iter().map(|one| columns(one)).collect();
        let mut lines = table(&rows, width.unwrap_or(usize::MAX));
        if stopping.len() > ROWS {
            lines.push(format!("  and {} more", stopping.len() - ROWS));
        }
        if self.merges() {
            lines.extend(shown.iter().flat_map(|one| overlaps(one, width)));
        }
        lines
    }

    /// Names files that could not be merged.
    pub(super) fn unmergeable(&self) -> Vec<String> {
        let stopping: Vec<&Conflict> = self.outcome.stopping().take(ROWS).collect();
        unmergeable(&stopping)
    }

    /// Returns what can be done about conflicts, and what each means.
    pub(super) fn choices(&self) -> Vec<(OnConflict, String)> {
        let ways = self.ways_on().into_iter();
        ways.map(|(on_conflict, way)| (on_conflict, way.words.join(" ")))
            .collect()
    }

    fn ways_on(&self) -> Vec<(OnConflict, Item)> {
        let stopping: Vec<&Conflict> = self.outcome.stopping().collect();
        let verb = self.outcome.verb;
        let back = reverse(verb);
        let (keep, overwrite, theirs) = match stopping.as_slice() {
            [only] => {
                let (your, yours) = match only.changed_by {
                    ChangedBy::Person if only.overlapped || only.or.is_some() => {
                        ("this", "the others")
                    }
                    ChangedBy::Person => ("your", "yours"),
                    ChangedBy::Run => ("its", "its lines"),
                    _ => ("their", "theirs"),
                };
                let mut keep = Item::prose("--keep", &format!("leave as it is, {verb} the rest"));
                keep.words.insert(1, visible_path(&only.path));
                let overwrite = format!("discard {your} version too ({back} restores it)");
                (keep, overwrite, yours)
            }
            _ => {
                let keep = format!("leave these files as they are, {verb} the rest");
                let overwrite = format!("discard these versions too ({back} restores them)");
                let keep = Item::prose("--keep", &keep);
                (keep, overwrite, "everyone else's")
            }
        };
        let merge = match (verb, &self.outcome.step) {
            (Verb::Redo, Some(step)) => {
                format!("restore the {}'s lines, keep {theirs}", step.kind.as_str())
            }
            (_, Some(step)) => format!("remove the {}'s lines, keep {theirs}", step.kind.as_str()),
            _ => format!("remove the agent's lines, keep {theirs}"),
        };
        let mut ways = vec![(OnConflict::Keep, keep)];
        if self.outcome.can_merge {
            ways.push((OnConflict::Merge, Item::prose("--merge", &merge)));
        }
        let overwrite = Item::prose("--overwrite", &overwrite);
        ways.push((OnConflict::Overwrite, overwrite));
        ways
    }
}

/// Returns the program that may have made all of these changes instead of the user, if it is one.
fn one_program(conflicts: &[&Conflict]) -> Option<String> {
    let first = conflicts.first()?.or.as_ref()?;
    let is_same = |one: &&Conflict| one.or.as_ref() == Some(first);
    conflicts.iter().all(is_same).then(|| program_name(first))
}

/// Returns the user, or the user and the program that it may have been instead.
pub(super) fn you_or(conflict: &Conflict) -> String {
    match &conflict.or {
        Some(program) => format!("you or {}", program_name(program)),
        None if conflict.overlapped => "you or the run".to_owned(),
        None => "you".to_owned(),
    }
}

/// Returns who changed a file last, and when.
pub(super) fn changed_by(conflict: &Conflict) -> String {
    let who = match &conflict.changed_by {
        ChangedBy::Session(id) => format!("session {}", short(id)),
        ChangedBy::Run => "a run".to_owned(),
        _ => you_or(conflict),
    };
    let when = match conflict.unsaved {
        true => "since the last checkpoint".to_owned(),
        false => when::brief(conflict.at),
    };
    format!("{who}, {when}")
}

/// Returns the path, who changed it last, and who else did.
fn columns(conflict: &Conflict) -> [String; 3] {
    let also = conflict.also.as_ref().map_or_else(String::new, |also| {
        let also = shortened(&visible(also), 60);
        match (&conflict.changed_by, conflict.overlapped) {
            (ChangedBy::Person, true) => format!("after {also} was cut off"),
            (_, true) => format!("overlapped with {also}"),
            (_, false) => format!("also changed by {also}"),
        }
    });
    [visible_path(&conflict.path), changed_by(conflict), also]
}

/// Writes rows in columns. If they are too wide, what is after the path goes below it.
fn table(rows: &[[String; 3]], width: usize) -> Vec<String> {
    let mut table = Table::new(vec![Column::text(""); 3]);
    for row in rows {
        table.push(row.each_ref().map(|text| Cell::from(text.as_str())));
    }
    if table.width() + 2 <= width {
        let lines = table.lines(None);
        return lines
            .iter()
            .map(|line| format!("  {}", styled(line)))
            .collect();
    }
    let mut lines = Vec::new();
    for [name, by, also] in rows {
        lines.extend([format!("  {name}"), format!("      {by}")]);
        if !also.is_empty() {
            let also = shortened(also, width.saturating_sub(6));
            lines.push(format!("      {also}"));
        }
    }
    lines
}

/// Names files that could not be merged, with the reason and the lines.
fn unmergeable(conflicts: &[&Conflict]) -> Vec<String> {
    let mut lines = Vec::new();
    let unmerged = conflicts
        .iter()
        .filter_map(|one| Some((one, one.unmerged()?)));
    for (conflict, unmerged) in unmerged.take(PLACES) {
        let path = visible_path(&conflict.path);
        let numbers = unmerged
            .overlaps
            .iter()
            .map(|overlap| overlap.line.to_string());
        let numbers: Vec<String> = numbers.take(PLACES).collect();
        let at = match numbers.len() {
            0 => String::new(),
            1 => format!(" (line {})", numbers[0]),
            _ => format!(" (lines {})", numbers.join(", ")),
        };
        lines.push(format!("  {path}: {}{at}", unmerged.reason));
    }
    match lines.is_empty() {
        true => lines,
        false => [
            vec![String::new(), "  --merge is not possible:".to_owned()],
            lines,
        ]
        .concat(),
    }
}

/// Shows the reason why a file could not be merged, with the lines.
fn overlaps(conflict: &Conflict, width: Option<usize>) -> Vec<String> {
    let Some(unmerged) = conflict.unmerged() else {
        return Vec::new();
    };
    let width = width.unwrap_or(usize::MAX);
    let path = visible_path(&conflict.path);
    let mut lines = vec![String::new(), format!("  {path}: {}", unmerged.reason)];
    for overlap in unmerged.overlaps.iter().take(PLACES) {
        lines.extend(overlap_lines(overlap, width));
    }
    if let Some(more) = unmerged.overlaps.len().checked_sub(PLACES)
        && more > 0
    {
        lines.push(format!("    and {} more", count(more, "place")));
    }
    lines
}

/// Shows one overlap: the lines now, as the work to undo left them, and as they were.
fn overlap_lines(overlap: &Overlap, width: usize) -> Vec<String> {
    let by = overlap.by.as_deref().map_or_else(String::new, |by| {
        let width = width.saturating_sub(30).clamp(20, 60);
        format!(", changed by {}", shortened(&visible(by), width))
    });
    let mut lines = vec![format!("    line {}{by}:", overlap.line)];
    for (label, bytes) in [
        ("now   ", &overlap.now),
        ("after ", &overlap.left),
        ("before", &overlap.was),
    ] {
        let text = String::from_utf8_lossy(bytes);
        let all: Vec<&str> = text.lines().collect();
        let mut label = label.to_owned();
        let mut push = |text: &str| {
            let line = format!("      {label}  {text}");
            lines.push(line.trim_end().to_owned());
            label = "      ".to_owned();
        };
        if all.is_empty() {
            push("(nothing)");
        }
        for line in all.iter().take(LINES) {
            push(&cut(line, width.saturating_sub(14)));
        }
        if all.len() > LINES {
            push(&format!(
                "and {} more",
                count((all.len() - LINES) as u64, "line")
            ));
        }
    }
    lines
}

/// Cuts a line of a file at the width of the terminal; its indentation stays.
fn cut(line: &str, width: usize) -> String {
    let shown = visible(line).replace('\t', "    ");
    let text = shown.trim_start();
    let indent = shown[..shown.len() - text.len()].to_owned();
    match shown.width() <= width {
        true => shown,
        false => {
            let indent: String = indent.chars().take(width / 2).collect();
            let width = width.saturating_sub(indent.width());
            format!("{indent}{}", one_line(text, width))
        }
    }
}

#[cfg(test)]
#[path = "conflict_text_tests.rs"]
mod tests;
