//! The engine's error type.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::ids::SessionId;
use crate::log::Holder;
use crate::replica::Refusal;
#[cfg(feature = "snapshots")]
use crate::snapshot::TooMuch;

/// The engine's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds what was attempted, and on which path, to an I/O error.
pub(crate) trait IoContext<T> {
    fn context(self, doing: impl Into<String>, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, doing: impl Into<String>, path: &Path) -> Result<T> {
        self.map_err(|error| Error::io(doing, path, error))
    }
}

/// What went wrong, as programs need to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such session, record or store.
    NotFound,
    /// A reference matches several sessions; see [`Error::candidates`].
    Ambiguous,
    /// Another handle is writing to the session; see [`Error::holder`].
    Locked,
    /// The session changed since the caller last read it; see [`Error::head`].
    Conflict,
    /// The caller made a mistake: a bad id, reference, message or setting.
    Invalid,
    /// Reading or writing failed.
    Io,
    /// No space is left; a partial write was removed.
    DiskFull,
    /// Data on disk is not what was written.
    Corrupt,
    /// Data was written by a newer version and must not be changed by this one.
    NewerFormat,
    /// A snapshot would store more than its limits allow; see [`Error::too_much`].
    TooMuch,
    /// The files of a checkpoint were dropped; only its record is left.
    Dropped,
    /// A remote could not be reached, or its answer was lost. What an append wrote is here, not
    /// acknowledged, and sent with the next one; see [`Error::head`].
    Away,
    /// A remote refuses this user.
    Denied,
    /// Another machine took over the writing to the session while it was open here. It can be
    /// read, and written to again after it was pulled.
    Fenced,
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
            Self::Dropped => "dropped",
            Self::Away => "away",
            Self::Denied => "denied",
            Self::Fenced => "fenced",
        }
    }
}

/// An error of the engine: what was attempted, where, and why it failed.
///
/// The text says what was attempted, and names the path and line. The cause, if there is
/// one, is the [`source`](StdError::source) and not repeated in the text.
pub struct Error(Box<ErrorInner>);

#[derive(Clone)]
struct ErrorInner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    line: Option<u64>,
    byte: Option<u64>,
    reason: Option<Reason>,
    detail: Detail,
    source: Option<Arc<io::Error>>,
}

