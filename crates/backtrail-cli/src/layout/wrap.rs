//! Text wrapped to a width.
//!
//! A line breaks at spaces and between wide characters.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::span::{Line, Span, clusters, styled, width_of};

/// What becomes of a word that is wider than a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LongWords {
    /// It is cut, unless it is an address that somebody may want to open.
    Cut,
    /// It stays whole, so that it can be pasted.
    Keep,
}

/// Wraps spans; newlines in them end a line. The spaces at the start of a line indent what
/// is wrapped of it, too.
pub(crate) fn wrap(spans: &[Span], width: usize) -> Vec<Line> {
    wrapped(words(spans), width.max(4), LongWords::Cut)
}

/// Wraps a text of many lines in one style.
pub(crate) fn wrap_plain(text: &str, style: Style, width: usize) -> Vec<Line> {
    wrap(&[Span::new(style, text.trim_end())], width)
}

/// Wraps words that are never broken, whatever is in them.
pub(crate) fn wrap_words(words: &[Line], width: usize) -> Vec<Line> {
    let word = |(n, word): (usize, &Line)| Word::Text {
        spaces: usize::from(n > 0),
        pieces: word.clone(),
    };
    let words = words.iter().enumerate().map(word).collect();
    wrapped(words, width, LongWords::Keep)
}

