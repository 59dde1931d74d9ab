//! Sessions for opencode: one JSON value for `opencode import`, as `opencode export` writes it.
//!
//! opencode sorts messages and parts by their ids, also those that it adds later. So the ids do
//! not have the times of the messages, but that at which the session was made: the part of an
//! id that is the time begins anew every two years.

use std::io::{self, Write};
use std::path::PathBuf;

use backtrail::context::{
    HandOverCall, HandOverContent, HandOverMedia, HandOverMessage, HandOverPart,
};
use backtrail::{Fields, Json, Timestamp};
use serde_json::Value;

use super::media::{MediaTypes, TakenMedia};
use super::steps::{Step, steps};
use super::tools::ToolRow;
use super::{
    ListWriter, OutgoingSession, TargetFormat, data_url, joined_text, media_in, object, raw,
    to_json, tool_table,
};
use crate::launch::NewSession;
use crate::retention::read_settings;

pub(super) struct OpenCodeTarget;

/// The version whose sessions these are.
const VERSION: &str = "1.18.33";

/// What is written where a name is needed, and not known.
const UNKNOWN: &str = "unknown";

/// The agent that continues a session.
const AGENT: &str = "build";

/// How many ids a millisecond has.
const IDS_OF_A_MILLISECOND: i64 = 0x1000;

/// Makes the id of a session. Newer sessions come first.
pub(crate) fn session_id(at: Timestamp, random: [u8; 16]) -> String {
    let time = at.as_millis().wrapping_mul(IDS_OF_A_MILLISECOND) + 1;
    id("ses", !time, &random)
}

/// Makes an id: a prefix, the low 48 bits of the time, and 14 letters and digits.
fn id(prefix: &str, time: i64, random: &[u8]) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let letters = random.iter().take(14);
    let letters = letters.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    let letters: String = letters.collect();
    format!("{prefix}_{:012x}{letters}", time & 0xffff_ffff_ffff)
}

impl TargetFormat for OpenCodeTarget {
    fn tools(&self) -> &'static [ToolRow] {
        tool_table::OPENCODE
    }

    fn media(&self) -> TakenMedia {
        TakenMedia {
            in_prompts: MediaTypes::ImagesAndPdf,
            in_results: MediaTypes::Images,
        }
    }

    fn write(&self, session: &OutgoingSession<'_>, out: &mut dyn Write) -> io::Result<()> {
        let info = object! {
            "id": session.new.id,
            "slug": "handed-over",
            "projectID": "global",
            "directory": session.directory(),
            "title": session.title,
            "version": VERSION,
            "time": object! {
                "created": session.began().as_millis(),
                "updated": session.new.at.as_millis(),
            },
        };
        let mut ids = Ids::new(session);
        let mut prompt = ids.next("msg");
        let mut last_answer = 0;
        let mut list = ListWriter::begin(out, &object! {"info": info}, "messages")?;
        for message in &session.messages {
            match &message.content {
                HandOverContent::User(parts) => {
                    let exported = self::prompt(session, &mut ids, message, parts);
                    prompt = exported.id.clone();
                    list.add(&exported.json())?;
                }
                HandOverContent::Assistant { model, parts } => {
                    // A response is known by its time, here and in copies of it.
                    let at = session.time(message).as_millis().max(last_answer + 1);
                    last_answer = at;
                    for step in steps(parts) {
                        let model = model.as_deref();
                        let answer = answer(session, &mut ids, at, model, &prompt, &step);
                        list.add(&answer.json())?;
                    }
                }
            }
        }
        list.end()
    }
}

/// Returns the model with which opencode continues the session: that of the last prompt, which
/// it must know. So it is the one of its settings, or the one that was used last.
fn chosen_model(new: &NewSession<'_>) -> Json {
    let read = |path: PathBuf| {
        let settings = read_settings(&path).ok()?;
        serde_json::from_str::<Value>(&settings).ok()
    };
    let config = new.environment.directory("XDG_CONFIG_HOME", ".config");
    let config = config.map(|config| config.join("opencode"));
    let directories = std::iter::once(&new.directory).chain(&config);
    let set = directories.flat_map(|directory| {
        let names = ["opencode.json", "opencode.jsonc", "config.json"];
        names.map(|name| directory.join(name))
    });
    let mut set = set.filter_map(|path| {
        let settings = read(path)?;
        let (provider, model) = settings["model"].as_str()?.split_once('/')?;
        Some((provider.to_owned(), model.to_owned()))
    });
    let state = new.environment.directory("XDG_STATE_HOME", ".local/state");
    let last = || {
        let state = read(state?.join("opencode/model.json"))?;
        let last = &state["recent"][0];
        let name = |field: &str| last[field].as_str().map(str::to_owned);
        Some((name("providerID")?, name("modelID")?))
    };
    let unknown = || (UNKNOWN.to_owned(), UNKNOWN.to_owned());
    let (provider, model) = set.next().or_else(last).unwrap_or_else(unknown);
    object! {"providerID": provider, "modelID": model}
}

