//! Moments as people write them.

use std::fmt;
use std::str::FromStr;

use backtrail::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, ToSpan, Zoned};

/// A moment as typed: a day or a month has a start and an end, anything else is an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    typed: String,
    pub(super) start: Timestamp,
    /// The first moment after it.
    pub(super) end: Timestamp,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

/// The error for a wrong moment.
const EXAMPLES: &str = "must be a time such as 2026-11-01, 2026-11, \"2026-11-01 14:30\", 14:30, today, \
                        yesterday, 3d, 2w or \"3 days ago\"";

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let typed = text.trim();
        let (start, end) = read(typed, &Zoned::now()).ok_or(EXAMPLES)?;
        let typed = typed.to_owned();
        let moment = timestamp(&start).zip(timestamp(&end));
        let (start, end) = moment.ok_or(EXAMPLES)?;
        Ok(Self { typed, start, end })
    }
}

fn timestamp(at: &Zoned) -> Option<Timestamp> {
    Timestamp::from_millis(at.timestamp().as_millisecond())
}

/// Parses a moment; returns its start and its end.
fn read(text: &str, now: &Zoned) -> Option<(Zoned, Zoned)> {
    let lower = text.to_lowercase();
    let day = |date: Date| span(now, date, 1.day());
    match lower.as_str() {
        "now" => return Some(instant(now.clone())),
        "today" => return day(now.date()),
        "yesterday" => return day(now.date().yesterday().ok()?),
        _ => {}
    }
    ago(&lower, now)
        .or_else(|| month(&lower, now))
        .or_else(|| day(whole::<Date>(text, 10)?))
        .or_else(|| time_of_day(text, now))
        .or_else(|| date_and_time(text, now))
}

/// Parses `3d`, `3 days`, `3 days ago`.
fn ago(text: &str, now: &Zoned) -> Option<(Zoned, Zoned)> {
    let text = text.strip_suffix("ago").unwrap_or(text).trim();
    // A time of day is not a span, and a minus sign is a typo.
    let span: Span = text.parse().ok()?;
    if text.starts_with(|c: char| !c.is_ascii_digit()) || text.contains(':') {
        return None;
    }
    Some(instant(now.checked_sub(span).ok()?))
}

/// Parses `2026-11`.
fn month(text: &str, now: &Zoned) -> Option<(Zoned, Zoned)> {
    let (year, month) = text.split_once('-')?;
    if (year.len(), month.len()) != (4, 2) {
        return None;
    }
    let first = Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()?;
    span(now, first, 1.month())
}

/// Parses `14:30`, which is today's.
fn time_of_day(text: &str, now: &Zoned) -> Option<(Zoned, Zoned)> {
    let time = whole::<Time>(text, 8).filter(|_| text.contains(':'))?;
    let at = now
        .date()
        .to_datetime(time)
        .to_zoned(now.time_zone().clone());
    Some(instant(at.ok()?))
}

/// Parses `2026-11-01 14:30`, here or with the offset that is written.
fn date_and_time(text: &str, now: &Zoned) -> Option<(Zoned, Zoned)> {
    if !text.contains(':') {
        return None;
    }
    let zone = now.time_zone();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(instant(at.to_zoned(zone.clone())));
    }
    let at: DateTime = text.parse().ok()?;
    Some(instant(at.to_zoned(zone.clone()).ok()?))
}

/// Parses a text of limited length: the parsers accept more than we want.
fn whole<T: FromStr>(text: &str, longest: usize) -> Option<T> {
    text.parse().ok().filter(|_| text.len() <= longest)
}

/// Returns the start and end of a day or a month.
fn span(now: &Zoned, first: Date, length: Span) -> Option<(Zoned, Zoned)> {
    let zone = now.time_zone();
    let start = first.to_zoned(zone.clone()).ok()?;
    let after = first
        .checked_add(length)
        .ok()?
        .to_zoned(zone.clone())
        .ok()?;
    Some((start, after))
}

/// Returns an instant; it ends one millisecond later, so that --until includes it.
fn instant(at: Zoned) -> (Zoned, Zoned) {
    let after = at
        .checked_add(1.millisecond())
        .unwrap_or_else(|_| at.clone());
    (at, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<(String, String)> {
        let now: Zoned = "2026-11-16T09:30:00+01:00[Europe/Berlin]"
            .parse()
            .expect("a time");
        let words = |at: Zoned| at.strftime("%Y-%m-%d %H:%M:%S").to_string();
        read(text, &now).map(|(start, end)| (words(start), words(end)))
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        for (text, start, end) in [
            ("today", "2026-11-16 00:00:00", "2026-11-17 00:00:00"),
            ("Yesterday", "2026-11-15 00:00:00", "2026-11-16 00:00:00"),
            ("2026-11-01", "2026-11-01 00:00:00", "2026-11-02 00:00:00"),
            ("2026-02", "2026-02-01 00:00:00", "2026-03-01 00:00:00"),
            // The day on which the clocks go back has 25 hours.
            ("2026-10-25", "2026-10-25 00:00:00", "2026-10-26 00:00:00"),
            ("now", "2026-11-16 09:30:00", "2026-11-16 09:30:00"),
            ("14:05", "2026-11-16 14:05:00", "2026-11-16 14:05:00"),
            ("14:05:09", "2026-11-16 14:05:09", "2026-11-16 14:05:09"),
            ("3d", "2026-11-13 09:30:00", "2026-11-13 09:30:00"),
            ("3 days", "2026-11-13 09:30:00", "2026-11-13 09:30:00"),
            ("3 Days ago", "2026-11-13 09:30:00", "2026-11-13 09:30:00"),
            ("2w", "2026-11-02 09:30:00", "2026-11-02 09:30:00"),
            ("90 min", "2026-11-16 08:00:00", "2026-11-16 08:00:00"),
            ("1 month ago", "2026-10-16 09:30:00", "2026-10-16 09:30:00"),
            ("1y", "2025-11-16 09:30:00", "2025-11-16 09:30:00"),
            (
                "2026-11-01 14:30",
                "2026-11-01 14:30:00",
                "2026-11-01 14:30:00",
            ),
            (
                "2026-11-01T14:30:05",
                "2026-11-01 14:30:05",
                "2026-11-01 14:30:05",
            ),
            (
                "2026-11-01T12:00:00Z",
                "2026-11-01 13:00:00",
                "2026-11-01 13:00:00",
            ),
            (
                "2026-11-01T12:00:00+09:00",
                "2026-11-01 04:00:00",
                "2026-11-01 04:00:00",
            ),
        ] {
            assert_eq!(at(text), Some((start.to_owned(), end.to_owned())), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "soon",
            "3",
            "d",
            "-3d",
            "1.5d",
            "3 bananas",
            "2026-13-01",
            "2026-11-31",
            "2026-13",
            "20261101T",
            "25:00",
            "14:60",
            "1430",
            "99999999999999999999d",
            "9223372036854775807y",
            "2026-11-01 25:00",
            "\u{1b}[31m",
            "３d",
        ] {
            assert_eq!(at(text), None, "{text:?}");
        }
    }
}
