//! Edits of JSON files that belong to other programs and to people: comments, order, indentation,
//! line ends, a byte order mark and every other byte stay as they are.
//!
//! A [`Document`] knows where each value is in the text. An edit returns the new text, and
//! [`Document::remove`] is the exact reverse of [`Document::add`]: what `add` inserts is the
//! whitespace before the value, the value and one comma, and `remove` deletes just that. Only an
//! empty container without any space inside (`{}`) gets more, which [`Document::squeeze`] removes.
//!
//! Comments and trailing commas are read, as most agents allow them.

mod parser;

use std::ops::Range;

use serde::Serialize as _;
use serde_json::Value;

use self::parser::{BLANKS, Parser};

/// A JSON text, and where its values are.
#[derive(Debug)]
pub(crate) struct Document<'t> {
    text: &'t str,
    /// `None` if there are only blanks and comments.
    root: Option<Node>,
    comments: Vec<Range<usize>>,
}

/// A value, and where it is.
#[derive(Debug)]
pub(crate) struct Node {
    span: Range<usize>,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    Object(Vec<Member>),
    Array(Vec<Node>),
    Scalar,
}

#[derive(Debug)]
struct Member {
    key: String,
    start: usize,
    value: Node,
}

/// A step to a value inside another one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step<'k> {
    Key(&'k str),
    Index(usize),
}

/// The place and the reason why a text is not JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

impl<'t> Document<'t> {
    /// Reads a text.
    pub(crate) fn parse(text: &'t str) -> Result<Self, SyntaxError> {
        let start = match text.starts_with(BYTE_ORDER_MARK) {
            true => BYTE_ORDER_MARK.len(),
            false => 0,
        };
        let mut parser = Parser {
            text,
            at: start,
            comments: Vec::new(),
        };
        let root = parser.document().map_err(|reason| SyntaxError {
            line: text[..parser.at.min(text.len())].matches('\n').count() + 1,
            reason,
        })?;
        Ok(Self {
            text,
            root,
            comments: parser.comments,
        })
    }

    /// Returns the outermost value.
    pub(crate) fn root(&self) -> Option<&Node> {
        self.root.as_ref()
    }

    /// Returns the value at a path.
    pub(crate) fn get(&self, path: &[Step<'_>]) -> Option<&Node> {
        path.iter().try_fold(self.root()?, |node, step| match step {
            Step::Key(key) => node.member(key),
            Step::Index(index) => node.elements().get(*index),
        })
    }

    /// Returns a value without its comments.
    pub(crate) fn value(&self, node: &Node) -> Value {
        match &node.kind {
            NodeKind::Object(members) => {
                let pair = |member: &Member| (member.key.clone(), self.value(&member.value));
                Value::Object(members.iter().map(pair).collect())
            }
            NodeKind::Array(elements) => elements.iter().map(|it| self.value(it)).collect(),
            // A string with half a surrogate pair is JSON, but not a string.
            NodeKind::Scalar => {
                serde_json::from_str(&self.text[node.span.clone()]).unwrap_or_default()
            }
        }
    }

    /// Returns a value as it is written.
    pub(crate) fn text_of(&self, node: &Node) -> &'t str {
        &self.text[node.span.clone()]
    }

    /// Returns the text with other JSON in place of a value.
    pub(crate) fn replace(&self, node: &Node, json: &str) -> String {
        edited(self.text, vec![(node.span.clone(), json.to_owned())])
    }

    /// Returns whether there is nothing between the brackets of a container, not even a space.
    pub(crate) fn is_tight(&self, node: &Node) -> bool {
        node.span.len() == 2
    }

    /// Returns whether there are comments inside `outer` that are not inside `inner`.
    pub(crate) fn has_comments(&self, outer: &Node, inner: &Node) -> bool {
        let within = |comment: &Range<usize>, node: &Node| {
            node.span.start <= comment.start && comment.end <= node.span.end
        };
        let mut comments = self.comments.iter();
        comments.any(|comment| within(comment, outer) && !within(comment, inner))
    }

    /// Returns the text with an outermost value. There must be none yet.
    pub(crate) fn with_root(&self, value: &Value) -> String {
        let start = match self.text.starts_with(BYTE_ORDER_MARK) {
            true => BYTE_ORDER_MARK.len(),
            false => 0,
        };
        let new = self.pretty(value, "") + self.newline();
        edited(self.text, vec![(start..start, new)])
    }

