//! Tells files of Claude Code from those of others.

use crate::json::Object;
use crate::source::Source;

/// How many lines are looked at.
const LINES: usize = 40;

/// Returns whether a file is of Claude Code, by its beginning.
pub(super) fn recognises(source: &Source) -> bool {
    let head = source.head();
    let text = String::from_utf8_lossy(&head);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(first) = lines.next() else {
        return false;
    };
    if first.trim() == "{" {
        return recognises_flat(&text);
    }
    let cut = head.len() as u64 != source.len();
    std::iter::once(first)
        .chain(lines)
        .take(LINES)
        .find_map(|line| match Object::parse(line.trim()) {
            Ok(record) => recognise(&record),
            // A first line that is longer than what is looked at.
            Err(_) if cut && line.len() > head.len() / 2 => Some(looks_like(line)),
            Err(_) => None,
        })
        .unwrap_or(false)
}

/// Returns whether a record is Claude Code's; `None` where that cannot be said.
fn recognise(record: &Object) -> Option<bool> {
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
            // Others have a `system` of theirs.
            let chained = record.has("uuid") && record.get("parentUuid").is_some();
            match chained && record.has("sessionId") && record.get("isSidechain").is_some() {
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
fn recognises_flat(text: &str) -> bool {
    match Object::parse(text.trim()) {
        Ok(whole) if whole.has("loglines") => whole.list("loglines").is_some(),
        Ok(whole) => {
            let bare = whole.string("type").as_deref() == Some("file-history-snapshot");
            bare || recognise(&whole).unwrap_or(false)
        }
        // An export that is longer than what is looked at.
        Err(_) => text.contains("\"loglines\"") && text.contains("\"message\""),
    }
}
