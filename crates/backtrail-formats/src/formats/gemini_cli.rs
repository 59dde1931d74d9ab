//! Gemini CLI: JSON lines that revise each other, and one JSON object before that.
//!
//! A line of the newer form is the header, a message, a change of the header (`$set`), or
//! a step back (`$rewindTo`). A message is written again whenever something is added to
//! it: the last of its lines says what it is, the first where it stands. So a file is
//! gone through twice: where the messages stand, then what they say. Checkpoints that the
//! person saved (`/chat save`) are sessions of their own.

mod log;
mod says;
mod whole;

use std::path::{Path, PathBuf};

use backtrail::Json;
use serde::{Deserialize, Serialize};

use super::pieces::{Seen, first_object, key_of, state_of, top_fields};
use crate::format::{Format, ReadError, Resume, Support};
use crate::json::{Object, text_of};
use crate::places::Environment;
use crate::reading::Reading;
use crate::source::Source;
use crate::told::{About, Origin, Sink, Thread, Told, Which};

use log::Log;
use says::Teller;

/// Gemini CLI: JSON lines that revise each other, and one JSON object before that.
#[derive(Debug, Clone, Copy)]
pub struct GeminiCli;

impl Format for GeminiCli {
    fn name(&self) -> &'static str {
        "gemini-cli"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn support(&self) -> Support {
        Support {
            appends: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Support::messages("JSON (to 0.39), JSON lines (0.40 to 0.61), saved chats")
        }
    }

    fn places(&self, environment: &Environment) -> Vec<PathBuf> {
        let home = environment.directory("GEMINI_CLI_HOME", "");
        home.map(|home| home.join(".gemini/tmp"))
            .into_iter()
            .collect()
    }

    fn is_session_name(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        let is_lines = name.ends_with(".jsonl");
        if name.ends_with(".meta.json") || !(is_lines || name.ends_with(".json")) {
            return false;
        }
        let of_agent = path.ancestors().nth(2).and_then(Path::file_name);
        name.starts_with("session-")
            || (name.starts_with("checkpoint-") && !is_lines)
            || (is_lines && of_agent.is_some_and(|name| name == "chats"))
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        match first_object(&head) {
            Some(first) if is_header(&first) => true,
            _ => whole::recognises(&head),
        }
    }

    fn read(
        &self,
        source: &Source,
        resume: Option<&Resume>,
        sink: &mut dyn Sink,
    ) -> Result<Told, ReadError> {
        if let Some(resume) = resume {
            return go_on(source, resume, sink);
        }
        let head = source.head();
        // A first line longer than that is one object, if it is whole.
        let is_lines = first_object(&head).is_some_and(|first| !whole::is_whole(&first));
        match is_lines || !whole::recognises(&head) {
            true => read_lines(source, sink),
            false => whole::read(source, sink),
        }
    }
}

fn is_header(object: &Object) -> bool {
    let has = |name: &str| object.string(name).is_some();
    has("sessionId") && (has("projectHash") || has("startTime")) && !object.has("type")
}

/// What is needed to go on with a file in which no message was revised since.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    session: String,
    parent: Option<String>,
    model: Option<String>,
    lines: u64,
    ids: String,
    answered: Vec<String>,
}

fn read_lines(source: &Source, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let mut reading = Reading::new(source, 0, 0);
    let mut log = Log::new(Seen::default());
    while let Some(found) = reading.next()? {
        log.add(&found, &mut reading);
    }
    let session = match log.session.clone() {
        Some(session) => key_of(&session),
        None => key_of(source.stem()),
    };
    let parent = parent_of(source, log.is_agent);
    sink.session(&session)?;
    sink.thread(&thread(parent.clone()))?;
    let mut about = log.about.clone();
    about.directory = about.directory.or_else(|| project_root(source));
    sink.about(about)?;
    let mut teller = Teller::new(&session, None, Vec::new());
    log.tell(source, &mut teller, sink)?;
    finish(
        reading,
        log,
        teller,
        State {
            session: session.clone(),
            parent,
            ..State::default()
        },
    )
}

