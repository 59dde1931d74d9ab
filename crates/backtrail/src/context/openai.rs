//! OpenAI's Responses: `{"instructions","input"}`.

use super::parts::{Answer, Item, Medium, Mended, Part, Turn, Who, join};
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
    for item in &context.items {
        match item {
            Item::Turn(said) if said.who == Who::Assistant => assistant(&mut out, said),
            Item::Turn(said) => message(&mut out, said),
            Item::Results(answers) => results(&mut out, answers),
        }
    }
    out.raw("]}");
    out.finish()
}

fn message(out: &mut Writer, turn: &Turn<'_>) {
    let role = match turn.who {
        Who::System => "developer",
        Who::User | Who::Assistant => "user",
    };
    out.next().raw("{\"type\":\"message\",\"role\":").str(role);
    out.raw(",\"content\":");
    content(out, &turn.parts);
    out.raw("}");
}

/// What the user and tools say.
fn content(out: &mut Writer, parts: &[Part<'_>]) {
    out.raw("[");
    for part in parts {
        match part {
            Part::Text(text) => {
                let head = "{\"type\":\"input_text\",\"text\":";
                out.next().raw(head).str(text).raw("}");
            }
            Part::Medium(medium) => self::medium(out, medium),
            // Only the assistant's, or only in the neutral shape.
            Part::Thought { .. } | Part::Redacted(_) | Part::Call(_) | Part::Own(_) => {}
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

/// What the assistant says is a list of items; texts that follow each other are
/// one of them.
fn assistant(out: &mut Writer, turn: &Turn<'_>) {
    let is_text = |part: &Part<'_>| matches!(part, Part::Text(_));
    for parts in turn.parts.chunk_by(|one, two| is_text(one) && is_text(two)) {
        match parts {
            [Part::Thought { text, signature }] => reasoning(out, text, signature),
            [Part::Call(call)] => {
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

fn output_texts(out: &mut Writer, parts: &[Part<'_>]) {
    out.next()
        .raw("{\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
    for part in parts {
        if let Part::Text(text) = part {
            let head = "{\"type\":\"output_text\",\"text\":";
            out.next().raw(head).str(text).raw("}");
        }
    }
    out.raw("]}");
}

fn results(out: &mut Writer, answers: &[Answer<'_>]) {
    for answer in answers {
        out.next()
            .raw("{\"type\":\"function_call_output\",\"call_id\":");
        out.str(&answer.id).raw(",\"output\":");
        let has_media = |part: &Part<'_>| matches!(part, Part::Medium(_));
        match answer.parts.iter().any(has_media) {
            true => content(out, &answer.parts),
            false => {
                out.str(&join(&answer.parts, "\n"));
            }
        }
        out.raw("}");
    }
}
