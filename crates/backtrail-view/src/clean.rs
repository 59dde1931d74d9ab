//! Text that is harmless to show.

use unicode_width::UnicodeWidthChar;

/// The columns between tab stops.
const TAB: usize = 4;

/// Returns a line of a file as it is shown: tabs as spaces, and nothing that a terminal would obey.
pub fn shown(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut column = 0;
    for c in line.chars() {
        let c = match c {
            '\t' => {
                let spaces = TAB - column % TAB;
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
                continue;
            }
            // It would make the sign before it wider than the sum of their widths.
            '\u{fe0f}' => continue,
            c if is_unsafe(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        out.push(c);
        column += c.width().unwrap_or(0);
    }
    out
}

/// Control characters, and those that reorder text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_file_reaches_the_terminal_with_its_escapes() {
        assert_eq!(shown("a\tb\t\tc"), "a   b       c");
        assert_eq!(
            shown("\x1b[31mred\u{202e}\r"),
            "\u{fffd}[31mred\u{fffd}\u{fffd}"
        );
    }
}
