//! How the store is, what helps, and what is not protected.

use backtrail_view::library::Answer;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::answer::Query;
use crate::library::{Condition, Finding, Health, Protection, Site};

/// Answers with the health of the store.
pub(crate) fn health(site: &dyn Site, _: &Query) -> Answer<Value> {
    Ok(json!({"html": page(&site.health()?).into_string()}))
}

fn page(health: &Health) -> Markup {
    html! {
        section aria-labelledby="findings" {
            h2 id="findings" { "Findings" }
            @if health.findings.is_empty() { p.empty { "Nothing to report." } }
            ul.findings { @for finding in &health.findings { (finding_item(finding)) } }
        }
        section aria-labelledby="numbers" {
            h2 id="numbers" { "The store" }
            dl.numbers { @for (name, value) in &health.numbers { div { dt { (name) } dd { (value) } } } }
        }
        section aria-labelledby="unprotected" {
            h2 id="unprotected" { "Not protected" }
            @if health.protection.is_empty() { p.empty { "There are no workspaces yet." } }
            @for workspace in &health.protection { (protection(workspace)) }
            @if health.unchecked > 0 {
                p.note { (health.unchecked) " more workspaces were not looked at: that takes too long." }
            }
        }
    }
}

fn finding_item(finding: &Finding) -> Markup {
    let (class, word) = match finding.condition {
        Condition::Fine => ("fine", "fine"),
        Condition::Warning => ("warning", "warning"),
        Condition::Bad => ("bad", "problem"),
    };
    html! {
        li class=(class) {
            span.condition { (word) }
            div {
                p { b { (finding.name) } ": " (finding.text) }
                @if let Some(hint) = &finding.hint { p.hint { code { (hint) } } }
            }
        }
    }
}

fn protection(workspace: &Protection) -> Markup {
    html! {
        div.protection {
            h3 {
                (workspace.name) @if workspace.is_here { " (here)" }
                " " span.faint { (workspace.directory) }
            }
            @if let Some(problem) = &workspace.problem { p.unprotected { (problem) } }
            @if !workspace.skipped.is_empty() { (unprotected(workspace)) }
            @else if workspace.problem.is_none() { p.empty { "Everything is protected." } }
        }
    }
}

/// Lists paths: at once for this workspace, folded for others.
fn unprotected(workspace: &Protection) -> Markup {
    let number = workspace.skipped.len();
    html! {
        details open[workspace.is_here] {
            summary {
                (number) @if workspace.has_more { " or more" }
                @if number == 1 { " path" } @else { " paths" } " skipped"
            }
            div.wide { table {
                thead { tr { th scope="col" { "Path" } th scope="col" { "Reason" } } }
                @for (path, reason) in &workspace.skipped { tr { td { code { (path) } } td { (reason) } } }
            } }
        }
    }
}
