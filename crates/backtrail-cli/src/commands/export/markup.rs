//! HTML that cannot be broken out of: markup is written in this program, everything else
//! is text.

use std::borrow::Cow;

use crate::text::clean;

/// HTML under way.
///
/// Only words of the program itself are taken as markup; what comes from a session goes
/// through [`text`](Self::text) or [`attr`](Self::attr), and nothing it holds can be a tag.
#[derive(Debug, Default, Clone)]
pub(super) struct Html(String);

impl Html {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Writes markup.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Writes text, without control characters: a page is copied from.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        escape(&mut self.0, &clean(text));
        self
    }

    /// Writes an attribute with a blank before it.
    pub(super) fn attr(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.0.push(' ');
        self.0.push_str(name);
        self.0.push_str("=\"");
        let value: Cow<'_, str> = match value.contains(char::is_control) {
            true => value.replace(char::is_control, " ").into(),
            false => value.into(),
        };
        escape(&mut self.0, &clean(&value));
        self.0.push('"');
        self
    }

    /// Writes text between markup.
    pub(super) fn wrap(
        &mut self,
        open: &'static str,
        text: &str,
        close: &'static str,
    ) -> &mut Self {
        self.raw(open).text(text).raw(close)
    }

    /// Writes the attribute that links to a record lead to.
    pub(super) fn id(&mut self, seq: u64) -> &mut Self {
        self.raw(" id=\"r").number(seq).raw("\"")
    }

    /// Writes a number.
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.0.push_str(&number.to_string());
        self
    }

    /// Writes what is HTML already.
    pub(super) fn html(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Writes the sign before a line of a diff and the line.
    pub(super) fn line(&mut self, markup: &'static str, sign: &'static str, text: &str) {
        self.raw(markup).wrap(sign, text, "</span>");
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn escape(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Cuts a text that is too long for a page, between lines where it has any; returns how
/// many bytes are left.
pub(super) fn cut(text: &str, most: usize) -> (&str, usize) {
    if text.len() <= most {
        return (text, 0);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = match text[..end].rfind('\n') {
        Some(line) if line > most / 2 => line,
        _ => end,
    };
    (&text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        let mut html = Html::new();
        html.raw("<p")
            .attr("title", "\"><script>'\n&")
            .raw(">")
            .text("</p><!-- ]]> & \u{1b}[1m'\"\u{202e}");
        assert_eq!(
            html.as_str(),
            "<p title=\"&quot;&gt;&lt;script&gt;&#39; &amp;\">&lt;/p&gt;&lt;!-- ]]&gt; &amp; &#39;&quot;\u{fffd}"
        );
    }

    #[test]
    fn a_text_is_cut_between_lines_and_never_within_a_character() {
        assert_eq!(cut("abc", 3), ("abc", 0));
        assert_eq!(cut("ab\ncdef", 3), ("ab", 5));
        assert_eq!(cut("ééé", 3), ("é", 4));
        assert_eq!(cut("a\nbcdefgh", 6), ("a\nbcde", 3));
    }
}
