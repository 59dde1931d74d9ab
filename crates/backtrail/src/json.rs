//! JSON that keeps its bytes.
//!
//! Values that the engine does not understand must not change: unknown fields and blocks,
//! tool input with its number formats and key order, strings that no Rust `String` can
//! hold. [`Json`] and [`Text`] carry such values.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::Error;

/// A JSON value with its original bytes.
///
/// Two values are equal if their bytes are. Line breaks between tokens become spaces,
/// because a record is one line; nothing else changes.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Wraps JSON text without changing it.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if the text is not JSON.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let raw = RawValue::from_string(text.into());
        raw.map(Self::from_raw)
            .map_err(|error| Error::json("this is not JSON", &error))
    }

    /// Serializes a value.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if the value cannot be
    /// serialized.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        let raw = serde_json::value::to_raw_value(value);
        raw.map(Self::from_raw)
            .map_err(|error| Error::json("cannot write this as JSON", &error))
    }

    fn from_raw(raw: Box<RawValue>) -> Self {
        if memchr::memchr2(b'\n', b'\r', raw.get().as_bytes()).is_none() {
            return Self(raw);
        }
        // A JSON string cannot contain a raw line break, so each one is between tokens,
        // where a space means the same.
        let one_line = raw.get().replace(['\n', '\r'], " ");
        Self(RawValue::from_string(one_line).expect("spaces between tokens leave JSON valid"))
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Parses the value.
    ///
    /// # Errors
    ///
    /// Fails with [`Invalid`](crate::ErrorKind::Invalid) if the value is not a `T`.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        serde_json::from_str(self.as_str())
            .map_err(|error| Error::json("cannot read this JSON", &error))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from_raw)
    }
}

/// A byte-exact string of a message.
///
/// It behaves like an ordinary string. If the JSON contained something that no UTF-8
/// string can hold (a lone surrogate, `"\ud83d"`), it reads as U+FFFD, and the original
/// is kept beside it and written back.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Text {
    shown: String,
    /// The JSON string literal, if `shown` does not represent all of it.
    exact: Option<Box<str>>,
}

impl Text {
    /// Returns the text, with U+FFFD for anything that is not valid UTF-8.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// Returns whether [`as_str`](Self::as_str) lost something.
    pub fn is_lossy(&self) -> bool {
        self.exact.is_some()
    }

    /// Parses a JSON string literal; `None` if it is something else.
    pub(crate) fn from_literal(literal: &str) -> Option<Self> {
        let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            // A literal without escapes is its own text.
            return Some(Self {
                shown: inner.to_owned(),
                exact: None,
            });
        }
        if let Ok(shown) = serde_json::from_str(literal) {
            return Some(Self { shown, exact: None });
        }
        Some(Self {
            shown: decode_lossy(inner),
            exact: Some(literal.into()),
        })
    }
}

/// Decodes the inside of a valid string literal.
pub(crate) fn decode_lossy(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at + 1).copied();
        if escape != Some(b'u') {
            out.push(match escape {
                Some(b'n') => '\n',
                Some(b't') => '\t',
                Some(b'r') => '\r',
                Some(b'b') => '\u{8}',
                Some(b'f') => '\u{c}',
                Some(other) => char::from(other),
                None => char::REPLACEMENT_CHARACTER,
            });
            rest = rest.get(at + 2..).unwrap_or("");
            continue;
        }
        let (decoded, used) = decode_units(&rest[at..]);
        out.push(decoded);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    out
}

/// Returns the length of a string literal once decoded; `None` if it is something else.
pub(crate) fn decoded_len(literal: &str) -> Option<usize> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut len = 0;
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (decoded, used) = match rest.as_bytes().get(at + 1) {
            Some(b'u') => {
                let (decoded, used) = decode_units(&rest[at..]);
                (decoded.len_utf8(), used)
            }
            _ => (1, 2),
        };
        len += at + decoded;
        rest = rest.get(at + used..).unwrap_or("");
    }
    Some(len + rest.len())
}

/// Decodes one `\u` escape or a surrogate pair, and returns the character and the length
/// of its spelling.
fn decode_units(text: &str) -> (char, usize) {
    let unit = |at: usize| {
        let hex = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(hex, 16).ok()
    };
    let Some(first) = unit(0) else {
        return (char::REPLACEMENT_CHARACTER, 2.min(text.len()));
    };
    let units = [Some(first), unit(6)].into_iter().flatten();
    match char::decode_utf16(units).next() {
        Some(Ok(c)) => (c, 6 * c.len_utf16()),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.shown
    }
}

