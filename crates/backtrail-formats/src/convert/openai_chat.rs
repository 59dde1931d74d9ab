//! Sessions as the messages of OpenAI's chat completions, one on each line.

use std::io::{self, Write};

use backtrail::context::{HandOverCall, HandOverContent, HandOverPart};
use backtrail::{Fields, Json};

use super::media::{MediaTypes, TakenMedia};
use super::steps::steps;
use super::tools::ToolRow;
use super::{OutgoingSession, TargetFormat, data_url, joined_text, object, to_json, write_line};

pub(super) struct OpenAiChatTarget;

impl TargetFormat for OpenAiChatTarget {
    fn tools(&self) -> &'static [ToolRow] {
        &[]
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::Images,
            in_results: MediaTypes::None,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        for message in &session.messages {
            match &message.content {
                HandOverContent::User(parts) => {
                    let message = object! {"role": "user", "content": content(parts)};
                    write_line(out, &message)?;
                }
                HandOverContent::Assistant { parts, .. } => {
                    for step in steps(parts) {
                        let mut answer = Fields::default();
                        answer.push("role", to_json("assistant"));
                        let text = (!step.texts.is_empty()).then(|| step.text());
                        answer.push("content", to_json(&text));
                        if !step.calls.is_empty() {
                            let calls = step.calls.iter().map(|call| tool_call(call));
                            answer.push("tool_calls", to_json(&calls.collect::<Vec<_>>()));
                        }
                        write_line(out, &to_json(&answer))?;
                        for call in step.calls {
                            let result = object! {
                                "role": "tool",
                                "tool_call_id": call.id,
                                "content": joined_text(&call.output),
                            };
                            write_line(out, &result)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns parts as a content: one text as a string, anything else as a list.
pub(super) fn content(parts: &[HandOverPart]) -> Json {
    if let [] | [HandOverPart::Text(_)] = parts {
        return to_json(&joined_text(parts));
    }
    let parts = parts.iter().map(|part| match part {
        HandOverPart::Text(text) => object! {"type": "text", "text": text},
        HandOverPart::Media(media) => object! {
            "type": "image_url",
            "image_url": object! {"url": data_url(media)},
        },
    });
    to_json(&parts.collect::<Vec<_>>())
}

/// Returns a call, whose arguments are JSON in a string.
pub(super) fn tool_call(call: &HandOverCall) -> Json {
    let function = object! {"name": call.name, "arguments": call.input};
    object! {"id": call.id, "type": "function", "function": function}
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{PNG, answer_first, hard, write};

    const NAME: &str = "openai-chat";

    #[test]
    fn messages_are_in_the_shape_of_chat_completions() {
        let lines = write(NAME, hard()).lines();
        let roles: Vec<_> = lines
            .iter()
            .map(|line| line["role"].as_str().unwrap())
            .collect();
        let expected = "user assistant tool tool assistant tool assistant tool tool assistant \
            user assistant tool tool assistant user assistant user";
        assert_eq!(roles.join(" "), expected);
        assert_eq!(lines[1]["content"], "I look.");
        assert_eq!(
            lines[1]["tool_calls"][0]["function"]["arguments"],
            r#"{"command":"ls -l","n":1.0}"#
        );
        assert_eq!(lines[2]["tool_call_id"], "call_1");
        assert_eq!(lines[3]["content"], "");
        assert_eq!(lines[4]["content"], serde_json::Value::Null);
        let prompt = &lines[10]["content"];
        assert_eq!(
            prompt[1]["image_url"]["url"],
            format!("data:image/png;base64,{PNG}")
        );
        assert_eq!(lines[14]["content"], "One.\nTwo.");
        let first = write(NAME, answer_first()).lines();
        assert_eq!(first[0]["role"], "assistant");
    }

    #[test]
    fn every_call_is_answered_right_after_its_message() {
        let lines = write(NAME, hard()).lines();
        let mut lines = lines.iter();
        while let Some(line) = lines.next() {
            for call in line["tool_calls"].as_array().into_iter().flatten() {
                let answer = lines.next().unwrap();
                assert_eq!(answer["tool_call_id"], call["id"]);
            }
        }
    }
}
