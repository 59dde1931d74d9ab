//! Tasks of the extensions.

use std::path::{Path, PathBuf};

use backtrail::{Timestamp, Usage};
use serde_json::value::RawValue;

use super::Extension;
use super::messages::{Call, ClineEmitter, Facts, text_of};
use super::requests::{Request, Requests};
use crate::error::Result;
use crate::event::{Details, EventSink, Origin, ReadReport, SummaryEvent};
use crate::format::OpenFile;
use crate::formats::keys::{hash_json, valid_key};
use crate::formats::value::open_derived;
use crate::json::{Object, elements, field_names};
use crate::source::{Source, file_name};

/// The names of the file with the messages; the second is that of the first versions.
const NAMES: [&str; 2] = ["api_conversation_history.json", "claude_messages.json"];
/// What a message of these agents has in it, whatever the file is called.
const MARKS: [&str; 3] = ["<environment_details>", "<task>", "<user_message>"];

/// Returns whether a file is a task, by its name.
pub(super) fn is_task_file(path: &Path) -> bool {
    NAMES.contains(&file_name(path))
}

/// Returns whether a file is a task, by its beginning: a list of messages.
pub(super) fn is_task(source: &Source) -> bool {
    let head = source.head();
    if crate::source::trim(&head).first() != Some(&b'[') {
        return false;
    }
    let fields = field_names(&head);
    let has = |name: &str| fields.iter().any(|field| field == name);
    if !has("role") || !has("content") {
        return false;
    }
    let head = String::from_utf8_lossy(&head);
    is_task_file(source.path()) || MARKS.iter().any(|mark| head.contains(mark))
}

/// Opens a task.
pub(super) fn open(source: &Source, extension: Extension) -> Result<OpenFile<'_>> {
    let item = beside(source, "history_item.json");
    let origin = Object::parse(&item).ok().and_then(|item| parent(&item));
    open_derived(
        source,
        |text| {
            list(text)?;
            Ok((name(source), origin.unwrap_or(Origin::Start)))
        },
        move |text, report, sink| {
            let mut task = Task::new(source, extension, &item);
            task.read(text, report, sink)
        },
    )
}

/// Returns the messages of a task.
fn list(text: &str) -> Result<Vec<&str>, String> {
    let list: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
    elements(list.get()).ok_or_else(|| "not a JSON list".to_owned())
}

/// Returns the name of a task: that of its directory.
fn name(source: &Source) -> String {
    let directory = source.path().parent().map(file_name).unwrap_or_default();
    match is_task_file(source.path()) && !directory.is_empty() {
        true => valid_key(directory),
        false => valid_key(source.stem()),
    }
}

