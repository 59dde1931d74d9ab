//! Where agents keep their files on this machine.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The home directory and the variables that tell agents to keep their files elsewhere. The
/// crate itself never reads the process environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    home: Option<PathBuf>,
    variables: BTreeMap<String, OsString>,
}

impl Environment {
    /// Creates one with a home directory and no variables.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: Some(home.into()),
            variables: BTreeMap::new(),
        }
    }

    /// Creates one from variables, `HOME` among them.
    pub fn from_variables(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
        let variables: BTreeMap<_, _> = variables.into_iter().filter_map(text).collect();
        let home = variables.get("HOME").filter(|home| !home.is_empty());
        Self {
            home: home.map(PathBuf::from),
            variables,
        }
    }

    /// Sets a variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the home directory.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns a variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables.get(name).filter(|value| !value.is_empty())
    }

    /// Returns the directory that a variable names, or else one below the home directory.
    pub fn directory(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        match self.variable(variable) {
            Some(value) => Some(PathBuf::from(value)),
            None => Some(self.home()?.join(below_home)),
        }
    }

    /// Returns folders of that directory, or none if there is no such directory.
    pub(crate) fn folders(
        &self,
        variable: &str,
        below_home: &str,
        folders: &[&str],
    ) -> Vec<PathBuf> {
        let directory = self.directory(variable, below_home);
        let folder = |folder: &&str| Some(directory.as_ref()?.join(folder));
        folders.iter().filter_map(folder).collect()
    }
    /// Returns folders below the home directory, or none if there is none.
    pub(crate) fn below_home(&self, folders: &[&str]) -> Vec<PathBuf> {
        let folder = |folder: &&str| Some(self.home()?.join(folder));
        folders.iter().filter_map(folder).collect()
    }
}
