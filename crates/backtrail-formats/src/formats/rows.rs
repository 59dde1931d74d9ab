//! Lines that are rows of a database, as [`crate::tables`] writes them:
//! `{"table":"message","row":{"id":"msg_1",…}}`.

use std::borrow::Cow;

use backtrail::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::IgnoredAny;

use crate::json::{Object, field_names, is_string, string, to_text};
use crate::source::trim;

/// The first row of a file, as far as the file's beginning shows it.
#[derive(Debug)]
pub(super) struct FirstRow {
    table: String,
    columns: Vec<String>,
}

impl FirstRow {
    /// Finds the first row. `None` if the file does not consist of rows.
    pub(super) fn find(head: &[u8]) -> Option<Self> {
        let lines = trim(head).split(|byte| *byte == b'\n');
        for line in lines {
            let rest = line.strip_prefix(b"{\"table\":\"")?;
            let end = memchr::memchr(b'"', rest)?;
            let table = std::str::from_utf8(&rest[..end]).ok()?;
            // A row that could not be read has no columns.
            if let Some(row) = rest[end + 1..].strip_prefix(b",\"row\":") {
                return Some(Self {
                    table: table.to_owned(),
                    columns: field_names(row),
                });
            }
        }
        None
    }

    /// Returns whether it is a row of a table, and has these columns.
    pub(super) fn is_of(&self, table: &str, columns: &[&str]) -> bool {
        let has = |name: &&str| self.columns.iter().any(|column| column == name);
        self.table == table && columns.iter().all(has)
    }
}

/// What a line contains.
#[derive(Debug)]
pub(super) enum RowLine<'a> {
    /// A row of a table.
    Row(Cow<'a, str>, Object<'a>),
    /// A row that could not be read.
    Damaged(String),
}

impl<'a> RowLine<'a> {
    /// Reads a line as it is written here, without looking for the row's end. `None` if it is
    /// not quite like that.
    pub(super) fn read_plain(line: &'a str) -> Option<Self> {
        let (table, rest) = line.strip_prefix("{\"table\":\"")?.split_once('"')?;
        let row = Object::from_json(rest.strip_prefix(",\"row\":")?)?;
        (!table.contains('\\')).then_some(Self::Row(Cow::Borrowed(table), row))
    }

    /// Reads a line.
    pub(super) fn read(line: &Object<'a>) -> Self {
        match (line.string("table"), line.object("row")) {
            (Some(table), Some(row)) => Self::Row(table, row),
            _ => Self::Damaged(match line.string("damaged") {
                Some(reason) => format!("a row that cannot be read: {reason}"),
                None => "not a row of a table".to_owned(),
            }),
        }
    }
}

/// Returns the JSON in a column: the value itself, or what its text contains. `None` for NULL.
pub(super) fn json_column<'a>(row: &Object<'a>, name: &str) -> Option<Cow<'a, str>> {
    let value = row.get(name).filter(|value| *value != "null")?;
    let text = match is_string(value) {
        true => to_text(value)?.as_str().to_owned(),
        false => match encoded(value) {
            Some(text) => text,
            None => return Some(Cow::Borrowed(value)),
        },
    };
    let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
    // JSON strings contain no line breaks, so all of them are between tokens.
    is_json.then(|| Cow::Owned(text.trim().replace(['\n', '\r'], " ")))
}

/// Returns the text of a BLOB, or of a TEXT that is not UTF-8.
fn encoded(value: &str) -> Option<String> {
    let value = ["{\"$blob\":", "{\"$text\":"]
        .into_iter()
        .find_map(|mark| value.strip_prefix(mark))?;
    let base64 = string(value.strip_suffix('}')?)?;
    let bytes = STANDARD.decode(base64.as_bytes()).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a time in seconds, or in milliseconds if it is too large for that.
pub(super) fn seconds_or_millis(number: u64) -> Option<Timestamp> {
    const LAST_SECOND: u64 = 10_000_000_000;
    let millis = match number {
        0..=LAST_SECOND => number * 1_000,
        _ => number,
    };
    Timestamp::from_millis(i64::try_from(millis).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_is_found_however_long_it_is() {
        let head = br#"{"table":"message","row":{"id":"m1","data":{"role":"us"#;
        let first = FirstRow::find(head).unwrap();
        assert!(first.is_of("message", &["id", "data"]));
        assert!(!first.is_of("message", &["id", "parts"]));
        assert!(!first.is_of("messages", &["id"]));
        let damaged = b"{\"table\":\"part\",\"rowid\":3,\"damaged\":\"x\"}\n{\"table\":\"session\",\"row\":{\"id\":1}}\n";
        assert!(FirstRow::find(damaged).unwrap().is_of("session", &["id"]));
        for other in [&b"{\"type\":\"session\"}"[..], b"", b"{\"table\":1}", b"[]"] {
            assert!(FirstRow::find(other).is_none());
        }
    }

    #[test]
    fn a_line_as_it_is_written_here_is_read_like_any_other() {
        let read = |row: RowLine<'_>| match row {
            RowLine::Row(table, row) => format!("{table} {row:?}"),
            RowLine::Damaged(reason) => reason,
        };
        let row = r#"{"id":"m1","data":{"a":[1,"}"]},"at":null}"#;
        for line in [
            format!("{{\"table\":\"part\",\"row\":{row}}}"),
            format!("{{\"table\":\"part\",\"row\":{row},\"table\":\"other\"}}"),
        ] {
            let plain = RowLine::read_plain(&line).map(read);
            let parsed = RowLine::read(&Object::parse(&line).unwrap());
            assert_eq!(plain, Some(read(parsed)));
        }
        for other in [
            r#"{"table":"part","rowid":7,"damaged":"why"}"#,
            r#"{"table":"pa\"rt","row":{}}"#,
            r#"{"table": "part","row":{}}"#,
            r#"{"table":"part","row":null}"#,
            r#"{"row":{},"table":"part"}"#,
        ] {
            assert!(RowLine::read_plain(other).is_none(), "{other}");
        }
    }

    #[test]
    fn json_in_a_column_may_be_a_value_a_text_or_bytes() {
        let row = Object::parse(
            r#"{"a":{"x":1},"b":"{\n\"x\": 2}","c":{"$blob":"eyJ4IjozfQ=="},"d":"plain","e":null,
                "f":{"$blob":"!"}}"#,
        )
        .unwrap();
        let json = |name| json_column(&row, name).map(Cow::into_owned);
        assert_eq!(json("a").as_deref(), Some(r#"{"x":1}"#));
        assert_eq!(json("b").as_deref(), Some(r#"{ "x": 2}"#));
        assert_eq!(json("c").as_deref(), Some(r#"{"x":3}"#));
        assert_eq!(json("d"), None);
        assert_eq!(json("e"), None);
        assert_eq!(json("f").as_deref(), Some(r#"{"$blob":"!"}"#));
        assert_eq!(json("g"), None);
    }
}
