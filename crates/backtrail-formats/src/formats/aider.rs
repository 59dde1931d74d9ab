//! aider: a Markdown file in each project, to which every chat is appended.
//!
//! `# aider chat started at …` starts a chat, lines with `#### ` are prompts, lines with `> ` are
//! aider's own output, and all others are answers. The only time is that of the chat's start,
//! and only the output tells the model and what was used.

mod blocks;
mod chats;
mod tokens;

use std::path::{Path, PathBuf};

use backtrail::{Message, Role, Timestamp};
use serde::{Deserialize, Serialize};

use super::blocks::{meta_text, send_model};
use super::keys::{hash, save_state, valid_key};
use crate::container::Container;
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent, Origin, ReadReport, UsageEvent};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::source::{Source, file_name};

use blocks::{Kind, RawLines, kind_of};
use chats::Chats;

/// aider: a Markdown file in each project, to which every chat is appended.
#[derive(Debug, Clone, Copy)]
pub struct Aider;

/// How a chat starts.
const START: &str = "# aider chat started at ";
/// The usual name of the file.
const FILE: &str = ".aider.chat.history.md";
/// A longer block becomes several.
const MAX_BLOCK: usize = 64 << 20;

impl Format for Aider {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["aider"],
            packages: &["aider-chat"],
            appends: true,
            usage: true,
            ..Agent::new("aider", "aider", "0.47 to 0.86")
        }
    }

    /// The files are in the directories of projects.
    fn directories(&self, _environment: &Environment) -> Vec<PathBuf> {
        Vec::new()
    }

    fn project_directories(&self, project: &Path) -> Vec<PathBuf> {
        vec![project.to_owned()]
    }

    fn is_session_file(&self, path: &Path) -> bool {
        file_name(path) == FILE
    }

    fn recognises(&self, source: &Source) -> bool {
        first_start(source).is_some()
    }

    /// A file contains many chats, and more are appended, so even one is taken out of it.
    fn container(&self, path: &Path) -> Result<Option<Box<dyn Container>>> {
        let source = Source::open(path)?;
        if first_start(&source).is_none() {
            return Ok(None);
        }
        Ok(Some(Box::new(Chats::read(source)?)))
    }

    /// A chat is named after the second in which it started.
    fn has_unique_names(&self) -> bool {
        false
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let Some(started) = first_start(source) else {
            return Ok(OpenFile::unnamed(ReadReport {
                unfinished: true,
                ..ReadReport::default()
            }));
        };
        let state = AiderState {
            session: session_of(source, &started),
            ..AiderState::default()
        };
        Ok(open_at(source, state, 0))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        match resume.state.parse::<AiderState>() {
            Ok(state) if state.at.block <= resume.read_to => {
                Ok(Some(open_at(source, state, resume.read_to)))
            }
            _ => Ok(None),
        }
    }
}

/// Returns when the first chat in the beginning of a file started.
fn first_start(source: &Source) -> Option<String> {
    let head = source.head();
    let text = String::from_utf8_lossy(&head);
    let started = text.lines().find_map(started_at)?;
    Some(started.to_owned())
}

/// Returns the time in the line that starts a chat.
fn started_at(line: &str) -> Option<&str> {
    let time = line.strip_prefix(START)?.trim();
    local_time(time).map(|_| time)
}

/// Returns a time without a zone. Which one it is, is not known.
fn local_time(time: &str) -> Option<Timestamp> {
    format!("{}Z", time.replacen(' ', "T", 1)).parse().ok()
}

/// Returns the name of a chat.
fn name_of(started: &str) -> String {
    let digits: String = started.chars().filter(char::is_ascii_digit).collect();
    format!("aider-{digits}")
}

/// Returns the name of a chat. One that was taken out of a file has it, with a number if several
/// started in the same second.
fn session_of(source: &Source, started: &str) -> String {
    let name = name_of(started);
    match source.stem().starts_with(&name) {
        true => valid_key(source.stem()),
        false => name,
    }
}

/// Where reading resumes: at the beginning of the last block, which may have grown.
#[derive(Debug, Default, Serialize, Deserialize)]
struct AiderState {
    session: String,
    at: Place,
    /// The key of the event of that block, if it has one.
    sent: Option<String>,
    /// The key of the event before it.
    before: Option<String>,
}

/// What is known at the beginning of a block.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Place {
    block: u64,
    lines: u64,
    started: Option<String>,
    model: Option<String>,
    /// Whether the chat has a prompt.
    has_prompt: bool,
}

fn open_at(source: &Source, state: AiderState, from: u64) -> OpenFile<'_> {
    OpenFile::new(state.session.clone(), Origin::Start, move |sink| {
        let mut reader = Reader {
            sink,
            session: state.session,
            place: state.at.clone(),
            at: state.at,
            kind: None,
            text: String::new(),
            last: state.before,
            resumed: (from > 0).then_some(state.sent),
        };
        let mut report = ReadReport {
            read_to: from,
            ..ReadReport::default()
        };
        if from == 0 {
            reader.sink.details(Details {
                directory: directory(source.path()),
                ..Details::default()
            })?;
        }
        reader.read(source, &mut report)?;
        Ok(report)
    })
}

/// Returns the directory of a project, if its file has the usual name.
fn directory(path: &Path) -> Option<PathBuf> {
    let file = path.ancestors().find(|path| file_name(path) == FILE)?;
    let directory = file.parent().filter(|parent| parent.is_absolute());
    directory.map(Path::to_owned)
}

