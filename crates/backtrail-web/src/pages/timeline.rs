//! What happened in a workspace, and which workspaces there are.

use backtrail_view::library::{Answer, Timeline, TimelineRow};
use backtrail_view::style_classes::style_classes;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::links;
use crate::answer::Query;
use crate::library::{Site, WorkspaceEntry};

/// No request is answered with more rows.
const MOST: usize = 100_000;

/// Answers with the newest rows, at most `limit`.
pub(crate) fn timeline(site: &dyn Site, query: &Query) -> Answer<Value> {
    let limit = query.number("limit")?.unwrap_or(100).min(MOST);
    let timeline = site.timeline(limit)?;
    Ok(json!({
        "html": rows(&timeline).into_string(),
        "workspace": timeline.workspace,
        "name": timeline.name,
        "count": timeline.rows.len(),
        "has_more": timeline.has_more,
        "next_undo": site.next_undo(),
    }))
}

fn rows(timeline: &Timeline) -> Markup {
    let days = timeline
        .rows
        .chunk_by(|one, next| next.day.is_empty() || next.day == one.day);
    html! {
        ol.timeline {
            @for rows in days {
                @if let Some(first) = rows.first().filter(|row| !row.day.is_empty()) {
                    li.day { h2 { (first.day) } }
                }
                @for row in rows { li { (row_button(row)) } }
            }
        }
    }
}

fn row_button(row: &TimelineRow) -> Markup {
    let place = row.session.as_ref();
    html! {
        button.moment.undone[row.step == Some(false)] type="button" data-id=(row.id)
            data-session=[place.map(|it| &it.session)] data-seq=[place.map(|it| it.seq)]
            data-trail=[place.and_then(|it| it.trail)] data-href=[place.map(links::place)] {
            span.at { (row.at) }
            span class={ "kind " (style_classes(row.style)) } { (row.kind) }
            span.about { (row.about) }
            span.step { (step_words(row.step)) }
            span.change { (row.change) }
            span.short { (row.short) }
        }
    }
}

fn step_words(step: Option<bool>) -> &'static str {
    match step {
        Some(true) => "→ next undo",
        Some(false) => "undone",
        None => "",
    }
}

/// Answers with the workspaces that have checkpoints.
pub(crate) fn workspaces(site: &dyn Site, _: &Query) -> Answer<Value> {
    let all = site.workspaces()?;
    Ok(json!({"html": options(&all).into_string(), "count": all.len()}))
}

fn options(all: &[WorkspaceEntry]) -> Markup {
    html! {
        @for workspace in all {
            option value=(workspace.id) selected[workspace.is_here] {
                (workspace.name) " — " (workspace.directory)
                @if workspace.is_here { " (here)" }
            }
        }
    }
}
