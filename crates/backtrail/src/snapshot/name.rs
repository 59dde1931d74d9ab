//! File names: converted from bytes, and formatted for display, patches and JSON.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use serde::ser::SerializeMap;

use crate::error::{Error, Result};
use crate::hex::to_hex;

pub(crate) fn os_str(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

pub(crate) fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Returns the names along a path within a workspace; empty for the workspace itself.
pub(crate) fn names_of(path: &Path) -> Result<Vec<&[u8]>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::CurDir => {}
            _ => {
                let what = "is not a path within a workspace (relative, without `..`)";
                return Err(Error::invalid(format!("{} {what}", shown(path))));
            }
        }
    }
    Ok(names)
}

/// Formats a path for display on one line: control characters and bytes that are not
/// UTF-8 are escaped.
pub(crate) fn shown(path: &Path) -> String {
    let mut out = String::new();
    for chunk in bytes_of(path).utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_unsafe(c) {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").ok();
        }
    }
    out
}

/// Formats a name for a patch: unchanged, or in C-style quotes if it contains characters
/// that would break the line or control a terminal.
pub(crate) fn quoted_for_patch(prefix: &str, name: &[u8]) -> String {
    let mut out = String::from(prefix);
    let mut plain = true;
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_unsafe(c) || matches!(c, '"' | '\\') {
                plain = false;
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes)
                    .bytes()
                    .for_each(|byte| escape(&mut out, byte));
            } else {
                out.push(c);
            }
        }
        plain &= chunk.invalid().is_empty();
        chunk
            .invalid()
            .iter()
            .for_each(|byte| escape(&mut out, *byte));
    }
    if plain { out } else { format!("\"{out}\"") }
}

fn escape(out: &mut String, byte: u8) {
    match byte {
        b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
        b'\n' => out.push_str("\\n"),
        b'\t' => out.push_str("\\t"),
        b'\r' => out.push_str("\\r"),
        _ => {
            write!(out, "\\{byte:03o}").ok();
        }
    }
}

/// Returns whether a character could control a terminal or reorder its text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes a path as text and, if that is lossy, its bytes in hex as well.
pub(crate) fn serialize_path<M: SerializeMap>(
    map: &mut M,
    keys: [&'static str; 2],
    path: &Path,
) -> Result<(), M::Error> {
    map.serialize_entry(keys[0], &path.to_string_lossy())?;
    if path.to_str().is_none() {
        map.serialize_entry(keys[1], &to_hex(bytes_of(path)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_terminal_escapes_is_shown_harmlessly() {
        let path = Path::new(os_str(b"a\x1b[31m\n\xff\xe2\x80\xae."));
        assert_eq!(shown(path), "a\\u{1b}[31m\\n\\xff\\u{202e}.");
    }

    #[test]
    fn names_in_patches_are_quoted_only_where_they_must_be() {
        assert_eq!(quoted_for_patch("a/", "größe x".as_bytes()), "a/größe x");
        assert_eq!(
            quoted_for_patch("a/", b"x\"\\\n\x01\xff"),
            r#""a/x\"\\\n\001\377""#
        );
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_refused() {
        assert!(names_of(Path::new("/etc")).is_err());
        assert!(names_of(Path::new("a/../b")).is_err());
        assert_eq!(names_of(Path::new("./a//b/")).unwrap(), [b"a", b"b"]);
        assert!(names_of(Path::new(".")).unwrap().is_empty());
    }
}
