//! Questions, plans, texts and help over the panels.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use unicode_width::UnicodeWidthStr;

use super::rows::{
    Titles, centred, fit, line_of, overlay, put, put_lines, put_note, row, skipped, wrapped,
};
use crate::app::App;
use crate::app::overlay::{BlameBox, Choice, ChooseBox, InputBox, PlanBox, TextBox};
use crate::command::help_rows;
use crate::cursor::Cursor;
use crate::look::Look;
use backtrail_view::library::{Failure, Plan};

/// How wide a dialogue is at most.
const WIDTH: u16 = 90;

/// Draws a question that is answered by a line of text.
pub(super) fn input(app: &App, input: &InputBox, body: Rect, buf: &mut Buffer) {
    let area = centred(body, WIDTH, 3);
    let area = overlay(app.look, &Titles::top(input.label), area, buf);
    if let Some(row) = row(area, 0) {
        input.field.widget().render(row, buf);
    }
}

/// Draws a choice from a list.
pub(super) fn choose(app: &App, choose: &ChooseBox, body: Rect, buf: &mut Buffer) {
    let look = app.look;
    let wanted = u16::try_from(choose.items.len() + 3)
        .unwrap_or(u16::MAX)
        .max(5);
    let area = match choose.choice {
        Choice::File(..) => body,
        _ => centred(body, WIDTH.min(70), wanted),
    };
    let area = overlay(look, &Titles::top(choose.title.clone()), area, buf);
    let Some(first) = row(area, 0) else { return };
    choose.field.widget().render(first, buf);
    let list = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
    if choose.shown.is_empty() {
        return put_note(look, buf, list, choose.nothing());
    }
    let height = usize::from(list.height);
    let mut cursor = choose.cursor;
    cursor.fit(choose.shown.len(), height);
    let visible = choose
        .shown
        .iter()
        .enumerate()
        .skip(cursor.top)
        .take(height);
    for (y, (n, index)) in visible.enumerate() {
        let Some(row) = row(list, y) else { continue };
        let (name, text) = &choose.items[*index];
        let line = match choose.choice {
            Choice::File(..) => Line::raw(text.as_str()),
            Choice::Palette => Line::from(vec![
                Span::styled(fit(name, 10, ""), look.bold()),
                Span::raw(text.as_str()),
            ]),
            _ => Line::from(vec![
                Span::raw(fit(name, 16, "")),
                Span::styled(text.as_str(), look.dim()),
            ]),
        };
        put(buf, row, &line);
        if n == cursor.selected {
            buf.set_style(row, look.selected(true));
        }
    }
}

/// Draws what an action would do.
pub(super) fn plan(app: &App, shown: &PlanBox, body: Rect, buf: &mut Buffer) {
    let look = app.look;
    let Some(plan) = &shown.plan else {
        let area = centred(body, WIDTH.min(40), 3);
        let area = overlay(look, &Titles::default(), area, buf);
        return put_note(look, buf, area, "looking what would change");
    };
    let width = usize::from(WIDTH.min(body.width).saturating_sub(2));
    let lines = plan_lines(look, plan, width);
    let below = plan.choices.len() + usize::from(!plan.choices.is_empty());
    let wanted = u16::try_from(lines.len() + below + 2).unwrap_or(u16::MAX);
    let place = centred(body, WIDTH, wanted.max(4));
    let room = usize::from(place.height).saturating_sub(below + 2);
    let more = match lines.len() > room {
        true => "PageDown more  ",
        false => "",
    };
    let titles = Titles {
        top: plan.title.clone(),
        bottom: format!("{more}{}", keys(shown, plan)),
    };
    let area = overlay(look, &titles, place, buf);
    let top = shown.top.min(lines.len().saturating_sub(room));
    put_lines(buf, area, lines.into_iter().skip(top).take(room));
    for (n, (_, meaning)) in plan.choices.iter().enumerate() {
        let Some(row) = row(area, room + 1.min(below) + n) else {
            continue;
        };
        let is_selected = n == shown.choice;
        let mark = if is_selected {
            look.signs().next_undo
        } else {
            " "
        };
        put(buf, row, &Line::raw(format!("{mark} {meaning}")));
        if is_selected {
            buf.set_style(row, look.selected(true));
        }
    }
}

/// Returns the lines of a plan; a sentence that is too long continues on the next line.
fn plan_lines(look: Look, plan: &Plan, width: usize) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for line in &plan.lines {
        match &line[..] {
            [span] if span.text.width() > width => {
                let style = look.style(span.style);
                let broken = wrapped(&span.text, width).into_iter();
                lines.extend(broken.map(|text| Line::styled(text, style)));
            }
            _ => lines.push(line_of(look, line)),
        }
    }
    lines
}