    /// Returns the text without its outermost value.
    pub(crate) fn without_root(&self) -> String {
        let Some(root) = &self.root else {
            return self.text.to_owned();
        };
        let rest = &self.text[root.span.end..];
        let newline = ["\r\n", "\n"].into_iter().find(|it| rest.starts_with(it));
        let end = root.span.end + newline.map_or(0, str::len);
        edited(self.text, vec![(root.span.start..end, String::new())])
    }

    /// Returns the text with another member at the end of an object, or another element at the
    /// end of an array, which has no key.
    pub(crate) fn add(&self, container: &Node, key: Option<&str>, value: &Value) -> String {
        let Some(last) = container.children().pop() else {
            return self.add_first(container, key, value);
        };
        let comma = self.comma_after(last.end);
        let point = self.end_of_line_comments(comma.map_or(last.end, |comma| comma + 1));
        let is_own_line = self.starts_line(last.start) || self.is_line_comment_end(point);
        let item = match is_own_line {
            true => {
                let indent = match self.starts_line(last.start) {
                    true => self.line_indent(last.start).to_owned(),
                    false => self.inner_indent(container),
                };
                let item = self.item(key, &self.pretty(value, &indent), ": ");
                format!("{}{indent}{item}", self.newline())
            }
            false => self.item(key, &value.to_string(), ":"),
        };
        let edits = match comma {
            Some(_) => vec![(point..point, item + ",")],
            None => vec![(last.end..last.end, ",".to_owned()), (point..point, item)],
        };
        edited(self.text, edits)
    }

    fn add_first(&self, container: &Node, key: Option<&str>, value: &Value) -> String {
        let indent = self.inner_indent(container);
        let newline = self.newline();
        let item = self.item(key, &self.pretty(value, &indent), ": ");
        let end = match self.is_tight(container) {
            true => format!("{newline}{}", self.line_indent(container.span.start)),
            false => String::new(),
        };
        let at = container.span.start + 1;
        edited(
            self.text,
            vec![(at..at, format!("{newline}{indent}{item}{end}"))],
        )
    }

    /// Returns the text without the child of a container, its comma and the blanks before it.
    pub(crate) fn remove(&self, container: &Node, index: usize) -> String {
        let children = container.children();
        let child = children[index].clone();
        let comma = self.comma_after(child.end);
        let end = comma.map_or(child.end, |comma| comma + 1);
        let before = index.checked_sub(1).map(|before| children[before].end);
        let comma_before = before.and_then(|end| self.comma_after(end));
        let open = container.span.start + 1;
        let mut start = comma_before.map_or(open, |comma| comma + 1);
        let comments = self.comments.iter().map(|comment| comment.end);
        start = start.max(
            comments
                .filter(|end| *end <= child.start)
                .max()
                .unwrap_or(0),
        );
        let rest = &self.text[end..];
        // What follows must not become part of a comment.
        if self.is_line_comment_end(start) && !rest.starts_with(['\r', '\n']) {
            start = child.start;
        }
        let mut edits = vec![(start..end, String::new())];
        if let (None, Some(comma)) = (comma, comma_before) {
            edits.insert(0, (comma..comma + 1, String::new()));
        }
        edited(self.text, edits)
    }

    /// Returns the text with all blanks removed from an empty container.
    pub(crate) fn squeeze(&self, container: &Node) -> String {
        let inside = container.span.start + 1..container.span.end - 1;
        match self.text[inside.clone()].trim().is_empty() {
            true => edited(self.text, vec![(inside, String::new())]),
            false => self.text.to_owned(),
        }
    }

    fn item(&self, key: Option<&str>, value: &str, colon: &str) -> String {
        match key {
            Some(key) => format!("{}{colon}{value}", Value::from(key)),
            None => value.to_owned(),
        }
    }

    /// Returns a value over several lines, of which all but the first begin with `indent`.
    fn pretty(&self, value: &Value, indent: &str) -> String {
        let mut out = Vec::new();
        let unit = self.indent_unit();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        value
            .serialize(&mut serializer)
            .expect("a value can be written to memory");
        let text = String::from_utf8(out).expect("JSON is UTF-8");
        text.replace('\n', &format!("{}{indent}", self.newline()))
    }

