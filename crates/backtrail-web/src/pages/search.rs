//! Matches of a search over everything.

use anstyle::Style;
use backtrail_view::library::{Answer, Line, SearchHit, SearchResults};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::links;
use crate::answer::Query;
use crate::library::Site;

/// Answers with the matches of `words`.
pub(crate) fn search(site: &dyn Site, query: &Query) -> Answer<Value> {
    let found = site.search(query.required("words")?, query.scope()?)?;
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
        a.hit-row href=(links::place(&hit.place)) {
            span.heading {
                (hit.heading)
                @if hit.is_undone { " " span.badge { "undone" } }
            }
            @for line in &hit.snippet { span.snippet { (marked(line)) } }
        }
    }
}

/// Returns a line in which everything that has a style is a match.
fn marked(line: &Line) -> Markup {
    html! {
        @for span in line {
            @if span.style == Style::new() { (span.text) } @else { mark { (span.text) } }
        }
    }
}
