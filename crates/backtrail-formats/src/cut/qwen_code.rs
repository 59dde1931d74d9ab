//! Copies of Qwen Code's sessions.

use std::path::{Path, PathBuf};

use super::edit::LineEdit;
use super::{CopyFormat, OldSession, Renaming};
use crate::error::Result;
use crate::formats::QwenCode;
use crate::json::Object;
use crate::launch::place::{folder, sessions};
use crate::launch::{Launch, NewSession};

pub(super) struct QwenCodeCopies;

impl Launch for QwenCodeCopies {
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
}

impl CopyFormat for QwenCodeCopies {
    fn opens_next(&self, _line: &Object<'_>) -> bool {
        false
    }

    fn read_session(&self, line: &Object<'_>, old: &mut OldSession) -> bool {
        old.read_line(line)
    }

    fn refuses(&self, line: &Object<'_>) -> Option<&'static str> {
        let is_old = line.has("projectHash") || line.has("messages");
        is_old.then_some("a session of an older version, whose file is not lines of records")
    }

    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Renaming<'_>) -> bool {
        let is_named = line.object().non_blank("sessionId").is_some();
        copy.edit_line(line, is_named && !names_origin)
    }
}
