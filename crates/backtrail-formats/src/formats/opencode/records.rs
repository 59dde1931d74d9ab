//! The lines of a session: rows of opencode's database, or the files of older versions.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::super::rows::{RowLine, json_column};
use super::session::SessionInfo;
use crate::json::Object;

/// What a line contains.
#[derive(Debug)]
pub(super) enum Record<'a> {
    Message {
        id: String,
        data: Cow<'a, str>,
    },
    Part {
        id: String,
        /// The message that it belongs to.
        message: Option<String>,
        data: Cow<'a, str>,
        /// When it was last written, in milliseconds.
        written: Option<u64>,
    },
    Session(Box<SessionInfo>),
    /// An entry of the agent's list of tasks.
    Todo,
    Unknown(String),
    Damaged(String),
}

impl<'a> Record<'a> {
    /// Reads a line. What is in a message or a part is not looked at.
    pub(super) fn read(line: &'a str) -> Self {
        if let Some(row) = RowLine::read_plain(line) {
            return Self::from_row(row);
        }
        let line = Object::from_json(line).unwrap_or_default();
        match line.string("file") {
            Some(path) if !line.has("table") => Self::from_file(&path, &line),
            _ => Self::from_row(RowLine::read(&line)),
        }
    }

    fn from_row(row: RowLine<'a>) -> Self {
        let (table, row) = match row {
            RowLine::Row(table, row) => (table, row),
            RowLine::Damaged(reason) => return Self::Damaged(reason),
        };
        let data = || json_column(&row, "data").unwrap_or_default();
        let id = row.trimmed("id").unwrap_or_default();
        match table.as_ref() {
            "message" => Self::Message { id, data: data() },
            "part" => Self::Part {
                id,
                message: row.trimmed("message_id"),
                data: data(),
                written: row.number("time_updated").or(row.number("time_created")),
            },
            "session" => Self::Session(Box::new(SessionInfo::from_row(&row))),
            "todo" => Self::Todo,
            other => Self::Unknown(format!("table: {other}")),
        }
    }

    /// Reads a file: its path below `storage`, and its text.
    fn from_file(path: &str, line: &Object<'a>) -> Self {
        let Some(text) = line.text("text") else {
            let reason = line.string("damaged").unwrap_or("not UTF-8".into());
            return Self::Damaged(format!("{path} cannot be read: {reason}"));
        };
        if serde_json::from_str::<IgnoredAny>(&text).is_err() {
            return Self::Damaged(format!("{path} is not JSON"));
        }
        // JSON strings contain no line breaks, so all of them are between tokens.
        let data = text.trim().replace(['\n', '\r'], " ");
        let value = Object::from_json(&data).unwrap_or_default();
        let mut names = path.trim_end_matches(".json").split('/');
        let (folder, name) = (names.next(), names.next_back());
        let id = value.trimmed("id");
        let id = id.or_else(|| name.map(str::to_owned)).unwrap_or_default();
        match folder {
            Some("message") => Self::Message {
                id,
                data: Cow::Owned(data),
            },
            Some("part") => Self::Part {
                id,
                message: value
                    .trimmed("messageID")
                    .or_else(|| names.next_back().map(str::to_owned)),
                data: Cow::Owned(data),
                written: None,
            },
            Some("session") => Self::Session(Box::new(SessionInfo::from_value(&value))),
            _ => Self::Unknown(format!("file: {}", folder.unwrap_or_default())),
        }
    }
}
