//! Recognises files of Claude Code.

use serde_json::value::RawValue;

use crate::error::Result;
use crate::json::{Object, elements};
use crate::lines::Lines;
use crate::source::Source;

/// How many lines are read.
const MAX_LINES: usize = 40;

/// Returns whether a file is Claude Code's, by its beginning.
pub(super) fn recognises(source: &Source) -> bool {
    let head = source.head();
    let text = String::from_utf8_lossy(&head);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else {
        return false;
    };
    if first.trim() == "{" {
        return recognises_value(&text);
    }
    let is_cut = head.len() as u64 != source.len();
    std::iter::once(first)
        .chain(lines)
        .take(MAX_LINES)
        .find_map(|line| match Object::parse(line.trim()) {
            Ok(record) => recognise(&record),
            // A first line that is longer than the head.
            Err(_) if is_cut && line.len() > head.len() / 2 => Some(looks_like(line)),
            Err(_) => None,
        })
        .unwrap_or(false)
}

/// Returns whether a record is Claude Code's; `None` if it could be.
fn recognise(record: &Object<'_>) -> Option<bool> {
    if record.has("loglines") {
        return Some(true);
    }
    let kind = record.string("type")?;
    Some(match kind.as_ref() {
        "user" | "assistant" => {
            let message = record.object("message")?;
            let named = record.has("sessionId") || record.has("uuid");
            named && message.has("content") && !message.has("parts") && message.has("role")
        }
        "attachment" | "progress" | "system" => {
            // Other agents have a `system` of their own.
            let has_parent = record.has("uuid") && record.get("parentUuid").is_some();
            let is_own = record.get("isSidechain").is_some() && !record.has("systemPayload");
            match has_parent && record.has("sessionId") && is_own {
                true => return Some(true),
                false => return None,
            }
        }
        "summary" => record.has("summary") && record.get("leafUuid").is_some(),
        "file-history-snapshot" => record.has("snapshot") || record.has("messageId"),
        "queue-operation" => record.has("operation"),
        "custom-title" => record.has("customTitle"),
        "ai-title" => record.has("aiTitle"),
        "last-prompt" => record.has("lastPrompt"),
        "permission-mode" => record.has("permissionMode") && record.has("sessionId"),
        _ => return None,
    })
}

/// Returns whether the beginning of a long line looks like a message of Claude Code.
fn looks_like(line: &str) -> bool {
    ["\"parentUuid\":", "\"isSidechain\":", "\"sessionId\":"]
        .iter()
        .all(|field| line.contains(field))
        && !line.contains("\"parts\":")
}

/// Returns whether a file that is one object is Claude Code's.
fn recognises_value(text: &str) -> bool {
    match Object::parse(text.trim()) {
        Ok(whole) if whole.has("loglines") => whole.list("loglines").is_some(),
        Ok(whole) => {
            let bare = whole.string("type").as_deref() == Some("file-history-snapshot");
            bare || recognise(&whole).unwrap_or(false)
        }
        // An export that is longer than the head.
        Err(_) => text.contains("\"loglines\"") && text.contains("\"message\""),
    }
}

/// The largest value that is split.
const MAX_VALUE: u64 = 64 << 20;

/// What a file contains.
pub(super) enum Content<'s> {
    Lines(&'s Source),
    /// One value that may be incomplete: an object over several lines, or an export with its
    /// records in a list. It is read from the beginning each time.
    Value(&'s Source),
    /// One value of this length, split into lines.
    SplitValue(Source, u64),
}

impl<'s> Content<'s> {
    /// Finds out what a file contains, and splits one value into lines.
    pub(super) fn read(source: &'s Source) -> Result<Self> {
        let mut lines = Lines::new(source, 0, 0);
        let Some(first) = lines.next()?.filter(|line| !line.too_long) else {
            return Ok(Self::Lines(source));
        };
        let is_line = match Object::parse(&first.text()) {
            Ok(first) => !first.has("loglines"),
            // A damaged line is followed by a good one.
            Err(_) => {
                !matches!(first.bytes.first(), Some(b'{' | b'['))
                    || lines
                        .next()?
                        .is_some_and(|line| Object::parse(&line.text()).is_ok())
            }
        };
        if is_line || source.len() > MAX_VALUE {
            return Ok(Self::Lines(source));
        }
        let text = source.read_value()?;
        let Ok(value) = serde_json::from_str::<&RawValue>(&text) else {
            return Ok(Self::Value(source));
        };
        let value = value.get();
        let records = match Object::from_json(value) {
            Some(object) => object.list("loglines").unwrap_or_else(|| vec![value]),
            None => elements(value).unwrap_or_default(),
        };
        let mut lines = String::with_capacity(text.len());
        for record in records {
            lines.push_str(record);
            lines.push('\n');
        }
        let lines = Source::from_bytes(source.path(), lines);
        Ok(Self::SplitValue(lines, source.len()))
    }

    /// Returns the lines.
    pub(super) fn source(&self) -> &Source {
        match self {
            Self::Lines(source) | Self::Value(source) => source,
            Self::SplitValue(lines, _) => lines,
        }
    }
}
