//! The searchable text of a record, block by block.
//!
//! Text, thinking, tool names with their input, tool output, summaries of compactions,
//! arguments of runs. Media are skipped, and of encoded data only the beginning is used.

use std::borrow::Cow;

use backtrail::{Block, Message, RecordKind};
use serde::Deserialize;

use super::tokens::LONGEST;

/// Receives the pieces of a record's text.
pub(super) trait TextSink {
    /// Adds a piece.
    fn add(&mut self, text: &str);

    /// Adds a piece that `write` writes.
    fn add_written(&mut self, write: impl FnOnce(&mut String));
}

/// The pieces as a list.
impl TextSink for Vec<String> {
    fn add(&mut self, text: &str) {
        self.push(text.to_owned());
    }

    fn add_written(&mut self, write: impl FnOnce(&mut String)) {
        let mut text = String::new();
        write(&mut text);
        self.push(text);
    }
}

/// Adds the pieces of any record.
pub(super) fn add_record(
    kind: RecordKind<'_>,
    message: Option<&Message>,
    bytes: &[u8],
    out: &mut impl TextSink,
) {
    match (kind, message) {
        (_, Some(message)) => add_message(message, out),
        (RecordKind::Compaction, None) => {
            if let Some(Summary { summary }) = read(bytes) {
                out.add(&summary);
            }
        }
        (RecordKind::Run, None) => {
            if let Some(Command { argv }) = read(bytes) {
                out.add(&argv.join(" "));
            }
        }
        _ => {}
    }
}

/// Adds the pieces of a message, one for each block with text.
pub(super) fn add_message(message: &Message, out: &mut impl TextSink) {
    for block in &message.blocks {
        match block {
            Block::Text(block) => out.add(block.text.as_str()),
            Block::Thinking(block) => out.add(block.thinking.as_str()),
            Block::ToolUse(call) => out.add_written(|text| {
                text.push_str(call.name.as_str());
                text.push('\n');
                add_strings(call.input.as_str(), Keys::Taken, text);
            }),
            Block::ToolResult(result) => {
                out.add_written(|text| add_strings(result.output.as_str(), Keys::Left, text));
                // The full output, which the agent kept separately because it was too
                // long for its model.
                if let Some(full) = result.extra.get("full_output") {
                    out.add_written(|text| add_strings(full.as_str(), Keys::Left, text));
                }
            }
            Block::Other(other) => {
                out.add_written(|text| add_strings(other.as_str(), Keys::Left, text));
            }
            _ => {}
        }
    }
}

/// A compaction's record. An invalid one has no text.
#[derive(Deserialize)]
struct Summary<'a> {
    #[serde(borrow)]
    summary: Cow<'a, str>,
}

/// A run's record.
#[derive(Deserialize)]
struct Command {
    argv: Vec<String>,
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// How field names are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    Taken,
    Left,
}

/// Adds the strings and numbers of JSON, each on its own line, behind the name of its field.
pub(super) fn add_strings(json: &str, keys: Keys, out: &mut String) {
    let bytes = json.as_bytes();
    let mut at = 0;
    // Whether the next string only names a kind.
    let mut is_kind = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let begin = out.len();
                at = add_string(json, at + 1, out);
                let is_key = next_is_colon(&bytes[at.min(bytes.len())..]);
                let was_kind = std::mem::take(&mut is_kind);
                let is_left = if is_key {
                    is_kind = out.get(begin..) == Some("type");
                    keys == Keys::Left || is_kind
                } else {
                    was_kind && keys == Keys::Left
                };
                // A value is on the line of its name.
                let end = if is_key { NAME_END } else { "\n" };
                end_string(begin, is_left, end, out);
                if is_key {
                    end_line_before(begin, out);
                }
            }
            b'-' | b'0'..=b'9' => {
                let is_number =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(is_number).count();
                out.push_str(json.get(at..end).unwrap_or_default());
                out.push('\n');
                at = end;
            }
            _ => at += 1,
        }
    }
}

/// Between the name of a field and its value.
const NAME_END: &str = ": ";

/// Ends the line of a name whose value is not text, before the name at `begin`.
fn end_line_before(begin: usize, out: &mut String) {
    if let Some(before) = out[..begin].strip_suffix(NAME_END) {
        let before = before.len();
        out.replace_range(before..begin, "\n");
    }
}