    fn newline(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    /// Returns how far each level is indented: as the first member of the outermost value.
    fn indent_unit(&self) -> &str {
        let inner = self.root().and_then(|root| {
            let first = root.children().into_iter().next()?;
            let outer = self.line_indent(root.span.start);
            let is_own_line = self.starts_line(first.start);
            let inner = is_own_line.then(|| self.line_indent(first.start))?;
            inner.strip_prefix(outer).filter(|inner| !inner.is_empty())
        });
        inner.unwrap_or("  ")
    }

    fn inner_indent(&self, container: &Node) -> String {
        self.line_indent(container.span.start).to_owned() + self.indent_unit()
    }

    /// Returns the blanks at the start of a line.
    fn line_indent(&self, at: usize) -> &str {
        let line = &self.text[self.line_start(at)..];
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// Returns whether only blanks are before a place in its line, and it is not the first line.
    fn starts_line(&self, at: usize) -> bool {
        let start = self.line_start(at);
        start > 0 && self.text[start..at].trim().is_empty()
    }

    /// Returns the comma after a value.
    fn comma_after(&self, mut at: usize) -> Option<usize> {
        loop {
            let rest = &self.text[at..];
            at += rest.len() - rest.trim_start_matches(BLANKS).len();
            match self.comment_at(at) {
                Some(comment) => at = comment.end,
                None => return self.text[at..].starts_with(',').then_some(at),
            }
        }
    }

    /// Returns the end of the comments that follow a place in its line.
    fn end_of_line_comments(&self, from: usize) -> usize {
        let mut end = from;
        loop {
            let rest = &self.text[end..];
            let at = end + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
            match self.comment_at(at) {
                Some(comment) if !self.text[comment.clone()].contains('\n') => end = comment.end,
                _ => return end,
            }
        }
    }

    fn comment_at(&self, at: usize) -> Option<&Range<usize>> {
        self.comments.iter().find(|comment| comment.start == at)
    }

    fn is_line_comment_end(&self, at: usize) -> bool {
        let mut comments = self.comments.iter();
        comments.any(|it| it.end == at && self.text[it.clone()].starts_with("//"))
    }
}

impl Node {
    /// Returns whether the value is an object.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self.kind, NodeKind::Object(_))
    }

    /// Returns whether the value is an array.
    pub(crate) fn is_array(&self) -> bool {
        matches!(self.kind, NodeKind::Array(_))
    }

    /// Returns a member of an object.
    pub(crate) fn member(&self, key: &str) -> Option<&Self> {
        let index = self.index_of(key)?;
        Some(&self.members()[index].value)
    }

    /// Returns the place of a member among the members of an object.
    pub(crate) fn index_of(&self, key: &str) -> Option<usize> {
        self.members().iter().position(|member| member.key == key)
    }

    /// Returns how many members of an object have this key. More than one is a mistake.
    pub(crate) fn count_of(&self, key: &str) -> usize {
        let members = self.members().iter();
        members.filter(|member| member.key == key).count()
    }

    /// Returns the keys of an object, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.members().iter().map(|member| member.key.as_str())
    }

    /// Returns the elements of an array.
    pub(crate) fn elements(&self) -> &[Self] {
        match &self.kind {
            NodeKind::Array(elements) => elements,
            _ => &[],
        }
    }

    /// Returns how many members or elements there are.
    pub(crate) fn len(&self) -> usize {
        self.members().len() + self.elements().len()
    }

    fn members(&self) -> &[Member] {
        match &self.kind {
            NodeKind::Object(members) => members,
            _ => &[],
        }
    }

    /// Returns where the members or elements are.
    fn children(&self) -> Vec<Range<usize>> {
        let members = self.members().iter();
        let members = members.map(|member| member.start..member.value.span.end);
        let elements = self.elements().iter().map(|element| element.span.clone());
        members.chain(elements).collect()
    }
}

/// Replaces parts of a text, which are in order and do not overlap.
fn edited(text: &str, edits: Vec<(Range<usize>, String)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (range, new) in edits {
        out.push_str(&text[from..range.start]);
        out.push_str(&new);
        from = range.end;
    }
    out + &text[from..]
}

#[cfg(test)]
#[path = "json_edit_tests.rs"]
mod tests;
