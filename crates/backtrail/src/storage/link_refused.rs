//! The error for a link inside a store.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why something in a store is not opened: it, or a directory on the way to
/// it, is a symbolic link. It is the inner error of an [`io::Error`].
#[derive(Debug)]
pub struct LinkRefused {
    link: PathBuf,
}

impl LinkRefused {
    /// Returns the error for a link.
    pub fn at(link: &Path) -> io::Error {
        let link = link.to_owned();
        io::Error::other(Self { link })
    }

    /// Returns the refused link of an error, if that is its reason.
    pub fn link(error: &io::Error) -> Option<&Path> {
        let refused = error.get_ref()?.downcast_ref::<Self>()?;
        Some(&refused.link)
    }
}

impl fmt::Display for LinkRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is a symbolic link, and links inside a store are not followed; \
             put what it points to in its place, or remove it",
            self.link.display()
        )
    }
}

impl std::error::Error for LinkRefused {}