/// Wraps a clean text that begins at column `indent`; the lines after the first are indented
/// as far. Long words stay whole. Without a width nothing is wrapped.
pub(crate) fn hanging(indent: usize, text: &str, width: Option<usize>) -> String {
    /// With less room than this, wrapping only makes it worse.
    const ROOM: usize = 20;
    let Some(room) = width.and_then(|width| width.checked_sub(indent)) else {
        return text.to_owned();
    };
    let words = words(&[Span::plain(text)]);
    let lines = wrapped(words, room.max(ROOM), LongWords::Keep);
    let lines: Vec<String> = lines.iter().map(|line| styled(line)).collect();
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

fn wrapped(words: Vec<Word>, width: usize, long: LongWords) -> Vec<Line> {
    let mut wrapping = Wrapping::new(width, long);
    for word in words {
        match word {
            Word::Newline => wrapping.end_line(true),
            Word::Text { spaces, pieces } => wrapping.put(spaces, pieces),
        }
    }
    wrapping.end_line(true);
    wrapping.lines
}

struct Wrapping {
    width: usize,
    long: LongWords,
    lines: Vec<Line>,
    line: Line,
    used: usize,
    /// The indent of the lines that are wrapped.
    hanging: usize,
    /// Whether the line has a word.
    begun: bool,
}

impl Wrapping {
    fn new(width: usize, long: LongWords) -> Self {
        Self {
            width,
            long,
            lines: Vec::new(),
            line: Line::new(),
            used: 0,
            hanging: 0,
            begun: false,
        }
    }

    fn put(&mut self, spaces: usize, pieces: Line) {
        let wide = width_of(&pieces);
        let is_whole = self.long == LongWords::Keep || is_address(&pieces);
        // A word that fits in no line begins on this one, if there is room for a bit of it.
        let is_cut =
            wide > self.width - self.hanging && self.used + spaces + 2 <= self.width && !is_whole;
        if !self.begun && self.used == 0 {
            // The first word of a source line sets the indent.
            self.hanging = spaces.min(self.width / 2);
            self.indent(self.hanging);
        } else if self.begun && self.used + spaces + wide > self.width && !is_cut {
            self.end_line(false);
            self.indent(self.hanging);
        } else if self.begun {
            self.push(Span::plain(&" ".repeat(spaces)));
        }
        self.begun = true;
        if self.used + wide <= self.width || is_whole {
            pieces.into_iter().for_each(|piece| self.push(piece));
            return;
        }
        for piece in pieces {
            for cluster in clusters(&piece.text) {
                if self.used + cluster.width() > self.width {
                    self.end_line(false);
                    self.indent(self.hanging);
                    self.begun = true;
                }
                self.push(Span {
                    style: piece.style,
                    text: cluster.to_owned(),
                });
            }
        }
    }

    fn indent(&mut self, columns: usize) {
        if columns > 0 {
            self.push(Span::plain(&" ".repeat(columns)));
        }
    }

    fn push(&mut self, span: Span) {
        self.used += span.text.width();
        match self.line.last_mut() {
            Some(last) if last.style == span.style => last.text.push_str(&span.text),
            _ if span.text.is_empty() => {}
            _ => self.line.push(span),
        }
    }

    /// Ends a line; `of_source` if the text has a newline there.
    fn end_line(&mut self, of_source: bool) {
        self.lines.push(std::mem::take(&mut self.line));
        self.used = 0;
        self.begun = false;
        if of_source {
            self.hanging = 0;
        }
    }
}

enum Word {
    Newline,
    /// Text that is not broken, and the spaces before it.
    Text {
        spaces: usize,
        pieces: Line,
    },
}

/// Splits text where a line may be broken.
fn words(spans: &[Span]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut spaces = 0;
    let mut pieces = Line::new();
    let end = |spaces: &mut usize, pieces: &mut Line, words: &mut Vec<Word>| {
        if !pieces.is_empty() {
            words.push(Word::Text {
                spaces: std::mem::take(spaces),
                pieces: std::mem::take(pieces),
            });
        }
    };
    let mut before = "";
    for span in spans {
        for cluster in clusters(&span.text) {
            match cluster {
                "\n" => {
                    end(&mut spaces, &mut pieces, &mut words);
                    spaces = 0;
                    words.push(Word::Newline);
                }
                " " => {
                    end(&mut spaces, &mut pieces, &mut words);
                    spaces += 1;
                }
                cluster => {
                    if may_break(before, cluster) {
                        end(&mut spaces, &mut pieces, &mut words);
                    }
                    match pieces.last_mut() {
                        Some(last) if last.style == span.style => last.text.push_str(cluster),
                        _ => pieces.push(Span {
                            style: span.style,
                            text: cluster.to_owned(),
                        }),
                    }
                }
            }
            before = cluster;
        }
    }
    end(&mut spaces, &mut pieces, &mut words);
    words
}

/// Returns whether a line may be broken between two characters without a space: beside a
/// wide one, but not before a closing mark.
fn may_break(before: &str, after: &str) -> bool {
    const CLOSING: &str = "、。，．：；！？）」』】〉》〕’”)]}.,:;!?…";
    const OPENING: &str = "（「『【〈《〔‘“([{";
    if before.is_ascii() && after.is_ascii() {
        return false;
    }
    let is_wide = |cluster: &str| cluster.width() >= 2;
    (is_wide(before) || is_wide(after))
        && !CLOSING.contains(after)
        && (before.is_empty() || !OPENING.contains(before))
}

fn is_address(pieces: &[Span]) -> bool {
    pieces.iter().any(|piece| piece.text.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        let lines = wrap(&[Span::plain(text)], width);
        let text = |line: Line| line.into_iter().map(|span| span.text).collect();
        lines.into_iter().map(text).collect()
    }

    #[test]
    fn no_line_is_too_wide_and_nothing_is_lost() {
        let text = "fix the rounding of refunds, please — and averyveryverylongwordindeed too";
        for width in 10..80 {
            let lines = wrapped(text, width);
            assert!(lines.iter().all(|line| line.width() <= width), "{lines:#?}");
            let all: String = lines.concat().replace(' ', "");
            assert_eq!(all, text.replace(' ', ""));
        }
    }

    #[test]
    fn wide_characters_break_anywhere_and_combining_ones_never() {
        let lines = wrapped("漢字仮名交じり文。漢字仮名交じり文。", 10);
        assert!(lines.iter().all(|line| line.width() <= 10), "{lines:#?}");
        assert!(
            lines.iter().all(|line| !line.starts_with('。')),
            "{lines:#?}"
        );
        let accents = "e\u{301}".repeat(30);
        let lines = wrapped(&accents, 12);
        assert!(lines.iter().all(|line| line.starts_with('e')), "{lines:#?}");
        assert_eq!(lines[0].width(), 12);
        let family = "👨\u{200d}👩\u{200d}👧".repeat(8);
        let lines = wrapped(&family, 12);
        assert!(
            lines.iter().all(|line| line.starts_with('👨')),
            "{lines:#?}"
        );
    }

    #[test]
    fn indents_stay_and_an_address_stays_whole() {
        let lines = wrapped("  one two three four\n\nfive", 12);
        assert_eq!(lines, ["  one two", "  three four", "", "five"]);
        let address = "https://example.org/a/very/long/address";
        assert_eq!(
            wrapped(&format!("see {address} now"), 12),
            ["see", address, "now"]
        );
    }

    #[test]
    fn long_words_stay_whole_where_they_may_be_pasted() {
        let text = "others may read 漢字 and much more of it";
        assert_eq!(hanging(2, text, None), text);
        assert_eq!(hanging(4, text, Some(200)), text);
        let wrapped = hanging(4, text, Some(27));
        assert_eq!(wrapped, "others may read 漢字\n    and much more of it");
        let word = "a-word-that-is-far-too-long-for-it";
        assert_eq!(
            hanging(0, &format!("{word} b"), Some(20)),
            format!("{word}\nb")
        );
        let words = ["a b,".to_owned(), "c d".to_owned()].map(|it| vec![Span::plain(&it)]);
        let lines = wrap_words(&words, 6);
        assert_eq!(
            lines.iter().map(|it| styled(it)).collect::<Vec<_>>(),
            ["a b,", "c d"]
        );
    }
}
