//! Line-by-line differences between two texts.
//!
//! Texts are bytes: nothing is decoded, so text that is not UTF-8 comes out unchanged.

use std::io::Write;
use std::ops::Range;

use imara_diff::{Hunk, InternedInput, Token};

use super::hunks::{self, Bounds};

/// As in git, content with a NUL among its first bytes is not text.
const LOOKED_AT: usize = 8000;

/// The hunks of a unified diff.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hunks {
    pub(super) bytes: Vec<u8>,
    pub(super) added: u64,
    pub(super) removed: u64,
}

/// Returns whether a content is not text.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    let start = &content[..content.len().min(LOOKED_AT)];
    memchr::memchr(0, start).is_some()
}

/// Compares two texts and shows each difference with `context` lines around it.
pub(super) fn compare(before: &[u8], after: &[u8], context: usize) -> Hunks {
    compare_within(Bounds::USUAL, before, after, context)
}

/// Compares two texts within `bounds`.
pub(super) fn compare_within(bounds: Bounds, before: &[u8], after: &[u8], context: usize) -> Hunks {
    let input = InternedInput::new(before, after);
    let hunks = hunks::hunks(&input, bounds);
    let mut written = Hunks::default();
    for group in groups(&hunks, context) {
        written.write(&input, &hunks[group], context);
    }
    written
}

/// Groups hunks that are shown together with `context` lines around them.
pub(super) fn groups(hunks: &[Hunk], context: usize) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (n, hunk) in hunks.iter().enumerate() {
        let last = n.checked_sub(1).map(|last| &hunks[last]);
        let gap = last.map(|last| (hunk.before.start - last.before.end) as usize);
        match groups.last_mut() {
            Some(group) if gap.is_some_and(|gap| gap <= context.saturating_mul(2)) => {
                group.end = n + 1;
            }
            _ => groups.push(n..n + 1),
        }
    }
    groups
}

impl Hunks {
    /// Writes neighbouring changes as one hunk.
    pub(super) fn write(&mut self, input: &InternedInput<&[u8]>, near: &[Hunk], context: usize) {
        let (Some(first), Some(last)) = (near.first(), near.last()) else {
            return;
        };
        let (from, new_from) = (usizes(&first.before).start, usizes(&first.after).start);
        let (to, new_to) = (usizes(&last.before).end, usizes(&last.after).end);
        // The lines before and after are equal on both sides, so equally many.
        let lead = context.min(from);
        let trail = context.min(input.before.len() - to);
        let old = from - lead..to + trail;
        let new = new_from - lead..new_to + trail;
        self.write_header(&old, &new);
        let mut at = old.start;
        for hunk in near {
            let (before, after) = (usizes(&hunk.before), usizes(&hunk.after));
            self.write_lines(b' ', input, &input.before[at..before.start]);
            self.write_lines(b'-', input, &input.before[before.clone()]);
            self.write_lines(b'+', input, &input.after[after.clone()]);
            self.removed += before.len() as u64;
            self.added += after.len() as u64;
            at = before.end;
        }
        self.write_lines(b' ', input, &input.before[at..old.end]);
    }

    fn write_header(&mut self, old: &Range<usize>, new: &Range<usize>) {
        let [old, new] = [old, new].map(|lines| match lines.len() {
            // An empty range is given by the line before it.
            0 => format!("{},0", lines.start),
            1 => format!("{}", lines.start + 1),
            len => format!("{},{len}", lines.start + 1),
        });
        writeln!(self.bytes, "@@ -{old} +{new} @@").ok();
    }

    fn write_lines(&mut self, sign: u8, input: &InternedInput<&[u8]>, lines: &[Token]) {
        for line in lines {
            let line = input.interner[*line];
            self.bytes.push(sign);
            self.bytes.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                self.bytes
                    .extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
}

fn usizes(lines: &Range<u32>) -> Range<usize> {
    lines.start as usize..lines.end as usize
}
