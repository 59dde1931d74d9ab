//! Changes in their colours: what an edit replaced, and patches.

use imara_diff::{Algorithm, Diff, InternedInput};

use super::markup::Html;

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

/// Compares line by line.
fn compare<'t>(old: &'t str, new: &'t str) -> Vec<(Change, &'t str)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let mut lines = Vec::new();
    let mut add = |change: Change, some: &[&'t str]| {
        lines.extend(some.iter().map(|line| (change, *line)));
    };
    let mut at = 0;
    for hunk in diff.hunks() {
        let [from, to] = [hunk.after.start, hunk.after.end].map(|n| n as usize);
        add(Change::Kept, &new[at..from]);
        add(
            Change::Removed,
            &old[hunk.before.start as usize..hunk.before.end as usize],
        );
        add(Change::Added, &new[from..to]);
        at = to;
    }
    add(Change::Kept, &new[at..]);
    lines
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
        assert_eq!(count_change("a\na\na", "a"), (0, 2));
        assert_eq!(count_change("a\nb", "b\nc"), (1, 1));
    }

    #[test]
    fn a_patch_is_recognised() {
        assert!(is_diff("x\n--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b"));
        assert!(is_diff("*** Begin Patch\n*** Update File: a\n"));
        assert!(!is_diff("- a list\n+ of things\n@@ -1\n"));
        assert_eq!(count_patch("--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n+c"), (2, 1));
    }

    #[test]
    fn long_texts_are_compared_too() {
        let (old, new) = ("a\n".repeat(3000), "b\n".repeat(3000));
        assert_eq!(count_change(&old, &new), (3000, 3000));
    }
}
