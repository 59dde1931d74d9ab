//! opencode: an SQLite database; older versions keep one JSON file for each session, message
//! and part. `opencode export` writes a session as one JSON value.
//!
//! A session has messages, and these have parts: texts, thoughts, files, calls of tools with
//! their results, and notes about steps. All three forms have the same values and ids, so the
//! same session is recognised in each of them.

mod files;
mod messages;
mod records;
mod session;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::keys::valid_key;
use super::rows::FirstRow;
use super::value::open_derived;
use crate::container::Container;
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{EventSink, ReadReport};
use crate::format::{Agent, Format, OpenFile};
use crate::json::{Object, field_names};
use crate::json_lines::JsonLines;
use crate::lines::{Lines, first_line};
use crate::source::{Source, file_name};
use crate::sqlite::is_database;
use crate::tables::{Below, Rows, Sessions, Tables, open_database};

use files::SessionFiles;
use messages::{
    Kind, OpenCodeEmitter, Progress, Stored, StoredPart, is_completed, message_kind, part_kind,
};
use records::Record;
use session::SessionInfo;

const TABLES: Tables = Tables {
    sessions: Sessions {
        table: "session",
        id: "id",
        parent: Some("parent_id"),
    },
    // Those but the first two are kept, and not read.
    rows: &[
        Rows {
            table: "message",
            session: "session_id",
            order: &["time_created", "id"],
            below: Some(Below {
                table: "part",
                column: "message_id",
                session: Some("session_id"),
                order: &["id"],
            }),
        },
        plain_rows("session_message"),
        plain_rows("session_input"),
        plain_rows("todo"),
    ],
    columns: &["data"],
};

const fn plain_rows(table: &'static str) -> Rows {
    Rows {
        table,
        session: "session_id",
        order: &[],
        below: None,
    }
}

/// opencode: an SQLite database, older JSON files, and exported sessions.
#[derive(Debug, Clone, Copy)]
pub struct OpenCode;

impl Format for OpenCode {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["opencode"],
            packages: &["opencode-ai"],
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new(
                "opencode",
                "opencode",
                "JSON files (to 1.1), SQLite (1.2 to 1.18), exports",
            )
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        match environment.variable("XDG_DATA_HOME") {
            Some(data) => vec![Path::new(data).join("opencode")],
            None => environment.folders("", ".local/share", &["opencode"]),
        }
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let name = file_name(path);
        let is_database = name.starts_with("opencode") && name.ends_with(".db");
        is_database || files::is_session_path(path)
    }

    /// The agent's snapshots of projects have very many files.
    fn may_contain_sessions(&self, directory: &Path) -> bool {
        !matches!(
            file_name(directory),
            "snapshot" | "log" | "bin" | "tool-output" | "message" | "part"
        )
    }

    fn accompanies_session(&self, path: &Path) -> bool {
        files::is_part_path(path)
    }

    fn tables(&self) -> Option<&'static Tables> {
        Some(&TABLES)
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        is_lines(&head) || is_export(&head) || is_session_file(source, &head)
    }

    fn container(&self, path: &Path) -> Result<Option<Box<dyn Container>>> {
        if is_database(&Source::open(path)?.head()) {
            return open_database(path, &TABLES);
        }
        let files = SessionFiles::open(path)?;
        Ok(files.map(|files| Box::new(files) as Box<dyn Container>))
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        match is_export(&source.head()) {
            true => open_export(source),
            false => open_lines(source),
        }
    }
}

/// Returns whether a file consists of rows, or of older files.
fn is_lines(head: &[u8]) -> bool {
    match FirstRow::find(head) {
        Some(row) => {
            row.is_of("message", &["session_id", "data"])
                || row.is_of("part", &["session_id", "message_id", "data"])
                || row.is_of("session", &["project_id", "directory", "slug"])
        }
        None => {
            let line = first_line(head);
            ["message/", "part/", "session/"]
                .iter()
                .any(|folder| line.starts_with(&format!("{{\"file\":\"{folder}")))
        }
    }
}

/// Returns whether a file is that of a session of an older version.
fn is_session_file(source: &Source, head: &[u8]) -> bool {
    files::is_session_path(source.path()) && files::is_session(&field_names(head))
}

