//! Command lines that can be pasted into a shell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::text::is_unsafe;

/// Quotes text so that a shell reads it as one word, byte for byte, and a terminal sees no
/// escapes.
pub(crate) fn quote(text: &str) -> String {
    if is_plain(text) && !text.starts_with('-') {
        return text.to_owned();
    }
    if text.contains(|c| is_unsafe(c) || c == '\n' || c == '\t') {
        return quote_escaped(text);
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Quotes a path.
pub(crate) fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

/// Quotes paths as the last arguments of a command.
pub(crate) fn quote_paths(paths: &[PathBuf]) -> String {
    let words: Vec<String> = paths.iter().map(|path| quote_path(path)).collect();
    words.join(" ")
}

/// Returns whether text needs no quotes.
fn is_plain(text: &str) -> bool {
    // A tilde is special only at the start of a word.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,/:@%+=~".contains(c);
    !text.is_empty() && !text.starts_with('~') && text.chars().all(plain)
}

/// Quotes text with its unsafe characters in octal.
fn quote_escaped(text: &str) -> String {
    let mut out = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str(r"\n"),
            '\t' => out.push_str(r"\t"),
            c if is_unsafe(c) => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!(r"\{byte:03o}"));
                }
            }
            c => out.push(c),
        }
    }
    out + "'"
}

/// Returns a command as typed.
pub(crate) fn command_line(words: &[OsString]) -> String {
    let word = |word: &OsString| {
        let text = word.to_string_lossy();
        // Options after the command need no quotes.
        if is_plain(&text) {
            text.into_owned()
        } else {
            quote(&text)
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Quotes an argument so that it is not read as an option.
pub(crate) fn argument(text: &str) -> String {
    arguments(std::slice::from_ref(&text))
}

/// Quotes arguments so that they are not read as options.
pub(crate) fn arguments(texts: &[impl AsRef<str>]) -> String {
    let words: Vec<String> = texts.iter().map(|text| quote(text.as_ref())).collect();
    let like_option = texts.iter().any(|text| text.as_ref().starts_with('-'));
    let end_of_options = if like_option { "-- " } else { "" };
    format!("{end_of_options}{}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_if_a_shell_would_split_it() {
        assert_eq!(quote("a-b_c.d/e"), "a-b_c.d/e");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("$(rm x)"), "'$(rm x)'");
        assert_eq!(quote("-x"), "'-x'");
        assert_eq!(quote("last~2"), "last~2");
        assert_eq!(quote("~2"), "'~2'");
    }

    #[test]
    fn a_command_reads_as_typed() {
        let line = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            command_line(&words)
        };
        assert_eq!(line(&["sh", "-c", "echo hi"]), "sh -c 'echo hi'");
        assert_eq!(line(&["run", "--", "ls", "--all"]), "run -- ls --all");
        assert_eq!(line(&["x", "-a b", "-"]), "x '-a b' -");
    }

    #[test]
    fn escapes_are_written_in_octal() {
        assert_eq!(quote("a\u{1b}[31m'\\"), r"$'a\033[31m\'\\'");
        assert_eq!(quote("\u{202e}\n"), r"$'\342\200\256\n'");
    }

    #[test]
    fn an_argument_is_never_read_as_an_option() {
        assert_eq!(argument("-x"), "-- '-x'");
        assert_eq!(arguments(&["a", "-x"]), "-- a '-x'");
        assert_eq!(arguments(&["a", "b c"]), "a 'b c'");
    }
}
