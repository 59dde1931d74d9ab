//! Points: the names of moments.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result, quoted};
use crate::ids::{CheckpointId, SessionId};

/// The name of a moment in a workspace.
///
/// As text: `last` (the newest checkpoint), `last~2` (before the last two turns or
/// runs), `REF:SEQ` (a record of a session; `:SEQ` in the newest one here), the id
/// of a checkpoint or record or its first four or more characters, or a label.
///
/// ```
/// use backtrail::Point;
/// assert_eq!("last~2".parse::<Point>()?, Point::turns_back(2));
/// assert!("~2".parse::<Point>().is_err());
/// # Ok::<(), backtrail::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Point(pub(super) Named);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Named {
    Last,
    TurnsBack(u64),
    /// A record of a session; without a reference, of the newest one here.
    Record(Option<String>, u64),
    Checkpoint(CheckpointId),
    Label(String),
    /// The beginning of an id, or a label.
    Text(String),
}

const LAST: &str = "last";

impl Point {
    /// The newest checkpoint.
    pub fn last() -> Self {
        Self(Named::Last)
    }

    /// Before the last `count` turns or runs of any session.
    pub fn turns_back(count: u64) -> Self {
        Self(match count {
            0 => Named::Last,
            count => Named::TurnsBack(count),
        })
    }

    /// A record of a session: the newest checkpoint at or before it.
    pub fn record(session: &SessionId, seq: u64) -> Self {
        Self(Named::Record(Some(session.to_string()), seq))
    }

    /// A checkpoint.
    pub fn checkpoint(id: CheckpointId) -> Self {
        Self(Named::Checkpoint(id))
    }

    /// The newest checkpoint with a label.
    pub fn label(label: impl Into<String>) -> Self {
        Self(Named::Label(label.into()))
    }
}

impl FromStr for Point {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::invalid("a point must not be empty; try last"));
        }
        if text.starts_with(['~', '#', '-']) {
            let what = "is not a point: points do not begin with ~, # or -; last~1 is before the last turn or run";
            return Err(Error::invalid(format!("{} {what}", quoted(text))));
        }
        if text == LAST {
            return Ok(Self::last());
        }
        if let Some(count) = text.strip_prefix("last~") {
            let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
            // A number that is too large exceeds the number of turns.
            let number = count.parse().or(digits.then_some(u64::MAX).ok_or(()));
            return number.map(Self::turns_back).map_err(|()| {
                let what = "needs a number after last~, as in last~1";
                Error::invalid(format!("the point {} {what}", quoted(text)))
            });
        }
        if let Some((reference, seq)) = split_record(text) {
            let reference = (!reference.is_empty()).then(|| reference.to_owned());
            return Ok(Self(Named::Record(reference, seq)));
        }
        Ok(Self(Named::Text(text.to_owned())))
    }
}

/// Splits `REF:SEQ`.
fn split_record(text: &str) -> Option<(&str, u64)> {
    let (reference, seq) = text.rsplit_once(':')?;
    let digits = !seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| Some((reference, seq.parse().ok()?)))?
}

/// Returns the reason why a text cannot be a label, if so: it must not be another kind of point.
pub(super) fn reserved(label: &str) -> Option<&'static str> {
    match label.parse() {
        Ok(Point(Named::Text(_))) => None,
        Ok(_) => Some("is reserved; choose another label"),
        Err(_) => Some("is not allowed; start it with a letter or a digit"),
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Named::Last => f.write_str(LAST),
            Named::TurnsBack(count) => write!(f, "{LAST}~{count}"),
            Named::Record(reference, seq) => {
                write!(f, "{}:{seq}", reference.as_deref().unwrap_or_default())
            }
            Named::Checkpoint(id) => write!(f, "{id}"),
            Named::Label(text) | Named::Text(text) => f.write_str(text),
        }
    }
}
