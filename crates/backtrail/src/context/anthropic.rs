//! Anthropic's Messages: `{"system","messages"}`.

use super::parts::{Author, ContextTurn, Medium, Mended, SentResult, TurnPart};
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
    out.items(&context.items, turn, results).raw("]}");
    out.finish()
}

fn turn(out: &mut Writer, turn: &ContextTurn<'_>) {
    let role = match turn.author {
        Author::Assistant => "assistant",
        Author::User | Author::System => "user",
    };
    out.next().raw("{\"role\":").str(role);
    out.raw(",\"content\":");
    parts(out, &turn.parts);
    out.raw("}");
}

fn parts(out: &mut Writer, parts: &[TurnPart<'_>]) {
    out.raw("[");
    for part in parts {
        self::part(out, part);
    }
    out.raw("]");
}

fn part(out: &mut Writer, part: &TurnPart<'_>) {
    match part {
        TurnPart::Text(text) => out.next().raw("{\"type\":\"text\",\"text\":").str(text),
        TurnPart::Thought { text, signature } => {
            out.next()
                .raw("{\"type\":\"thinking\",\"thinking\":")
                .str(text);
            out.raw(",\"signature\":").str(signature)
        }
        TurnPart::Redacted(data) => {
            let head = "{\"type\":\"redacted_thinking\",\"data\":";
            out.next().raw(head).str(data)
        }
        TurnPart::Call(call) => {
            out.next()
                .raw("{\"type\":\"tool_use\",\"id\":")
                .str(&call.id);
            out.raw(",\"name\":").str(&call.name);
            out.raw(",\"input\":").raw(&call.input)
        }
        TurnPart::Medium(medium) => self::medium(out, medium),
        // Only in the neutral shape.
        TurnPart::Own(_) => return,
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

/// All results of one message form one message.
fn results(out: &mut Writer, answers: &[SentResult<'_>]) {
    out.next().raw("{\"role\":\"user\",\"content\":[");
    for answer in answers {
        out.next().raw("{\"type\":\"tool_result\",\"tool_use_id\":");
        out.str(&answer.id);
        match answer.parts.as_slice() {
            [] => {}
            [TurnPart::Text(text)] => {
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
