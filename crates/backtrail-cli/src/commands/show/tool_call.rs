//! A call of a tool in one line, with its result.

use anstyle::Style;
use backtrail::conversation::{ToolCall, ToolOutcome};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::glyphs::Glyphs;
use crate::layout::{BOLD, DIM, Line, Span, width_of};
use crate::text::{count, one_line, visible};

/// A call, as far as a line shows it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    /// What it was called with, in one line.
    pub(super) with: String,
}

/// The result of a call.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) failed: bool,
    /// In a few words.
    pub(super) words: String,
    /// All of it, if that is wanted.
    pub(super) output: Option<String>,
}

/// More is not kept of one part of a line: no terminal is so wide.
const KEPT: usize = 300;

impl Call {
    pub(super) fn new(call: &ToolCall) -> Self {
        Self {
            name: one_line(&call.name, 60),
            with: summary_of(call.arguments.as_str()),
        }
    }

    /// Writes the call and its result in one line.
    pub(super) fn line(&self, outcome: Option<&Outcome>, width: usize, glyphs: &Glyphs) -> Line {
        let sign = vec![
            Span::new(DIM, &format!("{} ", glyphs.tool)),
            Span::new(BOLD, &self.name),
        ];
        let room = width.saturating_sub(width_of(&sign));
        let outcome = match outcome {
            // Each has half of the line, and what the other one leaves.
            Some(outcome) => {
                let with = self.with.width().min(room / 2) + 5;
                outcome.words(glyphs, room.saturating_sub(with))
            }
            None => vec![Span::new(DIM, "no result")],
        };
        let room = room.saturating_sub(width_of(&outcome) + 5);
        let with = one_line(&self.with, room.max(8));
        let mut line = sign;
        if !with.is_empty() {
            line.push(Span::plain("  "));
            line.push(Span::new(Style::new(), &with));
        }
        line.push(Span::plain("   "));
        line.extend(outcome);
        line
    }
}

impl Outcome {
    pub(super) fn new(result: &ToolOutcome, success: bool, keep: bool) -> Self {
        let text = output(result);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let more = lines.next().is_some();
        let words = match (first, success) {
            ("", _) => "no output".to_owned(),
            (first, false) => one_line(&visible(first), KEPT),
            (first, true) if !more && first.chars().count() <= 40 => {
                one_line(&visible(first), KEPT)
            }
            _ => count(text.trim_end().lines().count(), "line"),
        };
        Self {
            failed: !success,
            words,
            output: keep.then_some(text),
        }
    }

    /// Writes the sign and the words in at most `width` columns.
    fn words(&self, glyphs: &Glyphs, width: usize) -> Line {
        let sign = if self.failed {
            glyphs.failed
        } else {
            glyphs.done
        };
        let words = one_line(&self.words, width.saturating_sub(2).max(10));
        let style = if self.failed { BOLD } else { DIM };
        vec![Span::new(style, sign), Span::new(DIM, &format!(" {words}"))]
    }

    /// Writes it in a line of its own, apart from its call.
    pub(super) fn line(&self, tool: &str, width: usize, glyphs: &Glyphs) -> Line {
        let mut line = vec![Span::new(DIM, &format!("{} {tool}  ", glyphs.tool))];
        let room = width.saturating_sub(width_of(&line));
        line.extend(self.words(glyphs, room));
        line
    }
}

/// Returns the text of a result: a string, the texts in a list of blocks with the kinds of
/// the others, or the JSON.
fn output(result: &ToolOutcome) -> String {
    let json = result.output.as_str();
    if !json.starts_with('[') {
        return result.text();
    }
    let Ok(Value::Array(blocks)) = serde_json::from_str(json) else {
        return json.to_owned();
    };
    let text = |block: &Value| match (block.get("text"), block.get("type")) {
        (Some(Value::String(text)), _) => text.clone(),
        (_, Some(Value::String(kind))) => format!("[{kind}]"),
        _ => block.to_string(),
    };
    blocks.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Returns the part of an input that says most about a call: the command, the path, the
/// pattern; else the whole input.
pub(in crate::commands) fn summary_of(input: &str) -> String {
    let main = serde_json::from_str(input)
        .ok()
        .and_then(|value| main_part(&value));
    match main {
        Some(main) => one_line(&visible(&main), KEPT),
        None => one_line(&visible(input), KEPT),
    }
}

fn main_part(input: &Value) -> Option<String> {
    /// The names of inputs that say what a call is about, the best first.
    const MAIN: [&str; 16] = [
        "command",
        "cmd",
        "pattern",
        "query",
        "file_path",
        "path",
        "filePath",
        "filename",
        "file",
        "notebook_path",
        "url",
        "uri",
        "description",
        "prompt",
        "subject",
        "name",
    ];
    // Some agents write the input as a text of JSON.
    if let Value::String(text) = input {
        return match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => main_part(&inner),
            _ => Some(patched(text).unwrap_or(text).to_owned()),
        };
    }
    let fields = input.as_object()?;
    if fields.is_empty() {
        return Some(String::new());
    }
    let value = |name: &str| fields.get(name).and_then(words);
    let found = MAIN
        .iter()
        .find_map(|name| value(name).map(|text| (*name, text)));
    match found {
        Some(("pattern", pattern)) => Some(match value("path").or(value("glob")) {
            Some(path) => format!("{pattern} in {path}"),
            None => pattern,
        }),
        Some((_, text)) => Some(text),
        None => {
            let patch = value("patch").or(value("input"))?;
            Some(patched(&patch)?.to_owned())
        }
    }
}

/// Returns a text, or the words of a command.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Array(list) => {
            let words = list.iter().map(|word| word.as_str());
            let words = words.collect::<Option<Vec<_>>>()?;
            match words.as_slice() {
                [] => None,
                // A shell that runs a line: the line is what matters.
                [_, "-c" | "-lc", line] => Some((*line).to_owned()),
                words => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

/// Returns the first file of a patch.
fn patched(patch: &str) -> Option<&str> {
    let named = |line: &str| {
        let kinds = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
        let found = kinds.iter().find(|kind| line.starts_with(**kind));
        found.map(|kind| kind.len())
    };
    let mut lines = patch.lines();
    lines.find_map(|line| named(line).and_then(|from| line.get(from..)))
}

#[cfg(test)]
mod tests {
    use super::summary_of;

    #[test]
    fn the_most_telling_part_represents_the_input() {
        let cases = [
            (r#"{"command":"cargo test","timeout":9}"#, "cargo test"),
            (r#"{"command":["bash","-lc","ls -l"]}"#, "ls -l"),
            (r#"{"command":["git","diff"]}"#, "git diff"),
            (r#"{"content":"x","file_path":"src/a.rs"}"#, "src/a.rs"),
            (r#"{"pattern":"fn main","path":"src"}"#, "fn main in src"),
            (r#""{\"command\":\"ls\"}""#, "ls"),
            (r#""*** Begin Patch\n*** Update File: a.rs\n""#, "a.rs"),
            (r#"{"a":[1,2],"b":null}"#, r#"{"a":[1,2],"b":null}"#),
            ("{}", ""),
            ("not JSON", "not JSON"),
            (r#"{"command":"\u001b]0;x\u0007ls"}"#, "^[]0;x^Gls"),
        ];
        for (input, expected) in cases {
            assert_eq!(summary_of(input), expected, "{input}");
        }
    }
}
