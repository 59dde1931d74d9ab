//! The search over everything.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::rows::{Titles, cut, line_of, overlay, put, put_error, put_note, row};
use crate::app::App;
use crate::app::overlay::SearchBox;
use backtrail_view::library::{Scope, SearchHit};

/// How many lines of a match are shown.
const LINES: usize = 3;

pub(super) fn draw(app: &App, search: &SearchBox, body: Rect, buf: &mut Buffer) {
    let look = app.look;
    let scope = match search.scope {
        Scope::Workspace => "in this workspace",
        Scope::Project => "in this project",
        Scope::Everything => "in everything",
    };
    let titles = Titles {
        top: format!("Search {scope} (Tab changes)"),
        bottom: count(search),
    };
    let area = overlay(look, &titles, body, buf);
    let Some(first) = row(area, 0) else { return };
    put(buf, first, &Line::styled("/ ", look.fg(Color::Cyan)));
    let typed = Rect {
        x: first.x + 2.min(first.width),
        width: first.width.saturating_sub(2),
        ..first
    };
    search.field.widget().render(typed, buf);
    let list = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    if let Some(error) = &search.error {
        return put_error(look, buf, list, error);
    }
    if search.results.hits.is_empty() {
        return put_note(look, buf, list, &nothing(search));
    }
    hits(app, search, list, buf);
}

fn count(search: &SearchBox) -> String {
    match (search.results.hits.len(), search.results.all) {
        (0, _) => String::new(),
        (hits, all) => format!("{} of {}", search.cursor.selected + 1, all.max(hits as u64)),
    }
}

fn nothing(search: &SearchBox) -> String {
    match (&search.results.suggestion, search.words().is_empty()) {
        (_, true) => "Type words to find them in every message and tool output.\n\n\
                      \"a phrase\"  rou*  and or not ( )  file:src/a.rs\n\n\
                      Enter opens the match, n and N go to the next and the previous one."
            .to_owned(),
        _ if search.is_loading => "searching".to_owned(),
        (Some(suggestion), _) => format!("nothing found; did you mean {suggestion}?"),
        (None, _) => "nothing found".to_owned(),
    }
}

/// Draws the matches so that the selected one is visible.
fn hits(app: &App, search: &SearchBox, area: Rect, buf: &mut Buffer) {
    let height = |hit: &SearchHit| 1 + hit.snippet.len().min(LINES);
    let hits = &search.results.hits;
    let selected = search.cursor.selected.min(hits.len() - 1);
    let mut start = selected;
    let mut used = height(&hits[selected]);
    while start > 0 && used + height(&hits[start - 1]) <= area.height.into() {
        start -= 1;
        used += height(&hits[start]);
    }
    let mut y = 0;
    for (n, hit) in hits.iter().enumerate().skip(start) {
        let lines = lines(app, hit, area.width.into());
        for line in lines {
            let Some(row) = row(area, y) else { return };
            put(buf, row, &line);
            if n == selected {
                buf.set_style(row, app.look.selected(true));
            }
            y += 1;
        }
    }
}

fn lines<'a>(app: &App, hit: &'a SearchHit, width: usize) -> Vec<Line<'a>> {
    let look = app.look;
    let signs = look.signs();
    let mut heading = vec![Span::styled(
        cut(&hit.heading, width, signs.ellipsis),
        look.bold(),
    )];
    if hit.is_undone {
        heading.push(Span::styled(" undone", look.fg(Color::Yellow)));
    }
    let mut lines = vec![Line::from(heading)];
    for line in hit.snippet.iter().take(LINES) {
        let mut shown = Line::from("  ");
        shown.extend(line_of(look, line));
        lines.push(shown);
    }
    lines
}
