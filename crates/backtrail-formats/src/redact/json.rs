//! Secrets in the strings of JSON, found in their decoded text.

use std::borrow::Cow;
use std::io::{self, Write};

use backtrail::Text;

use super::names::Named;
use super::rules::RULES;
use super::{Redactor, named};

/// Redacts the strings of a JSON text; `None` if nothing is removed. `name` is the name of the
/// value.
pub(super) fn redact_strings(redactor: &mut Redactor, name: &str, json: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut writer = JsonRedactor::new(&mut out, redactor);
    writer.name = Some(name.to_owned());
    writer.write_all(json.as_bytes()).ok()?;
    let changed = writer.finish().ok()?;
    changed.then(|| String::from_utf8(out).ok()).flatten()
}

/// What the places of findings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    /// Those that the redactor was given.
    Given,
    Lines,
    /// The elements of one list in the outermost object, from 1; 0 elsewhere.
    Elements(&'static str),
}

/// Copies JSON, one value or many, and redacts its strings with regard to the names of fields.
/// Anything that is not JSON is redacted as text. Only one string at a time is in memory.
#[derive(Debug)]
pub struct JsonRedactor<'r, W> {
    out: W,
    redactor: &'r mut Redactor,
    places: Places,
    place: u64,
    depth: u32,
    /// The string that is being read, with its quotes.
    string: Vec<u8>,
    /// The text between strings, as far as it was read.
    between: Vec<u8>,
    /// The containers around, as far as they are remembered: whether each is a list.
    lists: Vec<bool>,
    /// The last string, if it may be the name of the next value.
    last: Option<String>,
    /// The name of the next value.
    name: Option<String>,
    /// The strings before the next one in the same list, and the name of the list.
    list: Vec<String>,
    list_name: Option<String>,
    /// The value of a field `name` of the same object.
    pair: Option<String>,
    /// Whether a private key began in this list, one line in each string.
    in_key: bool,
    in_string: bool,
    escaped: bool,
    changed: bool,
}

impl<'r, W: Write> JsonRedactor<'r, W> {
    /// Creates one whose findings have the place that the redactor was given.
    pub fn new(out: W, redactor: &'r mut Redactor) -> Self {
        Self {
            out,
            redactor,
            places: Places::Given,
            place: 0,
            depth: 0,
            string: Vec::new(),
            between: Vec::new(),
            lists: Vec::new(),
            last: None,
            name: None,
            list: Vec::new(),
            list_name: None,
            pair: None,
            in_key: false,
            in_string: false,
            escaped: false,
            changed: false,
        }
    }

    /// Creates one for JSON lines: the places are lines, from 1.
    pub fn lines(out: W, redactor: &'r mut Redactor) -> Self {
        redactor.at(1);
        Self {
            places: Places::Lines,
            place: 1,
            ..Self::new(out, redactor)
        }
    }

    /// Creates one for an object with a list named `list`: the places are its elements, from 1,
    /// and 0 elsewhere.
    pub fn elements(out: W, redactor: &'r mut Redactor, list: &'static str) -> Self {
        redactor.at(0);
        Self {
            places: Places::Elements(list),
            ..Self::new(out, redactor)
        }
    }

    /// Writes the rest, and returns whether anything was removed.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be written.
    pub fn finish(mut self) -> io::Result<bool> {
        if self.in_string {
            self.end_string(false)?;
        }
        self.end_between()?;
        self.out.flush()?;
        Ok(self.changed)
    }

    fn next_place(&mut self) {
        self.place += 1;
        self.redactor.at(self.place);
    }

