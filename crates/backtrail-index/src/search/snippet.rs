//! The part of a message that shows why it was found.

use std::ops::Range;

use backtrail::RecordRef;
use tantivy::tokenizer::Token;

use super::Snippet;
use super::fold::{CharKind, kind};
use super::query::{Node, ParsedQuery, Phrase};
use super::record_text::add_record;
use super::tokens::{APART, JOINED, words};

/// The approximate width of a snippet in columns.
const COLUMNS: usize = 160;
/// How many columns may come before the first match.
const BEFORE: usize = 48;
/// How far a cut moves to be between words.
const MOVE: usize = 24;
/// The most occurrences checked in one piece; the best place is among the first ones.
const MOST: usize = 2_000;

/// Returns the snippet of a message, a summary or a run; empty if it cannot be read.
pub(crate) fn snippet_of_record(record: &RecordRef<'_>, query: &ParsedQuery) -> Snippet {
    let message = match record.message() {
        Ok(message) => message,
        Err(_) => record.stored_message().unwrap_or_default(),
    };
    let mut pieces = Vec::new();
    add_record(record.kind(), message.as_ref(), record.bytes(), &mut pieces);
    best(&pieces, query)
}

/// Returns the snippet of the piece and place with the most matches.
fn best(pieces: &[String], query: &ParsedQuery) -> Snippet {
    let mut phrases = Vec::new();
    wanted(&query.root, &mut phrases);
    let mut best: Option<(usize, &String, Vec<Range<usize>>)> = None;
    for piece in pieces {
        let found = occurrences(piece, &phrases);
        let (count, window) = densest(piece, &found);
        if count > best.as_ref().map_or(0, |(most, ..)| *most) {
            best = Some((count, piece, window));
        }
        // There is no better one.
        if count == phrases.len() && count > 0 {
            break;
        }
    }
    match best {
        Some((_, piece, marks)) => cut(piece, &marks),
        // It matched something that is not shown, or has changed since.
        None => match pieces.iter().find(|piece| !piece.trim().is_empty()) {
            Some(piece) => cut(piece, &[]),
            None => Snippet::default(),
        },
    }
}

/// Collects the phrases that must match.
fn wanted<'a>(node: &'a Node, out: &mut Vec<&'a Phrase>) {
    match node {
        Node::All(nodes) | Node::Any(nodes) => nodes.iter().for_each(|node| wanted(node, out)),
        Node::Phrase(phrase) | Node::Pair(phrase) => out.push(phrase),
        Node::Not(_) => {}
    }
}

/// A match: which phrase, and where.
type Occurrence = (usize, Range<usize>);

/// Returns the matches in a piece, in order.
fn occurrences(piece: &str, phrases: &[&Phrase]) -> Vec<Occurrence> {
    let tokens = words(piece);
    let mut found = Vec::new();
    for (index, phrase) in phrases.iter().enumerate() {
        let places = (0..tokens.len()).filter_map(|first| place(&tokens, first, phrase));
        found.extend(places.take(MOST).map(|place| (index, place)));
    }
    found.sort_by_key(|(index, place)| (place.start, *index));
    found
}

/// Returns the range of a phrase that begins with the word `first`.
fn place(tokens: &[Token], first: usize, phrase: &Phrase) -> Option<Range<usize>> {
    let begin = tokens.get(first)?;
    let last = phrase.words.len().checked_sub(1)?;
    let is = |token: &Token, word: usize| {
        phrase.words.get(word).is_some_and(|(_, text)| {
            if phrase.is_prefix && word == last {
                token.text.starts_with(text.as_str())
            } else {
                token.text == *text
            }
        })
    };
    if !is(begin, 0) {
        return None;
    }
    let mut end = begin.offset_to;
    for (word, (offset, _)) in phrase.words.iter().enumerate().skip(1) {
        let position = begin.position + offset;
        // Two quoted words may be in one name, and closer then.
        let is_pair = last == 1 && *offset == APART;
        let nearest = if is_pair {
            position - APART + JOINED
        } else {
            position
        };
        let from = tokens.partition_point(|token| token.position < nearest);
        let mut there = tokens.get(from..)?.iter();
        let token = there
            .by_ref()
            .take_while(|token| token.position <= position)
            .find(|token| is(token, word))?;
        end = end.max(token.offset_to);
    }
    Some(begin.offset_from..end)
}

