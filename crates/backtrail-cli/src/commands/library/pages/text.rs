//! The whole text of a record, to be read or copied.

use backtrail::conversation::{Conversation, Item, RelativePaths, ToolCall};

use super::Source;
use crate::commands::conversation::call::{CallView, OutcomeView, Part};
use crate::commands::conversation::compare::sign;
use crate::commands::conversation::{remark, run_words};
use crate::error::{CommandError, Result};
use crate::shell::command_line;
use crate::text::visible;

/// Returns the text of a record: what was said, or its calls and their outputs.
pub(super) fn of_record(source: &Source, seq: u64) -> Result<String> {
    let paths = RelativePaths::new(source.info.workspace_root.as_deref());
    let mut texts = Vec::new();
    for item in items(source, seq)? {
        let item = item?;
        let is_of_it = match &item {
            Item::ToolCall(call) => {
                let result = call.result.as_ref().map(|result| result.seq);
                call.seq == seq || result == Some(seq)
            }
            item => item.seq() == seq,
        };
        if is_of_it {
            texts.extend(text_of(&item, &paths));
        } else if item.seq() > seq && !matches!(item, Item::Spending(_)) {
            break;
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    match texts.is_empty() {
        true => Err(CommandError::not_found(format!("record {seq} has no text"))),
        false => Ok(texts.join("\n\n")),
    }
}

fn items(source: &Source, seq: u64) -> Result<Conversation> {
    Ok(match source.trail {
        Some((trail, seq)) => source.reader.turn_in_trail(trail, seq)?,
        None => source.reader.conversation_from(seq)?,
    })
}

fn text_of(item: &Item, paths: &RelativePaths) -> Option<String> {
    let text = match item {
        Item::Prompt(prompt) => prompt.text.clone(),
        Item::Answer(answer) => answer.text.clone(),
        Item::Thinking(thinking) => thinking.text.clone(),
        Item::Injected(message) => message.text.clone(),
        Item::ToolCall(call) => call_text(call, paths),
        Item::ToolResult(item) => OutcomeView::new(&item.result, item.success, paths).output,
        Item::Compaction(item) => item.stored.as_ref()?.summary.to_string(),
        Item::Run(item) => {
            let run = item.run.as_ref()?;
            format!("{}\n{}", command_line(&run.argv), run_words(run))
        }
        Item::TurnEnd(_) | Item::Note(_) => return None,
        item => return remark(item),
    };
    Some(visible(&text).into_owned())
}

/// Writes a call: what it was called with, and its output.
fn call_text(call: &ToolCall, paths: &RelativePaths) -> String {
    let view = CallView::new(call, paths);
    let mut lines = match view.parts.first() {
        Some(Part::Command(command)) => vec![command.clone()],
        _ => vec![format!("{} {}", view.name, view.with).trim().to_owned()],
    };
    for part in &view.parts {
        match part {
            Part::Diff(diff) => {
                lines.push(diff.path.clone());
                let changes = diff.lines.iter();
                lines.extend(changes.map(|(change, text)| format!("{}{text}", sign(*change))));
            }
            Part::Plan(text) | Part::Prompt(text) => lines.push(text.clone()),
            Part::Fields(fields) => {
                let field = |(name, value): &(String, String)| format!("{name}: {value}");
                lines.extend(fields.iter().map(field));
            }
            Part::Question(question, answer) => {
                lines.push(question.text.clone());
                lines.extend(answer.clone());
            }
            Part::Todos(todos) => lines.extend(todos.iter().map(|todo| todo.text.clone())),
            Part::Command(_) => {}
        }
    }
    let outcome = view.outcome(call, paths).map(|outcome| outcome.output);
    lines.extend(outcome.filter(|output| !output.is_empty()));
    lines.join("\n")
}
