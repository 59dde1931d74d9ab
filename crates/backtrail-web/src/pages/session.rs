//! A session: its head, its records, its outline, and copies of it.

use backtrail_view::library::Answer;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{links, sessions};
use crate::answer::Query;
use crate::library::{ContextPart, Outline, Records, RecordsRequest, Redaction, Site};

/// No request is answered with more records.
const MOST: u64 = 500;

/// Answers with a session as a whole: `ref` is an id or a short id.
pub(crate) fn session(site: &dyn Site, query: &Query) -> Answer<Value> {
    let page = site.session_page(query.required("ref")?)?;
    let entry = &page.row.entry;
    let exports = site.exports(&entry.id);
    Ok(json!({
        "id": entry.id,
        "short": entry.short,
        "title": entry.title,
        "first": page.first,
        "end": page.end,
        "writer": page.writer,
        "workspace": page.workspace,
        "html": page.head_html,
        "family": (page.family.len() > 1)
            .then(|| sessions::family(&page.family, &entry.id).into_string()),
        "formats": exports.into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
    }))
}

/// Answers with records from `first` to `last`.
pub(crate) fn records(site: &dyn Site, query: &Query) -> Answer<Value> {
    let first = query.number("first")?.unwrap_or(0);
    let last = query.number("last")?.unwrap_or(u64::MAX);
    let request = RecordsRequest {
        session: query.required("session")?.to_owned(),
        first,
        last: last.min(first.saturating_add(MOST - 1)),
        trail: query.number("trail")?,
    };
    let Records { html, end } = site.records(&request)?;
    Ok(json!({"html": html, "end": end}))
}

/// Answers with the prompts and compactions of a session.
pub(crate) fn outline(site: &dyn Site, query: &Query) -> Answer<Value> {
    let outline = site.outline(query.required("session")?)?;
    Ok(json!({"html": outline_list(&outline).into_string()}))
}

fn outline_list(outline: &Outline) -> Markup {
    html! {
        ol {
            @for entry in &outline.entries {
                li.compacted[entry.is_compaction] {
                    a href={ "#r" (entry.seq) } {
                        span {
                            @if entry.is_compaction { "compaction " }
                            @if entry.text.is_empty() && !entry.is_compaction { "(no text)" }
                            (entry.text)
                        }
                    }
                }
            }
        }
        @if outline.left > 0 { p.left { "and " (outline.left) " more" } }
    }
}

/// Answers with what fills the context of a session.
pub(crate) fn context(site: &dyn Site, query: &Query) -> Answer<Value> {
    let parts = site.context_parts(query.required("session")?)?;
    Ok(json!({"html": context_table(&parts).into_string()}))
}

fn context_table(parts: &[ContextPart]) -> Markup {
    html! {
        @if parts.is_empty() { p.empty { "Nothing is sent to a model yet." } }
        @else {
            table.context {
                thead { tr { th scope="col" { "Part" } th.right scope="col" { "Tokens" } th scope="col" { "Share" } } }
                @for part in parts {
                    tr {
                        th scope="row" { (part.name) }
                        td.right { "~" (part.shown) }
                        td.share { (bar(part.share)) " " (percent(part.share)) }
                    }
                }
            }
        }
    }
}

/// Returns a bar of a length in thousandths.
pub(super) fn bar(share: u16) -> Markup {
    let width = format!("{}.{}%", share / 10, share % 10);
    html! {
        svg.meter aria-hidden="true" { rect.bar width=(width) height="100%" {} }
    }
}

/// Returns thousandths as people write them.
fn percent(share: u16) -> String {
    match share {
        0..10 => "under 1 %".to_owned(),
        share => format!("{} %", share / 10),
    }
}

/// Answers with the whole text of a record.
pub(crate) fn text(site: &dyn Site, query: &Query) -> Answer<Value> {
    let place = query.place()?;
    let text = site.text(&place)?;
    Ok(json!({"text": text, "link": links::place(&place)}))
}

/// Answers with an export: `format`, and `redact`, which is `secrets` or `people`.
pub(crate) fn export(site: &dyn Site, query: &Query) -> Answer<Value> {
    let redaction = match query.text("redact") {
        Some("people") => Redaction::People,
        Some("secrets") => Redaction::Secrets,
        None | Some("none") => Redaction::None,
        Some(other) => {
            let message = format!("no such redaction: {other}");
            return Err(backtrail_view::library::Failure::new(message));
        }
    };
    let session = query.required("session")?;
    let exported = site.export(session, query.required("format")?, redaction)?;
    Ok(json!({
        "file_name": exported.file_name,
        "media_type": exported.media_type,
        "base64": STANDARD.encode(&exported.bytes),
        "notes": exported.notes,
    }))
}
