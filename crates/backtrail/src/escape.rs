//! Writes JSON string literals quickly.
//!
//! Most of a session is text, and checking it byte by byte would be a large part of the
//! cost of an append. This checks eight bytes at once and writes the same as serde_json.

/// Writes `text` as a JSON string literal.
pub(crate) fn write_str(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len() + rest.len() / 8 + 2);
    out.push(b'"');
    loop {
        let plain = plain_len(rest);
        out.extend_from_slice(&rest[..plain]);
        let Some((&byte, after)) = rest[plain..].split_first() else {
            break;
        };
        write_escape(out, byte);
        rest = after;
    }
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\t' => b't',
        b'\r' => b'r',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Returns the number of bytes before the first that must be escaped.
fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = ONES << 7;
    let (words, tail) = bytes.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // Sets the top bit of each byte below 0x20, each quote and each backslash. A
        // borrow can only mark bytes after the first correctly marked one.
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = word ^ (ONES * u64::from(b'"'));
        let quote = quote.wrapping_sub(ONES) & !quote;
        let slash = word ^ (ONES * u64::from(b'\\'));
        let slash = slash.wrapping_sub(ONES) & !slash;
        let marked = (control | quote | slash) & TOPS;
        if marked != 0 {
            return n * 8 + (marked.trailing_zeros() / 8) as usize;
        }
    }
    let must_escape = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let in_tail = tail.iter().position(must_escape);
    words.len() * 8 + in_tail.unwrap_or(tail.len())
}

#[cfg(test)]
mod tests {
    use super::write_str;

    #[test]
    fn string_literals_are_those_of_serde_json() {
        let all: String = (0..0x180_u32).filter_map(char::from_u32).collect();
        for from in 0..all.len() {
            for len in [0, 1, 7, 8, 9, 40] {
                let Some(text) = all.get(from..(from + len).min(all.len())) else {
                    continue;
                };
                let mut ours = Vec::new();
                write_str(&mut ours, text);
                assert_eq!(ours, serde_json::to_vec(text).unwrap(), "{text:?}");
            }
        }
    }
}
