//! goose: an SQLite database; older versions keep one file of JSON lines for each session.
//! `goose session export` writes a session as one JSON value.
//!
//! A response of the model may be several messages. The tokens of single calls are only known
//! to the newest versions (`usage_ledger`); others add them up for the session.

mod messages;
mod session;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use backtrail::Timestamp;

use super::keys::{hash, valid_key};
use super::rows::{FirstRow, RowLine, seconds_or_millis};
use super::value::open_derived;
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Event, EventSink, UsageEvent};
use crate::format::{Agent, Format, OpenFile};
use crate::json::{Object, field_names};
use crate::json_lines::JsonLines;
use crate::lines::first_line;
use crate::source::{Source, file_name, is_json_lines};
use crate::tables::{Rows, Sessions, Tables};

use messages::{GooseEmitter, Stored};
use session::{SessionInfo, Spent};

const TABLES: Tables = Tables {
    sessions: Sessions {
        table: "sessions",
        id: "id",
        parent: Some("parent_session_id"),
    },
    // A result may have an earlier time than its call: the order is that in which they were
    // stored.
    rows: &[
        Rows {
            table: "messages",
            session: "session_id",
            order: &[],
            below: None,
        },
        Rows {
            table: "usage_ledger",
            session: "session_id",
            order: &[],
            below: None,
        },
    ],
    columns: &["content_json"],
};

/// goose: an SQLite database, older files of JSON lines, and exported sessions.
#[derive(Debug, Clone, Copy)]
pub struct Goose;

impl Format for Goose {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["goose"],
            packages: &["@aaif/goose"],
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new(
                "goose",
                "goose",
                "SQLite (schema 1 to 17, to 1.34), JSON lines, exports",
            )
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        if let Some(root) = environment.variable("GOOSE_PATH_ROOT") {
            return vec![Path::new(root).join("data/sessions")];
        }
        match environment.variable("XDG_DATA_HOME") {
            Some(data) => vec![Path::new(data).join("goose/sessions")],
            None => {
                let folders = [
                    ".local/share/goose/sessions",
                    "Library/Application Support/Block/goose/sessions",
                ];
                environment.folders("", "", &folders)
            }
        }
    }

    fn is_session_file(&self, path: &Path) -> bool {
        file_name(path) == "sessions.db" || is_json_lines(path)
    }

    fn tables(&self) -> Option<&'static Tables> {
        Some(&TABLES)
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        is_rows(&head) || is_export(&head) || is_old_lines(&head)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        match is_export(&source.head()) {
            true => open_export(source),
            false => open_lines(source),
        }
    }
}

fn is_rows(head: &[u8]) -> bool {
    FirstRow::find(head).is_some_and(|row| {
        row.is_of("messages", &["session_id", "role", "content_json"])
            || row.is_of("sessions", &["working_dir", "extension_data"])
            || row.is_of("usage_ledger", &["session_id", "input_tokens"])
    })
}

