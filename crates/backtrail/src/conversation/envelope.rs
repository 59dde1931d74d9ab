//! The output of a tool without what an agent wraps around it.
//!
//! Agents give a model more than the output: exit codes, times, JSON, tags, reminders. People
//! want the output, and the exit code where it matters.

use std::borrow::Cow;

use serde_json::Value;

use super::item::ToolOutcome;

/// The output of a tool, for people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PlainOutput {
    /// The output.
    pub text: String,
    /// The exit code of a command, if the agent reports it.
    pub exit_code: Option<i64>,
}

impl ToolOutcome {
    /// Returns the output for people, without envelopes: worked out each time.
    pub fn plain(&self) -> PlainOutput {
        PlainOutput::of_json(self.output.as_str())
    }
}

impl PlainOutput {
    fn of_json(json: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(json) else {
            return Self::of_text(json);
        };
        match value {
            Value::String(text) => Self::of_text(&text),
            Value::Null => Self::default(),
            Value::Object(fields) if fields.is_empty() => Self::default(),
            value => Self::of_value(&value).unwrap_or_else(|| Self::of_text(json)),
        }
    }

    fn of_text(text: &str) -> Self {
        let start = text.trim_start();
        if start.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str::<Value>(start)
            && let Some(plain) = Self::of_value(&value)
        {
            return plain;
        }
        let mut plain = Self::default();
        let text = without_reminders(text);
        let text = plain.without_tags(&text);
        let text = plain.without_heads(text);
        let text = plain.without_tails(text);
        plain.text = text.to_owned();
        plain
    }

