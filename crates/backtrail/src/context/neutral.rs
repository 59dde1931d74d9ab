//! Our own form: `{"messages":[{"role","blocks"}]}`.

use std::borrow::Cow;

use super::mending::INTERRUPTED;
use super::parts::{Answer, Call, Item, Medium, Mended, Part, Turn};
use super::writer::Writer;
use crate::json::Text;
use crate::message::{Block, ToolResult, ToolUse};

pub(super) fn write(context: &Mended<'_>) -> String {
    let mut out = Writer::new();
    out.raw("{\"messages\":[");
    for instruction in &context.front {
        turn(&mut out, instruction);
    }
    for item in &context.items {
        match item {
            Item::Turn(said) => turn(&mut out, said),
            Item::Results(answers) => results(&mut out, answers),
        }
    }
    out.raw("]}");
    out.finish()
}

fn turn(out: &mut Writer, turn: &Turn<'_>) {
    out.next().raw("{\"role\":").str(turn.role);
    out.raw(",\"blocks\":[");
    for part in &turn.parts {
        out.next();
        self::part(out, part);
    }
    out.raw("]}");
}

fn part(out: &mut Writer, part: &Part<'_>) {
    match part {
        Part::Own(block) => {
            out.value(block);
        }
        Part::Call(call) => {
            out.value(&*with_id(call));
        }
        Part::Medium(medium) => self::medium(out, medium),
        // The last two stay blocks of our own and never come here.
        Part::Text(text) | Part::Redacted(text) => {
            out.value(&Block::text(text.as_ref()));
        }
        Part::Thought { text, signature } => {
            out.value(&Block::thinking(*text, Some(signature)));
        }
    }
}

fn with_id<'a>(call: &Call<'a>) -> Cow<'a, ToolUse> {
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

fn results(out: &mut Writer, answers: &[Answer<'_>]) {
    out.next().raw("{\"role\":\"tool\",\"blocks\":[");
    for answer in answers {
        out.next().value(&*result(answer));
    }
    out.raw("]}");
}

fn result<'a>(answer: &Answer<'a>) -> Cow<'a, ToolResult> {
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
