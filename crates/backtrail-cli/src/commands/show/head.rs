//! The head of a page: what session it is.

use anstyle::Style;
use backtrail::SessionInfo;
use backtrail_formats::agent_title;

use super::sheet::Sheet;
use crate::commands::conversation::{NO_TITLE, Survey};
use crate::home::tilde;
use crate::layout::{BOLD, DIM, Span, width_of, wrap};
use crate::short::short;
use crate::text::one_line;
use crate::when;

/// Writes what a session is: its title, where and when it was, and its numbers if they are
/// known.
pub(super) fn write(
    sheet: &mut Sheet,
    title: Option<&str>,
    info: &SessionInfo,
    survey: Option<&Survey>,
) {
    let title = one_line(title.unwrap_or(NO_TITLE), 200);
    put(sheet, BOLD, &title);
    put_facts(sheet, &place_facts(info));
    put_facts(sheet, &time_facts(info, survey));
    origin(sheet, info);
    // Of a fork, the line above says so.
    let is_fork = info.forked_from.as_ref().is_some_and(|it| it.seq.is_some());
    match survey.and_then(Survey::elsewhere_note) {
        Some(note) if !is_fork => put(sheet, DIM, &note),
        _ => {}
    }
}

/// Returns which session it is, of which agent and model, and where it was.
fn place_facts(info: &SessionInfo) -> Vec<String> {
    let mut facts = vec![short(&info.id), info.id.to_string()];
    facts.extend(
        info.agent
            .as_deref()
            .map(|agent| one_line(agent_title(agent), 60)),
    );
    facts.extend(info.model.as_deref().map(|model| one_line(model, 60)));
    let root = info.workspace_root.as_ref();
    facts.extend(root.map(|root| one_line(&tilde(root), 200)));
    facts
}

/// Returns when it was, its numbers and its tags.
fn time_facts(info: &SessionInfo, survey: Option<&Survey>) -> Vec<String> {
    let mut facts: Vec<String> = span(info).into_iter().collect();
    if info.times_from_file {
        facts.push(when::FROM_FILE.to_owned());
    }
    facts.extend(survey.into_iter().flat_map(Survey::words));
    if !info.tags.is_empty() {
        facts.push(format!("tags {}", one_line(&info.tags.join(", "), 200)));
    }
    facts
}

/// Writes from when to when it was.
fn span(info: &SessionInfo) -> Option<String> {
    let from = info.created_at?;
    let begun = format!("{} {}", when::day(from), when::time(from));
    let begun = when::about(begun, info.times_from_file);
    let Some(to) = info
        .updated_at
        .filter(|to| (when::day(*to), when::time(*to)) != (when::day(from), when::time(from)))
    else {
        return Some(begun);
    };
    Some(match when::day(to) == when::day(from) {
        true => format!("{begun} to {}", when::time(to)),
        false => format!("{begun} to {} {}", when::day(to), when::time(to)),
    })
}

/// Writes what it was forked from or started by.
fn origin(sheet: &mut Sheet, info: &SessionInfo) {
    if let Some(origin) = &info.forked_from {
        let at = origin
            .seq
            .map_or_else(String::new, |seq| format!(" at record {seq}"));
        let called = match origin.branch_name.as_deref().unwrap_or_default() {
            "" => String::new(),
            name => format!(" as {}", one_line(name, 60)),
        };
        let parent = one_line(&origin.parent_session_id, 60);
        let cost = match origin.seq {
            Some(_) => "; tokens and cost until then are counted there",
            None => "",
        };
        let words = format!("forked from {parent}{at}{called}{cost}");
        put(sheet, DIM, &words);
    }
    if let Some(by) = &info.spawned_by {
        let call = one_line(&by.tool_use_id, 60);
        let (session, seq) = (&by.session_id, by.seq);
        let words = match (call.is_empty(), seq) {
            (true, _) => format!("started by session {session}"),
            (false, 0) => format!("started by tool call {call} of {session}"),
            (false, _) => format!("started by tool call {call} of {session} (record {seq})"),
        };
        put(sheet, DIM, &words);
    }
}

/// Writes facts in as few lines as they fit in; a line ends between two of them.
fn put_facts(sheet: &mut Sheet, facts: &[String]) {
    let dot = format!(" {} ", sheet.glyphs().dot);
    let mut line = String::new();
    for fact in facts {
        let longer = match line.as_str() {
            "" => fact.clone(),
            line => format!("{line}{dot}{fact}"),
        };
        if width_of(&[Span::plain(&longer)]) > sheet.room() {
            put(sheet, DIM, &line);
            line.clone_from(fact);
        } else {
            line = longer;
        }
    }
    put(sheet, DIM, &line);
}

fn put(sheet: &mut Sheet, style: Style, text: &str) {
    if !text.is_empty() {
        let lines = wrap(&[Span::new(style, text)], sheet.room());
        lines.iter().for_each(|line| sheet.head(line));
    }
}
