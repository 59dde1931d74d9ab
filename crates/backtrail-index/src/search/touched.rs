//! The files that tool calls touch, and `file:` filters that match them.
//!
//! A call touches the files that it names. Commands of a shell are not parsed.

use backtrail::conversation::Action;
use backtrail::{Block, Message, ToolUse};

/// A longer text is not a path.
const LONGEST: usize = 1024;

/// Calls `each` with the files that the calls of a message touch.
pub(super) fn touched_by(message: &Message, each: &mut dyn FnMut(&str)) {
    for block in &message.blocks {
        if let Block::ToolUse(call) = block {
            touched_by_call(call, each);
        }
    }
}

fn touched_by_call(call: &ToolUse, each: &mut dyn FnMut(&str)) {
    let action = Action::of(call.name.as_str(), call.input.as_str());
    for path in action.paths() {
        let path = path.trim().strip_prefix("file://").unwrap_or(path.trim());
        let is_name = !path.is_empty() && path != "." && !path.contains('\n');
        if is_name && path.len() <= LONGEST {
            each(path);
        }
    }
}

/// A `file:` filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePattern {
    /// In lower case, with `/` between names and none at the ends.
    wanted: String,
}

impl FilePattern {
    /// Reads a filter; `None` if it names nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let wanted = normal(text);
        let wanted = wanted.trim_start_matches("./").trim_matches('/');
        (!wanted.is_empty()).then(|| Self {
            wanted: wanted.to_owned(),
        })
    }

    /// Returns whether a path matches. A filter with a `/` matches paths that end in it or are
    /// below it; one without matches a part of the file's name, or the whole name of a directory
    /// above it. A `*` stands for any characters of a name.
    pub(crate) fn matches(&self, path: &str) -> bool {
        let path = normal(path);
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let wanted: Vec<&str> = self.wanted.split('/').collect();
        match wanted.as_slice() {
            [name] => {
                let Some((file, above)) = names.split_last() else {
                    return false;
                };
                let in_name = match name.contains('*') {
                    true => glob(name, file),
                    false => file.contains(name),
                };
                in_name || above.iter().any(|above| glob(name, above))
            }
            wanted => {
                let same = |names: &[&str]| {
                    let mut pairs = wanted.iter().zip(names);
                    pairs.all(|(wanted, name)| glob(wanted, name))
                };
                names.windows(wanted.len()).any(same)
            }
        }
    }

    /// Returns the text that a match contains, to mark it; empty if there is none.
    pub(super) fn text(&self) -> &str {
        self.wanted
            .split('*')
            .max_by_key(|part| part.len())
            .unwrap_or("")
    }
}

fn normal(path: &str) -> String {
    path.to_lowercase().replace('\\', "/")
}

/// Returns whether a name matches a pattern in which `*` stands for any characters.
fn glob(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn touched(input: Value) -> Vec<String> {
        let call = ToolUse::new("t1", "edit", &input).expect("a call");
        let mut paths = Vec::new();
        touched_by(&Message::assistant([call.into()]), &mut |path| {
            paths.push(path.to_owned());
        });
        paths
    }

    #[test]
    fn a_call_touches_the_files_that_its_input_names() {
        let table = [
            (
                json!({"file_path": "/w/src/a.rs", "old_string": "path"}),
                vec!["/w/src/a.rs"],
            ),
            (json!({"path": "src", "pattern": "x"}), vec!["src"]),
            (json!({"paths": ["a", "b c.txt"]}), vec!["a", "b c.txt"]),
            (
                json!({"edits": [{"filePath": "deep.rs", "oldString": "x", "newString": "y"}]}),
                vec!["deep.rs"],
            ),
            (json!({"command": "cat src/a.rs"}), vec![]),
            (json!({"path": 3, "file": ""}), vec![]),
            (
                json!("{\"file_path\":\"in/a/string\"}"),
                vec!["in/a/string"],
            ),
            (
                json!({"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n*** End Patch"}),
                vec!["a.py", "b.py"],
            ),
            (
                json!({"uri": "x", "file": "file:///w/c.ts"}),
                vec!["/w/c.ts"],
            ),
        ];
        for (input, expected) in table {
            assert_eq!(touched(input.clone()), expected, "{input}");
        }
    }

    #[test]
    fn a_filter_matches_ends_of_paths_parts_of_names_and_directories() {
        let table = [
            ("src/auth.rs", "/home/u/p/src/auth.rs", true),
            ("src/auth.rs", "src/auth.rs", true),
            ("/src/auth.rs", "/p/src/auth.rs", true),
            ("./src/auth.rs", "/p/src/auth.rs", true),
            ("src/auth.rs", "/p/mysrc/auth.rs", false),
            ("src/auth.rs", "/p/src/oauth.rs", false),
            ("auth", "/p/src/oauth_test.py", true),
            ("auth", "/p/auth/mod.rs", true),
            ("auth", "/p/authors/list.rs", false),
            ("AUTH.rs", "/p/Auth.RS", true),
            ("*.rs", "/p/a.rs", true),
            ("*.rs", "/p/a.rst", false),
            ("src/*/mod.rs", "/p/src/x/mod.rs", true),
            ("src/auth", "/p/src/auth/mod.rs", true),
            ("src\\auth.rs", "C:\\p\\src\\auth.rs", true),
            ("auth", "", false),
        ];
        for (pattern, path, expected) in table {
            let parsed = FilePattern::parse(pattern).expect(pattern);
            assert_eq!(parsed.matches(path), expected, "{pattern} {path}");
        }
        for blank in ["", "/", "./", " "] {
            assert_eq!(FilePattern::parse(blank.trim()), None, "{blank}");
        }
    }
}
