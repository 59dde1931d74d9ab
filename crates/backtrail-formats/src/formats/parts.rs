//! The parts of messages as Google's API has them: what Gemini CLI and its descendants write.

use std::borrow::Cow;

use backtrail::{Block, Json, ToolResult, ToolUse};

use super::blocks::{self, media_block, starts_with_any, text_block, thinking, unknown_block};
use crate::json::{Object, is_string, string, to_json, to_text};

/// Returns the block of a part. `None` if the part is of an unknown type.
pub(super) fn part_block(json: &str) -> Option<Block> {
    let part = Object::from_json(json)?;
    let signature = part
        .get("thoughtSignature")
        .filter(|signature| is_string(signature));
    if let Some(text) = part.text("text") {
        if part.is_true("thought") {
            return Some(thinking(text, signature.and_then(to_text)));
        }
        return Some(text_block(text, "signature", signature.and_then(to_json)));
    }
    if let Some(inline) = part.object("inlineData") {
        let data = inline.string_json("data")?;
        return Some(media_block(inline.text("mimeType")?, data));
    }
    if let Some(call) = part.object("functionCall") {
        let mut call = function_call(&call);
        if let Some(signature) = signature.and_then(to_json) {
            call.extra.push("signature", signature);
        }
        return Some(Block::ToolUse(call));
    }
    let response = part.object("functionResponse")?;
    let (output, is_error) = response_output(&response, &[])?;
    Some(function_result(&response, Some(output), is_error).into())
}

/// Returns a call.
pub(super) fn function_call(call: &Object<'_>) -> ToolUse {
    blocks::tool_use(call.text("id"), call.text("name"), call.json("args"))
}

/// Returns the result of a call that a call or a response names. A shell command that ended
/// with another code than 0 failed, whatever else the agent notes about it.
pub(super) fn function_result(
    call: &Object<'_>,
    output: Option<Json>,
    is_error: bool,
) -> ToolResult {
    let is_shell = call
        .string("name")
        .is_some_and(|name| name == "run_shell_command");
    let is_failed_command = |output: &Json| {
        is_shell && string(output.as_str()).is_some_and(|text| is_failed_command(&text))
    };
    let is_error = is_error || output.as_ref().is_some_and(is_failed_command);
    ToolResult {
        is_error,
        ..blocks::tool_result(call.text("id"), call.text("name"), output)
    }
}

/// Returns the output of a tool and whether it is an error: the field `output` or `error` if
/// it is the only one, or else the whole response. Its media are inside of it, or follow it.
pub(super) fn response_output(response: &Object<'_>, after: &[&str]) -> Option<(Json, bool)> {
    let (output, is_error) = response_text(response)?;
    let mut parts = response.list("parts").unwrap_or_default();
    parts.extend(after);
    if parts.is_empty() {
        return Some((output, is_error));
    }
    let Some(text) = to_text(output.as_str()) else {
        return after.is_empty().then_some((output, is_error));
    };
    let text = (!text.is_empty()).then(|| Block::text(text));
    let block = |json| part_block(json).unwrap_or_else(|| unknown_block("google_part", json));
    let blocks = text.into_iter().chain(parts.into_iter().map(block));
    let output = Json::from_value(&blocks.collect::<Vec<_>>()).ok()?;
    Some((output, is_error))
}

fn response_text(response: &Object<'_>) -> Option<(Json, bool)> {
    let given = response.get("response")?;
    let fields = Object::from_json(given).unwrap_or_default();
    let is_error = fields
        .get("error")
        .is_some_and(|error| !matches!(error, "null" | "false" | "\"\""));
    let only = ["output", "error"].map(|name| fields.get(name).filter(|value| is_string(value)));
    let output = match only {
        [Some(only), None] | [None, Some(only)] if fields.len() == 1 => only,
        _ => given,
    };
    Some((to_json(output)?, is_error))
}

/// Returns whether the output of a shell command ends in notes of the agent that say that the
/// command failed.
fn is_failed_command(output: &str) -> bool {
    const STOPPED: [&str; 3] = [
        "Command was cancelled",
        "Command was automatically cancelled",
        "Command timed out",
    ];
    if starts_with_any(output, &STOPPED) {
        return true;
    }
    // A log that was escaped twice has line breaks as two characters.
    let output = match output.contains('\n') {
        true => Cow::Borrowed(output),
        false => Cow::Owned(output.replace("\\n", "\n")),
    };
    for line in output.lines().rev() {
        let note = line.split_once(": ");
        match note {
            Some(("Exit Code", code)) => return !matches!(code.trim(), "0" | "(none)"),
            Some(("Signal", signal)) if !matches!(signal.trim(), "0" | "(none)") => return true,
            Some(("Signal" | "Background PIDs" | "Process Group PGID", _)) => {}
            None if matches!(line.trim(), "" | "</untrusted_context>") => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, response: &str) -> ToolResult {
        let part =
            format!(r#"{{"functionResponse":{{"id":"c","name":"{name}","response":{response}}}}}"#);
        match part_block(&part) {
            Some(Block::ToolResult(result)) => result,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_that_did_not_end_with_0_failed() {
        let failed = |output: &str| {
            let response = serde_json::json!({ "output": output }).to_string();
            let is_failed = result("run_shell_command", &response).is_error;
            assert!(!result("read_file", &response).is_error, "{output}");
            is_failed
        };
        for output in [
            "Output: no such file\nExit Code: 2",
            "<untrusted_context>\nOutput: x\nExit Code: 127\nProcess Group PGID: 7\n</untrusted_context>",
            "Command: x\nDirectory: (root)\nStdout: (empty)\nStderr: bad\nError: (none)\nExit Code: 1\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 9",
            "Output: (empty)\nExit Code: -1\nSignal: 15\n",
            "Output: (empty)\nSignal: SIGKILL",
            "Output: no\\nExit Code: 1\\nSignal: 0",
            "Command timed out after 100ms before it could complete.",
            "Command was cancelled by user before it could complete. There was no output",
        ] {
            assert!(failed(output), "{output}");
        }
        for output in [
            "",
            "Output: fine\nProcess Group PGID: 7",
            "Output: Exit Code: 2\nand more\nProcess Group PGID: 7",
            "Command: x\nExit Code: 3\nError: (none)\nExit Code: 0\nSignal: (none)",
            "Exit Code: (none)",
        ] {
            assert!(!failed(output), "{output}");
        }
    }

    #[test]
    fn a_response_with_an_error_failed_whatever_else_it_has() {
        for response in [
            r#"{"error":"gone"}"#,
            r#"{"output":"half","error":"gone"}"#,
            r#"{"error":{"code":4}}"#,
        ] {
            assert!(result("ls", response).is_error, "{response}");
        }
        for response in [r#"{"output":"a"}"#, r#"{"output":"a","error":null}"#, "{}"] {
            assert!(!result("ls", response).is_error, "{response}");
        }
        assert_eq!(
            result("ls", r#"{"error":"gone"}"#).output.as_str(),
            "\"gone\""
        );
    }
}
