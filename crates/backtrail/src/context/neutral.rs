//! Backtrail's own form: `{"messages":[{"role","blocks"}]}`.

use std::borrow::Cow;

use super::mender::INTERRUPTED;
use super::parts::{ContextTurn, Medium, Mended, SentCall, SentResult, TurnPart};
use super::writer::Writer;
use crate::json::Text;
use crate::message::{Block, ToolResult, ToolUse};

pub(super) fn write(context: &Mended<'_>) -> String {
    let mut out = Writer::new();
    out.raw("{\"messages\":[");
    for instruction in &context.front {
        turn(&mut out, instruction);
    }
    out.items(&context.items, turn, results).raw("]}");
    out.finish()
}

fn turn(out: &mut Writer, turn: &ContextTurn<'_>) {
    out.next().raw("{\"role\":").str(turn.role);
    out.raw(",\"blocks\":[");
    for part in &turn.parts {
        out.next();
        self::part(out, part);
    }
    out.raw("]}");
}

fn part(out: &mut Writer, part: &TurnPart<'_>) {
    match part {
        TurnPart::Own(block) => {
            out.value(block);
        }
        TurnPart::Call(call) => {
            out.value(&*with_id(call));
        }
        TurnPart::Medium(medium) => self::medium(out, medium),
        // The last two stay `Own` blocks and never get here.
        TurnPart::Text(text) | TurnPart::Redacted(text) => {
            out.value(&Block::text(text.as_ref()));
        }
        TurnPart::Thought { text, signature } => {
            out.value(&Block::signed_thinking(*text, *signature));
        }
    }
}

fn with_id<'a>(call: &SentCall<'a>) -> Cow<'a, ToolUse> {
    match call.id == call.block.id.as_str() {
        true => Cow::Borrowed(call.block),
        false => Cow::Owned(ToolUse {
            id: Text::from(call.id.as_ref()),
            ..call.block.clone()
        }),
    }
}

fn medium(out: &mut Writer, medium: &Medium<'_>) {
    out.raw("{\"type\":").str(&medium.kind);
    out.raw(",\"media_type\":").str(&medium.media_type);
    let data = medium.data.as_deref().unwrap_or("");
    out.raw(",\"data\":").str(data).raw("}");
}

fn results(out: &mut Writer, answers: &[SentResult<'_>]) {
    out.next().raw("{\"role\":\"tool\",\"blocks\":[");
    for answer in answers {
        out.next().value(&*result(answer));
    }
    out.raw("]}");
}

fn result<'a>(answer: &SentResult<'a>) -> Cow<'a, ToolResult> {
    match answer.given {
        None => {
            let name = answer.block.name.as_str();
            Cow::Owned(ToolResult::error(INTERRUPTED).answers(answer.id.as_ref(), name))
        }
        Some(given) if answer.id == given.tool_use_id.as_str() => Cow::Borrowed(given),
        Some(given) => Cow::Owned(ToolResult {
            tool_use_id: Text::from(answer.id.as_ref()),
            ..given.clone()
        }),
    }
}
