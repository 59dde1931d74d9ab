//! The list of sessions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use super::rows::{Titles, fit, fit_right, panel, put, put_error, put_note, row};
use crate::app::App;
use crate::command::Panel;
use crate::session_columns::{AGENT, COLUMNS, ORDER, PROJECT};
use backtrail_view::library::{Scope, SessionEntry};

/// The columns of the mark before a row.
const MARK: usize = 2;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let has_focus = app.focus == Panel::Sessions;
    let shown = columns(app, area.width);
    let area = panel(app.look, has_focus, &titles(app, &shown), area, buf);
    let sessions = &app.sessions;
    if let Some(error) = &sessions.error {
        return put_error(app.look, buf, area, error);
    }
    if sessions.shown.is_empty() {
        return put_note(app.look, buf, area, &nothing(app));
    }
    let visible = sessions.shown.iter().enumerate().skip(sessions.cursor.top);
    for (y, (n, index)) in visible.take(area.height.into()).enumerate() {
        let (Some(row), Some(entry)) = (row(area, y), sessions.list.entries.get(*index)) else {
            continue;
        };
        put(buf, row, &line(app, entry, &shown, area.width.into()));
        if n == sessions.cursor.selected {
            buf.set_style(row, app.look.selected(has_focus));
        }
    }
}

fn titles(app: &App, shown: &[(usize, usize)]) -> Titles {
    let sessions = &app.sessions;
    let scope = match (&sessions.only, sessions.scope) {
        (Some((name, _)), _) => name.as_str(),
        (None, scope) => scope_words(scope),
    };
    let dot = app.look.signs().dot;
    let mut top = format!("Sessions {dot} {scope}");
    if !sessions.filter.is_empty() {
        top = format!("{top} {dot} filter: {}", sessions.filter);
    }
    let mut bottom = sessions.selected().map_or_else(Vec::new, |entry| {
        let place = format!(
            "{} of {}",
            sessions.cursor.selected + 1,
            sessions.shown.len()
        );
        let facts = beside(entry, sessions.scope, shown);
        facts.into_iter().chain([place]).collect()
    });
    bottom.retain(|fact| !fact.is_empty());
    Titles {
        top,
        bottom: bottom.join(&format!(" {dot} ")),
    }
}

/// Returns what is known of a session and has no column.
fn beside(entry: &SessionEntry, scope: Scope, shown: &[(usize, usize)]) -> Vec<String> {
    let is_hidden = |column: usize| shown.iter().all(|(it, _)| *it != column);
    let mut facts = Vec::new();
    if entry.is_sub_agent {
        facts.push("sub-agent".to_owned());
    }
    if is_hidden(AGENT) {
        facts.push(entry.agent.clone());
    }
    if scope == Scope::Everything && is_hidden(PROJECT) {
        facts.push(entry.project.clone());
    }
    facts
}

/// Names a scope.
pub(super) fn scope_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Workspace => "this workspace",
        Scope::Project => "this project",
        Scope::Everything => "all",
    }
}

fn nothing(app: &App) -> String {
    let sessions = &app.sessions;
    if !sessions.is_loaded {
        return "reading sessions".to_owned();
    }
    if !sessions.filter.is_empty() {
        return "no session matches; Esc clears the filter".to_owned();
    }
    match (sessions.list.all, sessions.scope) {
        (0, _) => {
            "No sessions yet.\n\nRun an agent under Backtrail:\n  backtrail run -- COMMAND\n\n\
                   or import what agents wrote:\n  backtrail import"
                .to_owned()
        }
        (_, Scope::Everything) => "no sessions".to_owned(),
        (all, _) => format!("no sessions here; a shows all {all}"),
    }
}

/// Returns the columns of a panel of a width, borders included.
fn columns(app: &App, width: u16) -> Vec<(usize, usize)> {
    let room = usize::from(width).saturating_sub(2 + MARK + 1);
    app.sessions.widths.fitting(room, app.sessions.scope)
}

fn line<'a>(
    app: &App,
    entry: &'a SessionEntry,
    shown: &[(usize, usize)],
    width: usize,
) -> Line<'a> {
    let look = app.look;
    let signs = look.signs();
    let mark = match () {
        () if app.sessions.is_unread(entry) => Span::styled(signs.unread, look.fg(Color::Cyan)),
        () if entry.is_damaged => Span::styled("!", look.fg(Color::Red)),
        () if entry.is_pinned => Span::styled(signs.pinned, look.fg(Color::Yellow)),
        () => Span::raw(" "),
    };
    let mut spans = vec![mark, Span::raw(" ")];
    let beside: usize = shown.iter().map(|(_, width)| width + 1).sum();
    let room = width.saturating_sub(MARK + 1 + beside);
    for column in ORDER {
        match column {
            None => {
                spans.push(Span::raw(fit(&title(app, entry), room, signs.ellipsis)));
                spans.push(Span::raw(" "));
            }
            Some(n) => {
                let of_column = shown.iter().find(|(column, _)| *column == n);
                spans.extend(of_column.map(|(_, width)| {
                    let text = (COLUMNS[n].text)(entry);
                    let text = match COLUMNS[n].is_right {
                        true => fit_right(&text, *width, signs.ellipsis),
                        false => fit(&text, *width, signs.ellipsis),
                    };
                    Span::styled(text + " ", look.dim())
                }));
            }
        }
    }
    Line::from(spans)
}

fn title(app: &App, entry: &SessionEntry) -> String {
    let signs = app.look.signs();
    let indent = match entry.depth {
        0 => String::new(),
        depth => "  ".repeat(depth - 1) + signs.branch,
    };
    let kind = match entry.is_sub_agent {
        true => signs.sub_agent,
        false => "",
    };
    let tags: String = entry.tags.iter().map(|tag| format!(" #{tag}")).collect();
    format!("{indent}{kind}{}{tags}", entry.title)
}