/// Reads a file, block by block.
struct Reader<'s> {
    sink: &'s mut dyn EventSink,
    session: String,
    /// What is known now.
    place: Place,
    /// What was known at the beginning of the current block.
    at: Place,
    kind: Option<Kind>,
    text: String,
    /// The key of the last event.
    last: Option<String>,
    /// When reading resumes, until the first block ends: the key of its event.
    resumed: Option<Option<String>>,
}

impl Reader<'_> {
    fn read(&mut self, source: &Source, report: &mut ReadReport) -> Result<()> {
        let from = report.read_to;
        let mut lines = RawLines::new(source, self.at.block);
        while let Some(line) = lines.next()? {
            // Lines before that were counted when they were read first.
            if line.range.end > from && line.is_damaged {
                let reason = "not UTF-8, or too long";
                report.add_damage(self.place.lines + 1, &line.range, reason);
            }
            self.add(&line.text, line.range.start)?;
            self.place.lines += 1;
            report.read_to = report.read_to.max(line.range.end);
        }
        let (at, before) = (self.at.clone(), self.last.clone());
        let sent = self.flush()?;
        report.lines = self.place.lines;
        report.state = save_state(&AiderState {
            session: self.session.clone(),
            at,
            sent,
            before,
        });
        Ok(())
    }

    /// Adds a line to the current block, or starts another one.
    fn add(&mut self, line: &str, start: u64) -> Result<()> {
        if let Some(started) = started_at(line) {
            self.flush()?;
            self.place.started = Some(started.to_owned());
            self.place.has_prompt = false;
            self.sink.details(Details {
                started_at: local_time(started),
                ..Details::default()
            })?;
            // The line itself is read again when reading resumes.
            return self.begin(None, start);
        }
        let (kind, text) = kind_of(line, self.kind);
        let continues = match (self.kind, kind) {
            (Some(Kind::Tokens), Some(Kind::Tokens)) => line.starts_with("Cost:"),
            (current, kind) => current == kind && current.is_some(),
        };
        if !continues || self.text.len() > MAX_BLOCK {
            self.flush()?;
            self.begin(kind, start)?;
        }
        if kind.is_some() {
            self.text.push_str(text);
            self.text.push('\n');
        }
        Ok(())
    }

    fn begin(&mut self, kind: Option<Kind>, start: u64) -> Result<()> {
        self.kind = kind;
        self.text.clear();
        self.at = Place {
            block: start,
            ..self.place.clone()
        };
        Ok(())
    }

    /// Sends the current block. Returns the key of its event, if it has one.
    fn flush(&mut self) -> Result<Option<String>> {
        let text = std::mem::take(&mut self.text);
        let text = text.trim_matches('\n').trim_end();
        let kind = self.kind.take();
        if kind == Some(Kind::Output) {
            self.note_model(text)?;
        }
        let event = kind.and_then(|kind| self.event(kind, text));
        let key = event.as_ref().map(|event| event.key().to_owned());
        if let Some(sent) = self.resumed.take() {
            if sent == key {
                self.last = key.clone().or(self.last.take());
                return Ok(key);
            }
            if sent.is_some() {
                self.sink.rewind_to(self.last.as_deref())?;
            }
        }
        if let Some(event) = event {
            self.last.clone_from(&key);
            self.sink.event(event)?;
        }
        Ok(key)
    }

    /// Returns the event of a block.
    fn event(&mut self, kind: Kind, text: &str) -> Option<Event> {
        if text.trim().is_empty() {
            return None;
        }
        let key = format!("{:x}-{}", self.at.block, hash(text.as_bytes(), 16));
        let at = self.at.started.as_deref().and_then(local_time);
        let message = match kind {
            Kind::Prompt => {
                self.place.has_prompt = true;
                match is_injected(text) {
                    true => meta_text(text),
                    false => Message::user_text(text),
                }
            }
            Kind::Output => meta_text(text),
            Kind::Tokens => return self.usage(text, key, at),
            // What is not an answer is the rest of some output.
            Kind::Answer if !self.at.has_prompt => meta_text(text),
            Kind::Answer => Message::new(Role::Assistant, [backtrail::Block::text(text)]),
        };
        let mut event = MessageEvent::new(key, message).at(at);
        if kind == Kind::Answer && self.at.has_prompt {
            event.model = self.at.model.clone();
        }
        Some(Event::Message(event))
    }

    fn usage(&self, text: &str, key: String, at: Option<Timestamp>) -> Option<Event> {
        let (usage, cost_usd) = tokens::used(text)?;
        let started = self.at.started.as_deref().unwrap_or_default();
        Some(Event::Usage(UsageEvent {
            at,
            // A copy of the chat in another file has the same numbers.
            response_id: format!("{}#{key}", name_of(started)),
            key,
            model: self.at.model.clone(),
            usage,
            duration_ms: None,
            cost_usd,
        }))
    }

    /// Notes the model that aider names.
    fn note_model(&mut self, output: &str) -> Result<()> {
        let model = output.lines().filter_map(tokens::model).next_back();
        send_model(self.sink, &mut self.place.model, model)
    }
}

/// Returns whether aider wrote a prompt itself: the pages that answer `/help`, the report of a
/// linter, or that nothing was typed.
fn is_injected(prompt: &str) -> bool {
    let help = prompt.starts_with("# Question:") && prompt.contains("\n# Relevant docs:");
    help || prompt.starts_with("# Fix any errors below, if possible.") || prompt == "<blank>"
}

#[cfg(test)]
#[path = "aider_tests.rs"]
mod tests;
