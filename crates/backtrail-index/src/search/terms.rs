//! What the words and paths of the index tell before a search: which sessions touched a file, and
//! how a word is usually spelled.

use std::collections::{BTreeMap, HashSet};

use backtrail::SessionId;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet as _, TERMINATED, Term};

use super::compile::unreadable;
use super::dir::{IndexedTrail, SearchIndex};
use super::document::{FILE, NUMBERS, TEXT};
use super::tokens::{is_whole, words};
use super::touched::FilePattern;
use crate::error::Result;

/// Returns the sessions with a call that touches a file, in the trails that fit.
pub(crate) fn sessions_that_touched(
    index: &SearchIndex,
    pattern: &FilePattern,
    fits: impl Fn(&IndexedTrail) -> bool,
) -> Result<HashSet<SessionId>> {
    let trails = trails_that_touched(index, pattern).map_err(unreadable)?;
    let known = index.known().iter();
    let known = known.filter(|trail| trails.contains(&u64::from(trail.ordinal)) && fits(trail));
    Ok(known.map(|trail| trail.session.clone()).collect())
}

/// Returns the numbers of the trails with a call that touches a file.
fn trails_that_touched(
    index: &SearchIndex,
    pattern: &FilePattern,
) -> tantivy::Result<HashSet<u64>> {
    let mut found = HashSet::new();
    for segment in index.searcher.segment_readers() {
        let files = segment.inverted_index(FILE)?;
        let trails = segment.fast_fields().u64(NUMBERS[0])?;
        let mut paths = files.terms().stream()?;
        while paths.advance() {
            if !pattern.matches(&String::from_utf8_lossy(paths.key())) {
                continue;
            }
            let basic = IndexRecordOption::Basic;
            let mut records = files.read_postings_from_terminfo(paths.value(), basic)?;
            while records.doc() != TERMINATED {
                found.extend(trails.first(records.doc()));
                records.advance();
            }
        }
    }
    Ok(found)
}

/// Returns the most similar word of the index for one that it does not have.
pub(crate) fn respelled(index: &SearchIndex, word: &str) -> Result<Option<String>> {
    let is_plain = word.starts_with(char::is_alphanumeric) && !word.contains(['"', '*', '(', ')']);
    if !is_plain {
        return Ok(None);
    }
    let mut parts = words(word).into_iter().filter(|part| !is_whole(part));
    // Of a name, or of a word without letters, nothing is suggested.
    let (Some(part), None) = (parts.next(), parts.next()) else {
        return Ok(None);
    };
    let wanted = part.text;
    if index
        .searcher
        .doc_freq(&Term::from_field_text(TEXT, &wanted))
        .map_err(unreadable)?
        > 0
    {
        return Ok(None);
    }
    let near = near(index, &wanted).map_err(unreadable)?;
    // The nearest, then the most frequent one.
    let best = near
        .into_iter()
        .min_by_key(|(word, (far, count))| (*far, std::cmp::Reverse(*count), word.clone()));
    Ok(best.map(|(word, _)| word))
}

/// Returns the words that differ little from one, how much they do, and how many records have
/// them. They begin with one of its first two letters.
fn near(index: &SearchIndex, wanted: &str) -> tantivy::Result<BTreeMap<String, (usize, u64)>> {
    let letters = wanted.chars().count();
    let most = match letters {
        0..=3 => return Ok(BTreeMap::new()),
        4..=7 => 1,
        _ => 2,
    };
    let mut starts: Vec<char> = wanted.chars().take(2).collect();
    starts.dedup();
    let mut near: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for segment in index.searcher.segment_readers() {
        let index = segment.inverted_index(TEXT)?;
        for start in starts.iter().map(char::to_string) {
            let mut terms = index.terms().range().ge(start.as_bytes()).into_stream()?;
            while terms.advance() && terms.key().starts_with(start.as_bytes()) {
                let Ok(term) = std::str::from_utf8(terms.key()) else {
                    continue;
                };
                if term.len().abs_diff(wanted.len()) > most * 4 {
                    continue;
                }
                let far = strsim::osa_distance(term, wanted);
                if far <= most {
                    let known = near.entry(term.to_owned()).or_insert((far, 0));
                    known.1 += u64::from(terms.value().doc_freq);
                }
            }
        }
    }
    Ok(near)
}
