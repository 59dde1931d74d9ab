//! Values of Kubernetes secrets: everything below `data` and `stringData`.

use super::Span;
use super::values::is_placeholder;

/// How far from `kind: Secret` its values are looked for.
const REACH: usize = 16 << 10;

/// What is between two objects.
const SIGNS: [&str; 3] = ["\nkind:", "\"kind\"", "\n---"];

/// Finds the values of the object whose field `kind` ends at a place, if it is a secret.
pub(super) fn secrets(text: &str, at: usize, spans: &mut Vec<Span>) {
    let is_between = |c: char| matches!(c, '"' | '\'' | ':' | ' ');
    let rest = text.get(at..).unwrap_or_default();
    let value = rest.trim_start_matches(is_between);
    let is_secret = value.strip_prefix("Secret").is_some_and(|after| {
        !after.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.len() < rest.len()
    });
    if !is_secret || !rest[..rest.len() - value.len()].contains(':') {
        return;
    }
    let (from, to) = document(text, at);
    let mut fields = text[from..to].split_inclusive('\n');
    let mut place = from;
    let mut within: Option<usize> = None;
    for line in fields.by_ref() {
        let indent = line.len() - line.trim_start().len();
        let own = line.trim();
        if within.is_some_and(|outer| indent <= outer && !own.is_empty()) {
            within = None;
        }
        match within {
            Some(_) => spans.extend(value_of(line, place)),
            None if is_data(own) => within = Some(indent),
            None => {}
        }
        place += line.len();
    }
}

/// Returns the document around a place: up to `---`, or another field `kind`.
fn document(text: &str, at: usize) -> (usize, usize) {
    let floor = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let first = floor(at.saturating_sub(REACH));
    let own = floor(at.saturating_sub(16));
    // The nearest sign: each look is shorter than the one before.
    let mut start = first;
    for sign in SIGNS {
        start = text[start..own].rfind(sign).map_or(start, |at| start + at);
    }
    let mut end = floor((at + REACH).min(text.len()));
    for sign in SIGNS {
        end = text[at..end].find(sign).map_or(end, |found| at + found);
    }
    (start, end)
}

fn is_data(line: &str) -> bool {
    let line = line.trim_end_matches(['{', ' ']);
    matches!(
        line,
        "data:" | "stringData:" | "\"data\":" | "\"stringData\":"
    )
}

/// Returns the value of a line `name: value`.
fn value_of(line: &str, place: usize) -> Option<Span> {
    let (name, value) = line.split_once(':')?;
    let is_edge = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '|');
    let start = value.len() - value.trim_start_matches(is_edge).len();
    let own = value.trim_matches(is_edge);
    let is_value = own.len() >= 4 && !is_placeholder(own) && !name.trim().contains(' ');
    let start = place + name.len() + 1 + start;
    is_value.then_some(Span {
        start,
        end: start + own.len(),
        kind: "secret",
        exact: false,
    })
}