/// Returns the highest number of different phrases close to each other, and all matches
/// there.
fn densest(piece: &str, found: &[Occurrence]) -> (usize, Vec<Range<usize>>) {
    let mut best = (0, 0..0);
    let mut end = 0;
    for (start, (_, first)) in found.iter().enumerate() {
        end = end.max(start);
        while let Some((_, place)) = found.get(end)
            && fits(piece, first.start, place.end)
        {
            end += 1;
        }
        // A match longer than a snippet is shown alone.
        let window = start..end.max(start + 1);
        let mut seen: Vec<usize> = found[window.clone()].iter().map(|(at, _)| *at).collect();
        seen.sort_unstable();
        seen.dedup();
        if seen.len() > best.0 {
            best = (seen.len(), window);
        }
    }
    let places = found[best.1].iter().map(|(_, place)| place.clone());
    (best.0, places.collect())
}

/// Returns whether two places fit into one snippet.
fn fits(piece: &str, from: usize, to: usize) -> bool {
    if to.saturating_sub(from) > COLUMNS * 4 {
        return false;
    }
    let shown = piece.get(from..to).unwrap_or_default();
    shown.chars().map(columns).sum::<usize>() <= COLUMNS - BEFORE
}

/// Returns the approximate width of a character in columns.
fn columns(c: char) -> usize {
    match kind(c) {
        CharKind::Mark => 0,
        CharKind::Single if c >= '\u{1100}' => 2,
        _ => 1,
    }
}

/// Cuts the piece around marks, on one line.
fn cut(piece: &str, marks: &[Range<usize>]) -> Snippet {
    let first = marks.first().map_or(0, |mark| mark.start);
    let from = cut_before(piece, first);
    let to = cut_after(piece, from);
    let mut text = String::new();
    let mut places = Vec::new();
    if !piece.get(..from).unwrap_or_default().trim().is_empty() {
        text.push('…');
    }
    let lead = text.len();
    for (offset, c) in piece.get(from..to).unwrap_or_default().char_indices() {
        // Any white space becomes one space.
        if c.is_whitespace() {
            if text.len() > lead && !text.ends_with(' ') {
                text.push(' ');
            }
            continue;
        }
        let begin = text.len();
        text.push(c);
        places.push((from + offset, begin..text.len()));
    }
    text.truncate(text.trim_end().len());
    let shown = marks.iter().filter(|mark| mark.start < to);
    let marks = joined(shown.filter_map(|mark| moved(mark, &places)));
    if !piece.get(to..).unwrap_or_default().trim().is_empty() {
        text.push('…');
    }
    Snippet { text, marks }
}

/// Returns where the snippet begins whose first match is at `first`.
fn cut_before(piece: &str, first: usize) -> usize {
    let before = piece.get(..first).unwrap_or_default();
    let mut taken = 0;
    let mut from = first;
    for (at, c) in before.char_indices().rev() {
        taken += columns(c);
        if taken > BEFORE {
            // The rest of a cut word is dropped.
            let rest = piece.get(from..first).unwrap_or_default();
            let blank = rest.char_indices().find(|(_, c)| c.is_whitespace());
            return match blank {
                Some((at, c)) if at <= MOVE => from + at + c.len_utf8(),
                _ => from,
            };
        }
        from = at;
    }
    0
}

/// Returns where the snippet ends that begins at `from`.
fn cut_after(piece: &str, from: usize) -> usize {
    let rest = piece.get(from..).unwrap_or_default();
    let mut taken = 0;
    let mut was_blank = false;
    for (at, c) in rest.char_indices() {
        let is_blank = c.is_whitespace();
        if !(is_blank && was_blank) {
            taken += columns(c);
        }
        was_blank = is_blank;
        if taken > COLUMNS {
            let shown = rest.get(..at).unwrap_or_default();
            let blank = shown.rfind(char::is_whitespace);
            return from + blank.filter(|blank| at - blank <= MOVE).unwrap_or(at);
        }
    }
    piece.len()
}

/// Returns the range of a mark in the snippet. `places` maps each character of the piece
/// to its range in the snippet.
fn moved(mark: &Range<usize>, places: &[(usize, Range<usize>)]) -> Option<Range<usize>> {
    let at = |offset: usize| places.partition_point(|(from, _)| *from < offset);
    let (_, first) = places.get(at(mark.start))?;
    let (_, last) = places.get(at(mark.end).checked_sub(1)?)?;
    Some(first.start..last.end)
}

/// Joins marks that touch.
fn joined(marks: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = marks.filter(|mark| mark.start < mark.end).collect();
    all.sort_unstable_by_key(|mark| (mark.start, mark.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for mark in all {
        match joined.last_mut() {
            Some(last) if mark.start <= last.end => last.end = last.end.max(mark.end),
            _ => joined.push(mark),
        }
    }
    joined
}

#[cfg(test)]
#[path = "snippet_tests.rs"]
mod tests;
