//! A small subset of regular expressions that is matched in one pass, without going back:
//! characters, `[classes]` and `{counts}`. `\b` at the beginning: not after a letter or digit.
//! `<…>` is the part to look for first, with a fixed length before it; without it, the pattern
//! begins with that part. `(…)` is the secret; without it, all is.

use std::ops::Range;

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// What is looked for first, in lower case.
    pub(super) keyword: String,
    /// How far before the keyword the pattern starts.
    lead: usize,
    /// Whether no letter or digit may be before it.
    is_word: bool,
    parts: Vec<Part>,
    /// The parts that are the secret.
    secret: Range<usize>,
}

/// A class of characters, and how many of them.
#[derive(Debug)]
struct Part {
    class: [bool; 128],
    least: usize,
    most: usize,
}

/// How much of what follows a key is given back.
const LONGEST_TAIL: usize = 64;

/// The longest part, if none is given.
const ANY: usize = 8192;

/// A secret that fits a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) secret: Range<usize>,
    /// Everything from the first class on: what is not the same in all keys.
    pub(super) own: Range<usize>,
    /// The length of its last part.
    last: usize,
}

impl Pattern {
    /// Parses a pattern of this program; wrong ones are found by a test.
    pub(super) fn new(pattern: &str) -> Self {
        let mut parser = Parser::default();
        let rest = pattern.strip_prefix(r"\b");
        let mut chars = rest.unwrap_or(pattern).chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => parser.literal(chars.next().unwrap_or('\\')),
                '[' => {
                    let class: String = chars.by_ref().take_while(|c| *c != ']').collect();
                    parser.class(&class);
                }
                '{' => {
                    let count: String = chars.by_ref().take_while(|c| *c != '}').collect();
                    parser.count(&count);
                }
                '<' => parser.keyword_from = Some(parser.parts.len()),
                '>' => parser.keyword_to = Some(parser.parts.len()),
                '(' => parser.secret_from = parser.parts.len(),
                ')' => parser.secret_to = Some(parser.parts.len()),
                c => parser.literal(c),
            }
        }
        parser.finish(rest.is_some())
    }

    /// Matches the pattern whose keyword is at a place.
    pub(super) fn at(&self, text: &str, keyword: usize) -> Option<Match> {
        let bytes = text.as_bytes();
        let start = keyword.checked_sub(self.lead)?;
        let before = start.checked_sub(1).map(|it| bytes[it]);
        if self.is_word && before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        let mut found = self.matches(bytes, start)?;
        // A sign that may be part of a key may also be what follows it: a dot, a dash.
        let is_cut = |end: usize| bytes.get(end).is_some_and(u8::is_ascii_alphanumeric);
        let slack = self.slack(&found);
        let end = found.secret.end;
        let ends = (end.saturating_sub(slack)..=end).rev();
        found.secret.end = ends.take(LONGEST_TAIL).find(|end| !is_cut(*end))?;
        found.own.end = found.secret.end;
        let is_whole =
            text.is_char_boundary(found.secret.start) && text.is_char_boundary(found.secret.end);
        is_whole.then_some(found)
    }

    /// Returns how much shorter a secret may be: what its last part has too many.
    fn slack(&self, found: &Match) -> usize {
        let last = self.secret.end.checked_sub(1);
        match last.and_then(|last| self.parts.get(last)) {
            Some(part) if part.least < part.most => {
                let most = found.last.saturating_sub(part.least);
                most.min(found.secret.len())
            }
            _ => 0,
        }
    }

    /// Matches a value from its beginning to its end.
    pub(super) fn is_all_of(&self, value: &str) -> bool {
        let found = self.matches(value.as_bytes(), 0);
        found.is_some_and(|found| found.secret == (0..value.len()))
    }

    fn matches(&self, bytes: &[u8], start: usize) -> Option<Match> {
        let (mut at, mut own) = (start, None);
        let mut secret = start..start;
        let mut last = 0;
        for (number, part) in self.parts.iter().enumerate() {
            if number == self.secret.start {
                secret.start = at;
            }
            if part.least != 1 || part.most != 1 {
                own = own.or(Some(at));
            }
            let rest = bytes.get(at..).unwrap_or_default();
            let count = rest
                .iter()
                .take(part.most)
                .take_while(|byte| part.has(**byte))
                .count();
            if count < part.least {
                return None;
            }
            at += count;
            if number + 1 == self.secret.end {
                secret.end = at;
                last = count;
            }
        }
        let own = own.unwrap_or(start)..secret.end;
        Some(Match { secret, own, last })
    }
}

