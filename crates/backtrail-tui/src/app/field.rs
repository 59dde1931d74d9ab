//! A line of text that is being typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui_textarea::{CursorMove, TextArea};

/// An editable line.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    area: TextArea<'static>,
}

impl Field {
    /// Makes a line with a text, the cursor at its end.
    pub(crate) fn new(text: &str) -> Self {
        let mut area = TextArea::new(vec![one_line(text)]);
        area.set_cursor_line_style(Style::new());
        area.move_cursor(CursorMove::End);
        Self { area }
    }

    pub(crate) fn text(&self) -> &str {
        self.area.lines().first().map_or("", String::as_str)
    }

    /// Edits the line by a key; returns whether the text changed.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let before = self.text().to_owned();
        match (key.code, key.modifiers) {
            // As in a shell.
            (KeyCode::Char('u'), KeyModifiers::CONTROL) => drop(self.area.delete_line_by_head()),
            _ => drop(self.area.input(key)),
        }
        if self.area.lines().len() > 1 {
            *self = Self::new(&self.area.lines().join(" "));
        }
        before != self.text()
    }

    /// Inserts text that was pasted; line breaks become spaces.
    pub(crate) fn paste(&mut self, text: &str) {
        self.area.insert_str(one_line(text));
    }

    pub(crate) fn widget(&self) -> &TextArea<'static> {
        &self.area
    }
}

impl Default for Field {
    fn default() -> Self {
        Self::new("")
    }
}

/// Returns a text without line breaks and other control characters.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line_whatever_is_typed_or_pasted() {
        let mut field = Field::new("a");
        field.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        field.paste("b\nc\x1b[31m\r\n");
        assert!(
            !field.text().contains(char::is_control),
            "{:?}",
            field.text()
        );
        assert!(field.text().starts_with("a b c"), "{:?}", field.text());
        assert!(field.key(KeyEvent::new(KeyCode::Char('x'), KeyModifiers::NONE)));
        assert!(!field.key(KeyEvent::new(KeyCode::Left, KeyModifiers::NONE)));
        assert!(field.key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL)));
        assert_eq!(field.text(), "x");
    }
}