/// Reads a file of a task; empty if there is none.
fn beside(source: &Source, name: &str) -> String {
    let bytes = match is_task_file(source.path()) {
        true => source.read_beside(Path::new(name)),
        false => None,
    };
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// Returns where a task comes from that another one started.
fn parent(item: &Object<'_>) -> Option<Origin> {
    Some(Origin::Spawned {
        session: Some(valid_key(item.non_blank("parentTaskId")?)),
        tool_use_id: None,
    })
}

/// A task whose messages are read.
struct Task {
    name: String,
    requests: Requests,
    has_requests: bool,
    /// The models that were used, and since when.
    models: Vec<(Option<Timestamp>, String)>,
    details: Details,
    /// How many messages were sent when the last one that a summary replaced was.
    replaced_to: Option<u64>,
}

impl Task {
    fn new(source: &Source, extension: Extension, item: &str) -> Self {
        let shown = beside(source, "ui_messages.json");
        let item = Object::parse(item).unwrap_or_default();
        let requests = Requests::read(shown.as_bytes(), extension);
        Self {
            name: name(source),
            has_requests: requests.next().is_some(),
            requests,
            models: models(&beside(source, "task_metadata.json")),
            details: Details {
                directory: item.path("workspace"),
                ..Details::default()
            },
            replaced_to: None,
        }
    }

    fn read(
        &mut self,
        text: &str,
        report: &mut ReadReport,
        sink: &mut dyn EventSink,
    ) -> Result<()> {
        let messages = list(text).unwrap_or_default();
        let first = messages.first().and_then(|json| Object::from_json(json));
        let first = first.map(|message| text_of(&message)).unwrap_or_default();
        let directory = self.details.directory.take();
        self.details.directory = directory.or_else(|| working_directory(&first));
        let model = tag(&first, "model");
        self.details.model = self.models.last().map(|(_, model)| model.clone()).or(model);
        sink.details(self.details.clone())?;
        let mut emitter = ClineEmitter::new(sink, true);
        for (n, json) in messages.iter().enumerate() {
            let Some(message) = Object::from_json(json) else {
                let reason = format!("message {n} is not an object");
                report.add_damage(1, &(0..json.len() as u64), reason);
                continue;
            };
            if !self.emit(&mut emitter, &message, json, n)? {
                let role = message.string("role").unwrap_or_default();
                report.add_unknown(&format!("message: {role}"));
            }
        }
        for request in std::mem::take(&mut self.requests).rest() {
            self.emit_request(&mut emitter, request)?;
        }
        Ok(())
    }

    /// Sends a message. Returns whether its role is known.
    fn emit(
        &mut self,
        emitter: &mut ClineEmitter<'_>,
        message: &Object<'_>,
        json: &str,
        n: usize,
    ) -> Result<bool> {
        let own = message.time("ts");
        let at = own.or_else(|| self.requests.next().and_then(|request| request.at));
        let key = message
            .non_blank("messageId")
            .or_else(|| message.non_blank("id"));
        let key = match key {
            Some(id) => valid_key(id),
            None => format!("{n}-{}", hash_json(json, 16)),
        };
        if message.is_true("isSummary") {
            let keep = self.replaced_to.map_or(0, |to| emitter.sent - to);
            let summary = SummaryEvent {
                at,
                keep,
                ..SummaryEvent::new(key, text_of(message))
            };
            emitter.emit_summary(summary)?;
            return Ok(true);
        }
        let mut facts = Facts {
            key,
            at,
            ..Facts::default()
        };
        if message.is_true("isTruncationMarker") {
            emitter.emit_note(text_of(message).into(), &facts)?;
            return Ok(true);
        }
        if message.string("role").as_deref() == Some("assistant") {
            self.add_call(emitter, message, own, &mut facts)?;
        }
        let is_known = emitter.emit(message, facts)?;
        if message.has("condenseParent") {
            self.replaced_to = Some(emitter.sent);
        }
        Ok(is_known)
    }

    /// Adds what the request of an answer used. Requests before it were not answered.
    fn add_call(
        &mut self,
        emitter: &mut ClineEmitter<'_>,
        message: &Object<'_>,
        own: Option<Timestamp>,
        facts: &mut Facts,
    ) -> Result<()> {
        let (before, request) = self.requests.take(own);
        for request in before {
            self.emit_request(emitter, request)?;
        }
        let info = message.object("modelInfo");
        let model = info.and_then(|info| info.trimmed("modelId").or_else(|| info.trimmed("id")));
        let since = |(since, _): &&(Option<Timestamp>, String)| {
            since.is_none() || *since <= facts.at || facts.at.is_none()
        };
        let used = self.models.iter().rev().find(since);
        facts.model = model.or_else(|| used.map(|(_, model)| model.clone()));
        facts.call = match request {
            Some(request) => self.call(&request),
            None if !self.has_requests => self.metrics(message, &facts.key),
            None => None,
        };
        Ok(())
    }

    fn call(&self, request: &Request) -> Option<Call> {
        let at = request.at.map_or(0, Timestamp::as_millis);
        Some(Call {
            response_id: format!("{}#{at}", self.name),
            usage: request.usage.clone()?,
            cost: request.cost,
        })
    }

    /// Returns what a message says that its call used.
    fn metrics(&self, message: &Object<'_>, key: &str) -> Option<Call> {
        let metrics = message.object("metrics")?;
        let tokens = metrics.object("tokens")?;
        let count = |name: &str| tokens.number(name).unwrap_or(0);
        let usage = Usage::new(count("prompt"), count("completion")).cache_read(count("cached"));
        (usage.total() > 0).then(|| Call {
            response_id: format!("{}#{key}", self.name),
            usage,
            cost: metrics.float("cost"),
        })
    }

    fn emit_request(&self, emitter: &mut ClineEmitter<'_>, request: Request) -> Result<()> {
        match self.call(&request) {
            Some(call) => emitter.emit_usage(call, request.at),
            None => Ok(()),
        }
    }
}

/// Returns the models that a task used.
fn models(metadata: &str) -> Vec<(Option<Timestamp>, String)> {
    let metadata = Object::parse(metadata).unwrap_or_default();
    let used = metadata.list("model_usage").unwrap_or_default();
    let model = |json: &str| {
        let used = Object::from_json(json)?;
        Some((used.time("ts"), used.trimmed("model_id")?))
    };
    used.into_iter().filter_map(model).collect()
}

/// Returns the working directory that the agent tells the model: `# Current Working Directory
/// (/home/me/shop) Files`.
fn working_directory(text: &str) -> Option<PathBuf> {
    let heads = [
        "# Current Working Directory (",
        "# Current Workspace Directory (",
    ];
    let after = heads
        .iter()
        .find_map(|head| Some(text.split_once(head)?.1))?;
    let line = after.lines().next()?;
    let path = line
        .rfind(") ")
        .or_else(|| line.rfind(')'))
        .map(|end| &line[..end])?;
    (!path.trim().is_empty()).then(|| PathBuf::from(path))
}

/// Returns what is inside a tag.
fn tag(text: &str, name: &str) -> Option<String> {
    let after = text.split_once(&format!("<{name}>"))?.1;
    let inner = after.split_once(&format!("</{name}>"))?.0.trim();
    (!inner.is_empty() && inner.len() < 200).then(|| inner.to_owned())
}