impl<S: Into<String>> From<S> for Text {
    fn from(text: S) -> Self {
        Self {
            shown: text.into(),
            exact: None,
        }
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.exact.is_none() && self.shown == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.exact {
            Some(literal) => f.write_str(literal),
            None => fmt::Debug::fmt(&self.shown, f),
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.exact {
            None => serializer.serialize_str(&self.shown),
            Some(literal) => RawValue::from_string(literal.to_string())
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_literal(raw.get()).ok_or_else(|| de::Error::custom("expected a string"))
    }
}

/// Writes the fields of a record after its number; see [`write_fields`].
pub(crate) fn body(fields: &impl Serialize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let written = write_fields(&mut body, fields);
    written.map_err(|error| Error::json("cannot write the record", &error))?;
    Ok(body)
}

/// Writes the fields of a value that serializes to an object, each after a comma:
/// `,"a":1,"b":2`. They continue an object that has other fields.
pub(crate) fn write_fields<T: Serialize>(
    out: &mut Vec<u8>,
    value: &T,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    serde_json::to_writer(&mut *out, value)?;
    out.pop();
    if out.len() > start + 1 {
        out[start] = b',';
    } else {
        out.truncate(start);
    }
    Ok(())
}

/// A key of an object, borrowed if it has no escapes.
#[derive(Deserialize)]
pub(crate) struct Key<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Reads the names and values of an object, in order.
fn entries<'de, D, N, V>(deserializer: D) -> Result<Vec<(N, V)>, D::Error>
where
    D: Deserializer<'de>,
    N: Deserialize<'de>,
    V: Deserialize<'de>,
{
    struct Entries<N, V>(PhantomData<(N, V)>);

    impl<'de, N: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for Entries<N, V> {
        type Value = Vec<(N, V)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::with_capacity(8);
            while let Some(entry) = map.next_entry()? {
                entries.push(entry);
            }
            Ok(entries)
        }
    }

    deserializer.deserialize_map(Entries(PhantomData))
}

/// The fields of an object as they are written, to be taken apart.
pub(crate) struct Parts<'a>(Vec<(Key<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Parts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        entries(deserializer).map(Self)
    }
}

impl<'a> Parts<'a> {
    /// Reads an object.
    pub(crate) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Reads an object. `None` if it is not one, or has a name twice.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let parts = Self::parse(text).ok()?;
        let names = parts.0.iter().map(|(Key(name), _)| name.as_ref());
        let twice = has_twice(names, parts.0.len());
        twice.is_none().then_some(parts)
    }

    /// Returns a field's value; of several with one name, the last.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.all(name).last()
    }

    /// Returns the values of all fields with one name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &'a RawValue> {
        let fields = self.0.iter();
        fields
            .filter(move |(Key(key), _)| key == name)
            .map(|(_, value)| *value)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Json> {
        self.take_as(name, |raw| Some(Json::from_raw(raw.to_owned())))
    }

    /// Takes out a string field. Anything but a string stays.
    pub(crate) fn take_text(&mut self, name: &str) -> Option<Text> {
        self.take_as(name, |raw| Text::from_literal(raw.get()))
    }

    /// Takes out a boolean field. Anything but `true` or `false` stays.
    pub(crate) fn take_flag(&mut self, name: &str) -> Option<bool> {
        self.take_as(name, |raw| raw.get().parse().ok())
    }

    fn take_as<T>(&mut self, name: &str, read: impl FnOnce(&RawValue) -> Option<T>) -> Option<T> {
        let at = self.0.iter().position(|(Key(key), _)| key == name)?;
        let value = read(self.0[at].1)?;
        self.0.remove(at);
        Some(value)
    }

    /// Returns the remaining fields, in order.
    pub(crate) fn rest(self) -> Fields {
        // Collecting in place would keep the capacity even with no fields.
        let mut fields = Vec::with_capacity(self.0.len());
        for (Key(name), value) in self.0 {
            fields.push((name.into_owned(), Json::from_raw(value.to_owned())));
        }
        Fields(fields)
    }
}

/// Returns the first name that occurs twice.
fn has_twice<'n>(mut names: impl Iterator<Item = &'n str> + Clone, len: usize) -> Option<&'n str> {
    /// Up to here, comparing all pairs is faster than a hash table.
    const FEW: usize = 16;
    if len <= FEW {
        let all = names.clone();
        return names.enumerate().find_map(|(n, name)| {
            let again = all.clone().take(n).any(|before| before == name);
            again.then_some(name)
        });
    }
    let mut seen = HashSet::with_capacity(len);
    names.find(|name| !seen.insert(*name))
}

/// The unknown fields of an object, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields(Vec<(String, Json)>);

impl Fields {
    /// Returns a field's value.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter().find(|(key, _)| *key == name).map(|(_, v)| v)
    }

    /// Adds a field at the end.
    pub fn push(&mut self, name: impl Into<String>, value: Json) {
        self.0.push((name.into(), value));
    }

    /// Returns the fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns a field.
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        let (_, value) = self.0.remove(at);
        // Most usages end up with no unknown fields, and then nothing stays allocated.
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        Some(value)
    }

    /// Returns the first name that occurs twice.
    pub(crate) fn duplicate(&self) -> Option<&str> {
        has_twice(self.0.iter().map(|(name, _)| name.as_str()), self.0.len())
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        entries(deserializer).map(Self)
    }
}
