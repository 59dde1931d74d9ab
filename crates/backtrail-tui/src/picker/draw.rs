//! Drawing a picker: from its state alone.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line as TextLine, Span as TextSpan};
use unicode_width::UnicodeWidthStr;

use super::areas::Areas;
use super::choices::Choice;
use super::state::PickerState;
use crate::columns::{fit, window};
use crate::look::Look;
use backtrail_view::clean::shown;
use backtrail_view::library::{Line, Span};

/// The columns of the sign before a choice.
const SIGN: usize = 2;
/// The blanks between two columns.
const GAP: usize = 2;
/// What the last column keeps before another one follows it.
const TEXT: usize = 24;

/// Draws a picker.
pub(super) fn draw(state: &PickerState, frame: &mut Frame<'_>) {
    let areas = Areas::of(frame.area());
    draw_line(state, frame, areas.line);
    draw_list(state, frame, areas.list);
    draw_rule(state.look, frame, areas.rule);
    draw_preview(state, frame, areas.preview);
}

fn draw_line(state: &PickerState, frame: &mut Frame<'_>, area: Rect) {
    let count = match state.is_loaded {
        true => format!(" {}/{}", state.listed().len(), state.all()),
        false => " loading".to_owned(),
    };
    let title = format!("{} ", state.title);
    let room = usize::from(area.width).saturating_sub(title.width() + count.width() + 1);
    // The end of what is typed stays in sight.
    let skip = state.typed.width().saturating_sub(room);
    let typed = window(&[Span::plain(&state.typed)], skip, room);
    let typed = typed.into_iter().map(|span| span.text).collect::<String>();
    let at = title.width() + typed.width();
    let gap = " ".repeat(room.saturating_sub(typed.width()) + 1);
    let line = TextLine::from(vec![
        TextSpan::styled(title, state.look.bold()),
        TextSpan::raw(typed),
        TextSpan::raw(gap),
        TextSpan::styled(count, state.look.dim()),
    ]);
    frame.render_widget(line, area);
    let x = area.x
        + u16::try_from(at)
            .unwrap_or(0)
            .min(area.width.saturating_sub(1));
    frame.set_cursor_position(Position::new(x, area.y));
}

fn draw_list(state: &PickerState, frame: &mut Frame<'_>, area: Rect) {
    if state.is_loaded && state.listed().len() == 0 {
        let message = state.error.as_deref().unwrap_or("no matches");
        frame.render_widget(TextSpan::styled(shown(message), state.look.dim()), area);
        return;
    }
    let visible = state.listed().skip(state.cursor.top);
    let visible: Vec<&Choice> = visible.take(usize::from(area.height)).collect();
    let widths = Widths::of(&visible, usize::from(area.width).saturating_sub(SIGN));
    for (y, (n, choice)) in area.rows().zip((state.cursor.top..).zip(visible)) {
        let is_selected = n == state.cursor.selected;
        let sign = match is_selected {
            true => state.look.signs().selected,
            false => " ",
        };
        let text = format!("{sign} {}", widths.row(choice, state.look));
        let cut = window(&[Span::plain(text)], 0, usize::from(y.width));
        let line = to_text(&cut, state.look);
        frame.render_widget(line, y);
        if is_selected {
            frame.buffer_mut().set_style(y, state.look.selected(true));
        }
    }
}

/// How wide each column is.
struct Widths {
    columns: Vec<usize>,
    /// Those that follow; `None` if there is no room.
    beside: Vec<Option<usize>>,
}

impl Widths {
    /// The last column takes what is left. It is as wide as its texts, but what follows it goes
    /// before it is cut to less than [`TEXT`].
    fn of(choices: &[&Choice], room: usize) -> Self {
        let mut columns = widest(choices.iter().map(|choice| &choice.columns));
        let text = columns.pop().unwrap_or(0);
        let before: usize = columns.iter().map(|width| width + GAP).sum();
        let mut left = room.saturating_sub(before);
        let all = widest(choices.iter().map(|choice| &choice.beside)).into_iter();
        let beside = all.map(|width| {
            let rest = left.checked_sub(width + GAP)?;
            (rest >= text.min(TEXT)).then(|| {
                left = rest;
                width
            })
        });
        let beside: Vec<Option<usize>> = beside.collect();
        columns.push(text.min(left));
        Self { columns, beside }
    }

    fn row(&self, choice: &Choice, look: Look) -> String {
        let own = choice.columns.iter().zip(self.columns.iter().copied());
        let beside = choice.beside.iter().zip(&self.beside);
        let beside = beside.filter_map(|(text, width)| Some((text, (*width)?)));
        let cells = own.chain(beside);
        let cells = cells.map(|(text, width)| fit(&shown(text), width, look.signs().ellipsis));
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP))
    }
}

/// Returns the width of the widest text of each column.
fn widest<'c>(rows: impl Iterator<Item = &'c Vec<String>>) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        for (n, column) in row.iter().enumerate() {
            if n == widths.len() {
                widths.push(0);
            }
            widths[n] = widths[n].max(shown(column).width());
        }
    }
    widths
}

fn draw_rule(look: Look, frame: &mut Frame<'_>, area: Rect) {
    let sign = match (area.height > 1, look.unicode) {
        (true, true) => "│",
        (true, false) => "|",
        (false, true) => "─",
        (false, false) => "-",
    };
    for row in area.rows() {
        let times = if area.height > 1 {
            1
        } else {
            usize::from(area.width)
        };
        frame.render_widget(TextSpan::styled(sign.repeat(times), look.dim()), row);
    }
}

fn draw_preview(state: &PickerState, frame: &mut Frame<'_>, area: Rect) {
    let lines = match state.preview() {
        None => return,
        Some(Ok(preview)) => {
            let height = usize::from(area.height);
            let hidden = preview.lines.len().saturating_sub(height);
            let first = if preview.shows_end { hidden } else { 0 };
            &preview.lines[first..]
        }
        Some(Err(failure)) => &[vec![Span::plain(shown(&failure.message))]],
    };
    for (row, line) in area.rows().zip(lines) {
        let cut = window(line, 0, usize::from(row.width));
        frame.render_widget(to_text(&cut, state.look), row);
    }
}

fn to_text(line: &Line, look: Look) -> TextLine<'_> {
    let spans = line.iter();
    let spans = spans.map(|span| TextSpan::styled(span.text.as_str(), look.style(span.style)));
    TextLine::from(spans.collect::<Vec<_>>())
}
