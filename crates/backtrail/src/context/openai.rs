//! OpenAI's Responses: `{"instructions","input"}`.

use super::parts::{Author, ContextTurn, Medium, Mended, SentResult, TurnPart, join};
use super::rules::Class;
use super::writer::Writer;

pub(super) fn write(context: &Mended<'_>) -> String {
    let mut out = Writer::new();
    out.raw("{");
    if !context.front.is_empty() {
        let texts = context.front.iter().map(|turn| join(&turn.parts, "\n\n"));
        let texts: Vec<_> = texts.collect();
        out.raw("\"instructions\":").str(&texts.join("\n\n"));
        out.raw(",");
    }
    out.raw("\"input\":[");
    out.items(&context.items, turn, results).raw("]}");
    out.finish()
}

fn turn(out: &mut Writer, turn: &ContextTurn<'_>) {
    let role = match turn.author {
        Author::System => "developer",
        Author::User => "user",
        Author::Assistant => return assistant(out, turn),
    };
    out.next().raw("{\"type\":\"message\",\"role\":").str(role);
    out.raw(",\"content\":");
    content(out, &turn.parts);
    out.raw("}");
}

/// Content of the user and of tools.
fn content(out: &mut Writer, parts: &[TurnPart<'_>]) {
    out.raw("[");
    for part in parts {
        match part {
            TurnPart::Text(text) => {
                let head = "{\"type\":\"input_text\",\"text\":";
                out.next().raw(head).str(text).raw("}");
            }
            TurnPart::Medium(medium) => self::medium(out, medium),
            // Only the assistant's, or only in the neutral shape.
            TurnPart::Thought { .. }
            | TurnPart::Redacted(_)
            | TurnPart::Call(_)
            | TurnPart::Own(_) => {}
        }
    }
    out.raw("]");
}

fn medium(out: &mut Writer, medium: &Medium<'_>) {
    let (head, tail) = match Class::of(&medium.media_type) {
        Class::Image => ("{\"type\":\"input_image\",\"image_url\":", "}"),
        Class::Pdf | Class::Other => (
            "{\"type\":\"input_file\",\"filename\":\"document.pdf\",\"file_data\":",
            "}",
        ),
    };
    out.next().raw(head).str(&data_url(medium)).raw(tail);
}

pub(super) fn data_url(medium: &Medium<'_>) -> String {
    let data = medium.data.as_deref().unwrap_or("");
    format!("data:{};base64,{data}", medium.media_type)
}

/// The assistant's content is a list of items; consecutive texts form one item.
fn assistant(out: &mut Writer, turn: &ContextTurn<'_>) {
    let is_text = |part: &TurnPart<'_>| matches!(part, TurnPart::Text(_));
    for parts in turn.parts.chunk_by(|one, two| is_text(one) && is_text(two)) {
        match parts {
            [TurnPart::Thought { text, signature }] => reasoning(out, text, signature),
            [TurnPart::Call(call)] => {
                out.next().raw("{\"type\":\"function_call\",\"call_id\":");
                out.str(&call.id).raw(",\"name\":").str(&call.name);
                out.raw(",\"arguments\":").str(&call.input).raw("}");
            }
            texts => output_texts(out, texts),
        }
    }
}

fn reasoning(out: &mut Writer, text: &str, signature: &str) {
    out.next().raw("{\"type\":\"reasoning\",\"summary\":[");
    if !text.trim().is_empty() {
        out.raw("{\"type\":\"summary_text\",\"text\":").str(text);
        out.raw("}");
    }
    out.raw("],\"encrypted_content\":").str(signature).raw("}");
}

fn output_texts(out: &mut Writer, parts: &[TurnPart<'_>]) {
    out.next()
        .raw("{\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
    for part in parts {
        if let TurnPart::Text(text) = part {
            let head = "{\"type\":\"output_text\",\"text\":";
            out.next().raw(head).str(text).raw("}");
        }
    }
    out.raw("]}");
}

fn results(out: &mut Writer, answers: &[SentResult<'_>]) {
    for answer in answers {
        out.next()
            .raw("{\"type\":\"function_call_output\",\"call_id\":");
        out.str(&answer.id).raw(",\"output\":");
        let has_media = |part: &TurnPart<'_>| matches!(part, TurnPart::Medium(_));
        match answer.parts.iter().any(has_media) {
            true => content(out, &answer.parts),
            false => {
                out.str(&join(&answer.parts, "\n"));
            }
        }
        out.raw("}");
    }
}
