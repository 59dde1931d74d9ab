//! What is never imported.

use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::environment::Environment;
use crate::format::{Format, formats};

/// Patterns of sessions that are never imported: agents by name, and files or directories as in
/// a `.gitignore`. A pattern excludes the sessions whose file it matches, and those that work in
/// a directory that it matches or below it.
#[derive(Debug, Clone, Default)]
pub struct Exclude(Option<Arc<Patterns>>);

#[derive(Debug)]
struct Patterns {
    texts: Vec<String>,
    agents: Vec<&'static str>,
    paths: Gitignore,
}

impl Exclude {
    /// Reads patterns. `~` is the home directory.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the first pattern that cannot be read.
    pub fn new(patterns: &[String], environment: &Environment) -> Result<Self, String> {
        if patterns.is_empty() {
            return Ok(Self::default());
        }
        let mut agents = Vec::new();
        let mut paths = GitignoreBuilder::new("/");
        for pattern in patterns {
            match formats().find(|format| format.name() == pattern) {
                Some(format) => agents.push(format.name()),
                None => add_path(&mut paths, pattern, environment)?,
            }
        }
        let paths = paths.build().map_err(|error| error.to_string())?;
        Ok(Self(Some(Arc::new(Patterns {
            texts: patterns.to_vec(),
            agents,
            paths,
        }))))
    }

    /// Returns the patterns as they were written.
    pub fn patterns(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |patterns| &patterns.texts)
    }

    /// Returns whether all sessions of an agent are excluded.
    pub(crate) fn has_agent(&self, format: &dyn Format) -> bool {
        let patterns = self.0.as_ref();
        patterns.is_some_and(|patterns| patterns.agents.contains(&format.name()))
    }

    /// Returns whether a path, or a directory above it, is excluded.
    pub(crate) fn has_path(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|patterns| {
            // The matcher refuses paths that are not below its root.
            let path = path.is_absolute().then_some(path);
            path.is_some_and(|path| {
                let found = patterns.paths.matched_path_or_any_parents(path, true);
                found.is_ignore()
            })
        })
    }

    /// Returns whether sessions may be excluded by the directory that they work in.
    pub(crate) fn has_paths(&self) -> bool {
        let patterns = self.0.as_ref();
        patterns.is_some_and(|patterns| !patterns.paths.is_empty())
    }
}

fn add_path(
    paths: &mut GitignoreBuilder,
    pattern: &str,
    environment: &Environment,
) -> Result<(), String> {
    let wrong = |reason: &str| Err(format!("the pattern \"{pattern}\" {reason}"));
    let is_blank = pattern.trim().is_empty() || pattern.trim_end() != pattern;
    if is_blank || pattern.contains('\n') {
        return wrong("is blank, or ends in a blank");
    }
    if pattern.starts_with(['!', '#']) {
        return wrong("begins with ! or #, which has no meaning here");
    }
    let expanded = match pattern.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => match environment.home() {
            Some(home) => format!("{}{rest}", escaped(home)),
            None => return wrong("needs a home directory, and HOME is not set"),
        },
        Some(_) => return wrong("must continue with / after ~"),
        None => pattern.to_owned(),
    };
    if expanded.split('/').any(|part| part == "." || part == "..") {
        return wrong("has . or .. in it; write the path without");
    }
    match paths.add_line(None, &expanded) {
        Ok(_) => Ok(()),
        Err(error) => wrong(&format!("cannot be read: {error}")),
    }
}

/// Returns a path as a pattern that means it alone.
fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().trim_end_matches('/').chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exclude(patterns: &[&str]) -> Result<Exclude, String> {
        let patterns: Vec<String> = patterns.iter().map(|&it| it.to_owned()).collect();
        Exclude::new(&patterns, &Environment::new("/home/m[e]"))
    }

    #[test]
    fn patterns_match_paths_and_all_below_them() {
        let exclude = exclude(&["~/secret", "/srv/*/private", "client-*", "codex"]).unwrap();
        let has = |path: &str| exclude.has_path(Path::new(path));
        assert!(has("/home/m[e]/secret"));
        assert!(has("/home/m[e]/secret/deep/er"));
        assert!(!has("/home/me/secret"));
        assert!(!has("/home/m[e]/secrets"));
        assert!(has("/srv/a/private/x"));
        assert!(!has("/srv/a/b/private"));
        assert!(has("/anywhere/client-acme/src"));
        assert!(!has("/anywhere/my-client"));
        assert!(!has("relative/client-acme"));
        // The name of an agent is that agent, not a directory of this name.
        assert!(!has("/home/m[e]/codex"));
        let agents = formats().filter(|format| exclude.has_agent(*format));
        assert_eq!(agents.map(Format::name).collect::<Vec<_>>(), ["codex"]);
    }

    #[test]
    fn a_pattern_that_means_nothing_is_refused() {
        for wrong in [
            "", " ", "a ", "!a", "#a", "~me/a", "../a", "/a/./b", "/a/[z-a]", "a\nb",
        ] {
            let error = exclude(&[wrong]).unwrap_err();
            assert!(error.contains("pattern"), "{wrong}: {error}");
        }
        assert!(!exclude(&[]).unwrap().has_path(Path::new("/a")));
    }
}
