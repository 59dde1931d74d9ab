//! Sessions of Cline's command line.

use std::path::{Path, PathBuf};

use backtrail::{Timestamp, Usage};

use super::messages::{Call, ClineEmitter, Facts, text_of};
use crate::error::Result;
use crate::event::{Details, EventSink, Origin, ReadReport, SummaryEvent, sub_agent_name};
use crate::format::OpenFile;
use crate::formats::keys::{hash_json, valid_key};
use crate::formats::value::open_derived;
use crate::json::{Object, field_names};
use crate::source::{Source, file_name};

/// The end of the name of a session's file.
pub(super) const MESSAGES: &str = ".messages.json";

/// Returns whether a file is a session, by its beginning. The file beside it that tells how the
/// session was compacted is not.
pub(super) fn is_session(source: &Source) -> bool {
    let head = source.head();
    if crate::source::trim(&head).first() != Some(&b'{') {
        return false;
    }
    let fields = field_names(&head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    has("version")
        && has("updated_at")
        && has("messages")
        && has("sessionId")
        && !has("source_message_count")
}

/// Returns whether a file belongs to a sub-agent: it is in the directory of another session.
pub(super) fn is_sub_agent(path: &Path) -> bool {
    let name = file_name(path).strip_suffix(MESSAGES);
    let directory = path.parent().map(file_name).unwrap_or_default();
    let is_session = |name: &str| {
        let (time, random) = name.split_once('_').unwrap_or_default();
        !random.is_empty() && !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit())
    };
    name.is_some_and(|name| name != directory && is_session(directory))
}

/// Opens a session.
pub(super) fn open(source: &Source) -> Result<OpenFile<'_>> {
    let manifest = beside(source, ".json").unwrap_or_default();
    open_derived(
        source,
        |text| name(text, source),
        move |text, report, sink| read(text, &manifest, source, report, sink),
    )
}

/// Returns the stem of the files of a session.
fn stem(source: &Source) -> &str {
    let stem = source.stem();
    stem.strip_suffix(".messages").unwrap_or(stem)
}

/// Reads the file of a session with another ending.
fn beside(source: &Source, ending: &str) -> Option<String> {
    let bytes = source.read_beside(&PathBuf::from(format!("{}{ending}", stem(source))))?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the session, and where it comes from.
fn name(text: &str, source: &Source) -> Result<(String, Origin), String> {
    let session = Object::parse(text)?;
    let id = session.non_blank("sessionId");
    let id = valid_key(id.as_deref().unwrap_or_else(|| stem(source)));
    let role = session.string("agent");
    if matches!(role.as_deref(), Some("subagent" | "teammate")) {
        let agent = stem(source);
        let tool_use_id = calling(&session, &id, source);
        let name = valid_key(sub_agent_name(&id, agent));
        let origin = Origin::Spawned {
            session: Some(id),
            tool_use_id,
        };
        return Ok((name, origin));
    }
    let manifest = beside(source, ".json").unwrap_or_default();
    let manifest = Object::parse(&manifest).unwrap_or_default();
    let fork = manifest
        .object("metadata")
        .and_then(|metadata| metadata.object("fork"));
    let parent = fork.and_then(|fork| Some(valid_key(fork.non_blank("forkedFromSessionId")?)));
    let origin = match parent {
        Some(session) if session != id => Origin::Copy { session },
        _ => Origin::Start,
    };
    Ok((id, origin))
}

/// Returns the call of the main session that started a sub-agent: the one with its task.
fn calling(agent: &Object<'_>, main: &str, source: &Source) -> Option<String> {
    let messages = agent.list("messages").unwrap_or_default();
    let first = messages.into_iter().filter_map(Object::from_json);
    let task =
        text_of(&{ first }.find(|message| message.string("role").as_deref() == Some("user"))?);
    let bytes = source.read_beside(&PathBuf::from(format!("{main}{MESSAGES}")))?;
    let main = String::from_utf8_lossy(&bytes);
    let main = Object::parse(&main).ok()?;
    let messages = main
        .list("messages")?
        .into_iter()
        .filter_map(Object::from_json);
    let blocks = messages
        .filter_map(|message| message.list("content"))
        .flatten();
    blocks.filter_map(Object::from_json).find_map(|block| {
        let given = block.object("input")?;
        let given = given
            .non_blank("task")
            .or_else(|| given.non_blank("prompt"))?;
        let is_it = block.string("type")? == "tool_use" && task.contains(given.trim());
        is_it.then(|| block.string("id").map(|id| id.into_owned()))?
    })
}

fn read(
    text: &str,
    manifest: &str,
    source: &Source,
    report: &mut ReadReport,
    sink: &mut dyn EventSink,
) -> Result<()> {
    let session = Object::from_json(text).unwrap_or_default();
    let manifest = Object::parse(manifest).unwrap_or_default();
    sink.details(details(&manifest))?;
    let compacted = beside(source, ".compaction.json").unwrap_or_default();
    let compacted = Object::parse(&compacted).unwrap_or_default();
    let compacted_at = compacted.number("source_message_count");
    let mut emitter = ClineEmitter::new(sink, false);
    if let Some(prompt) = session
        .text("system_prompt")
        .filter(|prompt| !prompt.is_empty())
    {
        emitter.emit_system(prompt)?;
    }
    // The ids of messages, and how many events they became.
    let mut sent = Vec::new();
    for (n, json) in session
        .list("messages")
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        let Some(message) = Object::from_json(json) else {
            let reason = format!("message {n} is not an object");
            report.add_damage(1, &(0..json.len() as u64), reason);
            continue;
        };
        let before = emitter.sent;
        if !emit(&mut emitter, &message, json)? {
            let role = message.string("role").unwrap_or_default();
            report.add_unknown(&format!("message: {role}"));
        }
        sent.push((message.get("id").unwrap_or_default(), emitter.sent - before));
        if compacted_at == Some(n as u64 + 1) {
            emit_compaction(&mut emitter, &compacted, &sent)?;
        }
    }
    Ok(())
}

