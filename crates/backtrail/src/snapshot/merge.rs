//! Three-way merge of texts, line by line.
//!
//! Lines are bytes, including their line ends; a last line without one is a line too.
//! Changes in separate places are taken from both sides. Changes in the same place are
//! only taken if both sides made the same change. As in git, changes that touch are in
//! the same place.

use std::iter::Peekable;
use std::ops::Range;

use imara_diff::{Hunk, InternedInput};

use super::hunks::{self, Bounds};

/// A place that the two sides changed differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clash {
    /// Its first line in our text, counted from 1.
    pub(crate) line: u64,
    pub(crate) ours: Vec<u8>,
    pub(crate) base: Vec<u8>,
    pub(crate) theirs: Vec<u8>,
}

/// Merges the changes of two sides to `base`, or returns the places where they clash.
pub(crate) fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Vec<Clash>> {
    let mut ours = MergeSide::new(base, ours);
    let mut theirs = MergeSide::new(base, theirs);
    let mut merged = Vec::new();
    let mut clashes = Vec::new();
    let mut at = 0;
    while let Some(place) = next_place(&ours, &theirs) {
        merged.extend(ours.base[at..place.start].concat());
        at = place.end;
        let (mine, changed) = ours.take(&place);
        let (other, other_changed) = theirs.take(&place);
        let line = mine.start as u64 + 1;
        let [mine, other] = [ours.lines[mine].concat(), theirs.lines[other].concat()];
        if !other_changed || mine == other {
            merged.extend(mine);
        } else if !changed {
            merged.extend(other);
        } else {
            clashes.push(Clash {
                line,
                ours: mine,
                base: ours.base[place].concat(),
                theirs: other,
            });
        }
    }
    merged.extend(ours.base[at..].concat());
    match clashes.is_empty() {
        true => Ok(merged),
        false => Err(clashes),
    }
}

/// The changes of one side.
struct MergeSide<'a> {
    base: Vec<&'a [u8]>,
    lines: Vec<&'a [u8]>,
    /// The hunks ahead, in reverse order.
    hunks: Vec<Hunk>,
    /// The difference in lines up to here.
    shift: isize,
}

impl<'a> MergeSide<'a> {
    fn new(base: &'a [u8], text: &'a [u8]) -> Self {
        let input = InternedInput::new(base, text);
        let mut hunks = hunks::hunks(&input, Bounds::USUAL);
        hunks.reverse();
        let lines = |tokens: &[imara_diff::Token]| {
            let lines = tokens.iter().map(|line| input.interner[*line]);
            lines.collect::<Vec<&'a [u8]>>()
        };
        Self {
            base: lines(&input.before),
            lines: lines(&input.after),
            hunks,
            shift: 0,
        }
    }

    /// Returns the lines of the base text that the side's next hunk changes.
    fn next(&self) -> Option<Range<usize>> {
        let hunk = self.hunks.last()?;
        Some(hunk.before.start as usize..hunk.before.end as usize)
    }

    /// Moves past a place and returns the lines of this side there, and whether the side
    /// changed them.
    fn take(&mut self, place: &Range<usize>) -> (Range<usize>, bool) {
        let start = place.start.saturating_add_signed(self.shift);
        let mut changed = false;
        while self.next().is_some_and(|next| next.start <= place.end) {
            let hunk = self.hunks.pop().expect("it was just there");
            self.shift += hunk.after.len() as isize - hunk.before.len() as isize;
            changed = true;
        }
        (start..place.end.saturating_add_signed(self.shift), changed)
    }
}

/// Returns the next changed lines of the base text, merged with all changes that touch
/// them.
fn next_place(ours: &MergeSide<'_>, theirs: &MergeSide<'_>) -> Option<Range<usize>> {
    let first = match (ours.next(), theirs.next()) {
        (Some(a), Some(b)) if b.start < a.start => b,
        (Some(a), _) => a,
        (None, b) => b?,
    };
    let mut place = first;
    let mut sides = [ahead(ours), ahead(theirs)];
    loop {
        let end = place.end;
        for side in &mut sides {
            while let Some(next) = side.next_if(|next| next.start <= place.end) {
                place.end = place.end.max(next.end);
            }
        }
        if place.end == end {
            return Some(place);
        }
    }
}

fn ahead(side: &MergeSide<'_>) -> Peekable<impl Iterator<Item = Range<usize>>> {
    let hunks = side.hunks.iter().rev();
    let ranges = hunks.map(|hunk| hunk.before.start as usize..hunk.before.end as usize);
    ranges.peekable()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
