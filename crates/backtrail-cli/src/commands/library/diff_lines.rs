//! The difference of a file as lines with numbers.

use backtrail::Change;
use backtrail::snapshot::{Diff, TextDiff};
use backtrail_view::library::{DiffKind, DiffLine, FileDiff};

use super::plain;
use crate::commands::diff::CONTEXT;
use crate::commands::diff::stat::sizes;
use crate::text::{count, visible};

/// What is said of a last line that is not ended.
const NO_NEWLINE: &str = "  (no newline at the end)";

/// How many lines are shown.
const MOST: usize = 50_000;

/// Returns the difference of a file between two snapshots.
pub(super) fn of_change(diff: &Diff, change: &Change) -> backtrail::Result<FileDiff> {
    let mut file = FileDiff {
        path: change.path.to_string_lossy().into_owned(),
        ..FileDiff::default()
    };
    match diff.text(change, CONTEXT)? {
        TextDiff::Binary { before, after, .. } => {
            file.note = Some(format!("binary: {}", sizes(before, after)));
        }
        TextDiff::TooLarge { before, after, .. } => {
            let sizes = sizes(before, after);
            file.note = Some(format!("too large to compare: {sizes}"));
        }
        text => {
            file.lines = Hunks::read(text.unified());
            if file.lines.is_empty() {
                file.note = Some(visible(&change.to_string()).into_owned());
            }
        }
    }
    bound(&mut file);
    Ok(file)
}

/// Drops the lines that are too many, and says so.
pub(super) fn bound(file: &mut FileDiff) {
    let all = file.lines.len();
    if all > MOST {
        file.lines.truncate(MOST);
        file.note = Some(format!("{} more are not shown", count(all - MOST, "line")));
    }
}

/// Lines that replace others, between lines that stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The number of the first line before, or of the one that it comes in front of.
    pub(super) old_at: u64,
    /// The same after.
    pub(super) new_at: u64,
    /// The lines before.
    pub(super) old: Vec<String>,
    /// The lines after.
    pub(super) new: Vec<String>,
}

/// Returns the pieces of each hunk of a unified diff, with their lines as they are.
pub(super) fn pieces(unified: &[u8]) -> Vec<Vec<Piece>> {
    let mut hunks = Hunks::new(ToOwned::to_owned);
    let mut all: Vec<Vec<Piece>> = Vec::new();
    let mut is_open = false;
    for line in lines_of(unified) {
        let (old_at, new_at) = (hunks.old, hunks.new);
        let before = hunks.lines.len();
        hunks.add(&line);
        let (Some(line), last) = (hunks.lines.get(before), all.last_mut()) else {
            continue;
        };
        match (line.kind, last) {
            (DiffKind::Hunk, _) => all.push(Vec::new()),
            (DiffKind::Removed | DiffKind::Added, Some(hunk)) => {
                if !is_open {
                    hunk.push(Piece {
                        old_at,
                        new_at,
                        old: Vec::new(),
                        new: Vec::new(),
                    });
                }
                let Some(piece) = hunk.last_mut() else {
                    continue;
                };
                match line.kind {
                    DiffKind::Removed => piece.old.push(line.text.clone()),
                    _ => piece.new.push(line.text.clone()),
                }
            }
            _ => {}
        }
        is_open = matches!(line.kind, DiffKind::Removed | DiffKind::Added);
    }
    all
}

/// Returns the lines of a diff, without their ends.
fn lines_of(unified: &[u8]) -> impl Iterator<Item = String> {
    let lines = unified.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        String::from_utf8_lossy(line).into_owned()
    })
}

/// Reads the hunks of a unified diff.
struct Hunks {
    lines: Vec<DiffLine>,
    /// Makes the text of a line.
    shown: fn(&str) -> String,
    /// The next line before and after.
    old: u64,
    new: u64,
    /// How many lines of the hunk are left before and after.
    old_left: u64,
    new_left: u64,
}

impl Hunks {
    fn new(shown: fn(&str) -> String) -> Self {
        Self {
            lines: Vec::new(),
            shown,
            old: 0,
            new: 0,
            old_left: 0,
            new_left: 0,
        }
    }

    fn read(unified: &[u8]) -> Vec<DiffLine> {
        let mut hunks = Self::new(ToOwned::to_owned);
        for line in lines_of(unified) {
            hunks.add(&line);
            if line.starts_with('\\')
                && let Some(last) = hunks.lines.last_mut()
            {
                last.text.push_str(NO_NEWLINE);
            }
        }
        hunks.hide_line_ends();
        for line in &mut hunks.lines {
            line.text = plain(&line.text);
        }
        hunks.lines
    }

