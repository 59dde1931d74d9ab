//! Copies of pi's sessions.

use std::path::{Path, PathBuf};

use backtrail::Timestamp;

use super::edit::{LineEdit, quoted};
use super::{CopyFormat, OldSession, Renaming};
use crate::error::Result;
use crate::formats::Pi;
use crate::json::Object;
use crate::launch::place::{sessions, time_in_name};
use crate::launch::{Launch, NewSession, timed_uuid};

pub(super) struct PiCopies;

impl Launch for PiCopies {
    fn program(&self) -> &'static str {
        "pi"
    }

    fn arguments(&self, id: &str) -> Vec<String> {
        vec!["--session".to_owned(), id.to_owned()]
    }

    fn new_id(&self, at: Timestamp, random: [u8; 16]) -> String {
        timed_uuid(at, random)
    }

    fn place(&self, old: &Path, new: &NewSession<'_>) -> Result<PathBuf> {
        let sessions = sessions(&Pi, old, new)?;
        let directory = new.directory.to_string_lossy();
        let directory = directory
            .trim_start_matches('/')
            .replace(['/', '\\', ':'], "-");
        let name = format!("{}_{}.jsonl", time_in_name(new.at, usize::MAX), new.id);
        let folder = sessions.join(format!("--{directory}--"));
        Ok(folder.join(name))
    }
}

impl CopyFormat for PiCopies {
    fn opens_next(&self, _line: &Object<'_>) -> bool {
        false
    }

    fn read_session(&self, line: &Object<'_>, old: &mut OldSession) -> bool {
        if line.string("type").as_deref() != Some("session") {
            return false;
        }
        old.id = line.trimmed("id").unwrap_or_default();
        old.directory = line.trimmed("cwd");
        !old.id.is_empty()
    }

    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Renaming<'_>) -> bool {
        // Only the first header counts.
        if !line.is_type("session") || names_origin {
            return false;
        }
        line.replace(&["id"], &copy.old.id, &copy.new.id);
        copy.replace_directory(line, &["cwd"]);
        // As the agent's own forks have it: the file, whose name ends with the id.
        let end = format!("{}.jsonl", copy.old.id);
        let file = copy.file.to_str().filter(|file| file.ends_with(&end));
        line.set(&[], "parentSession", quoted(file.unwrap_or(&end)));
        true
    }
}
