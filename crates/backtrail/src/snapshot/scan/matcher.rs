//! The rules of one ignore file, interpreted as git does.
//!
//! Most lines are compiled together. Lines that the compiled form would interpret
//! differently from git are matched one by one, as bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::pattern::Pattern;

/// Longer lines are ignored, because compiling them could take any amount of memory.
const LONGEST_LINE: usize = 4096;
/// How many lines are compiled together. If a set is too large, only that set fails.
const PART_LINES: usize = 1000;
const PART_BYTES: usize = 64 * 1024;

/// The rules of one file; the last rule that matches a path decides.
#[derive(Debug, Default)]
pub(super) struct Matcher(Vec<RuleSet>);

#[derive(Debug)]
enum RuleSet {
    Set(Gitignore),
    One(Pattern),
}

impl Matcher {
    /// Parses lines of rules. As in git, an invalid line is ignored on its own.
    pub(super) fn new(text: &[u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut parts = Vec::new();
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for line in text.split(|byte| *byte == b'\n') {
            let line = trim(line);
            if line.is_empty() || line[0] == b'#' || line.len() > LONGEST_LINE {
                continue;
            }
            match translate(line) {
                Some(line) => {
                    bytes += line.len();
                    lines.push(line);
                }
                None => {
                    compile(&std::mem::take(&mut lines), &mut parts);
                    parts.extend(Pattern::new(line).map(RuleSet::One));
                    bytes = 0;
                }
            }
            if lines.len() >= PART_LINES || bytes >= PART_BYTES {
                compile(&std::mem::take(&mut lines), &mut parts);
                bytes = 0;
            }
        }
        compile(&lines, &mut parts);
        Self(parts)
    }

    /// Returns whether the rules ignore a path (true), include it again (false), or do
    /// not match.
    pub(super) fn decide(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        let said = |part: &RuleSet| match part {
            RuleSet::Set(set) => match set.matched(OsStr::from_bytes(path), is_dir) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            },
            RuleSet::One(pattern) => pattern.decide(path, is_dir),
        };
        self.0.iter().rev().find_map(said)
    }
}

/// Compiles lines in as few sets as possible; a line that cannot be compiled is dropped
/// on its own.
fn compile(lines: &[String], parts: &mut Vec<RuleSet>) {
    if lines.is_empty() {
        return;
    }
    let mut builder = GitignoreBuilder::new("");
    for line in lines {
        builder.add_line(None, line).ok();
    }
    match builder.build() {
        Ok(set) => parts.push(RuleSet::Set(set)),
        Err(_) if lines.len() > 1 => {
            let (first, second) = lines.split_at(lines.len() / 2);
            compile(first, parts);
            compile(second, parts);
        }
        Err(_) => {}
    }
}

/// Removes what git removes at the end of a line: one carriage return, and unescaped
/// spaces.
fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (mut at, mut end) = (0, 0);
    while at < line.len() {
        match line[at] {
            b'\\' => {
                at += 2;
                end = at.min(line.len());
            }
            byte => {
                at += 1;
                end = if byte == b' ' { end } else { at };
            }
        }
    }
    &line[..end]
}

/// Converts a line to the compiled form's syntax; `None` if that is impossible.
fn translate(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line).ok()?;
    // The end would be trimmed again or taken for an escaped slash, and for git three
    // stars mean the same as two.
    let last = line.chars().next_back()?;
    if last.is_whitespace() || line.ends_with("\\/") || line.contains("***") {
        return None;
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                out.push(c);
                out.push(rest.next()?);
            }
            // Braces are not alternatives.
            '{' | '}' => out.extend(['\\', c]),
            '[' => {
                let (class, after) = rest.as_str().split_once(']')?;
                if !is_simple_class(class) {
                    return None;
                }
                out.extend(["[", class, "]"]);
                rest = after.chars();
            }
            _ => out.push(c),
        }
    }
    Some(out)
}

/// Returns whether a class means the same everywhere.
fn is_simple_class(class: &str) -> bool {
    let bytes = class.as_bytes();
    let is_range = |at: usize| match (at.checked_sub(1).map(|at| bytes[at]), bytes.get(at + 1)) {
        (Some(from), Some(to)) => {
            from.is_ascii_alphanumeric() && to.is_ascii_alphanumeric() && from <= *to
        }
        _ => false,
    };
    let simple = |(at, byte): (usize, &u8)| match byte {
        b'-' => is_range(at),
        byte => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'),
    };
    !bytes.is_empty() && bytes.iter().enumerate().all(simple)
}
