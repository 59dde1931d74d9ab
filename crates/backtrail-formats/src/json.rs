//! JSON of other programs, read one field at a time.
//!
//! Values are borrowed from the text and keep their bytes until they are needed. A number
//! that no Rust type can hold, a lone surrogate or a thousand levels of nesting cost nothing
//! else in the same record.
//!
//! [`Object::parse`] checks that the text is JSON. What is inside is then taken apart by
//! searching for quotation marks, without a second look at what is between them, which is
//! several times as fast as parsing it. Text that is not JSON may come apart anywhere or not
//! at all, but only ever into parts of itself.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use backtrail::{Json, Text, Timestamp};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A JSON object, borrowed from its text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Object<'a> {
    /// Parses an object; the error is the reason why it is not one.
    pub(crate) fn parse(text: &'a str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| not_an_object(text, &error))
    }

    /// Takes apart a value that is known to be JSON. `None` if it is not an object.
    pub(crate) fn from_json(value: &'a str) -> Option<Self> {
        let mut parts = Splitter::new(value, b'{')?;
        let mut fields = Vec::with_capacity(24);
        while !parts.is_at_end(b'}')? {
            let name = parts.value()?;
            parts.expect(b':')?;
            fields.push((string(name)?, parts.value()?));
        }
        Some(Self(fields))
    }

    /// Returns a field's JSON text.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        let field = self.0.iter().find(|(key, _)| key == name)?;
        Some(field.1)
    }

    /// Returns how many fields there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// Returns whether a field exists and is not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "null")
    }

    /// Returns a copy of a field.
    pub(crate) fn json(&self, name: &str) -> Option<Json> {
        to_json(self.get(name)?)
    }

    /// Returns a copy of a field that is a string.
    pub(crate) fn string_json(&self, name: &str) -> Option<Json> {
        to_json(self.get(name).filter(|value| is_string(value))?)
    }

    /// Returns a string field, byte-exact.
    pub(crate) fn text(&self, name: &str) -> Option<Text> {
        to_text(self.get(name)?)
    }

    /// Returns a string field, to compare or to show.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.get(name)?)
    }

    /// Returns a string field that is not blank.
    pub(crate) fn non_blank(&self, name: &str) -> Option<Cow<'a, str>> {
        self.string(name).filter(|text| !text.trim().is_empty())
    }

    /// Returns a string field without blanks around it, if that leaves anything.
    pub(crate) fn trimmed(&self, name: &str) -> Option<String> {
        Some(self.non_blank(name)?.trim().to_owned())
    }

    /// Returns a field that is a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.non_blank(name)?.into_owned()))
    }

    /// Returns a field that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::from_json(self.get(name)?)
    }

    /// Returns the elements of a list field.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<&'a str>> {
        elements(self.get(name)?)
    }

    /// Returns a field that is a whole number and not negative.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let value = self.get(name)?;
        value.parse().ok().or_else(|| {
            // 12.0 and 1.2e3 are whole numbers too.
            let float: f64 = serde_json::from_str(value).ok()?;
            let is_whole = float >= 0.0 && float.fract() == 0.0 && float < 9e15;
            is_whole.then_some(float as u64)
        })
    }

    /// Returns a number field.
    pub(crate) fn float(&self, name: &str) -> Option<f64> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// Returns whether a field is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Returns a field that is a time, as RFC 3339 or in milliseconds.
    pub(crate) fn time(&self, name: &str) -> Option<Timestamp> {
        match self.string(name) {
            Some(text) => text.parse().ok(),
            None => Timestamp::from_millis(i64::try_from(self.number(name)?).ok()?),
        }
    }
}

/// Returns why a text is not an object.
pub(crate) fn not_an_object(text: &str, error: &serde_json::Error) -> String {
    match text.trim_start().starts_with('{') {
        true => error.to_string(),
        false => "not a JSON object".to_owned(),
    }
}

/// A field's name, borrowed if it has no escapes.
#[derive(Deserialize)]
pub(crate) struct Key<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(24);
                while let Some((Key(name), value)) = map.next_entry::<_, &'de RawValue>()? {
                    fields.push((name, value.get()));
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// Returns the elements of a list that is known to be JSON. `None` if it is not a list.
pub(crate) fn elements(value: &str) -> Option<Vec<&str>> {
    let mut parts = Splitter::new(value, b'[')?;
    let mut elements = Vec::new();
    while !parts.is_at_end(b']')? {
        elements.push(parts.value()?);
    }
    Some(elements)
}

/// Returns whether a value is a string.
pub(crate) fn is_string(value: &str) -> bool {
    value.starts_with('"')
}

/// Returns a string, borrowed if it has no escapes.
pub(crate) fn string(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    Some(Cow::Owned(to_text(value)?.as_str().to_owned()))
}

/// Returns a string, byte-exact.
pub(crate) fn to_text(value: &str) -> Option<Text> {
    serde_json::from_str(value).ok()
}

/// Returns a copy of a value.
pub(crate) fn to_json(value: &str) -> Option<Json> {
    serde_json::from_str(value).ok()
}

