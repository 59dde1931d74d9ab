//! Text in styles, wrapped to a width.
//!
//! Columns are counted as a terminal does: wide characters take two, combining ones
//! none. A line breaks at spaces and between wide characters; a word that is wider than
//! the line is cut, unless it is an address that somebody may want to follow.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::clean;

/// A piece of text in one style, with nothing in it that could command a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) style: Style,
    pub(super) text: String,
}

impl Span {
    /// Makes a piece of text that came from anywhere.
    pub(super) fn new(style: Style, text: &str) -> Self {
        Self {
            style,
            text: clean(text).replace('\t', "    "),
        }
    }

    /// Makes a piece in no style.
    pub(super) fn plain(text: &str) -> Self {
        Self::new(Style::new(), text)
    }
}

/// Pieces that stand side by side.
pub(super) type Line = Vec<Span>;

/// Returns how many columns pieces take.
pub(super) fn width_of(line: &[Span]) -> usize {
    line.iter().map(|span| span.text.width()).sum()
}

/// Cuts pieces so that they take at most `width` columns, with a sign that they were.
pub(super) fn cut(line: &[Span], width: usize) -> Line {
    if width_of(line) <= width {
        return line.to_vec();
    }
    let mut room = width.saturating_sub(1);
    let mut kept = Line::new();
    for span in line {
        let mut text = String::new();
        for cluster in clusters(&span.text) {
            if cluster.width() > room {
                text.push('…');
                kept.push(Span {
                    style: span.style,
                    text,
                });
                return kept;
            }
            room -= cluster.width();
            text.push_str(cluster);
        }
        kept.push(Span {
            style: span.style,
            text,
        });
    }
    kept
}

/// Wraps pieces of text; newlines in them end a line. The spaces that a line begins with
/// stay, and those are put before what is wrapped of it, too.
pub(super) fn wrap(spans: &[Span], width: usize) -> Vec<Line> {
    let width = width.max(10);
    let mut wrapping = Wrapping::new(width);
    for word in words(spans) {
        match word {
            Word::Newline => wrapping.end_line(true),
            Word::Text { spaces, pieces } => wrapping.put(spaces, pieces),
        }
    }
    wrapping.end_line(true);
    wrapping.lines
}

/// Wraps a text of many lines that is no Markdown.
pub(super) fn wrap_plain(text: &str, style: Style, width: usize) -> Vec<Line> {
    wrap(&[Span::new(style, text.trim_end())], width)
}

struct Wrapping {
    width: usize,
    lines: Vec<Line>,
    line: Line,
    used: usize,
    /// What the lines that are wrapped begin with.
    hanging: usize,
    /// Whether the line has a word.
    begun: bool,
}

impl Wrapping {
    fn new(width: usize) -> Self {
        Self {
            width,
            lines: Vec::new(),
            line: Line::new(),
            used: 0,
            hanging: 0,
            begun: false,
        }
    }

    fn put(&mut self, spaces: usize, pieces: Line) {
        let wide = width_of(&pieces);
        // What fits in no line begins where it stands, if only a bit of it can.
        let is_cut = wide > self.width - self.hanging
            && self.used + spaces + 2 <= self.width
            && !is_address(&pieces);
        if !self.begun && self.used == 0 {
            // The first word of a source line says how deep it stands.
            self.hanging = spaces.min(self.width / 2);
            self.indent(self.hanging);
        } else if self.begun && self.used + spaces + wide > self.width && !is_cut {
            self.end_line(false);
            self.indent(self.hanging);
        } else if self.begun {
            self.push(Span::plain(&" ".repeat(spaces)));
        }
        self.begun = true;
        if self.used + wide <= self.width || is_address(&pieces) {
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

    /// Ends a line; `of_source` where the text itself does so.
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
    /// What cannot be broken, and the spaces before it.
    Text {
        spaces: usize,
        pieces: Line,
    },
}

/// Splits text into what a line may be broken between.
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

/// Returns whether a line may be broken between two characters where no space is: beside
/// a wide one, but not before what closes something.
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

/// Splits text into characters with what is drawn upon them.
fn clusters(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // Nearly all text is plain, and two plain characters never join.
        if let [first, second, ..] = rest.as_bytes()
            && first.is_ascii()
            && second.is_ascii()
        {
            let (cluster, after) = rest.split_at(1);
            rest = after;
            return Some(cluster);
        }
        let mut chars = rest.char_indices();
        let (_, first) = chars.next()?;
        let mut last = first;
        let mut end = rest.len();
        for (at, c) in chars {
            let joins = (c.width() == Some(0) && c != '\n')
                || last == '\u{200d}'
                || ('\u{1f3fb}'..='\u{1f3ff}').contains(&c);
            if !joins || first == '\n' {
                end = at;
                break;
            }
            last = c;
        }
        let (cluster, after) = rest.split_at(end);
        rest = after;
        Some(cluster)
    })
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
    fn no_line_is_wider_than_it_may_be_and_nothing_is_lost() {
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
    fn what_is_indented_stays_so_and_an_address_stays_whole() {
        let lines = wrapped("  one two three four\n\nfive", 12);
        assert_eq!(lines, ["  one two", "  three four", "", "five"]);
        let address = "https://example.org/a/very/long/address";
        assert_eq!(
            wrapped(&format!("see {address} now"), 12),
            ["see", address, "now"]
        );
    }

    #[test]
    fn what_is_cut_says_so() {
        let line = [Span::plain("one "), Span::plain("漢字漢字")];
        let text = |line: Line| line.into_iter().map(|span| span.text).collect::<String>();
        assert_eq!(text(cut(&line, 12)), "one 漢字漢字");
        assert_eq!(text(cut(&line, 8)), "one 漢…");
    }
}
