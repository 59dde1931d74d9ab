//! Copies of Copilot CLI's sessions.

use std::path::{Path, PathBuf};

use super::edit::LineEdit;
use super::{CopyFormat, OldSession, Renaming};
use crate::error::Result;
use crate::formats::CopilotCli;
use crate::json::Object;
use crate::launch::place::sessions;
use crate::launch::{Launch, NewSession};

pub(super) struct CopilotCliCopies;

impl Launch for CopilotCliCopies {
    fn program(&self) -> &'static str {
        "copilot"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        vec![format!("--resume={id}")]
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        let sessions = sessions(&CopilotCli, old, new)?;
        Ok(sessions.join(&new.id).join("events.jsonl"))
    }
}

impl CopyFormat for CopilotCliCopies {
    fn opens_next(&self, line: &Object<'_>) -> bool {
        line.string("type").as_deref() == Some("session.resume")
    }

    fn read_session(&self, line: &Object<'_>, old: &mut OldSession) -> bool {
        if line.string("type").as_deref() != Some("session.start") {
            return false;
        }
        let data = line.object("data").unwrap_or_default();
        old.id = data.trimmed("sessionId").unwrap_or_default();
        let context = data.object("context").unwrap_or_default();
        old.directory = context.trimmed("cwd");
        let origin = data.object("forkedFrom").unwrap_or_default();
        old.first = origin.trimmed("firstSessionId");
        !old.id.is_empty()
    }

    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Renaming<'_>) -> bool {
        line.replace(&["data", "sessionId"], &copy.old.id, &copy.new.id);
        copy.replace_directory(line, &["data", "context", "cwd"]);
        copy.replace_directory(line, &["data", "context", "gitRoot"]);
        if !line.is_type("session.start") || names_origin {
            return false;
        }
        line.set(&["data"], "forkedFrom", copy.origin());
        true
    }
}
