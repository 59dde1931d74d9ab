//! The template of the status line: parts, each with text and placeholders.

use std::fmt;

/// What stands between two parts.
const SEPARATORS: [&str; 2] = [" · ", " | "];
/// The longest template.
const LONGEST: usize = 1000;

/// A template of the status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusTemplate {
    text: String,
    /// The parts, each with the separator before it.
    pub(crate) parts: Vec<(&'static str, Vec<Piece>)>,
}

/// A piece of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Placeholder(Placeholder),
}

/// A figure that a template names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placeholder {
    Model,
    SessionCost,
    Today,
    Block,
    Context,
    Quota,
    Undo,
}

impl Placeholder {
    const ALL: [(&'static str, Self); 7] = [
        ("model", Self::Model),
        ("session_cost", Self::SessionCost),
        ("today", Self::Today),
        ("block", Self::Block),
        ("context", Self::Context),
        ("quota", Self::Quota),
        ("undo", Self::Undo),
    ];

    fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(known, _)| *known == name).map(|(_, it)| it)
    }
}

impl StatusTemplate {
    /// The template that is used unless another one is set.
    pub(crate) const DEFAULT: &str =
        "{model} · {session_cost} · today {today} · block {block} · {context} · {quota} · {undo}";

    /// Reads a template; the error is the reason why it is none.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        if text.len() > LONGEST || text.contains(char::is_control) {
            return Err(format!(
                "it must be one line of at most {LONGEST} characters"
            ));
        }
        let (mut parts, mut rest, mut separator) = (Vec::new(), text, "");
        loop {
            let ends = SEPARATORS.into_iter();
            let next = ends.filter_map(|end| Some((rest.find(end)?, end))).min();
            let (part, behind) = match next {
                Some((at, end)) => (&rest[..at], Some((end, &rest[at + end.len()..]))),
                None => (rest, None),
            };
            parts.push((separator, pieces(part)?));
            match behind {
                Some((end, behind)) => (separator, rest) = (end, behind),
                None => break,
            }
        }
        let text = text.to_owned();
        Ok(Self { text, parts })
    }
}

impl Default for StatusTemplate {
    fn default() -> Self {
        Self::parse(Self::DEFAULT).expect("the default is valid")
    }
}

impl fmt::Display for StatusTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads a part.
fn pieces(part: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut rest) = (Vec::new(), part);
    while let Some((before, from)) = rest.split_once('{') {
        let Some((name, behind)) = from.split_once('}') else {
            return Err("it has a { without a }".to_owned());
        };
        let Some(placeholder) = Placeholder::named(name) else {
            let known = Placeholder::ALL.map(|(name, _)| format!("{{{name}}}"));
            return Err(format!(
                "there is no {{{name}}}; there are {}",
                known.join(", ")
            ));
        };
        if !before.is_empty() {
            pieces.push(Piece::Text(before.to_owned()));
        }
        pieces.push(Piece::Placeholder(placeholder));
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_parts_with_the_separators_before_them() {
        let template = StatusTemplate::parse("a {model} · {undo}!|x | {today}").unwrap();
        let text = |text: &str| Piece::Text(text.to_owned());
        let of = Piece::Placeholder;
        let expected = [
            ("", vec![text("a "), of(Placeholder::Model)]),
            (" · ", vec![of(Placeholder::Undo), text("!|x")]),
            (" | ", vec![of(Placeholder::Today)]),
        ];
        assert_eq!(template.parts, expected);
        assert_eq!(StatusTemplate::default().parts.len(), 7);
    }

    #[test]
    fn what_is_not_a_template_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "it is empty"),
            ("{undo", "a { without a }"),
            ("{cost}", "there is no {cost}; there are {model}"),
            ("{undo}\n", "one line"),
            (&"x".repeat(1001), "at most 1000"),
        ] {
            let error = StatusTemplate::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
