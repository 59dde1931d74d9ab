//! The descriptions of checkpoints and steps.
//!
//! A workspace's trail has commands, labels and paths, but no text of a session. If a
//! description includes a prompt, the record names the message, and the text is read from
//! the session. So when a session is deleted, its text is gone here too, and a purge has
//! none to remove.

use std::fmt;

use serde::Serialize;

use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace};
use crate::error::ErrorKind;
use crate::ids::SessionId;
use crate::store::Store;

/// The longest part of a prompt or a command that is kept or shown.
const MAX_TEXT: usize = 200;

/// The description of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// The beginning of the prompt, the command, or a summary of the step.
    Text(String),
    /// The session with the text is in the trash or was purged.
    SessionDeleted,
}

impl About {
    /// Returns the text; `None` if the session is deleted.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::SessionDeleted => None,
        }
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text().unwrap_or("session deleted"))
    }
}

/// A description as the trail stores it: a text, which may end with a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) text: Option<String>,
    /// The message whose first line follows the text, in quotes.
    pub(crate) prompt: Option<SessionPlace>,
}

impl Description {
    /// Describes the turn or run that began with a checkpoint.
    pub(crate) fn of_start(start: &Checkpoint) -> Self {
        let prompt = start.prompt_place();
        match (start.reason(), &start.record.about) {
            (CheckpointReason::RunStart, Some(command)) => {
                Self::from(format!("the run `{command}`"))
            }
            (CheckpointReason::RunStart, None) => Self::from("a run".to_owned()),
            _ => Self {
                text: Some(prompt.as_ref().map_or("a turn", |_| "the turn").to_owned()),
                prompt,
            },
        }
    }

    /// Prefixes the text.
    pub(crate) fn prefixed(self, words: &str) -> Self {
        Self {
            text: Some(format!("{words}{}", self.text.unwrap_or_default())),
            ..self
        }
    }

    /// Returns the text, with the prompt read from its session.
    pub(crate) fn read(&self, store: &Store) -> Option<String> {
        let text = self.text.clone()?;
        let prompt = self.prompt.as_ref().and_then(|place| prompt(store, place));
        Some(match prompt {
            Some(About::Text(prompt)) => format!("{text} \"{prompt}\""),
            Some(About::SessionDeleted) => format!("{text} (session deleted)"),
            None => text,
        })
    }
}

impl From<String> for Description {
    fn from(text: String) -> Self {
        Self {
            text: Some(text),
            prompt: None,
        }
    }
}

impl Checkpoint {
    /// Returns the description of the turn, run or step. The prompt of a turn is read from its
    /// session; `None` if there is no text, or it cannot be read.
    pub fn about(&self) -> Option<About> {
        let store = self.workspace.store();
        if !self.reason().begins() {
            return self.description().read(store).map(About::Text);
        }
        if let Some(place) = &self.record.prompt {
            return prompt(store, place);
        }
        // Earlier versions copied the prompt. It counts as long as the session exists.
        let about = &self.record.about;
        let copied = *self.reason() == CheckpointReason::TurnStart || about.is_none();
        match self.session() {
            Some(place) if copied && is_deleted(store, &place.id) => Some(About::SessionDeleted),
            _ => about.clone().map(About::Text),
        }
    }

    /// Returns the description on the trail.
    pub(crate) fn description(&self) -> Description {
        Description {
            text: self.record.about.clone(),
            prompt: self.record.prompt.clone(),
        }
    }

    /// Returns the place of the prompt of the turn that began with it. Earlier versions did
    /// not record it: it came right after the session's last record.
    fn prompt_place(&self) -> Option<SessionPlace> {
        let after = || {
            let place = self.session().cloned()?;
            let seq = place.seq + 1;
            (*self.reason() == CheckpointReason::TurnStart).then_some(SessionPlace { seq, ..place })
        };
        self.record.prompt.clone().or_else(after)
    }
}

/// Reads the beginning of a prompt from its session.
pub(super) fn prompt(store: &Store, place: &SessionPlace) -> Option<About> {
    let reader = match store.read_session(&place.id) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(About::SessionDeleted),
        reader => reader.ok()?,
    };
    let record = reader.record_at(place.trail, place.seq).ok()??;
    let message = record.message().ok()??;
    first_line(&message.said().text).map(About::Text)
}

fn is_deleted(store: &Store, id: &SessionId) -> bool {
    let reader = store.read_session(id);
    reader.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Returns the first line of a text, cut at a length; `None` if it is blank.
pub(super) fn first_line(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let mut end = line.len().min(MAX_TEXT);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    Some(line[..end].to_owned())
}
