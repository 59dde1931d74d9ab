//! Sessions as trajectories in the Agent Trajectory Interchange Format (ATIF), version 1.8.

use std::io::{self, Write};

use backtrail::context::{HandOverCall, HandOverContent, HandOverPart};
use backtrail::{Fields, Json};

use super::media::{MediaTypes, TakenMedia};
use super::steps::{Step, steps};
use super::tools::ToolRow;
use super::{
    ListWriter, OutgoingSession, TargetFormat, joined_text, object, raw, to_json, with_millis,
};

pub(super) struct AtifTarget;

impl TargetFormat for AtifTarget {
    fn tools(&self) -> &'static [ToolRow] {
        &[]
    }

    /// Images are files of their own there.
    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::None,
            in_results: MediaTypes::None,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let head = object! {
            "schema_version": "ATIF-v1.8",
            "session_id": session.new.id,
            "agent": object! {"name": "backtrail", "version": env!("CARGO_PKG_VERSION")},
            "extra": object! {"cwd": session.directory(), "title": session.title},
        };
        let mut list = ListWriter::begin(out, &head, "steps")?;
        let mut number = 0;
        for message in &session.messages {
            let at = with_millis(session.time(message));
            let mut begin = |source: &str, texts: &[&str]| {
                number += 1;
                let mut step = Fields::default();
                step.push("step_id", to_json(&number));
                step.push("timestamp", to_json(&at));
                step.push("source", to_json(source));
                step.push("message", content(texts));
                step
            };
            match &message.content {
                HandOverContent::User(parts) => {
                    let texts: Vec<&str> = parts.iter().filter_map(text).collect();
                    list.add(&to_json(&begin("user", &texts)))?;
                }
                HandOverContent::Assistant { model, parts } => {
                    for step in steps(parts) {
                        let mut fields = begin("agent", &step.texts);
                        add_answer(&mut fields, model.as_deref(), &step);
                        list.add(&to_json(&fields))?;
                    }
                }
            }
        }
        list.end()
    }
}

fn text(part: &HandOverPart) -> Option<&str> {
    match part {
        HandOverPart::Text(text) => Some(text),
        HandOverPart::Media(_) => None,
    }
}

/// Returns texts as a message: one as a string, several as a list.
fn content(texts: &[&str]) -> Json {
    match texts {
        [] => to_json(""),
        [text] => to_json(text),
        texts => {
            let parts = texts
                .iter()
                .map(|text| object! {"type": "text", "text": text});
            to_json(&parts.collect::<Vec<_>>())
        }
    }
}

fn add_answer(fields: &mut Fields, model: Option<&str>, step: &Step<'_>) {
    if let Some(model) = model {
        fields.push("model_name", to_json(model));
    }
    if step.calls.is_empty() {
        return;
    }
    let calls = step.calls.iter().map(|call| {
        object! {
            "tool_call_id": call.id,
            "function_name": call.name,
            "arguments": raw(&call.input),
        }
    });
    fields.push("tool_calls", to_json(&calls.collect::<Vec<_>>()));
    let results: Vec<Json> = step.calls.iter().map(|call| result(call)).collect();
    fields.push("observation", object! {"results": results});
}

fn result(call: &HandOverCall) -> Json {
    let mut result = Fields::default();
    result.push("source_call_id", to_json(&call.id));
    result.push("content", to_json(&joined_text(&call.output)));
    if call.is_error {
        result.push("extra", object! {"is_error": true});
    }
    to_json(&result)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::read_back::{answer_first, hard, write};

    const NAME: &str = "atif";

    /// Where the schema is, if it is there.
    const SCHEMA: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/atif-v1.8.schema.json"
    );

    #[test]
    fn steps_are_numbered_and_have_their_results() {
        let value = write(NAME, hard()).value();
        for (n, step) in value["steps"].as_array().unwrap().iter().enumerate() {
            assert_eq!(step["step_id"], n + 1);
            let calls = step["tool_calls"].as_array().map_or(0, Vec::len);
            let results = step["observation"]["results"].as_array();
            assert_eq!(results.map_or(0, Vec::len), calls);
        }
    }

    #[test]
    fn a_trajectory_fits_the_schema() {
        const CHECK: &str = "import json, sys, jsonschema\n\
            jsonschema.validate(json.load(sys.stdin), json.load(open(sys.argv[1])))";
        let python = |code: &str| {
            let mut python = std::process::Command::new("python3");
            python.args(["-c", code, SCHEMA]);
            python.stdin(std::process::Stdio::piped());
            python.stderr(std::process::Stdio::piped());
            python
        };
        let has_schema = std::path::Path::new(SCHEMA).exists();
        let has_module = python("import jsonschema").status();
        if !has_schema || !has_module.is_ok_and(|status| status.success()) {
            eprintln!(
                "SKIPPED: needs python3 with jsonschema, and the schema; nothing was validated"
            );
            return;
        }
        for hand_over in [hard(), answer_first()] {
            let mut child = python(CHECK).spawn().unwrap();
            let text = write(NAME, hand_over).text;
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(text.as_bytes()).unwrap();
            drop(stdin);
            let output = child.wait_with_output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{error}");
        }
    }
}
