//! The lines that two texts have in common.
//!
//! Most versions of a file differ in few places, so equal beginnings and ends are found by their
//! bytes, and only what is between them is compared line by line.

use imara_diff::InternedInput;
use memchr::{memchr, memchr_iter, memrchr};

use super::hunks::{self, Bounds};

/// How many equal lines around a difference are compared as well: a change that could be in
/// several places is shown where it reads best.
const AROUND: usize = 32;
/// How many bytes are compared at a time.
const STRIDE: usize = 1024;

/// Lines that are equal in two texts: where they begin in each, counted from 0, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommonLines {
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) len: usize,
}

impl CommonLines {
    /// Returns the line of the earlier text that a line of the later one is.
    pub(crate) fn line_before(&self, after: usize) -> Option<usize> {
        let at = after.checked_sub(self.after)?;
        (at < self.len).then_some(self.before + at)
    }
}

/// Finds the lines that two texts have in common, in order.
pub(crate) fn common_lines(before: &[u8], after: &[u8]) -> Vec<CommonLines> {
    let (start, end) = equal_ends(before, after);
    let first = count_lines(&before[..start]);
    let middle = |text: &'_ [u8]| start..text.len() - end;
    let input = InternedInput::new(&before[middle(before)], &after[middle(after)]);
    let mut common: Vec<CommonLines> = Vec::new();
    let mut push = |before, after, len| match common.last_mut() {
        _ if len == 0 => {}
        Some(last) if (last.before + last.len, last.after + last.len) == (before, after) => {
            last.len += len;
        }
        _ => common.push(CommonLines { before, after, len }),
    };
    push(0, 0, first);
    let (mut old, mut new) = (0, 0);
    for hunk in hunks::hunks(&input, Bounds::USUAL) {
        let same = hunk.before.start as usize - old;
        push(first + old, first + new, same);
        (old, new) = (hunk.before.end as usize, hunk.after.end as usize);
    }
    push(first + old, first + new, input.before.len() - old);
    let last = count_lines(&before[before.len() - end..]);
    push(first + input.before.len(), first + input.after.len(), last);
    common
}

/// Returns how many lines a text has; a last one without a line end counts.
pub(crate) fn count_lines(text: &[u8]) -> usize {
    let ends = memchr_iter(b'\n', text).count();
    ends + usize::from(text.last().is_some_and(|last| *last != b'\n'))
}

/// Returns how many bytes of whole lines are equal at the beginning and at the end of two
/// texts, without the lines nearest to the difference.
fn equal_ends(before: &[u8], after: &[u8]) -> (usize, usize) {
    let same = equal_bytes(before.chunks(STRIDE), after.chunks(STRIDE), |a, b| {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    });
    let start = memrchr(b'\n', &before[..same]).map_or(0, |at| at + 1);
    let (old, new) = (&before[start..], &after[start..]);
    let same = equal_bytes(old.rchunks(STRIDE), new.rchunks(STRIDE), |a, b| {
        let pairs = a.iter().rev().zip(b.iter().rev());
        pairs.take_while(|(a, b)| a == b).count()
    });
    let tail = &old[old.len() - same..];
    let end = memchr(b'\n', tail).map_or(0, |at| tail.len() - at - 1);
    let near = memrchr_nth(&before[..start], AROUND);
    let tail = &old[old.len() - end..];
    let far = memchr_iter(b'\n', tail).nth(AROUND - 1);
    (near, far.map_or(0, |at| end - at - 1))
}

/// Counts equal bytes, a stride at a time.
fn equal_bytes<'a>(
    before: impl Iterator<Item = &'a [u8]>,
    after: impl Iterator<Item = &'a [u8]>,
    within: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut same = 0;
    for (a, b) in before.zip(after) {
        if a != b {
            return same + within(a, b);
        }
        same += a.len();
    }
    same
}

/// Returns where the nth line from the end of whole lines begins.
fn memrchr_nth(text: &[u8], n: usize) -> usize {
    let ends = memchr::memrchr_iter(b'\n', text);
    ends.skip(n).map(|at| at + 1).next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits as the comparison does.
    fn lines(text: &[u8]) -> Vec<&[u8]> {
        text.split_inclusive(|byte| *byte == b'\n').collect()
    }

    #[test]
    fn common_lines_are_equal_in_order_and_as_many_as_a_simple_search_finds() {
        let mut seed = 7_u64;
        let mut below = |limit: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % limit
        };
        for round in 0..300 {
            // Long enough that both ends are not compared line by line.
            let old: Vec<String> = (0..below(200)).map(|n| format!("{n}\n")).collect();
            let mut new = old.clone();
            for _ in 0..below(4) {
                let at = below(new.len() as u64 + 1) as usize;
                match below(2) {
                    0 => new.insert(at, format!("new {round} {at}\n")),
                    _ => drop((at < new.len()).then(|| new.remove(at))),
                }
            }
            let (mut old, mut new) = (old.concat(), new.concat());
            for text in [&mut old, &mut new] {
                if below(4) == 0 {
                    text.pop();
                }
            }
            let (old, new) = (old.as_bytes(), new.as_bytes());
            let (a, b) = (lines(old), lines(new));
            let mut at = (0, 0);
            let mut found = 0;
            for run in common_lines(old, new) {
                assert!(run.before >= at.0 && run.after >= at.1, "in order");
                let both = [&a[run.before..][..run.len], &b[run.after..][..run.len]];
                assert_eq!(both[0], both[1]);
                at = (run.before + run.len, run.after + run.len);
                found += run.len;
            }
            assert!(at.0 <= a.len() && at.1 <= b.len());
            assert_eq!(found, longest(&a, &b), "{round}");
        }
    }

    /// The length of the longest common subsequence, by the table.
    fn longest(a: &[&[u8]], b: &[&[u8]]) -> usize {
        let mut row = vec![0; b.len() + 1];
        for x in a {
            let mut corner = 0;
            for (n, y) in b.iter().enumerate() {
                let above = row[n + 1];
                row[n + 1] = if x == y {
                    corner + 1
                } else {
                    above.max(row[n])
                };
                corner = above;
            }
        }
        row[b.len()]
    }

    #[test]
    fn texts_without_lines_and_equal_texts_have_all_in_common() {
        assert_eq!(common_lines(b"", b""), []);
        assert_eq!(common_lines(b"a\n", b""), []);
        let same = common_lines(b"a\nb", b"a\nb");
        assert_eq!(same.iter().map(|run| run.len).sum::<usize>(), 2);
        assert_eq!(
            common_lines(b"a\nb", b"a\nb\n").len(),
            1,
            "b is another line"
        );
    }
}
