//! Sends the events of lines, each to its conversation.
//!
//! All that it remembers from line to line is in its [`Memory`], so that resumed reading sends
//! the same as reading the whole file.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::entry::{LineKind, hash};
use super::message;
use super::state::Memory;
use super::tree::{Branch, MAIN, Node};
use crate::error::Result;
use crate::event::{
    Details, Event, EventSink, ForkPoint, MessageEvent, Origin, SummaryEvent, Thread, ThreadId,
};
use crate::formats::keys::{short_hash, valid_key};
use crate::json::Object;
use crate::lines::Lines;
use crate::source::Source;

/// The longest title, in characters.
const MAX_TITLE: usize = 500;

/// Sends the events of lines.
pub(super) struct Emitter<'t> {
    source: &'t Source,
    sink: &'t mut dyn EventSink,
    main: Thread,
    memory: Memory,
    current: ThreadId,
    /// The keys of branches that have events.
    branch_keys: Vec<Option<String>>,
    /// The keys of lines at which branches leave, by their positions.
    fork_keys: HashMap<u64, Option<String>>,
    /// The events of sub-agents.
    agent_events: HashSet<u64>,
}

impl<'t> Emitter<'t> {
    pub(super) fn new(
        source: &'t Source,
        sink: &'t mut dyn EventSink,
        main: Origin,
        memory: Memory,
    ) -> Self {
        Self {
            source,
            sink,
            current: ThreadId::Main,
            main: Thread::main(main),
            memory,
            branch_keys: Vec::new(),
            fork_keys: HashMap::new(),
            agent_events: HashSet::new(),
        }
    }

    /// Sends details that are not in the lines.
    pub(super) fn details(&mut self, details: Details) -> Result<()> {
        self.sink.details(details)
    }

    /// Returns what it remembers.
    pub(super) fn finish(self) -> Memory {
        self.memory
    }

    /// Sends the events of lines, from a byte of the file on.
    pub(super) fn emit(&mut self, from: u64, nodes: &[Node], branches: &[Branch]) -> Result<()> {
        self.branch_keys = vec![None; branches.len()];
        let mut lines = Lines::new(self.source, from, 0);
        let mut wanted = nodes.iter().filter(|node| node.is_read_again()).peekable();
        while wanted.peek().is_some() {
            let Some(line) = lines.next()? else {
                break;
            };
            let Some(node) = wanted.next_if(|node| node.at == line.range.start) else {
                continue;
            };
            if let Some(record) = Object::from_json(&line.text()) {
                self.emit_line(&record, node, nodes, branches)?;
            }
        }
        Ok(())
    }

    fn emit_line(
        &mut self,
        record: &Object<'_>,
        node: &Node,
        nodes: &[Node],
        branches: &[Branch],
    ) -> Result<()> {
        match node.kind {
            LineKind::Details => self.emit_details(record),
            LineKind::Agent => self.emit_progress(record, node),
            _ if node.is_side => self.emit_side(record, node),
            LineKind::Boundary => {
                if node.owner == MAIN {
                    self.memory.keep = kept(record, &self.memory);
                }
                Ok(())
            }
            _ if node.owner == MAIN => self.emit_main(record, node),
            _ => match branches.get(node.owner as usize) {
                Some(branch) if branch.has_messages => {
                    self.emit_branch(record, node, nodes, branch)
                }
                _ => Ok(()),
            },
        }
    }

    fn switch(&mut self, thread: &Thread) -> Result<()> {
        if self.current != thread.id {
            self.sink.thread(thread)?;
            self.current = thread.id.clone();
        }
        Ok(())
    }

    fn switch_to_main(&mut self) -> Result<()> {
        let main = self.main.clone();
        self.switch(&main)
    }