/// Ends a string that was added, or removes it again.
fn end_string(begin: usize, is_left: bool, end: &str, out: &mut String) {
    let added = out.get(begin..).unwrap_or_default();
    if is_left || added.is_empty() {
        out.truncate(begin);
        return;
    }
    if is_encoded(added) {
        out.truncate(begin + LONGEST);
    }
    out.push_str(end);
}

/// Returns whether a string is encoded data rather than text.
fn is_encoded(text: &str) -> bool {
    const ENOUGH: usize = 512;
    let Some(begin) = text.as_bytes().get(..ENOUGH) else {
        return false;
    };
    let is_code = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(byte);
    begin.iter().all(is_code)
}

fn next_is_colon(rest: &[u8]) -> bool {
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// Adds the string whose first character is at `from`; returns its end, including the
/// quote.
fn add_string(json: &str, from: usize, out: &mut String) -> usize {
    let bytes = json.as_bytes();
    let mut at = from;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(plain) = rest.iter().position(|&byte| byte == b'"' || byte == b'\\') else {
            return bytes.len();
        };
        out.push_str(json.get(at..at + plain).unwrap_or_default());
        at += plain;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        at = add_escaped(bytes, at + 1, out);
    }
}

/// Adds the character of the escape at `at`; returns where the escape ends.
fn add_escaped(bytes: &[u8], at: usize, out: &mut String) -> usize {
    let plain = match bytes.get(at) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return add_code(bytes, at + 1, out),
        Some(&byte) => char::from(byte),
        None => return bytes.len(),
    };
    out.push(plain);
    at + 1
}

/// Adds the character of one or two `\u` escapes; invalid ones become U+FFFD.
fn add_code(bytes: &[u8], at: usize, out: &mut String) -> usize {
    let code = |at: usize| {
        let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = code(at) else {
        out.push(char::REPLACEMENT_CHARACTER);
        return at;
    };
    if (0xd800..0xdc00).contains(&first)
        && bytes.get(at + 4..at + 6) == Some(br"\u")
        && let Some(second @ 0xdc00..0xe000) = code(at + 6)
    {
        let both = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        out.push(char::from_u32(both).unwrap_or(char::REPLACEMENT_CHARACTER));
        return at + 10;
    }
    out.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
    at + 4
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(json: &str, keys: Keys) -> String {
        let mut out = String::new();
        add_strings(json, keys, &mut out);
        out.replace('\n', "|")
    }

    #[test]
    fn the_strings_of_json_are_found() {
        let input = r#"{"file_path":"src/a.rs","line":42,"deep":[{"old":"a\nb \"q\" \u00e9 \ud83d\ude00"}],"ok":true}"#;
        assert_eq!(
            strings(input, Keys::Taken),
            "file_path: src/a.rs|line: 42|deep|old: a|b \"q\" é 😀|ok: "
        );
        let output = r#"[{"type":"text","text":"hello"},{"type":"image","data":""}]"#;
        assert_eq!(strings(output, Keys::Left), "hello|");
        assert_eq!(strings(r#""just text""#, Keys::Left), "just text|");
        assert_eq!(strings(r#""\ud83d alone""#, Keys::Left), "\u{fffd} alone|");
    }

    #[test]
    fn encoded_data_is_found_by_its_beginning() {
        let blob = "QUJD".repeat(1000);
        let out = strings(&format!(r#"{{"data":"{blob}"}}"#), Keys::Left);
        assert_eq!(out.len(), LONGEST + 1);
    }

    proptest! {
        #[test]
        fn no_json_causes_a_panic(json in "\\PC*|[\"\\\\u0-9d{}:, ]*") {
            let mut out = String::new();
            add_strings(&json, Keys::Taken, &mut out);
        }

        #[test]
        fn a_string_comes_back_as_it_was(text in "\\PC{1,80}") {
            let json = serde_json::to_string(&text).expect("JSON");
            let mut out = String::new();
            add_strings(&json, Keys::Left, &mut out);
            prop_assert_eq!(out.strip_suffix('\n'), Some(text.as_str()));
        }
    }
}
