//! Checkpoint files of an older session history (design B).

use std::path::{Path, PathBuf};

use crate::format::{Format, ReadError, Resume, Support};
use crate::places::Environment;
use crate::source::Source;
use crate::told::{Sink, Told};

/// Checkpoint files of an older session history (design B).
#[derive(Debug, Clone, Copy)]
pub struct CheckpointFiles;

impl Format for CheckpointFiles {
    fn name(&self) -> &'static str {
        "checkpoint-files"
    }

    fn title(&self) -> &'static str {
        "checkpoint files"
    }

    fn support(&self) -> Support {
        Support::messages("")
    }

    fn places(&self, _environment: &Environment) -> Vec<PathBuf> {
        Vec::new()
    }

    fn is_session_name(&self, _path: &Path) -> bool {
        false
    }

    fn recognises(&self, _source: &Source) -> bool {
        false
    }

    fn read(
        &self,
        source: &Source,
        _resume: Option<&Resume>,
        _sink: &mut dyn Sink,
    ) -> Result<Told, ReadError> {
        let what = "this format is not read yet";
        Err(crate::error::Error::invalid(what, source.path()).into())
    }
}
