//! The lines of a difference as they are shown: in the colours of their language, and with the
//! words that changed.

use crate::clean::shown;
use crate::highlight::{Highlighter, Language};
use crate::library::{DiffKind, FileDiff, Line, Palette, Span};
use crate::word_diff::{Changed, changed_words};

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLine {
    /// What it is.
    pub kind: DiffKind,
    /// Its number before, if it was there.
    pub old: Option<u64>,
    /// Its number after, if it is there.
    pub new: Option<u64>,
    /// Its text, clean.
    pub spans: Line,
    /// The bytes of its text that changed.
    pub changed: Changed,
}

impl ShownLine {
    /// Whether it is in one of the two files only.
    pub fn is_changed(&self) -> bool {
        !matches!(self.kind, DiffKind::Hunk | DiffKind::Same)
    }
}

/// Highlights the lines, and finds the words that changed.
pub fn shown_lines(diff: &FileDiff, palette: Palette) -> Vec<ShownLine> {
    let texts: Vec<String> = diff.lines.iter().map(|line| shown(&line.text)).collect();
    let code = diff.lines.iter().zip(&texts);
    let code = code.filter(|(line, _)| line.kind != DiffKind::Hunk);
    let language = Language::of(&diff.path, code.map(|(_, text)| text.as_str()), palette);
    let mut sides = Sides::new(language.as_ref());
    let mut lines: Vec<ShownLine> = Vec::with_capacity(texts.len());
    for (line, text) in diff.lines.iter().zip(&texts) {
        lines.push(ShownLine {
            kind: line.kind,
            old: line.old,
            new: line.new,
            spans: sides.highlight(line.kind, text),
            changed: Changed::new(),
        });
    }
    emphasise(&mut lines, &texts);
    lines
}

/// Splits lines so that removed and added ones that follow each other are together.
pub fn runs(lines: &[ShownLine]) -> impl Iterator<Item = &[ShownLine]> {
    lines.chunk_by(|one, next| one.is_changed() && next.is_changed())
}

/// Old and new follow each other, each by itself.
struct Sides<'l> {
    language: Option<&'l Language>,
    old: Option<Highlighter>,
    new: Option<Highlighter>,
}

impl<'l> Sides<'l> {
    fn new(language: Option<&'l Language>) -> Self {
        Self {
            language,
            old: language.map(Language::start),
            new: language.map(Language::start),
        }
    }

    fn highlight(&mut self, kind: DiffKind, text: &str) -> Line {
        let highlighted = |side: &mut Option<Highlighter>| side.as_mut().map(|it| it.line(text));
        let line = match kind {
            DiffKind::Hunk => {
                *self = Self::new(self.language);
                None
            }
            DiffKind::Removed => highlighted(&mut self.old),
            DiffKind::Added => highlighted(&mut self.new),
            DiffKind::Same => {
                highlighted(&mut self.old);
                highlighted(&mut self.new)
            }
        };
        line.unwrap_or_else(|| vec![Span::plain(text)])
    }
}

/// Finds the words that changed. The first removed line of a run belongs to the first added one,
/// and so on.
fn emphasise(lines: &mut [ShownLine], texts: &[String]) {
    let mut at = 0;
    while at < lines.len() {
        let count = |from: usize, kind: DiffKind| {
            let rest = lines[from..].iter();
            rest.take_while(|line| line.kind == kind).count()
        };
        let removed = count(at, DiffKind::Removed);
        let added = count(at + removed, DiffKind::Added);
        for n in 0..removed.min(added) {
            let (old, new) = (at + n, at + removed + n);
            (lines[old].changed, lines[new].changed) = changed_words(&texts[old], &texts[new]);
        }
        at += (removed + added).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::DiffLine;
    use DiffKind::{Added, Hunk, Removed, Same};

    fn shown_of(lines: &[(DiffKind, &str)]) -> Vec<ShownLine> {
        let line = |(kind, text): &(DiffKind, &str)| DiffLine {
            kind: *kind,
            old: None,
            new: None,
            text: (*text).to_owned(),
        };
        let diff = FileDiff {
            path: "a.rs".to_owned(),
            lines: lines.iter().map(line).collect(),
            note: None,
        };
        shown_lines(&diff, Palette::Sixteen)
    }

    #[test]
    fn removed_lines_are_paired_with_added_ones_in_order() {
        let lines = shown_of(&[
            (Removed, "let total = count;"),
            (Removed, "gone();"),
            (Added, "let total = amount;"),
        ]);
        assert_eq!(lines[0].changed, std::slice::from_ref(&(12..17)));
        assert!(lines[1].changed.is_empty());
        assert_eq!(lines[2].changed, std::slice::from_ref(&(12..18)));
    }

    #[test]
    fn runs_hold_what_changed_together_and_every_line_once() {
        let lines = shown_of(&[
            (Hunk, "@@"),
            (Same, "a"),
            (Removed, "b"),
            (Added, "c"),
            (Same, "d"),
            (Same, "e"),
        ]);
        let lengths: Vec<usize> = runs(&lines).map(<[_]>::len).collect();
        assert_eq!(lengths, [1, 1, 2, 1, 1]);
    }
}
