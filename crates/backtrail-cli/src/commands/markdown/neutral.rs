//! Makes Markdown of a session harmless wherever it is read: HTML in it is text, links lead to
//! where a browser may go without harm, images are links, what it opens it closes, and its headings
//! are below those of the document.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::commands::export::prose::is_harmless;

/// How often a text is read again: what is escaped can change the meaning of what follows.
const MOST: usize = 16;

/// A longer text becomes code.
const LONGEST: usize = 1 << 20;

/// Returns a text that means the same without its HTML, images and harmful links.
pub(super) fn text(text: &str) -> String {
    if text.len() > LONGEST {
        return code(text);
    }
    let mut text = lowered(text);
    for _ in 0..MOST {
        let places = harmful(&text);
        if places.is_empty() {
            return closed(text);
        }
        text = escaped(&text, &places);
    }
    code(&text)
}

/// Returns a text whose headings are two levels lower: the document's own are the title and the
/// turns.
fn lowered(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (event, range) in parser(text).into_offset_iter() {
        let Event::Start(Tag::Heading { level, .. }) = event else {
            continue;
        };
        let parts = text.get(from..range.start).zip(text.get(range.clone()));
        let Some((before, heading)) = parts else {
            continue;
        };
        let level = level as usize;
        out.push_str(before);
        if heading.starts_with('#') {
            out.push_str(&"##"[..2.min(6 - level)]);
            out.push_str(heading);
        } else {
            out.push_str(&"#".repeat(level + 2));
            out.push(' ');
            out.push_str(&without_underline(heading));
        }
        from = range.end;
    }
    out + text.get(from..).unwrap_or_default()
}

/// Returns a heading without the line of signs below it.
fn without_underline(heading: &str) -> String {
    let text = heading.trim_end().trim_end_matches(['=', '-']);
    format!("{}\n", text.trim_end())
}

/// Returns a text for one line, in which nothing is HTML, a link or code.
pub(super) fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '<' | '[' | '`' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns a text as code within a line.
pub(super) fn code_span(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    match text.starts_with('`') || text.ends_with('`') {
        true => format!("{ticks} {text} {ticks}"),
        false => format!("{ticks}{text}{ticks}"),
    }
}

/// Returns a text as a block of code, in a fence that is longer than any inside it.
fn code(text: &str) -> String {
    let ticks = fence_of(text);
    format!("{ticks}text\n{text}\n{ticks}")
}

/// Returns a fence for a text.
pub(super) fn fence_of(text: &str) -> String {
    "`".repeat((longest_run(text) + 1).max(3))
}

fn longest_run(text: &str) -> usize {
    let (mut run, mut longest) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

fn parser(text: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    Parser::new_ext(text, options)
}

/// Returns the places of what must be escaped: tags and images outside of code, and links. Other
/// messages are in the same document, and a link of theirs may use a target that is defined here.
fn harmful(text: &str) -> Vec<usize> {
    let mut code = Vec::new();
    let parser = parser(text);
    let targets = parser.reference_definitions().iter();
    let targets = targets.filter(|(_, target)| !is_link(&target.dest));
    let mut places: Vec<usize> = targets.map(|(_, target)| target.span.start).collect();
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Code(_) | Event::Start(Tag::CodeBlock(_)) => code.push(range),
            Event::Start(Tag::Link { dest_url, .. }) if !is_link(&dest_url) => {
                places.push(range.start);
            }
            _ => {}
        }
    }
    let bytes = text.as_bytes();
    let is_code = |at: &usize| {
        let next = code.partition_point(|range| range.start <= *at);
        next.checked_sub(1)
            .is_some_and(|last| code[last].contains(at))
    };
    let signs = (0..bytes.len()).filter(|at| begins_tag(bytes, *at) || begins_image(bytes, *at));
    places.extend(signs.filter(|at| !is_code(at)));
    places.retain(|at| !is_escaped(bytes, *at));
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns whether a tag, a comment or an address in brackets may begin at a place.
fn begins_tag(bytes: &[u8], at: usize) -> bool {
    let is_next = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'/' | b'!' | b'?');
    bytes[at] == b'<' && bytes.get(at + 1).is_some_and(is_next)
}

fn begins_image(bytes: &[u8], at: usize) -> bool {
    bytes[at..].starts_with(b"![")
}

