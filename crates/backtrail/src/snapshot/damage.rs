//! Which files and directories of a snapshot are damaged.
//!
//! A damaged content costs its file. A damaged node costs the names in it and everything
//! below them; only the directory that it belongs to can be named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::name::shown;
use crate::error::{Error, ErrorKind, Result};

/// How many paths a message names.
const NAMED: usize = 5;

/// A file or directory of a snapshot that is damaged.
#[derive(Debug)]
pub(crate) struct DamagedPath {
    /// The workspace itself is the empty path.
    pub(crate) path: PathBuf,
    pub(crate) part: DamagedPart,
    /// The checkpoint, as text.
    of: Option<Arc<str>>,
    error: Error,
}

/// What of a path is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DamagedPart {
    /// The content of a file.
    Content,
    /// Some of the names in a directory.
    SomeNames,
    /// All names in a directory.
    AllNames,
}

impl DamagedPath {
    /// Names the path that damage is about. Other errors, and those that name a path already,
    /// are returned as they are.
    pub(crate) fn new(
        path: &Path,
        part: DamagedPart,
        of: Option<&Arc<str>>,
        error: Error,
    ) -> Result<Self> {
        match error.kind() {
            ErrorKind::Corrupt if error.damaged().is_empty() => Ok(Self {
                path: path.to_owned(),
                part,
                of: of.cloned(),
                error,
            }),
            _ => Err(error),
        }
    }

    /// Returns the path as it is shown: the workspace itself is `.`.
    pub(crate) fn name(&self) -> PathBuf {
        match self.path.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => self.path.clone(),
        }
    }

    fn text(&self) -> String {
        match self.part {
            DamagedPart::Content => shown(&self.path),
            _ if self.path.as_os_str().is_empty() => "the top directory".to_owned(),
            _ => format!("the directory {}", shown(&self.path)),
        }
    }
}

/// Makes the error of damage that has been named; `None` if there is none.
pub(crate) fn damage_error(damaged: &[DamagedPath]) -> Option<Error> {
    let first = damaged.first()?;
    let names: Vec<String> = damaged.iter().take(NAMED).map(DamagedPath::text).collect();
    let mut names = names.join(", ");
    if damaged.len() > NAMED {
        names = format!("{names} and {} more", damaged.len() - NAMED);
    }
    let is_same = damaged.iter().all(|one| one.of == first.of);
    let of = first.of.as_ref().filter(|_| is_same);
    let of = of.map_or_else(String::new, |of| format!(" of {of}"));
    let are = if damaged.len() == 1 { "is" } else { "are" };
    let what = format!("{names}{of} {are} damaged: {}", first.error.message());
    let mut error = Error::new(ErrorKind::Corrupt, what)
        .with_damaged(damaged.iter().map(DamagedPath::name).collect());
    if let Some(path) = first.error.path() {
        error = error.at_path(path);
    }
    Some(first.error.byte().into_iter().fold(error, Error::at_byte))
}

/// Names the path that an error is about, if the error is damage.
pub(crate) fn name_damage(
    path: &Path,
    part: DamagedPart,
    of: Option<&Arc<str>>,
    error: Error,
) -> Error {
    match DamagedPath::new(path, part, of, error) {
        Ok(damaged) => damage_error(&[damaged]).expect("there is one"),
        Err(error) => error,
    }
}

/// The damage that a comparison met, on each side.
#[derive(Debug, Default)]
pub(crate) struct DamagedSides {
    pub(crate) before: Vec<DamagedPath>,
    pub(crate) after: Vec<DamagedPath>,
}

impl DamagedSides {
    /// Returns the damage of both sides.
    pub(crate) fn all(mut self) -> Vec<DamagedPath> {
        self.before.append(&mut self.after);
        self.before
    }
}