/// Makes the ids of messages and parts, in order.
struct Ids<'s> {
    session: &'s OutgoingSession<'s>,
    /// The model of prompts.
    model: Json,
    next: i64,
    count: usize,
}

impl<'s> Ids<'s> {
    fn new(session: &'s OutgoingSession<'s>) -> Self {
        /// The ids that opencode makes when it continues the session come later.
        const EARLIER_MS: i64 = 60_000;
        let at = session.new.at.as_millis().saturating_sub(EARLIER_MS);
        Self {
            session,
            model: chosen_model(session.new),
            next: at.wrapping_mul(IDS_OF_A_MILLISECOND) + 1,
            count: 0,
        }
    }

    fn next(&mut self, prefix: &str) -> String {
        let made = id(prefix, self.next, &self.session.random(self.count));
        self.next += 1;
        self.count += 1;
        made
    }
}

/// A message with its parts.
struct Exported<'s> {
    session: &'s str,
    id: String,
    info: Fields,
    parts: Vec<Json>,
}

impl<'s> Exported<'s> {
    fn new(session: &'s OutgoingSession<'s>, ids: &mut Ids<'_>, role: &str) -> Self {
        let session = &session.new.id;
        let id = ids.next("msg");
        let mut info = Fields::default();
        info.push("id", to_json(&id));
        info.push("sessionID", to_json(session));
        info.push("role", to_json(role));
        Self {
            session,
            id,
            info,
            parts: Vec::new(),
        }
    }

    /// Makes a part of it.
    fn part(&self, ids: &mut Ids<'_>, kind: &str, fields: impl IntoFields) -> Json {
        let mut part = Fields::default();
        part.push("id", to_json(&ids.next("prt")));
        part.push("sessionID", to_json(self.session));
        part.push("messageID", to_json(&self.id));
        part.push("type", to_json(kind));
        for (name, value) in fields {
            part.push(name, value);
        }
        to_json(&part)
    }

    fn add(&mut self, ids: &mut Ids<'_>, kind: &str, fields: impl IntoFields) {
        let part = self.part(ids, kind, fields);
        self.parts.push(part);
    }

    fn add_file(&mut self, ids: &mut Ids<'_>, media: &HandOverMedia) {
        self.add(ids, "file", file(media));
    }

    fn json(&self) -> Json {
        object! {"info": self.info, "parts": self.parts}
    }
}

/// Fields with their values.
trait IntoFields: IntoIterator<Item = (&'static str, Json)> {}

impl<T: IntoIterator<Item = (&'static str, Json)>> IntoFields for T {}

fn file(media: &HandOverMedia) -> [(&'static str, Json); 2] {
    [
        ("mime", to_json(&media.media_type)),
        ("url", to_json(&data_url(media))),
    ]
}

fn prompt<'s>(
    session: &'s OutgoingSession<'s>,
    ids: &mut Ids<'_>,
    message: &HandOverMessage,
    parts: &[HandOverPart],
) -> Exported<'s> {
    let mut prompt = Exported::new(session, ids, "user");
    let at = session.time(message).as_millis();
    prompt.info.push("time", object! {"created": at});
    prompt.info.push("agent", to_json(AGENT));
    prompt.info.push("model", ids.model.clone());
    for part in parts {
        match part {
            HandOverPart::Text(text) => prompt.add(ids, "text", [("text", to_json(text))]),
            HandOverPart::Media(media) => prompt.add_file(ids, media),
        }
    }
    prompt
}

fn answer<'s>(
    session: &'s OutgoingSession<'s>,
    ids: &mut Ids<'_>,
    at: i64,
    model: Option<&str>,
    prompt: &str,
    step: &Step<'_>,
) -> Exported<'s> {
    let reason = match step.calls.is_empty() {
        true => "stop",
        false => "tool-calls",
    };
    let tokens = object! {
        "input": 0,
        "output": 0,
        "reasoning": 0,
        "cache": object! {"read": 0, "write": 0},
    };
    let directory = session.directory();
    let mut answer = Exported::new(session, ids, "assistant");
    for (name, value) in [
        ("time", object! {"created": at, "completed": at}),
        ("parentID", to_json(prompt)),
        ("modelID", to_json(model.unwrap_or(UNKNOWN))),
        ("providerID", to_json(UNKNOWN)),
        ("mode", to_json(AGENT)),
        ("agent", to_json(AGENT)),
        ("path", object! {"cwd": directory, "root": directory}),
        ("cost", to_json(&0)),
        ("tokens", tokens.clone()),
        ("finish", to_json(reason)),
    ] {
        answer.info.push(name, value);
    }
    answer.add(ids, "step-start", []);
    if !step.texts.is_empty() {
        let time = object! {"start": at, "end": at};
        answer.add(
            ids,
            "text",
            [("text", to_json(&step.text())), ("time", time)],
        );
    }
    for call in &step.calls {
        let state = state(&answer, ids, call, at);
        let fields = [
            ("callID", to_json(&call.id)),
            ("tool", to_json(&call.name)),
            ("state", state),
        ];
        answer.add(ids, "tool", fields);
    }
    let finish = [
        ("reason", to_json(reason)),
        ("tokens", tokens),
        ("cost", to_json(&0)),
    ];
    answer.add(ids, "step-finish", finish);
    answer
}

