//! Copies of Claude Code's sessions.

use std::path::{Path, PathBuf};

use super::edit::LineEdit;
use super::place::{folder, sessions};
use super::{Copy, CopyFormat, NewSession, OldSession};
use crate::error::Result;
use crate::formats::ClaudeCode;
use crate::json::Object;

pub(super) struct ClaudeCodeCopies;

impl CopyFormat for ClaudeCodeCopies {
    fn program(&self) -> &'static str {
        "claude"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        vec!["--resume".to_owned(), id.to_owned()]
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        let sessions = sessions(&ClaudeCode, old, new)?;
        let folder = folder(&new.directory, old.parent());
        let name = format!("{}.jsonl", new.id);
        Ok(sessions.join(folder).join(name))
    }

    /// A prompt that waits, or what the hooks of a start added.
    fn opens_next(&self, line: &Object<'_>) -> bool {
        let of_hook = |name: &str| {
            let object = line.object(name).unwrap_or_default();
            object.string("hookEvent").as_deref() == Some("SessionStart")
        };
        line.string("type").as_deref() == Some("queue-operation")
            || of_hook("attachment")
            || of_hook("data")
    }

    fn read_session(&self, line: &Object<'_>, old: &mut OldSession) -> bool {
        if old.id.is_empty() {
            old.id = line.trimmed("sessionId").unwrap_or_default();
        }
        old.directory = old.directory.take().or_else(|| line.trimmed("cwd"));
        !old.id.is_empty() && old.directory.is_some()
    }

    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Copy<'_>) -> bool {
        line.replace(&["sessionId"], &copy.old.id, &copy.new.id);
        copy.replace_directory(line, &["cwd"]);
        let object = line.object();
        let is_own = !object.is_true("isSidechain");
        let Some(uuid) = object.string("uuid").filter(|_| is_own && !names_origin) else {
            return false;
        };
        // As the agent's own forks have it.
        let origin = serde_json::json!({"sessionId": copy.old.id, "messageUuid": uuid});
        line.set(&[], "forkedFrom", origin.to_string());
        true
    }
}
