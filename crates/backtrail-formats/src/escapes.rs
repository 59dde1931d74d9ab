//! Terminal escapes in any text.

/// Returns the length of the terminal escape at the beginning of a text that starts with the
/// escape character.
pub fn escape_len(text: &str) -> usize {
    let rest = text.get(1..).unwrap_or_default();
    let end = match rest.chars().next() {
        // Parameters, then one final character.
        Some('[') => rest
            .char_indices()
            .take(LONGEST)
            .find(|(_, c)| ('\u{40}'..='\u{7e}').contains(c) && *c != '[')
            .map(|(at, _)| at + 1),
        Some(']' | 'P' | '_' | '^' | 'X') => Some(string_len(rest)),
        Some(c) => Some(c.len_utf8()),
        None => None,
    };
    1 + end.unwrap_or(0)
}

/// The longest control sequence.
const LONGEST: usize = 64;

/// Returns the length of a string that ends with the bell or the string terminator.
fn string_len(text: &str) -> usize {
    let ends = memchr::memchr2_iter(0x07, 0x1b, text.as_bytes());
    let mut ends = ends.filter_map(|at| match &text.as_bytes()[at..] {
        [0x07, ..] => Some(at + 1),
        [_, b'\\', ..] => Some(at + 2),
        _ => None,
    });
    ends.next().unwrap_or(text.len())
}