/// Details that only some kinds have.
#[derive(Clone)]
enum Detail {
    None,
    Holder(Option<Holder>),
    Head(u64),
    Candidates(Vec<SessionId>),
    Points(Vec<String>),
    #[cfg(feature = "snapshots")]
    TooMuch(TooMuch),
    #[cfg(feature = "snapshots")]
    Damaged(Vec<PathBuf>),
    Deleted(SessionId),
    Purged(SessionId),
    Restored,
    Refused(Refusal),
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorInner {
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

    /// Creates an error for a failure of the machine that concerns no file.
    pub(crate) fn machine(doing: impl Into<String>, source: io::Error) -> Self {
        let mut error = Self::new(ErrorKind::Io, doing);
        error.0.source = Some(Arc::new(source));
        error
    }

    /// Creates an error for an I/O failure: `doing` says what was attempted.
    pub(crate) fn io(doing: impl Into<String>, path: &Path, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::DiskFull,
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        let mut error = Self::new(kind, doing).at_path(path);
        error.0.source = Some(Arc::new(source));
        error
    }

    /// Creates an error for a value that is not the JSON that it should be, or that JSON
    /// cannot hold.
    pub(crate) fn json(doing: impl Into<String>, source: &serde_json::Error) -> Self {
        Self::invalid(doing).with_reason(Reason::Syntax(source.to_string()))
    }

    /// Adds to the message what the failure left behind.
    pub(crate) fn with_note(mut self, what: impl AsRef<str>) -> Self {
        self.0.message = format!("{}; {}", self.0.message, what.as_ref());
        self
    }

    fn with_detail(mut self, detail: Detail) -> Self {
        self.0.detail = detail;
        self
    }

    pub(crate) fn locked(message: String, path: &Path, holder: Option<Holder>) -> Self {
        let error = Self::new(ErrorKind::Locked, message).at_path(path);
        error.with_detail(Detail::Holder(holder))
    }

    pub(crate) fn conflict(message: String, head: u64) -> Self {
        Self::new(ErrorKind::Conflict, message).with_detail(Detail::Head(head))
    }

    /// Adds the last seq.
    pub(crate) fn with_head(self, head: u64) -> Self {
        self.with_detail(Detail::Head(head))
    }

    pub(crate) fn ambiguous(message: String, candidates: Vec<SessionId>) -> Self {
        let error = Self::new(ErrorKind::Ambiguous, message);
        error.with_detail(Detail::Candidates(candidates))
    }

    /// Adds points that may have been meant.
    pub(crate) fn with_points(self, points: Vec<String>) -> Self {
        self.with_detail(Detail::Points(points))
    }

    /// Creates the error of a snapshot that exceeds its limits.
    #[cfg(feature = "snapshots")]
    pub(crate) fn stopped(message: String, too_much: TooMuch) -> Self {
        Self::new(ErrorKind::TooMuch, message).with_detail(Detail::TooMuch(too_much))
    }

    /// Adds the files and directories of a snapshot that are damaged.
    #[cfg(feature = "snapshots")]
    pub(crate) fn with_damaged(self, paths: Vec<PathBuf>) -> Self {
        self.with_detail(Detail::Damaged(paths))
    }

    /// Creates the error for a session that is in the trash.
    pub(crate) fn deleted(message: String, id: &SessionId) -> Self {
        Self::new(ErrorKind::NotFound, message).with_detail(Detail::Deleted(id.clone()))
    }

    /// Creates the error for a session that was purged.
    pub(crate) fn purged(message: String, id: &SessionId) -> Self {
        Self::new(ErrorKind::NotFound, message).with_detail(Detail::Purged(id.clone()))
    }

    /// Creates the error for a session that is no longer in the trash.
    pub(crate) fn restored(message: String) -> Self {
        Self::new(ErrorKind::NotFound, message).with_detail(Detail::Restored)
    }

    /// Creates the error for a session that is neither pushed nor pulled.
    pub(crate) fn refused(kind: ErrorKind, message: String, refusal: Refusal) -> Self {
        Self::new(kind, message).with_detail(Detail::Refused(refusal))
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

    pub(crate) fn with_reason(mut self, reason: Reason) -> Self {
        self.0.reason = Some(reason);
        self
    }

    /// Returns the kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what was attempted and the reason, without the path and line that
    /// [`Display`](fmt::Display) adds.
    pub fn message(&self) -> String {
        match &self.0.reason {
            Some(reason) => format!("{}: {reason}", self.0.message),
            None => self.0.message.clone(),
        }
    }

    /// Returns the file or directory that the error is about, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the line of that file, counted from 1, if known.
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// Returns the byte of that file or of the input, counted from 0, if known.
    pub fn byte(&self) -> Option<u64> {
        self.0.byte
    }

    /// Returns what exactly is wrong with a record or message.
    pub fn reason(&self) -> Option<&Reason> {
        self.0.reason.as_ref()
    }

    /// Returns the holder of the lock, for [`ErrorKind::Locked`].
    ///
    /// `None` if the holder left no readable note.
    pub fn holder(&self) -> Option<&Holder> {
        match &self.0.detail {
            Detail::Holder(holder) => holder.as_ref(),
            _ => None,
        }
    }

    /// Returns the actual last seq, for [`ErrorKind::Conflict`], and for [`ErrorKind::Away`]
    /// if something was written here.
    pub fn head(&self) -> Option<u64> {
        match self.0.detail {
            Detail::Head(seq) => Some(seq),
            _ => None,
        }
    }

    /// Returns the sessions that a reference matches, for [`ErrorKind::Ambiguous`].
    pub fn candidates(&self) -> &[SessionId] {
        match &self.0.detail {
            Detail::Candidates(ids) => ids,
            _ => &[],
        }
    }

    /// Returns the points that a text matches, for [`ErrorKind::Ambiguous`], or the
    /// nearest ones, for [`ErrorKind::NotFound`].
    pub fn points(&self) -> &[String] {
        match &self.0.detail {
            Detail::Points(points) => points,
            _ => &[],
        }
    }

    /// Returns what would have been stored, for [`ErrorKind::TooMuch`].
    #[cfg(feature = "snapshots")]
    pub fn too_much(&self) -> Option<&TooMuch> {
        match &self.0.detail {
            Detail::TooMuch(too_much) => Some(too_much),
            _ => None,
        }
    }

    /// Returns the files and directories that cannot be read because the store's data is
    /// damaged, relative to the workspace, for [`ErrorKind::Corrupt`]; the workspace itself
    /// is `.`. Everything else of the snapshot can be read.
    #[cfg(feature = "snapshots")]
    pub fn damaged(&self) -> &[PathBuf] {
        match &self.0.detail {
            Detail::Damaged(paths) => paths,
            _ => &[],
        }
    }

    /// Returns the session if it is in the trash, for [`ErrorKind::NotFound`]. It can be
    /// restored.
    pub fn in_trash(&self) -> Option<&SessionId> {
        match &self.0.detail {
            Detail::Deleted(id) => Some(id),
            _ => None,
        }
    }

    /// Returns the session if it was purged, for [`ErrorKind::NotFound`].
    pub fn was_purged(&self) -> Option<&SessionId> {
        match &self.0.detail {
            Detail::Purged(id) => Some(id),
            _ => None,
        }
    }

    /// Returns why a session is neither pushed nor pulled, or not written to at a remote.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.0.detail {
            Detail::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns whether a session was not found because it was deleted, restored or purged
    /// since it was listed, which is not damage.
    pub fn is_moved(&self) -> bool {
        matches!(
            self.0.detail,
            Detail::Deleted(_) | Detail::Purged(_) | Detail::Restored
        )
    }

    /// Copies the error for another waiter of the same group commit.
    pub(crate) fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }
}

impl fmt::Display for Error {
    /// Writes the [message](Error::message) with the path and the line or byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message();
        f.write_str(&message)?;
        let Some(path) = self.path().map(|path| path.display().to_string()) else {
            return Ok(());
        };
        match (self.line(), self.byte()) {
            (Some(line), _) => write!(f, " (in {path}, line {line})"),
            (None, Some(byte)) => write!(f, " (in {path}, byte {byte})"),
            (None, None) if message.contains(&path) => Ok(()),
            (None, None) => write!(f, " (in {path})"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.0.kind);
        debug.field("message", &self.message());
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
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

impl Serialize for Error {
    /// Writes `{"kind","message","path","line","byte","causes"}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let causes: Vec<String> = self.0.source.iter().map(ToString::to_string).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind())?;
        map.serialize_entry("message", &self.message())?;
        map.serialize_entry("path", &self.path().map(Path::to_string_lossy))?;
        map.serialize_entry("line", &self.line())?;
        map.serialize_entry("byte", &self.byte())?;
        map.serialize_entry("causes", &causes)?;
        map.end()
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
    /// Bytes that are not a record.
    NotARecord,
    /// The last line is incomplete and does not end in a newline.
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
    /// The object has no `type`.
    MissingType,
    /// The object's `type` cannot be used here.
    UnsupportedType(String),
    /// A required field is missing.
    MissingField(&'static str),
    /// A field that is not allowed here.
    UnexpectedField(String),
    /// A field that occurs twice.
    RepeatedField(String),
    /// A field that is not what it must be, with a description of that.
    WrongField(&'static str, &'static str),
    /// A number that is out of range.
    OutOfRange(&'static str),
    /// Records are missing: this one does not follow the one before.
    Gap,
    /// The seq does not increase.
    OutOfOrder {
        /// The seq of this record.
        seq: u64,
        /// The seq of the record before it.
        after: u64,
    },
    /// The trail's opener cannot be read.
    BadOpener,
    /// The opener continues something that does not exist.
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
            Self::RepeatedField(name) => write!(f, "the field {} occurs twice", quoted(name)),
            Self::WrongField(name, must) => write!(f, "the field `{name}` must be {must}"),
            Self::OutOfRange(name) => write!(f, "the number in `{name}` is out of range"),
            Self::Gap => f.write_str("records are missing before this one"),
            Self::OutOfOrder { seq, after } => {
                write!(f, "record {seq} comes after record {after}")
            }
            Self::BadOpener => f.write_str("the trail's opener cannot be read"),
            Self::BrokenLink(what) => write!(f, "continues {what}, which does not exist"),
            Self::Loop => f.write_str("the openers form a cycle"),
            Self::LostPayload(hash) => write!(f, "the payload {hash} is lost or damaged"),
        }
    }
}

impl Serialize for Reason {
    /// Writes the text of the reason.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Quotes external text for a message: short, on one line, without control characters.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_prints_what_was_attempted_with_the_path_and_line() {
        let path = Path::new("/store/sessions/a/0000.jsonl");
        let error = Error::new(ErrorKind::Corrupt, "cannot read record 4")
            .with_reason(Reason::BadSum)
            .at_path(path);
        assert_eq!(error.message(), "cannot read record 4: checksum mismatch");
        assert_eq!(
            error.to_string(),
            "cannot read record 4: checksum mismatch (in /store/sessions/a/0000.jsonl)"
        );
        let error = error.at_byte(812);
        assert!(error.to_string().ends_with("0000.jsonl, byte 812)"));
        let error = error.at_line(Some(7));
        assert!(error.to_string().ends_with("0000.jsonl, line 7)"));
        let json = serde_json::to_value(&error).unwrap();
        assert_eq!(
            (&json["kind"], &json["line"]),
            (&"corrupt".into(), &7.into())
        );
        let named = Error::invalid("there is no /store").at_path(Path::new("/store"));
        assert_eq!(named.to_string(), "there is no /store");
    }
}
