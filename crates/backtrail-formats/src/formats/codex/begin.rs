//! What the first record of a rollout says of the session.

use std::path::{Path, PathBuf};

use super::inherited::Inherited;
use super::names;
use super::state::{From, State};
use crate::formats::pieces::key_of;
use crate::json::Object;
use crate::told::About;

/// Reads the first record: a `session_meta`, the head of an old rollout, or whatever else
/// stands there. `copied` is the thread whose head comes next.
pub(super) fn begin(record: &Object, path: &Path, copied: Option<String>) -> (State, About) {
    let kind = record.string("type");
    let is_meta = kind.as_deref() == Some("session_meta");
    // The oldest have no envelope: the record itself is the head.
    let is_head = kind.is_none() && record.has("id") && record.has("timestamp");
    let head = match (is_meta, is_head) {
        (true, _) => record.object("payload").unwrap_or_default(),
        (_, true) => record.clone(),
        _ => Object::default(),
    };
    let (thread_in_name, rollout) = names::ids_in(path);
    let thread = text(&head, "id").or_else(|| text(&head, "session_id"));
    let thread = thread.or(thread_in_name).unwrap_or_else(|| hash_of(record));
    let thread = key_of(&thread);
    let session = match rollout {
        Some(rollout) => format!("{thread}_{rollout}"),
        None => thread.clone(),
    };
    let began = head.time("timestamp").or_else(|| record.time("timestamp"));
    let directory = text(&head, "cwd").map(PathBuf::from);
    let is_copy = copied.as_deref().is_some_and(|copied| copied != thread);
    let from = from(&head, &thread, copied);
    let mut state = State {
        inherited: match inherited(&head, &from) {
            Some(inherited) => inherited,
            None => Inherited::open(&thread, began, is_copy),
        },
        has_directory: directory.is_some(),
        session,
        thread,
        ..State::default()
    };
    state.counting.follows = from.follows();
    state.from = from;
    let about = About {
        title: None,
        model: None,
        directory,
        began,
        tags: tags(&head),
        ..About::default()
    };
    (state, about)
}

/// Returns where a session comes from.
fn from(head: &Object, thread: &str, copied: Option<String>) -> From {
    let forked = text(head, "forked_from_id").map(|id| key_of(&id));
    if let Some(parent) = spawned_by(head, forked.as_deref(), thread) {
        return From::Spawned(parent);
    }
    let base = head.object("history_base");
    if let Some(base) = base
        && let (Some(rollout), Some(end)) = (
            text(&base, "thread_id"),
            base.number("end_ordinal_exclusive"),
        )
    {
        // A thread that was taken back has several rollouts; the first has its id.
        let owner = forked.as_deref().unwrap_or(thread);
        let rollout = key_of(&rollout);
        return match rollout == owner {
            true => From::Goes(rollout, end),
            false => From::Goes(format!("{owner}_{rollout}"), end),
        };
    }
    let parent = forked.or(copied.map(|id| key_of(&id)));
    match parent.filter(|parent| parent != thread) {
        Some(parent) => From::Copy(parent),
        None => From::Start,
    }
}

/// Returns the thread whose agent began this one.
fn spawned_by(head: &Object, forked: Option<&str>, thread: &str) -> Option<String> {
    let named = text(head, "parent_thread_id").or_else(|| {
        let spawn = subagent(head)?.object("thread_spawn")?;
        text(&spawn, "parent_thread_id")
    });
    let is_agent = || {
        let source = head.string("thread_source");
        subagent(head).is_some() || source.is_some_and(|source| source == "subagent")
    };
    let parent = match named {
        Some(parent) => key_of(&parent),
        None if !is_agent() => return None,
        // Where no more is said, there is the session that all of it belongs to.
        None => match forked {
            Some(parent) => parent.to_owned(),
            None => key_of(&text(head, "session_id")?),
        },
    };
    (parent != thread).then_some(parent)
}

/// Returns what is said of a sub-agent: empty where it is only said that it is one.
fn subagent(head: &Object) -> Option<Object> {
    let source = head.object("source")?;
    source
        .has("subagent")
        .then(|| source.object("subagent").unwrap_or_default())
}

/// Returns what of a rollout is copied. `None`: that must show.
fn inherited(head: &Object, from: &From) -> Option<Inherited> {
    if let Some(start) = head.number("subagent_history_start_ordinal") {
        return Some(Inherited::Before(start));
    }
    // Where what is shared is in the other file, nothing is copied.
    let is_own = matches!(from, From::Start | From::Goes(..)) || head.has("history_base");
    is_own.then_some(Inherited::Over)
}

/// Returns what kind of agent speaks.
fn tags(head: &Object) -> Option<Vec<String>> {
    let agent = subagent(head);
    let spawn = agent.and_then(|agent| agent.object("thread_spawn"));
    let field = |name: &str| {
        let said = text(head, name).or_else(|| text(spawn.as_ref()?, name));
        said.filter(|said| said.len() <= 128)
    };
    let mut tags: Vec<String> = ["agent_role", "agent_nickname"]
        .into_iter()
        .filter_map(field)
        .collect();
    if tags.is_empty() {
        // A review, a compaction, a guardian.
        let source = head.object("source");
        let named = source.and_then(|source| text(&source, "subagent"));
        let other = || text(&subagent(head)?, "other");
        tags.extend(named.or_else(other).filter(|tag| tag.len() <= 128));
    }
    (!tags.is_empty()).then_some(tags)
}

/// Returns a field that is a string with something in it.
fn text(object: &Object, name: &str) -> Option<String> {
    let text = object.string(name)?;
    (!text.trim().is_empty()).then(|| text.into_owned())
}

/// Names a session that has no name by what its first record says.
fn hash_of(record: &Object) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, json) in record.fields() {
        hasher.update(name.as_bytes());
        hasher.update(json.as_str().as_bytes());
    }
    format!("unnamed-{}", &hasher.finalize().to_hex()[..16])
}