/// Returns whether a file is an exported session.
fn is_export(head: &[u8]) -> bool {
    let fields = field_names(head);
    if !["info", "messages"]
        .iter()
        .all(|name| fields.iter().any(|field| field == name))
    {
        return false;
    }
    let after = memchr::memmem::find(head, b"\"info\"").map(|at| &head[at + 6..]);
    let value = after.map(|after| after.trim_ascii_start());
    let info = value.and_then(|value| value.strip_prefix(b":"));
    let info = field_names(info.unwrap_or_default());
    let has = |name: &str| info.iter().any(|field| field == name);
    has("id") && has("time") && (has("projectID") || has("directory"))
}

/// What is known of a file before it is read.
#[derive(Debug, Default)]
struct Outline {
    session: SessionInfo,
    /// How many messages there are.
    messages: u64,
    /// The position of the last answer, from 1.
    last_answer: u64,
    /// Whether nothing is written to it any more.
    is_copy: bool,
}

impl Outline {
    /// Reads a file for the first time.
    fn read(source: &Source) -> Result<Self> {
        let mut outline = Self::default();
        let mut lines = Lines::new(source, 0, 0);
        while let Some(line) = lines.next()? {
            // Most lines are parts, which do not matter yet.
            if line.bytes.starts_with(b"{\"table\":\"part\"") {
                continue;
            }
            let text = line.text();
            let Ok(object) = Object::parse(&text) else {
                continue;
            };
            outline.is_copy |= object.has("file");
            match Record::read(&object) {
                Record::Session(session) => outline.session = *session,
                Record::Message { data, .. } => outline.add(&data),
                _ => {}
            }
        }
        Ok(outline)
    }

    /// Reads the value of an exported session.
    fn of_export(value: &Object<'_>) -> Self {
        let info = value.object("info").unwrap_or_default();
        let mut outline = Self {
            session: SessionInfo::from_value(&info),
            is_copy: true,
            ..Self::default()
        };
        for json in value.list("messages").unwrap_or_default() {
            let message = Object::from_json(json).unwrap_or_default();
            if let Some(info) = message.get("info") {
                outline.add(info);
            }
        }
        outline
    }

    /// Counts a message.
    fn add(&mut self, data: &str) {
        if !matches!(message_kind(Object::from_json(data).as_ref()), Kind::Known) {
            return;
        }
        self.messages += 1;
        let role = Object::from_json(data).and_then(|data| data.string("role"));
        if role.as_deref() == Some("assistant") {
            self.last_answer = self.messages;
        }
    }

    /// Returns the name of the session.
    fn name(&self, source: &Source) -> String {
        let id = self.session.id.as_deref();
        valid_key(id.unwrap_or(source.stem()))
    }

    /// Returns whether the message at a position, from 1, may still change.
    fn progress(&self, at: u64, message: &Stored<'_>) -> Progress {
        let data = Object::from_json(&message.data).unwrap_or_default();
        let is_over = match data.string("role").as_deref() {
            Some("assistant") => at < self.last_answer || is_completed(&data),
            _ => at < self.messages || self.is_written(message),
        };
        match (is_over, self.is_copy) {
            (true, _) => Progress::Over,
            (false, false) => Progress::Open,
            (false, true) => Progress::Snapshot,
        }
    }

    /// Returns whether a prompt has all its parts: the session is marked as changed after that.
    fn is_written(&self, message: &Stored<'_>) -> bool {
        let last = message.parts.iter().filter_map(|part| part.written).max();
        match (last, self.session.updated) {
            (Some(last), Some(updated)) => last <= updated,
            _ => !message.parts.is_empty() || self.is_copy,
        }
    }
}

fn open_lines(source: &Source) -> Result<OpenFile<'_>> {
    let outline = Outline::read(source)?;
    let (name, origin) = (outline.name(source), outline.session.origin());
    Ok(OpenFile::new(name, origin, move |sink| {
        let mut reader = SessionReader::new(&outline, sink)?;
        let (mut lines, mut report) = JsonLines::new(source);
        let mut current: Option<Stored<'static>> = None;
        while let Some(line) = lines.next(&mut report)? {
            let object = line.object();
            let reason = match Record::read(&object) {
                Record::Message { id, data } => {
                    let message = Stored {
                        id,
                        data: Cow::Owned(data.into_owned()),
                        parts: Vec::new(),
                    };
                    if let Some(before) = current.replace(message) {
                        reader.add(before)?;
                    }
                    continue;
                }
                part @ Record::Part { .. } => match add_part(&mut current, part) {
                    true => continue,
                    false => "part without its message".to_owned(),
                },
                Record::Session(_) | Record::Todo => continue,
                Record::Unknown(kind) => {
                    report.add_unknown(&kind);
                    continue;
                }
                Record::Damaged(reason) => reason,
            };
            report.add_damage(line.number, &line.range, reason);
        }
        if let Some(last) = current {
            reader.add(last)?;
        }
        report.unfinished |= reader.emitter.is_stopped;
        Ok(report)
    }))
}

