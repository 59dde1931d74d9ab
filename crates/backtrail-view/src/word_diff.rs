//! Which words of a line changed.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Token};

/// Lines that have less in common than this share are different lines, in percent.
const ALIKE: usize = 40;
/// Longer lines are not compared.
const LONGEST: usize = 2000;

/// The bytes of a line that changed.
pub type Changed = Vec<Range<usize>>;

/// Compares two lines word by word. Returns nothing for lines that are not alike: if everything
/// is emphasised, nothing is.
pub fn changed_words(old: &str, new: &str) -> (Changed, Changed) {
    if old.len() > LONGEST || new.len() > LONGEST {
        return Default::default();
    }
    let (old_words, new_words) = (words(old), words(new));
    let mut input = InternedInput::default();
    input.update_before(old_words.iter().copied());
    input.update_after(new_words.iter().copied());
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let removed = ranges(&old_words, &input.before, |n| diff.is_removed(n));
    let added = ranges(&new_words, &input.after, |n| diff.is_added(n));
    let length = |text: &str| text.split_whitespace().map(str::len).sum::<usize>();
    let changed = |text: &str, ranges: &Changed| {
        let texts = ranges.iter().filter_map(|range| text.get(range.clone()));
        texts.map(length).sum::<usize>()
    };
    let all = length(old) + length(new);
    let same = all.saturating_sub(changed(old, &removed) + changed(new, &added));
    match same * 100 >= all * ALIKE {
        true => (removed, added),
        false => Default::default(),
    }
}

/// Splits a line into words, runs of spaces, and single other characters.
fn words(line: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 1,
        c if c.is_whitespace() => 2,
        _ => 0,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in line.char_indices() {
        if last.is_some_and(|last| last != kind(c) || last == 0) {
            words.push(&line[start..at]);
            start = at;
        }
        last = Some(kind(c));
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

/// Returns the bytes of the changed words, with neighbours joined.
fn ranges(words: &[&str], tokens: &[Token], is_changed: impl Fn(u32) -> bool) -> Changed {
    let mut ranges = Changed::new();
    let mut at = 0;
    for (n, word) in words.iter().enumerate().take(tokens.len()) {
        let range = at..at + word.len();
        at = range.end;
        if !u32::try_from(n).is_ok_and(&is_changed) {
            continue;
        }
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_changed_words_are_emphasised() {
        let (old, new) = ("let total = count + 1;", "let total = amount + 1;");
        let (removed, added) = changed_words(old, new);
        assert_eq!(removed.len(), 1);
        assert_eq!(&old[removed[0].clone()], "count");
        assert_eq!(&new[added[0].clone()], "amount");
    }

    #[test]
    fn lines_that_are_not_alike_are_not_emphasised() {
        assert_eq!(
            changed_words("return None;", "for x in xs.iter() {"),
            (vec![], vec![])
        );
        assert_eq!(changed_words("", "anything"), (vec![], vec![]));
    }

    #[test]
    fn words_put_together_are_the_line() {
        let line = "fn größe(x: &str) -> 日本  {\t}";
        assert_eq!(words(line).concat(), line);
    }
}
