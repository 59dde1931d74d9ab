//! Matches of a search over everything.

use anstyle::Style;
use backtrail_view::library::{Answer, Line, SearchHit, SearchResults, Span};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::links;
use super::sessions::session_query;
use crate::answer::Query;
use crate::library::Site;

/// How many matches are shown, unless a request says otherwise.
const USUAL: usize = 60;
/// No request is answered with more matches.
const MOST: usize = 100_000;
/// No more words of a match are marked where it is opened.
const MARKED: usize = 8;

/// Answers with the matches of `words` in the sessions that the filters of the list leave: at most
/// `limit`.
pub(crate) fn search(site: &dyn Site, query: &Query) -> Answer<Value> {
    let filters = session_query(query, USUAL, MOST)?;
    let found = site.find_messages(query.required("words")?, &filters)?;
    Ok(json!({
        "html": results(&found).into_string(),
        "shown": found.hits.len(),
        "all": found.all,
    }))
}

fn results(found: &SearchResults) -> Markup {
    let groups = found
        .hits
        .chunk_by(|one, next| one.place.session == next.place.session);
    html! {
        @if found.hits.is_empty() { (nothing(found.suggestion.as_deref())) }
        @for group in groups {
            ul.hits { @for hit in group { li { (hit_link(hit)) } } }
        }
    }
}

fn nothing(suggestion: Option<&str>) -> Markup {
    html! {
        p.empty {
            "Nothing was found. "
            @if let Some(words) = suggestion {
                "Did you mean "
                a href={ "/?" (links::parameters(&[("q", words)])) } { (words) }
                "?"
            }
        }
    }
}

fn hit_link(hit: &SearchHit) -> Markup {
    html! {
        a.hit-row href=(links::marked_place(&hit.place, &matched(hit))) {
            span.heading {
                (hit.heading)
                @if hit.is_undone { " " span.badge { "undone" } }
            }
            @for line in &hit.snippet { span.snippet { (marked(line)) } }
        }
    }
}

/// Returns what was matched, each text once.
fn matched(hit: &SearchHit) -> Vec<&str> {
    let spans = hit.snippet.iter().flatten();
    let mut texts: Vec<&str> = Vec::new();
    for span in spans.filter(|span| is_match(span)) {
        let text = span.text.trim();
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.truncate(MARKED);
    texts
}

fn is_match(span: &Span) -> bool {
    span.style != Style::new()
}

/// Returns a line in which everything that has a style is a match.
fn marked(line: &Line) -> Markup {
    html! {
        @for span in line {
            @if is_match(span) { mark { (span.text) } } @else { (span.text) }
        }
    }
}