impl Part {
    fn has(&self, byte: u8) -> bool {
        self.class.get(usize::from(byte)).copied().unwrap_or(false)
    }

    /// Returns the character, if it is always this one.
    fn only(&self) -> Option<char> {
        let mut all = (0..128u8).filter(|byte| self.has(*byte));
        let first = all.next()?;
        (all.next().is_none() && self.least == 1 && self.most == 1).then(|| char::from(first))
    }
}

#[derive(Default)]
struct Parser {
    parts: Vec<Part>,
    keyword_from: Option<usize>,
    keyword_to: Option<usize>,
    secret_from: usize,
    secret_to: Option<usize>,
}

impl Parser {
    fn literal(&mut self, c: char) {
        self.class(&c.to_string());
    }

    fn class(&mut self, chars: &str) {
        let mut class = [false; 128];
        let chars: Vec<u8> = chars.bytes().collect();
        let mut at = 0;
        while at < chars.len() {
            let is_range = chars.get(at + 1) == Some(&b'-') && at + 2 < chars.len();
            let last = if is_range { chars[at + 2] } else { chars[at] };
            (chars[at]..=last).for_each(|byte| class[usize::from(byte & 0x7f)] = true);
            at += if is_range { 3 } else { 1 };
        }
        self.parts.push(Part {
            class,
            least: 1,
            most: 1,
        });
    }

    fn count(&mut self, count: &str) {
        let (least, most) = count.split_once(',').unwrap_or((count, count));
        if let Some(part) = self.parts.last_mut() {
            part.least = least.parse().unwrap_or(0);
            part.most = most.parse().unwrap_or(ANY);
        }
    }

    fn finish(self, is_word: bool) -> Pattern {
        let from = self.keyword_from.unwrap_or(0);
        let to = self.keyword_to.unwrap_or(self.parts.len());
        let keyword: String = self.parts[from..to].iter().map_while(Part::only).collect();
        Pattern {
            keyword: keyword.to_ascii_lowercase(),
            lead: self.parts[..from].iter().map(|part| part.most).sum(),
            is_word,
            secret: self.secret_from..self.secret_to.unwrap_or(self.parts.len()),
            parts: self.parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret<'t>(pattern: &str, text: &'t str) -> Option<&'t str> {
        let pattern = Pattern::new(pattern);
        let keyword = text.to_ascii_lowercase().find(&pattern.keyword)?;
        pattern
            .at(text, keyword)
            .map(|found| &text[found.secret.clone()])
    }

    #[test]
    fn a_pattern_is_matched_at_its_keyword() {
        for (pattern, text, expected) in [
            ("ghp_[a-c]{3}", "x ghp_abc.", Some("ghp_abc")),
            ("ghp_[a-c]{3}", "xghp_abc", Some("ghp_abc")),
            ("ghp_[a-c]{3}", "ghp_abcd", None),
            ("ghp_[a-c]{3}", "GHP_abc", None),
            (r"\bsk-[0-9]{2,}", "task-123", None),
            (r"\bsk-[0-9]{2,}", "a-sk-123", Some("sk-123")),
            (r"[a-z]{3}<-us>[0-9]{1,2}", "abc-us12 ", Some("abc-us12")),
            (r"a\.b/([0-9]{2}/[0-9]{1,3})", "a.b/12/345", Some("12/345")),
            ("k_[a-z]{2}={0,2}", "k_ab==", Some("k_ab==")),
        ] {
            assert_eq!(secret(pattern, text), expected, "{pattern} in {text}");
        }
    }
}
