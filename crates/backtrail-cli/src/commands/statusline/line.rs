//! The figures, put into the template.

use anstyle::{AnsiColor, Style};

use super::figures::{Figure, Figures};
use crate::layout::{Line, Span, cut, styled, width_of};
use crate::settings::{Piece, Placeholder, StatusTemplate};
use crate::ui::Ui;

const WARNING: Style = AnsiColor::Red.on_default().bold();

/// What is left out first where the line is too narrow; whether undo is ready never is.
const LESS_IMPORTANT: [Placeholder; 6] = [
    Placeholder::Quota,
    Placeholder::Block,
    Placeholder::Today,
    Placeholder::Context,
    Placeholder::SessionCost,
    Placeholder::Model,
];

/// How the line is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    is_styled: bool,
    is_ascii: bool,
    width: Option<usize>,
}

impl Look {
    pub(super) fn of_environment(ui: &Ui) -> Self {
        Self {
            is_styled: ui.styles_for_others(),
            is_ascii: !speaks_utf8(),
            width: ui.width(),
        }
    }

    pub(super) fn unstyled(self) -> Self {
        Self {
            is_styled: false,
            ..self
        }
    }
}

/// Returns whether the locale has more than ASCII; one that is not set is not asked.
fn speaks_utf8() -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let mut set = variables.filter_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    set.next().is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Returns the line; empty if no part has a value.
pub(super) fn line(figures: &Figures, template: &StatusTemplate, look: &Look) -> String {
    let mut left_out = Vec::new();
    let mut spans = spans(figures, template, &left_out);
    let width = look.width.unwrap_or(usize::MAX);
    for placeholder in LESS_IMPORTANT {
        if width_of(&spans) <= width {
            break;
        }
        left_out.push(placeholder);
        spans = self::spans(figures, template, &left_out);
    }
    let mut spans = cut(&spans, width);
    for span in &mut spans {
        if look.is_ascii {
            span.text = span.text.chars().map(ascii).collect();
        }
        if !look.is_styled {
            span.style = Style::new();
        }
    }
    styled(&spans)
}

/// Returns the parts that have a value, with the separators between them.
fn spans(figures: &Figures, template: &StatusTemplate, left_out: &[Placeholder]) -> Line {
    let mut line = Line::new();
    for (separator, part) in &template.parts {
        let Some(part) = part_spans(figures, part, left_out) else {
            continue;
        };
        if !line.is_empty() {
            line.push(Span::plain(separator));
        }
        line.extend(part);
    }
    line
}

/// Returns a part; `None` if it has placeholders, and none of them has a value.
fn part_spans(figures: &Figures, part: &[Piece], left_out: &[Placeholder]) -> Option<Line> {
    let mut line = Line::new();
    let (mut asked, mut known) = (false, false);
    for piece in part {
        match piece {
            Piece::Text(text) => line.push(Span::plain(text)),
            Piece::Placeholder(placeholder) => {
                asked = true;
                let is_wanted = !left_out.contains(placeholder);
                if let Some(figure) = of(figures, *placeholder).filter(|_| is_wanted) {
                    known = true;
                    let warns = *placeholder == Placeholder::Undo && figures.is_unprotected;
                    let style = if warns { WARNING } else { Style::new() };
                    line.push(Span::new(style, &figure.text));
                }
            }
        }
    }
    (known || !asked).then_some(line)
}

fn of(figures: &Figures, placeholder: Placeholder) -> Option<&Figure> {
    let figure = match placeholder {
        Placeholder::Model => &figures.model,
        Placeholder::SessionCost => &figures.session_cost,
        Placeholder::Today => &figures.today,
        Placeholder::Block => &figures.block,
        Placeholder::Context => &figures.context,
        Placeholder::Quota => &figures.quota,
        Placeholder::Undo => &figures.undo,
    };
    figure.as_ref()
}

fn ascii(c: char) -> char {
    match c {
        '·' => '|',
        '…' => '.',
        c if c.is_ascii() => c,
        _ => '?',
    }
}
