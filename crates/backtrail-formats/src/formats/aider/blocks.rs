//! Lines as they are, and what they are.

use std::ops::Range;

use crate::error::Result;
use crate::lines::MAX_LINE;
use crate::source::Source;

/// What a block of lines is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Prompt,
    /// aider's own output.
    Output,
    /// What a call used.
    Tokens,
    Answer,
}

/// Returns what a line is, and its text, after a line of some kind. `None` for a blank line,
/// which is part of answers only.
pub(super) fn kind_of(line: &str, before: Option<Kind>) -> (Option<Kind>, &str) {
    if line.is_empty() {
        let is_answer = before == Some(Kind::Answer);
        return (is_answer.then_some(Kind::Answer), line);
    }
    if let Some(prompt) = marked(line, "####") {
        return (Some(Kind::Prompt), prompt);
    }
    if let Some(output) = marked(line, ">") {
        let is_usage = output.starts_with("Tokens: ");
        let kind = if is_usage { Kind::Tokens } else { Kind::Output };
        return (Some(kind), output);
    }
    // The second line of an output has no mark.
    if before == Some(Kind::Tokens) && line.starts_with("Cost: ") {
        return (Some(Kind::Tokens), line);
    }
    (Some(Kind::Answer), line)
}

/// Returns what follows a mark and a blank.
fn marked<'l>(line: &'l str, mark: &str) -> Option<&'l str> {
    let rest = line.strip_prefix(mark)?;
    match rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix(' '),
    }
}

/// Iterates over the lines of a file, blank ones too.
pub(super) struct RawLines<'s> {
    source: &'s Source,
    buffer: Vec<u8>,
    /// The part of the buffer that was not returned yet.
    unread: Range<usize>,
    /// Where in the file the buffer ends.
    end: u64,
}

/// A line.
#[derive(Debug)]
pub(super) struct RawLine {
    /// The line without blanks at its end.
    pub(super) text: String,
    pub(super) range: Range<u64>,
    /// Whether something of it is lost.
    pub(super) is_damaged: bool,
}

impl<'s> RawLines<'s> {
    pub(super) fn new(source: &'s Source, from: u64) -> Self {
        Self {
            source,
            buffer: vec![0; 64 << 10],
            unread: 0..0,
            end: from,
        }
    }

    /// Returns the next line.
    pub(super) fn next(&mut self) -> Result<Option<RawLine>> {
        let start = self.end - self.unread.len() as u64;
        let mut bytes = Vec::new();
        let mut len = 0_u64;
        let is_ended = loop {
            if self.unread.is_empty() && !self.fill()? {
                break false;
            }
            let unread = &self.buffer[self.unread.clone()];
            let found = memchr::memchr(b'\n', unread);
            let taken = found.map_or(unread.len(), |at| at + 1);
            if bytes.len() < MAX_LINE {
                bytes.extend_from_slice(&unread[..taken]);
            }
            len += taken as u64;
            self.unread.start += taken;
            if found.is_some() {
                break true;
            }
        };
        if len == 0 {
            return Ok(None);
        }
        let is_cut = len > bytes.len() as u64;
        let text = String::from_utf8_lossy(&bytes);
        let is_lossy = matches!(text, std::borrow::Cow::Owned(_)) && is_ended;
        let blank = |c: char| c.is_whitespace() || c == '\0';
        Ok(Some(RawLine {
            text: text.trim_end_matches(blank).to_owned(),
            range: start..start + len,
            is_damaged: is_lossy || is_cut,
        }))
    }

    /// Reads on. Returns whether there was more.
    fn fill(&mut self) -> Result<bool> {
        let read = self.source.read_at(&mut self.buffer, self.end)?;
        self.unread = 0..read;
        self.end += read as u64;
        Ok(read > 0)
    }
}
