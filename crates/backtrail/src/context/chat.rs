//! OpenAI's Chat Completions: `{"messages"}`.
//!
//! Many others speak this shape, and most of them take less than OpenAI does: so
//! content is a string wherever it is only text.

use super::openai::data_url;
use super::parts::{Answer, Call, Item, Mended, Part, Turn, Who, join};
use super::writer::Writer;

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
    let role = match turn.who {
        Who::System => "system",
        Who::User => "user",
        Who::Assistant => "assistant",
    };
    out.next().raw("{\"role\":").str(role);
    out.raw(",\"content\":");
    content(out, &turn.parts);
    let calls = turn.parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some(call),
        _ => None,
    });
    self::calls(out, calls);
    out.raw("}");
}

fn content(out: &mut Writer, parts: &[Part<'_>]) {
    if parts.iter().any(|part| matches!(part, Part::Medium(_))) {
        return list(out, parts);
    }
    match parts.iter().any(|part| matches!(part, Part::Text(_))) {
        true => out.str(&join(parts, "\n")),
        false => out.raw("null"),
    };
}

fn list(out: &mut Writer, parts: &[Part<'_>]) {
    out.raw("[");
    for part in parts {
        match part {
            Part::Text(text) => {
                let head = "{\"type\":\"text\",\"text\":";
                out.next().raw(head).str(text).raw("}");
            }
            Part::Medium(medium) => {
                let head = "{\"type\":\"image_url\",\"image_url\":{\"url\":";
                out.next().raw(head).str(&data_url(medium)).raw("}}");
            }
            // Only the assistant's, or only in the neutral shape.
            Part::Thought { .. } | Part::Redacted(_) | Part::Call(_) | Part::Own(_) => {}
        }
    }
    out.raw("]");
}

fn calls<'c, 'a: 'c>(out: &mut Writer, calls: impl Iterator<Item = &'c Call<'a>>) {
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

fn results(out: &mut Writer, answers: &[Answer<'_>]) {
    for answer in answers {
        out.next().raw("{\"role\":\"tool\",\"tool_call_id\":");
        out.str(&answer.id).raw(",\"content\":");
        out.str(&join(&answer.parts, "\n")).raw("}");
    }
}
