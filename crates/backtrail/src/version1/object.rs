//! Scans a file that is one object with `messages`, without parsing all of it.
//!
//! The file is read in chunks; the result is the places of the elements of `messages` and of
//! the other fields. At the top level the syntax is checked; inside values only strings
//! and brackets are followed, so a flawed element costs only itself. Depth is a counter,
//! so nesting costs nothing.

use std::ops::Range;

use super::record::{V1Meta, first_prompt_ms, prompt_lines, read_compaction};
use crate::error::Reason;
use crate::json::Parts;
use crate::message::CompactionSummary;
use crate::trail::record::MAX_READ;

/// The places of the parts of a file that is one object with `messages`.
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

/// A flaw of an object, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct V1Flaw {
    /// The first byte that cannot be read.
    pub byte: u64,
    /// Its line.
    pub line: u64,
    /// The reason.
    pub reason: Reason,
}

/// The details of a session in an object.
#[derive(Debug, Default)]
pub struct V1About {
    /// The fields that a `session_meta` has too; `None` if there are none.
    pub meta: Option<V1Meta>,
    /// The last compaction.
    pub compaction: Option<CompactionSummary>,
    /// When the first prompt was entered.
    pub first_prompt_ms: Option<i64>,
    /// The prompts, as lines.
    pub(super) prompts: Vec<String>,
    /// The fields that cannot be read.
    pub(super) damage: Vec<(Range<u64>, Reason)>,
}

/// The size of a chunk.
pub(super) const CHUNK: usize = 256 << 10;
/// The longest value that can be an id, a name or a time.
const LONGEST_NAME: usize = 1 << 20;

impl V1Object {
    /// Scans a file; `None` if it is not one object with `messages`.
    ///
    /// `read` fills a buffer from an offset, and returns less only at the end.
    ///
    /// # Errors
    ///
    /// Returns the first error of `read`.
    pub fn scan<E>(
        read: impl FnMut(&mut [u8], u64) -> Result<usize, E>,
    ) -> Result<Option<Self>, E> {
        Scanner::new(read, CHUNK).finish()
    }

    /// Reads the details of the session. `load` returns a part of the file.
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

    /// Returns whether there are messages despite the flaw.
    pub(super) fn has_messages(&self) -> bool {
        let reason = self.flaw.as_ref().map(|flaw| &flaw.reason);
        !matches!(reason, Some(Reason::WrongField(..)))
    }
}

impl V1About {
    /// Reads one field; those of the meta are collected unparsed.
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
            "prompt_history" => {
                self.first_prompt_ms = first_prompt_ms(text);
                self.prompts = prompt_lines(text);
            }
            _ if text.len() <= LONGEST_NAME => meta.push(format!("\"{name}\":{text}")),
            _ => return Err(Reason::OutOfRange(name)),
        }
        Ok(())
    }
}

/// The fields about the session as a whole.
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
/// The longest key that is kept: known keys are much shorter, even escaped.
const LONGEST_KEY: usize = 128;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The reason why a scan ends before the file does.
enum Stop<E> {
    /// The file could not be read.
    Read(E),
    /// The rest cannot be parsed.
    Flaw(Reason),
}

fn syntax<E>(what: &str) -> Stop<E> {
    Stop::Flaw(Reason::Syntax(what.to_owned()))
}

/// Scans a file in one pass, a chunk at a time.
struct Scanner<R> {
    read: R,
    chunk: Vec<u8>,
    /// The bytes of the chunk that are not scanned yet.
    ahead: Range<usize>,
    /// The offset and the line of the next byte.
    at: u64,
    line: u64,
    /// The offset and the line at which the current value began.
    inside: Option<(u64, u64)>,
    /// Whether there is a field `messages`, and whether it is an array.
    has_messages: bool,
    has_array: bool,
    object: V1Object,
}

