//! Large and binary parts of a message, which are stored in the payload file.
//!
//! Everything works on the message's JSON text. Parts that move out are replaced by a
//! [`Reference`], restored parts replace it, and no other byte changes: whitespace,
//! field order and the spelling of strings stay.
//!
//! A value that only looks like a reference moves out as well, whatever its size. So
//! every reference in a spliced text was written by the engine.

mod places;
mod reference;

#[cfg(test)]
mod parts_tests;

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem::Finder;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::ObjectId;
use crate::json::decode_lossy;
use crate::message::block::MEDIA_KINDS;
use places::{has_field, literal, range_in, walk};
use reference::{BEGIN, MAX_REFERENCE, PREVIEW};

pub(crate) use reference::Reference;

/// The longest part that stays in its line.
pub(crate) const MAX_INLINE: usize = 1 << 20;

/// A part of a message that moves out.
#[derive(Debug)]
pub(crate) struct Part<'m> {
    /// The range of its value in the message's text.
    pub(crate) range: Range<usize>,
    /// The content to store.
    pub(crate) content: Content<'m>,
}

/// The stored content of a part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'m> {
    /// The value's JSON text.
    Json(&'m str),
    /// The bytes that the string spells in canonical Base64, so that encoding them gives
    /// back the same string.
    Base64(Vec<u8>),
}

impl<'m> Content<'m> {
    fn of(value: &'m str) -> Self {
        // The decoder accepts only the canonical spelling: padded, no stray bits, no
        // whitespace. A literal with escapes is not canonical.
        match literal(value).map(|text| STANDARD.decode(text)) {
            Some(Ok(bytes)) if !bytes.is_empty() => Self::Base64(bytes),
            _ => Self::Json(value),
        }
    }

    /// Returns the bytes to store.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Json(text) => text.as_bytes(),
            Self::Base64(bytes) => bytes,
        }
    }

    /// Returns the reference that replaces the content.
    pub(crate) fn reference(&self, hash: ObjectId, at: u64) -> Reference {
        Reference {
            hash,
            bytes: self.bytes().len() as u64,
            at,
            base64: matches!(self, Self::Base64(_)),
            preview: match self {
                Self::Json(text) => preview(text),
                Self::Base64(_) => String::new(),
            },
        }
    }
}

/// Returns the start of a value: of a string its text, of anything else its JSON.
fn preview(value: &str) -> String {
    /// The longest spelling of a character: two UTF-16 escapes.
    const LONGEST: usize = 12;
    let Some(text) = literal(value) else {
        return value.chars().take(PREVIEW).collect();
    };
    // One more, because the cut may be inside the last one.
    let mut cut = text.len().min((PREVIEW + 1) * LONGEST);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let decoded = decode_lossy(&text[..cut]);
    decoded.chars().take(PREVIEW).collect()
}

/// Returns the parts of a message that move out, in order and not overlapping: media,
/// values whose JSON text is longer than `limit` bytes, and values that could be mistaken
/// for references.
///
/// A value that contains parts moves out as a whole only if it is still too long without
/// them.
pub(crate) fn parts(message: &str, limit: usize) -> Vec<Part<'_>> {
    let mut found: Vec<&str> = Vec::new();
    walk(message, &mut |place| {
        let range = range_in(message, place.value);
        let is_inside = |part: &&&str| range_in(message, part).start >= range.start;
        let inside = found.iter().rev().take_while(is_inside);
        let (count, bytes) = inside.fold((0, 0), |(n, sum), part| (n + 1, sum + part.len()));
        let remains = place.value.len() - bytes + count * MAX_REFERENCE;
        let is_media = place.is_media && literal(place.value).is_some_and(|text| !text.is_empty());
        if is_media || remains > limit || looks_like_reference(place.value) {
            found.truncate(found.len() - count);
            found.push(place.value);
        }
    });
    let part = |value| Part {
        range: range_in(message, value),
        content: Content::of(value),
    };
    found.into_iter().map(part).collect()
}

