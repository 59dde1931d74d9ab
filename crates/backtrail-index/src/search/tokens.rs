//! Splits text into searchable words.
//!
//! Words are in lower case and without accents. A name in source code is several words,
//! each found on its own: `fooBar`, `foo_bar`, `foo::bar` and `--foo-bar` are `foo` and
//! `bar`. The distance between two words encodes what is between them: upper case, an
//! underscore, a slash, a space. So a name is found as it is written, and not where its
//! words merely follow each other. No two distances add up to a third, so that words at
//! such a distance are neighbours. A name split by upper case alone has one more word,
//! the whole name, so that `foobar` finds `fooBar`.
//!
//! Scripts without spaces have a word for each character; any sequence of them is found.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::fold::{CharKind, kind, push_folded};

/// The longest word in bytes. Longer ones (hashes, encoded data) are found by this much
/// of their beginning.
pub(super) const LONGEST: usize = 64;
/// The distance of words in a name with nothing between them: the smallest one.
pub(super) const JOINED: usize = 8;
/// The distance of words that are not in one name: the greatest one, and less than twice
/// the smallest.
pub(super) const APART: usize = 15;
/// The position of the first word of a piece: after everything before it, so that no
/// phrase spans two pieces.
const FIRST: usize = 2 * APART;
/// The most characters between the words of one name: `://`, `../`.
const LONGEST_JOINT: usize = 3;
/// Encoded data of this length is one word, whatever it looks like.
const BLOB: usize = 256;

/// Splits text into words for tantivy.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    token: Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = Stream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream<'a> {
        Stream {
            text,
            token: &mut self.token,
            all: None,
        }
    }
}

/// The words of a text. Pushing them is fast; pulling them builds a list first.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    text: &'a str,
    token: &'a mut Token,
    all: Option<std::vec::IntoIter<Token>>,
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        let text = self.text;
        let all = self.all.get_or_insert_with(|| words(text).into_iter());
        match all.next() {
            Some(token) => {
                *self.token = token;
                true
            }
            None => false,
        }
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }

    fn process(&mut self, sink: &mut dyn FnMut(&Token)) {
        each_word(self.text, self.token, sink);
    }
}

/// Returns the words of a text with their positions.
pub(super) fn words(text: &str) -> Vec<Token> {
    let mut words = Vec::new();
    each_word(text, &mut Token::default(), &mut |token| {
        words.push(token.clone());
    });
    words
}

/// Returns whether a word is a whole name whose parts follow.
pub(super) fn is_whole(token: &Token) -> bool {
    token.position_length > 1
}

/// Calls `sink` with each word of a text; `token` is scratch space.
pub(super) fn each_word(text: &str, token: &mut Token, sink: &mut dyn FnMut(&Token)) {
    Splitter {
        text,
        token,
        sink,
        last: FIRST - APART,
        gap: APART,
    }
    .run();
}

/// The class of a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Joint,
    Other,
    /// A part of a multi-byte character.
    Wide,
}

/// The class of each byte.
static CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b'_' | b'-' | b'.' | b'/' | b'\\' | b':' | b'@' | b'#' | b'$' | b'+' | b'~' | b'\'' => {
                Class::Joint
            }
            128.. => Class::Wide,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
}

fn class(byte: u8) -> Class {
    CLASSES[usize::from(byte)]
}

fn is_alphanumeric(byte: u8) -> bool {
    matches!(class(byte), Class::Lower | Class::Upper | Class::Digit)
}

struct Splitter<'a> {
    text: &'a str,
    token: &'a mut Token,
    sink: &'a mut dyn FnMut(&Token),
    /// The position of the last word.
    last: usize,
    /// The distance to the next word.
    gap: usize,
}

