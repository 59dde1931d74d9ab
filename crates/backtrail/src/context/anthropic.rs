//! Anthropic's Messages: `{"system","messages"}`.

use super::parts::{Answer, Item, Medium, Mended, Part, Turn, Who};
use super::rules::Class;
use super::writer::Writer;

pub(super) fn write(context: &Mended<'_>) -> String {
    let mut out = Writer::new();
    out.raw("{");
    if !context.front.is_empty() {
        out.raw("\"system\":[");
        for part in context.front.iter().flat_map(|turn| &turn.parts) {
            self::part(&mut out, part);
        }
        out.raw("],");
    }
    out.raw("\"messages\":[");
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
        Who::Assistant => "assistant",
        Who::User | Who::System => "user",
    };
    out.next().raw("{\"role\":").str(role);
    out.raw(",\"content\":");
    parts(out, &turn.parts);
    out.raw("}");
}

fn parts(out: &mut Writer, parts: &[Part<'_>]) {
    out.raw("[");
    for part in parts {
        self::part(out, part);
    }
    out.raw("]");
}

fn part(out: &mut Writer, part: &Part<'_>) {
    match part {
        Part::Text(text) => out.next().raw("{\"type\":\"text\",\"text\":").str(text),
        Part::Thought { text, signature } => {
            out.next()
                .raw("{\"type\":\"thinking\",\"thinking\":")
                .str(text);
            out.raw(",\"signature\":").str(signature)
        }
        Part::Redacted(data) => {
            let head = "{\"type\":\"redacted_thinking\",\"data\":";
            out.next().raw(head).str(data)
        }
        Part::Call(call) => {
            out.next()
                .raw("{\"type\":\"tool_use\",\"id\":")
                .str(&call.id);
            out.raw(",\"name\":").str(&call.name);
            out.raw(",\"input\":").raw(&call.input)
        }
        Part::Medium(medium) => self::medium(out, medium),
        // Only in the neutral shape.
        Part::Own(_) => return,
    }
    .raw("}");
}

fn medium<'w>(out: &'w mut Writer, medium: &Medium<'_>) -> &'w mut Writer {
    let kind = match Class::of(&medium.media_type) {
        Class::Image => "image",
        Class::Pdf | Class::Other => "document",
    };
    out.next().raw("{\"type\":").str(kind);
    out.raw(",\"source\":{\"type\":\"base64\",\"media_type\":");
    out.str(&medium.media_type);
    let data = medium.data.as_deref().unwrap_or("");
    out.raw(",\"data\":").str(data).raw("}")
}

/// All results of one message are one message.
fn results(out: &mut Writer, answers: &[Answer<'_>]) {
    out.next().raw("{\"role\":\"user\",\"content\":[");
    for answer in answers {
        out.next().raw("{\"type\":\"tool_result\",\"tool_use_id\":");
        out.str(&answer.id);
        match answer.parts.as_slice() {
            [] => {}
            [Part::Text(text)] => {
                out.raw(",\"content\":").str(text);
            }
            several => {
                out.raw(",\"content\":");
                parts(out, several);
            }
        }
        if answer.is_error {
            out.raw(",\"is_error\":true");
        }
        out.raw("}");
    }
    out.raw("]}");
}
