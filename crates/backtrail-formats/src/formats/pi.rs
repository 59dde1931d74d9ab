//! pi: a tree of JSON lines behind a header.

use std::path::{Path, PathBuf};

use crate::format::{Format, ReadError, Resume, Support};
use crate::places::Environment;
use crate::source::Source;
use crate::told::{Sink, Told};

/// pi: a tree of JSON lines behind a header.
#[derive(Debug, Clone, Copy)]
pub struct Pi;

impl Format for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn title(&self) -> &'static str {
        "pi"
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
