//! The fields of a payload that are read, borrowed from its text.
//!
//! Everything else (what a tool is given and what it answers, which may be most of the
//! payload) is skipped while parsing. A field is named by its path: `tool_call/id` is a field
//! of an object, `workspaceRoots/0` the first element of a list. Of a field that is there
//! twice the last one counts, as in JavaScript.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::json;

/// The longest id or name; a longer one is not one.
const MAX_ID: usize = 512;
/// The longest path; a longer one cannot be opened on any system.
const MAX_PATH: usize = 32 << 10;

/// The fields of a payload.
pub(super) struct Payload<'a> {
    values: Vec<(&'static str, &'a str)>,
    /// Whether bytes that are not UTF-8 were replaced: a path with a replaced one is wrong.
    replaced: bool,
}

impl<'a> Payload<'a> {
    /// Parses a payload and keeps the fields that are named; the error is the reason why it
    /// is not an object.
    pub(super) fn parse(
        text: &'a str,
        replaced: bool,
        paths: &[&'static str],
    ) -> Result<Self, String> {
        let paths: Vec<_> = paths.iter().map(|path| (*path, *path)).collect();
        let mut values = Vec::new();
        collect(text, &paths, &mut values).map_err(|error| json::not_an_object(text, &error))?;
        Ok(Self { values, replaced })
    }

    /// Returns a field's JSON text.
    pub(super) fn json(&self, path: &str) -> Option<&'a str> {
        let found = self.values.iter().find(|(name, _)| *name == path)?;
        Some(found.1)
    }

    /// Returns whether a field exists and is not null.
    pub(super) fn has(&self, path: &str) -> bool {
        self.json(path).is_some_and(|value| value != "null")
    }

    /// Returns whether any of these fields exists and is not null.
    pub(super) fn has_any(&self, paths: &[&'static str]) -> bool {
        paths.iter().any(|path| self.has(path))
    }

    /// Returns a field that is `true` or `false`.
    pub(super) fn boolean(&self, path: &str) -> Option<bool> {
        self.json(path)?.parse().ok()
    }

    /// Returns a field that is a number from zero up to a limit.
    pub(super) fn number(&self, path: &str, most: f64) -> Option<f64> {
        let number: f64 = serde_json::from_str(self.json(path)?).ok()?;
        (0.0..=most).contains(&number).then_some(number)
    }

    /// Returns the first of these fields that is a string and not blank.
    pub(super) fn text(&self, paths: &[&'static str]) -> Option<Cow<'a, str>> {
        self.first(paths, |text| !text.trim().is_empty())
    }

    /// Returns the first of these fields that can be an id or a name.
    pub(super) fn id(&self, paths: &[&'static str]) -> Option<String> {
        Some(self.first(paths, is_id)?.into_owned())
    }

    /// Returns the first of these fields that can be a path.
    pub(super) fn path(&self, paths: &[&'static str]) -> Option<PathBuf> {
        let can_be_path = |text: &str| {
            let is_known = !self.replaced || !text.contains(char::REPLACEMENT_CHARACTER);
            !text.trim().is_empty() && text.len() <= MAX_PATH && !text.contains('\0') && is_known
        };
        Some(PathBuf::from(self.first(paths, can_be_path)?.into_owned()))
    }

    fn first(&self, paths: &[&'static str], fits: impl Fn(&str) -> bool) -> Option<Cow<'a, str>> {
        let values = paths.iter().filter_map(|path| self.json(path));
        let mut texts = values.filter_map(json::string);
        texts.find(|text| fits(text))
    }
}

/// Returns whether a text can be an id or a name.
pub(super) fn is_id(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_ID && !text.contains(char::is_control)
}

/// Passes on the text of each text part of a list of parts, until it asks for no more.
/// Parts that the agent added itself are skipped.
pub(super) fn each_text(list: &str, mut each: impl FnMut(&str) -> bool) {
    const PATHS: [(&str, &str); 3] = [
        ("type", "type"),
        ("text", "text"),
        ("synthetic", "synthetic"),
    ];
    let mut wants_more = true;
    each_element(list, |part| {
        let mut values = Vec::new();
        if !wants_more || !part.starts_with('{') || collect(part, &PATHS, &mut values).is_err() {
            return;
        }
        let part = Payload {
            values,
            replaced: false,
        };
        if part.text(&["type"]).as_deref() == Some("text")
            && part.boolean("synthetic") != Some(true)
            && let Some(text) = part.text(&["text"])
        {
            wants_more = each(&text);
        }
    });
}

/// A path, and what of it is still to be followed.
type Wanted = (&'static str, &'static str);

/// Splits off the first name of a path.
fn split(path: &'static str) -> (&'static str, Option<&'static str>) {
    match path.split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    }
}

/// Collects the fields of an object that are wanted.
fn collect<'a>(
    text: &'a str,
    wanted: &[Wanted],
    values: &mut Vec<(&'static str, &'a str)>,
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let fields = Fields(wanted).deserialize(&mut deserializer)?;
    deserializer.end()?;
    for (name, value) in fields {
        let mut below: Vec<Wanted> = Vec::new();
        for (path, rest) in wanted {
            match split(rest) {
                (first, None) if first == name => values.push((*path, value)),
                (first, Some(rest)) if first == name => below.push((*path, rest)),
                _ => {}
            }
        }
        collect_below(value, &below, values);
    }
    Ok(())
}

/// Collects what is wanted of a field. What it does not have is absent.
fn collect_below<'a>(value: &'a str, wanted: &[Wanted], values: &mut Vec<(&'static str, &'a str)>) {
    if wanted.is_empty() {
        return;
    }
    if value.starts_with('{') {
        let before = values.len();
        if collect(value, wanted, values).is_err() {
            values.truncate(before);
        }
        return;
    }
    if let Some((path, _)) = wanted.iter().find(|(_, rest)| *rest == "0") {
        let mut first = None;
        each_element(value, |element| first = first.or(Some(element)));
        values.extend(first.map(|element| (*path, element)));
    }
}

/// The fields of an object that are the beginning of a path.
struct Fields<'w>(&'w [Wanted]);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Vec<(&'static str, &'de str)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Vec<(&'static str, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let names: Vec<_> = self.0.iter().map(|(_, rest)| split(rest).0).collect();
        let mut fields: Self::Value = Vec::new();
        while let Some(json::Key(key)) = map.next_key()? {
            let Some(name) = names.iter().find(|name| **name == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = map.next_value::<&'de RawValue>()?.get();
            match fields.iter_mut().find(|(known, _)| known == name) {
                Some(field) => field.1 = value,
                None => fields.push((*name, value)),
            }
        }
        Ok(fields)
    }
}

/// Passes on each element of a list; returns whether it is one.
fn each_element<'a>(list: &'a str, each: impl FnMut(&'a str)) -> bool {
    struct Elements<F>(F);

    impl<'de, F: FnMut(&'de str)> Visitor<'de> for Elements<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
            while let Some(element) = list.next_element::<&'de RawValue>()? {
                (self.0)(element.get());
            }
            Ok(())
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(list);
    deserializer.deserialize_seq(Elements(each)).is_ok()
}
