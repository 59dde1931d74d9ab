//! Times for people, in the local time zone.

use std::time::Duration;

use backtrail::Timestamp;
use jiff::Zoned;
use jiff::tz::TimeZone;

fn local(at: Timestamp) -> Option<Zoned> {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
    Some(at.to_zoned(TimeZone::system()))
}

/// Returns when today began.
pub(crate) fn start_of_today() -> Option<Timestamp> {
    let start = Zoned::now().start_of_day().ok()?;
    Timestamp::from_millis(start.timestamp().as_millisecond())
}

/// Returns a day and a time.
pub(crate) fn full(at: Timestamp) -> String {
    formatted(at, "%Y-%m-%d %H:%M:%S")
}

/// Returns a day: `2026-11-15`.
pub(crate) fn day(at: Timestamp) -> String {
    formatted(at, "%Y-%m-%d")
}

/// Returns the time of a day: `14:32`.
pub(crate) fn time(at: Timestamp) -> String {
    formatted(at, "%H:%M")
}

fn formatted(at: Timestamp, format: &str) -> String {
    match local(at) {
        Some(at) => at.strftime(format).to_string(),
        None => at.to_string(),
    }
}

/// Returns a time as seen from today: `14:32`, `yesterday`, `Nov 9`, `2025-11-09`.
pub(crate) fn brief(at: Timestamp) -> String {
    let Some(at) = local(at) else {
        return at.to_string();
    };
    let today = Zoned::now().date();
    let day = at.date();
    if day == today {
        at.strftime("%H:%M").to_string()
    } else if day.tomorrow().is_ok_and(|next| next == today) {
        "yesterday".to_owned()
    } else if day.year() == today.year() {
        at.strftime("%b %-d").to_string()
    } else {
        at.strftime("%Y-%m-%d").to_string()
    }
}

/// Returns a day as a heading: `today`, `yesterday`, `Mon, Nov 9`, `2025-11-09`.
pub(crate) fn heading(at: Timestamp) -> String {
    let Some(at) = local(at) else {
        return at.to_string();
    };
    let today = Zoned::now().date();
    let day = at.date();
    if day == today {
        "today".to_owned()
    } else if day.tomorrow().is_ok_and(|next| next == today) {
        "yesterday".to_owned()
    } else if day.year() == today.year() {
        at.strftime("%a, %b %-d").to_string()
    } else {
        at.strftime("%Y-%m-%d").to_string()
    }
}

/// Returns a duration: `340 ms`, `1.4 s`, `31 s`, `2 min 31 s`, `3 h 5 min`.
pub(crate) fn duration(took: Duration) -> String {
    let ms = took.as_millis();
    let tenths = (ms + 50) / 100;
    let seconds = (ms + 500) / 1000;
    match seconds {
        _ if ms < 1000 => format!("{ms} ms"),
        _ if tenths < 100 => format!("{}.{} s", tenths / 10, tenths % 10),
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Returns how long ago a time of the last hour was: `2 min ago`; other times as `brief`.
pub(crate) fn ago(at: Timestamp) -> String {
    let now = Timestamp::from(std::time::SystemTime::now());
    match (now.as_millis() - at.as_millis()) / 1000 {
        0..60 => "just now".to_owned(),
        seconds @ 60..3600 => format!("{} min ago", seconds / 60),
        _ => brief(at),
    }
}

/// Says what a time is that is neither in an agent's lines nor in its ids.
pub(crate) const FROM_FILE: &str = "the time of the imported file, which has no times itself";

/// Marks a time that is approximate.
pub(crate) fn about(time: String, is_approximate: bool) -> String {
    match is_approximate {
        true => format!("~{time}"),
        false => time,
    }
}

/// Returns `November 2026` for `2026-11`.
pub(crate) fn month(month: &str) -> String {
    let first: Option<jiff::civil::Date> = format!("{month}-01").parse().ok();
    match first {
        Some(first) => first.strftime("%B %Y").to_string(),
        None => month.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let cases = [
            (0, "0 ms"),
            (340, "340 ms"),
            (999, "999 ms"),
            (1_000, "1.0 s"),
            (1_449, "1.4 s"),
            (9_940, "9.9 s"),
            (9_960, "10 s"),
            (59_400, "59 s"),
            (59_600, "1 min 0 s"),
            (151_000, "2 min 31 s"),
            (3_599_600, "1 h 0 min"),
            (11_100_000, "3 h 5 min"),
            (360_000_000, "100 h 0 min"),
        ];
        for (ms, words) in cases {
            assert_eq!(duration(Duration::from_millis(ms)), words, "{ms} ms");
        }
    }
}
