//! The summary of a run, in at most four lines.

use std::path::Path;
use std::time::Duration;

use backtrail::Checkpoint;
use backtrail::snapshot::{Diff, FileKind, SkippedEntry, SkippedReason};
use unicode_width::UnicodeWidthStr;

use super::messages::Suggestions;
use crate::home::tilde;
use crate::text::{grouped, one_line, size, visible_path};
use crate::ui::DIM;

/// At most this many skipped entries are named.
const NAMED: usize = 3;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    /// The workspace, from `~` if it is in the home directory.
    pub(super) place: String,
    pub(super) changes: Changes,
    pub(super) skipped: SkippedPaths,
    /// What was protected before the command and no longer is.
    pub(super) lost: Vec<Entry>,
    pub(super) took: Duration,
}

/// How many files changed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Changes {
    pub(super) edited: u64,
    pub(super) added: u64,
    pub(super) deleted: u64,
    pub(super) renamed: u64,
    /// Only their permissions.
    pub(super) mode: u64,
}

/// What the checkpoint skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SkippedPaths {
    pub(super) count: u64,
    /// A few of them, the most important first.
    pub(super) first: Vec<Entry>,
}

/// A skipped file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative to the workspace; a directory ends in `/`.
    pub(super) path: String,
    pub(super) reason: SkippedReason,
    pub(super) bytes: u64,
}

impl Changes {
    fn total(self) -> u64 {
        self.edited + self.added + self.deleted + self.renamed + self.mode
    }

    /// Returns the parts of the total: `9 edited, 4 new, 1 deleted`.
    fn parts(self) -> String {
        let parts = [
            (self.edited, "edited"),
            (self.added, "new"),
            (self.deleted, "deleted"),
            (self.renamed, "renamed"),
            (
                self.mode,
                if self.mode == 1 {
                    "mode change"
                } else {
                    "mode changes"
                },
            ),
        ];
        let parts = parts.into_iter().filter(|(n, _)| *n > 0);
        let parts: Vec<String> = parts
            .map(|(n, what)| format!("{} {what}", grouped(n)))
            .collect();
        parts.join(", ")
    }
}

impl Summary {
    pub(super) fn new(root: &Path, changes: &Diff, end: &Checkpoint, took: Duration) -> Self {
        let counts = changes.counts();
        let skipped = end.skipped();
        Self {
            place: tilde(root),
            changes: Changes {
                edited: counts.edited,
                added: counts.new,
                deleted: counts.deleted,
                renamed: counts.renamed,
                mode: counts.modes,
            },
            skipped: SkippedPaths {
                count: skipped.count,
                first: skipped.first.iter().map(Entry::from).collect(),
            },
            lost: changes
                .no_longer_captured()
                .iter()
                .map(Entry::from)
                .collect(),
            took,
        }
    }

    /// Returns lines of at most `width` columns, dim except for their numbers.
    pub(super) fn lines(&self, suggest: &Suggestions<'_>, width: Option<usize>) -> Vec<String> {
        let width = width.unwrap_or(usize::MAX);
        let mut lines = vec![self.headline(width)];
        let lost = name(
            "no longer protected",
            self.lost.len() as u64,
            &self.lost,
            width,
        );
        if self.changes.total() > 0 {
            let next = next_commands(suggest, width);
            // Four lines are enough; what lost its protection matters more.
            let room = lost.is_none() || next.len() == 1;
            lines.extend(lost);
            lines.extend(self.skipped(width).filter(|_| room));
            lines.extend(next);
        } else {
            lines.extend(lost);
        }
        lines.iter().map(|line| dim_but_numbers(line)).collect()
    }

    /// Returns what changed, shorter where it does not fit.
    fn headline(&self, width: usize) -> String {
        let took = duration(self.took);
        let total = self.changes.total();
        let place = one_line(&self.place, 200);
        let (what, parts) = match total {
            0 => ("no changes".to_owned(), self.silence()),
            1 => ("1 file changed".to_owned(), self.changes.parts()),
            n => (
                format!("{} files changed", grouped(n)),
                self.changes.parts(),
            ),
        };
        let parts = match parts.as_str() {
            "" => String::new(),
            parts => format!(" ({parts})"),
        };
        let candidates = [
            format!("backtrail: {what} in {place}{parts}, {took}"),
            format!("backtrail: {what} in {}{parts}, {took}", last_part(&place)),
            format!("backtrail: {what}{parts}, {took}"),
            format!("backtrail: {what}, {took}"),
        ];
        let fitting = candidates.iter().find(|line| line.width() <= width);
        fitting.map_or_else(|| one_line(&candidates[3], width), String::clone)
    }

