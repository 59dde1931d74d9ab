//! What was spent, as bars.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::rows::{Titles, fit, fit_right, panel, put, put_error, put_note, row};
use super::sessions::scope_words;
use crate::app::App;
use crate::app::costs::GROUPINGS;
use crate::command::Panel;
use crate::look::Look;
use backtrail_view::library::{CostRow, CostsBy};

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let look = app.look;
    let shown = &app.costs;
    let by = GROUPINGS.iter().find(|(by, _)| *by == shown.by());
    let titles = Titles {
        top: format!(
            "{} by {} {} {}",
            match shown.by() {
                CostsBy::Tool => "Calls",
                _ => "Costs",
            },
            by.map_or("", |(_, name)| name),
            look.signs().dot,
            scope_words(app.sessions.scope)
        ),
        bottom: shown.costs.total.clone(),
    };
    let area = panel(look, app.focus == Panel::Costs, &titles, area, buf);
    if let Some(error) = &shown.error {
        return put_error(look, buf, area, error);
    }
    if shown.costs.rows.is_empty() {
        let note = if shown.is_loaded {
            "no usage recorded yet"
        } else {
            "reading"
        };
        return put_note(look, buf, area, note);
    }
    let widths = Widths::new(&shown.costs.rows, area.width.into());
    let visible = shown.costs.rows.iter().enumerate().skip(shown.cursor.top);
    for (y, (n, group)) in visible.take(area.height.into()).enumerate() {
        let Some(row) = row(area, y) else { continue };
        put(buf, row, &line(look, group, &widths));
        if n == shown.cursor.selected {
            buf.set_style(row, look.selected(true));
        }
    }
}

/// The widths of the columns.
struct Widths {
    name: usize,
    cost: usize,
    tokens: usize,
    bar: usize,
}

impl Widths {
    fn new(rows: &[CostRow], width: usize) -> Self {
        let widest = |text: fn(&CostRow) -> &str| rows.iter().map(|row| text(row).width()).max();
        let name = widest(|row| &row.name).unwrap_or(0).min(width / 3);
        let cost = widest(|row| &row.cost).unwrap_or(0);
        let tokens = widest(|row| &row.tokens).unwrap_or(0);
        let bar = width.saturating_sub(name + cost + tokens + 4);
        Self {
            name,
            cost,
            tokens,
            bar,
        }
    }
}

fn line<'a>(look: Look, row: &'a CostRow, widths: &Widths) -> Line<'a> {
    let ellipsis = look.signs().ellipsis;
    Line::from(vec![
        Span::raw(fit(&row.name, widths.name, ellipsis)),
        Span::raw(" "),
        Span::styled(
            fit(&bar(look, row.share, widths.bar), widths.bar, ""),
            look.fg(Color::Cyan),
        ),
        Span::raw(" "),
        Span::styled(fit_right(&row.cost, widths.cost, ellipsis), look.bold()),
        Span::raw("  "),
        Span::styled(fit_right(&row.tokens, widths.tokens, ellipsis), look.dim()),
    ])
}

/// Returns a bar of `share` thousandths of a width.
fn bar(look: Look, share: u16, width: usize) -> String {
    let signs = look.signs();
    let parts = signs.bar_parts.len();
    let length = usize::from(share.min(1000)) * width * parts / 1000;
    let rest = signs.bar_parts[length % parts];
    signs.bar.repeat(length / parts) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_longer_than_its_room() {
        for unicode in [true, false] {
            let look = Look {
                unicode,
                ..Look::default()
            };
            assert_eq!(bar(look, 0, 20), "");
            assert_eq!(bar(look, 500, 20).width(), 10);
            assert_eq!(bar(look, 1000, 20).width(), 20);
            assert_eq!(bar(look, u16::MAX, 20).width(), 20);
        }
    }
}
