//! Calls that a model wrote as XML in its text, and their results.
//!
//! Tasks of older versions, and of models without tool calls, have
//! `<read_file><path>a.rs</path></read_file>` in an answer, and `[read_file for 'a.rs'] Result:`
//! in the message after it.

use backtrail::{Block, Json, Text};

use crate::formats::blocks::tool_use;

/// The tools that models call by XML.
const TOOLS: [&str; 39] = [
    "access_mcp_resource",
    "act_mode_respond",
    "apply_diff",
    "apply_patch",
    "ask_followup_question",
    "attempt_completion",
    "browser_action",
    "codebase_search",
    "condense",
    "delete_file",
    "edit_file",
    "execute_command",
    "fetch_instructions",
    "focus_chain",
    "generate_image",
    "insert_content",
    "list_code_definition_names",
    "list_files",
    "load_mcp_documentation",
    "new_rule",
    "new_task",
    "plan_mode_respond",
    "plan_mode_response",
    "read_file",
    "replace_in_file",
    "report_bug",
    "run_slash_command",
    "search_and_replace",
    "search_files",
    "search_replace",
    "summarize_task",
    "switch_mode",
    "update_todo_list",
    "use_mcp_tool",
    "use_skill",
    "use_subagents",
    "web_fetch",
    "web_search",
    "write_to_file",
];

/// No name is longer.
const LONGEST: usize = 40;

/// Splits a text of the model into texts and calls. `id` returns the id of the next call.
pub(super) fn split(text: &Text, mut id: impl FnMut() -> String) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut rest = text.as_str();
    while let Some((at, name)) = next_call(rest) {
        push_text(&mut blocks, &rest[..at]);
        let body = &rest[at + name.len() + 2..];
        let close = format!("</{name}>");
        let (body, after) = body.split_once(&close).unwrap_or((body, ""));
        let id = Some(Text::from(id()));
        let call = tool_use(id, Some(Text::from(name)), Some(input(body)));
        blocks.push(Block::ToolUse(call));
        rest = after;
    }
    if blocks.is_empty() {
        return vec![Block::text(text.clone())];
    }
    push_text(&mut blocks, rest);
    blocks
}

fn push_text(blocks: &mut Vec<Block>, text: &str) {
    if !text.trim().is_empty() {
        blocks.push(Block::text(text.trim()));
    }
}

/// Returns where the next call starts, and its name.
fn next_call(text: &str) -> Option<(usize, &'static str)> {
    memchr::memchr_iter(b'<', text.as_bytes()).find_map(|at| {
        let name = text.as_bytes()[at + 1..].iter().take(LONGEST);
        let end = name.clone().position(|byte| *byte == b'>')?;
        let tool = TOOLS.binary_search(&text.get(at + 1..at + 1 + end)?);
        Some((at, TOOLS[tool.ok()?]))
    })
}

/// Returns the parameters of a call.
fn input(body: &str) -> Json {
    let mut input = serde_json::Map::new();
    let mut rest = body.trim_start();
    while let Some((name, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        let close = format!("</{name}>");
        // A file's content may contain the tag itself.
        let end = match name {
            "content" | "diff" | "result" => after.rfind(&close),
            _ => after.find(&close),
        };
        let (value, next) = match end {
            Some(end) => (&after[..end], &after[end + close.len()..]),
            None => (after, ""),
        };
        input.insert(name.to_owned(), value.trim_matches('\n').into());
        rest = next.trim_start();
    }
    Json::from_value(&input).unwrap_or_else(|_| crate::formats::blocks::empty_object())
}

/// Returns the tool that a text is the result of, and the output if it is in the same text.
pub(super) fn result_header(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start().strip_prefix('[')?;
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let (name, rest) = inner.split_at(end);
    let (_, output) = rest.split_once("] Result:")?;
    let is_header = !name.is_empty() && rest.starts_with([']', ' ']);
    is_header.then(|| (name, output.trim()))
}