    fn emit_main(&mut self, record: &Object<'_>, node: &Node) -> Result<()> {
        self.switch_to_main()?;
        let mut details = Details::default();
        if !self.memory.directory {
            details.directory = directory(record, "cwd");
            self.memory.directory = details.directory.is_some();
        }
        if !self.memory.began {
            details.started_at = record.time("timestamp");
            self.memory.began = details.started_at.is_some();
        }
        let key = line_key(record, node, self.source)?;
        let event = event_of(record, node, key, &mut self.memory, self.source);
        if let Some(Event::Message(message)) = &event {
            if let Some(model) = message
                .model
                .as_ref()
                .filter(|model| self.memory.model.as_ref() != Some(model))
            {
                self.memory.model = Some(model.clone());
                details.model = Some(model.clone());
            }
            self.memory.add_message(node.uuid.unwrap_or_default());
        }
        if details != Details::default() {
            self.sink.details(details)?;
        }
        event.map_or(Ok(()), |event| self.sink.event(event))
    }

    fn emit_details(&mut self, record: &Object<'_>) -> Result<()> {
        let (rank, field) = match record.string("type").as_deref() {
            Some("custom-title") => (3, "customTitle"),
            Some("ai-title") => (2, "aiTitle"),
            Some("summary") => (1, "summary"),
            _ => {
                let directory = directory(record, "relocatedCwd");
                return self.send_details(Details {
                    directory,
                    ..Details::default()
                });
            }
        };
        let title = record.text(field).unwrap_or_default();
        let title: String = title.trim().chars().take(MAX_TITLE).collect();
        if rank < self.memory.title || title.is_empty() {
            return Ok(());
        }
        self.memory.title = rank;
        self.send_details(Details {
            title: Some(title),
            ..Details::default()
        })
    }

    fn send_details(&mut self, details: Details) -> Result<()> {
        self.switch_to_main()?;
        self.sink.details(details)
    }

    fn emit_branch(
        &mut self,
        record: &Object<'_>,
        node: &Node,
        nodes: &[Node],
        branch: &Branch,
    ) -> Result<()> {
        let key = line_key(record, node, self.source)?;
        let known = self.branch_keys.get(node.owner as usize).cloned();
        let known = known.flatten();
        let is_new = known.is_none();
        let name = known.unwrap_or_else(|| key.clone());
        let after = branch.after.and_then(|at| nodes.get(at as usize));
        let point = match after.filter(|_| is_new) {
            Some(after) => self
                .key_at(after)?
                .map_or(ForkPoint::Start, ForkPoint::After),
            None => ForkPoint::Start,
        };
        self.switch(&Thread {
            id: ThreadId::Branch(name.clone()),
            origin: Origin::Continues {
                session: None,
                point,
            },
        })?;
        if is_new {
            if let Some(known) = self.branch_keys.get_mut(node.owner as usize) {
                *known = Some(name);
            }
            self.repeat_before(nodes, branch)?;
        }
        match event_of(record, node, key, &mut self.memory, self.source) {
            Some(event) => self.sink.event(event),
            None => Ok(()),
        }
    }

    /// Returns the key of a line at which many branches may leave.
    fn key_at(&mut self, node: &Node) -> Result<Option<String>> {
        if let Some(key) = self.fork_keys.get(&node.at) {
            return Ok(key.clone());
        }
        let line = line_at(node, self.source)?;
        let key = match Object::from_json(&line) {
            Some(record) => Some(line_key(&record, node, self.source)?),
            None => None,
        };
        self.fork_keys.insert(node.at, key.clone());
        Ok(key)
    }

    /// Repeats the events that a branch of a branch continues.
    fn repeat_before(&mut self, nodes: &[Node], branch: &Branch) -> Result<()> {
        let mut memory = Memory::default();
        for node in branch
            .before
            .iter()
            .filter_map(|at| nodes.get(*at as usize))
        {
            let line = line_at(node, self.source)?;
            let Some(record) = Object::from_json(&line) else {
                continue;
            };
            let key = line_key(&record, node, self.source)?;
            if let Some(event) = event_of(&record, node, key, &mut memory, self.source) {
                self.sink.event(event)?;
            }
        }
        Ok(())
    }

