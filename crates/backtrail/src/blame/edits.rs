//! What a tool call wrote to files.

use crate::conversation::{Action, FilePatch, LineChange, Replacement};
use crate::snapshot::common_lines::common_lines;

/// What a call wrote to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileEdit {
    /// The path as the agent wrote it.
    pub(super) path: String,
    /// The lines that it added, in blocks.
    pub(super) added: Vec<Vec<u8>>,
}

/// Returns what a call wrote to files, as far as it says so.
pub(super) fn edits_of(action: &Action) -> Vec<FileEdit> {
    let edit = |path: &str, added: Vec<Vec<u8>>| FileEdit {
        path: path.to_owned(),
        added,
    };
    let mut edits: Vec<FileEdit> = match action {
        Action::Edit { path, changes } => {
            let added = changes.iter().flat_map(added_lines);
            vec![edit(path, added.collect())]
        }
        Action::Write { path, content } => {
            let added = content.iter().map(|text| text.as_bytes().to_vec());
            vec![edit(path, added.collect())]
        }
        Action::Patch(files) => {
            let of = |file: &FilePatch| {
                let added = added_in(file);
                let paths = file.paths().map(|path| edit(path, added.clone()));
                paths.collect::<Vec<_>>()
            };
            files.iter().flat_map(of).collect()
        }
        _ => Vec::new(),
    };
    for edit in &mut edits {
        edit.added.retain(|block| !block.is_empty());
    }
    edits.retain(|edit| !edit.added.is_empty());
    edits
}

/// Returns the lines of a new text that the old one does not have, in blocks.
fn added_lines(change: &Replacement) -> Vec<Vec<u8>> {
    let lines: Vec<&str> = change.new.split_inclusive('\n').collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    for run in common_lines(change.old.as_bytes(), change.new.as_bytes()) {
        blocks.push(lines[at..run.after].concat().into_bytes());
        at = run.after + run.len;
    }
    blocks.push(lines[at..].concat().into_bytes());
    blocks
}

/// Returns the lines that a patch adds; any other line ends a block.
fn added_in(file: &FilePatch) -> Vec<Vec<u8>> {
    let mut added = vec![Vec::new()];
    for (change, line) in &file.lines {
        match (change, added.last_mut()) {
            (LineChange::Added, Some(block)) => {
                block.extend_from_slice(line.as_bytes());
                block.push(b'\n');
            }
            (_, Some(block)) if !block.is_empty() => added.push(Vec::new()),
            _ => {}
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn edits(tool: &str, arguments: &Value) -> Vec<(String, Vec<String>)> {
        let text = |block: Vec<u8>| String::from_utf8(block).unwrap();
        let edits = edits_of(&Action::of(tool, &arguments.to_string()));
        let edits = edits.into_iter();
        edits
            .map(|edit| (edit.path, edit.added.into_iter().map(text).collect()))
            .collect()
    }

    fn one(path: &str, blocks: &[&str]) -> Vec<(String, Vec<String>)> {
        let blocks = blocks.iter().map(ToString::to_string).collect();
        vec![(path.to_owned(), blocks)]
    }

    #[test]
    fn only_the_lines_that_an_edit_adds_count() {
        for tool in ["Edit", "some_tool"] {
            let edit = json!({"file_path": "/w/a", "old_string": "one\ntwo\nthree",
                              "new_string": "one\n2\nthree"});
            assert_eq!(edits(tool, &edit), one("/w/a", &["2\n"]));
            let write = json!({"path": "a", "content": "x\ny\n"});
            assert_eq!(edits(tool, &write), one("a", &["x\ny\n"]));
            let several = json!({"filePath": "a", "edits": [
                {"oldText": "a\n", "newText": "b\n"}, {"old_string": "", "new_string": "c\n"}]});
            assert_eq!(edits(tool, &several), one("a", &["b\n", "c\n"]));
        }
        let read = json!({"file_path": "/w/a", "limit": 3});
        assert_eq!(edits("Read", &read), []);
        for other in [json!([]), json!(3), json!({"content": "x"}), json!("x")] {
            assert_eq!(edits("Edit", &other), [], "{other}");
        }
        assert_eq!(edits_of(&Action::of("Edit", "{")), []);
    }

    #[test]
    fn patches_name_their_files() {
        let patch = "*** Begin Patch\n*** Update File: src/a\n@@\n one\n-two\n+2\n+3\n four\n+5\n*** Add File: b\n+new\n*** End Patch";
        let expected = [one("src/a", &["2\n3\n", "5\n"]), one("b", &["new\n"])].concat();
        let shell =
            |line: String| json!({"command": ["bash", "-lc", format!("{line} <<'E'\n{patch}\nE")]});
        for (tool, call) in [
            ("apply_patch", json!({"input": patch})),
            ("apply_patch", json!(patch)),
            ("shell", shell("apply_patch".to_owned())),
            ("shell", shell("cd /w && apply_patch".to_owned())),
        ] {
            assert_eq!(edits(tool, &call), expected, "{call}");
        }
        let moved = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n+x\n*** End Patch";
        let moved = edits("apply_patch", &json!({"input": moved}));
        assert_eq!(moved, [one("a", &["x\n"]), one("b", &["x\n"])].concat());
    }

    #[test]
    fn blocks_of_a_search_and_replace_are_read() {
        let diff = "------- SEARCH\nold\n=======\nnew\nlines\n+++++++ REPLACE\n\
                    <<<<<<< SEARCH\n:start_line:7\n-------\na\n=======\nb\n>>>>>>> REPLACE\n";
        for tool in ["replace_in_file", "apply_diff"] {
            let call = json!({"path": "a", "diff": diff});
            assert_eq!(edits(tool, &call), one("a", &["new\nlines\n", "b\n"]));
        }
        let call = json!({"path": "a", "diff": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"});
        assert_eq!(edits("edit_file", &call), one("a", &["y\n"]));
    }

    #[test]
    fn a_list_of_edits_may_name_several_files() {
        let several = json!({"replacements": [
            {"filePath": "a", "oldString": "x", "newString": "y"},
            {"filePath": "b", "oldString": "x", "newString": "y"},
            {"filePath": "a", "oldString": "z", "newString": "y"}]});
        let both = [one("a", &["y\n", "y\n"]), one("b", &["y\n"])].concat();
        assert_eq!(edits("multi_replace_string_in_file", &several), both);
    }
}