    /// Reads the text outside of strings.
    fn outside(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                self.enter(byte == b'[');
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.lists.pop();
                self.list.clear();
                self.list_name = None;
                self.in_key = false;
                self.pair = None;
            }
            _ => {}
        }
        let Places::Elements(list) = self.places else {
            return;
        };
        match (byte, self.depth) {
            (b'[', 2) if self.last.as_deref() == Some(list) => self.next_place(),
            (b']', 1) => {
                self.place = 0;
                self.redactor.at(0);
            }
            (b',', 2) if self.place > 0 => self.next_place(),
            _ => {}
        }
    }

    fn enter(&mut self, is_list: bool) {
        /// Deeper containers are not told apart.
        const DEEPEST: usize = 1024;
        if self.lists.len() < DEEPEST {
            self.lists.push(is_list);
        }
        self.list.clear();
        self.list_name = None;
        self.in_key = false;
        self.pair = None;
    }

    /// Ends a line: the next one starts fresh.
    fn end_line(&mut self) -> io::Result<()> {
        self.end_between()?;
        self.out.write_all(b"\n")?;
        if self.places == Places::Lines {
            self.depth = 0;
            self.lists.clear();
            self.list.clear();
            self.in_key = false;
            self.pair = None;
            self.next_place();
        }
        Ok(())
    }

    /// Writes the text between two strings. In JSON it is punctuation and numbers; in a damaged
    /// line it may be anything.
    fn end_between(&mut self) -> io::Result<()> {
        let between = std::mem::take(&mut self.between);
        let last = self.last.take();
        self.name = match between.trim_ascii() {
            b":" => last.clone(),
            b"," if self.lists.last() == Some(&true) => self.list_name.clone(),
            text if opens_list(text) => {
                self.list_name = last.clone();
                last.clone()
            }
            b"" => self.name.take(),
            text => assigned_name(text),
        };
        let text = String::from_utf8_lossy(&between);
        let number = last.and_then(|last| self.redacted_number(&last, &text));
        if let Some(redacted) = number {
            self.changed = true;
            self.out.write_all(redacted.as_bytes())?;
            self.between = between;
            self.between.clear();
            return Ok(());
        }
        match self.redactor.redact(&text) {
            Cow::Owned(redacted) => {
                self.changed = true;
                self.out.write_all(redacted.as_bytes())?;
            }
            Cow::Borrowed(_) => self.out.write_all(&between)?,
        }
        self.between = between;
        self.between.clear();
        Ok(())
    }

    /// Redacts a number whose name says that it is secret: it becomes a string.
    fn redacted_number(&mut self, name: &str, between: &str) -> Option<String> {
        let value = between.trim_start().strip_prefix(':')?.trim_start();
        let length = value.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = value.split_at(length);
        let is_number = length >= 4 && !rest.starts_with(['.', 'e', 'E']);
        let is_secret = is_number && is_secret_number(name, number);
        let before = &between[..between.len() - value.len()];
        is_secret.then(|| {
            let removed = self.redactor.redact_all(number, "password");
            format!("{before}\"{removed}\"{rest}")
        })
    }

    fn end_string(&mut self, closed: bool) -> io::Result<()> {
        self.in_string = false;
        self.escaped = false;
        let string = std::mem::take(&mut self.string);
        match self.redacted(&string, closed) {
            Some(redacted) => {
                self.changed = true;
                self.out.write_all(&redacted)?;
            }
            None => self.out.write_all(&string)?,
        }
        // Most strings are short, so the memory of a long one is freed.
        if string.capacity() <= 1 << 20 {
            self.string = string;
            self.string.clear();
        }
        Ok(())
    }

    fn redacted(&mut self, string: &[u8], closed: bool) -> Option<Vec<u8>> {
        /// The longest name of a field.
        const LONGEST_NAME: usize = 96;
        /// The longest word of a command line that says something about the next, and how many.
        const LONGEST_WORD: usize = 64;
        const WORDS: usize = 6;
        let name = self.name.take();
        let literal = String::from_utf8_lossy(string);
        let decoded = match closed {
            true => serde_json::from_str::<Text>(&literal).ok(),
            false => None,
        };
        let Some(text) = decoded else {
            // Not JSON: redact it as text.
            return match self.redactor.redact(&literal) {
                Cow::Owned(redacted) => Some(redacted.into_bytes()),
                Cow::Borrowed(_) => None,
            };
        };
        let in_list = self.lists.last() == Some(&true);
        let pair = self.pair.as_deref().filter(|_| is_value(name.as_deref()));
        let is_name = |before: &&String| !before.starts_with('-') && named(before, &text).is_some();
        let before = self.list.last().filter(is_name);
        let redacted = match (&name, pair) {
            (_, Some(pair)) => self.redactor.redact_named(pair, &text),
            (Some(name), None)
                if !name.is_empty() && (!in_list || named(name, &text).is_some()) =>
            {
                self.redactor.redact_named(name, &text)
            }
            _ if !in_list || self.list.is_empty() => self.redactor.redact(&text),
            _ => match before {
                Some(before) => self.redactor.redact_named(before, &text),
                None => self.redactor.redact_argument(&self.list.join(" "), &text),
            },
        };
        let redacted = match in_list && self.continues_key(&text) {
            true => self.redactor.redact_all(&text, "private key"),
            false => redacted,
        };
        let is_short = text.len() <= LONGEST_NAME;
        if in_list {
            self.list.push(text.chars().take(LONGEST_WORD).collect());
            let extra = self.list.len().saturating_sub(WORDS);
            self.list.drain(..extra);
        }
        if names_another(name.as_deref()) && is_short {
            self.pair = Some(text.to_string());
        }
        self.last = is_short.then(|| text.to_string());
        match redacted {
            Cow::Owned(redacted) => serde_json::to_vec(&redacted).ok(),
            Cow::Borrowed(_) => None,
        }
    }

    /// Returns whether a string of a list is one line of a private key that began before it.
    fn continues_key(&mut self, text: &str) -> bool {
        let is_marker = text.contains("PRIVATE KEY");
        let was_in_key = self.in_key;
        match is_marker {
            true => self.in_key = text.contains("BEGIN ") && !text.contains("END "),
            false => {
                let is_part = |byte: u8| {
                    byte.is_ascii_alphanumeric()
                        || matches!(byte, b'+' | b'/' | b'=' | b':' | b',' | b'-' | b' ')
                };
                self.in_key &= text.trim().bytes().all(is_part);
            }
        }
        was_in_key && (self.in_key || is_marker)
    }

    /// Reads the text between strings; returns the rest.
    fn read_between<'b>(&mut self, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        /// The most of it that is held; real JSON has less.
        const MOST: usize = 1 << 20;
        let upto = memchr::memchr2(b'"', b'\n', bytes).unwrap_or(bytes.len());
        let (between, rest) = bytes.split_at(upto);
        between.iter().for_each(|byte| self.outside(*byte));
        self.between.extend_from_slice(between);
        if self.between.len() > MOST {
            self.end_between()?;
        }
        match rest.split_first() {
            Some((b'"', rest)) => {
                self.end_between()?;
                self.in_string = true;
                self.string.push(b'"');
                Ok(rest)
            }
            Some((_, rest)) => {
                self.end_line()?;
                Ok(rest)
            }
            None => Ok(rest),
        }
    }

    /// Reads a string; returns the rest.
    fn read_string<'b>(&mut self, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        if std::mem::take(&mut self.escaped) && bytes[0] != b'\n' {
            self.string.push(bytes[0]);
            return Ok(&bytes[1..]);
        }
        let Some(upto) = memchr::memchr3(b'"', b'\\', b'\n', bytes) else {
            self.string.extend_from_slice(bytes);
            return Ok(&[]);
        };
        self.string.extend_from_slice(&bytes[..upto]);
        match bytes[upto] {
            b'"' => {
                self.string.push(b'"');
                self.end_string(true)?;
            }
            b'\\' => {
                self.string.push(b'\\');
                self.escaped = true;
            }
            // A JSON string has no line break, so this is not one.
            _ => {
                self.end_string(false)?;
                self.end_line()?;
            }
        }
        Ok(&bytes[upto + 1..])
    }
}

