//! The one error type, and what can be asked of it.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::ids::SessionId;
use crate::log::Holder;
use crate::snapshot::TooMuch;

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, for a program to decide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such session, record or store.
    NotFound,
    /// A reference fits several sessions; see [`Error::candidates`].
    Ambiguous,
    /// Another handle speaks in the session; see [`Error::holder`].
    Locked,
    /// The session went on since the caller last looked; see [`Error::head`].
    Conflict,
    /// The caller's mistake: a bad id, reference, message or setting.
    Invalid,
    /// The machine failed to read or write.
    Io,
    /// No space left; what was not written was taken back.
    DiskFull,
    /// What is on disk is not what was written.
    Corrupt,
    /// Written by a newer version, which this one must not change.
    NewerFormat,
    /// More than may be stored unasked; see [`Error::too_much`].
    TooMuch,
    /// The files of a checkpoint were let go; its record is all that is left.
    LetGo,
}

impl ErrorKind {
    /// Returns the kind as one lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Ambiguous => "ambiguous",
            Self::Locked => "locked",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::Io => "io",
            Self::DiskFull => "disk_full",
            Self::Corrupt => "corrupt",
            Self::NewerFormat => "newer_format",
            Self::TooMuch => "too_much",
            Self::LetGo => "let_go",
        }
    }
}

/// An error of the engine: what was attempted, on what, and why it failed.
///
/// Its text says what was attempted. The cause, where there is one, is its
/// [`source`](StdError::source) and is not repeated in the text.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    line: Option<u64>,
    byte: Option<u64>,
    reason: Option<Reason>,
    detail: Detail,
    source: Option<io::Error>,
}

