//! Private keys in PEM and its kin, also if their beginning or end is missing.

use std::ops::Range;

use super::Span;

/// The longest key, with everything around it.
const LONGEST: usize = 64 << 10;

/// The fewest letters and digits of a key.
const SHORTEST: usize = 40;

/// One of the two lines around a key.
#[derive(Debug)]
struct Marker {
    range: Range<usize>,
    begins: bool,
}

/// Finds the private keys of a text, by the places of `PRIVATE KEY` in it.
pub(super) fn find(text: &str, places: &[usize], spans: &mut Vec<Span>) {
    let markers: Vec<Marker> = places
        .iter()
        .filter_map(|place| marker(text, *place))
        .collect();
    let mut taken = 0;
    for (number, marker) in markers.iter().enumerate() {
        if marker.range.start < taken {
            continue;
        }
        let next = markers.get(number + 1);
        let range = match (marker.begins, next) {
            (true, Some(end)) if !end.begins && is_key(text, marker, end) => {
                marker.range.start..end.range.end
            }
            (true, _) => marker.range.start..lines_after(text, marker.range.end),
            (false, _) => lines_before(text, marker.range.start, taken)..marker.range.end,
        };
        let inner = match marker.begins {
            true => marker.range.end..range.end,
            false => range.start..marker.range.start,
        };
        if letters(&text[inner]) >= SHORTEST {
            taken = range.end;
            spans.push(span(range));
        }
    }
}

/// Finds the secret lines of a PuTTY key: `Private-Lines: 8`.
pub(super) fn putty(text: &str, at: usize) -> Option<Span> {
    let rest = text.get(at..)?;
    let line_end = memchr::memchr(b'\n', &rest.as_bytes()[..rest.len().min(64)])?;
    let start = at + line_end + 1;
    let end = lines_after(text, start);
    (letters(&text[start..end]) >= SHORTEST).then(|| span(start..end))
}

fn span(range: Range<usize>) -> Span {
    Span {
        start: range.start,
        end: range.end,
        kind: "private key",
        exact: true,
    }
}

fn letters(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_alphanumeric).count()
}

/// Returns the whole line around `PRIVATE KEY` at a place.
fn marker(text: &str, place: usize) -> Option<Marker> {
    /// The longest label.
    const LABEL: usize = 40;
    let bytes = text.as_bytes();
    let is_label = |byte: &&u8| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b' ' | b'-')
    };
    let before = bytes[place.saturating_sub(LABEL)..place].iter().rev();
    let start = place - before.take_while(is_label).count();
    let head = text.get(start..place)?;
    let (word, begins) = match (head.rfind("BEGIN "), head.rfind("END ")) {
        (Some(at), _) => (at, true),
        (None, Some(at)) => (at, false),
        (None, None) => return None,
    };
    let dashes = head[..word].trim_end_matches(' ');
    let start = start + dashes.trim_end_matches('-').len();
    if dashes.len() - dashes.trim_end_matches('-').len() < 4 {
        return None;
    }
    let rest = &text[place + "PRIVATE KEY".len()..];
    let tail = rest.strip_prefix(" BLOCK").unwrap_or(rest);
    let tail = tail.trim_start_matches(' ');
    let after = tail.trim_start_matches('-');
    let closing = tail.len() - after.len();
    let end = text.len() - after.len();
    (closing >= 4).then_some(Marker {
        range: start..end,
        begins,
    })
}

/// Returns whether there is a key between two lines, and not a program that looks for one.
fn is_key(text: &str, begin: &Marker, end: &Marker) -> bool {
    let Some(body) = text.get(begin.range.end..end.range.start) else {
        return false;
    };
    let is_break = |c: char| c.is_whitespace() || matches!(c, '\\' | '"' | '\'' | ',' | '>' | '|');
    let (mut coded, mut all) = (0, 0);
    for word in body.split(is_break) {
        all += word.len();
        if word.len() >= 16 && word.bytes().all(is_base64) {
            coded += word.len();
        }
    }
    body.len() <= LONGEST && coded * 2 >= all
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-')
}

/// Returns whether a line may be part of a key: Base64, or a header of it.
fn is_part(line: &str, is_last: bool) -> bool {
    const HEADERS: [&str; 6] = [
        "Proc-Type:",
        "DEK-Info:",
        "Version:",
        "Comment:",
        "Hash:",
        "Subject:",
    ];
    let line = body_of(line);
    let is_long = line.len() >= 16 || is_last || line.ends_with('=');
    line.is_empty()
        || HEADERS.iter().any(|header| line.starts_with(header))
        || (is_long && line.bytes().all(is_base64))
}

/// Returns a line without what may be before it: its number, a quotation mark.
fn body_of(line: &str) -> &str {
    let line = line.trim();
    let is_prefix =
        |c: char| c.is_whitespace() || matches!(c, '>' | '|' | '#' | '*' | '"' | '\'' | ',');
    let line = line.trim_matches(is_prefix);
    let number = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &line[number..];
    match number > 0 && number <= 6 && rest.starts_with(['\t', ' ', '|', ':', '→']) {
        true => rest.trim_matches(|c: char| is_prefix(c) || matches!(c, ':' | '→')),
        false => line,
    }
}

/// Returns how far a key goes whose end is missing.
fn lines_after(text: &str, from: usize) -> usize {
    let mut upto = text.len().min(from + LONGEST + 1);
    while !text.is_char_boundary(upto) {
        upto += 1;
    }
    let rest = &text[from..upto];
    let mut end = from;
    let mut at = from;
    for line in rest.split_inclusive('\n') {
        let is_first = at == from;
        let is_final = at + line.len() == text.len();
        let is_cut = at - from + line.len() > LONGEST;
        if is_cut || !(is_part(line, is_final) || (is_first && line.trim().is_empty())) {
            // Base64 up to the first character of something else.
            let is_coded = |byte: &u8| is_base64(*byte) && *byte != b'-';
            let length = line.bytes().take_while(is_coded).count();
            return if length >= 16 || is_first {
                at + length
            } else {
                end
            };
        }
        at += line.len();
        if !line.trim().is_empty() {
            end = at;
        }
    }
    end
}

/// Returns where a key starts whose beginning is missing.
fn lines_before(text: &str, to: usize, least: usize) -> usize {
    let least = least.max(to.saturating_sub(LONGEST));
    let mut start = to;
    let mut is_last = true;
    while start > least {
        let before = &text.as_bytes()[least..start - usize::from(start > least)];
        let line_start = memchr::memrchr(b'\n', before).map_or(least, |at| least + at + 1);
        let Some(line) = text.get(line_start..start) else {
            break;
        };
        if line.trim().is_empty() && line_start < start && !is_last {
            break;
        }
        if !is_part(line, is_last) {
            break;
        }
        is_last = line.trim().is_empty() && is_last || start == to;
        start = line_start;
    }
    start
}
