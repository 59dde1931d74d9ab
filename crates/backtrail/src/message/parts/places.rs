//! The places in a message where a payload may be.
//!
//! They depend only on field names and on the `type` of blocks, which never move out. So
//! a message has the same places before and after its parts moved.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::decode_lossy;
use crate::message::block::MEDIA_KINDS;

/// A value that may be a payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct PayloadPlace<'m> {
    /// The value's JSON text, borrowed from the message's.
    pub(super) value: &'m str,
    /// Whether it is the data of media.
    pub(super) is_media: bool,
}

/// How deep blocks in tool results are searched.
const MAX_LEVEL: usize = 8;

/// Visits every place of a message in order, inner values first.
///
/// Text that is not a message has no places, or only those before its first error.
pub(super) fn walk<'m>(message: &'m str, visit: &mut dyn FnMut(PayloadPlace<'m>)) {
    fields(message, |name, value| match name {
        "role" => {}
        "blocks" => elements(value, |block| walk_block(block, Kind::of(block), 0, visit)),
        _ => visit(PayloadPlace {
            value,
            is_media: false,
        }),
    });
}

fn walk_block<'m>(
    block: &'m str,
    kind: Kind,
    level: usize,
    visit: &mut dyn FnMut(PayloadPlace<'m>),
) {
    fields(block, |name, value| {
        let is_media = kind.is_media && name == "data";
        match name {
            "type" => return,
            "source" => walk_source(value, kind, visit),
            "output" | "content" if kind.is_tool_result && level < MAX_LEVEL => {
                elements(value, |element| {
                    let kind = Kind::of(element);
                    if kind.is_block {
                        walk_block(element, kind, level + 1, visit);
                    }
                });
            }
            _ => {}
        }
        visit(PayloadPlace { value, is_media });
    });
}

fn walk_source<'m>(source: &'m str, kind: Kind, visit: &mut dyn FnMut(PayloadPlace<'m>)) {
    fields(source, |name, value| {
        if name == "data" {
            visit(PayloadPlace {
                value,
                is_media: kind.is_media,
            });
        }
    });
}

/// The kind of a block, by its `type`. If it occurs twice, both count.
#[derive(Debug, Clone, Copy, Default)]
struct Kind {
    is_block: bool,
    is_media: bool,
    is_tool_result: bool,
}

impl Kind {
    fn of(block: &str) -> Self {
        let mut kind = Self::default();
        fields(block, |name, value| {
            let Some(literal) = literal(value).filter(|_| name == "type") else {
                return;
            };
            let value = decoded(literal);
            kind.is_block = true;
            kind.is_media |= MEDIA_KINDS.contains(&value.as_ref());
            kind.is_tool_result |= value == "tool_result";
        });
        kind
    }
}

/// Returns whether a value is an object with a field of this name.
pub(super) fn has_field(value: &str, wanted: &str) -> bool {
    let mut found = false;
    fields(value, |name, _| found |= name == wanted);
    found
}

/// Returns the text between a string's quotes; `None` if it is not a string.
pub(super) fn literal(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

/// Returns the range of a value that was borrowed from `message`.
pub(super) fn range_in(message: &str, value: &str) -> Range<usize> {
    let start = value.as_ptr() as usize - message.as_ptr() as usize;
    start..start + value.len()
}

fn decoded(literal: &str) -> Cow<'_, str> {
    if literal.contains('\\') {
        Cow::Owned(decode_lossy(literal))
    } else {
        Cow::Borrowed(literal)
    }
}

/// Calls `each` with the name and value of every field of an object.
///
/// Names and values are borrowed as text, so strings that no `String` can hold and any
/// nesting depth are fine. Anything but an object has no fields.
fn fields<'m>(object: &'m str, each: impl FnMut(&str, &'m str)) {
    struct EachField<F>(F);

    impl<'de, F: FnMut(&str, &'de str)> Visitor<'de> for EachField<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                let name = literal(name.get()).unwrap_or_default();
                (self.0)(&decoded(name), value.get());
            }
            Ok(())
        }
    }

    let mut parser = serde_json::Deserializer::from_str(object);
    if object.trim_start().starts_with('{') {
        parser.deserialize_map(EachField(each)).ok();
    }
}

/// Calls `each` with every element of an array; anything else has none.
fn elements<'m>(array: &'m str, each: impl FnMut(&'m str)) {
    let elements = serde_json::from_str::<Vec<&RawValue>>(array);
    let elements = elements.unwrap_or_default().into_iter();
    elements.map(RawValue::get).for_each(each);
}
