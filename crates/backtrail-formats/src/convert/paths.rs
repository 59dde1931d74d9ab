//! Paths in the arguments of calls, where a session continues in another directory.

use std::path::Path;

use backtrail::conversation::Argument;
use backtrail::{Fields, Json};

/// A directory that a session moves from, and the one that it moves to.
pub(super) struct Moved {
    old: String,
    new: String,
}

impl Moved {
    /// Returns `None` if the directories are the same, or not UTF-8.
    pub(super) fn new(old: &Path, new: &Path) -> Option<Self> {
        let (old, new) = (old.to_str()?, new.to_str()?);
        (old != new && old.len() > 1).then(|| Self {
            old: old.trim_end_matches('/').to_owned(),
            new: new.trim_end_matches('/').to_owned(),
        })
    }

    /// Replaces the old directory in the arguments of a call that are paths or commands. What is
    /// in files, and in the texts of edits, stays as it was.
    pub(super) fn rewrite(&self, input: &mut String) {
        const ARGUMENTS: [Argument; 3] = [Argument::Path, Argument::Directory, Argument::Command];
        let Ok(fields) = serde_json::from_str::<Fields>(input) else {
            return;
        };
        let mut rewritten = Fields::default();
        let mut changed = false;
        for (name, value) in fields.iter() {
            let is_it = |argument: &Argument| argument.name_in(|it| it == name).is_some();
            let is_path = ARGUMENTS.iter().any(is_it) || name == "files";
            let new = is_path.then(|| self.in_json(value)).flatten();
            changed |= new.is_some();
            rewritten.push(name, new.unwrap_or_else(|| value.clone()));
        }
        if changed {
            *input = super::to_json(&rewritten).as_str().to_owned();
        }
    }

    /// Returns a value with the new directory; `None` if the old one is not in it.
    fn in_json(&self, value: &Json) -> Option<Json> {
        let mut changed = false;
        let mut new = |value: &Json| {
            let new = self.in_json(value);
            changed |= new.is_some();
            new.unwrap_or_else(|| value.clone())
        };
        let rewritten = match value.as_str().as_bytes().first()? {
            b'"' => {
                let new = self.in_text(&value.parse::<String>().ok()?)?;
                return Some(super::to_json(&new));
            }
            b'[' => {
                let list = value.parse::<Vec<Json>>().ok()?;
                super::to_json(&list.iter().map(new).collect::<Vec<_>>())
            }
            b'{' => {
                let fields = value.parse::<Fields>().ok()?;
                let mut rewritten = Fields::default();
                for (name, value) in fields.iter() {
                    rewritten.push(name, new(value));
                }
                super::to_json(&rewritten)
            }
            _ => return None,
        };
        changed.then_some(rewritten)
    }

    /// Returns a text with the new directory; `None` if the old one is not in it.
    fn in_text(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(&self.old) {
            let end = at + self.old.len();
            let before = rest[..at].chars().next_back();
            let before = before.or_else(|| out.chars().next_back());
            let after = rest[end..].chars().next();
            let is_whole = !before.is_some_and(is_name) && !after.is_some_and(is_name);
            out.push_str(&rest[..at]);
            out.push_str(if is_whole { &self.new } else { &self.old });
            rest = &rest[end..];
        }
        out.push_str(rest);
        (out != text).then_some(out)
    }
}

/// Returns whether a character continues the name of a directory.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_replaced_where_it_is_named_as_a_whole() {
        let moved = Moved::new(Path::new("/w/shop"), Path::new("/new")).unwrap();
        let rewritten = |input: &str| {
            let mut input = input.to_owned();
            moved.rewrite(&mut input);
            input
        };
        for (input, expected) in [
            (r#"{"path":"/w/shop/a.rs"}"#, r#"{"path":"/new/a.rs"}"#),
            (
                r#"{"command":"cd /w/shop && ls /w/shop/src","n":1.0}"#,
                r#"{"command":"cd /new && ls /new/src","n":1.0}"#,
            ),
            (r#"{"path":"/w/shopping"}"#, r#"{"path":"/w/shopping"}"#),
            (r#"{"path":"/w/shop.bak/a"}"#, r#"{"path":"/w/shop.bak/a"}"#),
            (r#"{ "path" : 7 }"#, r#"{ "path" : 7 }"#),
            (
                r#"{"files":[{"path":"/w/shop/a"},1.0,["/w/shop"]]}"#,
                r#"{"files":[{"path":"/new/a"},1.0,["/new"]]}"#,
            ),
        ] {
            assert_eq!(rewritten(input), expected);
        }
        assert!(Moved::new(Path::new("/a"), Path::new("/a")).is_none());
    }
}
