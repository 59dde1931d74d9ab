//! Compiles queries for tantivy.

use std::collections::BTreeSet;

use tantivy::query::{
    BooleanQuery, ConstScoreQuery, EmptyQuery, Occur, PhrasePrefixQuery, PhraseQuery, Query,
    TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};

use super::document::{FILE, MODEL, TEXT, TOOL};
use super::find::SearchRequest;
use super::query::{Node, Phrase};
use super::touched::FilePattern;
use super::word_pair::WordPair;
use crate::error::{Error, Result};

/// The most endings of the second word of a two-word phrase.
const MANY_ENDINGS: usize = 10_000;
/// The most endings of the last word of a longer phrase.
const SOME_ENDINGS: usize = 1_000;

/// Compiles the query, without the conditions that are checked for each record. Returns
/// `None` if nothing can match.
pub(super) fn compile(
    wanted: &SearchRequest,
    searcher: &Searcher,
) -> Result<Option<Box<dyn Query>>> {
    let mut all = Vec::new();
    match &wanted.words.root {
        Some(words) => all.push((Occur::Must, node(words, searcher)?)),
        // Without words, the calls that touch the files are searched for.
        None => {
            for pattern in &wanted.words.files {
                let paths = paths(pattern, searcher)?;
                if paths.is_empty() {
                    return Ok(None);
                }
                all.push((Occur::Must, one_of(FILE, paths)));
            }
        }
    }
    if !wanted.query.tools.is_empty() {
        let names = wanted.query.tools.iter().map(|tool| tool.to_lowercase());
        all.push((Occur::Must, one_of(TOOL, names.collect())));
    }
    if !wanted.query.filter.models.is_empty() {
        let names = models(&wanted.query.filter.models, searcher)?;
        if names.is_empty() {
            return Ok(None);
        }
        all.push((Occur::Must, one_of(MODEL, names)));
    }
    Ok(Some(match all.len() {
        1 => all.swap_remove(0).1,
        _ => Box::new(BooleanQuery::new(all)),
    }))
}

fn node(node: &Node, searcher: &Searcher) -> Result<Box<dyn Query>> {
    let mut clauses = Vec::new();
    match node {
        Node::Phrase(phrase) => return words(phrase, searcher),
        Node::Pair(phrase) => {
            return match pair(phrase) {
                Some(pair) => Ok(Box::new(pair)),
                None => words(phrase, searcher),
            };
        }
        Node::All(nodes) => {
            for part in nodes {
                clauses.push(match part {
                    Node::Not(inner) => (Occur::MustNot, self::node(inner, searcher)?),
                    other => (Occur::Must, self::node(other, searcher)?),
                });
            }
        }
        Node::Any(nodes) => {
            for part in nodes {
                clauses.push((Occur::Should, self::node(part, searcher)?));
            }
        }
        // The parser only puts this into an `All`.
        Node::Not(_) => return Err(Error::Query("`not` needs another word".to_owned())),
    }
    Ok(Box::new(BooleanQuery::new(clauses)))
}

/// Returns the query for two quoted words, which may be words or parts of a name.
fn pair(phrase: &Phrase) -> Option<WordPair> {
    let [(_, first), (_, second)] = &phrase.words[..] else {
        return None;
    };
    Some(WordPair {
        first: Term::from_field_text(TEXT, first),
        second: Term::from_field_text(TEXT, second),
    })
}

fn words(phrase: &Phrase, searcher: &Searcher) -> Result<Box<dyn Query>> {
    let term = |word: &str| Term::from_field_text(TEXT, word);
    let terms = || phrase.words.iter().map(|(at, word)| (*at, term(word)));
    match (phrase.words.as_slice(), phrase.is_prefix) {
        ([(_, word)], false) => Ok(Box::new(TermQuery::new(
            term(word),
            IndexRecordOption::WithFreqs,
        ))),
        (_, false) => Ok(Box::new(PhraseQuery::new_with_offset(terms().collect()))),
        ([_], true) => {
            let mut query = PhrasePrefixQuery::new_with_offset(terms().collect());
            query.set_max_expansions(u32::MAX);
            Ok(Box::new(ConstScoreQuery::new(Box::new(query), 1.0)))
        }
        // After a single word there may be many endings. After more words tantivy only
        // looks one position further, so each ending is a phrase of its own.
        ([_, (_, last)], true) => {
            let endings = endings(last, MANY_ENDINGS, searcher)?.len();
            let mut query = PhrasePrefixQuery::new_with_offset(terms().collect());
            query.set_max_expansions(u32::try_from(endings).unwrap_or(u32::MAX).max(1));
            Ok(Box::new(ConstScoreQuery::new(Box::new(query), 1.0)))
        }
        ([start @ .., (at, last)], true) => {
            let endings = endings(last, SOME_ENDINGS, searcher)?;
            let phrase = |ending: &String| -> Box<dyn Query> {
                let start = start.iter().map(|(at, word)| (*at, term(word)));
                let all = start.chain([(*at, term(ending))]);
                Box::new(PhraseQuery::new_with_offset(all.collect()))
            };
            let any = BooleanQuery::union(endings.iter().map(phrase).collect());
            Ok(Box::new(ConstScoreQuery::new(Box::new(any), 1.0)))
        }
        ([], true) => Ok(Box::new(EmptyQuery)),
    }
}

/// Returns the words with this prefix.
fn endings(prefix: &str, most: usize, searcher: &Searcher) -> Result<Vec<String>> {
    let mut endings = BTreeSet::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(TEXT).map_err(unreadable)?;
        let range = index.terms().range().ge(prefix.as_bytes());
        let mut stream = range
            .into_stream()
            .map_err(|error| unreadable(error.into()))?;
        while stream.advance() && stream.key().starts_with(prefix.as_bytes()) {
            endings.insert(String::from_utf8_lossy(stream.key()).into_owned());
            if endings.len() > most {
                let what = format!("too many words begin with `{prefix}`: make it longer");
                return Err(Error::Query(what));
            }
        }
    }
    Ok(endings.into_iter().collect())
}

/// Returns the names of models that contain one of these parts.
fn models(parts: &[String], searcher: &Searcher) -> Result<Vec<String>> {
    let parts: Vec<String> = parts.iter().map(|part| part.to_lowercase()).collect();
    names(MODEL, searcher, |name| {
        parts.iter().any(|part| name.contains(part.as_str()))
    })
}

/// Returns the paths that match a filter.
pub(super) fn paths(pattern: &FilePattern, searcher: &Searcher) -> Result<Vec<String>> {
    names(FILE, searcher, |path| pattern.matches(path))
}

/// Returns the values of a field that fit.
fn names(field: Field, searcher: &Searcher, fits: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(field).map_err(unreadable)?;
        let mut stream = index
            .terms()
            .stream()
            .map_err(|error| unreadable(error.into()))?;
        while stream.advance() {
            let name = String::from_utf8_lossy(stream.key());
            if fits(&name) {
                names.push(name.into_owned());
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Returns the query for any of these names, which does not affect scores.
fn one_of(field: Field, names: Vec<String>) -> Box<dyn Query> {
    let name = |name: String| -> Box<dyn Query> {
        let term = Term::from_field_text(field, &name);
        Box::new(TermQuery::new(term, IndexRecordOption::Basic))
    };
    let any = BooleanQuery::union(names.into_iter().map(name).collect());
    Box::new(ConstScoreQuery::new(Box::new(any), 0.0))
}

pub(super) fn unreadable(error: tantivy::TantivyError) -> Error {
    Error::Search {
        doing: "cannot search the full-text index",
        what: error.to_string(),
    }
}
