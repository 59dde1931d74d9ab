//! Finds the differences between two lists of lines, within bounds.
//!
//! The histogram algorithm finds readable differences, but its time can grow with the
//! product of both lengths. Long texts are therefore first split at lines that occur
//! exactly once on each side and in the same order, and only the parts between them are
//! compared. A part that is still too large is replaced as a whole.

use std::collections::HashMap;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, IndentHeuristic, IndentLevel, InternedInput, Token};

/// How much may be compared, as a product of lengths in lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Up to this product, the texts are compared in one go.
    pub(super) at_once: u64,
    /// The budget for all parts of longer texts.
    pub(super) in_parts: u64,
}

impl Bounds {
    /// Takes about a second in the worst case.
    pub(super) const USUAL: Self = Self {
        at_once: 5_000 * 5_000,
        in_parts: 14_000 * 14_000,
    };
}

/// Returns the hunks in order; between two hunks there are equal lines.
pub(super) fn hunks(input: &InternedInput<&[u8]>, bounds: Bounds) -> Vec<Hunk> {
    let mut search = HunkSearch {
        input,
        budget: bounds.in_parts,
        hunks: Vec::new(),
    };
    let whole = search.trim(0..input.before.len(), 0..input.after.len());
    if area(&whole) <= bounds.at_once {
        let mut diff = Diff::compute(Algorithm::Histogram, input);
        diff.postprocess_lines(input);
        return diff.hunks().collect();
    }
    let (mut old, mut new) = (whole.0.start, whole.1.start);
    for (before, after) in anchors(input, &whole) {
        search.part(old..before, new..after);
        (old, new) = (before + 1, after + 1);
    }
    search.part(old..whole.0.end, new..whole.1.end);
    search.hunks
}

/// The same part of both texts.
type TextPart = (Range<usize>, Range<usize>);

fn area((before, after): &TextPart) -> u64 {
    (before.len() as u64).saturating_mul(after.len() as u64)
}

struct HunkSearch<'a> {
    input: &'a InternedInput<&'a [u8]>,
    budget: u64,
    hunks: Vec<Hunk>,
}

impl HunkSearch<'_> {
    fn part(&mut self, before: Range<usize>, after: Range<usize>) {
        let part = self.trim(before, after);
        let area = area(&part);
        if part.0.is_empty() && part.1.is_empty() {
            return;
        }
        if area > self.budget || area == 0 {
            let whole = Hunk {
                before: 0..part.0.len() as u32,
                after: 0..part.1.len() as u32,
            };
            self.hunks.push(within(&part, &whole));
            return;
        }
        self.budget -= area;
        let mut names = Renumbering::default();
        let before = names.rename(&self.input.before[part.0.clone()]);
        let after = names.rename(&self.input.after[part.1.clone()]);
        let mut diff = Diff::default();
        diff.compute_with(
            Algorithm::Histogram,
            &before,
            &after,
            names.old.len() as u32,
        );
        let indent = |token: Token| {
            let line = self.input.interner[names.old[token.0 as usize]];
            IndentLevel::for_ascii_line(line.iter().copied(), 8)
        };
        diff.postprocess_with(&before, &after, IndentHeuristic::new(indent));
        let hunks = diff.hunks().map(|found| within(&part, &found));
        self.hunks.extend(hunks);
    }

    /// Removes equal lines from both ends.
    fn trim(&self, before: Range<usize>, after: Range<usize>) -> TextPart {
        let (old, new) = (
            &self.input.before[before.clone()],
            &self.input.after[after.clone()],
        );
        let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let rest = old[start..].iter().rev().zip(new[start..].iter().rev());
        let end = rest.take_while(|(a, b)| a == b).count();
        (
            before.start + start..before.end - end,
            after.start + start..after.end - end,
        )
    }
}

/// Converts a hunk of a part to line numbers of the whole text.
fn within((before, after): &TextPart, hunk: &Hunk) -> Hunk {
    let shift = |lines: &Range<u32>, by: usize| lines.start + by as u32..lines.end + by as u32;
    Hunk {
        before: shift(&hunk.before, before.start),
        after: shift(&hunk.after, after.start),
    }
}

/// Renumbers the lines of a part from 0, so that comparing it costs no more than its
/// length.
#[derive(Default)]
struct Renumbering {
    new: HashMap<Token, Token>,
    old: Vec<Token>,
}

impl Renumbering {
    fn rename(&mut self, lines: &[Token]) -> Vec<Token> {
        let renamed = lines.iter().map(|line| {
            *self.new.entry(*line).or_insert_with(|| {
                self.old.push(*line);
                Token(self.old.len() as u32 - 1)
            })
        });
        renamed.collect()
    }
}

/// Returns the positions of the longest sequence of lines that occur once on each side,
/// in the same order.
fn anchors(input: &InternedInput<&[u8]>, (before, after): &TextPart) -> Vec<(usize, usize)> {
    let count = input.interner.num_tokens() as usize;
    let old = only_places(&input.before[before.clone()], before.start, count);
    let new = only_places(&input.after[after.clone()], after.start, count);
    let mut both: Vec<(usize, usize)> = old.into_iter().zip(new).filter_map(both_once).collect();
    both.sort_unstable();
    longest_increasing(&both)
}

/// Where a line occurs.
#[derive(Clone, Copy)]
enum LinePlace {
    Nowhere,
    Once(usize),
    Often,
}

fn both_once(places: (LinePlace, LinePlace)) -> Option<(usize, usize)> {
    match places {
        (LinePlace::Once(before), LinePlace::Once(after)) => Some((before, after)),
        _ => None,
    }
}

fn only_places(lines: &[Token], first: usize, count: usize) -> Vec<LinePlace> {
    let mut places = vec![LinePlace::Nowhere; count];
    for (at, line) in lines.iter().enumerate() {
        let place = &mut places[line.0 as usize];
        *place = match place {
            LinePlace::Nowhere => LinePlace::Once(first + at),
            _ => LinePlace::Often,
        };
    }
    places
}

/// Returns the longest subsequence in which the second numbers increase too.
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // For each length, the sequence of that length that ends lowest; and for each pair,
    // its predecessor in the longest sequence that it ends.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous = vec![None; pairs.len()];
    for (at, pair) in pairs.iter().enumerate() {
        let len = ends.partition_point(|end| pairs[*end].1 < pair.1);
        previous[at] = len.checked_sub(1).map(|len| ends[len]);
        match ends.get_mut(len) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut found: Vec<_> = std::iter::successors(ends.last().copied(), |at| previous[*at])
        .map(|at| pairs[at])
        .collect();
    found.reverse();
    found
}