    /// Sends a line of a sidechain.
    fn emit_side(&mut self, record: &Object<'_>, node: &Node) -> Result<()> {
        let key = line_key(record, node, self.source)?;
        let agent = match record.string("agentId").filter(|id| !id.is_empty()) {
            Some(id) => valid_key(&id),
            None => {
                let parent = record.string("parentUuid").map(|parent| hash(&parent));
                let known = parent.and_then(|parent| self.memory.agent_of_side(Some(parent)));
                known.map_or_else(|| key.clone(), str::to_owned)
            }
        };
        self.memory.add_side(node.uuid.unwrap_or_default(), &agent);
        if let Some(event) = event_of(record, node, key, &mut self.memory, self.source) {
            self.emit_agent(&agent, None, record, event)?;
        }
        Ok(())
    }

    /// Sends the messages of a sub-agent that its caller's progress contains.
    fn emit_progress(&mut self, record: &Object<'_>, node: &Node) -> Result<()> {
        let Some(data) = record.object("data") else {
            return Ok(());
        };
        let call = record.string("parentToolUseID").filter(|id| !id.is_empty());
        let id = data.string("agentId").filter(|id| !id.is_empty());
        let Some(agent) = id.as_deref().or(call.as_deref()).map(valid_key) else {
            return Ok(());
        };
        let call = call.map(|call| valid_key(&call));
        let outer = line_key(record, node, self.source)?;
        for (n, message) in self.new_messages(&data, &agent).into_iter().enumerate() {
            let key = match message.string("uuid").filter(|uuid| !uuid.is_empty()) {
                Some(uuid) => valid_key(&uuid),
                None => valid_key(&format!("{outer}/{n}")),
            };
            let is_message = matches!(
                message.string("type").as_deref(),
                Some("user" | "assistant")
            );
            if is_message && message.object("message").is_some() {
                let message = message::message_event(&message, key, &mut self.memory, self.source);
                let event = Event::Message(message);
                self.emit_agent(&agent, call.as_deref(), record, event)?;
            }
        }
        Ok(())
    }

    /// Returns the messages of a sub-agent that were not sent yet. Each progress contains all of
    /// them.
    fn new_messages<'a>(&self, data: &Object<'a>, agent: &str) -> Vec<Object<'a>> {
        let last_sent = self.memory.last_of_agent(hash(agent)).unwrap_or(0);
        let all = data.list("normalizedMessages").unwrap_or_default();
        let all: Vec<Object<'a>> = all.into_iter().filter_map(Object::from_json).collect();
        let uuid = |message: &Object<'_>| message.string("uuid").map(|uuid| hash(&uuid));
        let sent = all
            .iter()
            .rposition(|message| uuid(message) == Some(last_sent));
        let mut new: Vec<Object<'a>> = match sent {
            Some(at) => all.into_iter().skip(at + 1).collect(),
            None => {
                let was_sent = |message: &Object<'_>| {
                    uuid(message).is_some_and(|uuid| self.memory.is_nested(uuid))
                };
                all.into_iter()
                    .filter(|message| !was_sent(message))
                    .collect()
            }
        };
        if let Some(last) = data.object("message") {
            let last_uuid = uuid(&last);
            let was_sent = last_uuid.is_some_and(|uuid| self.memory.is_nested(uuid));
            let is_known = was_sent
                || last_uuid == Some(last_sent)
                || new.iter().any(|message| uuid(message) == last_uuid);
            if last_uuid.is_none() || !is_known {
                new.push(last);
            }
        }
        new
    }

    fn emit_agent(
        &mut self,
        agent: &str,
        call: Option<&str>,
        outer: &Object<'_>,
        event: Event,
    ) -> Result<()> {
        let id = hash(agent);
        let identity = hash(&format!("{agent}\n{}", event.key()));
        if !self.agent_events.insert(identity) {
            return Ok(());
        }
        let (at, model, text) = match &event {
            Event::Message(message) => (
                message.at,
                message.model.clone(),
                message::first_text(&message.message),
            ),
            _ => (None, None, None),
        };
        let is_new = self.memory.last_of_agent(id).is_none();
        let task = text.filter(|_| is_new && call.is_none());
        let task = task.and_then(|text| self.memory.take_task(hash(text.trim())));
        let tool_use_id = call
            .map(str::to_owned)
            .or(task.map(|task| valid_key(&task)));
        self.switch(&Thread {
            id: ThreadId::SubAgent(agent.to_owned()),
            origin: Origin::Spawned {
                session: None,
                tool_use_id,
            },
        })?;
        let mut details = Details::default();
        if is_new {
            details.started_at = at;
            details.directory = directory(outer, "cwd");
        }
        let known = self.memory.agent(id);
        known.last = hash(event.key());
        if let Some(model) = model.filter(|model| hash(model) != known.model) {
            known.model = hash(&model);
            details.model = Some(model);
        }
        self.memory.add_nested(hash(event.key()));
        if details != Details::default() {
            self.sink.details(details)?;
        }
        self.sink.event(event)
    }
}

