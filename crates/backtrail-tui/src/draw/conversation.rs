//! The conversation.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::rows::{Titles, line_of, panel, put, put_error, put_note, row};
use crate::app::App;
use crate::command::Panel;

pub(super) fn draw(app: &App, area: Rect, buf: &mut Buffer) {
    let look = app.look;
    let has_focus = app.focus == Panel::Conversation;
    let Some(reader) = &app.reader else {
        let area = panel(look, has_focus, &Titles::top("Conversation"), area, buf);
        return put_note(look, buf, area, "no session is selected");
    };
    let dot = look.signs().dot;
    let place = reader
        .selected()
        .map(|part| format!("record {} of {}", part.seq, reader.end));
    let mut bottom: Vec<String> = place.into_iter().collect();
    bottom.extend(
        reader
            .writer
            .iter()
            .map(|writer| format!("written by {writer}")),
    );
    bottom.push(reader.facts.clone());
    bottom.retain(|text| !text.is_empty());
    let titles = Titles {
        top: reader.title.clone(),
        bottom: bottom.join(&format!(" {dot} ")),
    };
    let area = panel(look, has_focus, &titles, area, buf);
    if let Some(error) = &reader.error {
        return put_error(look, buf, area, error);
    }
    if reader.is_empty() {
        let note = if reader.is_opening() { "opening" } else { "" };
        return put_note(look, buf, area, note);
    }
    let words = search_words(app);
    let selected = reader.selected_lines();
    let lines = reader.parts().flat_map(|part| &part.lines).enumerate();
    let visible = lines.skip(reader.cursor.top).take(area.height.into());
    for (y, (n, line)) in visible.enumerate() {
        let Some(row) = row(area, y) else { continue };
        let gutter = match (selected.contains(&n), has_focus) {
            (true, true) => Span::styled(look.signs().selected, look.border(true)),
            (true, false) => Span::styled(look.signs().selected, look.dim()),
            (false, _) => Span::raw(" "),
        };
        let mut shown = Line::from(vec![gutter, Span::raw(" ")]);
        shown.extend(emphasised(line_of(look, line), &words));
        put(buf, row, &shown);
        if has_focus && n == reader.cursor.selected {
            buf.set_style(row, look.selected(true));
        }
    }
}

/// Returns the words of the last search, in lower case.
fn search_words(app: &App) -> Vec<String> {
    let Some(found) = &app.found else {
        return Vec::new();
    };
    let words = found.words().split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| word.len() > 1 && !matches!(*word, "and" | "or" | "not"));
    words.map(str::to_lowercase).collect()
}

/// Marks the words that were searched for.
fn emphasised<'a>(line: Line<'a>, words: &[String]) -> Line<'a> {
    if words.is_empty() {
        return line;
    }
    let mut spans = Vec::new();
    for span in line.spans {
        split(span, words, &mut spans);
    }
    Line::from(spans)
}

fn split<'a>(span: Span<'a>, words: &[String], into: &mut Vec<Span<'a>>) {
    let lower = span.content.to_lowercase();
    // Only where lower case has the same bytes can places be told.
    if lower.len() != span.content.len() {
        return into.push(span);
    }
    let mark = Style::new()
        .fg(Color::Black)
        .bg(Color::Yellow)
        .add_modifier(Modifier::BOLD);
    let mut from = 0;
    while let Some((start, len)) = next_word(&lower, from, words) {
        let (Some(before), Some(word)) = (
            span.content.get(from..start),
            span.content.get(start..start + len),
        ) else {
            break;
        };
        into.push(Span::styled(before.to_owned(), span.style));
        into.push(Span::styled(word.to_owned(), span.style.patch(mark)));
        from = start + len;
    }
    let rest = span.content.get(from..).unwrap_or_default();
    into.push(Span::styled(rest.to_owned(), span.style));
}

fn next_word(text: &str, from: usize, words: &[String]) -> Option<(usize, usize)> {
    let rest = text.get(from..)?;
    let found = words
        .iter()
        .filter_map(|word| Some((rest.find(word.as_str())?, word.len())));
    found.min().map(|(at, len)| (from + at, len))
}
