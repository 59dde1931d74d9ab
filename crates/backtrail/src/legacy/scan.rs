//! Finds the messages of a single-object file without parsing it whole.
//!
//! Bytes go in a chunk at a time; out come the places of the elements of
//! `messages` and of the other fields. At the top the syntax is checked, inside
//! of values only strings and brackets are followed: whether an element is a
//! message shows when it is looked at. Depth is a counter, so nesting costs
//! nothing.

use std::ops::Range;

use crate::error::Reason;

/// What a scan came across.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// An element of `messages`, and the line that it begins in.
    Element { place: Range<u64>, line: u64 },
    /// Another field whose name is known.
    Field {
        name: &'static str,
        place: Range<u64>,
    },
}

/// What a file turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// One object with `messages`; the flaw is what is wrong with it.
    Object(Option<Flaw>),
    /// Anything else.
    Lines,
}

/// What is wrong with an object, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) byte: u64,
    pub(super) line: u64,
    pub(super) reason: Reason,
}

impl Flaw {
    /// Returns whether there are messages all the same.
    pub(super) fn leaves_messages(&self) -> bool {
        !matches!(self.reason, Reason::WrongField(..))
    }
}

/// The fields that say something about the session as a whole.
const FIELDS: [&str; 12] = [
    "version",
    "session_id",
    "created_at_ms",
    "updated_at_ms",
    "fork",
    "model",
    "workspace_root",
    "title",
    "agent",
    "tags",
    "compaction",
    "prompt_history",
];
const MESSAGES: &str = "messages";
/// The longest key that is kept: no known one comes near, even escaped.
const LONGEST_KEY: usize = 128;
const BOM: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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
pub(super) struct Scanner {
    state: State,
    /// Where in the file the next byte lies.
    at: u64,
    line: u64,
    in_string: bool,
    escaped: bool,
    depth: u64,
    /// Where the value that is being passed began.
    start: u64,
    start_line: u64,
    key: Vec<u8>,
    in_messages: bool,
    /// Whether there is a field `messages`, and whether it is an array.
    has_messages: bool,
    has_array: bool,
    flaw: Option<Flaw>,
    trailing: bool,
    events: Vec<Event>,
}

impl Scanner {
    pub(super) fn new() -> Self {
        Self {
            state: State::Begin,
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
            flaw: None,
            trailing: false,
            events: Vec::new(),
        }
    }

