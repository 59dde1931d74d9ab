//! Copies of Claude Code's sessions.

use std::path::{Path, PathBuf};

use super::edit::LineEdit;
use super::{CopyFormat, OldSession, Renaming};
use crate::error::Result;
use crate::formats::ClaudeCode;
use crate::json::Object;
use crate::launch::place::{folder, sessions};
use crate::launch::{Launch, NewSession};

pub(super) struct ClaudeCodeCopies;

impl Launch for ClaudeCodeCopies {
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
}

impl CopyFormat for ClaudeCodeCopies {
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
        old.read_line(line)
    }

    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Renaming<'_>) -> bool {
        let is_own = !line.object().is_true("isSidechain");
        copy.edit_line(line, is_own && !names_origin)
    }
}