/// Reads what came since, where it is all new.
fn go_on(source: &Source, resume: &Resume, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let known: State = resume.state.parse().map_err(|_| ReadError::StartOver)?;
    if !source.can_go_on(resume.read_to) {
        return Err(ReadError::StartOver);
    }
    let mut reading = Reading::new(source, resume.read_to, known.lines);
    let mut log = Log::behind(Seen::from_state(&known.ids));
    while let Some(found) = reading.next()? {
        log.add(&found, &mut reading);
        if log.revises {
            return Err(ReadError::StartOver);
        }
    }
    sink.session(&known.session)?;
    sink.thread(&thread(known.parent.clone()))?;
    sink.about(log.about.clone())?;
    let session = known.session.clone();
    let mut teller = Teller::new(&session, known.model.clone(), known.answered.clone());
    log.tell(source, &mut teller, sink)?;
    finish(reading, log, teller, known)
}

fn finish(
    reading: Reading<'_>,
    log: Log,
    teller: Teller<'_>,
    known: State,
) -> Result<Told, ReadError> {
    let mut told = reading.finish(known.session.clone(), None);
    let (model, answered) = teller.into_parts();
    // A file that has not said yet of which session it is will be read again.
    if log.is_named && !log.seen.is_full() {
        let state = State {
            model,
            answered,
            lines: told.lines,
            ids: log.seen.as_str().to_owned(),
            ..known
        };
        told.state = state_of(&state);
    }
    Ok(told)
}

fn thread(parent: Option<String>) -> Thread {
    Thread {
        which: Which::Main,
        origin: match parent {
            Some(session) => Origin::Spawned {
                session: Some(session),
                tool_use_id: None,
            },
            None => Origin::Start,
        },
    }
}

/// Returns the session that a sub-agent worked for: `chats/<session>/<agent>.jsonl`.
fn parent_of(source: &Source, is_agent: bool) -> Option<String> {
    let mut above = source.path().ancestors().skip(1);
    let parent = above.next()?.file_name()?.to_str()?;
    let within_chats = above
        .next()?
        .file_name()
        .is_some_and(|name| name == "chats");
    (within_chats && is_agent).then(|| key_of(parent))
}

/// Finds the directory of the project that a file is of.
fn project_root(source: &Source) -> Option<PathBuf> {
    let chats = source
        .path()
        .ancestors()
        .position(|path| path.ends_with("chats"))?;
    let project = source.path().ancestors().nth(chats + 1)?;
    if let Some(root) = source.above(chats, ".project_root") {
        let root = String::from_utf8(root).ok()?;
        let root = root.trim();
        return (!root.is_empty()).then(|| PathBuf::from(root));
    }
    let name = project.file_name()?.to_str()?;
    let projects = source.above(chats + 2, "projects.json")?;
    let projects = Object::parse(&String::from_utf8_lossy(&projects)).ok()?;
    let projects = projects.object("projects")?;
    let is_it = |(_, json): &(&str, &Json)| text_of(json).is_some_and(|id| id == name);
    projects
        .fields()
        .find(is_it)
        .map(|(path, _)| PathBuf::from(path))
}

/// Reads what a header, or a change of it, says of the session.
fn read_about(object: &Object, about: &mut About) {
    let text = |name: &str| {
        let text = object.string(name).filter(|text| !text.trim().is_empty());
        text.map(|text| text.into_owned())
    };
    if let Some(title) = text("summary") {
        about.title = Some(title);
    }
    about.began = about.began.or_else(|| object.time("startTime"));
    let directories = object.list("directories").unwrap_or_default();
    if let Some(directory) = directories.first().and_then(text_of) {
        about.directory = Some(PathBuf::from(directory.as_str()));
    }
}

fn fields_have(head: &[u8], names: &[&str]) -> bool {
    let fields = top_fields(head);
    names
        .iter()
        .all(|name| fields.iter().any(|field| field == name))
}

#[cfg(test)]
#[path = "gemini_cli_tests.rs"]
mod tests;
