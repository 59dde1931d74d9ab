//! Copies of Qwen Code's sessions.

use std::path::{Path, PathBuf};

use super::edit::LineEdit;
use super::place::{folder, sessions};
use super::{Copy, CopyFormat, NewSession, OldSession};
use crate::error::Result;
use crate::formats::QwenCode;
use crate::json::Object;

pub(super) struct QwenCodeCopies;

impl CopyFormat for QwenCodeCopies {
    fn program(&self) -> &'static str {
        "qwen"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        vec!["--resume".to_owned(), id.to_owned()]
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        let sessions = sessions(&QwenCode, old, new)?;
        let folder = folder(&new.directory, old.ancestors().nth(2));
        let chats = sessions.join(folder).join("chats");
        let name = format!("{}.jsonl", new.id);
        Ok(chats.join(name))
    }

    fn opens_next(&self, _line: &Object<'_>) -> bool {
        false
    }

    fn read_session(&self, line: &Object<'_>, old: &mut OldSession) -> bool {
        if old.id.is_empty() {
            old.id = line.trimmed("sessionId").unwrap_or_default();
        }
        old.directory = old.directory.take().or_else(|| line.trimmed("cwd"));
        !old.id.is_empty() && old.directory.is_some()
    }

    fn refuses(&self, line: &Object<'_>) -> Option<&'static str> {
        let is_old = line.has("projectHash") || line.has("messages");
        is_old.then_some("a session of an older version, whose file is not lines of records")
    }

    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Copy<'_>) -> bool {
        line.replace(&["sessionId"], &copy.old.id, &copy.new.id);
        copy.replace_directory(line, &["cwd"]);
        let object = line.object();
        let is_named = object.non_blank("sessionId").is_some();
        let Some(uuid) = object.string("uuid").filter(|_| is_named && !names_origin) else {
            return false;
        };
        // As the agent's own forks have it.
        let origin = serde_json::json!({"sessionId": copy.old.id, "messageUuid": uuid});
        line.set(&[], "forkedFrom", origin.to_string());
        true
    }
}