    /// Drops the carriage returns of a file that has them everywhere; elsewhere they are a
    /// difference.
    fn hide_line_ends(&mut self) {
        let has_one = |line: &DiffLine| line.kind == DiffKind::Hunk || line.text.ends_with('\r');
        if self.lines.iter().all(has_one) {
            for line in &mut self.lines {
                line.text.truncate(line.text.trim_end_matches('\r').len());
            }
        }
    }

    fn add(&mut self, line: &str) {
        let is_in_hunk = self.old_left > 0 || self.new_left > 0;
        let (sign, text) = line.split_at_checked(1).unwrap_or_default();
        match sign {
            "@" if !is_in_hunk => self.begin(line),
            " " if is_in_hunk => {
                let numbers = (Some(self.next_old()), Some(self.next_new()));
                self.push(DiffKind::Same, numbers, text);
            }
            "-" if is_in_hunk => {
                let numbers = (Some(self.next_old()), None);
                self.push(DiffKind::Removed, numbers, text);
            }
            "+" if is_in_hunk => {
                let numbers = (None, Some(self.next_new()));
                self.push(DiffKind::Added, numbers, text);
            }
            // Names and modes, or that there is no newline at the end.
            _ => {}
        }
    }

    /// Begins a hunk: `@@ -3,7 +3,8 @@`.
    fn begin(&mut self, line: &str) {
        let mut words = line.split(' ').skip(1);
        let mut range = |sign: char| {
            let word = words.next()?.strip_prefix(sign)?;
            let (first, many) = word.split_once(',').unwrap_or((word, "1"));
            let (first, many): (u64, u64) = (first.parse().ok()?, many.parse().ok()?);
            // An empty range is given by the line before it.
            Some((first + u64::from(many == 0), many))
        };
        let (Some(old), Some(new)) = (range('-'), range('+')) else {
            return;
        };
        (self.old, self.old_left) = old;
        (self.new, self.new_left) = new;
        self.push(DiffKind::Hunk, (None, None), line);
    }

    fn next_old(&mut self) -> u64 {
        self.old += 1;
        self.old_left = self.old_left.saturating_sub(1);
        self.old - 1
    }

    fn next_new(&mut self) -> u64 {
        self.new += 1;
        self.new_left = self.new_left.saturating_sub(1);
        self.new - 1
    }

    fn push(&mut self, kind: DiffKind, (old, new): (Option<u64>, Option<u64>), text: &str) {
        self.lines.push(DiffLine {
            kind,
            old,
            new,
            text: (self.shown)(text),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_lines_are_a_difference_unless_all_are_the_same() {
        let texts = |unified: &str| {
            let lines = Hunks::read(unified.as_bytes()).into_iter().skip(1);
            lines.map(|line| line.text).collect::<Vec<_>>()
        };
        assert_eq!(texts("@@ -1 +1 @@\n-one\r\n+two\r\n"), ["one", "two"]);
        assert_eq!(texts("@@ -1 +1 @@\n-one\n+one\r\n"), ["one", "one^M"]);
        let no_end = "@@ -1 +1 @@\n-one\n+one\n\\ No newline at end of file\n";
        assert_eq!(texts(no_end), ["one", "one  (no newline at the end)"]);
    }

    fn read(unified: &str) -> Vec<String> {
        let shown = |line: &DiffLine| {
            let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
            format!(
                "{:?} {} {} {}",
                line.kind,
                number(line.old),
                number(line.new),
                line.text
            )
        };
        Hunks::read(unified.as_bytes()).iter().map(shown).collect()
    }

    #[test]
    fn lines_have_the_numbers_of_both_sides() {
        let unified = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -3,3 +3,4 @@\n a\n-b\n+c\n+d\n e\n\
                       @@ -20 +21,0 @@\n-z\n\\ No newline at end of file\n";
        assert_eq!(
            read(unified),
            [
                "Hunk - - @@ -3,3 +3,4 @@",
                "Same 3 3 a",
                "Removed 4 - b",
                "Added - 4 c",
                "Added - 5 d",
                "Same 5 6 e",
                "Hunk - - @@ -20 +21,0 @@",
                "Removed 20 - z  (no newline at the end)",
            ]
        );
    }

    #[test]
    fn lines_that_look_like_headers_stay_lines_and_escapes_are_visible() {
        let unified = "@@ -1,2 +1,2 @@\n--- a/x\n+@@ -1 +1 @@\n \u{1b}[31m\tx\r\n";
        assert_eq!(
            read(unified),
            [
                "Hunk - - @@ -1,2 +1,2 @@",
                "Removed 1 - -- a/x",
                "Added - 1 @@ -1 +1 @@",
                "Same 2 2 ^[[31m    x^M",
            ]
        );
    }
}
