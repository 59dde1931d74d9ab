//! A hook before each change to a workspace's files.

use std::path::Path;
use std::{fmt, io};

/// Is asked before each change to a workspace's files. For tests: what it refuses
/// fails as if the system had refused it.
pub trait TouchHook: fmt::Debug + Send + Sync {
    /// Lets the change happen, or returns the error to fail with.
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
