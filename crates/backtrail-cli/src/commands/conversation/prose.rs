//! What the assistant said, ready to be shown, and blocks that are not text.

use backtrail::Json;
use backtrail::conversation::{Action, RelativePaths};
use serde_json::Value;

use super::written_edits::with_diffs;
use crate::text::one_line;

/// Returns an answer for people: with short paths, and without the tags in which some models
/// write calls and choices.
pub(in crate::commands) fn answer_text(text: &str, paths: &RelativePaths) -> String {
    let text = paths.prose(text);
    let text = with_diffs(&text);
    let mut text = replace_elements(&text, "tool_use", |inner| written_call(inner, paths));
    // A call that was cut off.
    if let Some((before, rest)) = text.rsplit_once("\n<tool_use>\n<")
        && !rest.contains("</tool_use>")
    {
        text = format!("{before}\n*(began to write a tool call as text)*");
    }
    replace_elements(&text, "options", |inner| Some(choices(inner)))
}

/// Returns thoughts without the stars around their headings.
pub(in crate::commands) fn thought_text(text: &str, paths: &RelativePaths) -> String {
    let text = paths.prose(text);
    let mut parts = text.split("**");
    let mut out = parts.next().unwrap_or_default().to_owned();
    let rest: Vec<&str> = parts.collect();
    for pair in rest.chunks(2) {
        match pair {
            [bold, after] if is_bold(bold) => out.extend([*bold, *after]),
            parts => parts.iter().for_each(|part| out.extend(["**", *part])),
        }
    }
    out
}

/// Returns whether Markdown shows a text between stars in bold.
fn is_bold(text: &str) -> bool {
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    !is_blank(text.chars().next()) && !is_blank(text.chars().last()) && !text.contains('\n')
}

/// Replaces elements that are on lines of their own; those that `with` does not know stay.
fn replace_elements(text: &str, name: &str, with: impl Fn(&str) -> Option<String>) -> String {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&open) {
        let (before, found) = rest.split_at(at);
        let is_line =
            before.trim_end_matches(' ').is_empty() || before.trim_end_matches(' ').ends_with('\n');
        let inner = found[open.len()..].split_once(&close).filter(|_| is_line);
        out.push_str(before);
        match inner.and_then(|(inner, after)| Some((with(inner)?, after))) {
            Some((new, after)) => {
                out.push_str(&new);
                rest = after;
            }
            None => {
                out.push_str(&open);
                rest = &found[open.len()..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Reads a call that a model wrote as text: the tool, then its arguments.
fn written_call(inner: &str, paths: &RelativePaths) -> Option<String> {
    let inner = inner.trim();
    let tagged = |names: [&str; 2]| names.iter().find_map(|name| element(inner, name));
    let (tool, arguments) = match tagged(["tool_name", "name"]) {
        Some(tool) => (tool, tagged(["input", "arguments"])?),
        None => inner.split_once('\n')?,
    };
    let arguments = arguments.trim();
    serde_json::from_str::<Value>(arguments).ok()?;
    let words = match Action::of(tool.trim(), arguments) {
        Action::Command { command, .. } => command,
        Action::Read(files) => files
            .into_iter()
            .map(|file| file.path)
            .collect::<Vec<_>>()
            .join(", "),
        Action::Search { pattern, .. } => pattern,
        Action::Other(fields) => {
            let field = |(name, value): (String, String)| format!("{name}: {value}");
            fields.into_iter().map(field).collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    };
    let words = one_line(&paths.code(&words), 200).replace('`', "'");
    let tool = one_line(tool, 60);
    Some(match words.as_str() {
        "" => format!("*(wrote a call to {tool} as text)*"),
        words => format!("*(wrote a call to {tool} as text:* `{words}`*)*"),
    })
}

/// Returns the text in an element.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// Writes choices as a list.
fn choices(inner: &str) -> String {
    let options = inner.split("<option>").skip(1);
    let options = options.map(|option| option.split("</option>").next().unwrap_or(option));
    let lines: Vec<String> = options
        .map(|option| format!("- {}", option.trim()))
        .collect();
    match lines.is_empty() {
        true => inner.trim().to_owned(),
        false => lines.join("\n"),
    }
}

/// Says what a block is that this version does not know: its type and its name, or its text.
pub(in crate::commands) fn block_words(json: &Json, paths: &RelativePaths) -> String {
    let Ok(value) = serde_json::from_str::<Value>(json.as_str()) else {
        return "[unknown block]".to_owned();
    };
    let text = |names: &[&str]| {
        let texts = names.iter().filter_map(|name| value.get(*name)?.as_str());
        texts
            .map(str::to_owned)
            .find(|text| !text.trim().is_empty())
    };
    let kind = text(&["type"]).unwrap_or_else(|| "unknown block".to_owned());
    let kind = one_line(&kind, 40).replace('_', " ");
    let name = text(&["filename", "displayName", "path", "name", "title", "text"]);
    let name = name.or_else(|| text(&["content"]).filter(|_| kind.contains("result")));
    match name {
        Some(name) => format!("[{kind}: {}]", one_line(&paths.path(&name), 200)),
        None => format!("[{kind}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_choices_in_a_text_are_sentences() {
        let paths = RelativePaths::new(Some(std::path::Path::new("/w/x")));
        let text =
            "Look:\n<tool_use>\nbash\n{\"command\": \"ls /w/x/src\"}\n</tool_use>\nDone in /w/x/a.";
        assert_eq!(
            answer_text(text, &paths),
            "Look:\n*(wrote a call to bash as text:* `ls src`*)*\nDone in a."
        );
        let tagged = "<tool_use>\n<server_name>s</server_name>\n<tool_name>bash</tool_name>\n<input>{\"command\":\"ls\"}</input>\n</tool_use>";
        let call = "*(wrote a call to bash as text:* `ls`*)*";
        assert_eq!(answer_text(tagged, &paths), call);
        let cut = "I look.\n<tool_use>\n<server_name>s";
        assert_eq!(
            answer_text(cut, &paths),
            "I look.\n*(began to write a tool call as text)*"
        );
        let options = "Which?\n<options>\n  <option>A</option>\n  <option>B</option>\n</options>";
        assert_eq!(answer_text(options, &paths), "Which?\n- A\n- B");
        for same in [
            "use `<tool_use>` here",
            "<tool_use>\nno JSON\n</tool_use>",
            "<options>",
        ] {
            assert_eq!(answer_text(same, &paths), same);
        }
    }

    #[test]
    fn thoughts_have_no_stars() {
        let paths = RelativePaths::new(Some(std::path::Path::new("/w/x")));
        for (text, expected) in [
            ("**Reading /w/x/a**\n\nx", "Reading a\n\nx"),
            ("On **it** and **that**", "On it and that"),
            ("2 ** 3 ** 4", "2 ** 3 ** 4"),
            ("**cut off", "**cut off"),
            ("****", "****"),
        ] {
            assert_eq!(thought_text(text, &paths), expected);
        }
    }

    #[test]
    fn a_block_is_named_without_its_json() {
        let words = |json: &str| block_words(&Json::new(json).unwrap(), &RelativePaths::default());
        assert_eq!(
            words(r#"{"type":"file","filename":"e.log","url":"x"}"#),
            "[file: e.log]"
        );
        assert_eq!(
            words(r#"{"type":"encrypted_content","encrypted_content":"gA"}"#),
            "[encrypted content]"
        );
        assert_eq!(
            words(r#"{"type":"tool_result","content":"ok"}"#),
            "[tool result: ok]"
        );
        assert_eq!(words("[1]"), "[unknown block]");
    }
}
