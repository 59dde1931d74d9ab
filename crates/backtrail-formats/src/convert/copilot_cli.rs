//! Sessions for Copilot CLI: `<id>/events.jsonl`, one event on each line, each after its parent.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use backtrail::Json;
use backtrail::context::{HandOverCall, HandOverContent, HandOverMessage, HandOverPart};

use super::media::{MediaTypes, TakenMedia};
use super::steps::{Step, steps};
use super::tools::ToolRow;
use super::{
    OutgoingSession, TargetFormat, joined_text, media_in, object, raw, to_json, tool_table,
    with_millis, write_line,
};

pub(super) struct CopilotCliTarget;

/// The version whose events these are.
const VERSION: &str = "1.0.102";

/// The tool that runs commands.
const SHELL: &str = "bash";

impl TargetFormat for CopilotCliTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::COPILOT_CLI
    }

    /// It keeps the images of results, but does not send them again.
    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::Images,
            in_results: MediaTypes::None,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut events = Events {
            session,
            out,
            last: None,
            count: 0,
            turn: 0,
            interaction: session.uuid(usize::MAX),
        };
        events.start()?;
        for message in &session.messages {
            match &message.content {
                HandOverContent::User(parts) => events.prompt(message, parts)?,
                HandOverContent::Assistant { model, parts } => {
                    for step in steps(parts) {
                        events.step(message, model.as_deref(), &step)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn companions(&self, session: &OutgoingSession<'_>, main: &Path) -> Vec<(PathBuf, String)> {
        // A JSON string is one of YAML.
        let text = |text: &str| to_json(text);
        let lines = [
            format!("id: {}", session.new.id),
            format!("cwd: {}", text(session.directory())),
            "client_name: github/cli".to_owned(),
            format!("name: {}", text(&session.title)),
            "user_named: true".to_owned(),
            "summary_count: 0".to_owned(),
            "fork_count: 0".to_owned(),
            format!("created_at: {}", with_millis(session.began())),
            format!("updated_at: {}", with_millis(session.new.at)),
        ];
        let path = main.with_file_name("workspace.yaml");
        vec![(path, lines.join("\n") + "\n")]
    }
}

/// The events so far.
struct Events<'s> {
    session: &'s OutgoingSession<'s>,
    out: &'s mut dyn Write,
    last: Option<String>,
    count: usize,
    /// The number of the next response to a prompt.
    turn: usize,
    /// The id of a prompt and all that follows it.
    interaction: String,
}

impl Events<'_> {
    fn start(&mut self) -> io::Result<()> {
        let session = self.session;
        let began = with_millis(session.began());
        let data = object! {
            "sessionId": session.new.id,
            "version": 1,
            "producer": "copilot-agent",
            "copilotVersion": VERSION,
            "startTime": began,
            "context": object! {"cwd": session.directory()},
            "alreadyInUse": false,
            "remoteSteerable": false,
        };
        self.event("session.start", &began, &data)
    }

    fn prompt(&mut self, message: &HandOverMessage, parts: &[HandOverPart]) -> io::Result<()> {
        let n = self.count;
        self.turn = 0;
        self.interaction = self.session.uuid(usize::MAX - 2 * n - 1);
        let text = joined_text(parts);
        let images = media_in(parts).map(|image| {
            object! {
                "type": "blob",
                "data": image.data,
                "mimeType": image.media_type,
            }
        });
        let data = object! {
            "content": text,
            "transformedContent": text,
            "attachments": images.collect::<Vec<_>>(),
            "messageId": self.session.uuid(usize::MAX - 2 * n - 2),
            "interactionId": self.interaction,
        };
        self.event_of("user.message", message, &data)
    }

    fn step(
        &mut self,
        message: &HandOverMessage,
        model: Option<&str>,
        step: &Step<'_>,
    ) -> io::Result<()> {
        let turn = self.turn.to_string();
        self.turn += 1;
        let start = object! {"turnId": turn, "interactionId": self.interaction};
        self.event_of("assistant.turn_start", message, &start)?;
        let requests = step.calls.iter().map(|call| {
            object! {
                "toolCallId": call.id,
                "name": call.name,
                "arguments": raw(&call.input),
                "type": "function",
            }
        });
        let mut data = backtrail::Fields::default();
        let id = self.session.uuid(usize::MAX - 2 * self.count - 2);
        data.push("messageId", to_json(&id));
        if let Some(model) = model {
            data.push("model", to_json(model));
        }
        data.push("content", to_json(&step.text()));
        data.push("toolRequests", to_json(&requests.collect::<Vec<_>>()));
        data.push("interactionId", to_json(&self.interaction));
        data.push("turnId", to_json(&turn));
        self.event_of("assistant.message", message, &to_json(&data))?;
        for call in &step.calls {
            let data = object! {
                "toolCallId": call.id,
                "toolName": call.name,
                "arguments": raw(&call.input),
                "turnId": turn,
            };
            self.event_of("tool.execution_start", message, &data)?;
        }
        for call in &step.calls {
            let data = self.result(call, &turn);
            self.event_of("tool.execution_complete", message, &data)?;
        }
        self.event_of("assistant.turn_end", message, &object! {"turnId": turn})
    }

    /// Returns the result of a call. A command that failed was still run with success.
    fn result(&self, call: &HandOverCall, turn: &str) -> Json {
        let text = joined_text(&call.output);
        let is_shell = call.name == SHELL;
        let mut data = backtrail::Fields::default();
        data.push("toolCallId", to_json(&call.id));
        data.push("interactionId", to_json(&self.interaction));
        data.push("turnId", to_json(turn));
        if is_shell || !call.is_error {
            let code = i32::from(call.is_error);
            data.push("shellExecution", object! {"exitCode": code});
        }
        data.push("success", to_json(&(is_shell || !call.is_error)));
        data.push("result", object! {"content": text});
        if call.is_error && !is_shell {
            data.push("error", object! {"message": text});
        }
        to_json(&data)
    }

    fn event_of(&mut self, kind: &str, message: &HandOverMessage, data: &Json) -> io::Result<()> {
        let at = with_millis(self.session.time(message));
        self.event(kind, &at, data)
    }

    fn event(&mut self, kind: &str, at: &str, data: &Json) -> io::Result<()> {
        let id = self.session.uuid(self.count);
        let event = object! {
            "type": kind,
            "data": data,
            "id": id,
            "timestamp": at,
            "parentId": self.last,
        };
        self.last = Some(id);
        self.count += 1;
        write_line(self.out, &event)
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{DIRECTORY, TITLE, hard, write};
    use super::*;
    use crate::formats::CopilotCli;
    use crate::testing::read_sessions;

    const NAME: &str = "copilot-cli";

    #[test]
    fn every_event_has_the_one_before_it_as_its_parent() {
        let mut last = serde_json::Value::Null;
        let mut ids = std::collections::HashSet::new();
        for event in write(NAME, hard()).lines() {
            assert_eq!(event["parentId"], last);
            last = event["id"].clone();
            assert!(ids.insert(last.to_string()));
        }
    }

    #[test]
    fn calls_are_answered_before_the_next_text_and_a_failed_command_was_run() {
        let written = write(NAME, hard());
        let lines = written.lines();
        let is = |kind: &'static str| lines.iter().filter(move |line| line["type"] == kind);
        let contents: Vec<_> = is("assistant.message")
            .map(|line| line["data"]["content"].as_str().unwrap())
            .collect();
        let expected = ["I look.", "", "Between.", "After.", "", "One.\nTwo.", "Ok."];
        assert_eq!(contents, expected);
        let results: Vec<_> = is("tool.execution_complete")
            .map(|line| {
                (
                    &line["data"]["success"],
                    &line["data"]["shellExecution"]["exitCode"],
                )
            })
            .filter(|(success, code)| **success == false || **code == 1)
            .collect();
        assert_eq!(results.len(), 2);
        assert_eq!(
            results[0],
            (&serde_json::json!(false), &serde_json::Value::Null)
        );
        assert_eq!(
            results[1],
            (&serde_json::json!(true), &serde_json::json!(1))
        );
    }

    #[test]
    fn the_file_beside_it_has_the_name_and_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let written = write(NAME, hard());
        let [(path, text)] = &written.companions[..] else {
            panic!("{:?}", written.companions);
        };
        assert!(path.ends_with("workspace.yaml"));
        let main = dir.path().join("events.jsonl");
        std::fs::write(&main, &written.text).unwrap();
        std::fs::write(dir.path().join("workspace.yaml"), text).unwrap();
        let sessions = read_sessions(&CopilotCli, &main).unwrap();
        let details = &sessions[0].1.main().unwrap().details;
        assert_eq!(details.title.as_deref(), Some(TITLE));
        assert_eq!(details.directory.as_deref(), Some(Path::new(DIRECTORY)));
    }
}
