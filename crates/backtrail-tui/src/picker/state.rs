//! The state of a picker, and how events change it.

use std::panic::{self, AssertUnwindSafe};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Rect, Size};

use super::areas::Areas;
use super::choices::{Choice, Choices, Preview};
use crate::cursor::{Cursor, Step};
use crate::fuzzy;
use crate::look::{Background, Look};
use crate::request::Event;
use backtrail_view::library::{Answer, Failure};

/// What becomes of a picker after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Continues,
    Chosen,
    Cancelled,
}

/// Something that a picker wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Question {
    /// What there is to choose from, if this was typed.
    List(String),
    /// What a choice looks like, for as many columns.
    Preview(String, u16, Look),
}

/// The answer to a question.
#[derive(Debug)]
pub(super) enum Told {
    List(String, Answer<Vec<Choice>>),
    Preview(String, u16, Answer<Preview>),
}

impl Question {
    /// Asks. A panic is a failure of this question, and of nothing else.
    pub(super) fn answer(self, choices: &dyn Choices) -> Told {
        fn guarded<T>(ask: impl FnOnce() -> Answer<T>) -> Answer<T> {
            let asked = panic::catch_unwind(AssertUnwindSafe(ask));
            asked.unwrap_or_else(|_| Err(Failure::new("internal error")))
        }
        match self {
            Self::List(typed) => {
                let list = guarded(|| choices.list(&typed));
                Told::List(typed, list)
            }
            Self::Preview(id, width, look) => {
                let preview = guarded(|| choices.preview(&id, width, look));
                Told::Preview(id, width, preview)
            }
        }
    }
}

/// A picker.
#[derive(Debug)]
pub(super) struct PickerState {
    pub(super) title: String,
    pub(super) look: Look,
    /// Whether what is typed is searched for, and not only filters.
    is_search: bool,
    size: Size,
    pub(super) typed: String,
    choices: Vec<Choice>,
    /// The choices that are listed, by index.
    shown: Vec<usize>,
    pub(super) cursor: Cursor,
    /// Whether the choices have come.
    pub(super) is_loaded: bool,
    pub(super) error: Option<String>,
    /// What is shown of a choice: its id, and for which width.
    preview: Option<(String, u16, Answer<Preview>)>,
    asked_list: Option<String>,
    asked_preview: Option<(String, u16)>,
}

impl PickerState {
    pub(super) fn new(title: &str, look: Look, is_search: bool, size: Size) -> Self {
        Self {
            title: title.to_owned(),
            look,
            is_search,
            size,
            typed: String::new(),
            choices: Vec::new(),
            shown: Vec::new(),
            cursor: Cursor::default(),
            is_loaded: false,
            error: None,
            preview: None,
            asked_list: None,
            asked_preview: None,
        }
    }

    fn areas(&self) -> Areas {
        Areas::of(Rect::new(0, 0, self.size.width, self.size.height))
    }

    fn height(&self) -> usize {
        usize::from(self.areas().list.height)
    }

    pub(super) fn resize(&mut self, size: Size) -> Outcome {
        self.size = size;
        let height = self.height();
        self.cursor.fit(self.shown.len(), height);
        Outcome::Continues
    }

    pub(super) fn set_background(&mut self, background: Background) -> Outcome {
        if self.look.background != background {
            self.look.background = background;
            // The preview has the colours of the other background.
            self.asked_preview = None;
        }
        Outcome::Continues
    }

    /// Returns the listed choices.
    pub(super) fn listed(&self) -> impl ExactSizeIterator<Item = &Choice> {
        self.shown.iter().map(|n| &self.choices[*n])
    }

    /// Returns how many there are to choose from.
    pub(super) fn all(&self) -> usize {
        self.choices.len()
    }

    fn selected(&self) -> Option<&Choice> {
        self.listed().nth(self.cursor.selected)
    }

    /// Returns the id of the selected choice.
    pub(super) fn chosen(&self) -> Option<String> {
        self.selected().map(|choice| choice.id.clone())
    }

    /// Returns the preview of the selected choice, if it has come.
    pub(super) fn preview(&self) -> Option<&Answer<Preview>> {
        let selected = self.selected()?;
        let (id, _, preview) = self.preview.as_ref()?;
        (*id == selected.id).then_some(preview)
    }

