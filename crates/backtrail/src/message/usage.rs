//! The usage of a model call.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{Fields, Json};

/// The tokens used by one model call.
///
/// Input, output, cache creation and cache reads are counted separately and add up to the
/// total. Reasoning is a part of output, and writes to the one-hour cache are a part of
/// cache creation: neither is added on top. All arithmetic saturates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// Input tokens that were not read from the cache.
    pub input_tokens: u64,
    /// Output tokens, including reasoning.
    pub output_tokens: u64,
    /// Tokens written to the provider's cache.
    pub cache_creation_input_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cache_read_input_tokens: u64,
    /// The part of the output that was reasoning, if known.
    pub reasoning_output_tokens: Option<u64>,
    /// The part of cache creation that is kept for an hour, if known.
    pub cache_creation_1h_input_tokens: Option<u64>,
    /// Fields that this version does not know.
    pub extra: Fields,
}

impl Usage {
    /// Creates a usage with input and output only.
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            ..Self::default()
        }
    }

    /// Sets the tokens written to the cache.
    #[must_use]
    pub fn cache_creation(mut self, tokens: u64) -> Self {
        self.cache_creation_input_tokens = tokens;
        self
    }

    /// Sets the tokens read from the cache.
    #[must_use]
    pub fn cache_read(mut self, tokens: u64) -> Self {
        self.cache_read_input_tokens = tokens;
        self
    }

    /// Sets the part of the output that was reasoning.
    #[must_use]
    pub fn reasoning(mut self, tokens: u64) -> Self {
        self.reasoning_output_tokens = Some(tokens);
        self
    }

    /// Sets the part of cache creation that is kept for an hour.
    #[must_use]
    pub fn cache_creation_1h(mut self, tokens: u64) -> Self {
        self.cache_creation_1h_input_tokens = Some(tokens);
        self
    }

    /// Returns the sum of the four counters.
    pub fn total(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.output_tokens)
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
    }

    /// Adds another usage to this one. A part that only one side knows stays known;
    /// unknown fields of the other side are dropped.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        let part = |a: &mut Option<u64>, b: Option<u64>| {
            if let Some(b) = b {
                *a = Some(a.unwrap_or(0).saturating_add(b));
            }
        };
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        let (creation, creation_1h) = (
            &mut self.cache_creation_input_tokens,
            &mut self.cache_creation_1h_input_tokens,
        );
        sum(creation, other.cache_creation_input_tokens);
        part(creation_1h, other.cache_creation_1h_input_tokens);
        sum(
            &mut self.cache_read_input_tokens,
            other.cache_read_input_tokens,
        );
        part(
            &mut self.reasoning_output_tokens,
            other.reasoning_output_tokens,
        );
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let counters = [
            ("input_tokens", self.input_tokens),
            ("output_tokens", self.output_tokens),
            (
                "cache_creation_input_tokens",
                self.cache_creation_input_tokens,
            ),
            ("cache_read_input_tokens", self.cache_read_input_tokens),
        ];
        for (name, tokens) in counters {
            // A value that is not a count was kept in `extra`.
            if self
                .extra
                .get(name)
                .is_none_or(|kept| read_count(kept).is_some())
            {
                map.serialize_entry(name, &tokens)?;
            }
        }
        if let Some(tokens) = self.reasoning_output_tokens {
            map.serialize_entry("reasoning_output_tokens", &tokens)?;
        }
        if let Some(tokens) = self.cache_creation_1h_input_tokens {
            map.serialize_entry("cache_creation_1h_input_tokens", &tokens)?;
        }
        for (name, value) in self.extra.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Fields::deserialize(deserializer)?;
        let mut count = |name| take_count(&mut fields, name);
        Ok(Self {
            input_tokens: count("input_tokens").unwrap_or(0),
            output_tokens: count("output_tokens").unwrap_or(0),
            cache_creation_input_tokens: count("cache_creation_input_tokens").unwrap_or(0),
            cache_read_input_tokens: count("cache_read_input_tokens").unwrap_or(0),
            reasoning_output_tokens: count("reasoning_output_tokens"),
            cache_creation_1h_input_tokens: count("cache_creation_1h_input_tokens"),
            extra: fields,
        })
    }
}

/// Takes a counter out of the fields. A value that is not a count (a string, null, a
/// negative number) stays among the unknown fields; one over 64 bits saturates.
fn take_count(fields: &mut Fields, name: &str) -> Option<u64> {
    let count = read_count(fields.get(name)?)?;
    fields.take(name);
    Some(count)
}

fn read_count(value: &Json) -> Option<u64> {
    let text = value.as_str();
    if let Ok(count) = text.parse() {
        return Some(count);
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    // Over 2^64, or written with a point or an exponent: `as` saturates.
    text.parse::<f64>().ok().map(|count| count as u64)
}
