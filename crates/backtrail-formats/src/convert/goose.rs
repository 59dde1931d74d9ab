//! Sessions for goose: one JSON value for `goose session import`, as `goose session export`
//! writes it. goose gives the session an id of its own.

use std::io::{self, Write};

use backtrail::Json;
use backtrail::context::{HandOverCall, HandOverContent, HandOverMedia, HandOverPart};

use super::media::{MediaTypes, TakenMedia};
use super::steps::steps;
use super::tools::ToolRow;
use super::{ListWriter, OutgoingSession, TargetFormat, object, raw, tool_table, with_millis};

pub(super) struct GooseTarget;

impl TargetFormat for GooseTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::GOOSE
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::Images,
            in_results: MediaTypes::Images,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let head = object! {
            "id": session.new.id,
            "working_dir": session.directory(),
            "name": session.title,
            "user_set_name": true,
            "session_type": "user",
            "created_at": with_millis(session.began()),
            "updated_at": with_millis(session.new.at),
            "extension_data": object! {},
            "message_count": count(session),
        };
        let mut list = ListWriter::begin(out, &head, "conversation")?;
        let mut written = 0;
        for message in &session.messages {
            let seconds = session.time(message).as_millis() / 1000;
            let mut add = |role: &str, content: Vec<Json>| {
                let message = object! {
                    "id": format!("msg_{}", session.uuid(written)),
                    "role": role,
                    "created": seconds,
                    "content": content,
                    "metadata": object! {"userVisible": true, "agentVisible": true},
                };
                written += 1;
                list.add(&message)
            };
            match &message.content {
                HandOverContent::User(parts) => add("user", parts.iter().map(part).collect())?,
                HandOverContent::Assistant { parts, .. } => {
                    for step in steps(parts) {
                        // goose would join several texts without a space.
                        let texts = (!step.texts.is_empty()).then(|| text(&step.text()));
                        let calls = step.calls.iter().map(|call| request(call));
                        add("assistant", texts.into_iter().chain(calls).collect())?;
                        if !step.calls.is_empty() {
                            add(
                                "user",
                                step.calls.iter().map(|call| response(call)).collect(),
                            )?;
                        }
                    }
                }
            }
        }
        list.end()
    }
}

/// Returns how many messages goose has for a session.
fn count(session: &OutgoingSession<'_>) -> usize {
    let messages = session
        .messages
        .iter()
        .map(|message| match &message.content {
            HandOverContent::User(_) => 1,
            HandOverContent::Assistant { parts, .. } => {
                let steps: Vec<_> = steps(parts).collect();
                let answered = steps.iter().filter(|step| !step.calls.is_empty());
                steps.len() + answered.count()
            }
        });
    messages.sum()
}

fn part(part: &HandOverPart) -> Json {
    match part {
        HandOverPart::Text(text) => self::text(text),
        HandOverPart::Media(media) => image(media),
    }
}

fn text(text: &str) -> Json {
    object! {"type": "text", "text": text}
}

fn image(media: &HandOverMedia) -> Json {
    object! {"type": "image", "data": media.data, "mimeType": media.media_type}
}

fn request(call: &HandOverCall) -> Json {
    let value = object! {"name": call.name, "arguments": raw(&call.input)};
    object! {
        "type": "toolRequest",
        "id": call.id,
        "toolCall": object! {"status": "success", "value": value},
    }
}

fn response(call: &HandOverCall) -> Json {
    let content: Vec<Json> = call.output.iter().map(part).collect();
    let value = object! {"content": content, "isError": call.is_error};
    object! {
        "type": "toolResponse",
        "id": call.id,
        "toolResult": object! {"status": "success", "value": value},
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{hard, write};

    const NAME: &str = "goose";

    #[test]
    fn messages_are_counted_and_results_follow_their_calls() {
        let value = write(NAME, hard()).value();
        let messages = value["conversation"].as_array().unwrap();
        assert_eq!(value["message_count"], messages.len());
        for (call, result) in messages.iter().zip(&messages[1..]) {
            let ids = |message: &serde_json::Value, kind: &str| {
                let parts = message["content"].as_array().unwrap().iter();
                let parts = parts.filter(|part| part["type"] == kind);
                parts.map(|part| part["id"].clone()).collect::<Vec<_>>()
            };
            assert_eq!(ids(call, "toolRequest"), ids(result, "toolResponse"));
        }
    }
}