/// What only some kinds carry.
enum Detail {
    None,
    Holder(Option<Holder>),
    Head(u64),
    Candidates(Vec<SessionId>),
    Points(Vec<String>),
    TooMuch(TooMuch),
    Deleted(SessionId),
    Purged(SessionId),
    Restored(SessionId),
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            path: None,
            line: None,
            byte: None,
            reason: None,
            detail: Detail::None,
            source: None,
        }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Makes an error of a failure of the machine that is in no file.
    pub(crate) fn machine(doing: impl Into<String>, source: io::Error) -> Self {
        let mut error = Self::new(ErrorKind::Io, doing);
        error.0.source = Some(source);
        error
    }

    /// Makes an error of an I/O failure: `doing` says what was attempted.
    pub(crate) fn io(doing: impl Into<String>, path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::DiskFull,
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, doing).at_path(path);
        error.0.source = Some(source);
        error
    }

    /// Adds to the text what became of it.
    pub(crate) fn said(mut self, what: impl AsRef<str>) -> Self {
        self.0.message = format!("{}; {}", self.0.message, what.as_ref());
        self
    }

    pub(crate) fn locked(message: String, path: &Path, holder: Option<Holder>) -> Self {
        let mut error = Self::new(ErrorKind::Locked, message).at_path(path);
        error.0.detail = Detail::Holder(holder);
        error
    }

    pub(crate) fn conflict(message: String, head: u64) -> Self {
        let mut error = Self::new(ErrorKind::Conflict, message);
        error.0.detail = Detail::Head(head);
        error
    }

    pub(crate) fn ambiguous(message: String, candidates: Vec<SessionId>) -> Self {
        let mut error = Self::new(ErrorKind::Ambiguous, message);
        error.0.detail = Detail::Candidates(candidates);
        error
    }

    /// Adds points that may have been meant.
    pub(crate) fn with_points(mut self, points: Vec<String>) -> Self {
        self.0.detail = Detail::Points(points);
        self
    }

    /// Makes the error of a snapshot that its limits stopped.
    pub(crate) fn stopped(message: String, too_much: TooMuch) -> Self {
        let mut error = Self::new(ErrorKind::TooMuch, message);
        error.0.detail = Detail::TooMuch(too_much);
        error
    }

    /// Makes the error of a session that is in the trash.
    pub(crate) fn deleted(message: String, id: &SessionId) -> Self {
        let mut error = Self::new(ErrorKind::NotFound, message);
        error.0.detail = Detail::Deleted(id.clone());
        error
    }

    /// Makes the error of a session that was purged.
    pub(crate) fn purged(message: String, id: &SessionId) -> Self {
        let mut error = Self::new(ErrorKind::NotFound, message);
        error.0.detail = Detail::Purged(id.clone());
        error
    }

    /// Makes the error of a session that is in the trash no more.
    pub(crate) fn restored(message: String, id: &SessionId) -> Self {
        let mut error = Self::new(ErrorKind::NotFound, message);
        error.0.detail = Detail::Restored(id.clone());
        error
    }

    pub(crate) fn at_path(mut self, path: &Path) -> Self {
        self.0.path = Some(path.to_owned());
        self
    }

    pub(crate) fn at_byte(mut self, byte: u64) -> Self {
        self.0.byte = Some(byte);
        self
    }

    pub(crate) fn at_line(mut self, line: Option<u64>) -> Self {
        self.0.line = line;
        self
    }

    pub(crate) fn because(mut self, reason: Reason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// Returns what went wrong, for a program to decide by.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the file or directory it happened in, where there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the line of that file, counted from 1, where it is known.
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// Returns the byte of that file (or of the input), counted from 0.
    pub fn byte(&self) -> Option<u64> {
        self.0.byte
    }

    /// Returns what exactly is wrong with a record or message.
    pub fn reason(&self) -> Option<&Reason> {
        self.0.reason.as_ref()
    }

    /// Returns who holds the lock, with [`ErrorKind::Locked`].
    ///
    /// `None` also where the holder left no readable note.
    pub fn holder(&self) -> Option<&Holder> {
        match &self.0.detail {
            Detail::Holder(holder) => holder.as_ref(),
            _ => None,
        }
    }

    /// Returns the seq that really is last, with [`ErrorKind::Conflict`].
    pub fn head(&self) -> Option<u64> {
        match self.0.detail {
            Detail::Head(seq) => Some(seq),
            _ => None,
        }
    }

    /// Returns the sessions that a reference fits, with [`ErrorKind::Ambiguous`].
    pub fn candidates(&self) -> &[SessionId] {
        match &self.0.detail {
            Detail::Candidates(ids) => ids,
            _ => &[],
        }
    }

    /// Returns the points that a text fits, with [`ErrorKind::Ambiguous`], or that
    /// are nearest to it, with [`ErrorKind::NotFound`].
    pub fn points(&self) -> &[String] {
        match &self.0.detail {
            Detail::Points(points) => points,
            _ => &[],
        }
    }

    /// Returns what would have been stored, with [`ErrorKind::TooMuch`].
    pub fn too_much(&self) -> Option<&TooMuch> {
        match &self.0.detail {
            Detail::TooMuch(too_much) => Some(too_much),
            _ => None,
        }
    }

    /// Returns the session in the trash that was meant, with
    /// [`ErrorKind::NotFound`]: it can be restored.
    pub fn in_trash(&self) -> Option<&SessionId> {
        match &self.0.detail {
            Detail::Deleted(id) => Some(id),
            _ => None,
        }
    }

    /// Returns the session that was purged and was meant, with
    /// [`ErrorKind::NotFound`].
    pub fn was_purged(&self) -> Option<&SessionId> {
        match &self.0.detail {
            Detail::Purged(id) => Some(id),
            _ => None,
        }
    }

    /// Returns whether a session is not where it was looked for because it was deleted,
    /// restored or purged: whoever listed it before has come upon no damage.
    pub fn is_moved(&self) -> bool {
        matches!(
            self.0.detail,
            Detail::Deleted(_) | Detail::Purged(_) | Detail::Restored(_)
        )
    }

    /// Copies the error for another waiter of the same group commit.
    pub(crate) fn duplicate(&self) -> Self {
        let inner = &self.0;
        Self(Box::new(Inner {
            kind: inner.kind,
            message: inner.message.clone(),
            path: inner.path.clone(),
            line: inner.line,
            byte: inner.byte,
            reason: inner.reason.clone(),
            detail: match &inner.detail {
                Detail::None => Detail::None,
                Detail::Holder(holder) => Detail::Holder(holder.clone()),
                Detail::Head(seq) => Detail::Head(*seq),
                Detail::Candidates(ids) => Detail::Candidates(ids.clone()),
                Detail::Points(points) => Detail::Points(points.clone()),
                Detail::TooMuch(too_much) => Detail::TooMuch(too_much.clone()),
                Detail::Deleted(id) => Detail::Deleted(id.clone()),
                Detail::Purged(id) => Detail::Purged(id.clone()),
                Detail::Restored(id) => Detail::Restored(id.clone()),
            },
            source: inner.source.as_ref().map(duplicate_io),
        }))
    }
}

