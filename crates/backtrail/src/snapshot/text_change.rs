//! A change of a text that can be applied in part.

use std::ops::Range;

use imara_diff::{Hunk, InternedInput};

use super::hunks::{self, Bounds};
use super::text::{self, Hunks};

/// The hunks between two texts, each of which can be applied on its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextChange {
    before: Vec<u8>,
    after: Vec<u8>,
    hunks: Vec<Hunk>,
}

impl TextChange {
    pub(crate) fn between(before: Vec<u8>, after: Vec<u8>) -> Self {
        let input = InternedInput::new(&before[..], &after[..]);
        let hunks = hunks::hunks(&input, Bounds::USUAL);
        Self {
            before,
            after,
            hunks,
        }
    }

    /// Returns the number of hunks.
    pub(crate) fn len(&self) -> usize {
        self.hunks.len()
    }

    /// Returns the number of removed and added lines.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let lines = |range: &Range<u32>| u64::from(range.end - range.start);
        let hunks = self.hunks.iter();
        hunks.fold((0, 0), |(gone, made), hunk| {
            (gone + lines(&hunk.before), made + lines(&hunk.after))
        })
    }

    /// Groups hunks that are shown together with `context` lines around them.
    pub(crate) fn groups(&self, context: usize) -> Vec<Range<usize>> {
        text::groups(&self.hunks, context)
    }

    /// Formats consecutive hunks as one hunk of a patch.
    pub(crate) fn shown(&self, hunks: Range<usize>, context: usize) -> Vec<u8> {
        let input = InternedInput::new(&self.before[..], &self.after[..]);
        let mut written = Hunks::default();
        if let Some(hunks) = self.hunks.get(hunks) {
            written.write(&input, hunks, context);
        }
        written.bytes
    }

    /// Returns the text with the chosen hunks applied.
    pub(crate) fn apply(&self, chosen: impl Fn(usize) -> bool) -> Vec<u8> {
        let input = InternedInput::new(&self.before[..], &self.after[..]);
        let mut text = Vec::new();
        let mut at = 0;
        for (n, hunk) in self.hunks.iter().enumerate() {
            let (tokens, lines) = match chosen(n) {
                true => (&input.after, &hunk.after),
                false => (&input.before, &hunk.before),
            };
            let same = input.before[at..hunk.before.start as usize].iter();
            let lines = tokens[lines.start as usize..lines.end as usize].iter();
            for line in same.chain(lines) {
                text.extend_from_slice(input.interner[*line]);
            }
            at = hunk.before.end as usize;
        }
        for line in &input.before[at..] {
            text.extend_from_slice(input.interner[*line]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_change() -> TextChange {
        let before = b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj".to_vec();
        let after = b"A\nb\nC\nC2\nd\ne\nf\ng\nh\ni\nj\n".to_vec();
        TextChange::between(before, after)
    }

    #[test]
    fn what_is_taken_changes_and_what_is_not_stays() {
        let change = text_change();
        assert_eq!((change.len(), change.counts()), (3, (3, 4)));
        assert_eq!(change.apply(|_| true), change.after);
        assert_eq!(change.apply(|_| false), change.before);
        assert_eq!(
            change.apply(|n| n == 1),
            b"a\nb\nC\nC2\nd\ne\nf\ng\nh\ni\nj"
        );
        assert_eq!(change.apply(|n| n == 2), b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
    }

    #[test]
    fn pieces_near_each_other_are_shown_together() {
        let change = text_change();
        assert_eq!(change.groups(2), [0..2, 2..3]);
        assert_eq!(change.groups(0), [0..1, 1..2, 2..3]);
        let shown = change.shown(1..2, 1);
        assert_eq!(
            String::from_utf8_lossy(&shown),
            "@@ -2,3 +2,4 @@\n b\n-c\n+C\n+C2\n d\n"
        );
    }
}
