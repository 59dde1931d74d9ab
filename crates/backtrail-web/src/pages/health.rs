//! How the store is, what helps, and what is not protected.

use backtrail_view::library::Answer;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::answer::Query;
use crate::library::{Condition, Finding, Health, Site};

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
            h2 id="unprotected" { "Not protected in this workspace" }
            @if health.not_protected.is_empty() { p.empty { "Everything here is protected." } }
            @else { (unprotected(&health.not_protected)) }
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

fn unprotected(paths: &[(String, String)]) -> Markup {
    html! {
        div.wide { table {
            thead { tr { th scope="col" { "Path" } th scope="col" { "Reason" } } }
            @for (path, reason) in paths { tr { td { code { (path) } } td { (reason) } } }
        } }
    }
}
