//! OpenClaw: pi's files, in a directory of its own.
//!
//! OpenClaw runs pi and keeps its sessions like pi does: a header and a tree of JSON lines. Newer
//! versions keep them in a database, which is not read here. A session that was reset or deleted
//! stays beside the others, renamed to `ID.jsonl.reset.TIME` or `ID.jsonl.deleted.TIME`.

use std::path::{Path, PathBuf};

use super::pi;
use crate::environment::Environment;
use crate::error::Result;
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::source::{Source, file_name, is_json_lines};

/// OpenClaw: pi's files, in a directory of its own.
#[derive(Debug, Clone, Copy)]
pub struct OpenClaw;

impl Format for OpenClaw {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["openclaw"],
            appends: true,
            branches: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new("openclaw", "OpenClaw", "3, as files")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        environment.folders("OPENCLAW_STATE_DIR", ".openclaw", &["agents"])
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let name = file_name(path);
        let is_other = name.contains(".trajectory.jsonl") || name.contains(".checkpoint.");
        let is_archived = name.contains(".jsonl.reset.") || name.contains(".jsonl.deleted.");
        (is_json_lines(path) || is_archived) && !is_other
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        pi::has_header(&head) && pi::is_of_openclaw(source.path(), &head)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        pi::open(source, pi::MissingParent::IsPrevious)
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        pi::resume(source, resume)
    }
}

#[cfg(test)]
#[path = "openclaw_tests.rs"]
mod tests;