    /// Takes the output out of JSON of a known shape.
    fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Array(items) => Self::of_list(items),
            Value::Object(_) => Self::of_object(value),
            _ => None,
        }
    }

    /// Reads blocks, or the results of several queries.
    fn of_list(items: &[Value]) -> Option<Self> {
        let item = |item: &Value| {
            let text = |name: &str| item.get(name).and_then(Value::as_str);
            if let Some(text) = text("text") {
                return Some(Self::of_text(text).text);
            }
            if item.get("query").is_some() {
                return Self::of_object(item).map(|plain| plain.text);
            }
            text("type").map(|kind| format!("[{kind}]"))
        };
        let texts: Option<Vec<String>> = items.iter().map(item).collect();
        let text = texts.filter(|texts| !texts.is_empty())?.join("\n");
        let exit_code = None;
        Some(Self { text, exit_code })
    }

    fn of_object(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let number = |name: &str| value.get(name).and_then(Value::as_i64);
        let metadata = value.get("metadata");
        let code = metadata.and_then(|data| data.get("exit_code")?.as_i64());
        let exit_code = number("exitCode").or(number("exit_code")).or(code);
        let texts = match (
            text("stdout"),
            text("stderr"),
            text("output"),
            text("result"),
        ) {
            (Some(out), Some(err), _, _) => join(out, err),
            (None, None, Some(output), _) if exit_code.is_some() || metadata.is_some() => {
                output.to_owned()
            }
            (None, None, Some(output), _) if value.as_object()?.len() == 1 => output.to_owned(),
            (None, None, None, Some(result)) if value.get("query").is_some() => result.to_owned(),
            _ => return Self::of_file(value),
        };
        let plain = Self::of_text(&texts);
        Some(Self {
            text: plain.text,
            exit_code: exit_code.or(plain.exit_code),
        })
    }

    /// Reads what a tool says of a file that it read or wrote.
    fn of_file(value: &Value) -> Option<Self> {
        let text = |value: &Value, name: &str| {
            let text = value.get(name).and_then(Value::as_str);
            text.map(str::to_owned)
        };
        let file = value.get("file").and_then(|file| text(file, "content"));
        let path = text(value, "filePath");
        let written = path
            .filter(|_| value.get("type").is_some())
            .map(|_| String::new());
        let is_message = value.get("shell_id").is_some() || value.as_object()?.len() == 1;
        let message = text(value, "message").filter(|_| is_message);
        Some(Self {
            text: file.or(written).or(message)?,
            exit_code: None,
        })
    }

    /// Removes tags around the output.
    fn without_tags<'t>(&self, text: &'t str) -> &'t str {
        const TAGS: [&str; 5] = [
            "tool_use_error",
            "untrusted_context",
            "error",
            "local-command-stdout",
            "bash-stdout",
        ];
        let trimmed = text.trim();
        for tag in TAGS {
            let inner = trimmed
                .strip_prefix(&*format!("<{tag}>"))
                .and_then(|text| text.strip_suffix(&*format!("</{tag}>")));
            if let Some(inner) = inner {
                return inner.trim_matches('\n');
            }
        }
        for (first, tag) in [
            ("<path>", "content"),
            ("<status>", "stdout"),
            ("<file>", "file"),
        ] {
            if trimmed.starts_with(first)
                && let Some((_, rest)) = trimmed.split_once(&*format!("<{tag}>"))
                && let Some((inner, _)) = rest.rsplit_once(&*format!("</{tag}>"))
            {
                return inner.trim_matches('\n');
            }
        }
        text
    }

    /// Removes lines about the command before and after its output.
    fn without_heads<'t>(&mut self, text: &'t str) -> &'t str {
        if let Some(rest) = text.strip_prefix("Exit code ")
            && let Some((code, rest)) = rest.split_once('\n')
            && let Ok(code) = code.trim().parse()
        {
            self.exit_code = Some(code);
            return rest;
        }
        if let Some(rest) = text.strip_prefix("Wall time: ")
            && let Some((_, rest @ "aborted by user")) = rest.split_once('\n')
        {
            return rest;
        }
        match self.output_after_head(text) {
            Some(rest) => self.without_foot(rest),
            None => text,
        }
    }

    /// Returns what follows `Output:`, if only known lines are before it.
    fn output_after_head<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        const KNOWN: [&str; 11] = [
            "Chunk ID: ",
            "Wall time: ",
            "Process exited with code ",
            "Process running with session ID ",
            "Original token count: ",
            "Total output lines: ",
            "Exit code: ",
            "Command: ",
            "Directory: ",
            "The command completed",
            "The command failed",
        ];
        let mut rest = text;
        // The command itself may have several lines.
        let mut in_command = false;
        loop {
            if let Some(output) = rest.strip_prefix("Output:") {
                let output = output.strip_prefix([' ', '\n']).unwrap_or(output);
                return Some(output);
            }
            let (line, after) = rest.split_once('\n')?;
            let known = KNOWN.iter().find(|head| line.starts_with(**head));
            if known.is_none() && !in_command {
                return None;
            }
            in_command |= line.starts_with("Command: ");
            for head in ["Process exited with code ", "Exit code: "] {
                let code = line
                    .strip_prefix(head)
                    .and_then(|code| code.trim().parse().ok());
                self.exit_code = code.or(self.exit_code);
            }
            rest = after;
        }
    }

    /// Removes what follows an output: `Error: (none)`, the exit code, the process group.
    fn without_foot<'t>(&mut self, text: &'t str) -> &'t str {
        const FOOT: [&str; 5] = [
            "Error: (none)",
            "Exit Code: ",
            "Signal: ",
            "Background PIDs: ",
            "Process Group PGID: ",
        ];
        let mut rest = text;
        while let Some((before, line)) = last_line(rest) {
            if !FOOT.iter().any(|foot| line.starts_with(foot)) {
                break;
            }
            let code = line.strip_prefix("Exit Code: ");
            let code = code.and_then(|code| code.trim().parse().ok());
            self.exit_code = code.or(self.exit_code);
            rest = before;
        }
        if rest.trim() == "(empty)" { "" } else { rest }
    }

    /// Removes a last line with the exit code.
    fn without_tails<'t>(&mut self, text: &'t str) -> &'t str {
        const TAILS: [(&str, &str); 4] = [
            ("Command exited with code ", ""),
            ("Command failed with exit code: ", "."),
            ("<exited with exit code ", ">"),
            ("<shellId: ", ">"),
        ];
        let Some((before, line)) = last_line(text.trim_end()) else {
            return text;
        };
        for (head, foot) in TAILS {
            let inner = line
                .strip_prefix(head)
                .and_then(|rest| rest.strip_suffix(foot));
            if let Some(inner) = inner
                && let Some(code) = inner.split_whitespace().last()
                && let Ok(code) = code.parse()
            {
                self.exit_code = Some(code);
                return before.trim_end();
            }
        }
        text
    }
}

/// Returns the text before the last line, and that line.
fn last_line(text: &str) -> Option<(&str, &str)> {
    match text.rsplit_once('\n') {
        Some((before, line)) => Some((before, line)),
        None if text.is_empty() => None,
        None => Some(("", text)),
    }
}