impl Splitter<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at = match class(byte) {
                Class::Other => {
                    self.gap = APART;
                    at + 1
                }
                Class::Joint => self.joint(at),
                Class::Lower | Class::Upper | Class::Digit => self.ascii_run(at),
                Class::Wide => self.wide_run(at),
            };
        }
    }

    /// Skips the characters between words of one name.
    fn joint(&mut self, from: usize) -> usize {
        let rest = &self.text.as_bytes()[from..];
        let joint = rest
            .iter()
            .take_while(|&&byte| class(byte) == Class::Joint)
            .count();
        self.gap = match self.gap {
            APART => APART,
            _ if joint > LONGEST_JOINT => APART,
            _ => distance(&rest[..joint]),
        };
        from + joint
    }

    /// Reads ASCII letters and digits, which most text consists of.
    fn ascii_run(&mut self, from: usize) -> usize {
        let text = self.text;
        let bytes = text.as_bytes();
        let rest = &bytes[from..];
        let run = rest.iter().take_while(|&&byte| is_alphanumeric(byte));
        let to = from + run.count();
        if bytes.get(to).is_some_and(|&byte| byte >= 128) && continues_word(&text[to..]) {
            return self.wide_run(from);
        }
        let parts = Parts::of(&bytes[from..to]);
        if parts.count == 1 {
            self.emit_ascii(from, to, 1);
        } else if parts.is_noise(to - from) {
            let end = blob_end(bytes, from, to);
            self.emit_ascii(from, to, 1);
            return end;
        } else {
            self.emit_parts(from, to, &parts);
        }
        to
    }

    /// Emits the parts of a name, and joined runs of letters that only upper case
    /// separates.
    fn emit_parts(&mut self, from: usize, to: usize, parts: &Parts) {
        let mut part = 0;
        while part < parts.count {
            let (begin, _) = parts.range(part, to - from);
            let letters = parts.letters_from(part);
            if letters > 1 {
                let (_, end) = parts.range(part + letters - 1, to - from);
                self.emit_ascii(from + begin, from + end, letters);
                // The parts begin where the whole does.
                self.gap = 0;
            }
            for part in part..part + letters.max(1) {
                let (begin, end) = parts.range(part, to - from);
                self.emit_ascii(from + begin, from + end, 1);
            }
            part += letters.max(1);
        }
    }

    fn emit_ascii(&mut self, from: usize, to: usize, length: usize) {
        let shown = &self.text[from..to.min(from + LONGEST)];
        self.token.text.clear();
        self.token.text.push_str(shown);
        self.token.text.make_ascii_lowercase();
        self.emit(from, to, length);
    }

    /// Reads letters, digits and single characters of any script.
    fn wide_run(&mut self, from: usize) -> usize {
        let text = self.text;
        let mut word_from = from;
        let mut last = CharKind::Other;
        self.token.text.clear();
        for (offset, c) in text[from..].char_indices() {
            let at = from + offset;
            let now = kind(c);
            match now {
                CharKind::Mark => continue,
                CharKind::Other => {
                    self.flush(word_from, at);
                    // The caller handles characters that are not part of a word, unless
                    // they are wide, which would come back here.
                    if c.is_ascii() {
                        return at;
                    }
                    self.gap = APART;
                    return at + c.len_utf8();
                }
                CharKind::Single => {
                    self.flush(word_from, at);
                    word_from = at;
                    push_folded(c, &mut self.token.text);
                    self.flush(word_from, at + c.len_utf8());
                    word_from = at + c.len_utf8();
                }
                CharKind::Lower | CharKind::Upper | CharKind::Digit => {
                    if is_boundary(last, now) {
                        self.flush(word_from, at);
                    }
                    if self.token.text.is_empty() {
                        word_from = at;
                    }
                    // The rest of a long word is skipped.
                    if self.token.text.len() < LONGEST {
                        push_folded(c, &mut self.token.text);
                    }
                }
            }
            last = now;
        }
        self.flush(word_from, text.len());
        text.len()
    }

    fn flush(&mut self, from: usize, to: usize) {
        if !self.token.text.is_empty() {
            self.emit(from, to, 1);
            self.token.text.clear();
        }
    }

    fn emit(&mut self, from: usize, to: usize, length: usize) {
        self.last += self.gap;
        self.token.offset_from = from;
        self.token.offset_to = to;
        self.token.position = self.last;
        self.token.position_length = length;
        (self.sink)(self.token);
        self.gap = JOINED;
    }
}