fn is_export(head: &[u8]) -> bool {
    let fields = field_names(head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    has("id") && has("working_dir") && has("conversation")
}

/// Returns whether a file is one of older versions: a line about the session, then messages.
/// The first versions have messages only.
fn is_old_lines(head: &[u8]) -> bool {
    Object::parse(&first_line(head)).is_ok_and(|line| is_header(&line) || is_message(&line))
}

/// Returns whether a line is about the session.
fn is_header(line: &Object<'_>) -> bool {
    line.has("working_dir") && line.get("message_count").is_some() && !line.has("type")
}

/// Returns whether a line is a message.
fn is_message(line: &Object<'_>) -> bool {
    let known = ["id", "role", "created", "content", "metadata"];
    line.number("created").is_some()
        && line.has("role")
        && line.list("content").is_some()
        && line.fields().all(|(name, _)| known.contains(&name))
}

/// What is known of a file before it is read.
#[derive(Debug, Default)]
struct Outline {
    session: SessionInfo,
    /// What the calls used of which each has a row.
    ledger: Spent,
}

impl Outline {
    /// Reads a file for the first time.
    fn read(source: &Source) -> Result<Self> {
        let mut outline = Self::default();
        let (mut lines, mut report) = JsonLines::new(source);
        while let Some(line) = lines.next(&mut report)? {
            match Record::read(&line.object()) {
                Record::Session(session) => outline.session = SessionInfo::read(&session),
                Record::Call(row) => {
                    if let Some(spent) = Spent::read(&row, "") {
                        outline.ledger.add(&spent);
                    }
                }
                _ => {}
            }
        }
        Ok(outline)
    }

    fn name(&self, source: &Source) -> String {
        let id = self.session.id.as_deref();
        valid_key(id.unwrap_or(source.stem()))
    }
}

/// What a line contains.
enum Record<'a> {
    Session(Object<'a>),
    Message(Object<'a>),
    /// What one call used.
    Call(Object<'a>),
    Unknown(String),
    Damaged(String),
}

impl<'a> Record<'a> {
    /// Reads a line: a row of the database, or a line of an older file.
    fn read(line: &Object<'a>) -> Self {
        if !line.has("table") {
            return match is_header(line) {
                true => Self::Session(line.clone()),
                false => Self::Message(line.clone()),
            };
        }
        match RowLine::read(line) {
            RowLine::Row(table, row) => match table.as_ref() {
                "messages" => Self::Message(row),
                "sessions" => Self::Session(row),
                "usage_ledger" => Self::Call(row),
                other => Self::Unknown(format!("table: {other}")),
            },
            RowLine::Damaged(reason) => Self::Damaged(reason),
        }
    }
}

fn open_lines(source: &Source) -> Result<OpenFile<'_>> {
    let outline = Outline::read(source)?;
    let (name, origin) = (outline.name(source), outline.session.origin());
    Ok(OpenFile::new(name.clone(), origin, move |sink| {
        sink.details(outline.session.details())?;
        let counter = Counter::new(&outline, &name);
        let mut emitter = counter.emitter(sink);
        let mut calls = Vec::new();
        let (mut lines, mut report) = JsonLines::new(source);
        while let Some(line) = lines.next(&mut report)? {
            let reason = match Record::read(&line.object()) {
                Record::Message(message) => match Stored::read(&message, &mut report) {
                    Ok(message) => {
                        emitter.add(message)?;
                        continue;
                    }
                    Err(reason) => reason,
                },
                Record::Call(row) => {
                    calls.extend(counter.call(&row));
                    continue;
                }
                Record::Session(_) => continue,
                Record::Unknown(kind) => {
                    report.add_unknown(&kind);
                    continue;
                }
                Record::Damaged(reason) => reason,
            };
            report.add_damage(line.number, &line.range, reason);
        }
        emitter.end()?;
        counter.send(calls, sink)?;
        Ok(report)
    }))
}

/// Counts what the calls of a session used.
struct Counter<'o> {
    outline: &'o Outline,
    response_id: String,
}

impl<'o> Counter<'o> {
    fn new(outline: &'o Outline, name: &str) -> Self {
        Self {
            outline,
            response_id: outline.session.response_id(name),
        }
    }

    fn emitter<'s>(&self, sink: &'s mut dyn EventSink) -> GooseEmitter<'s> {
        let model = self.outline.session.model.clone();
        GooseEmitter::new(sink, model, self.response_id.clone())
    }

    /// Returns the usage of one call.
    fn call(&self, row: &Object<'_>) -> Option<UsageEvent> {
        let spent = Spent::read(row, "")?;
        let id = row.get("id").unwrap_or_default();
        let at = row.number("created_timestamp").and_then(seconds_or_millis);
        let model = row.trimmed("model");
        let response_id = format!("{}-{}", self.response_id, hash(id.as_bytes(), 16));
        Some(self.usage("call", id, at, response_id, spent, model))
    }

    /// Sends the usage of single calls, and what all others used together.
    fn send(&self, mut calls: Vec<UsageEvent>, sink: &mut dyn EventSink) -> Result<()> {
        let mut keys = HashSet::new();
        calls.retain(|call| keys.insert(call.key.clone()));
        if let Some(total) = &self.outline.session.total {
            let others = total.without(&self.outline.ledger);
            let all = format!("{others:?}");
            let response_id = self.response_id.clone();
            calls.push(self.usage("total", &all, None, response_id, others, None));
        }
        let mut calls = calls.into_iter();
        calls.try_for_each(|call| sink.event(Event::Usage(call)))
    }

    fn usage(
        &self,
        kind: &str,
        content: &str,
        at: Option<Timestamp>,
        response_id: String,
        spent: Spent,
        model: Option<String>,
    ) -> UsageEvent {
        let key = hash(content.as_bytes(), 16);
        UsageEvent {
            key: format!("{kind}-{key}{}", UsageEvent::ANYWHERE),
            at,
            response_id,
            model: model.or_else(|| self.outline.session.model.clone()),
            usage: spent.usage,
            duration_ms: None,
            cost_usd: spent.cost,
        }
    }
}

/// Opens an exported session.
fn open_export(source: &Source) -> Result<OpenFile<'_>> {
    open_derived(
        source,
        |text| {
            let outline = Outline::of_export(&Object::parse(text)?);
            Ok((outline.name(source), outline.session.origin()))
        },
        |text, report, sink| {
            let value = Object::from_json(text).unwrap_or_default();
            let outline = Outline::of_export(&value);
            sink.details(outline.session.details())?;
            let counter = Counter::new(&outline, &outline.name(source));
            let mut emitter = counter.emitter(sink);
            for json in value.list("conversation").unwrap_or_default() {
                let message = Object::from_json(json).unwrap_or_default();
                match Stored::read(&message, report) {
                    Ok(message) => emitter.add(message)?,
                    Err(reason) => report.add_damage(1, &(0..report.read_to), reason),
                }
            }
            emitter.end()?;
            counter.send(Vec::new(), sink)
        },
    )
}

impl Outline {
    /// Reads the value of an exported session.
    fn of_export(value: &Object<'_>) -> Self {
        Self {
            session: SessionInfo::read(value),
            ..Self::default()
        }
    }
}

#[cfg(test)]
#[path = "goose_tests.rs"]
mod tests;
