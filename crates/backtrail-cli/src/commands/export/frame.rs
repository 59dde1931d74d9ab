//! The frame of a page: its head with style and script, and the list of prompts.

use std::io::{self, Write};

use backtrail::{SessionInfo, Timestamp};
use backtrail_formats::agent_title;
use backtrail_view::CONVERSATION_CSS;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::html::write_when;
use super::markup::Html;
use crate::commands::conversation::Survey;
use crate::text::{count, one_line, plus_note};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A prompt in the list.
pub(super) struct Prompt {
    pub(super) seq: u64,
    pub(super) words: String,
}

/// Writes the page up to its first record.
///
/// It loads nothing, and runs only the one script that is named by its digest: even text
/// that was taken for markup could do nothing.
pub(super) fn write_head(
    out: &mut dyn Write,
    title: &str,
    info: &SessionInfo,
    survey: &Survey,
) -> io::Result<()> {
    let title = one_line(title, 300);
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'",
        sha256(&[CONVERSATION_CSS, STYLE]),
        sha256(&[SCRIPT]),
    );
    let mut html = Html::new();
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\"");
    html.attr("content", &policy)
        .raw(">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.raw("<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.raw("<meta name=\"generator\" content=\"backtrail\">\n<title>")
        .text(&title);
    html.raw("</title>\n<style>")
        .raw(CONVERSATION_CSS)
        .raw(STYLE)
        .raw("</style>\n</head>\n<body>\n");
    write_bar(&mut html);
    html.raw("<div id=\"page\">\n<main>\n");
    write_header(&mut html, &title, info, survey);
    out.write_all(html.as_str().as_bytes())
}

/// Returns the title of a session and what is known of it, as its page begins.
pub(in crate::commands) fn header(title: &str, info: &SessionInfo, survey: &Survey) -> String {
    let mut html = Html::new();
    write_header(&mut html, &one_line(title, 300), info, survey);
    html.into_string()
}

fn write_header(html: &mut Html, title: &str, info: &SessionInfo, survey: &Survey) {
    html.wrap("<header class=\"head\"><h1>", title, "</h1>\n");
    write_facts(html, info, survey);
    html.raw("</header>\n");
}

/// Returns the digest in Base64 by which a page names the only script and style it may use.
fn sha256(parts: &[&str]) -> String {
    STANDARD.encode(Sha256::digest(parts.concat().as_bytes()))
}

/// Writes the bar with search and buttons.
fn write_bar(html: &mut Html) {
    html.raw(
        "<div id=\"bar\" role=\"toolbar\" aria-label=\"Page\">\n\
         <a id=\"list\" class=\"button\" href=\"#prompts\" title=\"Prompts\" aria-label=\"Prompts\">☰</a>\n\
         <form id=\"search\" role=\"search\"><input type=\"search\" placeholder=\"Search this session\" aria-label=\"Search\" \
         autocomplete=\"off\" spellcheck=\"false\"><kbd>/</kbd><output></output>\
         <button type=\"button\" id=\"back\" class=\"button\" title=\"Previous (Shift+Enter)\" aria-label=\"Previous\">↑</button>\
         <button type=\"button\" id=\"on\" class=\"button\" title=\"Next (Enter)\" aria-label=\"Next\">↓</button></form>\n\
         <button type=\"button\" id=\"only\" class=\"button\" title=\"Show only what matches\" aria-pressed=\"false\">only</button>\n\
         <button type=\"button\" id=\"unfold\" class=\"button\" title=\"Unfold everything\" aria-pressed=\"false\">unfold</button>\n\
         <button type=\"button\" id=\"theme\" class=\"button\" title=\"Light or dark\" aria-label=\"Light or dark\">◐</button>\n\
         </div>\n",
    );
}

fn write_facts(html: &mut Html, info: &SessionInfo, survey: &Survey) {
    let stats = &survey.stats;
    let mut facts: Vec<String> = Vec::new();
    facts.extend(
        info.agent
            .as_deref()
            .map(|agent| one_line(agent_title(agent), 60)),
    );
    let mut models: Vec<String> = stats
        .models
        .iter()
        .map(|model| one_line(model, 60))
        .collect();
    if let Some(model) = info.model.as_deref().filter(|_| models.is_empty()) {
        models.push(one_line(model, 60));
    }
    facts.extend(models.into_iter().take(6));
    let root = info.workspace_root.as_ref();
    facts.extend(root.map(|root| one_line(&root.to_string_lossy(), 200)));
    html.raw("<p>");
    if info.created_at.is_some() {
        write_when(html, info.created_at);
        let minute = |at: Option<Timestamp>| at.map(|at| at.as_millis() / 60_000);
        if minute(info.updated_at) != minute(info.created_at) {
            html.raw(" – ");
            write_when(html, info.updated_at);
        }
    }
    html.raw("</p>\n");
    write_list(html, &facts);
    let mut facts = survey.words();
    facts.insert(1, count(stats.messages.total, "message"));
    facts.extend(
        info.tags
            .iter()
            .map(|tag| format!("#{}", one_line(tag, 60))),
    );
    write_list(html, &facts);
    let notes = [plus_note(&survey.spending), survey.elsewhere_note()];
    for note in notes.iter().flatten() {
        html.wrap("<p class=\"faint\">", note, "</p>\n");
    }
    html.wrap("<p class=\"faint\"><code>", info.id.as_ref(), "</code>");
    if let Some(origin) = &info.forked_from {
        html.wrap(
            " · forked from <code>",
            &one_line(&origin.parent_session_id, 60),
            "</code>",
        );
    }
    if let Some(by) = &info.spawned_by {
        html.wrap(
            " · started by a call in <code>",
            by.session_id.as_ref(),
            "</code>",
        );
    }
    html.raw("</p>\n");
}

fn write_list(html: &mut Html, facts: &[String]) {
    if facts.is_empty() {
        return;
    }
    html.raw("<p class=\"facts\">");
    for fact in facts {
        html.wrap("<span>", fact, "</span>");
    }
    html.raw("</p>\n");
}

/// Writes the page from its last record on.
pub(super) fn write_foot(out: &mut dyn Write, prompts: &[Prompt], left: u64) -> io::Result<()> {
    out.write_all(b"</main>\n<nav id=\"prompts\" aria-label=\"Prompts\"><h2>Prompts</h2>\n<ol>\n")?;
    for prompt in prompts {
        let mut html = Html::new();
        html.raw("<li><a href=\"#r")
            .number(prompt.seq)
            .raw("\"><span>");
        match prompt.words.as_str() {
            "" => html.raw("(no text)"),
            words => html.text(words),
        };
        html.raw("</span></a></li>\n");
        out.write_all(html.as_str().as_bytes())?;
    }
    let mut html = Html::new();
    html.raw("</ol>");
    if left > 0 {
        html.raw("<p class=\"left\">and ")
            .number(left)
            .raw(" more</p>");
    }
    html.raw("</nav>\n</div>\n<script>")
        .raw(SCRIPT)
        .raw("</script>\n</body>\n</html>\n");
    out.write_all(html.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_are_safe_in_a_page() {
        for text in [CONVERSATION_CSS, STYLE, SCRIPT] {
            let lower = text.to_ascii_lowercase();
            assert!(!lower.contains("</") && !lower.contains("<!--"));
            // Nothing is fetched from anywhere, and nothing is made of text but text.
            for banned in [
                "http:",
                "https:",
                "url(",
                "@import",
                "innerhtml",
                "eval(",
                "fetch(",
                "insertadjacent",
            ] {
                assert!(!lower.contains(banned), "{banned}");
            }
        }
    }
}
