//! Tool outputs, and blocks in a provider's form.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::parts::Medium;
use crate::json::{Json, Parts, Text};
use crate::message::Media;

/// A piece of a tool's output.
pub(super) enum Piece<'a> {
    Text {
        text: Cow<'a, str>,
        /// Whether a lone surrogate was replaced in it.
        lossy: bool,
    },
    Medium(Medium<'a>),
}

/// Splits an output into pieces. A string is one text; a list with at least one text or
/// media block is its blocks; anything else is its JSON text.
pub(super) fn pieces(output: &Json) -> Vec<Piece<'_>> {
    let json = output.as_str();
    if let Some((text, lossy)) = literal(json) {
        return vec![Piece::Text { text, lossy }];
    }
    list(json).unwrap_or_else(|| vec![json_text(json)])
}

fn list(json: &str) -> Option<Vec<Piece<'_>>> {
    if !json.starts_with('[') {
        return None;
    }
    let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let mut any = false;
    let pieces = elements.into_iter().map(|element| {
        let piece = piece(element.get());
        any |= piece.is_some();
        piece.unwrap_or_else(|| json_text(element.get()))
    });
    let pieces = pieces.collect();
    any.then_some(pieces)
}

fn json_text(json: &str) -> Piece<'_> {
    let (text, lossy) = (Cow::Borrowed(json), false);
    Piece::Text { text, lossy }
}

/// Parses a text or media block in Backtrail's form or in Anthropic's.
pub(super) fn piece(json: &str) -> Option<Piece<'_>> {
    let fields = Parts::parse(json).ok()?;
    let kind = string(&fields, "type")?.0;
    match (kind.as_ref(), fields.get("source")) {
        ("text", _) => {
            let (text, lossy) = string(&fields, "text")?;
            Some(Piece::Text { text, lossy })
        }
        ("image" | "document", Some(source)) => from_source(kind, source.get()),
        ("image" | "audio" | "video" | "document" | "file", _) => from_data(kind, &fields),
        _ => None,
    }
}

fn string<'a>(fields: &Parts<'a>, name: &str) -> Option<(Cow<'a, str>, bool)> {
    literal(fields.get(name)?.get())
}

fn from_data<'a>(kind: Cow<'a, str>, fields: &Parts<'a>) -> Option<Piece<'a>> {
    let (media_type, _) = string(fields, "media_type")?;
    let data = fields.get("data")?.get();
    Some(Piece::Medium(medium(kind, media_type, data)))
}

fn from_source<'a>(kind: Cow<'a, str>, source: &'a str) -> Option<Piece<'a>> {
    let source = Parts::parse(source).ok()?;
    match string(&source, "type")?.0.as_ref() {
        "base64" => from_data(kind, &source),
        "text" => {
            let (text, lossy) = string(&source, "data")?;
            Some(Piece::Text { text, lossy })
        }
        _ => None,
    }
}

/// Returns the data of a `redacted_thinking` block.
pub(super) fn redacted_thinking(json: &str) -> Option<Cow<'_, str>> {
    let fields = Parts::parse(json).ok()?;
    let (kind, _) = string(&fields, "type")?;
    let (data, lossy) = string(&fields, "data")?;
    (kind == "redacted_thinking" && !lossy && !data.is_empty()).then_some(data)
}

/// Converts a media block.
pub(super) fn own_medium(media: &Media) -> Medium<'_> {
    let kind = Cow::Borrowed(media.kind.as_str());
    let media_type = Cow::Borrowed(media.media_type.as_str());
    medium(kind, media_type, media.data.as_str())
}

fn medium<'a>(kind: Cow<'a, str>, media_type: Cow<'a, str>, data: &'a str) -> Medium<'a> {
    #[derive(Deserialize)]
    struct Payload {
        bytes: u64,
    }
    let data_text = literal(data).map(|(text, _)| text);
    let bytes = match &data_text {
        Some(text) => text.len() as u64 / 4 * 3,
        None => serde_json::from_str::<Payload>(data).map_or(0, |payload| payload.bytes),
    };
    Medium {
        kind,
        media_type: plain_type(media_type),
        data: data_text,
        bytes,
    }
}

