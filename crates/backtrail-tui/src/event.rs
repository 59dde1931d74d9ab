//! What people do at the terminal, as events of the state.

use std::mem;

use crossterm::event::{Event as Typed, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::look::Background;
use crate::request::Event;

/// An answer of the terminal is not longer than this.
const LONGEST_ANSWER: usize = 64;

/// Something that was read from the terminal.
#[derive(Debug)]
pub(crate) enum Input {
    /// Something that a person did.
    Event(Event),
    /// The terminal told its background.
    Background(Background),
}

/// Turns what crossterm reads into events.
///
/// A terminal far away may tell its background after we stopped waiting. What it says looks like
/// typed keys, each of which would do something, so it is taken out here.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The answer so far, from its first key on.
    answer: Option<String>,
}

impl Reading {
    /// Returns what a read event means, if anything.
    pub(crate) fn take(&mut self, typed: Typed) -> Option<Input> {
        let event = match typed {
            Typed::Key(key) if key.kind == KeyEventKind::Release => return None,
            Typed::Key(key) => return self.key(key),
            Typed::Mouse(mouse) => Event::Mouse(mouse),
            Typed::Paste(text) => Event::Paste(text),
            Typed::Resize(columns, rows) => Event::Resize(columns, rows),
            Typed::FocusGained | Typed::FocusLost => return None,
        };
        Some(Input::Event(event))
    }

    fn key(&mut self, key: KeyEvent) -> Option<Input> {
        let Some(answer) = &mut self.answer else {
            if begins_answer(key) {
                self.answer = Some(String::new());
                return None;
            }
            return Some(Input::Event(Event::Key(key)));
        };
        match key.code {
            KeyCode::Char(c) if !ends_answer(key) && answer.len() < LONGEST_ANSWER => {
                answer.push(c);
                None
            }
            _ => {
                let answer = mem::take(&mut self.answer).unwrap_or_default();
                background_in(&answer).map(Input::Background)
            }
        }
    }
}

/// `ESC ]`, by which the answer begins, is read as Alt and the bracket, which no command has.
fn begins_answer(key: KeyEvent) -> bool {
    key.code == KeyCode::Char(']') && key.modifiers == KeyModifiers::ALT
}

/// The answer ends with BEL, which is read as Ctrl-G, or with `ESC \`.
fn ends_answer(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('g') => key.modifiers == KeyModifiers::CONTROL,
        KeyCode::Char('\\') => key.modifiers == KeyModifiers::ALT,
        _ => false,
    }
}

/// Reads `11;rgb:RRRR/GGGG/BBBB`.
fn background_in(answer: &str) -> Option<Background> {
    let colors = answer.strip_prefix("11;rgb:")?;
    let mut parts = colors.split('/').map(|part| {
        let most = 16_u32
            .checked_pow(u32::try_from(part.len()).ok()?)?
            .checked_sub(1)?;
        (u32::from_str_radix(part, 16).ok()? * 1000).checked_div(most)
    });
    let (red, green, blue) = (parts.next()??, parts.next()??, parts.next()??);
    // How bright each looks to the eye.
    let brightness = (red * 299 + green * 587 + blue * 114) / 1000;
    Some(match brightness > 500 {
        true => Background::Light,
        false => Background::Dark,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn char_key(c: char, modifiers: KeyModifiers) -> Typed {
        Typed::Key(KeyEvent::new(KeyCode::Char(c), modifiers))
    }

    /// Feeds an answer as crossterm reads it, and a key after it.
    fn read(answer: &str, end: Typed) -> Vec<Input> {
        let mut reading = Reading::default();
        let begin = char_key(']', KeyModifiers::ALT);
        let keys = answer.chars().map(|c| char_key(c, KeyModifiers::NONE));
        let typed = [begin].into_iter().chain(keys).chain([end]);
        let typed = typed.chain([char_key('j', KeyModifiers::NONE)]);
        typed.filter_map(|typed| reading.take(typed)).collect()
    }

    #[test]
    fn a_late_answer_of_the_terminal_is_not_taken_for_keys() {
        let bell = char_key('g', KeyModifiers::CONTROL);
        let found = read("11;rgb:ffff/ffff/eeee", bell);
        assert!(
            matches!(found[0], Input::Background(Background::Light)),
            "{found:?}"
        );
        assert!(matches!(found[1], Input::Event(Event::Key(_))), "{found:?}");
        let end = char_key('\\', KeyModifiers::ALT);
        let found = read("11;rgb:1e/1e/2e", end.clone());
        assert!(
            matches!(found[0], Input::Background(Background::Dark)),
            "{found:?}"
        );
        assert_eq!(read("nonsense", end).len(), 1);
    }

    #[test]
    fn keys_are_not_swallowed_for_ever_without_an_end() {
        let mut reading = Reading::default();
        reading.take(char_key(']', KeyModifiers::ALT));
        let mut keys = (0..200).map(|_| reading.take(char_key('j', KeyModifiers::NONE)));
        assert_eq!(keys.by_ref().take(LONGEST_ANSWER + 1).flatten().count(), 0);
        assert!(keys.all(|input| input.is_some()));
    }

    #[test]
    fn a_key_that_is_released_does_nothing() {
        let mut key = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::NONE);
        key.kind = KeyEventKind::Release;
        assert!(Reading::default().take(Typed::Key(key)).is_none());
        key.kind = KeyEventKind::Repeat;
        assert!(Reading::default().take(Typed::Key(key)).is_some());
    }
}
