//! A hook before each change to a workspace's files.

use std::path::Path;
use std::{fmt, io};

/// A hook that is called before each change to a workspace's files. For tests: a refused
/// change fails as if the system had refused it.
pub trait TouchHook: fmt::Debug + Send + Sync {
    /// Allows the change.
    ///
    /// # Errors
    ///
    /// Returns the error with which the change must fail.
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