fn keys(shown: &PlanBox, plan: &Plan) -> &'static str {
    match (shown.is_applying, plan.is_possible, plan.choices.is_empty()) {
        (true, ..) => "working",
        (false, false, _) => "Enter close",
        (false, true, true) => "Enter do it  Esc cancel",
        (false, true, false) => "j k choose  Enter do it  Esc cancel",
    }
}

/// Draws a text to read.
pub(super) fn text(app: &App, shown: &TextBox, body: Rect, buf: &mut Buffer) {
    let look = app.look;
    let bottom = match (&shown.file, shown.lines.len()) {
        (_, 0) => String::new(),
        (Some(_), lines) => format!(
            "line {} of {lines}  y copy  b blame  R restore",
            shown.top + 1
        ),
        (None, lines) => format!("line {} of {lines}  y copy", shown.top + 1),
    };
    let titles = Titles {
        top: shown.title.clone(),
        bottom,
    };
    let area = overlay(look, &titles, body, buf);
    if shown.is_loading {
        return put_note(look, buf, area, "reading");
    }
    let visible = shown.lines.iter().skip(shown.top).take(area.height.into());
    for (y, line) in visible.enumerate() {
        if let Some(row) = row(area, y) {
            put(buf, row, &line_of(look, &skipped(line, shown.skip)));
        }
    }
}

/// Draws who wrote each line of a file.
pub(super) fn blame(app: &App, shown: &BlameBox, body: Rect, buf: &mut Buffer) {
    let look = app.look;
    let ellipsis = look.signs().ellipsis;
    let selected = shown.lines.get(shown.cursor.selected);
    let titles = Titles {
        top: format!("Blame {} {}", look.signs().dot, shown.file.path),
        bottom: selected.map(|line| line.about.clone()).unwrap_or_default(),
    };
    let area = overlay(look, &titles, body, buf);
    if shown.lines.is_empty() {
        let note = if shown.is_loading {
            "reading"
        } else {
            "the file is empty"
        };
        return put_note(look, buf, area, note);
    }
    let height = usize::from(area.height);
    let mut cursor = shown.cursor;
    cursor.fit(shown.lines.len(), height);
    let visible = shown.lines.iter().enumerate().skip(cursor.top).take(height);
    let mut before: Option<(&str, &str)> = None;
    for (y, (n, line)) in visible.enumerate() {
        let Some(row) = row(area, y) else { continue };
        // A name stands where its lines begin.
        let who = (line.who.as_str(), line.when.as_str());
        let (name, when) = if before == Some(who) { ("", "") } else { who };
        before = Some(who);
        let spans = vec![
            Span::styled(fit(name, 18, ellipsis), look.fg(Color::Cyan)),
            Span::styled(format!(" {} ", fit(when, 9, ellipsis)), look.dim()),
            Span::styled(format!("{:>5} ", n + 1), look.dim()),
            Span::raw(line.text.as_str()),
        ];
        put(buf, row, &Line::from(spans));
        if n == cursor.selected {
            buf.set_style(row, look.selected(true));
        }
    }
}

/// Draws what is possible in the panel with the focus.
pub(super) fn help(app: &App, cursor: Cursor, body: Rect, buf: &mut Buffer) {
    let look = app.look;
    let rows = help_rows(app.focus);
    let wanted = u16::try_from(rows.len() + 2).unwrap_or(u16::MAX);
    let area = centred(body, WIDTH.min(70), wanted);
    let area = overlay(look, &Titles::top("What is possible here"), area, buf);
    let lines = rows.into_iter().skip(cursor.top).map(|(keys, about)| {
        Line::from(vec![
            Span::styled(fit(keys, 17, ""), look.bold()),
            Span::raw(about),
        ])
    });
    put_lines(buf, area, lines);
}

/// Draws what went wrong, and the ways out.
pub(super) fn failure(app: &App, failure: &Failure, body: Rect, buf: &mut Buffer) {
    let look = app.look;
    let width = usize::from(WIDTH.min(body.width).saturating_sub(2));
    let mut lines: Vec<Line<'_>> = wrapped(&failure.message, width)
        .into_iter()
        .map(Line::raw)
        .collect();
    for hint in &failure.hints {
        let hint = format!("hint: {hint}");
        let wrapped = wrapped(&hint, width).into_iter();
        lines.extend(wrapped.map(|line| Line::styled(line, look.fg(Color::Cyan))));
    }
    let wanted = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
    let titles = Titles {
        top: "Not done".to_owned(),
        bottom: "any key closes".to_owned(),
    };
    let area = overlay(look, &titles, centred(body, WIDTH, wanted), buf);
    put_lines(buf, area, lines);
}
