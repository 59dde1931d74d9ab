//! OpenAI's Chat Completions: `{"messages"}`.
//!
//! Many other providers use this shape, and most of them accept less than OpenAI does. So
//! content that is only text is a string.

use super::openai::data_url;
use super::parts::{Author, ContextTurn, Mended, SentCall, SentResult, TurnPart, join};
use super::writer::Writer;

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
    let role = match turn.author {
        Author::System => "system",
        Author::User => "user",
        Author::Assistant => "assistant",
    };
    out.next().raw("{\"role\":").str(role);
    out.raw(",\"content\":");
    content(out, &turn.parts);
    let calls = turn.parts.iter().filter_map(|part| match part {
        TurnPart::Call(call) => Some(call),
        _ => None,
    });
    self::calls(out, calls);
    out.raw("}");
}

fn content(out: &mut Writer, parts: &[TurnPart<'_>]) {
    if parts.iter().any(|part| matches!(part, TurnPart::Medium(_))) {
        return list(out, parts);
    }
    match parts.iter().any(|part| matches!(part, TurnPart::Text(_))) {
        true => out.str(&join(parts, "\n")),
        false => out.raw("null"),
    };
}

fn list(out: &mut Writer, parts: &[TurnPart<'_>]) {
    out.raw("[");
    for part in parts {
        match part {
            TurnPart::Text(text) => {
                let head = "{\"type\":\"text\",\"text\":";
                out.next().raw(head).str(text).raw("}");
            }
            TurnPart::Medium(medium) => {
                let head = "{\"type\":\"image_url\",\"image_url\":{\"url\":";
                out.next().raw(head).str(&data_url(medium)).raw("}}");
            }
            // Only the assistant's, or only in the neutral shape.
            TurnPart::Thought { .. }
            | TurnPart::Redacted(_)
            | TurnPart::Call(_)
            | TurnPart::Own(_) => {}
        }
    }
    out.raw("]");
}

fn calls<'c, 'a: 'c>(out: &mut Writer, calls: impl Iterator<Item = &'c SentCall<'a>>) {
    let mut calls = calls.peekable();
    if calls.peek().is_none() {
        return;
    }
    out.raw(",\"tool_calls\":[");
    for call in calls {
        out.next().raw("{\"id\":").str(&call.id);
        out.raw(",\"type\":\"function\",\"function\":{\"name\":");
        out.str(&call.name).raw(",\"arguments\":");
        out.str(&call.input).raw("}}");
    }
    out.raw("]");
}

fn results(out: &mut Writer, answers: &[SentResult<'_>]) {
    for answer in answers {
        out.next().raw("{\"role\":\"tool\",\"tool_call_id\":");
        out.str(&answer.id).raw(",\"content\":");
        out.str(&join(&answer.parts, "\n")).raw("}");
    }
}
