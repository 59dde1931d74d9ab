//! A file that is one object with `messages`, scanned without parsing it whole.
//!
//! Bytes go in a chunk at a time; out come the places of the elements of `messages`
//! and of the other fields. At the top level the syntax is checked; inside values only
//! strings and brackets are followed, so a flawed element costs only itself. Depth is
//! a counter, so nesting costs nothing.

use std::ops::Range;

use super::record::{V1Meta, first_prompt_ms, read_compaction};
use crate::error::Reason;
use crate::json::Parts;
use crate::message::CompactionSummary;
use crate::trail::record::MAX_READ;

/// Where the parts of a file are that is one object with `messages`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct V1Object {
    /// The elements of `messages`.
    pub elements: Vec<V1Element>,
    /// What is wrong with the object, if anything.
    pub flaw: Option<V1Flaw>,
    /// The known fields beside `messages`.
    fields: Vec<(&'static str, Range<u64>)>,
}

/// An element of `messages`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V1Element {
    /// Its bytes.
    pub place: Range<u64>,
    /// The line that it begins in.
    pub line: u64,
}

/// What is wrong with an object, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V1Flaw {
    /// The first byte that cannot be read.
    pub byte: u64,
    /// Its line.
    pub line: u64,
    /// What is wrong there.
    pub reason: Reason,
}

/// What an object says about its session.
#[derive(Debug, Default)]
pub struct V1About {
    /// The fields that a `session_meta` has, too. `None` where there are none.
    pub meta: Option<V1Meta>,
    /// The last compaction.
    pub compaction: Option<CompactionSummary>,
    /// When the first prompt was entered.
    pub(super) first_prompt_ms: Option<i64>,
    /// The fields that cannot be read.
    pub(super) damage: Vec<(Range<u64>, Reason)>,
}

/// How much of a file is scanned at a time.
pub(super) const CHUNK: usize = 256 << 10;
/// The longest value that can be an id, a name or a time.
const LONGEST_NAME: usize = 1 << 20;

impl V1Object {
    /// Scans a file; `None` where it is not one object with `messages`.
    ///
    /// `read` fills a buffer from an offset, and returns less only at the end.
    ///
    /// # Errors
    ///
    /// Returns the first error of `read`.
    pub fn scan<E>(
        mut read: impl FnMut(&mut [u8], u64) -> Result<usize, E>,
    ) -> Result<Option<Self>, E> {
        let mut scanner = Scanner::new();
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        loop {
            let n = read(&mut chunk, at)?;
            scanner.feed(&chunk[..n]);
            at += n as u64;
            if n < chunk.len() || scanner.is_lines() {
                return Ok(scanner.finish());
            }
        }
    }

    /// Reads what the object says about its session. `load` returns a part of the file.
    ///
    /// # Errors
    ///
    /// Returns the first error of `load`.
    pub fn about<E>(
        &self,
        mut load: impl FnMut(Range<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<V1About, E> {
        let mut about = V1About::default();
        let mut meta = Vec::new();
        for (name, place) in &self.fields {
            let bytes = place.end - place.start;
            let limit = MAX_READ as u64;
            let read = match bytes > limit {
                true => Err(Reason::TooLong { bytes, limit }),
                false => about.take(name, &load(place.clone())?, &mut meta),
            };
            if let Err(reason) = read {
                about.damage.push((place.clone(), reason));
            }
        }
        if !meta.is_empty() {
            let json = format!("{{{}}}", meta.join(","));
            about.meta = Parts::parse(&json).ok().map(|fields| V1Meta::read(&fields));
        }
        Ok(about)
    }

    /// Returns whether there are messages in spite of the flaw.
    pub(super) fn has_messages(&self) -> bool {
        let reason = self.flaw.as_ref().map(|flaw| &flaw.reason);
        !matches!(reason, Some(Reason::WrongField(..)))
    }
}

impl V1About {
    /// Reads one field; those of the meta are collected as they are written.
    fn take(
        &mut self,
        name: &'static str,
        bytes: &[u8],
        meta: &mut Vec<String>,
    ) -> Result<(), Reason> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Reason::NotUtf8(error.valid_up_to() as u64))?;
        serde_json::from_str::<serde::de::IgnoredAny>(text)
            .map_err(|error| Reason::Syntax(error.to_string()))?;
        match name {
            "compaction" if text == "null" => {}
            "compaction" => {
                let fields = Parts::parse(text);
                let fields = fields.map_err(|_| Reason::WrongField("compaction", "an object"))?;
                self.compaction = Some(read_compaction(&fields)?);
            }
            "prompt_history" => self.first_prompt_ms = first_prompt_ms(text),
            _ if text.len() <= LONGEST_NAME => meta.push(format!("\"{name}\":{text}")),
            _ => return Err(Reason::OutOfRange(name)),
        }
        Ok(())
    }
}