impl<E, R: FnMut(&mut [u8], u64) -> Result<usize, E>> Scanner<R> {
    fn new(read: R, chunk: usize) -> Self {
        Self {
            read,
            chunk: vec![0; chunk],
            ahead: 0..0,
            at: 0,
            line: 1,
            inside: None,
            has_messages: false,
            has_array: false,
            object: V1Object::default(),
        }
    }

    /// An object that breaks off inside or after its `messages` still counts as one: read as
    /// lines, it would have no records.
    fn finish(mut self) -> Result<Option<V1Object>, E> {
        match self.file() {
            Ok(true) if self.has_array => {}
            Ok(true) => self.add_flaw(Reason::WrongField(MESSAGES, "an array")),
            Err(Stop::Read(error)) => return Err(error),
            Err(Stop::Flaw(reason)) if self.has_array => {
                self.object.flaw = None;
                self.add_flaw(reason);
            }
            Ok(false) | Err(Stop::Flaw(_)) => return Ok(None),
        }
        self.object.elements.shrink_to_fit();
        Ok(Some(self.object))
    }

    /// Returns whether the file is one object with `messages` and nothing else.
    fn file(&mut self) -> Result<bool, Stop<E>> {
        if self.fill()? && self.chunk[self.ahead.clone()].starts_with(BOM) {
            self.pass(BOM.len());
        }
        self.expect(b'{')?;
        if self.token()? == b'}' {
            return Ok(false);
        }
        loop {
            self.field()?;
            if !self.is_continued(b'}')? {
                break;
            }
        }
        while self.has_messages && self.fill()? {
            match self.chunk[self.ahead.start] {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                // NULs that a power cut leaves after the object are damage, not lines.
                0 => self.add_flaw(Reason::NulBlock),
                _ => return Ok(false),
            }
            self.pass(1);
        }
        Ok(self.has_messages)
    }

    fn field(&mut self) -> Result<(), Stop<E>> {
        let mut key = Vec::new();
        self.expect(b'"')?;
        self.string(|bytes| {
            let room = (LONGEST_KEY + 1).saturating_sub(key.len());
            key.extend_from_slice(&bytes[..bytes.len().min(room)]);
        })?;
        self.expect(b':')?;
        let is_array = self.token()? == b'[';
        if is_key(&key, MESSAGES) {
            if self.has_messages {
                self.add_flaw(Reason::RepeatedField(MESSAGES.to_owned()));
            } else {
                self.has_messages = true;
                self.has_array = is_array;
                if is_array {
                    return self.elements();
                }
            }
        }
        let place = self.value()?.place;
        if let Some(name) = FIELDS.into_iter().find(|name| is_key(&key, name)) {
            // If a name occurs twice, the last one counts.
            self.object.fields.retain(|(known, _)| *known != name);
            self.object.fields.push((name, place));
        }
        Ok(())
    }

    fn elements(&mut self) -> Result<(), Stop<E>> {
        self.pass(1);
        if self.token()? == b']' {
            self.pass(1);
            return Ok(());
        }
        loop {
            let element = self.value()?;
            self.object.elements.push(element);
            if !self.is_continued(b']')? {
                return Ok(());
            }
        }
    }

    fn value(&mut self) -> Result<V1Element, Stop<E>> {
        let byte = self.token()?;
        let (start, line) = (self.at, self.line);
        self.inside = Some((start, line));
        match byte {
            b'"' => {
                self.pass(1);
                self.string(|_| {})?;
            }
            b'{' | b'[' => self.nested()?,
            b',' | b':' | b'}' | b']' => return Err(syntax("a value is missing")),
            _ => self.scalar()?,
        }
        self.inside = None;
        let place = start..self.at;
        Ok(V1Element { place, line })
    }

