//! Sessions for Gemini CLI: a header, and a line for each message. The results of calls are in the
//! message that made them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use backtrail::Json;
use backtrail::context::{HandOverCall, HandOverContent, HandOverMessage, HandOverPart, ReplyPart};
use sha2::{Digest, Sha256};

use super::google::{part, response};
use super::media::{MediaTypes, TakenMedia};
use super::steps::split;
use super::tools::ToolRow;
use super::{
    OutgoingSession, TargetFormat, joined_text, object, raw, to_json, tool_table, with_millis,
    write_line,
};

pub(super) struct GeminiCliTarget;

impl TargetFormat for GeminiCliTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::GEMINI_CLI
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::ImagesAndPdf,
            in_results: MediaTypes::ImagesAndPdf,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        write_line(out, &header(session))?;
        let mut lines = 0;
        let mut write = |message: &HandOverMessage, line: &Line<'_>| {
            let id = session.uuid(lines);
            lines += 1;
            write_line(out, &line.json(&id, &with_millis(session.time(message))))
        };
        for message in &session.messages {
            match &message.content {
                HandOverContent::User(parts) => write(message, &Line::User(parts))?,
                HandOverContent::Assistant { model, parts } => {
                    for parts in split(parts) {
                        let model = model.as_deref();
                        write(message, &Line::Model { model, parts })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The directory of a project says which one it is.
    fn companions(&self, session: &OutgoingSession<'_>, main: &Path) -> Vec<(PathBuf, String)> {
        let project = main.ancestors().nth(2);
        let root = project.map(|project| project.join(".project_root"));
        let root = root.filter(|root| !root.exists());
        let directory = session.directory().to_owned();
        root.map(|root| (root, directory)).into_iter().collect()
    }
}

fn header(session: &OutgoingSession<'_>) -> Json {
    let hash = Sha256::digest(session.directory().as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let last = session.messages.last();
    let updated = last.map_or(session.new.at, |last| session.time(last));
    object! {
        "sessionId": session.new.id,
        "projectHash": hash,
        "startTime": with_millis(session.began()),
        "lastUpdated": with_millis(updated),
        "kind": "main",
        "summary": session.title,
    }
}

/// A line with a message.
enum Line<'m> {
    User(&'m [HandOverPart]),
    Model {
        model: Option<&'m str>,
        parts: &'m [ReplyPart],
    },
}

impl Line<'_> {
    fn json(&self, id: &str, at: &str) -> Json {
        match self {
            Self::User(parts) => user(id, at, parts),
            Self::Model { model, parts } => {
                let texts = parts.iter().filter_map(|part| match part {
                    ReplyPart::Text(text) => Some(text.as_str()),
                    ReplyPart::Call(_) => None,
                });
                let calls = parts.iter().filter_map(|part| match part {
                    ReplyPart::Call(call) => Some(tool_call(call, at)),
                    ReplyPart::Text(_) => None,
                });
                object! {
                    "id": id,
                    "timestamp": at,
                    "type": "gemini",
                    "content": texts_json(&texts.collect::<Vec<_>>()),
                    "thoughts": [(); 0],
                    "tokens": None::<u64>,
                    "model": model,
                    "toolCalls": calls.collect::<Vec<_>>(),
                }
            }
        }
    }
}

fn user(id: &str, at: &str, parts: &[HandOverPart]) -> Json {
    let shown: Vec<Json> = parts.iter().map(part).collect();
    match looks_like_command(parts) {
        false => object! {"id": id, "timestamp": at, "type": "user", "content": shown},
        true => object! {
            "id": id,
            "timestamp": at,
            "type": "user",
            "content": parts.iter().map(part_of_prompt).collect::<Vec<_>>(),
            "displayContent": shown,
        },
    }
}

/// Returns whether Gemini CLI would take a prompt for a command to itself, or for its own context,
/// and not send it to the model.
fn looks_like_command(parts: &[HandOverPart]) -> bool {
    const STARTS: [&str; 4] = ["/", "?", "<session_context>", "<hook_context>"];
    let text = parts.iter().map_while(|part| match part {
        HandOverPart::Text(text) => Some(text.as_str()),
        HandOverPart::Media(_) => None,
    });
    let text: String = text.collect();
    let is_blank = parts
        .iter()
        .all(|part| matches!(part, HandOverPart::Text(_)));
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    (is_blank && text.is_empty()) || STARTS.iter().any(|start| text.starts_with(start))
}

/// Returns a part of a prompt that looks like a command. Gemini CLI looks only at the texts of parts
/// that do not say whether they are thoughts.
fn part_of_prompt(part: &HandOverPart) -> Json {
    match part {
        HandOverPart::Text(text) => object! {"text": text, "thought": false},
        HandOverPart::Media(_) => self::part(part),
    }
}

/// Returns texts as a content.
fn texts_json(texts: &[&str]) -> Json {
    match texts {
        [] => to_json(""),
        [text] => to_json(text),
        texts => to_json(
            &texts
                .iter()
                .map(|text| object! {"text": text})
                .collect::<Vec<_>>(),
        ),
    }
}

fn tool_call(call: &HandOverCall, at: &str) -> Json {
    // Only some models take media inside of a result, but all take them after it.
    let media = call.output.iter();
    let media = media.filter(|part| matches!(part, HandOverPart::Media(_)));
    let mut result = vec![response(call, Vec::new())];
    result.extend(media.map(part));
    object! {
        "id": call.id,
        "name": call.name,
        "args": raw(&call.input),
        "result": result,
        "status": if call.is_error { "error" } else { "success" },
        "timestamp": at,
        "resultDisplay": joined_text(&call.output),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read_back::{DIRECTORY, short, write};

    #[test]
    fn the_header_names_the_project() {
        let lines = write("gemini-cli", short("fix it")).lines();
        let header = &lines[0];
        // The SHA-256 of /work/shop.
        let hash = "dbea7844263c6ce66006e75f3148ea36ea4d8a72e5da9660fcf609b9195c3e92";
        assert_eq!(header["projectHash"], hash);
        let companions = write("gemini-cli", short("fix it")).companions;
        let root = Path::new("/place/.project_root");
        assert_eq!(companions, [(root.to_owned(), DIRECTORY.to_owned())]);
    }

    #[test]
    fn a_prompt_that_looks_like_a_command_is_still_sent() {
        for (prompt, is_marked) in [
            ("fix it", false),
            ("a/b", false),
            ("/src/a.rs is broken", true),
            (" \u{feff}/src/a.rs", true),
            ("?", true),
            ("<session_context> is what?", true),
        ] {
            let lines = write("gemini-cli", short(prompt)).lines();
            let line = &lines[1];
            let part = &line["content"][0];
            assert_eq!(part["text"], prompt);
            assert_eq!(part.get("thought").is_some(), is_marked, "{prompt}");
            assert_eq!(line.get("displayContent").is_some(), is_marked);
        }
    }
}
