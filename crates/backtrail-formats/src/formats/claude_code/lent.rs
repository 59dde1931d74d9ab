//! A JSON object whose fields are lent from its text: what is not asked for is not copied.

use backtrail::{Json, Text, Timestamp};
use serde::Deserialize;
use std::borrow::Cow;

use super::split;

/// A field's name, lent where it has no escapes.
#[derive(Deserialize)]
pub(super) struct Key<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// An object.
#[derive(Debug, Default)]
pub(super) struct Lent<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Lent<'a> {
    /// Takes an object apart that is known to be JSON. `None` where it is none.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let fields = split::fields(text)?.into_iter();
        let named = fields.map(|(name, value)| Some((string(name)?, value)));
        named.collect::<Option<_>>().map(Self)
    }

    /// Returns a field as it stands.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let field = self.0.iter().find(|(key, _)| key == name)?;
        Some(field.1)
    }

    /// Returns how many fields there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }

    /// Returns a field that is a string, byte-exact.
    pub(super) fn text(&self, name: &str) -> Option<Text> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// Returns a field that is a string, to compare or to show.
    pub(super) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.get(name)?)
    }

    /// Returns a field that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        Self::parse(self.get(name)?)
    }

    /// Returns the elements of a field that is a list.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&'a str>> {
        split::elements(self.get(name)?)
    }

    /// Returns a field that is a whole number that is not negative.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let json = self.get(name)?;
        json.parse().ok().or_else(|| {
            // 12.0 and 1.2e3 are whole numbers too.
            let float: f64 = serde_json::from_str(json).ok()?;
            let whole = float >= 0.0 && float.fract() == 0.0 && float < 9e15;
            whole.then_some(float as u64)
        })
    }

    /// Returns a field that is a number.
    pub(super) fn float(&self, name: &str) -> Option<f64> {
        serde_json::from_str(self.get(name)?).ok()
    }

    /// Returns whether a field is `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|json| json == "true")
    }

    /// Returns a field that is a time, as RFC 3339 or in milliseconds.
    pub(super) fn time(&self, name: &str) -> Option<Timestamp> {
        match self.string(name) {
            Some(text) => text.parse().ok(),
            None => Timestamp::from_millis(i64::try_from(self.number(name)?).ok()?),
        }
    }
}

/// Returns a string, lent where it has no escapes.
pub(super) fn string(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    let text: Text = serde_json::from_str(value).ok()?;
    Some(Cow::Owned(text.as_str().to_owned()))
}

/// Returns a value with its bytes.
pub(super) fn json(value: &str) -> Option<Json> {
    serde_json::from_str(value).ok()
}
