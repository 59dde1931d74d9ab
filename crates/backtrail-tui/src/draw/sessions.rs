//! The list of sessions.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use super::rows::{Titles, fit, fit_right, panel, put, put_error, put_note, row};
use crate::app::App;
use crate::command::Panel;
use backtrail_view::library::{Scope, SessionEntry};

/// What a title must keep before another column is shown.
const TITLE: usize = 24;

/// A column beside the title.
struct Column {
    width: usize,
    text: fn(&SessionEntry) -> String,
    is_right: bool,
}

/// The columns, the most important first.
const COLUMNS: [Column; 6] = [
    Column {
        width: 10,
        text: |entry| entry.when.clone(),
        is_right: true,
    },
    Column {
        width: 11,
        text: |entry| entry.agent.clone(),
        is_right: false,
    },
    Column {
        width: 8,
        text: |entry| entry.cost.clone(),
        is_right: true,
    },
    Column {
        width: 12,
        text: |entry| entry.project.clone(),
        is_right: false,
    },
    Column {
        width: 4,
        text: |entry| number(entry.turns, "t"),
        is_right: true,
    },
    Column {
        width: 4,
        text: |entry| number(entry.files, "f"),
        is_right: true,
    },
];

/// The index of the column of projects.
const PROJECT: usize = 3;

/// The order of the columns on the screen, by their index; `None` is the title.
const ORDER: [Option<usize>; 7] = [Some(1), Some(3), None, Some(4), Some(5), Some(2), Some(0)];

fn number(n: u64, unit: &str) -> String {
    match n {
        0 => String::new(),
        n => format!("{n}{unit}"),
    }
}

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let has_focus = app.focus == Panel::Sessions;
    let area = panel(app.look, has_focus, &titles(app), area, buf);
    let sessions = &app.sessions;
    if let Some(error) = &sessions.error {
        return put_error(app.look, buf, area, error);
    }
    if sessions.shown.is_empty() {
        return put_note(app.look, buf, area, &nothing(app));
    }
    let shown = columns(area.width.into(), sessions.scope);
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

fn titles(app: &App) -> Titles {
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
    let bottom = match sessions.shown.len() {
        0 => String::new(),
        shown => format!("{} of {shown}", sessions.cursor.selected + 1),
    };
    Titles { top, bottom }
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

/// Returns the columns that fit beside a title. The project is the same for all but everything.
fn columns(width: usize, scope: Scope) -> Vec<usize> {
    let mut left = width.saturating_sub(TITLE + 3);
    let mut shown = Vec::new();
    for (n, column) in COLUMNS.iter().enumerate() {
        if n == PROJECT && scope != Scope::Everything {
            continue;
        }
        if column.width + 1 > left {
            break;
        }
        left -= column.width + 1;
        shown.push(n);
    }
    shown
}

fn line<'a>(app: &App, entry: &'a SessionEntry, shown: &[usize], width: usize) -> Line<'a> {
    let look = app.look;
    let signs = look.signs();
    let mark = match () {
        () if app.sessions.is_unread(entry) => Span::styled(signs.unread, look.fg(Color::Cyan)),
        () if entry.is_damaged => Span::styled("!", look.fg(Color::Red)),
        () if entry.is_pinned => Span::styled(signs.pinned, look.fg(Color::Yellow)),
        () => Span::raw(" "),
    };
    let mut spans = vec![mark, Span::raw(" ")];
    let beside: usize = shown.iter().map(|n| COLUMNS[*n].width + 1).sum();
    let room = width.saturating_sub(3 + beside);
    for column in ORDER {
        match column {
            None => {
                spans.push(Span::raw(fit(&title(app, entry), room, signs.ellipsis)));
                spans.push(Span::raw(" "));
            }
            Some(n) if shown.contains(&n) => {
                let Column {
                    width,
                    text,
                    is_right,
                } = &COLUMNS[n];
                let text = text(entry);
                let text = match is_right {
                    true => fit_right(&text, *width, signs.ellipsis),
                    false => fit(&text, *width, signs.ellipsis),
                };
                spans.push(Span::styled(text + " ", look.dim()));
            }
            Some(_) => {}
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
    let tags: String = entry.tags.iter().map(|tag| format!(" #{tag}")).collect();
    format!("{indent}{}{tags}", entry.title)
}
