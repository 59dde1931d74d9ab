//! Values with a name: `NAME=value`, `name: value`, `<name>value</name>`, `--name value`,
//! `"name", "value"`, and a name and a value as two fields.

use std::ops::Range;

use super::Span;
use super::judge::{Style, is_capitals, judge};
use super::names::{self, Named, Word};
use super::pattern::Pattern;
use super::values::{entropy, is_chosen, is_placeholder, is_word, is_words};

/// Longer values are not secrets that someone wrote down.
const LONGEST: usize = 8192;

/// A value in a text.
#[derive(Debug)]
struct Value {
    range: Range<usize>,
    style: Style,
}

/// Finds values in one text.
#[derive(Debug)]
pub(super) struct Assignments<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// The last value without quotes that was measured: each is measured once.
    measured: Range<usize>,
}

impl<'t> Assignments<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            measured: 0..0,
        }
    }

    /// Finds the secret whose name ends with a word that was found.
    pub(super) fn named(&mut self, word: &Word, at: usize) -> Option<Span> {
        let end = at + word.word.len();
        let end = end + names::suffix_len(&self.bytes[end..]);
        if self.bytes.get(end).is_some_and(is_name) {
            return None;
        }
        let whole = self.text.get(..at + word.word.len())?;
        if names::WORDS
            .iter()
            .any(|longer| longer.is_longer(word, whole))
        {
            return None;
        }
        let name = self.name_start(at)..end;
        let named = names::named(self.text.get(name.clone())?, word)?;
        let value = self.value_after(&name, named)?;
        self.judge(&name, named, &value)
    }

    /// Finds the secret of a service whose name was found.
    pub(super) fn service(&mut self, pattern: &Pattern, at: usize, end: usize) -> Option<Span> {
        /// How much of a name may follow the service.
        const TAIL: usize = 24;
        let is_tail = |byte: &&u8| is_name(byte) || matches!(byte, b' ' | b'\t');
        let rest = self.bytes.get(end..)?.iter();
        let mut name_end = end + rest.take(TAIL).take_while(is_tail).count();
        while name_end > end && matches!(self.bytes[name_end - 1], b' ' | b'\t') {
            name_end -= 1;
        }
        let name = self.name_start(at)..name_end;
        let value = self.value_after(&name, Named::Secret("api key"))?;
        let own = self.text.get(value.range.clone())?;
        let is_key = pattern.is_all_of(own) && !is_placeholder(own) && !is_words(own);
        (is_key && entropy(own) >= 2.5).then_some(Span {
            start: value.range.start,
            end: value.range.end,
            kind: "api key",
            exact: false,
        })
    }

    /// Returns where the name of a word starts.
    fn name_start(&self, at: usize) -> usize {
        /// The longest name.
        const LONGEST: usize = 64;
        let before = self.bytes[at.saturating_sub(LONGEST)..at].iter().rev();
        at - before.take_while(|byte| is_name(byte)).count()
    }

    /// Finds the value of a name.
    fn value_after(&mut self, name: &Range<usize>, named: Named) -> Option<Value> {
        let closers = |byte: &&u8| {
            matches!(
                byte,
                b'"' | b'\'' | b'`' | b'\\' | b']' | b')' | b'?' | b'!' | b'*' | b' ' | b'\t'
            )
        };
        let rest = self.bytes.get(name.end..)?.iter();
        let at = name.end + rest.take(8).take_while(closers).count();
        let found = match self.bytes.get(at)? {
            b':' | b'=' => self.after_sign(name, at, named),
            b',' => self.after_comma(at),
            b'>' => self.element(name, at),
            _ => self.after_blank(name, at, named),
        };
        found.or_else(|| self.pair(at)).or_else(|| self.tag(name))
    }

    /// Finds a value after `:`, `=`, `:=`, `=>` and the like.
    fn after_sign(&mut self, name: &Range<usize>, at: usize, named: Named) -> Option<Value> {
        let is_sign = |byte: &&u8| matches!(byte, b':' | b'=' | b'>' | b'?');
        let signs = self.bytes[at..].iter().take(4).take_while(is_sign).count();
        let sign = &self.bytes[at..at + signs];
        let mut start = self.skip_bracket(self.skip_blanks(at + signs));
        if sign == b"::" || self.text.get(at..at + 3) == Some("://") {
            return None;
        }
        let is_shell = sign == b"=" && at == name.end && start == at + 1;
        if let Some(typed) = self.after_type(start).filter(|_| sign == b":") {
            start = typed;
        }
        let has_capitals = is_capitals(&self.bytes[name.clone()]);
        let is_set = is_shell && (has_capitals || self.is_option(name) || self.is_parameter(name));
        let style = match is_set {
            true => Style::Setting,
            false => self.line_style(name),
        };
        let is_header = matches!(named, Named::Authorization | Named::Cookie);
        if let Some(next) = self.next_line(start) {
            if is_header {
                return Some(self.header(next));
            }
            let value = self.value_at(next, Style::Line)?;
            let is_alone = value.style == Style::Quoted || self.ends_line(value.range.end);
            return is_alone.then_some(value);
        }
        if is_header {
            return Some(self.header(start));
        }
        let value = self.value_at(start, style)?;
        let end = self.bytes.get(value.range.end);
        let ends_word = end
            .is_none_or(|byte| byte.is_ascii_whitespace() || *byte == b'<' || is_quote(Some(byte)));
        let style = match value.style {
            Style::Quoted if has_capitals && sign == b"=" => Style::Constant,
            Style::Line | Style::Bare if end == Some(&b'&') || (is_shell && ends_word) => {
                Style::Setting
            }
            Style::Line if !self.ends_line(value.range.end) => Style::Bare,
            Style::Bare if self.says_password(name) && self.ends_line(value.range.end) => {
                Style::Line
            }
            style => style,
        };
        Some(Value { style, ..value })
    }

    /// Returns whether a name is the word itself, as in prose: `the password: …`.
    fn says_password(&self, name: &Range<usize>) -> bool {
        let name = self.text.get(name.clone()).unwrap_or_default();
        let is_word = |word: &str| name.eq_ignore_ascii_case(word);
        is_word("password") || is_word("passwd") || is_word("passphrase")
    }

    /// Returns where the value is after the type of a variable: `password: &str = "…"`.
    fn after_type(&self, at: usize) -> Option<usize> {
        let is_type = |byte: &&u8| {
            byte.is_ascii_alphanumeric()
                || matches!(
                    byte,
                    b'&' | b'_' | b'<' | b'>' | b' ' | b'|' | b'[' | b']' | b'\''
                )
        };
        let rest = self.bytes.get(at..)?;
        let length = rest.iter().take(40).take_while(is_type).count();
        let is_assigned = length > 0
            && rest.get(length) == Some(&b'=')
            && rest.get(length - 1) == Some(&b' ')
            && rest.get(length + 1) == Some(&b' ');
        is_assigned.then(|| self.skip_blanks(at + length + 1))
    }

    /// Returns where the value starts if it is on the next line.
    fn next_line(&self, at: usize) -> Option<usize> {
        let rest = self.text.get(at..)?;
        let rest = rest.trim_start_matches(['|', '>', '-', '\\']);
        let rest = rest.strip_prefix('\r').unwrap_or(rest).strip_prefix('\n')?;
        let line = rest.trim_start_matches([' ', '\t']);
        let line = line.strip_prefix("- ").unwrap_or(line);
        (!line.is_empty() && !line.starts_with('\n')).then(|| self.text.len() - line.len())
    }

    /// Returns how a value without quotes is written, if it ends with its line.
    fn line_style(&self, name: &Range<usize>) -> Style {
        let before = &self.bytes[name.start.saturating_sub(64)..name.start];
        let line = match memchr::memrchr(b'\n', before) {
            Some(at) => &before[at + 1..],
            None if name.start <= 64 => before,
            None => return Style::Bare,
        };
        let is_indent = |byte: &u8| {
            byte.is_ascii_whitespace()
                || matches!(byte, b'"' | b'\'' | b'-' | b'+' | b'>' | b'*' | b'/' | b':')
        };
        let words = line.strip_prefix(b"export ").unwrap_or(line);
        match words.iter().all(is_indent) {
            true => Style::Line,
            false => Style::Bare,
        }
    }

    fn ends_line(&self, at: usize) -> bool {
        let rest = self.text.get(at..).unwrap_or_default();
        let rest = rest.trim_start_matches([' ', '\t', '\r']);
        rest.is_empty() || rest.starts_with('\n') || rest.starts_with(['#', '\\'])
    }

    /// Returns whether a name is an option of a command: `--password`.
    fn is_option(&self, name: &Range<usize>) -> bool {
        self.bytes[name.clone()].first() == Some(&b'-')
    }

    /// Returns whether a name is in a query or a path: `?password=`.
    fn is_parameter(&self, name: &Range<usize>) -> bool {
        let before = self.bytes[..name.start].last();
        matches!(before, Some(b'?' | b'&' | b';' | b'/'))
    }

    /// Finds a value in quotes after a comma: `"Authorization", "Bearer …"`.
    fn after_comma(&mut self, at: usize) -> Option<Value> {
        let rest = self.text.get(at + 1..)?;
        let start = self.text.len() - rest.trim_start().trim_start_matches('\\').len();
        let is_near = start <= at + 40;
        let value = is_near.then(|| self.value_at(start, Style::Bare))??;
        // The next name of a list, and not a value.
        let next = self.text.get(value.range.end + 1..).unwrap_or_default();
        let is_name = next.trim_start().starts_with([':', '=']);
        (value.style == Style::Quoted && !is_name).then_some(value)
    }

    /// Finds the text of an element of XML, or one whose attribute is the name.
    fn element(&self, name: &Range<usize>, at: usize) -> Option<Value> {
        let before = &self.text[..name.start];
        let is_tag = before.ends_with(['<', ':']) || before.ends_with(['"', '\'']);
        if !is_tag {
            return None;
        }
        let rest = self.text.get(at + 1..)?;
        let key_end = rest.strip_prefix("<string>").map(|rest| (rest, 8));
        let (rest, skipped) = key_end.unwrap_or((rest, 0));
        self.text_of_element(rest, at + 1 + skipped)
    }

    fn text_of_element(&self, rest: &str, from: usize) -> Option<Value> {
        let end = memchr::memchr(b'<', &rest.as_bytes()[..rest.len().min(LONGEST)])?;
        let is_closed = rest[end..].starts_with("</") || rest[end..].starts_with("<![CDATA[");
        let own = rest[..end].trim();
        let start = from + (rest[..end].len() - rest[..end].trim_start().len());
        let (start, own) = match rest[end..].strip_prefix("<![CDATA[") {
            Some(data) => (from + end + 9, &data[..data.find("]]>")?]),
            None => (start, own),
        };
        (is_closed && !own.is_empty()).then(|| Value {
            range: start..start + own.len(),
            style: Style::Quoted,
        })
    }

    /// Finds the text of an element with attributes: `<password encrypted="no">…</password>`.
    fn tag(&self, name: &Range<usize>) -> Option<Value> {
        if !self.text[..name.start].ends_with('<') {
            return self.property_list(name);
        }
        let rest = self.text.get(name.end..)?;
        let end = memchr::memchr2(b'>', b'\n', &rest.as_bytes()[..rest.len().min(200)])?;
        let is_open = rest.starts_with(' ') && rest[end..].starts_with('>');
        let from = name.end + end + 1;
        (is_open && !rest[..end].ends_with('/'))
            .then(|| self.text_of_element(self.text.get(from..)?, from))?
    }

    /// Finds the value of `<key>name</key><string>value</string>`.
    fn property_list(&self, name: &Range<usize>) -> Option<Value> {
        let rest = self.text.get(name.end..)?.strip_prefix("</")?;
        let end = memchr::memchr(b'>', &rest.as_bytes()[..rest.len().min(64)])?;
        let after = rest[end + 1..].trim_start();
        let open = memchr::memchr(b'>', &after.as_bytes()[..after.len().min(32)])?;
        let is_element = after.starts_with('<') && !after.starts_with("</");
        let from = self.text.len() - after.len() + open + 1;
        is_element.then(|| self.text_of_element(&after[open + 1..], from))?
    }

    /// Finds the value of a pair of fields: `name: TOKEN`, and below it `value: …`.
    fn pair(&mut self, at: usize) -> Option<Value> {
        const FIELDS: [&str; 6] = [
            "value",
            "val",
            "content",
            "stringvalue",
            "string_value",
            "data",
        ];
        let rest = self.text.get(at..)?;
        let is_between =
            |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '"' | '\'' | '\\' | '`' | '|');
        let field = rest.trim_start_matches(is_between);
        let start = self.text.len() - field.len();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = field.bytes().take(16).take_while(is_name).count();
        let is_field = FIELDS
            .iter()
            .any(|it| it.eq_ignore_ascii_case(&field[..length]));
        if start - at > 64 || !is_field {
            return None;
        }
        let after = field[length..].trim_start_matches(['"', '\'', '\\', '`', ' ']);
        let value = after.strip_prefix([':', '='])?;
        let value = value.trim_start_matches([' ', '\t', '\\']);
        let found = self.value_at(self.text.len() - value.len(), Style::Line)?;
        Some(found)
    }

    /// Finds the value of an option, of a login in `.netrc`, and in prose.
    fn after_blank(&mut self, name: &Range<usize>, at: usize, named: Named) -> Option<Value> {
        let between = self.text.get(name.end..at)?;
        let has_blank = between.contains([' ', '\t']) || self.bytes.get(at) == Some(&b'\n');
        if !has_blank || self.bytes.get(at) == Some(&b'-') {
            return None;
        }
        let quoted = between.ends_with(['"', '\'', '`']) && !between.starts_with(['"', '\'', '`']);
        let start = at - usize::from(quoted);
        let at = self.next_line(start).unwrap_or(start);
        if self.is_option(name) || self.is_set_by_word(name) {
            return self.value_at(at, Style::Setting);
        }
        if named != Named::Password {
            return self.after_is(at);
        }
        let value = self.value_at(at, Style::Bare)?;
        let words = &self.text[..name.start];
        let words = &words[floor(words, words.len().saturating_sub(200))..];
        let is_login = words.contains("login ") || words.contains("machine ");
        match value.style {
            Style::Quoted if name.len() > "pass".len() => Some(value),
            _ if is_login => Some(Value {
                style: Style::Setting,
                ..value
            }),
            _ => self.after_is(at),
        }
    }

    /// Returns whether a command that sets a variable is before its name: `ENV TOKEN …`.
    fn is_set_by_word(&self, name: &Range<usize>) -> bool {
        const WORDS: [&str; 4] = ["ENV ", "ARG ", "setx ", "set "];
        let before = &self.text[..name.start];
        WORDS.iter().any(|word| before.ends_with(word))
    }

    /// Finds the second of two strings in brackets: `auth=("user", "…")`.
    pub(super) fn second_string(&mut self, at: usize) -> Option<Span> {
        let first = self.value_at(at, Style::Bare)?;
        let rest = self.text.get(first.range.end + 1..)?;
        let rest = rest.strip_prefix(',')?.trim_start();
        let second = self.value_at(self.text.len() - rest.len(), Style::Bare)?;
        let own = self.text.get(second.range.clone())?;
        let are_strings = first.style == Style::Quoted && second.style == Style::Quoted;
        let is_secret = is_chosen(own, 6) || is_word(own);
        (are_strings && is_secret && !is_placeholder(own)).then_some(Span {
            start: second.range.start,
            end: second.range.end,
            kind: "password",
            exact: false,
        })
    }

    /// Finds the value in `the password is …`.
    fn after_is(&mut self, at: usize) -> Option<Value> {
        let rest = self.text.get(at..)?.strip_prefix("is ")?;
        let value = self.value_at(self.text.len() - rest.len(), Style::Bare)?;
        let own = self.text.get(value.range.clone())?;
        let length = own.trim_end_matches(['.', '!', '?']).len();
        let range = value.range.start..value.range.start + length;
        Some(Value { range, ..value })
    }

    /// Returns the value of a header: to the end of the line or the quotes around it.
    fn header(&self, at: usize) -> Value {
        let start = at + usize::from(is_quote(self.bytes.get(at)));
        let quote = match at < start {
            true => self.bytes.get(at),
            false => None,
        };
        let rest = self.bytes.get(start..).unwrap_or_default();
        let rest = &rest[..rest.len().min(LONGEST)];
        let quotes = match quote {
            Some(quote) => memchr::memchr(*quote, rest),
            None => memchr::memchr3(b'"', b'\'', b'`', rest),
        };
        let rest = &rest[..quotes.unwrap_or(rest.len())];
        let rest = &rest[..memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())];
        let length = memchr::memchr2(b'\\', b'<', rest).unwrap_or(rest.len());
        Value {
            range: start..start + length,
            style: Style::Quoted,
        }
    }

    /// Returns the value that starts at a place.
    fn value_at(&mut self, at: usize, style: Style) -> Option<Value> {
        // A string of bytes, a raw one, one with variables.
        let is_prefix = matches!(
            self.bytes.get(at),
            Some(b'b' | b'f' | b'r' | b'u' | b'@' | b'$')
        );
        let at = at + usize::from(is_prefix && is_quote(self.bytes.get(at + 1)));
        match is_quote(self.bytes.get(at)) {
            true => self.quoted(at),
            false => self.unquoted(at, style),
        }
    }

    fn quoted(&self, at: usize) -> Option<Value> {
        let quote = *self.bytes.get(at)?;
        let is_escaped = at > 0 && self.bytes[at - 1] == b'\\';
        let start = at + 1;
        let upto = self.bytes.len().min(start + LONGEST);
        let mut from = start;
        let mut breaks = 0;
        loop {
            let found = memchr::memchr3(quote, b'\\', b'\n', &self.bytes[from..upto]);
            let end = match found {
                Some(found) => from + found,
                None if upto == self.bytes.len() => upto,
                None => return None,
            };
            match self.bytes.get(end) {
                // In a string of JSON within a text, the quotes are escaped too.
                Some(b'\\') if is_escaped || self.bytes.get(end + 1) != Some(&quote) => {
                    let closes = is_escaped && self.bytes.get(end + 1) == Some(&quote);
                    if closes || matches!(self.bytes.get(end + 1), Some(b'n' | b'r')) {
                        return Some(self.quoted_value(start, end));
                    }
                    from = end + 1;
                }
                Some(b'\\') => from = end + 2,
                Some(b'\n')
                    if breaks == 0 && memchr::memchr(b' ', &self.bytes[start..end]).is_none() =>
                {
                    breaks = 1;
                    from = end + 1;
                }
                _ => return Some(self.quoted_value(start, end)),
            }
            if from > upto {
                return Some(self.quoted_value(start, upto));
            }
        }
    }

    fn quoted_value(&self, start: usize, end: usize) -> Value {
        Value {
            range: start..end,
            style: Style::Quoted,
        }
    }

    fn unquoted(&mut self, at: usize, style: Style) -> Option<Value> {
        let end = match self.measured.contains(&at) {
            true => self.measured.end,
            false => {
                let rest = self.bytes.get(at..)?.iter().enumerate();
                let mut ends = rest
                    .take(LONGEST + 1)
                    .filter(|(number, byte)| ends_value(**byte, self.bytes.get(at + number + 1)));
                let end = ends.next().map(|(number, _)| at + number);
                end.unwrap_or_else(|| self.bytes.len().min(at + LONGEST + 1))
            }
        };
        self.measured = at..end;
        if end - at > LONGEST {
            return None;
        }
        let length = before_parameter(&self.bytes[at..end]);
        Some(Value {
            range: at..at + length,
            style,
        })
    }

    /// Skips blanks, and the backslashes of quotes that are escaped.
    fn skip_blanks(&self, at: usize) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let is_blank = |number: &usize| match rest[*number] {
            b' ' | b'\t' => true,
            b'\\' => matches!(
                rest.get(number + 1),
                Some(b'"' | b'\'' | b'`' | b'\\' | b'\n')
            ),
            _ => false,
        };
        at + (0..rest.len().min(64)).take_while(is_blank).count()
    }

    /// Skips the bracket of a list of strings: `"Authorization": ["Bearer …"]`.
    fn skip_bracket(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        let inner = rest.strip_prefix('[').map(str::trim_start);
        let inner = inner.map(|inner| inner.trim_start_matches('\\'));
        match inner.filter(|inner| inner.starts_with(['"', '\''])) {
            Some(inner) => self.text.len() - inner.len(),
            None => at,
        }
    }

    fn judge(&self, name: &Range<usize>, named: Named, value: &Value) -> Option<Span> {
        let is_field = matches!(value.style, Style::Quoted | Style::Constant);
        let own = self.text.get(value.range.clone())?;
        let name = self.text.get(name.clone())?;
        let (part, kind) = judge(name, named, own, value.style, is_field)?;
        Some(Span {
            start: value.range.start + part.start,
            end: value.range.start + part.end,
            kind,
            exact: kind == "aws secret key",
        })
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn is_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn is_quote(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b'"' | b'\'' | b'`'))
}

/// Returns whether a value without quotes ends before a byte.
fn ends_value(byte: u8, next: Option<&u8>) -> bool {
    match byte {
        b'\\' => matches!(
            next,
            None | Some(b'n' | b'r' | b't' | b'"' | b'\'' | b'\\' | b'u' | b'\n')
        ),
        byte => {
            byte.is_ascii_whitespace()
                || matches!(
                    byte,
                    b'"' | b'\'' | b'`' | b',' | b';' | b')' | b'<' | b'}' | b']'
                )
        }
    }
}

/// Returns the length of a value that may be in a query: up to `&name=`.
fn before_parameter(value: &[u8]) -> usize {
    let begins = |at: &usize| {
        let rest = &value[at + 1..];
        let name = rest
            .iter()
            .take(64)
            .take_while(|byte| is_name(byte))
            .count();
        name > 0 && rest.get(name) == Some(&b'=')
    };
    memchr::memchr_iter(b'&', value)
        .take(64)
        .find(begins)
        .unwrap_or(value.len())
}
