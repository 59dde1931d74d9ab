//! Sessions for Cline: `<id>.messages.json`, in the shape of Anthropic's messages, and the
//! manifest `<id>.json` beside it, by which Cline finds the session.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use backtrail::context::{HandOverCall, HandOverContent, HandOverMedia, HandOverPart};
use backtrail::{Fields, Json, Timestamp};

use super::media::{MediaTypes, TakenMedia};
use super::steps::{Step, steps};
use super::tools::ToolRow;
use super::{
    ListWriter, OutgoingSession, TargetFormat, joined_text, object, raw, to_json, tool_table,
    with_millis,
};

pub(super) struct ClineTarget;

/// The version whose files these are.
const VERSION: &str = "3.0.65";

/// Makes the id of a session: the time, and five letters or digits.
pub(crate) fn session_id(at: Timestamp, random: [u8; 16]) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let letters = random.iter().take(5);
    let letters = letters.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    format!("{}_{}", at.as_millis(), letters.collect::<String>())
}

impl TargetFormat for ClineTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::CLINE
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::Images,
            in_results: MediaTypes::Images,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let id = &session.new.id;
        let head = object! {
            "version": 1,
            "updated_at": with_millis(session.new.at),
            "agent": "lead",
            "sessionId": id,
            "origin": object! {
                "source": "cli",
                "mode": "user",
                "sessionId": id,
                "version": VERSION,
            },
        };
        let mut list = ListWriter::begin(out, &head, "messages")?;
        let mut written = 0;
        for message in &session.messages {
            let at = session.time(message).as_millis();
            let mut add = |role: &str, content: &[Json], model: Option<&str>| {
                let mut message = Fields::default();
                message.push("id", to_json(&session.uuid(written)));
                message.push("role", to_json(role));
                message.push("content", to_json(content));
                message.push("ts", to_json(&at));
                if let Some(model) = model {
                    let model = object! {"id": model, "provider": "unknown"};
                    message.push("modelInfo", model);
                }
                written += 1;
                list.add(&to_json(&message))
            };
            match &message.content {
                HandOverContent::User(parts) => {
                    let content: Vec<Json> = parts.iter().map(prompt_part).collect();
                    add("user", &content, None)?;
                }
                HandOverContent::Assistant { model, parts } => {
                    for step in steps(parts) {
                        let model = model.as_deref().unwrap_or("unknown");
                        add("assistant", &answer(&step), Some(model))?;
                        let results = step.calls.iter().map(|call| result(call));
                        let results: Vec<Json> = results.collect();
                        if !results.is_empty() {
                            add("user", &results, None)?;
                        }
                    }
                }
            }
        }
        list.end()
    }

    fn companions(&self, session: &OutgoingSession<'_>, main: &Path) -> Vec<(PathBuf, String)> {
        let id = &session.new.id;
        let manifest = object! {
            "version": 1,
            "session_id": id,
            "source": "cli",
            "pid": 0,
            "started_at": with_millis(session.began()),
            "ended_at": with_millis(session.new.at),
            "exit_code": 0,
            "status": "completed",
            "interactive": true,
            "provider": "unknown",
            "model": "unknown",
            "cwd": session.directory(),
            "workspace_root": session.directory(),
            "enable_tools": true,
            "enable_spawn": true,
            "enable_teams": true,
            "prompt": session.title,
            "metadata": object! {
                "sessionHistoryOrigin": object! {"mode": "user", "version": VERSION},
                "title": session.title,
            },
            "messages_path": main,
        };
        let path = main.with_file_name(format!("{id}.json"));
        vec![(path, manifest.as_str().to_owned() + "\n")]
    }
}

fn prompt_part(part: &HandOverPart) -> Json {
    match part {
        HandOverPart::Text(text) => {
            let text = format!("<user_input mode=\"act\">{text}</user_input>");
            object! {"type": "text", "text": text}
        }
        HandOverPart::Media(media) => image(media),
    }
}

fn image(media: &HandOverMedia) -> Json {
    object! {"type": "image", "data": media.data, "mediaType": media.media_type}
}

/// Returns the texts of an answer as one, which Cline would join without a space, and the calls.
fn answer(step: &Step<'_>) -> Vec<Json> {
    let text = step.text();
    let text = (!text.is_empty()).then(|| object! {"type": "text", "text": text});
    let calls = step.calls.iter().map(|call| {
        object! {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": raw(&call.input),
        }
    });
    text.into_iter().chain(calls).collect()
}

fn result(call: &HandOverCall) -> Json {
    let has_media = super::media_in(&call.output).next().is_some();
    let content = match has_media {
        false => to_json(&joined_text(&call.output)),
        true => {
            let parts = call.output.iter().map(|part| match part {
                HandOverPart::Text(text) => object! {"type": "text", "text": text},
                HandOverPart::Media(media) => image(media),
            });
            to_json(&parts.collect::<Vec<_>>())
        }
    };
    object! {
        "type": "tool_result",
        "tool_use_id": call.id,
        "name": call.name,
        "content": content,
        "is_error": call.is_error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{DIRECTORY, ID, TITLE, hard, time, write};
    use super::*;
    use crate::formats::Cline;
    use crate::testing::read_sessions;

    const NAME: &str = "cline";

    #[test]
    fn prompts_are_wrapped_and_results_follow_their_calls() {
        let value = write(NAME, hard()).value();
        let messages = value["messages"].as_array().unwrap();
        let first = &messages[0]["content"][0]["text"];
        assert!(
            first
                .as_str()
                .unwrap()
                .starts_with("<user_input mode=\"act\">first")
        );
        for (call, result) in messages.iter().zip(&messages[1..]) {
            let ids = |message: &serde_json::Value, kind: &str, id: &str| {
                let blocks = message["content"].as_array().unwrap().iter();
                let blocks = blocks.filter(|block| block["type"] == kind);
                blocks.map(|block| block[id].clone()).collect::<Vec<_>>()
            };
            assert_eq!(
                ids(call, "tool_use", "id"),
                ids(result, "tool_result", "tool_use_id")
            );
        }
        let read = &messages[1]["content"][1];
        assert_eq!(read["name"], "run_commands");
        assert_eq!(read["input"]["commands"][0], "ls -l");
    }

    #[test]
    fn the_manifest_beside_it_has_the_name_and_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let written = write(NAME, hard());
        let [(path, text)] = &written.companions[..] else {
            panic!("{:?}", written.companions);
        };
        assert_eq!(path, Path::new(&format!("/place/chats/{ID}.json")));
        let main = dir.path().join(format!("{ID}.messages.json"));
        std::fs::write(&main, &written.text).unwrap();
        std::fs::write(dir.path().join(format!("{ID}.json")), text).unwrap();
        let sessions = read_sessions(&Cline, &main).unwrap();
        let details = &sessions[0].1.main().unwrap().details;
        assert_eq!(details.title.as_deref(), Some(TITLE));
        assert_eq!(details.directory.as_deref(), Some(Path::new(DIRECTORY)));
    }

    #[test]
    fn an_id_is_the_time_and_five_letters() {
        let id = session_id(time(1_794_812_339_387), [7; 16]);
        assert_eq!(id, "1794812339387_77777");
        let id = session_id(time(1_794_812_339_387), [255; 16]);
        assert_eq!(id, "1794812339387_33333");
    }
}
