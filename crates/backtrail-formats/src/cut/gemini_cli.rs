//! Copies of Gemini CLI's sessions.

use std::path::{Path, PathBuf};

use backtrail::{LocalStorage, Storage as _};

use super::edit::LineEdit;
use super::{CopyFormat, OldSession, Renaming};
use crate::error::Result;
use crate::formats::GeminiCli;
use crate::json::Object;
use crate::launch::place::{sessions, time_in_name};
use crate::launch::{Launch, NewSession};

pub(super) struct GeminiCliCopies;

impl Launch for GeminiCliCopies {
    fn program(&self) -> &'static str {
        "gemini"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        vec!["--resume".to_owned(), id.to_owned()]
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        let sessions = sessions(&GeminiCli, old, new)?;
        let project = project(&sessions, &new.directory);
        let project = project.unwrap_or_else(|| new_project(&sessions, &new.directory));
        let time = time_in_name(new.at, 16);
        let id = new.id.get(..8).unwrap_or(&new.id);
        let name = format!("session-{time}-{id}.jsonl");
        Ok(project.join("chats").join(name))
    }
}

impl CopyFormat for GeminiCliCopies {
    /// A resume repeats the id and all messages; one in the same minute, the header.
    fn opens_next(&self, line: &Object<'_>) -> bool {
        let set = line.object("$set").unwrap_or_default();
        line.has("sessionId") || set.has("sessionId") || set.has("messages")
    }

    fn read_session(&self, line: &Object<'_>, old: &mut OldSession) -> bool {
        old.id = line.trimmed("sessionId").unwrap_or_default();
        let origin = line.object("forkedFrom").unwrap_or_default();
        old.first = origin.trimmed("firstSessionId");
        !old.id.is_empty()
    }

    fn refuses(&self, line: &Object<'_>) -> Option<&'static str> {
        let is_old = line.list("messages").is_some_and(|list| !list.is_empty());
        (is_old || line.has("history"))
            .then_some("a session of an older version, or a saved chat: not lines of messages")
    }

    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Renaming<'_>) -> bool {
        line.replace(&["$set", "sessionId"], &copy.old.id, &copy.new.id);
        let is_header = line.object().string("sessionId").is_some();
        line.replace(&["sessionId"], &copy.old.id, &copy.new.id);
        if !is_header || names_origin {
            return false;
        }
        line.set(&[], "forkedFrom", copy.origin());
        true
    }
}

/// Returns the agent's folder for a directory.
fn project(sessions: &Path, directory: &Path) -> Option<PathBuf> {
    let listed = || {
        let projects = std::fs::read_to_string(sessions.parent()?.join("projects.json")).ok()?;
        let projects = Object::parse(&projects).ok()?.object("projects")?;
        projects.trimmed(directory.to_str()?)
    };
    if let Some(name) = listed() {
        return Some(sessions.join(name));
    }
    let names = LocalStorage.list(sessions).ok()?.into_iter();
    let is_it = |folder: &PathBuf| {
        let root = std::fs::read_to_string(folder.join(".project_root"));
        root.is_ok_and(|root| Path::new(root.trim()) == directory)
    };
    names.map(|name| sessions.join(name)).find(is_it)
}

/// Returns the folder that the agent would make for a directory: its name in plain letters, with a
/// number if that is taken.
fn new_project(sessions: &Path, directory: &Path) -> PathBuf {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '-',
    };
    let name: String = name.chars().map(plain).collect();
    let mut words = name.split('-').filter(|word| !word.is_empty()).peekable();
    let name = match words.peek() {
        Some(_) => words.collect::<Vec<_>>().join("-"),
        None => "project".to_owned(),
    };
    let numbered = (1_u64..).map(|n| sessions.join(format!("{name}-{n}")));
    let mut all = std::iter::once(sessions.join(&name)).chain(numbered);
    all.find(|folder| !folder.exists())
        .expect("there are endlessly many")
}
