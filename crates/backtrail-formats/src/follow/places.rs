//! Where agents keep their sessions: which files are followed, and which directories lead there.

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::format::Format;
use crate::import::AgentFile;

/// A directory in which an agent keeps sessions.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) format: &'static dyn Format,
    pub(super) directory: PathBuf,
    /// Whether sessions may also be in the directories below it.
    pub(super) is_deep: bool,
}

/// All places, in the order of the formats.
#[derive(Clone)]
pub(super) struct Places(Vec<Place>);

impl Places {
    /// Returns the places of these formats; in `project` too, if an agent keeps sessions there.
    pub(super) fn new(
        formats: &[&'static dyn Format],
        environment: &Environment,
        project: Option<&Path>,
    ) -> Self {
        let mut places = Vec::new();
        for format in formats.iter().copied() {
            let mut add = |directory: PathBuf, is_deep: bool| {
                places.push(Place {
                    format,
                    directory,
                    is_deep,
                });
            };
            for directory in format.directories(environment) {
                add(directory, true);
            }
            let own = project.map(|project| format.project_directories(project));
            for directory in own.into_iter().flatten() {
                add(directory, false);
            }
        }
        Self(places)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Place> {
        self.0.iter()
    }

    /// Returns the session file that a path belongs to: itself, or the database whose log it is.
    pub(super) fn session_file(&self, path: &Path) -> Option<AgentFile> {
        let database = path.to_str().and_then(|path| path.strip_suffix("-wal"));
        let path = database.map_or(path, Path::new);
        let place = self.0.iter().find(|place| {
            let is_file = database.is_none() || place.format.tables().is_some();
            is_file && place.contains(path) && place.format.is_session_file(path)
        })?;
        Some(AgentFile {
            format: place.format,
            path: path.to_owned(),
        })
    }

    /// Returns whether a directory may contain sessions.
    pub(super) fn may_contain_sessions(&self, directory: &Path) -> bool {
        self.0
            .iter()
            .any(|place| place.directory == directory || place.enters(directory))
    }

    /// Returns whether a directory is a place, or one is below it.
    pub(super) fn leads_to_place(&self, directory: &Path) -> bool {
        let mut places = self.0.iter();
        places.any(|place| place.directory.starts_with(directory))
    }
}

impl Place {
    fn contains(&self, file: &Path) -> bool {
        let Some(directory) = file.parent() else {
            return false;
        };
        directory == self.directory || self.enters(directory)
    }

    /// Returns whether the search for sessions enters a directory below this one.
    fn enters(&self, directory: &Path) -> bool {
        self.is_deep
            && directory != self.directory
            && directory.starts_with(&self.directory)
            && directory
                .ancestors()
                .take_while(|above| *above != self.directory)
                .all(|above| self.format.may_contain_sessions(above))
    }
}
