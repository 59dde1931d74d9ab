//! Sends the events of lines, each to its conversation.
//!
//! All that it remembers from line to line is in its [`Memory`], so that resumed reading sends
//! the same as reading the whole file.

use super::cost::CostCalls;
use super::entry::LineKind;
use super::message;
use super::state::Memory;
use super::tree::{Branch, MAIN, Node};
use crate::error::Result;
use crate::event::{
    Details, Event, EventSink, MessageEvent, Origin, SummaryEvent, Thread, ThreadId, UsageEvent,
};
use crate::formats::keys::{UniqueKeys, hash_name as hash, short_hash, valid_key};
use crate::json::Object;
use crate::json_lines::JsonLines;
use crate::lines::Lines;
use crate::source::Source;
use std::collections::{HashMap, HashSet};

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
    /// The calls since the last cost.
    cost_calls: CostCalls,
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
            cost_calls: CostCalls::default(),
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
        if nodes.iter().any(|node| node.kind == LineKind::Cost) {
            self.read_calls(from)?;
        }
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

    /// Reads the calls since the last cost again, up to a byte of the file.
    fn read_calls(&mut self, to: u64) -> Result<()> {
        let from = self.memory.cost.from.min(to);
        let (mut lines, mut report) = JsonLines::resume(self.source, from, 0);
        while let Some(line) = lines.next(&mut report)? {
            if line.range.start >= to {
                break;
            }
            let record = line.object();
            let is_call = record.string("type").as_deref() == Some("assistant");
            if is_call && !record.is_true("isSidechain") {
                let mut memory = Memory::default();
                let key = String::new();
                let event = message::message_event(&record, key, &mut memory, self.source);
                self.add_call(&record, &event);
            }
        }
        Ok(())
    }

    /// Remembers a call on the main line until its cost is known.
    fn add_call(&mut self, record: &Object<'_>, event: &MessageEvent) {
        let cost = &mut self.memory.cost;
        cost.is_shared |= message::starts_agent(&event.message);
        match record.has("forkedFrom") {
            // It is a call of another session.
            true => cost.is_shared = true,
            false => self.cost_calls.add(event, cost),
        }
    }

    /// Sends the cost of the calls that the agent's own cost is for.
    fn emit_cost(&mut self, record: &Object<'_>, node: &Node) -> Result<()> {
        let cost = &mut self.memory.cost;
        let shares = self.cost_calls.share(record, cost, node.end);
        if shares.is_empty() {
            return Ok(());
        }
        self.switch_to_main()?;
        // The same in every file of the session: neither line nor position is.
        let line = line_hash(node.at..node.end, self.source)?;
        let mut keys = UniqueKeys::default();
        for (call, cost) in shares {
            let response = hash(&call.response);
            self.sink.event(Event::Usage(UsageEvent {
                key: keys.unique(format!("cost-{line:016x}-{response:016x}")),
                at: None,
                response_id: call.response,
                model: call.model,
                usage: call.usage,
                duration_ms: None,
                cost_usd: Some(cost),
            }))?;
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
            LineKind::Details => self.emit_details(record, nodes),
            LineKind::Cost => self.emit_cost(record, node),
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
            details.directory = record.path("cwd");
            self.memory.directory = details.directory.is_some();
        }
        if !self.memory.began {
            details.started_at = record.time("timestamp");
            self.memory.began = details.started_at.is_some();
        }
        let (_, event) = read_line(record, node, &mut self.memory, self.source)?;
        if let Some(Event::Message(message)) = &event {
            if message.model.is_some() && message.model != self.memory.model {
                self.memory.model.clone_from(&message.model);
                details.model.clone_from(&message.model);
            }
            self.memory.add_message(node.uuid.unwrap_or_default());
            self.add_call(record, message);
        }
        if details != Details::default() {
            self.sink.details(details)?;
        }
        event.map_or(Ok(()), |event| self.sink.event(event))
    }

    fn emit_details(&mut self, record: &Object<'_>, nodes: &[Node]) -> Result<()> {
        // Older versions wrote the summaries of other conversations into a new file.
        let leaf = record.string("leafUuid").map(|uuid| hash(&uuid));
        if let Some(leaf) = leaf.filter(|leaf| nodes.iter().all(|node| node.uuid != Some(*leaf))) {
            self.memory.add_leaf(leaf);
            return Ok(());
        }
        let (rank, field) = match record.string("type").as_deref() {
            Some("custom-title") => (3, "customTitle"),
            Some("ai-title") => (2, "aiTitle"),
            Some("summary") => (1, "summary"),
            _ => {
                let directory = record.path("relocatedCwd");
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
        let (key, event) = read_line(record, node, &mut self.memory, self.source)?;
        self.memory.cost.is_shared = true;
        self.memory.cost.needs_whole = true;
        let owner = node.owner as usize;
        let known = self.branch_keys.get(owner).cloned().flatten();
        let is_new = known.is_none();
        let after = branch.after.and_then(|at| nodes.get(at as usize));
        let after = match after.filter(|_| is_new) {
            Some(after) => self.key_at(after)?,
            None => None,
        };
        let name = known.unwrap_or(key);
        self.switch(&Thread::branch(name.clone(), after))?;
        if is_new {
            if let Some(known) = self.branch_keys.get_mut(owner) {
                *known = Some(name);
            }
            self.repeat_before(nodes, branch)?;
        }
        event.map_or(Ok(()), |event| self.sink.event(event))
    }

    /// Returns the key of a line at which many branches may leave.
    fn key_at(&mut self, node: &Node) -> Result<Option<String>> {
        if let Some(key) = self.fork_keys.get(&node.at) {
            return Ok(key.clone());
        }
        let line = self.source.line_at(node.at..node.end)?;
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
            let line = self.source.line_at(node.at..node.end)?;
            let Some(record) = Object::from_json(&line) else {
                continue;
            };
            if let (_, Some(event)) = read_line(&record, node, &mut memory, self.source)? {
                self.sink.event(event)?;
            }
        }
        Ok(())
    }

    /// Sends a line of a sidechain.
    fn emit_side(&mut self, record: &Object<'_>, node: &Node) -> Result<()> {
        let (key, event) = read_line(record, node, &mut self.memory, self.source)?;
        let agent = record.non_blank("agentId").map(valid_key);
        let agent = agent.unwrap_or_else(|| {
            let parent = record.string("parentUuid").map(|parent| hash(&parent));
            let known = parent.and_then(|parent| self.memory.agent_of_side(parent));
            known.map_or(key, str::to_owned)
        });
        self.memory.add_side(node.uuid.unwrap_or_default(), &agent);
        event.map_or(Ok(()), |event| self.emit_agent(&agent, None, record, event))
    }

    /// Sends the messages of a sub-agent that its caller's progress contains.
    fn emit_progress(&mut self, record: &Object<'_>, node: &Node) -> Result<()> {
        let Some(data) = record.object("data") else {
            return Ok(());
        };
        let call = record.non_blank("parentToolUseID").map(valid_key);
        let id = data.non_blank("agentId").map(valid_key);
        let Some(agent) = id.or(call.clone()) else {
            return Ok(());
        };
        let outer = line_key(record, node, self.source)?;
        for (n, message) in self.new_messages(&data, &agent).into_iter().enumerate() {
            let key = message.non_blank("uuid").map(valid_key);
            let key = key.unwrap_or_else(|| valid_key(format!("{outer}/{n}")));
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
        self.memory.cost.is_shared = true;
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
        let tool_use_id = call.map(str::to_owned).or(task.map(valid_key));
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
            details.directory = outer.path("cwd");
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

/// Returns the key of a line, and its event if it has one.
fn read_line(
    record: &Object<'_>,
    node: &Node,
    memory: &mut Memory,
    source: &Source,
) -> Result<(String, Option<Event>)> {
    let key = line_key(record, node, source)?;
    let event = match node.kind {
        LineKind::Summary => Some(Event::Summary(summary(record, key.clone(), memory, source))),
        LineKind::Queued => message::queued_prompt(record, key.clone()).map(Event::Message),
        LineKind::User | LineKind::Assistant => {
            let message = message::message_event(record, key.clone(), memory, source);
            Some(Event::Message(message))
        }
        _ => None,
    };
    Ok((key, event))
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
    Ok(match record.non_blank("uuid") {
        None => format!("line-{}", node.number),
        Some(uuid) if node.is_repeated => {
            let hash = line_hash(node.at..node.end, source)?;
            valid_key(format!("{uuid}~{hash:016x}"))
        }
        Some(uuid) => valid_key(uuid),
    })
}

/// Returns a hash of a line without its line break.
pub(super) fn line_hash(range: std::ops::Range<u64>, source: &Source) -> Result<u64> {
    let bytes = source.read_range(range)?;
    Ok(u64::from_le_bytes(short_hash(bytes.trim_ascii())))
}