/// Returns what became of a call. An error has only a text.
fn state(answer: &Exported<'_>, ids: &mut Ids<'_>, call: &HandOverCall, at: i64) -> Json {
    let text = joined_text(&call.output);
    let files = media_in(&call.output).map(|media| answer.part(ids, "file", file(media)));
    let files: Vec<Json> = files.collect();
    let time = object! {"start": at, "end": at};
    if call.is_error && files.is_empty() {
        return object! {
            "status": "error",
            "input": raw(&call.input),
            "error": text,
            "time": time,
        };
    }
    let metadata = match call.is_error {
        true => object! {"exit": 1},
        false => object! {},
    };
    let mut state = Fields::default();
    for (name, value) in [
        ("status", to_json("completed")),
        ("input", raw(&call.input)),
        ("output", to_json(&text)),
        ("title", to_json("")),
        ("metadata", metadata),
        ("time", time),
    ] {
        state.push(name, value);
    }
    if !files.is_empty() {
        state.push("attachments", to_json(&files));
    }
    to_json(&state)
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{hard, time, write};
    use super::*;
    use crate::environment::Environment;

    const NAME: &str = "opencode";

    #[test]
    fn ids_sort_in_the_order_of_messages_and_parts_and_before_later_ones() {
        let value = write(NAME, hard()).value();
        let mut all = Vec::new();
        for message in value["messages"].as_array().unwrap() {
            let id = message["info"]["id"].as_str().unwrap();
            all.push(id.strip_prefix("msg_").unwrap().to_owned());
            for part in message["parts"].as_array().unwrap() {
                assert_eq!(part["messageID"], id);
                for file in part["state"]["attachments"]
                    .as_array()
                    .into_iter()
                    .flatten()
                {
                    let id = file["id"].as_str().unwrap();
                    all.push(id.strip_prefix("prt_").unwrap().to_owned());
                }
                let id = part["id"].as_str().unwrap();
                all.push(id.strip_prefix("prt_").unwrap().to_owned());
            }
        }
        assert!(all.iter().all(|id| id.len() == 26));
        let mut sorted = all.clone();
        sorted.sort();
        assert_eq!(all, sorted);
        let now = id("msg", 1_795_000_000_000 * IDS_OF_A_MILLISECOND, &[0; 14]);
        assert!(**all.last().unwrap() < now["msg_".len()..]);
    }

    #[test]
    fn a_response_is_a_message_for_each_step_with_the_prompt_as_its_parent() {
        let value = write(NAME, hard()).value();
        let messages = value["messages"].as_array().unwrap();
        let mut prompt = "";
        for message in messages {
            let info = &message["info"];
            if info["role"] == "user" {
                prompt = info["id"].as_str().unwrap();
                continue;
            }
            assert_eq!(info["parentID"], prompt);
            let parts = message["parts"].as_array().unwrap();
            let kinds: Vec<_> = parts
                .iter()
                .map(|part| part["type"].as_str().unwrap())
                .collect();
            let mut order = kinds.clone();
            let place = |kind: &&str| {
                ["step-start", "text", "tool", "step-finish"]
                    .iter()
                    .position(|other| other == kind)
            };
            order.sort_by_key(place);
            assert_eq!(kinds, order);
        }
    }

    #[test]
    fn ids_have_the_low_bits_of_the_time_and_those_of_sessions_run_backwards() {
        let at = time(1_794_812_110_574);
        let made = id("msg", at.as_millis() * IDS_OF_A_MILLISECOND + 1, &[0; 14]);
        assert_eq!(made, "msg_1e32366ee00100000000000000");
        let session = session_id(time(1_794_812_109_674 - 78), [61; 16]);
        assert!(session.starts_with("ses_e1cdc9"), "{session}");
        assert!(session.ends_with("zzzzzzzzzzzzzz"));
        assert!(session > session_id(at, [0; 16]));
    }

    #[test]
    fn a_session_continues_with_the_model_of_the_settings_or_the_last_one() {
        let home = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let environment = Environment::new(home.path());
        let new = NewSession {
            id: String::new(),
            at: time(0),
            directory: home.path().join("w"),
            environment: &environment,
        };
        let chosen = || chosen_model(&new).as_str().to_owned();
        let expected = |provider: &str, model: &str| {
            format!(r#"{{"providerID":"{provider}","modelID":"{model}"}}"#)
        };
        assert_eq!(chosen(), expected("unknown", "unknown"));
        let recent = r#"{"recent":[{"providerID":"a","modelID":"b/c"}]}"#;
        put(".local/state/opencode/model.json", recent);
        assert_eq!(chosen(), expected("a", "b/c"));
        put(".config/opencode/opencode.json", r#"{"model":"d/e/f"}"#);
        assert_eq!(chosen(), expected("d", "e/f"));
        put("w/opencode.json", "{\"model\":");
        assert_eq!(chosen(), expected("d", "e/f"));
        put("w/opencode.json", r#"{"model":"g/h"}"#);
        assert_eq!(chosen(), expected("g", "h"));
    }
}
