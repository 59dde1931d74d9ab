//! pi: a tree of JSON lines behind a header.
//!
//! Every line but the first is an entry with an id and the id of the one before it. The
//! last line of the file is where the conversation stands; what leads to it is the file's
//! own thread, and what was left is told as branches. Version 1 has no ids: its lines
//! follow one another.

mod entry;
mod tree;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use backtrail::Message;
use serde::{Deserialize, Serialize};

use super::pieces::{Seen, first_object, hash_of, key_of, object_at, state_of, top_fields, whole};
use crate::format::{Format, ReadError, Resume, Support};
use crate::json::Object;
use crate::places::Environment;
use crate::reading::Reading;
use crate::source::Source;
use crate::told::{About, After, Item, Origin, Said, Sink, Thread, Told, Which};

use entry::Teller;
use tree::Tree;

/// pi: a tree of JSON lines behind a header.
#[derive(Debug, Clone, Copy)]
pub struct Pi;

impl Format for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn title(&self) -> &'static str {
        "pi"
    }

    fn support(&self) -> Support {
        Support {
            appends: true,
            branches: true,
            compactions: true,
            usage: true,
            media: true,
            ..Support::messages("1, 2 and 3 (to 1.5.0)")
        }
    }

    fn places(&self, environment: &Environment) -> Vec<PathBuf> {
        if let Some(sessions) = environment.variable("PI_CODING_AGENT_SESSION_DIR") {
            return vec![PathBuf::from(sessions)];
        }
        let agent = environment.directory("PI_CODING_AGENT_DIR", ".pi/agent");
        agent
            .map(|agent| agent.join("sessions"))
            .into_iter()
            .collect()
    }

    fn is_session_name(&self, path: &Path) -> bool {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    }

    fn recognises(&self, source: &Source) -> bool {
        let head = source.head();
        first_object(&head).is_some_and(|first| is_header(&first)) || is_lone_message(&head)
    }

    fn read(
        &self,
        source: &Source,
        resume: Option<&Resume>,
        sink: &mut dyn Sink,
    ) -> Result<Told, ReadError> {
        match resume {
            Some(resume) => go_on(source, resume, sink),
            None if is_lone_message(&source.head()) => read_lone(source, sink),
            None => read_all(source, sink),
        }
    }
}

fn is_header(object: &Object) -> bool {
    object.string("type").as_deref() == Some("session")
        && object.has("id")
        && object.has("cwd")
        && object.has("timestamp")
}

/// Returns whether a file is one message, not a session of lines.
fn is_lone_message(head: &[u8]) -> bool {
    let fields = top_fields(head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    has("role") && has("content") && has("api") && has("provider") && !has("type")
}

/// What is needed to go on with a file whose entries follow one another.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    session: String,
    origin: Option<String>,
    model: Option<String>,
    lines: u64,
    entries: u64,
    said: u32,
    last: Option<String>,
    ids: String,
}

/// What the header says.
#[derive(Debug, Default)]
struct Header {
    session: String,
    origin: Option<String>,
    about: About,
}

impl Header {
    fn read(object: Option<&Object>, source: &Source) -> Self {
        let Some(object) = object else {
            return Self {
                session: key_of(name_of(source.stem())),
                ..Self::default()
            };
        };
        let id = object.string("id").filter(|id| !id.is_empty());
        let id = id.as_deref().unwrap_or_else(|| name_of(source.stem()));
        let parent = object.string("parentSession");
        let parent = parent.or_else(|| object.string("branchedFrom"));
        let parent = parent.filter(|parent| !parent.is_empty());
        Self {
            session: key_of(id),
            origin: parent.map(|parent| key_of(name_of(file_stem(&parent)))),
            about: About {
                model: object.string("modelId").map(|model| model.into_owned()),
                directory: object.string("cwd").map(|cwd| PathBuf::from(cwd.as_ref())),
                began: object.time("timestamp"),
                ..About::default()
            },
        }
    }

    fn thread(&self) -> Thread {
        main_thread(self.origin.clone())
    }
}

fn main_thread(origin: Option<String>) -> Thread {
    Thread {
        which: Which::Main,
        origin: match origin {
            Some(session) => Origin::Copy { session },
            None => Origin::Start,
        },
    }
}

/// Returns the session's id in the name of a file: `<time>_<id>`.
fn name_of(stem: &str) -> &str {
    stem.rsplit_once('_').map_or(stem, |(_, id)| id)
}

fn file_stem(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".jsonl").unwrap_or(name)
}

fn read_all(source: &Source, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let mut reading = Reading::new(source, 0, 0);
    let mut tree = Tree::new();
    let mut header = None;
    let mut any = false;
    while let Some(found) = reading.next()? {
        let is_session = found.object.string("type").as_deref() == Some("session");
        if is_session && !any {
            header = Some(Header::read(Some(&found.object), source));
        } else if !is_session {
            tree.add(&found, &mut reading);
        }
        any = true;
    }
    tree.close();
    let mut header = header.unwrap_or_else(|| Header::read(None, source));
    header.about.title = tree.title.take();
    sink.session(&header.session)?;
    sink.thread(&header.thread())?;
    sink.about(header.about.clone())?;
    let mut teller = Teller::new(&header.session, header.about.model.clone());
    tell_main(source, 0, 0, &tree, &mut teller, sink)?;
    let (last, model) = (tree.last_id.clone(), teller.model.take());
    tell_branches(source, &tree, &header.session, sink)?;
    let (entries, said) = (tree.len() as u64, tree.said());
    let linear = tree.is_linear() && any;
    let seen = tree.seen;
    let mut told = reading.finish(header.session.clone(), None);
    told.state = linear.then_some(()).and_then(|()| {
        state_of(&State {
            session: header.session,
            origin: header.origin,
            model,
            lines: told.lines,
            entries,
            said,
            last,
            ids: seen.as_str().to_owned(),
        })
    });
    Ok(told)
}

