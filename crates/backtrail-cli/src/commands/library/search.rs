//! Searching all messages, as somebody types.

use std::collections::HashMap;
use std::mem;

use backtrail::SessionId;
use backtrail_index::{Error, Hit, Index, SearchAnswer, SearchQuery, SessionRow};
use backtrail_view::library::{Failure, Place, Scope, SearchHit, SearchResults};

use super::sessions::filter;
use super::{Answer, StoreLibrary, failure, tui_lines};
use crate::commands::conversation::NO_TITLE;
use crate::commands::search::groups::{author, by_session, facts, paths, title};
use crate::commands::search::snippet::laid_out;
use crate::derived;
use crate::error::CommandError;
use crate::text::one_line;
use crate::when;

/// How many matches are shown.
const MOST: usize = 60;
/// How wide the text of a match is.
const WIDTH: usize = 76;
/// A word of fewer letters is not the beginning of another one: too many begin with it.
const SHORTEST_PREFIX: usize = 2;

pub(super) fn search(library: &StoreLibrary, words: &str, scope: Scope) -> Answer<SearchResults> {
    let index = library.recent_index().map_err(failure)?;
    let mut query = SearchQuery::new(words);
    query.filter = filter(library, scope);
    query.limit = MOST;
    find(&index, query)
}

/// Finds the matches of a query whose words are still being typed.
pub(super) fn find(index: &Index, mut query: SearchQuery) -> Answer<SearchResults> {
    if query.words.trim().is_empty() {
        return Ok(SearchResults::default());
    }
    let words = mem::take(&mut query.words);
    query.words = completed(&words);
    match index.search(&query) {
        Ok(answer) if !answer.hits.is_empty() => results(&answer, index),
        Ok(_) => {
            refuse_broken(index, &words)?;
            nothing(index, &words)
        }
        Err(error) => {
            refuse_broken(index, &words)?;
            Err(refusal(error))
        }
    }
}

fn results(answer: &SearchAnswer, index: &Index) -> Answer<SearchResults> {
    Ok(SearchResults {
        all: answer.total,
        hits: hits(answer, index).map_err(refusal)?,
        suggestion: None,
    })
}

/// Returns another spelling of a query that finds nothing, if there is one.
fn nothing(index: &Index, words: &str) -> Answer<SearchResults> {
    Ok(SearchResults {
        suggestion: index.respelled(words).map_err(refusal)?,
        ..SearchResults::default()
    })
}

/// Fails if a query is wrong as it was typed, apart from what only has to be closed.
fn refuse_broken(index: &Index, words: &str) -> Answer<()> {
    let mut typed = SearchQuery::new(closed(words.to_owned()));
    typed.limit = 1;
    match index.search(&typed) {
        Err(error @ Error::Query(_)) => Err(refusal(error)),
        _ => Ok(()),
    }
}

fn refusal(error: Error) -> Failure {
    match error {
        Error::Query(reason) => Failure::new(one_line(&reason, 100)),
        error => failure(CommandError::from(error)),
    }
}

/// Completes a query that is being typed: closes what is open, drops an operator at the end, and
/// lets the last word be the beginning of one.
fn completed(words: &str) -> String {
    let mut text = words.to_owned();
    if !is_in_quotes(&text) {
        while let Some(rest) = without_last_operator(&text) {
            text = rest;
        }
        let last = text.rsplit(|c: char| c.is_whitespace() || c == '(').next();
        if last.is_some_and(is_beginning) {
            text.push('*');
        }
    }
    closed(text)
}

fn is_in_quotes(text: &str) -> bool {
    text.matches('"').count() % 2 == 1
}

/// Closes the quotes and parentheses that are open.
fn closed(mut text: String) -> String {
    if is_in_quotes(&text) {
        text.push('"');
    }
    // Within quotes a parenthesis is a sign like any other.
    let outside = || text.split('"').step_by(2);
    let count = |sign: char| {
        outside()
            .map(|part| part.matches(sign).count())
            .sum::<usize>()
    };
    let open = count('(').saturating_sub(count(')'));
    text + &")".repeat(open)
}

/// Returns a query without the operator that it ends with, if something comes before that.
fn without_last_operator(text: &str) -> Option<String> {
    let trimmed = text.trim_end();
    let (before, last) = trimmed.rsplit_once(char::is_whitespace)?;
    let is_operator = ["and", "or", "not", "-", "("].contains(&last.to_lowercase().as_str());
    is_operator.then(|| before.to_owned())
}

fn is_beginning(word: &str) -> bool {
    let letters = word.chars().count();
    letters >= SHORTEST_PREFIX && word.chars().all(char::is_alphanumeric)
}

fn hits(answer: &SearchAnswer, index: &Index) -> backtrail_index::Result<Vec<SearchHit>> {
    let mut rows: HashMap<&SessionId, Option<SessionRow>> = HashMap::new();
    let mut hits = Vec::with_capacity(answer.hits.len());
    for (id, of_session) in by_session(&answer.hits) {
        if !rows.contains_key(id) {
            rows.insert(id, derived::session(index, id)?);
        }
        let row = rows.get(id).and_then(Option::as_ref);
        hits.extend(of_session.into_iter().map(|hit| search_hit(hit, row)));
    }
    Ok(hits)
}

fn search_hit(hit: &Hit, row: Option<&SessionRow>) -> SearchHit {
    SearchHit {
        place: Place {
            session: hit.session.to_string(),
            seq: hit.seq,
            trail: hit.undone.then_some(hit.trail),
        },
        heading: heading(hit, row),
        snippet: tui_lines(laid_out(&hit.snippet, &paths(row), WIDTH)),
        is_undone: hit.undone,
    }
}

/// Writes where a match is: title, agent and time of its session, the turn, and who wrote it.
fn heading(hit: &Hit, row: Option<&SessionRow>) -> String {
    let name = row.and_then(title).unwrap_or(NO_TITLE);
    let mut parts = vec![one_line(name, 60)];
    parts.extend(row.into_iter().flat_map(facts));
    parts.extend(hit.turn.map(|turn| format!("turn {turn}")));
    parts.push(author(hit));
    parts.extend(hit.at.map(when::brief));
    parts.join(" · ")
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
