//! The directory of a session that does not say where it worked, by the paths of its calls.

use std::path::Path;

use super::item::Item;
use super::relative::{RelativePaths, home_of};
use super::tools::Action;
use crate::error::Result;
use crate::session::SessionReader;

impl SessionReader {
    /// Returns how paths of this session are shown: as seen from `root`, its workspace. Without
    /// one, they are seen from the deepest directory with all files that its calls name.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be read.
    pub fn relative_paths(&self, root: Option<&Path>) -> Result<RelativePaths> {
        if root.is_some() {
            return Ok(RelativePaths::new(root));
        }
        let mut common = CommonRoot::default();
        for item in self.conversation()? {
            if let Item::ToolCall(call) = item? {
                common.add(&call.action());
            }
        }
        Ok(common.paths())
    }
}

/// The deepest directory with all files that calls name.
#[derive(Debug, Default)]
struct CommonRoot {
    directory: Option<String>,
    /// A home directory that is in a command.
    home: Option<String>,
}

impl CommonRoot {
    fn add(&mut self, action: &Action) {
        match action {
            Action::Command { command, directory } => {
                directory.iter().for_each(|it| self.add_directory(it));
                let mut words = command.split([' ', '\n', '\'', '"', '=', ':']);
                let home = || words.find_map(home_of).map(str::to_owned);
                self.home = self.home.take().or_else(home);
            }
            Action::List(directory) => self.add_directory(directory),
            // A place to search in is a directory or a file, which has a dot as a rule.
            Action::Search { path, .. } => {
                let path = path.iter().map(|path| path.trim_end_matches('/'));
                path.for_each(|path| match path.rsplit_once('/') {
                    Some((parent, name)) if name.contains('.') => self.add_directory(parent),
                    _ => self.add_directory(path),
                });
            }
            _ => {
                let parents = action.paths().into_iter();
                let parents = parents.filter_map(|path| path.rsplit_once('/'));
                parents.for_each(|(parent, _)| self.add_directory(parent));
            }
        }
    }

    fn add_directory(&mut self, directory: &str) {
        let directory = directory.strip_prefix("file://").unwrap_or(directory);
        if !directory.starts_with('/') {
            return;
        }
        let directory = directory.trim_end_matches('/');
        self.directory = Some(match &self.directory {
            Some(known) => common(known, directory).to_owned(),
            None => directory.to_owned(),
        });
    }

    fn paths(self) -> RelativePaths {
        let directory = self.directory.unwrap_or_default();
        // All that has less in common are several places.
        let is_deep = directory.matches('/').count() >= 2;
        match home_of(&directory).or(self.home.as_deref()) {
            Some(home) if !is_deep || home == directory => RelativePaths::in_home(home),
            _ if is_deep => RelativePaths::new(Some(Path::new(&directory))),
            _ => RelativePaths::default(),
        }
    }
}

/// Returns the deepest directory with two others.
fn common<'p>(one: &'p str, other: &str) -> &'p str {
    let mut end = 0;
    for (a, b) in one.split('/').zip(other.split('/')) {
        if a != b {
            break;
        }
        end += a.len() + 1;
    }
    &one[..end.saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(calls: &[(&str, &str)], path: &str) -> String {
        let mut root = CommonRoot::default();
        for (tool, path) in calls {
            let arguments = json!({"path": path, "command": path, "pattern": "x"});
            root.add(&Action::of(tool, &arguments.to_string()));
        }
        root.paths().path(path).into_owned()
    }

    #[test]
    fn paths_are_seen_from_the_deepest_directory_with_all_files_of_the_calls() {
        let files = [("Read", "/srv/shop/src/a.rs"), ("Read", "/srv/shop/b.rs")];
        assert_eq!(seen(&files, "/srv/shop/src/a.rs"), "src/a.rs");
        assert_eq!(seen(&files, "/srv/shop/b.rs"), "b.rs");
        assert_eq!(seen(&files, "/srv/shopping/b.rs"), "/srv/shopping/b.rs");
        assert_eq!(
            seen(&[("LS", "/tmp/repo/")], "/tmp/repo/notes.md"),
            "notes.md"
        );
        let search = [("Grep", "/srv/shop/src"), ("Grep", "/srv/shop/src/a.rs")];
        assert_eq!(seen(&search, "/srv/shop/src/a.rs"), "a.rs");
        // A name of a file relative to an unknown directory says nothing.
        assert_eq!(seen(&[("Read", "src/a.rs")], "/srv/shop/a"), "/srv/shop/a");
    }

    #[test]
    fn several_places_and_homes_are_not_one_directory() {
        let apart = [("Read", "/srv/shop/a.rs"), ("Read", "/etc/hosts")];
        assert_eq!(seen(&apart, "/srv/shop/a.rs"), "/srv/shop/a.rs");
        let beside = [("Read", "/srv/shop/a.rs"), ("Read", "/srv/till/a.rs")];
        assert_eq!(seen(&beside, "/srv/shop/a.rs"), "/srv/shop/a.rs");
        let homes = [("Read", "/home/me/shop/a"), ("Read", "/home/me/.config/b")];
        assert_eq!(seen(&homes, "/home/me/shop/a"), "~/shop/a");
        let command = [("Bash", "cat /home/me/shop/Cargo.toml")];
        assert_eq!(seen(&command, "/home/me/shop/a"), "~/shop/a");
        assert_eq!(seen(&[], "/home/me/shop/a"), "/home/me/shop/a");
    }
}
