//! Searching as one types: a letter, and the matches of the text so far.

use std::collections::BTreeSet;
use std::time::Duration;

use super::screen::{CTRL_U, Screen};
use super::{QUIET, figure, samples, seconds};
use crate::Result;
use crate::find::corpus::{COMMON, RARE, Words};
use crate::report::{Entry, Goal, Quantity, Unit};

/// The limit from a letter to its matches.
const MATCHES: f64 = 0.050;
/// How many words are typed.
const WORDS: usize = 10;

/// Types words letter by letter. A letter that changes no match is not counted: nobody can see when
/// its search was done. Nor could anybody tell a search of more than [`QUIET`] from none.
pub(super) fn measure(screen: &mut Screen, name: impl Fn(&str) -> String) -> Result<Vec<Entry>> {
    screen.press("/")?;
    screen.wait_for("Search in")?;
    let mut times = Vec::new();
    for word in words() {
        for letter in word.chars() {
            times.extend(type_letter(screen, letter)?);
        }
        screen.press(CTRL_U)?;
        screen.wait_for("Type words to find them")?;
        screen.settle(QUIET)?;
    }
    let times = samples(&times);
    let what = format!("letter to its matches, {} letters", times.len());
    let p99 = Quantity::single(times.percentile(99.0), Unit::Seconds);
    Ok(vec![
        figure(name(&what), seconds(&times), None, Goal::AtMost(MATCHES)),
        figure(name(&format!("{what}, p99")), p99, None, Goal::Open),
    ])
}

/// Types a letter; returns how long its matches took, if they are others than before.
fn type_letter(screen: &mut Screen, letter: char) -> Result<Option<Duration>> {
    let before = matches(&screen.contents());
    let pressed = screen.press(letter.encode_utf8(&mut [0; 4]))?;
    let mut last = screen.settle(QUIET)?;
    while screen.contents().contains("searching") {
        last = screen.settle(QUIET)?.or(last);
    }
    let after = matches(&screen.contents());
    let is_other = before != after;
    Ok(last
        .filter(|_| is_other)
        .map(|last| last.duration_since(pressed)))
}

/// Returns the screen without the line in which the words are typed.
fn matches(contents: &str) -> Vec<String> {
    let mut lines: Vec<String> = contents.lines().map(str::to_owned).collect();
    let title = lines.iter().position(|line| line.contains("Search in"));
    if let Some(typed) = title.map(|title| title + 1).filter(|n| *n < lines.len()) {
        lines.remove(typed);
    }
    lines
}

/// Returns words of the corpus: one that is common, one that is rare, and others.
fn words() -> Vec<String> {
    let text = Words::new().prose(2_000);
    let others: BTreeSet<&str> = text
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| (6..10).contains(&word.len()) && *word != COMMON)
        .collect();
    let known = [COMMON, RARE].into_iter();
    known.chain(others).take(WORDS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_different_words_are_typed() {
        let words: BTreeSet<String> = words().into_iter().collect();
        assert_eq!(words.len(), WORDS);
        assert!(words.contains(RARE));
    }

    #[test]
    fn what_is_typed_is_not_a_match() {
        let [a, b] = ["ses", "sess"].map(|typed| format!("Search in all\n/ {typed}\na session\n"));
        assert_eq!(matches(&a), matches(&b));
        assert_ne!(matches(&a), matches(&b.replace("a session", "two")));
    }
}