fn looks_like_reference(value: &str) -> bool {
    value.starts_with('{') && may_name_payload(value.as_bytes()) && has_field(value, "payload")
}

/// Strings that a text must contain to have anything for the walk to find.
struct Signs {
    payload: Finder<'static>,
    data: Finder<'static>,
    media: [Finder<'static>; 5],
    escape: Finder<'static>,
}

// With their quotes: inside a string these have a backslash before them.
static SIGNS: LazyLock<Signs> = LazyLock::new(|| Signs {
    payload: Finder::new("\"payload\""),
    data: Finder::new("\"data\""),
    media: MEDIA_KINDS.map(quoted_finder),
    escape: Finder::new("\\u00"),
});

fn quoted_finder(word: &str) -> Finder<'static> {
    Finder::new(&format!("\"{word}\"")).into_owned()
}

/// Returns whether [`parts`] with [`MAX_INLINE`] may find any in a message.
///
/// It only searches for a few words, so that every append can call it.
pub(crate) fn may_have_parts(text: &[u8]) -> bool {
    let has = |finder: &Finder<'_>| finder.find(text).is_some();
    text.len() > MAX_INLINE
        || may_name_payload(text)
        || (has(&SIGNS.data) && SIGNS.media.iter().any(has))
}

/// Returns whether a text may have a field `payload`, or one of the other names spelled
/// with escapes.
fn may_name_payload(text: &[u8]) -> bool {
    // Small letters are \u0061 to \u007a.
    let is_letter = |at: usize| matches!(text.get(at + 4), Some(b'6' | b'7'));
    SIGNS.payload.find(text).is_some() || SIGNS.escape.find_iter(text).any(is_letter)
}

/// Returns the message with each part replaced by its reference.
pub(crate) fn splice(message: &str, parts: &[Part<'_>], references: &[Reference]) -> Vec<u8> {
    debug_assert_eq!(parts.len(), references.len());
    let moved: usize = parts.iter().map(|part| part.range.len()).sum();
    let mut out = Vec::with_capacity(message.len() - moved + parts.len() * MAX_REFERENCE);
    let mut copied = 0;
    for (part, reference) in parts.iter().zip(references) {
        out.extend_from_slice(&message.as_bytes()[copied..part.range.start]);
        reference.write(&mut out);
        copied = part.range.end;
    }
    out.extend_from_slice(&message.as_bytes()[copied..]);
    out
}

/// Returns whether a record or a message may contain references.
pub(crate) fn may_have_references(text: &[u8]) -> bool {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(BEGIN));
    FINDER.find(text).is_some()
}

/// Returns the references in a spliced message, in order.
pub(crate) fn references(message: &str) -> Vec<(Range<usize>, Reference)> {
    let mut found = Vec::new();
    if !may_have_references(message.as_bytes()) {
        return found;
    }
    walk(message, &mut |place| {
        if let Some(reference) = Reference::read(place.value) {
            found.push((range_in(message, place.value), reference));
        }
    });
    found
}

/// Returns the message with each reference replaced by its content, which gives the
/// original bytes.
pub(crate) fn restore(
    message: &str,
    mut fetch: impl FnMut(&Reference) -> Result<Vec<u8>>,
) -> Result<String> {
    let mut out = String::with_capacity(message.len());
    let mut copied = 0;
    for (range, reference) in references(message) {
        out.push_str(&message[copied..range.start]);
        let content = fetch(&reference)?;
        if reference.base64 {
            out.reserve(content.len() / 3 * 4 + 6);
            out.push('"');
            STANDARD.encode_string(&content, &mut out);
            out.push('"');
        } else {
            out.push_str(as_text(&content, &reference)?);
        }
        copied = range.end;
    }
    out.push_str(&message[copied..]);
    Ok(out)
}

fn as_text<'c>(content: &'c [u8], reference: &Reference) -> Result<&'c str> {
    std::str::from_utf8(content).map_err(|_| {
        let hash = reference.hash;
        let what = format!("the payload {hash} is not the text that the message refers to");
        Error::new(ErrorKind::Corrupt, what)
    })
}