    /// Skips the rest of a string; `each` gets its parts.
    fn string(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), Stop<E>> {
        loop {
            let rest = self.rest()?;
            // A string cannot contain a line break: it reveals a torn line early.
            let special = memchr::memchr3(b'"', b'\\', b'\n', rest);
            let plain = special.unwrap_or(rest.len());
            each(&rest[..plain]);
            match special.map(|at| rest[at]) {
                None => self.pass(plain),
                Some(b'"') => {
                    self.pass(plain + 1);
                    return Ok(());
                }
                Some(b'\\') => {
                    self.pass(plain + 1);
                    each(&[b'\\', self.rest()?[0]]);
                    self.pass(1);
                }
                Some(_) => return Err(syntax("a line break in a string")),
            }
        }
    }

    fn nested(&mut self) -> Result<(), Stop<E>> {
        let mut depth = 0_u64;
        loop {
            let rest = self.rest()?;
            let is_token = |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']' | b'\n');
            let Some(at) = rest.iter().position(is_token) else {
                let all = rest.len();
                self.pass(all);
                continue;
            };
            let byte = rest[at];
            self.pass(at + 1);
            match byte {
                b'"' => self.string(|_| {})?,
                b'\n' => self.line += 1,
                b'{' | b'[' => depth += 1,
                _ if depth == 1 => return Ok(()),
                _ => depth -= 1,
            }
        }
    }

    fn scalar(&mut self) -> Result<(), Stop<E>> {
        loop {
            let rest = self.rest()?;
            let ends =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n');
            let end = rest.iter().position(ends);
            let passed = end.unwrap_or(rest.len());
            self.pass(passed);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Skips a comma or the end of a list; returns whether it was a comma.
    fn is_continued(&mut self, end: u8) -> Result<bool, Stop<E>> {
        match self.token()? {
            byte if byte == b',' || byte == end => {
                self.pass(1);
                Ok(byte == b',')
            }
            _ => Err(syntax("unexpected character")),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Stop<E>> {
        if self.token()? != byte {
            return Err(syntax("unexpected character"));
        }
        self.pass(1);
        Ok(())
    }

    /// Skips white space and returns the byte after it.
    fn token(&mut self) -> Result<u8, Stop<E>> {
        loop {
            let byte = self.rest()?[0];
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Ok(byte);
            }
            self.line += u64::from(byte == b'\n');
            self.pass(1);
        }
    }

    /// Returns unscanned bytes of the chunk, at least one.
    fn rest(&mut self) -> Result<&[u8], Stop<E>> {
        if !self.fill()? {
            return Err(Stop::Flaw(Reason::Unfinished));
        }
        Ok(&self.chunk[self.ahead.clone()])
    }

    /// Reads the next chunk if this one is used up; returns whether there is more.
    fn fill(&mut self) -> Result<bool, Stop<E>> {
        if self.ahead.is_empty() {
            let n = (self.read)(&mut self.chunk, self.at).map_err(Stop::Read)?;
            self.ahead = 0..n;
        }
        Ok(!self.ahead.is_empty())
    }

    fn pass(&mut self, bytes: usize) {
        self.ahead.start += bytes;
        self.at += bytes as u64;
    }

    /// Records the first flaw, at the beginning of the current value.
    fn add_flaw(&mut self, reason: Reason) {
        let (byte, line) = self.inside.unwrap_or((self.at, self.line));
        self.object
            .flaw
            .get_or_insert(V1Flaw { byte, line, reason });
    }
}

fn is_key(key: &[u8], name: &str) -> bool {
    if !key.contains(&b'\\') {
        return key == name.as_bytes();
    }
    let literal = [b"\"", key, b"\""].concat();
    serde_json::from_slice::<String>(&literal).is_ok_and(|key| key == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, step: usize) -> Option<V1Object> {
        let read = |buffer: &mut [u8], at: u64| {
            let rest = text.as_bytes().get(at as usize..).unwrap_or_default();
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            Ok::<_, std::convert::Infallible>(n)
        };
        Scanner::new(read, step).finish().unwrap()
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
