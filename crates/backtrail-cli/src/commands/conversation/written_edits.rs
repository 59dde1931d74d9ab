//! Edits that a model writes into its answer, as aider lets it do, shown as diffs.

use std::borrow::Cow;

use super::compare::{changed_lines, sign};

const START: &str = "<<<<<<< SEARCH";
const DIVIDER: &str = "=======";
const END: &str = ">>>>>>> REPLACE";

/// Replaces the blocks that say what to search and by what to replace it by diffs.
pub(super) fn with_diffs(text: &str) -> Cow<'_, str> {
    if !text.contains(START) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    // Whether the fence around the block before is still open.
    let mut is_fenced = false;
    // A block that does not end is the last: none after it does.
    let mut is_last = false;
    let mut at = 0;
    while at < lines.len() {
        let is_start = !is_last && lines[at].trim_end() == START;
        let found = is_start.then(|| block(&lines, at)).flatten();
        is_last |= is_start && found.is_none();
        let Some((old, new, end)) = found else {
            let is_close = is_fenced && is_fence_end(lines[at]);
            is_fenced &= !is_close && lines[at].trim().is_empty();
            if !is_close {
                out.push(lines[at].to_owned());
            }
            at += 1;
            continue;
        };
        is_fenced |= out.pop_if(|line| is_fence(line)).is_some();
        out.extend(diff(&old, &new));
        at = end + 1;
    }
    Cow::Owned(out.join("\n"))
}

/// Reads the block that begins in a line; returns what is searched, what replaces it, and the
/// block's last line.
fn block(lines: &[&str], at: usize) -> Option<(String, String, usize)> {
    let find = |from: usize, mark: &str| {
        let rest = lines.get(from..)?;
        let found = rest.iter().position(|line| line.trim_end() == mark)?;
        Some(from + found)
    };
    let divider = find(at + 1, DIVIDER)?;
    let end = find(divider + 1, END)?;
    let text = |from: usize, to: usize| lines[from..to].join("\n");
    Some((text(at + 1, divider), text(divider + 1, end), end))
}

fn diff(old: &str, new: &str) -> Vec<String> {
    let changed = changed_lines(old, new);
    let line = |(change, line): &(_, String)| format!("{}{line}", sign(*change));
    let mut lines: Vec<String> = changed.iter().map(line).collect();
    let has_fence = lines.iter().any(|line| line.contains("```"));
    let fence = if has_fence { "`````" } else { "```" };
    lines.insert(0, format!("{fence}diff"));
    lines.push(fence.to_owned());
    lines
}

fn is_fence(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("<source>")
}

fn is_fence_end(line: &str) -> bool {
    matches!(line.trim_end(), "```" | "````" | "</source>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_diff_whatever_is_around_it() {
        let block = "<<<<<<< SEARCH\na\nb\n=======\na\nc\n>>>>>>> REPLACE";
        let expected = "x.py\n```diff\n a\n-b\n+c\n```\nDone.";
        for (open, close) in [
            ("```python\n", "\n```"),
            ("<source>python\n", "\n</source>"),
            ("", ""),
        ] {
            let text = format!("x.py\n{open}{block}{close}\nDone.");
            assert_eq!(with_diffs(&text), expected, "{text}");
        }
        let two = format!("```py\n{block}\n\n{block}\n```\nDone.");
        let diff = "```diff\n a\n-b\n+c\n```";
        assert_eq!(with_diffs(&two), format!("{diff}\n\n{diff}\nDone."));
    }

    #[test]
    fn anything_else_stays() {
        for text in [
            "no block",
            "<<<<<<< SEARCH\ncut off\n=======\nx",
            "see `<<<<<<< SEARCH` and\n```\ncode\n```",
        ] {
            assert_eq!(with_diffs(text), text);
        }
        let many = "<<<<<<< SEARCH\n".repeat(100_000);
        assert_eq!(with_diffs(&many), many.trim_end());
        let inner = "<<<<<<< SEARCH\n=======\n```sh\n>>>>>>> REPLACE";
        assert_eq!(with_diffs(inner), "`````diff\n+```sh\n`````");
    }
}
