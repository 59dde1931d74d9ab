//! Ages and sizes as people write them.

use std::time::Duration;

/// Parses an age: a whole number and a unit, `30d`, `12h`, `2w`.
pub(crate) fn read_age(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds: u64 = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "y" => 365 * 86_400,
        _ => {
            return Err(
                "must be a whole number followed by s, m, h, d, w or y, such as 30d".to_owned(),
            );
        }
    };
    let number: Option<u64> = number.parse().ok();
    let seconds = number.and_then(|number| number.checked_mul(seconds));
    let seconds = seconds.ok_or("must be a whole number followed by a unit, such as 30d")?;
    Ok(Duration::from_secs(seconds))
}

/// Parses a size: a whole number and a unit, `20G`, `500 MiB`, `2GB`. Units without `B` or
/// with `iB` are powers of 1024.
pub(crate) fn read_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit {
        "" | "B" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "T" | "TiB" => 1 << 40,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return Err("must be a whole number followed by K, M, G or T, such as 20G".to_owned()),
    };
    let number: Option<u64> = number.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| "must be a whole number followed by a unit, such as 20G".to_owned())
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    (number, unit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_read_as_people_write_them() {
        assert_eq!(read_age("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(read_age("2 w"), Ok(Duration::from_secs(14 * 86_400)));
        assert_eq!(read_age("0s"), Ok(Duration::ZERO));
        for wrong in [
            "",
            "30",
            "d",
            "-1d",
            "1.5d",
            "30 days ago",
            "99999999999999999999d",
        ] {
            assert!(read_age(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read_bytes("20G"), Ok(20 << 30));
        assert_eq!(read_bytes("500 MiB"), Ok(500 << 20));
        assert_eq!(read_bytes("2GB"), Ok(2_000_000_000));
        assert_eq!(read_bytes("4096"), Ok(4096));
        assert_eq!(read_bytes("256KiB"), Ok(256 << 10));
        for wrong in ["", "G", "-1G", "1.5G", "20 bananas", "99999999999T"] {
            assert!(read_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