fn join(out: &str, err: &str) -> String {
    match (out.trim_end(), err.trim_end()) {
        (_, "") => out.to_owned(),
        ("", _) => err.to_owned(),
        (out, _) => format!("{out}\n{err}"),
    }
}

/// Removes what an agent reminds the model of in an output.
fn without_reminders(text: &str) -> Cow<'_, str> {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    if !text.contains(OPEN) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((_, after)) = after.split_once(CLOSE) else {
            break;
        };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    Cow::Owned(kept.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> (String, Option<i64>) {
        let plain = PlainOutput::of_json(&serde_json::to_string(text).unwrap());
        (plain.text, plain.exit_code)
    }

    #[test]
    fn envelopes_are_removed() {
        let cases = [
            (
                "Chunk ID: d6\nWall time: 0.0 seconds\nProcess exited with code 3\nOriginal token count: 3\nOutput:\na\nb\n",
                "a\nb\n",
                Some(3),
            ),
            (
                "Exit code: 0\nWall time: 1 seconds\nOutput:\nok",
                "ok",
                Some(0),
            ),
            (
                "Wall time: 0.8 seconds\naborted by user",
                "aborted by user",
                None,
            ),
            ("Exit code 2\nls: no", "ls: no", Some(2)),
            (
                "Command: a\nb\nDirectory: (root)\nOutput: x\ny\nError: (none)\nExit Code: 1\nSignal: 0\nProcess Group PGID: 7",
                "x\ny",
                Some(1),
            ),
            (
                "Command: a\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 0",
                "",
                Some(0),
            ),
            (
                "<untrusted_context>\nOutput: x\nExit Code: 2\nProcess Group PGID: 1\n</untrusted_context>",
                "x",
                Some(2),
            ),
            (
                r#"{"stdout":"a\n","stderr":"b","interrupted":false}"#,
                "a\nb",
                None,
            ),
            (
                r#"{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.1}}"#,
                "x",
                Some(1),
            ),
            (
                r#"{"type":"text","file":{"filePath":"/w/a","content":"mod a;"}}"#,
                "mod a;",
                None,
            ),
            (
                r#"{"type":"create","filePath":"/w/a","content":"mod a;"}"#,
                "",
                None,
            ),
            (
                r#"{"query":"edit:/w/a","result":"Edited","success":true}"#,
                "Edited",
                None,
            ),
            (
                r#"[{"query":"ls","result":"a\n","success":true}]"#,
                "a\n",
                None,
            ),
            ("x\n<shellId: 0 completed with exit code 0>", "x", Some(0)),
            ("x\n\nCommand exited with code 2", "x", Some(2)),
            (
                "<tool_use_error>no such file</tool_use_error>",
                "no such file",
                None,
            ),
            (
                "<path>/w/a</path>\n<type>file</type>\n<content>\n1: hello\n</content>",
                "1: hello",
                None,
            ),
            (
                "<status>running</status>\n\n<stdout>\nup\n</stdout>\n\n<timestamp>t</timestamp>",
                "up",
                None,
            ),
            (
                "a\n\n<system-reminder>\nbe good\n</system-reminder>\n",
                "a",
                None,
            ),
        ];
        for (text, expected, code) in cases {
            assert_eq!(plain(text), (expected.to_owned(), code), "{text}");
        }
    }

    #[test]
    fn other_outputs_stay_as_they_are() {
        for text in [
            r#"{"name":"x","version":"1"}"#,
            "[1, 2]",
            "Output: of my program\n",
            "see <system-reminder> there",
            "Exit code of x\n1",
            "{\"a\":1}\n{\"b\":2}\n",
            "",
        ] {
            let expected = text.strip_prefix("Output: ").unwrap_or(text);
            assert_eq!(plain(text).0, expected, "{text}");
        }
        let blocks = r#"[{"type":"text","text":"a"},{"type":"image","source":{}}]"#;
        assert_eq!(PlainOutput::of_json(blocks).text, "a\n[image]");
        // An answer without fields is no output; a program may print braces.
        assert_eq!(PlainOutput::of_json("{}").text, "");
        assert_eq!(plain("{}").0, "{}");
        assert_eq!(PlainOutput::of_json("not json").text, "not json");
    }
}