fn details(manifest: &Object<'_>) -> Details {
    let metadata = manifest.object("metadata");
    let directory = manifest.path("cwd");
    Details {
        title: metadata.and_then(|metadata| metadata.trimmed("title")),
        model: manifest.trimmed("model"),
        directory: directory.or_else(|| manifest.path("workspace_root")),
        started_at: manifest.time("started_at"),
        ended_at: manifest.time("ended_at"),
        ..Details::default()
    }
}

/// Sends a message. Returns whether its role is known.
fn emit(emitter: &mut ClineEmitter<'_>, message: &Object<'_>, json: &str) -> Result<bool> {
    let at = message.time("ts");
    let key = match message.non_blank("id") {
        Some(id) => valid_key(id),
        None => format!("m-{}", hash_json(json, 16)),
    };
    if let Some(summary) = compaction(message, &key, at) {
        let is_only_summary = summary.1;
        emitter.emit_summary(summary.0)?;
        if is_only_summary {
            return Ok(true);
        }
    }
    let info = message.object("modelInfo");
    let facts = Facts {
        call: call(message, &key, at),
        model: info.and_then(|info| info.trimmed("id")),
        key,
        at,
    };
    emitter.emit(message, facts)
}

/// Returns the summary that a message is or starts with, and whether it is nothing else.
fn compaction(
    message: &Object<'_>,
    key: &str,
    at: Option<Timestamp>,
) -> Option<(SummaryEvent, bool)> {
    let metadata = message.object("metadata")?;
    let kind = metadata.string("kind")?;
    let is_only_summary = match kind.as_ref() {
        "compaction_summary" => true,
        "compaction" => false,
        _ => return None,
    };
    let summary = match metadata.non_blank("summary") {
        Some(summary) => summary.into_owned(),
        None if is_only_summary => text_of(message),
        None => String::new(),
    };
    let event = SummaryEvent {
        at: metadata.time("generatedAt").or(at),
        covers: metadata.number("messagesRemoved"),
        ..SummaryEvent::new(format!("{key}/summary"), summary)
    };
    Some((event, is_only_summary))
}

/// Sends the summary beside a session, after the messages that it is about.
fn emit_compaction(
    emitter: &mut ClineEmitter<'_>,
    compacted: &Object<'_>,
    sent: &[(&str, u64)],
) -> Result<()> {
    let left = compacted.list("messages").unwrap_or_default();
    let left: Vec<_> = left.into_iter().filter_map(Object::from_json).collect();
    let ids: std::collections::HashSet<_> = left
        .iter()
        .filter(|message| !message.has("metadata"))
        .filter_map(|message| message.get("id"))
        .collect();
    let is_kept = |(id, _): &&(&str, u64)| ids.contains(id);
    let keep = sent
        .iter()
        .rev()
        .take_while(is_kept)
        .map(|(_, events)| events)
        .sum();
    let at = compacted.time("updated_at");
    let key = format!("compaction-{}", sent.len());
    let found = left
        .iter()
        .find_map(|message| compaction(message, &key, at));
    let summary = match found {
        Some((summary, _)) => SummaryEvent { keep, ..summary },
        None => SummaryEvent {
            at,
            keep,
            ..SummaryEvent::new(format!("{key}/summary"), "")
        },
    };
    emitter.emit_summary(SummaryEvent {
        covers: None,
        ..summary
    })
}

/// Returns what the call of a message used. Its input includes what came from the cache.
fn call(message: &Object<'_>, key: &str, at: Option<Timestamp>) -> Option<Call> {
    let metrics = message.object("metrics")?;
    let count = |name: &str| metrics.number(name).unwrap_or(0);
    let cached = count("cacheReadTokens").saturating_add(count("cacheWriteTokens"));
    let input = count("inputTokens").saturating_sub(cached);
    let usage = Usage::new(input, count("outputTokens"))
        .cache_read(count("cacheReadTokens"))
        .cache_creation(count("cacheWriteTokens"));
    // A copy of the message in another session has the same id and time, so it counts once.
    let at = at.map_or(String::new(), |at| format!("@{}", at.as_millis()));
    (usage.total() > 0).then(|| Call {
        response_id: format!("{key}{at}"),
        usage,
        cost: metrics.float("cost"),
    })
}
