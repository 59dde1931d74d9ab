//! Conversations that have no files beside them.

use backtrail::{Move, Session, SessionId, SessionReader, Steps, Store, Verb};

use super::outcome::{Chat, Outcome, Stage, ToldStep};
use super::words::Manner;
use super::{How, What, back, verb_name};
use crate::commands::{Answer, locked_hint, short};
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// A move of a conversation alone.
pub(in crate::commands) struct Alone<'a> {
    pub(in crate::commands) ui: &'a Ui,
    pub(in crate::commands) store: &'a Store,
    pub(in crate::commands) id: &'a SessionId,
    pub(in crate::commands) how: &'a How,
    /// The verb and what is behind it, as it is typed to do this in earnest.
    pub(in crate::commands) line: String,
}

impl Alone<'_> {
    /// Takes the conversation back to a record, the last that stays.
    pub(in crate::commands) fn rewind(&self, seq: u64) -> Result<Answer> {
        let see = |error: backtrail::Error| {
            let see = format!(
                "see the records: {} show {}",
                self.program(),
                short(self.id)
            );
            CommandError::from(error).hint(see)
        };
        let reader = self.store.read_session(self.id)?;
        let last = reader.info()?.last_seq;
        let prompt = prompt_after(&reader, seq).unwrap_or_default();
        if self.how.dry_run {
            if seq > last {
                let what = format!(
                    "session {} has no record {seq}; its last is {last}",
                    self.id
                );
                return Err(CommandError::not_found(what));
            }
            let chat = self.chat(last, Some(seq), prompt);
            return self.foretell(Verb::Rewind, None, Some(chat).filter(|_| seq != last));
        }
        let session = self.open()?;
        let moved = session.rewind(seq).map_err(see)?;
        self.tell(Verb::Rewind, moved.as_ref(), prompt, seq)
    }

    /// Takes the newest step back, or brings the one forward again that was undone
    /// last.
    pub(in crate::commands) fn step(&self, verb: Verb, what: &What) -> Result<Answer> {
        if what.files {
            return Err(no_files(self.id, self.ui));
        }
        let reader = self.store.read_session(self.id)?;
        if self.how.dry_run {
            let Steps {
                to_undo, to_redo, ..
            } = reader.steps()?;
            let steps = if verb == Verb::Undo { to_undo } else { to_redo };
            let step = steps.first().map(ToldStep::from);
            let last = reader.info()?.last_seq;
            let chat = step.is_some().then(|| self.chat(last, None, None));
            return self.foretell(verb, step, chat);
        }
        let session = self.open()?;
        let moved = match verb {
            Verb::Redo => session.redo()?,
            _ => session.undo()?,
        };
        self.tell(verb, moved.as_ref(), None, session.last_seq())
    }

    fn open(&self) -> Result<Session> {
        let opened = self.store.open_session(self.id);
        opened.map_err(|error| locked_hint(error, self.id))
    }

    fn chat(&self, from: u64, to: Option<u64>, prompt: Option<String>) -> Chat {
        Chat {
            session: self.id.clone(),
            from,
            to,
            prompt,
        }
    }

    fn program(&self) -> &str {
        self.ui.program()
    }

    /// Says what was done, and how to take it back.
    fn tell(
        &self,
        verb: Verb,
        moved: Option<&Move>,
        prompt: Option<String>,
        last: u64,
    ) -> Result<Answer> {
        let Some(moved) = moved else {
            return self.nothing(verb, Stage::Done, last);
        };
        let outcome = Outcome::of_move(verb, self.id, moved, prompt);
        if self.ui.json() {
            self.ui.print_json(&outcome.to_json())?;
            return Ok(Answer::Done);
        }
        self.print(&outcome)?;
        self.ui
            .to_reverse(&format!("{} {}", back(verb), short(self.id)));
        Ok(Answer::Done)
    }

    /// Says what would be done, and the command that does it.
    fn foretell(&self, verb: Verb, step: Option<ToldStep>, chat: Option<Chat>) -> Result<Answer> {
        let Some(chat) = chat else {
            let last = self.store.read_session(self.id)?.info()?.last_seq;
            return self.nothing(verb, Stage::Planned, last);
        };
        let outcome = Outcome {
            step,
            session: Some(self.id.clone()),
            chat: Some(chat),
            ..Outcome::nothing(verb, Stage::Planned)
        };
        if self.ui.json() {
            self.ui.print_json(&outcome.to_json())?;
            return Ok(Answer::Done);
        }
        self.print(&outcome)?;
        self.ui
            .status(&format!("do it: {} {}", self.program(), self.line));
        Ok(Answer::Done)
    }

    fn print(&self, outcome: &Outcome) -> Result<()> {
        let lines = outcome.lines(Manner {
            program: self.program(),
            ..Manner::default()
        });
        self.ui.print_line(&lines.join("\n"))
    }

    /// To be there already is fine; to find nothing to undo is a no.
    fn nothing(&self, verb: Verb, stage: Stage, last: u64) -> Result<Answer> {
        let answer = match verb {
            Verb::Rewind => Answer::Done,
            _ => Answer::No,
        };
        if self.ui.json() {
            let mut outcome = Outcome::nothing(verb, stage);
            outcome.session = Some(self.id.clone());
            self.ui.print_json(&outcome.to_json())?;
            return Ok(answer);
        }
        let (id, program) = (short(self.id), self.program());
        self.ui.status(&match verb {
            Verb::Rewind if last == 0 => format!("the conversation of {id} is empty already"),
            Verb::Rewind => format!("the conversation of {id} ends at record {last} already"),
            verb => {
                let verb = verb_name(verb);
                format!("nothing to {verb} in {id}; see: {program} steps {id}")
            }
        });
        Ok(answer)
    }
}

/// Says that a session has no files to move.
pub(in crate::commands) fn no_files(id: &SessionId, ui: &Ui) -> CommandError {
    let what = format!("no files are kept beside session {}", short(id));
    CommandError::invalid(what)
        .hint("move its conversation alone: --chat")
        .hint(format!(
            "files are kept by: {} checkpoint, or run -- COMMAND",
            ui.program()
        ))
}

/// Returns the first prompt behind a record.
fn prompt_after(reader: &SessionReader, seq: u64) -> backtrail::Result<Option<String>> {
    let mut records = reader.records_from(seq.saturating_add(1))?;
    while let Some(record) = records.next()? {
        // What cannot be read is no prompt to send again.
        if let Ok(Some(message)) = record.message()
            && message.is_prompt()
        {
            return Ok(Some(message.text().into_owned()).filter(|text| !text.trim().is_empty()));
        }
    }
    Ok(None)
}
