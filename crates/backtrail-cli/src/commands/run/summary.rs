//! The summary of a run, in at most four lines.

use std::path::Path;
use std::time::Duration;

use backtrail::Checkpoint;
use backtrail::snapshot::{ChangeCounts, Diff, SkippedEntry};
use backtrail::workspace::{SkippedFiles, UnprotectedChanges};
use unicode_width::UnicodeWidthStr;

use super::git_moved::GitMoved;
use super::messages::Suggestions;
use crate::commands::checkpoint::{describe_skipped, skipped_path};
use crate::home::tilde;
use crate::layout::DIM;
use crate::text::{count, grouped, one_line, plural, some_of};
use crate::when;

/// At most this many skipped entries are named.
const NAMED: usize = 3;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Summary {
    /// The workspace, from `~` if it is in the home directory.
    pub(super) place: String,
    pub(super) changes: ChangeCounts,
    pub(super) skipped: SkippedFiles,
    /// What was protected before the command and no longer is.
    pub(super) lost: Vec<SkippedEntry>,
    /// What happened to what is not protected.
    pub(super) unprotected: UnprotectedChanges,
    pub(super) took: Duration,
    /// How git's HEAD moved, if it did.
    pub(super) git: Option<GitMoved>,
}

impl Summary {
    pub(super) fn new(root: &Path, changes: &Diff, end: &Checkpoint, took: Duration) -> Self {
        Self {
            place: tilde(root),
            changes: changes.counts(),
            skipped: end.skipped().clone(),
            lost: changes.no_longer_captured().to_vec(),
            unprotected: end.unprotected().clone(),
            took,
            git: None,
        }
    }

    fn parts(&self) -> [(u64, &'static str); 6] {
        let ChangeCounts {
            edited,
            new,
            deleted,
            renamed,
            modes,
            ..
        } = self.changes;
        let mode = plural(modes, "mode change", "mode changes");
        [
            (edited, "edited"),
            (new, "new"),
            (deleted, "deleted"),
            (renamed, "renamed"),
            (modes, mode),
            (self.unprotected.count, "unprotected lost"),
        ]
    }

    /// Returns how many protected files changed.
    fn total(&self) -> u64 {
        let all: u64 = self.parts().iter().map(|(n, _)| n).sum();
        all - self.unprotected.count
    }

    /// Returns lines of at most `width` columns, dim except for their numbers.
    pub(super) fn lines(&self, suggest: &Suggestions<'_>, width: Option<usize>) -> Vec<String> {
        let width = width.unwrap_or(usize::MAX);
        let mut lines = vec![self.headline(width)];
        lines.extend(self.git.iter().flat_map(|git| git_lines(git, width)));
        let lost = self.lost.len() as u64;
        let lost = self.name("no longer protected", lost, &self.lost, width);
        if self.total() > 0 {
            let skipped = self.name(
                "not protected",
                self.skipped.count,
                &self.skipped.first,
                width,
            );
            let next = next_commands(suggest, width);
            // Four lines are enough; what lost its protection matters more.
            let room = lost.is_none() || next.len() == 1;
            lines.extend(lost);
            lines.extend(skipped.filter(|_| room));
            lines.extend(next);
        } else {
            lines.extend(lost);
        }
        lines.iter().map(|line| dim_but_numbers(line)).collect()
    }

    /// Returns what changed, shorter where it does not fit.
    fn headline(&self, width: usize) -> String {
        let took = when::duration(self.took);
        let place = one_line(&self.place, 200);
        let (what, parts) = match self.total() {
            0 if self.unprotected.count > 0 => {
                let lost = count(self.unprotected.count, "unprotected path");
                (format!("{lost} lost, no other changes"), String::new())
            }
            0 if !self.lost.is_empty() => {
                let lost = count(self.lost.len() as u64, "path");
                let what = format!("{lost} no longer protected, no other changes");
                (what, String::new())
            }
            0 => ("no changes".to_owned(), self.silence()),
            n => {
                let parts = self.parts().into_iter().filter(|(n, _)| *n > 0);
                let parts = parts.map(|(n, what)| format!("{} {what}", grouped(n)));
                let parts = parts.collect::<Vec<_>>().join(", ");
                (format!("{} changed", count(n, "file")), parts)
            }
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
        match (self.skipped.count, self.skipped.first.as_slice()) {
            (0, _) => String::new(),
            (1, [only]) if self.has_changed(only) => {
                format!(
                    "not protected: {}, changed",
                    one_line(&skipped_path(only), 40)
                )
            }
            (1, [only]) => format!("not protected: {}", one_line(&skipped_path(only), 40)),
            (n, _) => match self.unprotected.changed.len() {
                0 => format!("{} not protected", count(n, "entry")),
                changed => format!("{} not protected, {changed} changed", count(n, "entry")),
            },
        }
    }

    /// Returns whether something that is not protected changed.
    fn has_changed(&self, entry: &SkippedEntry) -> bool {
        let mut changed = self.unprotected.changed.iter();
        changed.any(|changed| changed.path == entry.path)
    }

    /// Names as many entries as fit; `None` if there are none.
    fn name(&self, what: &str, all: u64, first: &[SkippedEntry], width: usize) -> Option<String> {
        if all == 0 {
            return None;
        }
        let describe = |entry: &SkippedEntry| {
            let text = describe_skipped(entry);
            match (self.has_changed(entry), text.strip_suffix(')')) {
                (true, Some(text)) => format!("{text}, changed)"),
                _ => text,
            }
        };
        let most = first.len().min(NAMED);
        let lines = (1..=most).rev().map(|most| {
            let names = some_of(first.iter().map(describe), most, all as usize);
            format!("  {what}: {names}")
        });
        let short = format!("  {what}: {}", count(all, "entry"));
        let mut lines = lines.chain([short.clone()]);
        let fitting = lines.find(|line| line.width() <= width);
        Some(fitting.unwrap_or_else(|| format!("  {}", one_line(&short, width.saturating_sub(2)))))
    }
}

/// Says how git's HEAD moved and how to go back. The command is never cut.
fn git_lines(git: &GitMoved, width: usize) -> Vec<String> {
    let (text, back) = (git.text(), &git.back);
    let one = format!("  git: {text}; to go back: {back}");
    if one.width() <= width {
        return vec![one];
    }
    let text = one_line(&text, width.saturating_sub(7));
    vec![format!("  git: {text}"), format!("  to go back: {back}")]
}

/// Suggests the next commands: on one line, or on two where one is too narrow. They are never
/// cut: half a command is useless.
fn next_commands(suggest: &Suggestions<'_>, width: usize) -> Vec<String> {
    let (look, undo) = (suggest.verb("diff"), suggest.verb("undo"));
    let one = format!("  diff: {look}      undo: {undo}");
    if one.width() <= width {
        return vec![one];
    }
    vec![format!("  diff: {look}"), format!("  undo: {undo}")]
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
    let took = when::duration(took);
    dim_but_numbers(&format!(
        "backtrail: changes unknown (no checkpoint before the command), {took}"
    ))
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
