//! Text in the sixteen colours of a terminal, as classes: `a1` is red, whatever red is in a style.

use std::ops::Range;

use backtrail_view::library::Line;
use backtrail_view::style_classes::style_classes;
use maud::{Markup, html};

/// Returns a line of code.
pub(super) fn line(line: &Line) -> Markup {
    emphasised(line, &[])
}

/// Returns a line of code with some of its bytes emphasised.
pub(super) fn emphasised(line: &Line, changed: &[Range<usize>]) -> Markup {
    let mut end = 0;
    let pieces = line.iter().flat_map(|span| {
        let start = end;
        end += span.text.len();
        let class = style_classes(span.style);
        let pieces = pieces(&span.text, start, changed).into_iter();
        pieces.map(move |(text, is_changed)| piece(text, &class, is_changed))
    });
    html! { @for piece in pieces { (piece) } }
}

fn piece(text: &str, class: &str, is_changed: bool) -> Markup {
    let styled = html! {
        @if class.is_empty() { (text) } @else { span class=(class) { (text) } }
    };
    html! {
        @if is_changed { b { (styled) } } @else { (styled) }
    }
}

/// Splits a text that begins at a byte of its line where emphasis begins and ends.
fn pieces<'t>(text: &'t str, start: usize, changed: &[Range<usize>]) -> Vec<(&'t str, bool)> {
    let end = start + text.len();
    let ends = changed.iter().flat_map(|range| [range.start, range.end]);
    let mut cuts: Vec<usize> = ends.filter(|at| (start + 1..end).contains(at)).collect();
    cuts.insert(0, start);
    cuts.push(end);
    let pieces = cuts.windows(2).filter_map(|cut| {
        let piece = text.get(cut[0] - start..cut[1] - start)?;
        let is_changed = changed.iter().any(|range| range.contains(&cut[0]));
        (!piece.is_empty()).then_some((piece, is_changed))
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstyle::{AnsiColor, Style};
    use backtrail_view::library::Span;

    #[test]
    fn emphasis_crosses_spans_and_changes_no_letter() {
        let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
        let spans = vec![Span::new(red, "let"), Span::plain(" größe<1>")];
        let html = emphasised(&spans, std::slice::from_ref(&(2..5))).into_string();
        assert_eq!(
            html,
            "<span class=\"a1\">le</span><b><span class=\"a1\">t</span></b><b> g</b>röße&lt;1&gt;"
        );
    }
}