/// Returns whether the character at a place is escaped already.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let backslashes = bytes[..at].iter().rev().take_while(|byte| **byte == b'\\');
    backslashes.count() % 2 == 1
}

/// Returns whether a link may stay: an address of the web, or a place in the same document.
fn is_link(to: &str) -> bool {
    let has_scheme = to
        .find(':')
        .is_some_and(|at| !to[..at].contains(['/', '?', '#']));
    is_harmless(to) || (!has_scheme && !to.starts_with("//") && !to.contains('&'))
}

fn escaped(text: &str, places: &[usize]) -> String {
    let mut out = String::with_capacity(text.len() + places.len());
    let mut from = 0;
    for at in places {
        out.push_str(text.get(from..*at).unwrap_or_default());
        out.push('\\');
        from = *at;
    }
    out + text.get(from..).unwrap_or_default()
}

/// Closes the block of code that a text leaves open.
fn closed(mut text: String) -> String {
    let fences = parser(&text)
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Some(range),
            _ => None,
        });
    let open = fences
        .last()
        .filter(|range| range.end >= text.trim_end().len());
    let Some(block) = open.and_then(|range| text.get(range)) else {
        return text;
    };
    let sign = if block.starts_with('~') { '~' } else { '`' };
    let fence: String = block.chars().take_while(|c| *c == sign).collect();
    let last = block.trim_end().lines().skip(1).last().unwrap_or_default();
    let last = last.trim_matches([' ', '>', '\t']);
    let is_closed = last.len() >= fence.len() && last.chars().all(|c| c == sign);
    if !is_closed && !fence.is_empty() {
        text = format!("{}\n{fence}", text.trim_end_matches('\n'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_text_and_code_stays_as_it_is() {
        for (from, to) in [
            ("a <b>c</b>", r"a \<b>c\</b>"),
            ("<script>x</script>", r"\<script>x\</script>"),
            ("`<b>` and a < b", "`<b>` and a < b"),
            ("```html\n<b>\n```", "```html\n<b>\n```"),
            ("    <b>", "    <b>"),
            ("<!-- a -->", r"\<!-- a -->"),
            (r"\<b>", r"\<b>"),
            (r"\\<b>", r"\\\<b>"),
            ("Vec<String>", r"Vec\<String>"),
            ("![a](https://x.test/a.png)", r"\![a](https://x.test/a.png)"),
            ("[a](javascript:alert(1))", r"\[a](javascript:alert(1))"),
            ("[a](data:text/html,x)", r"\[a](data:text/html,x)"),
            (
                "[a][b]\n\n[b]: javascript:x",
                "\\[a][b]\n\n\\[b]: javascript:x",
            ),
            ("[b]: javascript:x", "\\[b]: javascript:x"),
            ("![b]", "\\![b]"),
            ("[a](https://x.test) [b](#c)", "[a](https://x.test) [b](#c)"),
            ("[a](src/x.rs)", "[a](src/x.rs)"),
            ("```\nopen", "```\nopen\n```"),
            ("~~~~\nopen\n~~~", "~~~~\nopen\n~~~\n~~~~"),
            (
                "<div>\n```\n\n<b>\n```\n<i>",
                "\\<div>\n```\n\n\\<b>\n```\n\\<i>",
            ),
        ] {
            assert_eq!(text(from), to, "{from}");
        }
    }

    #[test]
    fn headings_are_below_those_of_the_document() {
        for (from, to) in [
            ("# a\n\n## b #\nc", "### a\n\n#### b #\nc"),
            ("##### a\n###### b", "###### a\n###### b"),
            ("a\n===\nb\n---\nc", "### a\n#### b\nc"),
            ("> # a\n- ## b", "> ### a\n- #### b"),
            ("```\n# a\n```\n#b \\# c", "```\n# a\n```\n#b \\# c"),
        ] {
            assert_eq!(text(from), to, "{from}");
        }
    }

    #[test]
    fn a_line_has_no_markup_that_does_harm() {
        assert_eq!(line("<b> ![a](x) `c"), r"\<b> !\[a](x) \`c");
        assert_eq!(code_span("/a`b"), "``/a`b``");
        assert_eq!(code_span("`"), "`` ` ``");
    }
}