/// Reads what came since. Only a conversation that goes on where it stood is told; one
/// that branched off is read from the beginning.
fn go_on(source: &Source, resume: &Resume, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    if !source.can_go_on(resume.read_to) {
        return Err(ReadError::StartOver);
    }
    let known: State = resume.state.parse().map_err(|_| ReadError::StartOver)?;
    let mut reading = Reading::new(source, resume.read_to, known.lines);
    let mut tree = Tree::behind(
        known.entries,
        known.said,
        known.last.clone(),
        Seen::from_state(&known.ids),
    );
    while let Some(found) = reading.next()? {
        if found.object.string("type").as_deref() != Some("session") {
            tree.add(&found, &mut reading);
        }
        if !tree.is_linear() {
            return Err(ReadError::StartOver);
        }
    }
    tree.close();
    sink.session(&known.session)?;
    sink.thread(&main_thread(known.origin.clone()))?;
    if let Some(title) = tree.title.take() {
        sink.about(About {
            title: Some(title),
            ..About::default()
        })?;
    }
    let mut teller = Teller::new(&known.session, known.model.clone());
    let (from, lines) = (resume.read_to, known.lines);
    tell_main(source, from, lines, &tree, &mut teller, sink)?;
    let mut told = reading.finish(known.session.clone(), None);
    told.state = state_of(&State {
        model: teller.model,
        lines: told.lines,
        entries: known.entries + tree.len() as u64,
        said: tree.said(),
        last: tree.last_id,
        ids: tree.seen.as_str().to_owned(),
        ..known
    });
    Ok(told)
}

/// Tells the entries that lead to the last one, in one more pass through the file.
fn tell_main(
    source: &Source,
    from: u64,
    lines: u64,
    tree: &Tree,
    teller: &mut Teller<'_>,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let mut reading = Reading::new(source, from, lines);
    let mut at = 0;
    while let Some(found) = reading.next()? {
        if found.object.string("type").as_deref() == Some("session") {
            continue;
        }
        if tree.is_on_main(at) {
            let keep = tree.keep(at, true);
            teller.tell(&found.object, &tree.key(at, &found.object), keep, sink)?;
        }
        at += 1;
    }
    Ok(())
}

/// Tells what was left: each branch behind the place where it leaves the file's own
/// thread.
fn tell_branches(
    source: &Source,
    tree: &Tree,
    session: &str,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let mut keys = HashMap::new();
    for branch in tree.branches() {
        let Some(first) = branch.own.iter().find(|at| tree.tells(**at)) else {
            continue;
        };
        let Some(object) = object_at(source, tree.place(*first)) else {
            continue;
        };
        let leaves = tree.telling_up_to(branch.leaves);
        let after = leaves.and_then(|at| key_at(source, tree, at, &mut keys));
        sink.thread(&Thread {
            which: Which::Branch(tree.key(*first, &object)),
            origin: Origin::Continues {
                session: None,
                after: after.map_or(After::Nothing, After::Key),
            },
        })?;
        let mut teller = Teller::new(session, None);
        for at in branch.stem.iter().chain(&branch.own) {
            if let Some(object) = object_at(source, tree.place(*at)) {
                let keep = tree.keep(*at, false);
                teller.tell(&object, &tree.key(*at, &object), keep, sink)?;
            }
        }
    }
    Ok(())
}

/// Returns the key of an entry; many branches may leave from one.
fn key_at(
    source: &Source,
    tree: &Tree,
    at: u32,
    keys: &mut HashMap<u32, String>,
) -> Option<String> {
    if let Some(key) = keys.get(&at) {
        return Some(key.clone());
    }
    let key = tree.key(at, &object_at(source, tree.place(at))?);
    keys.insert(at, key.clone());
    Some(key)
}

/// Reads a file that is one message.
fn read_lone(source: &Source, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    let text = whole(source)?;
    let session = format!("message-{}", hash_of(&text, 16));
    let object = Object::parse(&text).ok();
    let message = object.as_ref().and_then(entry::message);
    let mut told = Reading::new(source, 0, 0).finish(session.clone(), None);
    told.read_to = source.len();
    let Some((object, message)) = object.zip(message) else {
        told.unfinished = true;
        told.read_to = 0;
        return Ok(told);
    };
    sink.session(&session)?;
    sink.thread(&Thread::main())?;
    told.lines = 1;
    tell_lone(&object, message, &session, sink)?;
    Ok(told)
}

fn tell_lone(
    object: &Object,
    message: Message,
    session: &str,
    sink: &mut dyn Sink,
) -> Result<(), ReadError> {
    let model = object.string("model").map(|model| model.into_owned());
    sink.about(About {
        model: model.clone(),
        began: object.time("timestamp"),
        ..About::default()
    })?;
    let mut said = Said::new("n0", message);
    said.at = object.time("timestamp");
    said.cost_usd = entry::cost(object);
    said.response_id = said.message.usage.as_ref().map(|_| format!("{session}#n0"));
    said.model = model;
    sink.item(Item::Said(said))?;
    Ok(())
}

#[cfg(test)]
#[path = "pi_tests.rs"]
mod tests;