    /// Takes in the next bytes of the file.
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        if self.at == 0 && rest.starts_with(BOM) {
            self.at = BOM.len() as u64;
            rest = &rest[BOM.len()..];
        }
        while !rest.is_empty() && self.state != State::Failed {
            let passed = self.step(rest);
            self.at += passed as u64;
            rest = &rest[passed..];
        }
    }

    /// Hands over what was come across since the last call.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Returns whether the file is surely not one object with `messages`.
    pub(super) fn is_lines(&self) -> bool {
        match self.state {
            State::Failed => !self.has_array,
            State::Closed => self.trailing || !self.has_messages,
            _ => false,
        }
    }

    /// Says what the file is, now that there are no more bytes.
    ///
    /// An object that breaks off inside or behind its `messages` is still one:
    /// as lines there would be nothing to read in it.
    pub(super) fn finish(mut self) -> Verdict {
        if self.is_lines() || !self.has_messages {
            return Verdict::Lines;
        }
        if !matches!(self.state, State::Closed | State::Failed) {
            if !self.has_array {
                return Verdict::Lines;
            }
            self.fail(Reason::Unfinished);
        }
        if !self.has_array {
            self.note_flaw(Reason::WrongField(MESSAGES, "an array"));
        }
        Verdict::Object(self.flaw)
    }

    /// Passes over a few bytes and returns how many.
    fn step(&mut self, rest: &[u8]) -> usize {
        if self.in_string {
            return self.pass_string(rest);
        }
        match self.state {
            State::InValue => return self.pass_nested(rest),
            State::Scalar => return self.pass_scalar(rest),
            _ => {}
        }
        let byte = rest[0];
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            self.line += u64::from(byte == b'\n');
            return 1;
        }
        self.at_token(byte)
    }

    /// Takes the token that begins with `byte`; a value is begun, not passed.
    fn at_token(&mut self, byte: u8) -> usize {
        match (self.state, byte) {
            (State::Begin, b'{') => self.state = State::Key { first: true },
            (State::Key { .. }, b'"') => {
                self.key.clear();
                self.state = State::InKey;
                self.in_string = true;
            }
            (State::Key { first: true }, b'}') | (State::AfterValue, b'}') => {
                self.state = State::Closed;
            }
            (State::Colon, b':') => self.state = State::Value,
            (State::Value, b'[') if self.is_key(MESSAGES) && !self.has_messages => {
                self.has_messages = true;
                self.has_array = true;
                self.in_messages = true;
                self.state = State::Element { first: true };
            }
            (State::Value, byte) => {
                self.note_messages();
                return self.begin_value(byte);
            }
            (State::AfterValue, b',') => self.state = State::Key { first: false },
            (State::Element { first: true } | State::AfterElement, b']') => {
                self.in_messages = false;
                self.state = State::AfterValue;
            }
            (State::Element { .. }, byte) => return self.begin_value(byte),
            (State::AfterElement, b',') => self.state = State::Element { first: false },
            // What a power cut leaves behind the object is damage, not lines.
            (State::Closed, 0) => self.note_flaw(Reason::NulBlock),
            (State::Closed, _) => self.trailing = true,
            _ => self.fail(Reason::Syntax("unexpected character".to_owned())),
        }
        1
    }

    /// Notes a field `messages` that is no array, or that stands there again.
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
        self.state = State::InValue;
        match byte {
            b'{' | b'[' => self.depth = 1,
            b'"' => self.in_string = true,
            b',' | b':' | b'}' | b']' => {
                self.fail(Reason::Syntax("a value is missing".to_owned()));
            }
            _ => {
                self.state = State::Scalar;
                return 0;
            }
        }
        1
    }

    fn pass_string(&mut self, rest: &[u8]) -> usize {
        let mut n = usize::from(self.escaped);
        self.escaped = false;
        // A line break cannot stand in a string: it tells a torn line early.
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
        if self.state == State::InKey {
            self.state = State::Colon;
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
            self.events.push(Event::Element { place, line });
            self.state = State::AfterElement;
            return;
        }
        let known = FIELDS.into_iter().find(|name| self.is_key(name));
        if let Some(name) = known {
            self.events.push(Event::Field { name, place });
        }
        self.state = State::AfterValue;
    }

    fn keep_key(&mut self, bytes: &[u8]) {
        if self.state == State::InKey && self.key.len() <= LONGEST_KEY {
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

    /// Gives up: what was found so far stands, the rest cannot be told apart.
    fn fail(&mut self, reason: Reason) {
        let inside = self.in_string || matches!(self.state, State::InValue | State::Scalar);
        if !inside {
            self.start = self.at;
            self.start_line = self.line;
        }
        self.state = State::Failed;
        self.flaw = Some(Flaw {
            byte: self.start,
            line: self.start_line,
            reason,
        });
    }

    fn note_flaw(&mut self, reason: Reason) {
        self.flaw.get_or_insert(Flaw {
            byte: self.at,
            line: self.line,
            reason,
        });
    }
}

/// Returns how many bytes of a string stand before its end, an escape or a line
/// break.
fn plain_len(bytes: &[u8]) -> Option<usize> {
    /// Escapes come in crowds: up to here, looking is faster than searching.
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

    fn scan(text: &str, step: usize) -> (Vec<Event>, Verdict) {
        let mut scanner = Scanner::new();
        for chunk in text.as_bytes().chunks(step) {
            scanner.feed(chunk);
        }
        (scanner.take_events(), scanner.finish())
    }

    fn pieces(text: &str) -> Vec<&str> {
        let (events, _) = scan(text, text.len().max(1));
        let cut = |place: Range<u64>| &text[place.start as usize..place.end as usize];
        events
            .into_iter()
            .map(|event| match event {
                Event::Element { place, .. } | Event::Field { place, .. } => cut(place),
            })
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
        assert_eq!(whole.1, Verdict::Object(None));
        for step in 1..ODD.len() {
            assert_eq!(scan(ODD, step), whole, "{step}");
        }
    }

    #[test]
    fn the_first_special_byte_is_found_wherever_it_stands() {
        let specials = [b'"', b'\\', b'\n'];
        // What differs from a special byte by one bit is closest to a mistake.
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
        let object = |text| matches!(scan(text, 3).1, Verdict::Object(_));
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
    fn an_object_that_breaks_off_keeps_what_stands_before() {
        let (events, verdict) = scan(r#"{"messages":[{"a":1},{"b":"#, 4);
        assert_eq!(events.len(), 1);
        let flaw = Flaw {
            byte: 21,
            line: 1,
            reason: Reason::Unfinished,
        };
        assert_eq!(verdict, Verdict::Object(Some(flaw)));
    }
}
