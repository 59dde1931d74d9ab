//! The files that a call names.

use super::patch::FilePatch;
use super::tool_names::PATHS;
use super::tools::Action;

impl Action {
    /// Returns the files that it changes, as the agent names them.
    pub fn edited_paths(&self) -> Vec<&str> {
        match self {
            Self::Edit { path, .. } | Self::Write { path, .. } => vec![path],
            Self::Patch(files) => files.iter().flat_map(FilePatch::paths).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the files and directories that it names: those that it changes, reads, lists or
    /// searches. Commands are not parsed.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::Read(files) => files.iter().map(|file| file.path.as_str()).collect(),
            Self::Search { path, .. } => path.as_deref().into_iter().collect(),
            Self::List(path) => vec![path],
            Self::Other(fields) => {
                // A number is not a path.
                let is_path = |(name, path): &&(String, String)| {
                    PATHS.contains(&name.as_str()) && path.parse::<f64>().is_err()
                };
                let fields = fields.iter().filter(is_path);
                fields.map(|(_, path)| path.as_str()).collect()
            }
            _ => self.edited_paths(),
        }
    }
}

impl FilePatch {
    /// Returns its path, and its new one if it is renamed.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        [Some(self.path.as_str()), self.moved_to.as_deref()]
            .into_iter()
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_files_that_calls_change_and_name_are_known() {
        let edited = |tool: &str, arguments: Value| {
            let action = Action::of(tool, &arguments.to_string());
            assert_eq!(action.paths(), action.edited_paths(), "{tool}");
            action.edited_paths().join(" ")
        };
        assert_eq!(edited("delete_file", json!({"target_file": "a"})), "a");
        let several = json!({"replacements": [
            {"filePath": "a", "oldString": "x", "newString": "y"},
            {"filePath": "b", "oldString": "x", "newString": "y"},
            {"filePath": "a", "oldString": "z", "newString": "y"}]});
        let tool = "multi_replace_string_in_file";
        assert_eq!(edited(tool, several), "a b");
        for (tool, arguments, paths) in [
            ("Grep", json!({"pattern": "x", "path": "src"}), &["src"][..]),
            ("Read", json!({"paths": ["a", "b"]}), &["a", "b"]),
            ("mcp__x__look", json!({"path": "a", "depth": 3}), &["a"]),
            ("Bash", json!({"command": "cat a"}), &[]),
        ] {
            let action = Action::of(tool, &arguments.to_string());
            assert_eq!(action.paths(), paths, "{tool}");
            assert_eq!(action.edited_paths(), [""; 0], "{tool}");
        }
    }
}