/// Passes on a JSON value in parts, without the blanks between its tokens.
pub(crate) fn parts_without_blanks(json: &str, mut each: impl FnMut(&str)) {
    let bytes = json.as_bytes();
    let (mut from, mut at) = (0, 0);
    let mut in_string = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b' ' | b'\t' | b'\n' | b'\r' if !in_string => {
                each(json.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    each(json.get(from..).unwrap_or_default());
}

/// Returns a copy of a value, without the blanks between its tokens.
pub(crate) fn to_compact_json(value: &str) -> Option<Json> {
    let mut compact = String::with_capacity(value.len());
    parts_without_blanks(value, |part| compact.push_str(part));
    to_json(&compact)
}

/// Returns the names of the fields of the object at the beginning of a text, or of the first
/// object of a list there, as far as the text goes.
pub(crate) fn field_names(head: &[u8]) -> Vec<String> {
    const MAX: usize = 256;
    let text = String::from_utf8_lossy(crate::source::trim(head));
    let text = text.strip_prefix('[').unwrap_or(&text);
    let mut names = Vec::new();
    let Some(mut parts) = Splitter::new(text, b'{') else {
        return names;
    };
    while names.len() < MAX
        && parts.is_at_end(b'}') == Some(false)
        && let Some(name) = parts.value().and_then(string)
    {
        names.push(name.into_owned());
        if parts.expect(b':').and_then(|()| parts.value()).is_none() {
            break;
        }
    }
    names
}

/// Finds where the parts of an object or a list end.
struct Splitter<'a> {
    text: &'a str,
    at: usize,
    /// Whether a comma must come before the next part.
    needs_comma: bool,
}

impl<'a> Splitter<'a> {
    fn new(text: &'a str, open: u8) -> Option<Self> {
        let mut parts = Self {
            text,
            at: 0,
            needs_comma: false,
        };
        parts.expect(open)?;
        Some(parts)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Moves to the next part; returns whether the end was reached.
    fn is_at_end(&mut self, close: u8) -> Option<bool> {
        self.skip_blanks();
        if self.peek()? == close {
            return Some(true);
        }
        if self.needs_comma {
            self.expect(b',')?;
        }
        self.needs_comma = true;
        Some(false)
    }

    /// Skips a value and returns it.
    fn value(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let from = self.at;
        match self.peek()? {
            b'"' => self.skip_string()?,
            b'{' | b'[' => self.skip_nested()?,
            _ => self.skip_word(),
        }
        (self.at > from)
            .then(|| self.text.get(from..self.at))
            .flatten()
    }

    /// Skips a string: up to a quotation mark with an even number of backslashes before it.
    fn skip_string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let from = self.at + 1;
        let mut at = from;
        loop {
            at += memchr::memchr(b'"', bytes.get(at..)?)?;
            let before = bytes.get(from..at)?;
            let escapes = before.iter().rev().take_while(|byte| **byte == b'\\');
            at += 1;
            if escapes.count() % 2 == 0 {
                self.at = at;
                return Some(());
            }
        }
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn skip_word(&mut self) {
        let is_end = |byte: u8| matches!(byte, b',' | b':' | b'}' | b']' | b'"') || byte <= b' ';
        while self.peek().is_some_and(|byte| !is_end(byte)) {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(object: &Object<'_>) -> Vec<(String, String)> {
        let fields = object.fields();
        fields
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn an_object_is_split_as_a_json_parser_splits_it() {
        for text in [
            r#"{}"#,
            r#" { "a" : 1 , "b\"}":[ "]", {"x":"\\"} ] , "c":null } "#,
            r#"{"a":"\\\\","b":"\\\"","c":"","d":-1.5e3,"e":true,"a":[]}"#,
            r#"{"ä":"ö","text":"{\"a\":[1,2,{\"b\":\"c\\\\\"}]}","z":{"y":{"x":[[[]]]}}}"#,
        ] {
            let (split, parsed) = (Object::from_json(text), Object::parse(text));
            assert_eq!(fields(&split.unwrap()), fields(&parsed.unwrap()), "{text}");
        }
    }

    #[test]
    fn a_list_is_split_as_a_json_parser_splits_it() {
        for text in [
            "[]",
            " [ 1 , \"]\\\"\", {\"a\":[2]} ,null] ",
            "[[],[[]],\"\"]",
        ] {
            let parsed: Vec<&RawValue> = serde_json::from_str(text).unwrap();
            let parsed: Vec<&str> = parsed.into_iter().map(RawValue::get).collect();
            assert_eq!(elements(text).unwrap(), parsed, "{text}");
        }
    }

    #[test]
    fn text_that_is_not_json_is_split_without_a_panic() {
        let whole = r#"{"a":{"b":["\\",1,"ü"]},"c":"d\"e"}"#;
        for cut in (0..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
            assert!(Object::from_json(&whole[..cut]).is_none(), "{cut}");
            Object::from_json(&whole[cut..]);
            elements(&whole[cut..]);
        }
        for text in [
            "",
            "[",
            "{,}",
            "{:}",
            "{\"a\"}",
            "{\"a\":}",
            "{1:2}",
            "{\"a\" \"b\"}",
        ] {
            assert!(Object::from_json(text).is_none(), "{text}");
        }
        for text in ["]", "[,]", "[1 2]", "[1,", "[}", "{}"] {
            assert_eq!(elements(text), None, "{text}");
        }
        let deep = "[".repeat(1 << 20);
        assert_eq!(elements(&deep), None);
    }
}
