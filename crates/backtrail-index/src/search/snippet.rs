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
const COLUMNS: usize = 240;
/// The most lines of a snippet.
const LINES: usize = 5;
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
    if let Some(root) = &query.root {
        wanted(root, &mut phrases);
    }
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
        None if !query.has_words() => cut_around_path(pieces, query),
        // It matched something that is not shown, or has changed since.
        None => match pieces.iter().find(|piece| !piece.trim().is_empty()) {
            Some(piece) => cut(piece, &[]),
            None => Snippet::default(),
        },
    }
}

/// Returns the snippet of the piece that names a file of the query.
fn cut_around_path(pieces: &[String], query: &ParsedQuery) -> Snippet {
    for piece in pieces {
        // A name in another script may have another length in lower case: it is not marked.
        let lower = piece.to_ascii_lowercase();
        let texts = query.files.iter().map(|file| file.text());
        let found = texts.filter_map(|text| Some((lower.find(text)?, text)));
        let mut marks: Vec<_> = found.map(|(at, text)| at..at + text.len()).collect();
        marks.sort_unstable_by_key(|mark| mark.start);
        if !marks.is_empty() {
            let first = marks[0].start;
            marks.retain(|mark| fits(piece, first, mark.end));
            return cut(piece, &marks);
        }
    }
    let piece = pieces.iter().find(|piece| !piece.trim().is_empty());
    piece.map(|piece| cut(piece, &[])).unwrap_or_default()
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

/// Cuts the piece around marks, with its line breaks.
fn cut(piece: &str, marks: &[Range<usize>]) -> Snippet {
    let first = marks.first().map_or(0, |mark| mark.start);
    let from = cut_before(piece, first);
    let to = cut_after(piece, from);
    let (before, shown, after) = (&piece[..from], &piece[from..to], &piece[to..]);
    let is_whole = before.is_empty() || before.ends_with('\n');
    let mut text = String::new();
    if !before.trim().is_empty() {
        text.push_str(if is_whole { "… " } else { "…" });
    }
    let mut places = Vec::new();
    let indent = indent(shown, is_whole);
    let mut at = from;
    let mut is_first = true;
    for line in shown.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        if line.trim().is_empty() {
            continue;
        }
        if !is_first {
            text.push('\n');
        }
        let skipped = match is_first && !is_whole {
            true => line.len() - line.trim_start().len(),
            false => indent,
        };
        is_first = false;
        for (offset, c) in line.trim_end().char_indices() {
            if offset >= skipped {
                let place = text.len();
                text.push(c);
                places.push((begin + offset, place..text.len()));
            }
        }
    }
    let shown = marks.iter().filter(|mark| mark.start < to);
    let marks = joined(shown.filter_map(|mark| moved(mark, &places)));
    if !after.trim().is_empty() {
        let is_whole = after.starts_with('\n') || piece[..to].ends_with('\n');
        text.push_str(if is_whole { " …" } else { "…" });
    }
    Snippet { text, marks }
}

/// Returns how many bytes of blanks all lines begin with, except the first one if its beginning
/// is cut off. Lines of one text are indented by the same kind of blanks.
fn indent(text: &str, is_whole: bool) -> usize {
    let lines = text.lines().skip(usize::from(!is_whole));
    let lines = lines.filter(|line| !line.trim().is_empty());
    let blanks = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    lines.map(blanks).min().unwrap_or(0)
}

/// Returns where the snippet begins whose first match is at `first`: up to one line before it.
fn cut_before(piece: &str, first: usize) -> usize {
    let before = piece.get(..first).unwrap_or_default();
    let mut taken = 0;
    let mut lines = 0;
    let mut from = first;
    for (at, c) in before.char_indices().rev() {
        if c == '\n' {
            // Blank lines are not shown.
            let line = piece[from..first].split('\n').next().unwrap_or_default();
            lines += usize::from(lines == 0 || !line.trim().is_empty());
            if lines > 1 {
                return from;
            }
        }
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
    let mut lines = 0;
    let mut line = 0;
    for (at, c) in rest.char_indices() {
        if c == '\n' {
            lines += usize::from(!rest[line..at].trim().is_empty());
            line = at + 1;
            if lines >= LINES {
                return from + at;
            }
        }
        taken += columns(c);
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
