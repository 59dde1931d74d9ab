//! Markdown as HTML, in which nothing is trusted: HTML within it is text, links go to
//! where a browser may go without harm, and images are links.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use backtrail::conversation::is_patch;
use backtrail_view::highlight::Language;
use backtrail_view::library::{Palette, Span};
use backtrail_view::style_classes::style_classes;

use super::markup::Html;
use super::tool_call::write_patch;
use crate::text::clean;

/// A longer text is shown as it is.
const LONGEST: usize = 256 << 10;

/// What is deeper within quotations and lists is drawn no deeper.
const DEEPEST: usize = 24;

/// Writes Markdown.
pub(super) fn write(out: &mut Html, text: &str) {
    if text.len() > LONGEST {
        out.wrap("<div class=\"typed\">", text, "</div>");
        return;
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::new(out);
    for event in Parser::new_ext(text, options) {
        writer.take(event);
    }
    writer.finish();
}

struct Writer<'a> {
    out: &'a mut Html,
    /// What closes the tags that are open; empty for one that is not drawn.
    open: Vec<&'static str>,
    drawn: usize,
    /// The text of a block of code, and its language.
    code: Option<(String, String)>,
    /// The targets of links that a browser must not follow.
    unsafe_links: Vec<String>,
    alignments: Vec<Alignment>,
    cell: usize,
    in_head: bool,
}

impl<'a> Writer<'a> {
    fn new(out: &'a mut Html) -> Self {
        Self {
            out,
            open: Vec::new(),
            drawn: 0,
            code: None,
            unsafe_links: Vec::new(),
            alignments: Vec::new(),
            cell: 0,
            in_head: false,
        }
    }

    fn finish(&mut self) {
        while let Some(close) = self.open.pop() {
            self.out.raw(close);
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((code, _)) => code.push_str(&text),
                None => drop(self.out.text(&text)),
            },
            Event::Html(text) | Event::InlineHtml(text) => drop(self.out.text(&text)),
            Event::Code(text) => drop(self.out.wrap("<code>", &text, "</code>")),
            Event::SoftBreak => drop(self.out.raw("\n")),
            Event::HardBreak => drop(self.out.raw("<br>")),
            Event::Rule => drop(self.out.raw("<hr>")),
            Event::TaskListMarker(done) => {
                self.out.raw(if done { "☑ " } else { "☐ " });
            }
            _ => {}
        }
    }

    /// Opens a tag, unless it is too deep within others.
    fn enter(&mut self, open: &'static str, close: &'static str) {
        if self.drawn >= DEEPEST {
            self.open.push("");
            return;
        }
        self.drawn += 1;
        self.out.raw(open);
        self.open.push(close);
    }

    fn leave(&mut self) {
        let close = self.open.pop().unwrap_or_default();
        self.drawn -= usize::from(!close.is_empty());
        self.out.raw(close);
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.enter("<p>", "</p>"),
            Tag::HtmlBlock => self.enter("<p class=\"typed\">", "</p>"),
            Tag::Heading { level, .. } => match level {
                HeadingLevel::H1 => self.enter("<h3>", "</h3>"),
                HeadingLevel::H2 => self.enter("<h4>", "</h4>"),
                HeadingLevel::H3 => self.enter("<h5>", "</h5>"),
                _ => self.enter("<h6>", "</h6>"),
            },
            Tag::BlockQuote(_) => self.enter("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(words) => words
                        .split([' ', ','])
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((String::new(), language));
            }
            Tag::List(None) => self.enter("<ul>", "</ul>"),
            Tag::List(Some(1)) => self.enter("<ol>", "</ol>"),
            Tag::List(Some(first)) => {
                self.enter("<ol", "</ol>");
                if self.open.last().is_some_and(|close| !close.is_empty()) {
                    self.out.attr("start", &first.to_string()).raw(">");
                }
            }
            Tag::Item => self.enter("<li>", "</li>"),
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.enter("<div class=\"wide\"><table>", "</tbody></table></div>");
            }
            Tag::TableHead => {
                (self.cell, self.in_head) = (0, true);
                self.enter("<thead><tr>", "</tr></thead><tbody>");
            }
            Tag::TableRow => {
                self.cell = 0;
                self.enter("<tr>", "</tr>");
            }
            Tag::TableCell => self.start_cell(),
            Tag::Emphasis => self.enter("<em>", "</em>"),
            Tag::Strong => self.enter("<strong>", "</strong>"),
            Tag::Strikethrough => self.enter("<del>", "</del>"),
            Tag::Link { dest_url, .. } => self.start_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.start_link(&dest_url);
                self.out.text("image: ");
            }
            _ => self.enter("", ""),
        }
    }

    fn start_cell(&mut self) {
        let right = self.alignments.get(self.cell) == Some(&Alignment::Right);
        self.cell += 1;
        match (self.in_head, right) {
            (true, true) => self.enter("<th class=\"right\">", "</th>"),
            (true, false) => self.enter("<th>", "</th>"),
            (false, true) => self.enter("<td class=\"right\">", "</td>"),
            (false, false) => self.enter("<td>", "</td>"),
        }
    }

    fn start_link(&mut self, to: &str) {
        if !is_harmless(to) {
            self.unsafe_links.push(to.to_owned());
            self.enter("", "");
            return;
        }
        self.unsafe_links.push(String::new());
        self.enter("<a", "</a>");
        if self.open.last().is_some_and(|close| !close.is_empty()) {
            self.out
                .attr("href", to)
                .raw(" rel=\"noopener noreferrer\" target=\"_blank\">");
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::CodeBlock => {
                if let Some((code, language)) = self.code.take() {
                    write_code(self.out, &code, &language);
                }
            }
            TagEnd::Link | TagEnd::Image => {
                self.leave();
                let to = self.unsafe_links.pop().unwrap_or_default();
                if !to.is_empty() {
                    self.out.wrap(" <span class=\"faint\">(", &to, ")</span>");
                }
            }
            TagEnd::TableHead => {
                self.in_head = false;
                self.leave();
            }
            _ => self.leave(),
        }
    }
}

