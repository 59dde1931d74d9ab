//! Sessions as traces for the Hugging Face Hub: a header, and a message on each line.

use std::io::{self, Write};

use backtrail::context::{HandOverCall, HandOverContent, HandOverPart};
use backtrail::{Fields, Json};

use super::media::{MediaTypes, TakenMedia};
use super::openai_chat::{content, tool_call};
use super::steps::steps;
use super::tools::ToolRow;
use super::{OutgoingSession, TargetFormat, object, to_json, write_line};

pub(super) struct HfTracesTarget;

impl TargetFormat for HfTracesTarget {
    fn tools(&self) -> &'static [ToolRow] {
        &[]
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::Images,
            in_results: MediaTypes::Images,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let header = object! {
            "type": "session",
            "harness": "backtrail",
            "id": session.new.id,
            "name": session.title,
            "cwd": session.directory(),
        };
        write_line(out, &header)?;
        for message in &session.messages {
            let at = session.time(message).as_millis();
            let mut add = |mut fields: Fields| {
                fields.push("timestamp", to_json(&at));
                write_line(out, &object! {"type": "message", "message": fields})
            };
            match &message.content {
                HandOverContent::User(parts) => add(said("user", content(parts)))?,
                HandOverContent::Assistant { model, parts } => {
                    for step in steps(parts) {
                        let texts = step.texts.iter();
                        let texts = texts.map(|text| HandOverPart::Text((*text).to_owned()));
                        let mut answer = said("assistant", content(&texts.collect::<Vec<_>>()));
                        if let Some(model) = model {
                            answer.push("model", to_json(model));
                        }
                        if !step.calls.is_empty() {
                            let calls = step.calls.iter().map(|call| tool_call(call));
                            answer.push("toolCalls", to_json(&calls.collect::<Vec<_>>()));
                        }
                        add(answer)?;
                        for call in step.calls {
                            add(result(call))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn said(role: &str, content: Json) -> Fields {
    let mut message = Fields::default();
    message.push("role", to_json(role));
    message.push("content", content);
    message
}

fn result(call: &HandOverCall) -> Fields {
    let mut result = said("tool", content(&call.output));
    result.push("toolCallId", to_json(&call.id));
    result.push("name", to_json(&call.name));
    if call.is_error {
        result.push("isError", to_json(&true));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{hard, write};
    use crate::format::formats;
    use crate::source::Source;

    const NAME: &str = "hf-traces";

    #[test]
    fn no_other_format_takes_it_for_its_own() {
        let written = write(NAME, hard());
        let source = Source::from_bytes("/data/a.jsonl", written.text.as_bytes());
        let names = formats().filter(|format| format.recognises(&source));
        let names: Vec<_> = names.map(|format| format.name()).collect();
        assert_eq!(names, [NAME]);
    }
}
