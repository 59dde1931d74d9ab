//! Changes of single values in a line of JSON. All other bytes stay as they are.

use crate::json::{Object, string};

/// A line, and the changes to it.
pub(super) struct LineEdit<'l> {
    text: &'l str,
    object: Object<'l>,
    /// What replaces which bytes.
    changes: Vec<(std::ops::Range<usize>, String)>,
}

impl<'l> LineEdit<'l> {
    /// Starts with no changes. `None` if the line is not a JSON object.
    pub(super) fn new(text: &'l str) -> Option<Self> {
        let object = Object::parse(text).ok()?;
        Some(Self {
            text,
            object,
            changes: Vec::new(),
        })
    }

    /// Returns the line as an object.
    pub(super) fn object(&self) -> &Object<'l> {
        &self.object
    }

    /// Returns whether the line has this type.
    pub(super) fn is_type(&self, name: &str) -> bool {
        self.object.string("type").as_deref() == Some(name)
    }

    /// Replaces the string at a path of fields, if it is `from`.
    pub(super) fn replace(&mut self, path: &[&str], from: &str, to: &str) {
        let Some(value) = self.value(path) else {
            return;
        };
        if from != to && string(value).is_some_and(|value| value == from) {
            let range = self.range(value);
            self.changes.push((range, quoted(to)));
        }
    }

    /// Sets a field of the object at a path of fields to a JSON value; a new one comes first.
    pub(super) fn set(&mut self, path: &[&str], name: &str, json: String) {
        let Some(at) = self.value(path).filter(|value| value.starts_with('{')) else {
            return;
        };
        let Some(object) = Object::from_json(at) else {
            return;
        };
        if let Some(value) = object.get(name) {
            let range = self.range(value);
            self.changes.push((range, json));
            return;
        }
        let inside = self.range(at).start + 1;
        let comma = if object.len() == 0 { "" } else { "," };
        let field = format!("{}:{json}{comma}", quoted(name));
        self.changes.push((inside..inside, field));
    }

    /// Returns the line with the changes.
    pub(super) fn finish(mut self) -> String {
        self.changes.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for (range, new) in &self.changes {
            out.push_str(self.text.get(at..range.start).unwrap_or_default());
            out.push_str(new);
            at = range.end;
        }
        out.push_str(self.text.get(at..).unwrap_or_default());
        out
    }

    /// Returns the value at a path of fields, as it is in the text.
    fn value(&self, path: &[&str]) -> Option<&'l str> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self.text.trim());
        };
        let mut value = self.object.get(first)?;
        for name in rest {
            value = Object::from_json(value)?.get(name)?;
        }
        Some(value)
    }

    /// Returns where a part of the text is.
    fn range(&self, part: &str) -> std::ops::Range<usize> {
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + part.len()
    }
}

/// Returns a text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_values_change() {
        let text =
            r#" {"a" : "old","b":{"id":"old","a":"old"}, "text":"old \"a\":\"old\"", "n":1e2 }"#;
        let mut edit = LineEdit::new(text).unwrap();
        edit.replace(&["a"], "old", "new \"one\"");
        edit.replace(&["b", "id"], "old", "new");
        edit.replace(&["b", "a"], "other", "new");
        edit.replace(&["c", "id"], "old", "new");
        assert_eq!(
            edit.finish(),
            r#" {"a" : "new \"one\"","b":{"id":"new","a":"old"}, "text":"old \"a\":\"old\"", "n":1e2 }"#
        );
    }

    #[test]
    fn a_field_is_replaced_or_comes_first() {
        let set = |text: &str, path: &[&str]| {
            let mut edit = LineEdit::new(text).unwrap();
            edit.set(path, "from", "7".to_owned());
            edit.finish()
        };
        assert_eq!(set(r#"{"a":1}"#, &[]), r#"{"from":7,"a":1}"#);
        assert_eq!(set("{}\n", &[]), "{\"from\":7}\n");
        assert_eq!(set(r#"{"from":null}"#, &[]), r#"{"from":7}"#);
        assert_eq!(
            set(r#"{"a":{"b":[]},"from":1}"#, &["a"]),
            r#"{"a":{"from":7,"b":[]},"from":1}"#
        );
        assert_eq!(set(r#"{"a":[]}"#, &["a"]), r#"{"a":[]}"#);
    }
}