/// Writes a block of code in the colours of its language; one of changes in theirs.
fn write_code(out: &mut Html, code: &str, language: &str) {
    let code = code.strip_suffix('\n').unwrap_or(code);
    if matches!(language, "diff" | "patch") || is_patch(code) {
        write_patch(out, code);
        return;
    }
    out.raw("<pre");
    if !language.is_empty() {
        out.attr("data-language", language);
    }
    out.raw("><code>");
    write_highlighted(out, code, language);
    out.raw("</code></pre>");
}

/// Writes code; where its language is not known or it is too much, in one colour.
fn write_highlighted(out: &mut Html, code: &str, language: &str) {
    // What is highlighted is what is shown: an escape must not end up in two spans.
    let code = clean(code);
    let lines = code.split('\n');
    let Some(language) = Language::named(language, lines.clone(), Palette::Sixteen) else {
        out.text(&code);
        return;
    };
    let mut highlighter = language.start();
    for (n, line) in lines.enumerate() {
        out.raw(if n > 0 { "\n" } else { "" });
        for span in highlighter.line(line) {
            write_span(out, &span);
        }
    }
}

fn write_span(out: &mut Html, span: &Span) {
    let classes = style_classes(span.style);
    if classes.is_empty() {
        out.text(&span.text);
        return;
    }
    out.raw("<span").attr("class", &classes);
    out.wrap(">", &span.text, "</span>");
}