/// Adds a part to its message. Returns whether it belongs to that.
fn add_part(current: &mut Option<Stored<'static>>, part: Record<'_>) -> bool {
    let Record::Part {
        id,
        message,
        data,
        written,
    } = part
    else {
        return false;
    };
    let of_it = |current: &&mut Stored<'_>| message.is_none_or(|message| message == current.id);
    let Some(current) = current.as_mut().filter(of_it) else {
        return false;
    };
    current.parts.push(StoredPart {
        id,
        data: Cow::Owned(data.into_owned()),
        written,
    });
    true
}

/// Sends the messages of a session, up to where the user went back to.
struct SessionReader<'s> {
    outline: &'s Outline,
    emitter: OpenCodeEmitter<'s>,
    /// How many messages there were.
    at: u64,
    is_cut: bool,
}

impl<'s> SessionReader<'s> {
    fn new(outline: &'s Outline, sink: &'s mut dyn EventSink) -> Result<Self> {
        let details = outline.session.details();
        sink.details(details.clone())?;
        Ok(Self {
            outline,
            emitter: OpenCodeEmitter::new(sink, &details, outline.session.response_scope()),
            at: 0,
            is_cut: false,
        })
    }

    fn add(&mut self, mut message: Stored<'_>) -> Result<()> {
        self.at += 1;
        if self.is_cut {
            return Ok(());
        }
        let mut progress = self.outline.progress(self.at, &message);
        let revert = self.outline.session.revert.as_ref();
        if let Some(revert) = revert.filter(|revert| revert.message == message.id) {
            self.is_cut = true;
            progress = Progress::Over;
            let Some(part) = &revert.part else {
                return Ok(());
            };
            let kept = message.parts.iter().position(|other| other.id == *part);
            message.parts.truncate(kept.unwrap_or(message.parts.len()));
        }
        self.emitter.add(&message, progress)
    }
}

/// Opens an exported session.
fn open_export(source: &Source) -> Result<OpenFile<'_>> {
    open_derived(
        source,
        |text| {
            let value = Object::parse(text)?;
            let outline = Outline::of_export(&value);
            Ok((outline.name(source), outline.session.origin()))
        },
        |text, report, sink| {
            let value = Object::from_json(text).unwrap_or_default();
            let outline = Outline::of_export(&value);
            let mut reader = SessionReader::new(&outline, sink)?;
            for json in value.list("messages").unwrap_or_default() {
                if let Some(message) = exported_message(json, report) {
                    reader.add(message)?;
                }
            }
            Ok(())
        },
    )
}

/// Reads a message of an export. What cannot be read is counted.
fn exported_message<'a>(json: &'a str, report: &mut ReadReport) -> Option<Stored<'a>> {
    let message = Object::from_json(json).unwrap_or_default();
    let info = message.object("info");
    let is_known = count(message_kind(info.as_ref()), report);
    let info = info.filter(|_| is_known)?;
    let mut parts = Vec::new();
    for json in message.list("parts").unwrap_or_default() {
        let data = Object::from_json(json);
        let is_known = count(part_kind(data.as_ref()), report);
        if let Some(data) = data.filter(|_| is_known) {
            parts.push(StoredPart {
                id: data.trimmed("id").unwrap_or_default(),
                data: Cow::Borrowed(json),
                written: None,
            });
        }
    }
    Some(Stored {
        id: info.trimmed("id").unwrap_or_default(),
        data: Cow::Borrowed(message.get("info")?),
        parts,
    })
}

/// Counts a message or part of an export that cannot be used. Returns whether it can.
fn count(kind: Kind, report: &mut ReadReport) -> bool {
    match kind {
        Kind::Known => return true,
        Kind::Unknown(kind) => report.add_unknown(&kind),
        Kind::Damaged(reason) => report.add_damage(1, &(0..report.read_to), reason),
    }
    false
}

#[cfg(test)]
#[path = "opencode_tests.rs"]
mod tests;