/// Returns whether a text is what is between a name and the first string of its list.
fn opens_list(between: &[u8]) -> bool {
    let list = between.strip_prefix(b":").map(<[u8]>::trim_ascii);
    list == Some(b"[")
}

/// Returns whether a number is a password or the id of a client, by its name.
fn is_secret_number(name: &str, number: &str) -> bool {
    let (named, services) = RULES.meaning(name);
    named == Some(Named::Password) || services.iter().any(|pattern| pattern.is_all_of(number))
}

/// Returns the name before a string in a line that is not JSON: `password = "…"`.
fn assigned_name(between: &[u8]) -> Option<String> {
    let before = between.strip_suffix(b"=").or(between.strip_suffix(b":"))?;
    let before = std::str::from_utf8(before).ok()?.trim_end();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = before.len() - before.trim_end_matches(is_name).len();
    let name = &before[before.len() - name..];
    (1..=64).contains(&name.len()).then(|| name.to_owned())
}

/// Returns whether a field has the name of another value: `{"name": "token", "value": "…"}`.
fn names_another(field: Option<&str>) -> bool {
    const FIELDS: [&str; 6] = ["name", "key", "header", "field", "k", "variable"];
    let is_field = |field: &str| FIELDS.iter().any(|it| it.eq_ignore_ascii_case(field));
    field.is_some_and(is_field)
}

/// Returns whether a field has the value of such a name.
fn is_value(field: Option<&str>) -> bool {
    const FIELDS: [&str; 7] = [
        "value",
        "val",
        "v",
        "content",
        "stringvalue",
        "string_value",
        "data",
    ];
    let is_field = |field: &str| FIELDS.iter().any(|it| it.eq_ignore_ascii_case(field));
    field.is_some_and(is_field)
}

impl<W: Write> Write for JsonRedactor<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = match self.in_string {
                true => self.read_string(rest)?,
                false => self.read_between(rest)?,
            };
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
