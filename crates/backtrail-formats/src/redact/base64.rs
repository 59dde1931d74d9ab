//! Base64 within a text.

/// Decodes Base64, of either alphabet, with or without padding; `None` if it is not that.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(out)
}

/// Decodes `user:password`; `None` if it is something else.
pub(super) fn decode_login(text: &str) -> Option<String> {
    /// The shortest and the longest.
    const LENGTHS: std::ops::RangeInclusive<usize> = 8..=4096;
    if !LENGTHS.contains(&text.len()) {
        return None;
    }
    let login = String::from_utf8(decode(text)?).ok()?;
    let is_plain = !login.contains(|c: char| c.is_control());
    (is_plain && login.contains(':')).then_some(login)
}