    /// Returns what is not known yet and was not asked.
    pub(super) fn questions(&mut self) -> Vec<Question> {
        let mut questions = Vec::new();
        let typed = match self.is_search {
            true => self.typed.clone(),
            false => String::new(),
        };
        if self.asked_list.as_ref() != Some(&typed) {
            self.asked_list = Some(typed.clone());
            questions.push(Question::List(typed));
        }
        let width = self.areas().preview.width;
        let wanted = self.chosen().map(|id| (id, width));
        if let Some((id, width)) = wanted.clone().filter(|_| wanted != self.asked_preview)
            && width > 0
        {
            self.asked_preview = wanted;
            questions.push(Question::Preview(id, width, self.look));
        }
        questions
    }

    /// Takes an answer, unless something else was asked meanwhile.
    pub(super) fn take(&mut self, told: Told) -> Outcome {
        match told {
            Told::List(typed, list) if self.asked_list.as_ref() == Some(&typed) => {
                self.is_loaded = true;
                self.error = list.as_ref().err().map(|failure| failure.message.clone());
                self.choices = list.unwrap_or_default();
                self.filter();
            }
            Told::Preview(id, width, preview) => {
                let asked = self.asked_preview.as_ref();
                if asked.is_some_and(|(asked, wide)| *asked == id && *wide == width) {
                    self.preview = Some((id, width, preview));
                }
            }
            Told::List(..) => {}
        }
        Outcome::Continues
    }

    /// Decides what is listed. The best match is selected.
    fn filter(&mut self) {
        self.shown = match self.typed.trim() {
            filter if !self.is_search && !filter.is_empty() => {
                let texts: Vec<String> =
                    self.choices.iter().map(|it| it.searched.clone()).collect();
                fuzzy::matching(filter, &texts)
            }
            _ => (0..self.choices.len()).collect(),
        };
        self.cursor = Cursor::default();
        let height = self.height();
        self.cursor.fit(self.shown.len(), height);
    }

    pub(super) fn update(&mut self, event: Event) -> Outcome {
        match event {
            Event::Key(key) => self.key(key),
            Event::Paste(text) => {
                let line = text.lines().next().unwrap_or_default();
                self.edit(|typed| typed.extend(line.chars().filter(|c| !c.is_control())))
            }
            _ => Outcome::Continues,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Outcome {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let step = match (key.code, control) {
            (KeyCode::Esc, _) | (KeyCode::Char('c' | 'g'), true) => return Outcome::Cancelled,
            (KeyCode::Char('d'), true) if self.typed.is_empty() => return Outcome::Cancelled,
            (KeyCode::Enter, _) if self.selected().is_some() => return Outcome::Chosen,
            (KeyCode::Char('u'), true) => return self.edit(String::clear),
            (KeyCode::Char('w'), true) => return self.edit(remove_word),
            (KeyCode::Backspace, _) | (KeyCode::Char('h'), true) => {
                return self.edit(remove_letter);
            }
            (KeyCode::Char(c), false) => return self.edit(|typed| typed.push(c)),
            (KeyCode::Up, _) | (KeyCode::Char('p' | 'k'), true) => Step::Up,
            (KeyCode::Down, _) | (KeyCode::Char('n' | 'j'), true) => Step::Down,
            (KeyCode::PageUp, _) => Step::PageUp,
            (KeyCode::PageDown, _) => Step::PageDown,
            (KeyCode::Home, _) => Step::First,
            (KeyCode::End, _) => Step::Last,
            _ => return Outcome::Continues,
        };
        let height = self.height();
        self.cursor.go(step, self.shown.len(), height);
        Outcome::Continues
    }

    fn edit(&mut self, edit: impl FnOnce(&mut String)) -> Outcome {
        edit(&mut self.typed);
        if !self.is_search {
            self.filter();
        }
        Outcome::Continues
    }
}

fn remove_letter(typed: &mut String) {
    typed.pop();
}

fn remove_word(typed: &mut String) {
    let kept = typed.trim_end();
    let kept = kept.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    typed.truncate(kept);
}
