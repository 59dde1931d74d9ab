//! Which calls failed. No field of a result says so: the exit code is in its text, or in the
//! event for the screen that comes before it.

use crate::formats::blocks::starts_with_any;
use crate::json::Object;

/// How the outputs of calls start that were refused, or did not finish.
const FAILURES: [&str; 17] = [
    "aborted by user",
    "apply_patch verification failed",
    "command rejected",
    "command timed out",
    "exec command rejected",
    "exec_command failed",
    "execution error: ",
    "failed in sandbox",
    "failed to parse function arguments",
    "patch rejected",
    "rejected by user",
    "Script failed",
    "tool call error: ",
    "unsupported call",
    "unsupported custom tool call",
    "user rejected",
    "write_stdin failed",
];

/// The first lines of an output, in which its exit code can be.
const HEAD: usize = 6;

/// The events that tell how a call ended.
const ENDS: [&str; 3] = ["exec_command_end", "patch_apply_end", "mcp_tool_call_end"];

/// Returns whether the lines of an output say that its call failed.
pub(super) fn is_failure<'l>(lines: impl Iterator<Item = &'l str>) -> bool {
    const CODES: [&str; 2] = ["Exit code: ", "Process exited with code "];
    for (number, line) in lines.take(HEAD).enumerate() {
        if line == "Output:" {
            return false;
        }
        // The time is above some of the reasons.
        let is_reason = number == 0 || line == "aborted by user";
        if line == "aborted" || (is_reason && starts_with_any(line, &FAILURES)) {
            return true;
        }
        if let Some(code) = CODES.iter().find_map(|code| line.strip_prefix(code)) {
            return code.trim().parse::<i64>().is_ok_and(|code| code != 0);
        }
    }
    false
}

/// Returns whether an object has an exit code that is not 0.
pub(super) fn has_bad_exit(object: &Object<'_>) -> bool {
    let code = object
        .float("exit_code")
        .or_else(|| object.float("exitCode"));
    code.is_some_and(|code| code != 0.0)
}

/// Returns whether an event of this type tells how a call ended.
pub(super) fn is_end(kind: &str) -> bool {
    ENDS.contains(&kind)
}

/// Returns the id of the call that failed according to an event, or to a completed item.
pub(super) fn failed_call(ended: &Object<'_>) -> Option<String> {
    let status = ended.string("status");
    let error = |name: &str| {
        let result = ended.object("result");
        result.is_some_and(|result| result.has(name) && result.get(name) != Some("null"))
    };
    let is_error = |result: Object<'_>| {
        let inner = result.object("Ok").unwrap_or(result);
        inner.is_true("isError") || inner.is_true("is_error")
    };
    let failed = matches!(status.as_deref(), Some("failed" | "declined"))
        || has_bad_exit(ended)
        || ended.get("success") == Some("false")
        || error("Err")
        || ended.object("result").is_some_and(is_error);
    let id = ended.non_blank("call_id").or(ended.non_blank("id"));
    id.filter(|_| failed).map(std::borrow::Cow::into_owned)
}