fn directory(record: &Object<'_>, field: &str) -> Option<PathBuf> {
    let path = record.string(field).filter(|path| !path.is_empty())?;
    Some(PathBuf::from(path.into_owned()))
}

/// Returns the event of a line.
fn event_of(
    record: &Object<'_>,
    node: &Node,
    key: String,
    memory: &mut Memory,
    source: &Source,
) -> Option<Event> {
    match node.kind {
        LineKind::Summary => Some(Event::Summary(summary(record, key, memory, source))),
        LineKind::Queued => message::queued_prompt(record, key).map(Event::Message),
        LineKind::User | LineKind::Assistant => Some(Event::Message(message::message_event(
            record, key, memory, source,
        ))),
        _ => None,
    }
}

fn summary(record: &Object<'_>, key: String, memory: &mut Memory, source: &Source) -> SummaryEvent {
    let MessageEvent { at, message, .. } =
        message::message_event(record, key.clone(), memory, source);
    SummaryEvent {
        at,
        keep: std::mem::take(&mut memory.keep),
        ..SummaryEvent::new(key, message.text())
    }
}

/// Returns how many messages a compact boundary keeps.
fn kept(record: &Object<'_>, memory: &Memory) -> u64 {
    let Some(compact) = record.object("compactMetadata") else {
        return 0;
    };
    if let Some(kept) = compact.object("preservedMessages") {
        return kept.list("uuids").map_or(0, |uuids| uuids.len() as u64);
    }
    let head = compact.object("preservedSegment");
    let head = head.and_then(|kept| kept.string("headUuid").map(|uuid| hash(&uuid)));
    head.map_or(0, |head| memory.messages_since(head))
}

/// Returns the key of a line: its uuid, or else its number.
fn line_key(record: &Object<'_>, node: &Node, source: &Source) -> Result<String> {
    let uuid = record.string("uuid").filter(|uuid| !uuid.is_empty());
    Ok(match uuid {
        None => format!("line-{}", node.number),
        Some(uuid) if node.is_repeated => valid_key(&format!(
            "{uuid}~{:016x}",
            line_hash(node.at..node.end, source)?
        )),
        Some(uuid) => valid_key(&uuid),
    })
}

/// Reads a line again.
fn line_at(node: &Node, source: &Source) -> Result<String> {
    let bytes = source.read_range(node.at..node.end)?;
    let text = String::from_utf8_lossy(&bytes);
    let is_blank = |c: char| c.is_ascii_whitespace() || matches!(c, '\0' | '\u{feff}');
    Ok(text.trim_matches(is_blank).to_owned())
}

/// Returns a hash of a line without its line break.
pub(super) fn line_hash(range: std::ops::Range<u64>, source: &Source) -> Result<u64> {
    let bytes = source.read_range(range)?;
    Ok(u64::from_le_bytes(short_hash(bytes.trim_ascii())))
}
