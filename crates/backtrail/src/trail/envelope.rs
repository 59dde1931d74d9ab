//! The small fields at the front of a record, found without parsing its body.

use std::ops::Range;

use super::foreign::ForeignKind;
use crate::error::Reason;
use crate::json::Parts;

/// The small fields at the front of a record, by their places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope {
    /// `None` if the record is not as this program writes them: then only the numbers are
    /// known, and the rest is looked up on demand.
    pub(super) kind: Option<Span>,
    pub(super) seq: u64,
    pub(super) noted: Option<u64>,
    pub(super) compacted: Option<u64>,
    pub(super) at: Option<Span>,
    pub(super) id: Option<Span>,
    /// Set for a record of another format: its kind, and where its message is.
    pub(super) foreign: Option<(ForeignKind, Span)>,
}

impl Envelope {
    /// Creates the envelope of a record of another format, which has no seq of its own.
    /// `None` if the record is longer than the reader's limit.
    pub(crate) fn foreign(seq: u64, kind: ForeignKind, body: Range<usize>) -> Option<Self> {
        let body = Span {
            start: u32::try_from(body.start).ok()?,
            end: u32::try_from(body.end).ok()?,
        };
        Some(Self {
            kind: None,
            seq,
            noted: None,
            compacted: None,
            at: None,
            id: None,
            foreign: Some((kind, body)),
        })
    }
}

/// A part of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Finds the small fields of a line.
pub(super) fn read_envelope(line: &[u8]) -> Result<Envelope, Reason> {
    match scan_envelope(line) {
        Some(envelope) => Ok(envelope),
        None => slow_envelope(line),
    }
}

/// Reads the front of a line as this program writes it: `type`, then numbers, `at`, `id`.
/// Gives up on anything unexpected.
fn scan_envelope(line: &[u8]) -> Option<Envelope> {
    let mut scan = Scan { line, at: 0 };
    scan.expect(b"{\"type\":")?;
    let mut envelope = Envelope {
        kind: Some(scan.string()?),
        seq: 0,
        noted: None,
        compacted: None,
        at: None,
        id: None,
        foreign: None,
    };
    let mut seq = None;
    loop {
        // A record cannot end here: `prev` and `sum` come last.
        scan.expect(b",")?;
        let key = scan.string()?;
        scan.expect(b":")?;
        match &line[key.range()] {
            b"seq" => seq = Some(scan.number()?),
            b"version" => drop(scan.number()?),
            b"noted" => envelope.noted = Some(scan.number()?),
            b"compacted" => envelope.compacted = Some(scan.number()?),
            b"at" => envelope.at = Some(scan.string()?),
            b"id" => {
                envelope.id = Some(scan.string()?);
                break;
            }
            b"session_id" | b"message" => break,
            _ => return None,
        }
    }
    envelope.seq = seq?;
    Some(envelope)
}

struct Scan<'a> {
    line: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn expect(&mut self, token: &[u8]) -> Option<()> {
        self.line.get(self.at..)?.starts_with(token).then_some(())?;
        self.at += token.len();
        Some(())
    }

    /// Reads a string without escapes, and returns the span of its content.
    fn string(&mut self) -> Option<Span> {
        self.expect(b"\"")?;
        let start = self.at;
        let len = memchr::memchr2(b'"', b'\\', self.line.get(start..)?)?;
        let end = start + len;
        self.at = end;
        self.expect(b"\"")?;
        std::str::from_utf8(&self.line[start..end]).ok()?;
        Some(Span {
            start: u32::try_from(start).ok()?,
            end: u32::try_from(end).ok()?,
        })
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self.line.get(self.at..)?;
        let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += len;
        std::str::from_utf8(&digits[..len]).ok()?.parse().ok()
    }
}

/// Returns the type in a record's fields: a name, so without escapes.
pub(super) fn kind_in<'a>(fields: &Parts<'a>) -> Option<&'a str> {
    let literal = fields.get("type")?.get();
    let name = literal.strip_prefix('"')?.strip_suffix('"')?;
    (!name.contains('\\')).then_some(name)
}

/// Reads the small fields wherever they are. An invalid one must not make the record
/// unreadable.
fn slow_envelope(line: &[u8]) -> Result<Envelope, Reason> {
    if line.first() != Some(&b'{') {
        return Err(Reason::NotAnObject);
    }
    let fields: Parts<'_> =
        serde_json::from_slice(line).map_err(|error| Reason::Syntax(error.to_string()))?;
    let kind = fields.get("type").ok_or(Reason::MissingType)?;
    if kind_in(&fields).is_none() {
        return Err(Reason::UnsupportedType(kind.get().to_owned()));
    }
    let number = |name| fields.get(name).and_then(|raw| raw.get().parse().ok());
    let seq = fields.get("seq").ok_or(Reason::MissingField("seq"))?;
    Ok(Envelope {
        kind: None,
        seq: seq.get().parse().map_err(|_| Reason::OutOfRange("seq"))?,
        noted: number("noted"),
        compacted: number("compacted"),
        at: None,
        id: None,
        foreign: None,
    })
}
