//! Three texts become one, line by line.
//!
//! Lines are bytes: their ends count, and so does a last line without one. What two
//! sides changed apart from each other is taken from both; what they changed in the
//! same place only where they made the same of it. Changes that touch are in the same
//! place, as git has it.

use std::iter::Peekable;
use std::ops::Range;

use imara_diff::{Hunk, InternedInput};

use super::hunks::{self, Bounds};

/// A place that two sides made something different of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clash {
    /// The first line of it in our text, counted from 1.
    pub(crate) line: u64,
    pub(crate) ours: Vec<u8>,
    pub(crate) base: Vec<u8>,
    pub(crate) theirs: Vec<u8>,
}

/// Puts together what two sides made of a text, or says where they clash.
pub(crate) fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, Vec<Clash>> {
    let mut ours = Side::new(base, ours);
    let mut theirs = Side::new(base, theirs);
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

/// What one side made of the text.
struct Side<'a> {
    base: Vec<&'a [u8]>,
    lines: Vec<&'a [u8]>,
    /// What is still ahead, the next one last.
    hunks: Vec<Hunk>,
    /// How many lines it has more, or fewer, up to here.
    shift: isize,
}

impl<'a> Side<'a> {
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

    /// Returns the lines of the text that a side's next change is about.
    fn next(&self) -> Option<Range<usize>> {
        let hunk = self.hunks.last()?;
        Some(hunk.before.start as usize..hunk.before.end as usize)
    }

    /// Goes past a place, and returns the lines that stand there on this side, and
    /// whether it changed them.
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

/// Returns the next lines of the text that were changed, with all changes that touch
/// each other.
fn next_place(ours: &Side<'_>, theirs: &Side<'_>) -> Option<Range<usize>> {
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

fn ahead(side: &Side<'_>) -> Peekable<impl Iterator<Item = Range<usize>>> {
    let hunks = side.hunks.iter().rev();
    let ranges = hunks.map(|hunk| hunk.before.start as usize..hunk.before.end as usize);
    ranges.peekable()
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
