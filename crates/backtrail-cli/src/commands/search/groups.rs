//! Matches, grouped by session.

use std::fmt::Write as _;

use backtrail::SessionId;
use backtrail::conversation::RelativePaths;
use backtrail_formats::agent_title;
use backtrail_index::{Hit, HitKind, SessionRow};

use super::{Found, snippet};
use crate::layout::{BOLD, DIM, Line, Span, cut, styled};
use crate::short::short;
use crate::text::one_line;
use crate::ui::Ui;
use crate::when;

/// How far the text of a match is indented.
const INDENT: usize = 4;

/// Draws the matches: a line for each session, then its matches, the best first.
pub(super) fn draw(found: &Found, ui: &Ui) -> String {
    let width = ui.width();
    let sessions = by_session(&found.answer.hits);
    let groups = sessions.iter().map(|(id, hits)| {
        let mut out = head(found, id, width) + "\n";
        let paths = paths(found.sessions.get(*id));
        for hit in hits {
            out += &draw_hit(hit, &paths, width);
        }
        out
    });
    groups.collect::<Vec<_>>().join("\n")
}

/// Groups matches by session: the one with the best match first.
pub(in crate::commands) fn by_session(hits: &[Hit]) -> Vec<(&SessionId, Vec<&Hit>)> {
    let mut sessions: Vec<(&SessionId, Vec<&Hit>)> = Vec::new();
    for hit in hits {
        match sessions.iter_mut().find(|(id, _)| **id == hit.session) {
            Some((_, hits)) => hits.push(hit),
            None => sessions.push((&hit.session, vec![hit])),
        }
    }
    sessions
}

/// Returns the agent of a session.
pub(super) fn agent(row: &SessionRow) -> Option<&str> {
    row.agent.as_deref().or(row.belongs_to.as_deref())
}

/// Returns the title of a session, else the beginning of its first prompt.
pub(in crate::commands) fn title(row: &SessionRow) -> Option<&str> {
    row.title.as_deref().or(row.begins.as_deref())
}

/// Returns how paths are shown in matches of a session.
pub(in crate::commands) fn paths(row: Option<&SessionRow>) -> RelativePaths {
    RelativePaths::new(row.and_then(|row| row.workspace.as_deref()))
}

/// Draws the line of a session: id, agent, project, when it was last active, title.
fn head(found: &Found, id: &SessionId, width: Option<usize>) -> String {
    let mut line: Line = vec![Span::new(BOLD, &short(id))];
    if let Some(row) = found.sessions.get(id) {
        line.push(Span::plain(&format!(" · {}", facts(row).join(" · "))));
        if let Some(title) = title(row) {
            let title = one_line(title, usize::MAX);
            line.extend([Span::plain(" · "), Span::new(BOLD, &title)]);
        }
    }
    styled(&cut(&line, width.unwrap_or(usize::MAX)))
}

/// Returns the agent and the project of a session, and when it was last active.
pub(in crate::commands) fn facts(row: &SessionRow) -> Vec<String> {
    let project = row.project.as_ref().map(|project| project.name.as_str());
    let names = [agent(row).map(agent_title), project].into_iter().flatten();
    let mut facts: Vec<String> = names.map(|name| one_line(name, 30)).collect();
    facts.extend(
        row.updated_at
            .map(|at| when::about(when::brief(at), row.times_from_file)),
    );
    facts
}

/// Draws a match: what `show` opens, who wrote it and when, and the text.
fn draw_hit(hit: &Hit, paths: &RelativePaths, width: Option<usize>) -> String {
    let mut place = Found::reference(hit);
    if hit.undone {
        place += &format!(" --trail {}", hit.trail);
    }
    let mut facts = vec![author(hit)];
    facts.extend(hit.at.map(when::brief));
    let mut line: Line = vec![
        Span::blank(2),
        Span::plain(&place),
        Span::new(DIM, &format!("  {}", facts.join(" · "))),
    ];
    if hit.undone {
        line.push(Span::plain(" · undone"));
    }
    let line = cut(&line, width.unwrap_or(usize::MAX));
    let mut out = styled(&line) + "\n";
    let room = width.map(|width| width.saturating_sub(INDENT).max(8));
    for line in snippet::lines(&hit.snippet, paths, room) {
        writeln!(out, "{:INDENT$}{line}", "").ok();
    }
    out
}

/// Returns who or what wrote a match, and its tools.
pub(in crate::commands) fn author(hit: &Hit) -> String {
    let tools = one_line(&hit.tools.join(", "), 40);
    let role = one_line(&hit.role, 20);
    match (hit.role.as_str(), hit.kind, tools.is_empty()) {
        ("user", HitKind::Injected, _) => "inserted by the agent".to_owned(),
        (_, _, true) => role,
        ("tool" | "user", _, false) => format!("output of {tools}"),
        (_, HitKind::Tool, false) => format!("call to {tools}"),
        (_, _, false) => format!("{role}, call to {tools}"),
    }
}
