//! The files that a model edits: by calls, whatever the agent calls its tools, and by blocks in its
//! answers, as aider lets it do.

use backtrail::ToolUse;
use backtrail::conversation::Action;

/// Returns the paths that a call edits, as it names them.
pub(crate) fn edited_paths(call: &ToolUse) -> Vec<String> {
    let action = Action::of(call.name.as_str(), call.input.as_str());
    let paths = action.edited_paths().into_iter().map(str::to_owned);
    let mut paths: Vec<String> = paths.collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// Returns the paths of the files that an answer edits by blocks that say what to search and by what
/// to replace it. The path is the line above the block and its fence.
pub(crate) fn written_paths(text: &str) -> Vec<String> {
    const START: &str = "<<<<<<< SEARCH";
    const END: &str = ">>>>>>> REPLACE";
    if !text.contains(START) {
        return Vec::new();
    }
    let mut paths = Vec::new();
    let mut path = None;
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line == START {
            if lines.any(|line| line == END) {
                paths.extend(path);
            }
        } else if !is_fence(line) {
            path = path_in(line).or(path.filter(|_| line.is_empty()));
        }
    }
    let mut paths: Vec<String> = paths.into_iter().map(str::to_owned).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

fn is_fence(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("<source>") || line == "</source>"
}

/// Returns the path that a line consists of.
fn path_in(line: &str) -> Option<&str> {
    let path = line.trim_matches(['*', '`', '#', ':', ' ']);
    let is_one = !path.is_empty() && !path.contains(char::is_whitespace);
    (is_one && path.contains(['.', '/'])).then_some(path)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(name: &str, input: &Value) -> Vec<String> {
        edited_paths(&ToolUse::new("t", name, input).unwrap())
    }

    #[test]
    fn edits_name_their_files() {
        for (name, input) in [
            (
                "Edit",
                json!({"file_path": "/w/a.rs", "old_string": "x", "new_string": "y"}),
            ),
            ("write_file", json!({"file_path": "/w/a.rs", "content": ""})),
            (
                "NotebookEdit",
                json!({"notebook_path": "/w/a.rs", "new_source": "x"}),
            ),
            ("mcp__fs__write", json!({"path": "/w/a.rs", "content": "x"})),
            (
                "developer__text_editor",
                json!({"command": "str_replace", "path": "/w/a.rs", "old_str": "x", "new_str": "y"}),
            ),
            (
                "edit",
                json!({"filePath": "/w/a.rs", "oldString": "x", "newString": "y"}),
            ),
            ("write_to_file", json!({"TargetFile": "/w/a.rs"})),
            (
                "multi_edit",
                json!({"edits": [{"path": "/w/a.rs", "old_string": "x", "new_string": "y"},
                                 {"path": "/w/a.rs", "old_string": "z", "new_string": "y"}]}),
            ),
        ] {
            assert_eq!(of(name, &input), ["/w/a.rs"], "{name}");
        }
    }

    #[test]
    fn a_patch_names_each_of_its_files_also_within_a_shell() {
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-x\n+y\n\
                     *** Add File: c.txt\n+*** Update File\n*** Delete File: d\n*** End Patch\n";
        let expected = ["c.txt", "d", "src/a.rs", "src/b.rs"];
        assert_eq!(of("apply_patch", &json!(patch)), expected);
        assert_eq!(of("apply_patch", &json!({"input": patch})), expected);
        let shell = json!({"command": ["bash", "-lc", format!("apply_patch <<'EOF'\n{patch}EOF")]});
        assert_eq!(of("shell", &shell), expected);
    }

    #[test]
    fn other_calls_edit_nothing() {
        for (name, input) in [
            ("Read", json!({"file_path": "/w/a.rs"})),
            ("Bash", json!({"command": "echo > a.rs"})),
            ("text_editor", json!({"command": "view", "path": "/w/a.rs"})),
            ("Edit", json!({"file_path": ""})),
            ("Edit", json!([1, null])),
            ("Edit", json!(null)),
            ("TodoWrite", json!({"todos": []})),
        ] {
            assert_eq!(of(name, &input), [""; 0], "{name}");
        }
    }

    #[test]
    fn blocks_in_an_answer_name_their_files() {
        let block = "<<<<<<< SEARCH\na = 1.\n=======\na = 2.\n>>>>>>> REPLACE";
        for (text, paths) in [
            (
                format!("Sure.\n\nsrc/a.py\n```python\n{block}\n```\nDone."),
                vec!["src/a.py"],
            ),
            (
                format!("**a.py**\n\n```python\n{block}\n{block}\n```\n"),
                vec!["a.py"],
            ),
            (
                format!("a.py\n{block}\n\nb.py\n<source>\n{block}\n</source>"),
                vec!["a.py", "b.py"],
            ),
            (format!("Change it like this:\n{block}"), vec![]),
            ("a.py\n<<<<<<< SEARCH\nand nothing more".to_owned(), vec![]),
            ("a.py".to_owned(), vec![]),
        ] {
            assert_eq!(written_paths(&text), paths, "{text}");
        }
    }
}
