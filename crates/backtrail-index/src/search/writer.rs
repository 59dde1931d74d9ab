//! Adding to the index.

use std::path::Path;

use backtrail::SessionId;

use super::dir::SearchDir;
use crate::error::Result;
use crate::feed::{End, Said, Sink, TrailPlace};

/// Adds to the index, or builds it anew. One at a time: whoever has one holds the lock.
#[derive(Debug)]
pub(crate) struct SearchWriter {}

impl SearchWriter {
    /// Adds to what was opened, which must be the newest.
    pub(crate) fn go_on(_derived: &Path, _dir: &SearchDir) -> Result<Self> {
        Ok(Self {})
    }

    /// Builds all from nothing. What is there answers until the first commit.
    pub(crate) fn anew(_derived: &Path) -> Result<Self> {
        Ok(Self {})
    }

    /// Forgets all trails of a session.
    pub(crate) fn forget_session(&mut self, _session: &SessionId) {}

    /// Forgets one trail.
    pub(crate) fn forget_trail(&mut self, _session: &SessionId, _number: u32) {}

    /// Makes what was taken in durable and seen, and returns the index with it.
    pub(crate) fn commit(&mut self) -> Result<SearchDir> {
        Ok(SearchDir {})
    }
}

impl Sink for SearchWriter {
    fn begin(&mut self, _place: &TrailPlace) -> Result<()> {
        Ok(())
    }

    fn record(&mut self, _said: &Said<'_>) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, _end: Option<End>) -> Result<()> {
        Ok(())
    }
}
