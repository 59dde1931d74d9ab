//! Timestamps and the clock.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, ErrorKind};

/// A moment in time, shown and stored as RFC 3339 in UTC.
///
/// Milliseconds are always written, finer digits only if there are any.
///
/// ```
/// let at: backtrail::Timestamp = "2026-11-15T09:00:00+01:00".parse()?;
/// assert_eq!(at.to_string(), "2026-11-15T08:00:00.000Z");
/// assert_eq!(at.as_millis(), 1_794_729_600_000);
/// # Ok::<(), backtrail::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// The earliest representable moment.
    pub(crate) const MIN: Self = Self(jiff::Timestamp::MIN);

    /// Returns the moment this many milliseconds after the start of 1970, if it is
    /// representable.
    pub fn from_millis(millis: i64) -> Option<Self> {
        jiff::Timestamp::from_millisecond(millis).ok().map(Self)
    }

    /// Writes the same text as `Display`, but faster.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        const MILLIS: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
        const EXACT: DateTimePrinter = DateTimePrinter::new();
        let printer = if self.0.subsec_nanosecond() % 1_000_000 == 0 {
            &MILLIS
        } else {
            &EXACT
        };
        printer
            .print_timestamp(&self.0, out)
            .expect("writing to memory does not fail");
    }

    /// Returns the milliseconds since the start of 1970.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }
}

impl From<SystemTime> for Timestamp {
    /// Converts a system time. Times outside the years -9999 to 9999 become the nearest
    /// one inside.
    fn from(time: SystemTime) -> Self {
        let clamped = jiff::Timestamp::try_from(time).unwrap_or(if time < UNIX_EPOCH {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        });
        Self(clamped)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_nanosecond() % 1_000_000 == 0 {
            write!(f, "{:.3}", self.0)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse().map(Self).map_err(|_| {
            Error::new(
                ErrorKind::Invalid,
                format!(
                    "{} is not a time; write it like 2026-11-15T08:00:00.000Z",
                    crate::error::quoted(text)
                ),
            )
        })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A source of the current time.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The system's clock, to the millisecond: the default [`Clock`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Timestamp::from_millis(millis).unwrap_or_else(|| SystemTime::now().into())
    }
}
