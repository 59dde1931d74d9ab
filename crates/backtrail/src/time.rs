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

    /// Returns the moment that an id contains, if it does: a UUID of version 7 begins with one,
    /// and other ids have milliseconds in them (`session-1794726326112-1`).
    ///
    /// Numbers that are not between the years 2000 and 2100 are something else.
    pub fn in_id(id: &str) -> Option<Self> {
        in_uuids(id).or_else(|| in_numbers(id)).filter(|at| {
            const YEAR_2000: i64 = 946_684_800_000;
            const YEAR_2100: i64 = 4_102_444_800_000;
            (YEAR_2000..YEAR_2100).contains(&at.as_millis())
        })
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

/// Returns the time of the first UUID of version 7 in a text.
fn in_uuids(text: &str) -> Option<Timestamp> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    groups.windows(LENGTHS.len()).find_map(|groups| {
        let is_group = |(group, length): (&&str, usize)| {
            group.len() == length && group.bytes().all(|b| b.is_ascii_hexdigit())
        };
        let is_uuid = groups.iter().zip(LENGTHS).all(is_group);
        let is_version_7 = groups[2].starts_with('7') && groups[3].starts_with(is_variant);
        if !is_uuid || !is_version_7 {
            return None;
        }
        let millis = i64::from_str_radix(&[groups[0], groups[1]].concat(), 16);
        Timestamp::from_millis(millis.ok()?)
    })
}

/// Returns whether this is the first digit of a UUID's fourth group.
fn is_variant(digit: char) -> bool {
    matches!(digit.to_ascii_lowercase(), '8' | '9' | 'a' | 'b')
}

/// Returns the time of the first number of 13 digits that is not part of a hash.
fn in_numbers(text: &str) -> Option<Timestamp> {
    const DIGITS: usize = 13;
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .find_map(|word| {
            let number = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let before = &word[..word.len() - number.len()];
            let may_be_hash = before.bytes().all(|b| b.is_ascii_hexdigit()) && !before.is_empty();
            let is_time = number.len() == DIGITS && !may_be_hash;
            is_time.then(|| number.parse().ok()).flatten()
        })
        .and_then(Timestamp::from_millis)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_time_if_it_says_so_and_a_hash_has_none() {
        let millis = |id| Timestamp::in_id(id).map(Timestamp::as_millis);
        let at = Some(1_794_726_326_112);
        for id in [
            "session-1794726326112-1",
            "1794726326112",
            "session1794726326112",
            "ses_1794726326112.jsonl",
            "/a/b/session-1794726326112",
            // 0x01a1de066f60 milliseconds
            "01a1de06-6f60-7000-8000-000000000000",
            "rollout-2026-11-15T08-00-00-01A1DE06-6F60-7abc-bdef-0123456789ab",
        ] {
            assert_eq!(millis(id), at, "{id}");
        }
        for id in [
            "",
            "session-1",
            "session-17947263261120",
            "session-179472632611",
            "session-0000000000001",
            "session-9999999999999",
            "a1794726326112",
            "deadbeef1794726326112",
            "1794726326112f",
            "17947263-2611-4000-8000-000000000000",
            "01a1de06-6f60-4000-8000-000000000000",
            "01a1de06-6f60-7000-0000-000000000000",
            "01a1de06-6f60-7000-8000-00000000000",
            "01a1de066f6070008000000000000000",
            "session-１７９４７２６３２６１１２",
        ] {
            assert_eq!(millis(id), None, "{id}");
        }
    }
}
