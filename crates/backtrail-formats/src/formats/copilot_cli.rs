//! Copilot CLI: JSON lines, one event after the other.
//!
//! Every line is an event with a type, an id and its data. Sub-agents write to the same file;
//! their events name the call that started them. The directory of a session also has
//! `workspace.yaml`, with its name and its working directory. Older versions had no directory
//! for each session, but one file.

mod events;
mod usage;

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::keys::{SeenIds, hash_name, save_state, valid_key};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, Origin};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::Object;
use crate::json_lines::JsonLines;
use crate::source::{Source, file_name, is_json_lines};

use events::CopilotEmitter;
use usage::Counted;

/// Copilot CLI: JSON lines, one event after the other.
#[derive(Debug, Clone, Copy)]
pub struct CopilotCli;

impl Format for CopilotCli {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["copilot"],
            packages: &["@github/copilot"],
            appends: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new("copilot-cli", "Copilot CLI", "0.0.420 to 1.0.102")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        let mut folders = environment.folders("COPILOT_HOME", ".copilot", &["session-state"]);
        if environment.variable("COPILOT_HOME").is_none()
            && let Some(state) = environment.variable("XDG_STATE_HOME")
        {
            folders.push(Path::new(state).join(".copilot/session-state"));
        }
        folders
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let parent = path.parent().and_then(Path::file_name);
        let is_flat = parent.is_some_and(|name| name == "session-state");
        is_json_lines(path) && (is_flat || file_name(path) == "events.jsonl")
    }

    fn recognises(&self, source: &Source) -> bool {
        /// How many lines are read.
        const MAX_LINES: usize = 20;
        let head = source.head();
        let text = String::from_utf8_lossy(&head);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let mut lines = lines.take(MAX_LINES);
        lines.any(|line| Object::parse(line.trim()).is_ok_and(|event| is_event(&event)))
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let named = session_in_lines(source)?;
        let is_named = named.is_some();
        let state = CopilotState {
            session: named.unwrap_or_else(|| session_in_path(source)),
            ..CopilotState::default()
        };
        Ok(open_lines(source, 0, state, is_named))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        let state = resume.state.parse::<CopilotState>().ok();
        Ok(state.map(|state| open_lines(source, resume.read_to, state, true)))
    }
}

/// Returns whether an object is an event of this agent.
fn is_event(event: &Object<'_>) -> bool {
    let kind = event.string("type");
    let is_named = ["id", "timestamp"];
    let is_named = is_named.iter().all(|name| event.string(name).is_some());
    let is_kind = kind.is_some_and(|kind| kind == "abort" || kind.contains('.'));
    is_named && is_kind && event.get("parentId").is_some() && event.object("data").is_some()
}

/// The state from which a file is resumed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct CopilotState {
    session: String,
    lines: u64,
    model: Option<String>,
    ids: SeenIds,
    /// How many messages the session has.
    messages: u64,
    /// The last calls without a result, with the names of their tools.
    open_calls: VecDeque<(String, String)>,
    /// The last sub-agents, with the calls that started them.
    agents: VecDeque<(String, String)>,
    /// The reasoning that was sent last, which the next message may repeat.
    reasoning: Option<u64>,
    counted: Counted,
}

/// Returns the session that the first event with a name names.
fn session_in_lines(source: &Source) -> Result<Option<String>> {
    /// How many events are read.
    const MAX: usize = 20;
    let (mut lines, mut report) = JsonLines::new(source);
    for _ in 0..MAX {
        let Some(line) = lines.next(&mut report)? else {
            break;
        };
        let event = line.object();
        if event.string("type").as_deref() == Some("session.start")
            && let Some(data) = event.object("data")
            && let Some(session) = data.non_blank("sessionId")
        {
            return Ok(Some(valid_key(session)));
        }
    }
    Ok(None)
}

/// Returns the session's name from its path: `<session>/events.jsonl` or `<session>.jsonl`.
fn session_in_path(source: &Source) -> String {
    let directory = source.path().parent().and_then(Path::file_name);
    let directory = directory.and_then(|name| name.to_str());
    match (source.stem(), directory) {
        ("events", Some(session)) => valid_key(session),
        (stem, _) => valid_key(stem),
    }
}

fn open_lines(source: &Source, from: u64, mut state: CopilotState, is_named: bool) -> OpenFile<'_> {
    let session = state.session.clone();
    OpenFile::new(session, Origin::Start, move |sink| {
        let mut details = workspace(source);
        // Later events may name another directory.
        details.directory = details.directory.filter(|_| from == 0);
        sink.details(details)?;
        let (mut lines, mut report) = JsonLines::resume(source, from, state.lines);
        let mut seen = HashSet::new();
        let mut emitter = CopilotEmitter::new(sink, &mut state);
        while let Some(line) = lines.next(&mut report)? {
            let event = line.object();
            let Some(kind) = event.string("type") else {
                let reason = "event without a type";
                report.add_damage(line.number, &line.range, reason);
                continue;
            };
            let id = valid_key(event.string("id").unwrap_or_default());
            let hash = hash_name(&id);
            // An id that was used before gets the number of its line.
            let is_new = seen.insert(hash) && !emitter.state.ids.may_have(hash);
            emitter.state.ids.add(hash);
            let key = match is_new && event.has("id") {
                true => id,
                false => format!("{id}~{}", line.number),
            };
            emitter.emit(&event, &kind, &key, &mut report)?;
        }
        state.lines = report.lines;
        if is_named {
            report.state = save_state(&state);
        }
        Ok(report)
    })
}

/// Reads the file that describes the session, one `name: value` on each line.
fn workspace(source: &Source) -> Details {
    let text = source.read_beside(Path::new("workspace.yaml"));
    let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
    let value = |name: &str| {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))?;
        let line = line.trim();
        let value = match (line.strip_prefix('"'), line.strip_prefix('\'')) {
            (Some(_), _) => serde_json::from_str(line).ok()?,
            (_, Some(quoted)) => quoted.strip_suffix('\'')?.replace("''", "'"),
            // A text of several lines follows.
            _ if matches!(line.chars().next(), Some('|' | '>' | '~')) => return None,
            _ => line.to_owned(),
        };
        (!value.trim().is_empty() && value != "null").then_some(value)
    };
    Details {
        title: value("name").or_else(|| value("summary")),
        directory: value("cwd").map(PathBuf::from),
        ..Details::default()
    }
}

#[cfg(test)]
#[path = "copilot_cli_tests.rs"]
mod tests;
