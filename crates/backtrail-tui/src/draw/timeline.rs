//! The timeline of the workspace.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::rows::{Titles, fit, fit_right, panel, put, put_error, put_note, row};
use crate::app::App;
use crate::command::Panel;
use backtrail_view::library::TimelineRow;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let look = app.look;
    let has_focus = app.focus == Panel::Timeline;
    let panel_state = &app.timeline;
    let rows = &panel_state.timeline.rows;
    let day = panel_state.selected().map(|row| row.day.clone());
    let dot = look.signs().dot;
    let titles = Titles {
        top: match panel_state.timeline.name.as_str() {
            "" => "Timeline".to_owned(),
            name => format!("Timeline {dot} {name}"),
        },
        bottom: day.unwrap_or_default(),
    };
    let area = panel(look, has_focus, &titles, area, buf);
    if let Some(error) = &panel_state.error {
        return put_error(look, buf, area, error);
    }
    if rows.is_empty() {
        let note = match panel_state.is_loaded {
            false => "reading",
            true => {
                "Nothing happened here yet.\n\nBacktrail keeps the files around an agent's \
                     turns:\n  backtrail setup\nor around any command:\n  backtrail run -- COMMAND"
            }
        };
        return put_note(look, buf, area, note);
    }
    let visible = rows.iter().enumerate().skip(panel_state.cursor.top);
    for (y, (n, entry)) in visible.take(area.height.into()).enumerate() {
        let Some(row) = row(area, y) else { continue };
        let is_new_day = n == 0 || rows[n - 1].day != entry.day;
        put(buf, row, &line(app, entry, is_new_day, area.width.into()));
        if n == panel_state.cursor.selected {
            buf.set_style(row, look.selected(has_focus));
        }
    }
}

fn line<'a>(app: &App, entry: &'a TimelineRow, is_new_day: bool, width: usize) -> Line<'a> {
    let look = app.look;
    let signs = look.signs();
    let is_marked = app.timeline.mark.as_ref() == Some(&entry.id);
    let mark = match (is_marked, entry.step) {
        (true, _) => Span::styled(signs.marked, look.fg(Color::Yellow)),
        (false, Some(true)) => Span::styled(signs.next_undo, look.fg(Color::Green)),
        (false, Some(false)) => Span::styled(signs.undone, look.dim()),
        (false, None) => Span::raw(" "),
    };
    let at = match is_new_day {
        true => look.bold(),
        false => look.dim(),
    };
    let mut about = ratatui::style::Style::new();
    if entry.step == Some(false) {
        about = about.add_modifier(Modifier::DIM);
    }
    let change = entry.change.width().min(width / 3);
    let kind = if width < 50 { 7 } else { 10 };
    let room = width.saturating_sub(2 + 6 + kind + 1 + change + 1);
    Line::from(vec![
        mark,
        Span::raw(" "),
        Span::styled(fit(&entry.at, 6, signs.ellipsis), at),
        Span::styled(
            fit(&entry.kind, kind, signs.ellipsis),
            look.style(entry.style),
        ),
        Span::raw(" "),
        Span::styled(fit(&entry.about, room, signs.ellipsis), about),
        Span::raw(" "),
        Span::styled(fit_right(&entry.change, change, signs.ellipsis), look.dim()),
    ])
}