/// Copies an I/O error as far as one can be copied.
fn duplicate_io(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(reason) = &self.0.reason {
            write!(f, ": {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.0.kind);
        debug.field("message", &self.to_string());
        if let Some(path) = &self.0.path {
            debug.field("path", path);
        }
        if let Some(line) = self.0.line {
            debug.field("line", &line);
        }
        if let Some(byte) = self.0.byte {
            debug.field("byte", &byte);
        }
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_ref()
            .map(|error| error as &(dyn StdError + 'static))
    }
}

/// What exactly is wrong with a line, a record or a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes do not hash to the record's `sum`.
    BadSum,
    /// The record has no `sum`.
    MissingSum,
    /// A run of NUL bytes, as power cuts leave behind.
    NulBlock,
    /// Bytes that are no record at all.
    NotARecord,
    /// The last line does not end in a newline and is not whole.
    Unfinished,
    /// The line is longer than a reader accepts.
    TooLong {
        /// How long it is.
        bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// Not UTF-8, from this byte of the line on.
    NotUtf8(u64),
    /// Not JSON; the text says where and why.
    Syntax(String),
    /// JSON, but not an object.
    NotAnObject,
    /// An object, but not a message; the text says what is wrong.
    NotAMessage(String),
    /// The object does not say its `type`.
    MissingType,
    /// The object's `type` cannot be used here.
    UnsupportedType(String),
    /// A field that must be there is not.
    MissingField(&'static str),
    /// A field that has no place here.
    UnexpectedField(String),
    /// A field that stands twice.
    RepeatedField(String),
    /// A field is there but is not what it must be; says what that is.
    WrongField(&'static str, &'static str),
    /// A number does not fit.
    OutOfRange(&'static str),
    /// One or more records are gone: this one does not follow the one before.
    Gap,
    /// The seq does not grow.
    OutOfOrder {
        /// The seq of this record.
        seq: u64,
        /// The seq of the record before it.
        after: u64,
    },
    /// The trail's opener cannot be read.
    BadOpener,
    /// The opener continues something that is not there.
    BrokenLink(String),
    /// The openers continue each other in a circle.
    Loop,
    /// A large or binary part of the message is not in the payload file.
    LostPayload(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadSum => f.write_str("checksum mismatch"),
            Self::MissingSum => f.write_str("no checksum"),
            Self::NulBlock => f.write_str("a block of NUL bytes"),
            Self::NotARecord => f.write_str("not a record"),
            Self::Unfinished => f.write_str("unfinished last line"),
            Self::TooLong { bytes, limit } => {
                write!(f, "a line of {bytes} bytes, over the limit of {limit}")
            }
            Self::NotUtf8(byte) => write!(f, "not UTF-8 at byte {byte}"),
            Self::Syntax(what) => write!(f, "not JSON: {what}"),
            Self::NotAnObject => f.write_str("not a JSON object"),
            Self::NotAMessage(what) => write!(f, "not a message: {what}"),
            Self::MissingType => f.write_str("the field `type` is missing"),
            Self::UnsupportedType(name) => write!(f, "unsupported type {}", quoted(name)),
            Self::MissingField(name) => write!(f, "the field `{name}` is missing"),
            Self::UnexpectedField(name) => write!(f, "unexpected field {}", quoted(name)),
            Self::RepeatedField(name) => write!(f, "the field {} stands twice", quoted(name)),
            Self::WrongField(name, must) => write!(f, "the field `{name}` must be {must}"),
            Self::OutOfRange(name) => write!(f, "the number in `{name}` is out of range"),
            Self::Gap => f.write_str("records are missing before this one"),
            Self::OutOfOrder { seq, after } => {
                write!(f, "record {seq} stands after record {after}")
            }
            Self::BadOpener => f.write_str("the trail's opener cannot be read"),
            Self::BrokenLink(what) => write!(f, "continues {what}, which is not there"),
            Self::Loop => f.write_str("the openers continue each other in a circle"),
            Self::LostPayload(hash) => write!(f, "the payload {hash} is lost or damaged"),
        }
    }
}

/// Quotes text from outside for a message: short, on one line, without control
/// characters.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut out = String::from("\"");
    for (n, c) in text.chars().enumerate() {
        if n == SHOWN {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.push('"');
    out
}
