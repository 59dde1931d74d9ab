//! Codex: rollouts, plain and packed.

use std::path::{Path, PathBuf};

use crate::format::{Format, ReadError, Resume, Support};
use crate::places::Environment;
use crate::source::Source;
use crate::told::{Sink, Told};

/// Codex: rollouts, plain and packed.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Format for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex"
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
