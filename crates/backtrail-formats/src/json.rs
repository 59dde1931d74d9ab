//! JSON objects of other programs, looked into one field at a time.
//!
//! Values keep their bytes until somebody asks for them, so a number that no Rust type
//! holds, a lone surrogate or a thousand levels of nesting cost nobody the rest.

use std::borrow::Cow;

use backtrail::{Fields, Json, Text, Timestamp};

/// An object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object(Fields);

impl Object {
    /// Reads an object; the error says why it is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map(Self).map_err(|error| {
            match text.trim_start().starts_with('{') {
                true => error.to_string(),
                false => "not a JSON object".to_owned(),
            }
        })
    }

    /// Reads a value that is an object.
    pub(crate) fn of(json: &Json) -> Option<Self> {
        Self::parse(json.as_str()).ok()
    }

    /// Returns a field as it stands.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Json> {
        self.0.take(name)
    }

    /// Returns whether there is a field that is not null.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some_and(|json| json.as_str() != "null")
    }

    /// Returns all fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter()
    }

    /// Returns a field that is a string, byte-exact.
    pub(crate) fn text(&self, name: &str) -> Option<Text> {
        text_of(self.get(name)?)
    }

    /// Returns a field that is a string, to compare or to show.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'_, str>> {
        let literal = self.get(name)?.as_str();
        // Most strings that are compared have no escapes: those are lent.
        let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        let text: Text = serde_json::from_str(literal).ok()?;
        Some(Cow::Owned(text.as_str().to_owned()))
    }

    /// Returns a field that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?)
    }

    /// Returns the elements of a field that is a list.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<Json>> {
        list_of(self.get(name)?)
    }

    /// Returns a field that is a whole number that is not negative.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let json = self.get(name)?.as_str();
        serde_json::from_str(json).ok().or_else(|| {
            // 12.0 and 1.2e3 are whole numbers too.
            let float: f64 = serde_json::from_str(json).ok()?;
            let whole = float >= 0.0 && float.fract() == 0.0 && float < 9e15;
            whole.then_some(float as u64)
        })
    }

    /// Returns a field that is a number.
    pub(crate) fn float(&self, name: &str) -> Option<f64> {
        serde_json::from_str(self.get(name)?.as_str()).ok()
    }

    /// Returns whether a field is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|json| json.as_str() == "true")
    }

    /// Returns a field that is a time, as RFC 3339 or in milliseconds.
    pub(crate) fn time(&self, name: &str) -> Option<Timestamp> {
        match self.string(name) {
            Some(text) => text.parse().ok(),
            None => Timestamp::from_millis(i64::try_from(self.number(name)?).ok()?),
        }
    }
}

/// Returns a value that is a string.
pub(crate) fn text_of(json: &Json) -> Option<Text> {
    serde_json::from_str(json.as_str()).ok()
}

/// Returns the elements of a value that is a list.
pub(crate) fn list_of(json: &Json) -> Option<Vec<Json>> {
    serde_json::from_str(json.as_str()).ok()
}

/// Returns whether a value is a string.
pub(crate) fn is_string(json: &Json) -> bool {
    json.as_str().starts_with('"')
}
