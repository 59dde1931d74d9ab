//! Making the files what they shall be: staged, checked, then put in place.
//!
//! Everything is reached from a handle on the root, beneath it and through no link.

use std::fmt;
use std::io;
use std::path::Path;

use super::plan::NotRestored;
use super::thing::Item;
use crate::error::{Error, Result};
use crate::ids::CheckpointId;
use crate::objects::Objects;

/// Is asked before each change to a workspace's files. For tests: what it refuses
/// fails as if the system had refused it.
pub trait TouchHook: fmt::Debug + Send + Sync {
    /// Lets the change happen, or says why it fails.
    fn before(&self, touch: &Touch<'_>) -> io::Result<()>;
}

/// A change to a workspace's files that is about to be made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Touch<'a> {
    /// The call, as the system names it.
    pub call: &'static str,
    /// The path it is about, relative to the workspace.
    pub path: &'a Path,
}

/// What is to be done to a workspace's files, by one step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work<'a> {
    /// The workspace's directory: absolute, without links.
    pub(super) root: &'a Path,
    /// The step, which names the staging directory.
    pub(super) id: CheckpointId,
    /// In the order of their paths' bytes.
    pub(super) items: &'a [Item],
    /// Holds the content of every item, old and new.
    pub(super) objects: &'a Objects,
    pub(super) hook: Option<&'a dyn TouchHook>,
}

/// How a step ended.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Paths in neither the old nor the new state, which were left alone.
    pub(super) left: Vec<NotRestored>,
    /// Why everything was put back as it was, if it was.
    pub(super) rolled_back: Option<Error>,
}

impl<'a> Work<'a> {
    /// Writes every new file aside and syncs them all. After an error nothing is
    /// left of it.
    pub(super) fn stage(self) -> Result<Staged<'a>> {
        unimplemented!()
    }

    /// Carries on what a crash interrupted, wherever it stopped.
    pub(super) fn carry_on(self) -> Result<Outcome> {
        unimplemented!()
    }
}

/// Work whose new files are all written and synced.
#[derive(Debug)]
pub(super) struct Staged<'a> {
    _work: Work<'a>,
}

impl Staged<'_> {
    /// Checks once more that every path is in its old state.
    pub(super) fn check(&self) -> Result<()> {
        unimplemented!()
    }

    /// Removes, renames, sets modes; then syncs the directories, and removes what
    /// was staged.
    pub(super) fn perform(self) -> Result<Outcome> {
        unimplemented!()
    }

    /// Removes what was staged; nothing else was touched.
    pub(super) fn give_up(self) {
        unimplemented!()
    }
}
