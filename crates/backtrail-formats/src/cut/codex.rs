//! Copies of Codex's sessions.

use std::path::{Path, PathBuf};

use backtrail::Timestamp;

use super::edit::{LineEdit, quoted};
use super::{CopyFormat, OldSession, Renaming};
use crate::error::{Error, Result};
use crate::format::Format as _;
use crate::formats::Codex;
use crate::json::Object;
use crate::launch::place::time_in_name;
use crate::launch::{Launch, NewSession, timed_uuid};

pub(super) struct CodexCopies;

impl Launch for CodexCopies {
    fn program(&self) -> &'static str {
        "codex"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        vec!["resume".to_owned(), id.to_owned()]
    }

    /// The reader tells by the time in the id which part of a copy is old.
    fn new_id(&self, at: Timestamp, random: [u8; 16]) -> String {
        timed_uuid(at, random)
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        // Not where the agent archives them.
        let sessions = Codex.directories(new.environment).into_iter().next();
        let Some(sessions) = sessions else {
            return Err(Error::invalid(
                "cannot find where Codex keeps its sessions",
                old,
            ));
        };
        let time = time_in_name(new.at, 19);
        let day = time.get(..10).unwrap_or_default().replace('-', "/");
        let name = format!("rollout-{time}-{}.jsonl", new.id);
        Ok(sessions.join(day).join(name))
    }
}

impl CopyFormat for CodexCopies {
    fn opens_next(&self, line: &Object<'_>) -> bool {
        let payload = line.object("payload").unwrap_or_default();
        match line.string("type").as_deref() {
            Some("turn_context") => true,
            Some("event_msg") => matches!(
                payload.string("type").as_deref(),
                Some("task_started" | "thread_settings_applied")
            ),
            _ => false,
        }
    }

    fn read_session(&self, line: &Object<'_>, old: &mut OldSession) -> bool {
        if line.string("type").as_deref() != Some("session_meta") {
            return false;
        }
        let payload = line.object("payload").unwrap_or_default();
        old.id = payload.trimmed("id").unwrap_or_default();
        old.directory = payload.trimmed("cwd");
        !old.id.is_empty()
    }

    fn refuses(&self, line: &Object<'_>) -> Option<&'static str> {
        let payload = line.object("payload").unwrap_or_default();
        if payload.has("history_base") {
            return Some("its first part is in the file of another session");
        }
        let is_enveloped = line.has("type") && line.has("payload");
        (!is_enveloped).then_some("a session of an older version of Codex")
    }

    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Renaming<'_>) -> bool {
        let (old, new) = (&copy.old.id, &copy.new.id);
        line.replace(&["payload", "thread_id"], old, new);
        line.replace(&["payload", "session_id"], old, new);
        copy.replace_directory(line, &["payload", "cwd"]);
        copy.replace_directory(line, &["payload", "thread_settings", "cwd"]);
        if !line.is_type("session_meta") {
            return false;
        }
        line.replace(&["payload", "id"], old, new);
        if names_origin {
            return false;
        }
        // As the agent's own forks have it.
        line.set(&["payload"], "forked_from_id", quoted(old));
        true
    }
}
