//! What the model says and does, as data.

use std::path::PathBuf;

use crate::conversation::{Conversation, Entry};

/// The turns that a model knows.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The turns, in any order.
    pub turns: Vec<Turn>,
}

/// The answer to one prompt.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The text in the prompt that chooses this turn. No marker may contain another.
    pub marker: String,
    /// What the model answers, response by response. The last one has no calls.
    pub steps: Vec<Step>,
}

/// One response of the model.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// What it thinks, where the protocol has a place for it.
    pub thinking: Option<String>,
    /// What it says.
    pub text: String,
    /// What it calls, all at once.
    pub calls: Vec<Action>,
    /// What the answer waits for.
    pub hold: Option<Hold>,
}

/// What a call does. The tool that does it is chosen from those that the request offers, and is the
/// shell if there is no better one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads a file. Some agents refuse to edit a file that was not read.
    Read {
        /// The file.
        path: PathBuf,
    },
    /// Creates or overwrites a file.
    Write {
        /// The file.
        path: PathBuf,
        /// Its new content, which ends with a line feed.
        content: String,
    },
    /// Replaces a text that occurs once in a file.
    Edit {
        /// The file.
        path: PathBuf,
        /// The text, within one line.
        old: String,
        /// Its replacement, within one line.
        new: String,
    },
    /// Runs a shell command.
    Shell {
        /// The command.
        command: String,
    },
}

/// What an answer waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// This file exists.
    File(PathBuf),
    /// [`crate::Server::release`], or a request `POST /control/release/NAME`, with this name.
    Released(String),
}

impl Script {
    /// Returns a script of these turns.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        let turns = turns.into_iter().collect();
        Self { turns }
    }

    /// Returns the turn and the number of the step that answer a request: none if no prompt has a
    /// marker, or if there are more results than calls.
    #[must_use]
    pub fn next(&self, request: &Conversation) -> Option<(&Turn, usize)> {
        let (at, turn) = request.entries.iter().enumerate().rev().find_map(|entry| {
            let (at, Entry::User(text)) = entry else {
                return None;
            };
            let turn = self.turns.iter().find(|turn| text.contains(&turn.marker));
            turn.map(|turn| (at, turn))
        })?;
        let since = request.entries[at..].iter();
        let results = since.filter(|entry| matches!(entry, Entry::Result { .. }));
        turn.step_after(results.count()).map(|step| (turn, step))
    }
}

impl Turn {
    /// Returns a turn that a prompt with this marker begins.
    pub fn new(marker: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            marker: marker.to_owned(),
            steps: steps.into_iter().collect(),
        }
    }

    /// Returns the step that follows once there are this many results.
    fn step_after(&self, results: usize) -> Option<usize> {
        let mut calls = 0;
        self.steps.iter().position(|step| {
            let is_next = calls == results;
            calls += step.calls.len();
            is_next
        })
    }
}

impl Step {
    /// Returns a response that only says something, which ends the turn.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    /// Returns a response that says something and calls tools.
    pub fn call(text: &str, calls: impl IntoIterator<Item = Action>) -> Self {
        Self {
            calls: calls.into_iter().collect(),
            ..Self::say(text)
        }
    }

    /// Adds a thought.
    #[must_use]
    pub fn thinking(mut self, thinking: &str) -> Self {
        self.thinking = Some(thinking.to_owned());
        self
    }

    /// Holds the answer back.
    #[must_use]
    pub fn after(mut self, hold: Hold) -> Self {
        self.hold = Some(hold);
        self
    }
}

impl Action {
    /// Returns a call that runs a shell command.
    #[must_use]
    pub fn shell(command: &str) -> Self {
        let command = command.to_owned();
        Self::Shell { command }
    }

    /// Returns a call that reads a file.
    pub fn read(path: impl Into<PathBuf>) -> Self {
        Self::Read { path: path.into() }
    }

    /// Returns a call that writes a file.
    pub fn write(path: impl Into<PathBuf>, content: &str) -> Self {
        Self::Write {
            path: path.into(),
            content: content.to_owned(),
        }
    }

    /// Returns a call that edits a file.
    pub fn edit(path: impl Into<PathBuf>, old: &str, new: &str) -> Self {
        Self::Edit {
            path: path.into(),
            old: old.to_owned(),
            new: new.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Entry {
        Entry::User(text.to_owned())
    }

    fn result(id: &str) -> Entry {
        Entry::Result {
            id: id.to_owned(),
            text: String::new(),
        }
    }

    fn script() -> Script {
        let calls =
            |names: &[&str]| Step::call("on it", names.iter().map(|name| Action::shell(name)));
        Script::new([
            Turn::new(
                "ONE",
                [calls(&["a", "b"]), calls(&["c"]), Step::say("done")],
            ),
            Turn::new("TWO", [Step::say("nothing to do")]),
        ])
    }

    fn next(entries: Vec<Entry>) -> Option<(String, usize)> {
        let request = Conversation {
            entries,
            ..Conversation::default()
        };
        let script = script();
        let found = script.next(&request);
        found.map(|(turn, step)| (turn.marker.clone(), step))
    }

    #[test]
    fn results_since_the_prompt_choose_the_step() {
        let one = |step| Some(("ONE".to_owned(), step));
        assert_eq!(next(vec![user("do ONE")]), one(0));
        let two_results = vec![user("do ONE"), result("a"), result("b")];
        assert_eq!(next(two_results.clone()), one(1));
        let mut three = two_results;
        three.push(result("c"));
        assert_eq!(next(three), one(2));
    }

    #[test]
    fn the_last_prompt_with_a_marker_chooses_the_turn() {
        let later = vec![
            user("ONE"),
            result("a"),
            user("\"TWO\""),
            user("a reminder"),
        ];
        assert_eq!(next(later), Some(("TWO".to_owned(), 0)));
    }

    #[test]
    fn a_missing_result_or_marker_has_no_answer() {
        assert_eq!(next(vec![user("ONE"), result("a")]), None);
        assert_eq!(next(vec![user("TWO"), result("a")]), None);
        assert_eq!(next(vec![user("hello")]), None);
    }
}