    /// Returns what "no changes" does not cover.
    fn silence(&self) -> String {
        let SkippedPaths { count, first } = &self.skipped;
        match (count, first.as_slice()) {
            (0, _) => String::new(),
            (1, [only]) => format!("not protected: {}", one_line(&only.path, 40)),
            (n, _) => format!("{} not protected", entries(*n)),
        }
    }

    fn skipped(&self, width: usize) -> Option<String> {
        let SkippedPaths { count, first } = &self.skipped;
        name("not protected", *count, first, width)
    }
}

/// Names as many entries as fit; `None` if there are none.
fn name(what: &str, count: u64, first: &[Entry], width: usize) -> Option<String> {
    if count == 0 {
        return None;
    }
    let names: Vec<String> = first.iter().take(NAMED).map(Entry::describe).collect();
    let lines = (1..=names.len()).rev().map(|named| {
        let more = match count.saturating_sub(named as u64) {
            0 => String::new(),
            more => format!(" and {} more", grouped(more)),
        };
        format!("  {what}: {}{more}", names[..named].join(", "))
    });
    let short = format!("  {what}: {}", entries(count));
    let mut lines = lines.chain([short.clone()]);
    let fitting = lines.find(|line| line.width() <= width);
    Some(fitting.unwrap_or_else(|| format!("  {}", one_line(&short, width.saturating_sub(2)))))
}

impl From<&SkippedEntry> for Entry {
    fn from(entry: &SkippedEntry) -> Self {
        let slash = if entry.kind == FileKind::Dir { "/" } else { "" };
        Self {
            path: format!("{}{slash}", visible_path(&entry.path)),
            reason: entry.reason,
            bytes: entry.bytes,
        }
    }
}

impl Entry {
    fn describe(&self) -> String {
        let path = one_line(&self.path, 60);
        match self.reason {
            SkippedReason::TooLarge => format!("{path} ({}, {})", size(self.bytes), self.reason),
            reason => format!("{path} ({reason})"),
        }
    }
}

/// Returns a count of entries.
fn entries(n: u64) -> String {
    match n {
        1 => "1 entry".to_owned(),
        n => format!("{} entries", grouped(n)),
    }
}

/// Suggests the next commands: on one line, or on two where one is too narrow. They are never
/// cut: half a command is useless.
fn next_commands(suggest: &Suggestions<'_>, width: usize) -> Vec<String> {
    let (look, undo) = (suggest.verb("diff"), suggest.verb("undo"));
    let one = format!("  look: {look}      undo: {undo}");
    if one.width() <= width {
        return vec![one];
    }
    vec![format!("  look: {look}"), format!("  undo: {undo}")]
}

/// Returns the last component of a path, after an ellipsis.
fn last_part(place: &str) -> String {
    match place.rsplit_once('/') {
        Some((before, name)) if !before.is_empty() && !name.is_empty() => format!("…/{name}"),
        _ => place.to_owned(),
    }
}

/// Returns the summary of a command that ran without a checkpoint.
pub(super) fn unprotected(took: Duration) -> String {
    let took = duration(took);
    dim_but_numbers(&format!(
        "backtrail: changes unknown (no checkpoint before the command), {took}"
    ))
}

/// Returns a duration for people: `0.4 s`, `31 s`, `2 min 31 s`, `3 h 5 min`.
pub(super) fn duration(took: Duration) -> String {
    let tenths = (took.as_millis() + 50) / 100;
    if tenths < 100 {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = (took.as_millis() + 500) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Dims a line except for its numbers; digits within a name are not numbers.
fn dim_but_numbers(line: &str) -> String {
    let mut out = DIM.render().to_string();
    for word in line.split_inclusive(' ') {
        let number = word.trim_start_matches('(').trim_end_matches([' ', ',']);
        let is_number = number.starts_with(|c: char| c.is_ascii_digit())
            && number
                .chars()
                .all(|c| c.is_ascii_digit() || c == ',' || c == '.');
        match word.split_once(number).filter(|_| is_number) {
            Some((before, after)) => {
                out += &format!("{before}{DIM:#}{number}{DIM}{after}");
            }
            None => out.push_str(word),
        }
    }
    out + &DIM.render_reset().to_string()
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
