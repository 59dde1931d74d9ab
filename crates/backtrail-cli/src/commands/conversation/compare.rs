//! What became of a text, line by line.

use backtrail::conversation::LineChange;
use imara_diff::{Algorithm, Diff, InternedInput};

/// Compares line by line.
pub(in crate::commands) fn changed_lines(old: &str, new: &str) -> Vec<(LineChange, String)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let mut lines = Vec::new();
    let mut add = |change: LineChange, some: &[&str]| {
        lines.extend(some.iter().map(|line| (change, (*line).to_owned())));
    };
    let mut at = 0;
    for hunk in diff.hunks() {
        let [from, to] = [hunk.after.start, hunk.after.end].map(|n| n as usize);
        add(LineChange::Kept, &new[at..from]);
        let removed = hunk.before.start as usize..hunk.before.end as usize;
        add(LineChange::Removed, &old[removed]);
        add(LineChange::Added, &new[from..to]);
        at = to;
    }
    add(LineChange::Kept, &new[at..]);
    lines
}

/// Counts the lines that were added and removed.
pub(in crate::commands) fn count_lines(lines: &[(LineChange, String)]) -> (u64, u64) {
    let count = |kind| lines.iter().filter(|(change, _)| *change == kind).count() as u64;
    (count(LineChange::Added), count(LineChange::Removed))
}

/// Returns the sign before a line.
pub(in crate::commands) fn sign(change: LineChange) -> &'static str {
    match change {
        LineChange::Removed => "-",
        LineChange::Added => "+",
        LineChange::Kept => " ",
        LineChange::Hunk => "",
    }
}

/// Leaves only the lines near a change, and at most so many; returns how many are left out at
/// the end.
pub(in crate::commands) fn shortened(
    lines: &[(LineChange, String)],
    most: usize,
) -> (Vec<&(LineChange, String)>, usize) {
    const NEAR: usize = 1;
    let is_change = |n: usize| {
        let line = lines.get(n);
        line.is_some_and(|(change, _)| matches!(change, LineChange::Added | LineChange::Removed))
    };
    let is_near = |n: usize| (n.saturating_sub(NEAR)..=n + NEAR).any(is_change);
    let near = lines.iter().enumerate().filter(|(n, _)| is_near(*n));
    let mut near: Vec<_> = near.map(|(_, line)| line).collect();
    // Two lines take no more room than the note that they are missing.
    let left = match near.len() > most + 2 {
        true => near.len() - most,
        false => 0,
    };
    near.truncate(near.len() - left);
    (near, left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_the_lines_that_changed() {
        let shown = |old, new| {
            let line = |(change, line): &(LineChange, String)| format!("{}{line}", sign(*change));
            let lines: Vec<String> = changed_lines(old, new).iter().map(line).collect();
            lines.join("|")
        };
        assert_eq!(shown("a\nb\nc\nd", "a\nx\nc\ny\nd"), " a|-b|+x| c|+y| d");
        assert_eq!(shown("", "a"), "+a");
        let count = |old, new| count_lines(&changed_lines(old, new));
        assert_eq!(count("a\na\na", "a"), (0, 2));
        assert_eq!(count("a\nb", "b\nc"), (1, 1));
        let (old, new) = ("a\n".repeat(3000), "b\n".repeat(3000));
        assert_eq!(count(&old, &new), (3000, 3000));
    }

    #[test]
    fn a_short_change_has_only_what_is_near() {
        let lines = changed_lines("1\n2\n3\n4\n5\n6", "1\n2\n3\nfour\n5\n6");
        let (near, left) = shortened(&lines, 10);
        let texts: Vec<&str> = near.iter().map(|line| line.1.as_str()).collect();
        assert_eq!((texts, left), (vec!["3", "4", "four", "5"], 0));
        let lines = changed_lines("", &"x\n".repeat(50));
        let (near, left) = shortened(&lines, 10);
        assert_eq!((near.len(), left), (10, 40));
        let lines = changed_lines("", &"x\n".repeat(12));
        assert_eq!(shortened(&lines, 10).1, 0);
    }
}
