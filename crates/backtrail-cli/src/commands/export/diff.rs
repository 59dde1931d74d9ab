//! Changes in their colours: what an edit replaced, and patches.

use super::markup::Html;

/// More lines than this are not compared one by one.
const MOST_CELLS: usize = 250_000;

/// How a line changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Kept,
    Removed,
    Added,
}

/// Returns whether a text is a patch, or has one in it.
pub(super) fn is_diff(text: &str) -> bool {
    let mut before = "";
    for line in text.lines().take(400) {
        let is_hunk = line.starts_with("@@ -") && before.starts_with("+++ ");
        if is_hunk || line.starts_with("diff --git ") || line.starts_with("*** Begin Patch") {
            return true;
        }
        before = line;
    }
    false
}

/// Writes a patch.
pub(super) fn write_patch(out: &mut Html, text: &str) {
    out.raw("<pre class=\"diff\">");
    for line in text.lines() {
        let is_file = ["diff --git ", "--- ", "+++ ", "*** ", "index "];
        let markup = match line.as_bytes().first() {
            _ if is_file.iter().any(|begin| line.starts_with(begin)) => "<span class=\"file\">",
            Some(b'@') => "<span class=\"hunk\">",
            Some(b'+') => "<span class=\"add\">",
            Some(b'-') => "<span class=\"del\">",
            _ => "<span>",
        };
        // An empty line takes its room, too.
        let line = if line.is_empty() { " " } else { line };
        out.line(markup, "", line);
    }
    out.raw("</pre>");
}

/// Writes what became of a text.
pub(super) fn write_change(out: &mut Html, old: &str, new: &str) {
    out.raw("<pre class=\"diff\">");
    for (change, line) in compare(old, new) {
        match change {
            Change::Kept => out.line("<span>", "  ", line),
            Change::Removed => out.line("<span class=\"del\">", "- ", line),
            Change::Added => out.line("<span class=\"add\">", "+ ", line),
        }
    }
    out.raw("</pre>");
}

/// Counts the lines that were added and removed.
pub(super) fn count_change(old: &str, new: &str) -> (u64, u64) {
    let lines = compare(old, new);
    let count = |kind| lines.iter().filter(|(change, _)| *change == kind).count() as u64;
    (count(Change::Added), count(Change::Removed))
}

/// Counts the lines that a patch adds and removes.
pub(super) fn count_patch(text: &str) -> (u64, u64) {
    let is =
        |line: &&str, sign: char, head: &str| line.starts_with(sign) && !line.starts_with(head);
    let added = text.lines().filter(|line| is(line, '+', "+++ ")).count();
    let removed = text.lines().filter(|line| is(line, '-', "--- ")).count();
    (added as u64, removed as u64)
}

/// Compares line by line: what is the same at both ends, and between that the longest
/// common sequence where it is cheap to find.
fn compare<'t>(old: &'t str, new: &'t str) -> Vec<(Change, &'t str)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(same)
        .count();
    let (old_middle, new_middle) = (
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
    );
    let kept = |line: &&'t str| (Change::Kept, *line);
    let mut lines: Vec<_> = old[..head].iter().map(kept).collect();
    middle(old_middle, new_middle, &mut lines);
    lines.extend(old[old.len() - tail..].iter().map(kept));
    lines
}

fn middle<'t>(old: &[&'t str], new: &[&'t str], lines: &mut Vec<(Change, &'t str)>) {
    let (n, m) = (old.len(), new.len());
    let (mut i, mut j) = (0, 0);
    if n.saturating_mul(m) <= MOST_CELLS {
        // How long the longest common sequence is of what follows i and j.
        let at = |i: usize, j: usize| i * (m + 1) + j;
        let mut common = vec![0u32; (n + 1) * (m + 1)];
        for i in (0..n).rev() {
            for j in (0..m).rev() {
                common[at(i, j)] = match old[i] == new[j] {
                    true => common[at(i + 1, j + 1)] + 1,
                    false => common[at(i + 1, j)].max(common[at(i, j + 1)]),
                };
            }
        }
        while i < n && j < m {
            if old[i] == new[j] {
                lines.push((Change::Kept, old[i]));
                (i, j) = (i + 1, j + 1);
            } else if common[at(i + 1, j)] >= common[at(i, j + 1)] {
                lines.push((Change::Removed, old[i]));
                i += 1;
            } else {
                lines.push((Change::Added, new[j]));
                j += 1;
            }
        }
    }
    lines.extend(old[i..].iter().map(|line| (Change::Removed, *line)));
    lines.extend(new[j..].iter().map(|line| (Change::Added, *line)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_the_lines_that_changed() {
        let shown = |old, new| {
            let line = |(change, line): &(Change, &str)| match change {
                Change::Kept => format!(" {line}"),
                Change::Removed => format!("-{line}"),
                Change::Added => format!("+{line}"),
            };
            compare(old, new)
                .iter()
                .map(line)
                .collect::<Vec<_>>()
                .join("|")
        };
        assert_eq!(shown("a\nb\nc\nd", "a\nx\nc\ny\nd"), " a|-b|+x| c|+y| d");
        assert_eq!(shown("", "a"), "+a");
        assert_eq!(shown("a\na\na", "a"), " a|-a|-a");
        assert_eq!(count_change("a\nb", "b\nc"), (1, 1));
    }

    #[test]
    fn a_patch_is_told_from_other_text() {
        assert!(is_diff("x\n--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b"));
        assert!(is_diff("*** Begin Patch\n*** Update File: a\n"));
        assert!(!is_diff("- a list\n+ of things\n@@ -1\n"));
        assert_eq!(count_patch("--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n+c"), (2, 1));
    }

    #[test]
    fn what_is_too_long_to_compare_is_still_shown() {
        let (old, new) = ("a\n".repeat(3000), "b\n".repeat(3000));
        assert_eq!(count_change(&old, &new), (3000, 3000));
    }
}