/// Returns whether a browser may go there.
pub(in crate::commands) fn is_harmless(to: &str) -> bool {
    let begins = |scheme: &str| {
        let begin = to.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    begins("https://") || begins("http://") || begins("mailto:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        let mut out = Html::new();
        write(&mut out, text);
        out.as_str().to_owned()
    }

    #[test]
    fn markdown_becomes_what_it_means() {
        assert_eq!(
            html(
                "# a\n\n- *b*\n- `c<`\n\n3. x\n\n|a|b|\n|-|-:|\n|1|2|\n\n```nosuch\nfn x<T>() {}\n```"
            ),
            "<h3>a</h3><ul><li><em>b</em></li><li><code>c&lt;</code></li></ul><ol start=\"3\"><li>x</li></ol>\
             <div class=\"wide\"><table><thead><tr><th>a</th><th class=\"right\">b</th></tr></thead><tbody>\
             <tr><td>1</td><td class=\"right\">2</td></tr></tbody></table></div>\
             <pre data-language=\"nosuch\"><code>fn x&lt;T&gt;() {}</code></pre>"
        );
    }

    /// Returns what a browser shows of HTML.
    fn without_tags(html: &str) -> String {
        let parts = html.split('<').map(|part| part.split_once('>'));
        let text: String = parts
            .map(|part| part.map_or("", |(_, text)| text))
            .collect();
        let signs = [
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#39;", "'"),
            ("&amp;", "&"),
        ];
        let plain = |text: String, (sign, letter): (&str, &str)| text.replace(sign, letter);
        signs.into_iter().fold(text, plain)
    }

    #[test]
    fn code_has_colours_and_no_other_letter() {
        for code in [
            "fn main() {\n\tlet a = \"<b>&amp;</b>\"; // é\n\n}",
            "let a = '</code></pre><script>alert(1)</script>';\n/* <!-- never closed",
            "\n\n  x \" & < > '",
        ] {
            let html = html(&format!("````rust\n{code}\n````"));
            assert!(html.contains("<span class=\"a"), "{html}");
            assert_eq!(without_tags(&html), code);
            let others = html.replace("<span class=\"a", "").replace("</span>", "");
            assert_eq!(others.matches('<').count(), 4, "{html}");
        }
    }

    #[test]
    fn code_that_nobody_knows_or_that_is_too_much_has_no_colours() {
        let line = "let a = 1;";
        let long = format!("let a = \"{}\";", "x".repeat(5_000));
        for (language, code) in [
            ("", line),
            ("text", line),
            ("nosuch", line),
            ("rust", &long),
        ] {
            let html = html(&format!("```{language}\n{code}\n```"));
            assert!(!html.contains("<span"), "{html}");
            assert_eq!(without_tags(&html), code);
        }
    }

    #[test]
    fn an_escape_in_code_is_removed_before_it_has_colours() {
        let html = html("```rust\nlet a = \u{1b}[31m1;\u{1b}]0;\"x\"\u{7}\n```");
        assert!(html.contains("<span") && !html.contains("31m"), "{html}");
        assert!(!html.contains(char::is_control), "{html}");
    }

    #[test]
    fn nothing_in_it_is_markup_and_links_are_harmless() {
        assert_eq!(
            html(
                "<b onclick=x>a</b> [l](javascript:alert(1)) [m](https://a/?\"x) ![i](data:text/html,x)"
            ),
            "<p>&lt;b onclick=x&gt;a&lt;/b&gt; l <span class=\"faint\">(javascript:alert(1))</span> \
             <a href=\"https://a/?&quot;x\" rel=\"noopener noreferrer\" target=\"_blank\">m</a> \
             image: i <span class=\"faint\">(data:text/html,x)</span></p>"
        );
        for text in [
            "<script>",
            "<!-- x",
            "<![CDATA[x]]>",
            "<?x?>",
            "&lt;script&gt;",
            "<https://a><x:y>",
        ] {
            let html = html(text);
            assert!(
                !html.contains("<script") && !html.contains("<!") && !html.contains("<?"),
                "{html}"
            );
        }
    }

    #[test]
    fn tags_are_closed_however_deep_they_are() {
        let deep = html(&format!("{}x", "> ".repeat(5000)));
        assert_eq!(deep.matches("<blockquote>").count(), DEEPEST);
        assert_eq!(deep.matches("</blockquote>").count(), DEEPEST);
    }
}