/// The fields that say something about the session as a whole.
const FIELDS: [&str; 10] = [
    "version",
    "session_id",
    "created_at_ms",
    "updated_at_ms",
    "fork",
    "model",
    "workspace_root",
    "title",
    "compaction",
    "prompt_history",
];
const MESSAGES: &str = "messages";
/// The longest key that is kept: no known one comes near, even escaped.
const LONGEST_KEY: usize = 128;
const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    Begin,
    Key { first: bool },
    InKey,
    Colon,
    Value,
    InValue,
    Scalar,
    AfterValue,
    Element { first: bool },
    AfterElement,
    Closed,
    Failed,
}

#[derive(Debug)]
struct Scanner {
    state: ScanState,
    /// The offset of the next byte.
    at: u64,
    line: u64,
    in_string: bool,
    escaped: bool,
    depth: u64,
    /// Where the present value began.
    start: u64,
    start_line: u64,
    key: Vec<u8>,
    in_messages: bool,
    /// Whether there is a field `messages`, and whether it is an array.
    has_messages: bool,
    has_array: bool,
    trailing: bool,
    object: V1Object,
}

impl Scanner {
    fn new() -> Self {
        Self {
            state: ScanState::Begin,
            at: 0,
            line: 1,
            in_string: false,
            escaped: false,
            depth: 0,
            start: 0,
            start_line: 1,
            key: Vec::new(),
            in_messages: false,
            has_messages: false,
            has_array: false,
            trailing: false,
            object: V1Object::default(),
        }
    }

    fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        if self.at == 0 && rest.starts_with(BOM) {
            self.at = BOM.len() as u64;
            rest = &rest[BOM.len()..];
        }
        while !rest.is_empty() && self.state != ScanState::Failed {
            let passed = self.step(rest);
            self.at += passed as u64;
            rest = &rest[passed..];
        }
    }

    /// Returns whether the file is surely not one object with `messages`.
    fn is_lines(&self) -> bool {
        match self.state {
            ScanState::Failed => !self.has_array,
            ScanState::Closed => self.trailing || !self.has_messages,
            _ => false,
        }
    }

    /// Returns the object, now that there are no more bytes.
    ///
    /// An object that breaks off inside or behind its `messages` is still one: as
    /// lines there would be nothing to read in it.
    fn finish(mut self) -> Option<V1Object> {
        if self.is_lines() || !self.has_messages {
            return None;
        }
        if !matches!(self.state, ScanState::Closed | ScanState::Failed) {
            if !self.has_array {
                return None;
            }
            self.fail(Reason::Unfinished);
        }
        if !self.has_array {
            self.note_flaw(Reason::WrongField(MESSAGES, "an array"));
        }
        self.object.elements.shrink_to_fit();
        Some(self.object)
    }

    /// Passes a few bytes and returns how many.
    fn step(&mut self, rest: &[u8]) -> usize {
        if self.in_string {
            return self.pass_string(rest);
        }
        match self.state {
            ScanState::InValue => return self.pass_nested(rest),
            ScanState::Scalar => return self.pass_scalar(rest),
            _ => {}
        }
        let byte = rest[0];
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            self.line += u64::from(byte == b'\n');
            return 1;
        }
        self.at_token(byte)
    }

    /// Takes the token that begins with `byte`; of a value only the beginning.
    fn at_token(&mut self, byte: u8) -> usize {
        match (self.state, byte) {
            (ScanState::Begin, b'{') => self.state = ScanState::Key { first: true },
            (ScanState::Key { .. }, b'"') => {
                self.key.clear();
                self.state = ScanState::InKey;
                self.in_string = true;
            }
            (ScanState::Key { first: true }, b'}') | (ScanState::AfterValue, b'}') => {
                self.state = ScanState::Closed;
            }
            (ScanState::Colon, b':') => self.state = ScanState::Value,
            (ScanState::Value, b'[') if self.is_key(MESSAGES) && !self.has_messages => {
                self.has_messages = true;
                self.has_array = true;
                self.in_messages = true;
                self.state = ScanState::Element { first: true };
            }
            (ScanState::Value, byte) => {
                self.note_messages();
                return self.begin_value(byte);
            }
            (ScanState::AfterValue, b',') => self.state = ScanState::Key { first: false },
            (ScanState::Element { first: true } | ScanState::AfterElement, b']') => {
                self.in_messages = false;
                self.state = ScanState::AfterValue;
            }
            (ScanState::Element { .. }, byte) => return self.begin_value(byte),
            (ScanState::AfterElement, b',') => self.state = ScanState::Element { first: false },
            // NULs that a power cut leaves behind the object are damage, not lines.
            (ScanState::Closed, 0) => self.note_flaw(Reason::NulBlock),
            (ScanState::Closed, _) => self.trailing = true,
            _ => self.fail(Reason::Syntax("unexpected character".to_owned())),
        }
        1
    }

    /// Notes a field `messages` that is not an array, or that is repeated.
    fn note_messages(&mut self) {
        if !self.is_key(MESSAGES) {
            return;
        }
        if self.has_messages {
            self.note_flaw(Reason::RepeatedField(MESSAGES.to_owned()));
        }
        self.has_messages = true;
    }

    fn begin_value(&mut self, byte: u8) -> usize {
        self.start = self.at;
        self.start_line = self.line;
        self.depth = 0;
        self.state = ScanState::InValue;
        match byte {
            b'{' | b'[' => self.depth = 1,
            b'"' => self.in_string = true,
            b',' | b':' | b'}' | b']' => {
                self.fail(Reason::Syntax("a value is missing".to_owned()));
            }
            _ => {
                self.state = ScanState::Scalar;
                return 0;
            }
        }
        1
    }

    fn pass_string(&mut self, rest: &[u8]) -> usize {
        let mut n = usize::from(self.escaped);
        self.escaped = false;
        // A string cannot contain a line break: it reveals a torn line early.
        while let Some(plain) = plain_len(&rest[n..]) {
            n += plain + 1;
            match rest[n - 1] {
                b'"' => {
                    self.keep_key(&rest[..n - 1]);
                    self.end_string(n);
                    return n;
                }
                b'\\' if n == rest.len() => self.escaped = true,
                b'\\' => n += 1,
                _ => {
                    self.fail(Reason::Syntax("a line break in a string".to_owned()));
                    return n;
                }
            }
        }
        self.keep_key(rest);
        rest.len()
    }

    fn end_string(&mut self, passed: usize) {
        self.in_string = false;
        if self.state == ScanState::InKey {
            self.state = ScanState::Colon;
        } else if self.depth == 0 {
            self.end_value(self.at + passed as u64);
        }
    }

    fn pass_nested(&mut self, rest: &[u8]) -> usize {
        for (n, byte) in rest.iter().enumerate() {
            match byte {
                b'"' => {
                    self.in_string = true;
                    return n + 1;
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.end_value(self.at + n as u64 + 1);
                        return n + 1;
                    }
                }
                b'\n' => self.line += 1,
                _ => {}
            }
        }
        rest.len()
    }

    fn pass_scalar(&mut self, rest: &[u8]) -> usize {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
        match rest.iter().position(ends) {
            Some(n) => {
                self.end_value(self.at + n as u64);
                n
            }
            None => rest.len(),
        }
    }

    fn end_value(&mut self, end: u64) {
        let place = self.start..end;
        if self.in_messages {
            let line = self.start_line;
            self.object.elements.push(V1Element { place, line });
            self.state = ScanState::AfterElement;
            return;
        }
        let known = FIELDS.into_iter().find(|name| self.is_key(name));
        if let Some(name) = known {
            // The last of each name counts.
            self.object.fields.retain(|(known, _)| *known != name);
            self.object.fields.push((name, place));
        }
        self.state = ScanState::AfterValue;
    }

    fn keep_key(&mut self, bytes: &[u8]) {
        if self.state == ScanState::InKey && self.key.len() <= LONGEST_KEY {
            let room = LONGEST_KEY + 1 - self.key.len();
            self.key.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn is_key(&self, name: &str) -> bool {
        if !self.key.contains(&b'\\') {
            return self.key == name.as_bytes();
        }
        let literal = [b"\"", self.key.as_slice(), b"\""].concat();
        serde_json::from_slice::<String>(&literal).is_ok_and(|key| key == name)
    }

    /// Gives up: what was found so far is kept, the rest cannot be taken apart.
    fn fail(&mut self, reason: Reason) {
        let inside = self.in_string || matches!(self.state, ScanState::InValue | ScanState::Scalar);
        if !inside {
            self.start = self.at;
            self.start_line = self.line;
        }
        self.state = ScanState::Failed;
        self.object.flaw = Some(V1Flaw {
            byte: self.start,
            line: self.start_line,
            reason,
        });
    }

    fn note_flaw(&mut self, reason: Reason) {
        self.object.flaw.get_or_insert(V1Flaw {
            byte: self.at,
            line: self.line,
            reason,
        });
    }
}

/// Returns how many bytes of a string come before its end, an escape or a line break.
fn plain_len(bytes: &[u8]) -> Option<usize> {
    /// Escapes come in clusters: this near, looking is faster than searching.
    const NEAR: usize = 64;
    let (near, far) = bytes.split_at(bytes.len().min(NEAR));
    let (words, rest) = near.as_chunks();
    for (n, word) in words.iter().enumerate() {
        if let Some(at) = special_in(u64::from_le_bytes(*word)) {
            return Some(n * 8 + at);
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'\n');
    if let Some(at) = rest.iter().position(is_special) {
        return Some(words.len() * 8 + at);
    }
    memchr::memchr3(b'"', b'\\', b'\n', far).map(|at| near.len() + at)
}

/// Returns which of eight bytes, the lowest first, is the first special one.
fn special_in(word: u64) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    let mut marks = 0;
    for special in [b'"', b'\\', b'\n'] {
        let zero_if_special = word ^ (ONES * u64::from(special));
        // Subtracting one borrows from the top bit of a byte that is zero. A byte
        // behind it may be marked for nothing: only the first mark counts.
        marks |= zero_if_special.wrapping_sub(ONES) & !zero_if_special & TOPS;
    }
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, step: usize) -> Option<V1Object> {
        let mut scanner = Scanner::new();
        for chunk in text.as_bytes().chunks(step) {
            scanner.feed(chunk);
        }
        scanner.finish()
    }

    fn pieces(text: &str) -> Vec<&str> {
        let object = scan(text, text.len().max(1)).unwrap();
        let elements = object.elements.iter().map(|element| &element.place);
        let fields = object.fields.iter().map(|(_, place)| place);
        elements
            .chain(fields)
            .map(|place| &text[place.start as usize..place.end as usize])
            .collect()
    }

    const ODD: &str = " {\"a\\\"]\":{\"x\":[\"}\"]},\n \"m\\u0065ssages\" : [ {\"b\":\"]\\\\\"} ,\n[1],\"two\\\"\", 3 ] , \"version\":1 ,\"fork\":null}\n";

    #[test]
    fn elements_and_fields_are_found_by_their_bytes() {
        assert_eq!(
            pieces(ODD),
            ["{\"b\":\"]\\\\\"}", "[1]", "\"two\\\"\"", "3", "1", "null"]
        );
    }

    #[test]
    fn the_chunks_in_which_bytes_come_make_no_difference() {
        let whole = scan(ODD, ODD.len());
        assert_eq!(whole.as_ref().unwrap().flaw, None);
        for step in 1..ODD.len() {
            assert_eq!(scan(ODD, step), whole, "{step}");
        }
    }

    #[test]
    fn the_first_special_byte_is_found_at_any_position() {
        let specials = [b'"', b'\\', b'\n'];
        // Bytes that differ from a special one by one bit are the easiest to mistake.
        let near = [b'#', b'!', b']', 0x0b, 0, 0x80, 0xff, 0xa2, b'x'];
        for len in 0..100 {
            for (n, filler) in near.into_iter().enumerate() {
                let mut bytes = vec![filler; len];
                assert_eq!(plain_len(&bytes), None);
                for at in 0..len {
                    bytes[at] = specials[(at + n) % 3];
                    assert_eq!(plain_len(&bytes), Some(at), "{filler} {len}");
                    // Bytes behind it, special or not, make no difference.
                    bytes[at + 1..].fill(specials[n % 3]);
                    assert_eq!(plain_len(&bytes), Some(at), "{filler} {len}");
                    bytes.fill(filler);
                }
            }
        }
    }

    #[test]
    fn only_one_object_with_messages_is_the_object_form() {
        let object = |text| scan(text, 3).is_some();
        for text in [
            r#"{"messages":[]}"#,
            " {\n\"messages\":[],\"version\":1\n}\n\n",
            "\u{feff}{\"messages\":[]}",
            r#"{"messages":null}"#,
        ] {
            assert!(object(text), "{text}");
        }
        for text in [
            "",
            "[]",
            r#"{"type":"message","message":{"messages":[]}}"#,
            "{\"messages\":[]}\n{\"type\":\"message\"}\n",
            r#"{"messages":[]}x"#,
            "{\"message\":\"torn\n{\"messages\":[]}",
            r#"{"a":[{"messages":[]}]}"#,
            r#"{"messages"}"#,
        ] {
            assert!(!object(text), "{text}");
        }
    }

    #[test]
    fn an_object_that_breaks_off_keeps_its_beginning() {
        let object = scan(r#"{"messages":[{"a":1},{"b":"#, 4).unwrap();
        assert_eq!(object.elements.len(), 1);
        let flaw = V1Flaw {
            byte: 21,
            line: 1,
            reason: Reason::Unfinished,
        };
        assert_eq!(object.flaw, Some(flaw));
    }
}
