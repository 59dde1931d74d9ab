//! The list of sessions and what it can be filtered by.

use backtrail_view::library::{Answer, SessionEntry};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::links;
use crate::answer::Query;
use crate::library::{FilterChoices, SessionQuery, SessionRow, Site};

/// How many rows are shown, unless a request says otherwise.
const USUAL: usize = 100;
/// No request is answered with more rows.
const MOST: usize = 500;
/// Deeper generations are shown at this depth.
const DEEPEST: usize = 6;

/// Answers with rows: `skip`, `limit`, and what they are filtered by.
pub(crate) fn sessions(site: &dyn Site, query: &Query) -> Answer<Value> {
    let found = site.find_sessions(&session_query(query, USUAL, MOST)?)?;
    Ok(json!({
        "html": rows(&found.rows).into_string(),
        "matching": found.matching,
        "all": found.all,
    }))
}

/// Reads what a request filters by, and how much of it is wanted.
pub(super) fn session_query(query: &Query, usual: usize, most: usize) -> Answer<SessionQuery> {
    Ok(SessionQuery {
        scope: query.scope()?,
        agents: query.texts("agent"),
        projects: query.texts("project"),
        models: query.texts("model"),
        tags: query.texts("tag"),
        since: query.text("since").map(str::to_owned),
        until: query.text("until").map(str::to_owned),
        title: query.text("title").unwrap_or_default().to_owned(),
        with_wordless: query.text("wordless").is_some(),
        skip: query.number("skip")?.unwrap_or(0),
        limit: query.number("limit")?.unwrap_or(usual).min(most),
    })
}

fn rows(rows: &[SessionRow]) -> Markup {
    html! { @for row in rows { li { (row_link(row)) } } }
}

fn row_link(row: &SessionRow) -> Markup {
    let entry = &row.entry;
    html! {
        a.row.sub[entry.is_sub_agent] href=(links::session(&entry.id)) data-session=(entry.id)
            data-last=(entry.last_seq) data-updated=(entry.updated_ms) {
            span class={ "title" (depth_class(entry.depth)) } { (title(entry)) }
            span.agent { (entry.agent) }
            span.project { (entry.project) }
            span.model { (row.model) }
            span.turns { (counted(entry.turns, "turn")) }
            span.changed { (counted(entry.files, "file")) }
            span.tokens title="tokens" { (row.tokens) }
            span.cost { (entry.cost) }
            span.when { (entry.when) }
        }
    }
}

fn title(entry: &SessionEntry) -> Markup {
    let title = match entry.title.as_str() {
        "" => "(no title)",
        title => title,
    };
    html! {
        @if entry.is_pinned { span.badge { "pinned" } " " }
        @if entry.is_damaged { span.badge.bad { "damaged" } " " }
        @if entry.is_sub_agent { span.badge { "sub-agent" } " " }
        b { (title) }
        @for tag in &entry.tags { " " span.tag { "#" (tag) } }
    }
}

/// Returns the class of a row that belongs below another one.
fn depth_class(depth: usize) -> String {
    match depth {
        0 => String::new(),
        depth => format!(" below d{}", depth.min(DEEPEST)),
    }
}

/// Returns a number with what it counts; nothing for none.
fn counted(number: u64, noun: &str) -> String {
    match number {
        0 => String::new(),
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// Returns a family as a tree, with one of its sessions marked.
pub(super) fn family(entries: &[SessionEntry], current: &str) -> Markup {
    html! {
        ul.family {
            @for entry in entries {
                li class=(depth_class(entry.depth)) {
                    a href=(links::session(&entry.id)) aria-current=[(entry.id == current).then_some("page")] {
                        (title(entry))
                    }
                    span.faint { " " (entry.agent) " · " (entry.when) }
                }
            }
        }
    }
}

/// Answers with what sessions can be filtered by.
pub(crate) fn choices(site: &dyn Site, _: &Query) -> Answer<Value> {
    let html = options(&site.choices()?).into_string();
    Ok(json!({"html": html}))
}

fn options(choices: &FilterChoices) -> Markup {
    let same = |names: &[String]| -> Vec<(String, String)> {
        let names = names.iter();
        names.map(|name| (name.clone(), name.clone())).collect()
    };
    html! {
        (select("agent", "Agent", &choices.agents))
        (select("project", "Project", &same(&choices.projects)))
        (select("model", "Model", &same(&choices.models)))
        (select("tag", "Tag", &same(&choices.tags)))
    }
}

fn select(name: &str, label: &str, choices: &[(String, String)]) -> Markup {
    html! {
        label { span { (label) } select name=(name) {
            option value="" { "any" }
            @for (value, title) in choices { option value=(value) { (title) } }
        } }
    }
}