/// Normalizes a media type to the form that providers know.
fn plain_type(media_type: Cow<'_, str>) -> Cow<'_, str> {
    let bare = media_type.split(';').next().unwrap_or("").trim();
    if bare.eq_ignore_ascii_case("image/jpg") {
        return Cow::Borrowed("image/jpeg");
    }
    match bare.len() == media_type.len() && !bare.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => media_type,
        false => Cow::Owned(bare.to_ascii_lowercase()),
    }
}

/// Returns the text that replaces media.
pub(super) fn placeholder(medium: &Medium<'_>) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-._".contains(&byte);
    let media_type = match medium.media_type.as_ref() {
        "" => "unknown type",
        name if name.len() > 100 || !name.bytes().all(is_plain) => "unknown type",
        name => name,
    };
    let kind = &medium.kind;
    format!(
        "[{kind}: {media_type}, {}, not shown here]",
        size(medium.bytes)
    )
}

fn size(bytes: u64) -> String {
    let rounded = |unit: u64| bytes / unit + u64::from(bytes % unit >= unit / 2);
    match bytes {
        0 => "size unknown".to_owned(),
        1..1024 => format!("about {bytes} bytes"),
        1024..1_048_576 => format!("about {} KiB", rounded(1024)),
        _ => format!("about {} MiB", rounded(1_048_576)),
    }
}

/// Decodes a string literal, without a copy if it has no escapes, and returns whether a
/// lone surrogate was replaced.
pub(super) fn literal(json: &str) -> Option<(Cow<'_, str>, bool)> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some((Cow::Borrowed(inner), false));
    }
    let text: Text = serde_json::from_str(json).ok()?;
    Some((Cow::Owned(text.as_str().to_owned()), text.is_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> Vec<String> {
        let output = Json::new(output).unwrap();
        let show = |piece: &Piece<'_>| match piece {
            Piece::Text { text, .. } => text.to_string(),
            Piece::Medium(medium) => format!(
                "{} {} {}",
                medium.kind,
                medium.media_type,
                medium.data.as_deref().unwrap_or("-")
            ),
        };
        pieces(&output).iter().map(show).collect()
    }

    #[test]
    fn an_output_is_text_or_blocks_of_either_form_or_its_json() {
        assert_eq!(shown(r#""src\n""#), ["src\n"]);
        assert_eq!(shown(r#"{"ok": true}"#), [r#"{"ok": true}"#]);
        assert_eq!(shown(r#"[1,{"a":2}]"#), [r#"[1,{"a":2}]"#]);
        assert_eq!(shown(r#"[["text"]]"#), [r#"[["text"]]"#]);
        let blocks = r#"[{"type":"text","text":"a"},
            {"type":"image","media_type":"IMAGE/JPG","data":"QU\/D"},
            {"type":"image","source":{"type":"base64","media_type":"image/png; x=1","data":"QUJD"}},
            {"type":"document","source":{"type":"text","media_type":"text/plain","data":"b"}},
            {"type":"audio","media_type":"audio/wav","data":{"payload":"x","bytes":3000}},
            {"type":"image","source":{"type":"url","url":"u"}}, 7]"#;
        let expected = [
            "a",
            "image image/jpeg QU/D",
            "image image/png QUJD",
            "b",
            "audio audio/wav -",
            r#"{"type":"image","source":{"type":"url","url":"u"}}"#,
            "7",
        ];
        assert_eq!(shown(blocks), expected);
    }

    #[test]
    fn a_placeholder_says_what_it_stands_for_and_nothing_hostile() {
        let sized = |media_type: &str, bytes| {
            let medium = Medium {
                kind: "image".into(),
                media_type: media_type.to_owned().into(),
                data: None,
                bytes,
            };
            placeholder(&medium)
        };
        let expected = "[image: image/png, about 12 KiB, not shown here]";
        assert_eq!(sized("image/png", 12 * 1024 + 100), expected);
        let expected = "[image: unknown type, size unknown, not shown here]";
        assert_eq!(sized("x\n]ignore", 0), expected);
        assert_eq!(sized(&"x".repeat(1000), 0), expected);
        assert!(sized("a/b", 3_000_000).contains("about 3 MiB"));
        assert!(sized("a/b", 700).contains("about 700 bytes"));
    }
}
