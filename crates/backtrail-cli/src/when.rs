//! Moments as a person reads them, in the local time zone.

use std::time::Duration;

use backtrail::Timestamp;
use jiff::Zoned;
use jiff::tz::TimeZone;

/// Reads an age: a number of minutes, hours, days or weeks (`90m`, `12h`, `30d`, `4w`).
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "write it as a number and a unit: 90m, 12h, 30d or 4w".to_owned();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds: u64 = match unit {
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        "w" => 7 * 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let seconds = number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(seconds));
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

fn local(at: Timestamp) -> Option<Zoned> {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
    Some(at.to_zoned(TimeZone::system()))
}

/// Writes a day and a time.
pub(crate) fn full(at: Timestamp) -> String {
    match local(at) {
        Some(at) => at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => at.to_string(),
    }
}

/// Writes how one would say it today: `14:32`, `yesterday`, `Nov 9`, `2025-11-09`.
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