/// Returns the distance of words in a name with these characters between them.
fn distance(joint: &[u8]) -> usize {
    JOINED
        + match joint {
            b"_" => 1,
            b"-" => 2,
            b":" | b"::" => 3,
            b"." => 4,
            b"/" | b"\\" => 5,
            _ => 6,
        }
}

/// Returns whether the first character of a text continues a word.
fn continues_word(rest: &str) -> bool {
    let first = rest.chars().next().map(kind);
    matches!(
        first,
        Some(CharKind::Lower | CharKind::Upper | CharKind::Digit | CharKind::Mark)
    )
}

/// Returns whether a part of a name ends between two characters.
fn is_boundary(last: CharKind, now: CharKind) -> bool {
    matches!(
        (last, now),
        (CharKind::Lower, CharKind::Upper)
            | (CharKind::Digit, CharKind::Lower | CharKind::Upper)
            | (CharKind::Lower | CharKind::Upper, CharKind::Digit)
    )
}

/// The most parts of a name; a name with more is noise.
const MOST_PARTS: usize = 24;

/// The parts of a run of ASCII letters and digits.
struct Parts {
    /// Where each part begins.
    begins: [u16; MOST_PARTS],
    /// Which parts are digits.
    digits: u32,
    /// The number of parts, even if there is no room for them.
    count: usize,
}

impl Parts {
    fn of(run: &[u8]) -> Self {
        let mut parts = Self {
            begins: [0; MOST_PARTS],
            digits: 0,
            count: 0,
        };
        let mut last = None;
        for (at, &byte) in run.iter().enumerate() {
            let now = class(byte);
            match (last, now) {
                (Some(last), now) if last == now => {}
                // In `HTTPServer`, the S belongs to `Server`.
                (Some(Class::Upper), Class::Lower) => {
                    let is_acronym = at >= 2 && class(run[at - 2]) == Class::Upper;
                    if is_acronym {
                        parts.push(at - 1, Class::Lower);
                    }
                }
                _ => parts.push(at, now),
            }
            last = Some(now);
        }
        parts
    }

    fn push(&mut self, at: usize, class: Class) {
        if let Some(begin) = self.begins.get_mut(self.count) {
            *begin = u16::try_from(at).unwrap_or(u16::MAX);
            self.digits |= u32::from(class == Class::Digit) << self.count;
        }
        self.count += 1;
    }

    /// Returns whether the parts are meaningless: hashes, ids, encoded data. Their parts
    /// are two characters long on average; in short runs that may be chance.
    fn is_noise(&self, len: usize) -> bool {
        let are_short = match len {
            ..16 => len < self.count * 2,
            _ => len * 10 < self.count * 26,
        };
        self.count > MOST_PARTS || len > 2 * LONGEST || (self.count >= 4 && are_short)
    }

    fn range(&self, part: usize, len: usize) -> (usize, usize) {
        let begin = |part: usize| self.begins.get(part).map_or(len, |&at| usize::from(at));
        let end = if part + 1 < self.count {
            begin(part + 1)
        } else {
            len
        };
        (begin(part), end)
    }

    /// Returns how many parts of letters follow each other from `part` on.
    fn letters_from(&self, part: usize) -> usize {
        (part..self.count)
            .take_while(|part| self.digits >> part & 1 == 0)
            .count()
    }
}

/// Returns where encoded data that begins with a noisy run ends, or the end of the run if
/// it is not encoded data.
fn blob_end(bytes: &[u8], from: usize, to: usize) -> usize {
    if to - from < 20 {
        return to;
    }
    let is_code = |byte: u8| is_alphanumeric(byte) || b"+/=-_".contains(&byte);
    let blob = bytes[from..].iter().take_while(|&&byte| is_code(byte));
    let end = from + blob.count();
    if end - from >= BLOB { end } else { to }
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
