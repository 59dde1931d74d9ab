//! What changed, and the difference of a file.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};

use super::rows::{Titles, fit, line_of, panel, put, put_error, put_note, row};
use crate::app::App;
use crate::command::Panel;
use backtrail_view::library::ChangedFile;

pub(super) fn files(app: &App, area: Rect, buf: &mut Buffer) {
    let look = app.look;
    let has_focus = app.focus == Panel::Changes;
    let shown = &app.changes;
    let count = shown.changes.files.len();
    let dot = look.signs().dot;
    let titles = Titles {
        top: match shown.changes.title.as_str() {
            "" => "Changes".to_owned(),
            title => format!("Changes {dot} {title}"),
        },
        bottom: match count {
            0 => String::new(),
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        },
    };
    let area = panel(look, has_focus, &titles, area, buf);
    if let Some(error) = &shown.error {
        return put_error(look, buf, area, error);
    }
    if count == 0 {
        let note = match (shown.is_loading, &shown.changes.note) {
            (true, _) => "reading",
            (false, Some(note)) => note,
            (false, None) => "no files changed",
        };
        return put_note(look, buf, area, note);
    }
    let visible = shown
        .changes
        .files
        .iter()
        .enumerate()
        .skip(shown.cursor.top);
    for (y, (n, file)) in visible.take(area.height.into()).enumerate() {
        let Some(row) = row(area, y) else { continue };
        put(buf, row, &file_line(app, file, area.width.into()));
        if n == shown.cursor.selected {
            buf.set_style(row, look.selected(has_focus));
        }
    }
}

fn file_line<'a>(app: &App, file: &'a ChangedFile, width: usize) -> Line<'a> {
    let look = app.look;
    let signs = look.signs();
    let mark = match app.changes.marked.contains(&file.path) {
        true => Span::styled(signs.marked, look.fg(Color::Yellow)),
        false => Span::raw(" "),
    };
    let numbers = match file.lines {
        Some((added, removed)) => [
            Span::styled(format!("+{added} "), look.fg(Color::Green)),
            Span::styled(format!("-{removed}"), look.fg(Color::Red)),
        ],
        None => [Span::styled("binary", look.dim()), Span::raw("")],
    };
    let what = match file.what.as_str() {
        "edited" => String::new(),
        what => format!("{what} "),
    };
    let beside: usize = numbers.iter().map(Span::width).sum();
    let room = width.saturating_sub(beside + what.len() + 3);
    let mut spans = vec![mark, Span::raw(" ")];
    spans.push(Span::raw(fit(&file.path, room, signs.ellipsis)));
    spans.push(Span::raw(" "));
    spans.push(Span::styled(what, look.dim()));
    spans.extend(numbers);
    Line::from(spans)
}

pub(super) fn diff(app: &App, area: Rect, buf: &mut Buffer) {
    let look = app.look;
    let has_focus = app.focus == Panel::Diff;
    let shown = &app.diff;
    let path = shown.request.as_ref().map(|request| request.path.clone());
    let marked = match shown.marked.len() {
        0 => String::new(),
        1 => "1 hunk marked".to_owned(),
        count => format!("{count} hunks marked"),
    };
    let titles = Titles {
        top: path.unwrap_or_else(|| "Diff".to_owned()),
        bottom: marked,
    };
    let area = panel(look, has_focus, &titles, area, buf);
    if let Some(error) = &shown.error {
        return put_error(look, buf, area, error);
    }
    if shown.shown.rows.is_empty() {
        let note = match (shown.is_loading, &shown.shown.note) {
            (true, _) => "reading",
            (false, Some(note)) => note,
            (false, None) => "",
        };
        return put_note(look, buf, area, note);
    }
    let visible = shown.shown.rows.iter().enumerate().skip(shown.cursor.top);
    for (y, (n, (line, hunk))) in visible.take(area.height.into()).enumerate() {
        let Some(row) = row(area, y) else { continue };
        put(buf, row, &line_of(look, line));
        let is_marked = hunk.is_some_and(|hunk| shown.marked.contains(&hunk));
        if is_marked && let Some(cell) = buf.cell_mut((row.x, row.y)) {
            cell.set_symbol(look.signs().marked)
                .set_style(look.fg(Color::Yellow));
        }
        if has_focus && n == shown.cursor.selected {
            buf.set_style(row, look.selected(true));
        }
    }
}
