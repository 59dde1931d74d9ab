//! Tells what the lines say, one after the other, each in its conversation.
//!
//! All that it remembers from line to line is its [`Memory`]: so a reading that goes on
//! tells what a reading of the whole would have told.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use super::entry::{Kind, hash};
use super::lent::Lent;
use super::message;
use super::state::Memory;
use super::tree::{Branch, MAIN, Node};
use crate::error::Result;
use crate::formats::pieces::key_of;
use crate::lines::Lines;
use crate::source::Source;
use crate::told::{About, After, Item, Origin, Said, Sink, Summarised, Thread, Which};

/// How much of a title is kept.
const MAX_TITLE: usize = 500;

/// Tells what lines say.
pub(super) struct Teller<'t> {
    source: &'t Source,
    sink: &'t mut dyn Sink,
    main: Thread,
    memory: Memory,
    /// The branch or agent that is being told; `None` for neither.
    present: Option<Which>,
    /// Branches of which something was told, and their keys.
    begun: Vec<Option<String>>,
    /// The keys of lines at which branches leave, by where they stand.
    left_at: HashMap<u64, Option<String>>,
    /// What was told of sub-agents.
    agents: HashSet<u64>,
}

impl<'t> Teller<'t> {
    /// Begins to tell.
    pub(super) fn new(
        source: &'t Source,
        sink: &'t mut dyn Sink,
        main: Thread,
        memory: Memory,
    ) -> Result<Self> {
        sink.thread(&main)?;
        Ok(Self {
            source,
            sink,
            present: Some(main.which.clone()),
            main,
            memory,
            begun: Vec::new(),
            left_at: HashMap::new(),
            agents: HashSet::new(),
        })
    }

    /// Tells what the agent's own files say of it beside its lines.
    pub(super) fn about(&mut self, about: About) -> Result<()> {
        self.sink.about(about)
    }

    /// Returns what was remembered.
    pub(super) fn finish(self) -> Memory {
        self.memory
    }

    /// Tells what the lines say, from a place in the file on.
    pub(super) fn tell(&mut self, from: u64, nodes: &[Node], branches: &[Branch]) -> Result<()> {
        self.begun = vec![None; branches.len()];
        let mut lines = Lines::new(self.source, from, 0);
        let mut wanted = nodes.iter().filter(|node| node.is_read_again()).peekable();
        while wanted.peek().is_some() {
            let Some(line) = lines.next()? else {
                break;
            };
            let Some(node) = wanted.next_if(|node| node.at == line.place.start) else {
                continue;
            };
            if let Some(record) = Lent::parse(&line.text()) {
                self.tell_line(&record, node, nodes, branches)?;
            }
        }
        Ok(())
    }

    fn tell_line(
        &mut self,
        record: &Lent<'_>,
        node: &Node,
        nodes: &[Node],
        branches: &[Branch],
    ) -> Result<()> {
        match node.kind {
            Kind::About => self.tell_title(record),
            Kind::Agent => self.tell_progress(record, node),
            _ if node.side => self.tell_side(record, node),
            Kind::Boundary => {
                if node.owner == MAIN {
                    self.memory.keep = kept(record, &self.memory);
                }
                Ok(())
            }
            _ if node.owner == MAIN => self.tell_main(record, node),
            _ => match branches.get(node.owner as usize) {
                Some(branch) if branch.spoken => self.tell_branch(record, node, nodes, branch),
                _ => Ok(()),
            },
        }
    }

    fn switch(&mut self, thread: &Thread) -> Result<()> {
        if self.present.as_ref() != Some(&thread.which) {
            self.sink.thread(thread)?;
            self.present = Some(thread.which.clone());
        }
        Ok(())
    }

    fn switch_to_main(&mut self) -> Result<()> {
        let main = self.main.clone();
        self.switch(&main)
    }

    fn tell_main(&mut self, record: &Lent<'_>, node: &Node) -> Result<()> {
        self.switch_to_main()?;
        let mut about = About::default();
        if !self.memory.directory {
            about.directory = directory(record, "cwd");
            self.memory.directory = about.directory.is_some();
        }
        if !self.memory.began {
            about.began = record.time("timestamp");
            self.memory.began = about.began.is_some();
        }
        let key = line_key(record, node, self.source)?;
        let item = item_of(record, node, key, &mut self.memory, self.source);
        if let Some(Item::Said(said)) = &item {
            if let Some(model) = said
                .model
                .as_ref()
                .filter(|model| self.memory.model.as_ref() != Some(model))
            {
                self.memory.model = Some(model.clone());
                about.model = Some(model.clone());
            }
            self.memory.told(node.uuid.unwrap_or_default());
        }
        if about != About::default() {
            self.sink.about(about)?;
        }
        item.map_or(Ok(()), |item| self.sink.item(item))
    }

    fn tell_title(&mut self, record: &Lent<'_>) -> Result<()> {
        let (rank, field) = match record.string("type").as_deref() {
            Some("custom-title") => (3, "customTitle"),
            Some("ai-title") => (2, "aiTitle"),
            Some("summary") => (1, "summary"),
            _ => {
                let directory = directory(record, "relocatedCwd");
                return self.tell_about(About {
                    directory,
                    ..About::default()
                });
            }
        };
        let title = record.text(field).unwrap_or_default();
        let title: String = title.trim().chars().take(MAX_TITLE).collect();
        if rank < self.memory.title || title.is_empty() {
            return Ok(());
        }
        self.memory.title = rank;
        self.tell_about(About {
            title: Some(title),
            ..About::default()
        })
    }

    fn tell_about(&mut self, about: About) -> Result<()> {
        self.switch_to_main()?;
        self.sink.about(about)
    }

    fn tell_branch(
        &mut self,
        record: &Lent<'_>,
        node: &Node,
        nodes: &[Node],
        branch: &Branch,
    ) -> Result<()> {
        let key = line_key(record, node, self.source)?;
        let begun = self.begun.get(node.owner as usize).cloned().flatten();
        let is_new = begun.is_none();
        let name = begun.unwrap_or_else(|| key.clone());
        let after = branch.after.and_then(|at| nodes.get(at as usize));
        let after = match after.filter(|_| is_new) {
            Some(after) => self.key_at(after)?.map_or(After::Nothing, After::Key),
            None => After::Nothing,
        };
        self.switch(&Thread {
            which: Which::Branch(name.clone()),
            origin: Origin::Continues {
                session: None,
                after,
            },
        })?;
        if is_new {
            if let Some(begun) = self.begun.get_mut(node.owner as usize) {
                *begun = Some(name);
            }
            self.tell_before(nodes, branch)?;
        }
        match item_of(record, node, key, &mut self.memory, self.source) {
            Some(item) => self.sink.item(item),
            None => Ok(()),
        }
    }

    /// Returns the key of a line, which many branches may leave at.
    fn key_at(&mut self, node: &Node) -> Result<Option<String>> {
        if let Some(key) = self.left_at.get(&node.at) {
            return Ok(key.clone());
        }
        let line = line_at(node, self.source)?;
        let key = match Lent::parse(&line) {
            Some(record) => Some(line_key(&record, node, self.source)?),
            None => None,
        };
        self.left_at.insert(node.at, key.clone());
        Ok(key)
    }

    /// Tells once more what a branch of a branch goes on from.
    fn tell_before(&mut self, nodes: &[Node], branch: &Branch) -> Result<()> {
        let mut memory = Memory::default();
        for node in branch
            .before
            .iter()
            .filter_map(|at| nodes.get(*at as usize))
        {
            let line = line_at(node, self.source)?;
            let Some(record) = Lent::parse(&line) else {
                continue;
            };
            let key = line_key(&record, node, self.source)?;
            if let Some(item) = item_of(&record, node, key, &mut memory, self.source) {
                self.sink.item(item)?;
            }
        }
        Ok(())
    }

    /// Tells a line of a sidechain.
    fn tell_side(&mut self, record: &Lent<'_>, node: &Node) -> Result<()> {
        let key = line_key(record, node, self.source)?;
        let agent = match record.string("agentId").filter(|id| !id.is_empty()) {
            Some(id) => key_of(&id),
            None => {
                let parent = record.string("parentUuid").map(|parent| hash(&parent));
                let known = parent.and_then(|parent| self.memory.side_of(Some(parent)));
                known.map_or_else(|| key.clone(), str::to_owned)
            }
        };
        self.memory.side(node.uuid.unwrap_or_default(), &agent);
        if let Some(item) = item_of(record, node, key, &mut self.memory, self.source) {
            self.tell_agent(&agent, None, record, item)?;
        }
        Ok(())
    }

    /// Tells what a sub-agent said, as it is carried by its caller's progress.
    fn tell_progress(&mut self, record: &Lent<'_>, node: &Node) -> Result<()> {
        let Some(data) = record.object("data") else {
            return Ok(());
        };
        let call = record.string("parentToolUseID").filter(|id| !id.is_empty());
        let id = data.string("agentId").filter(|id| !id.is_empty());
        let Some(agent) = id.as_deref().or(call.as_deref()).map(key_of) else {
            return Ok(());
        };
        let call = call.map(|call| key_of(&call));
        let outer = line_key(record, node, self.source)?;
        for (n, said) in self.new_messages(&data, &agent).into_iter().enumerate() {
            let key = match said.string("uuid").filter(|uuid| !uuid.is_empty()) {
                Some(uuid) => key_of(&uuid),
                None => key_of(&format!("{outer}/{n}")),
            };
            let is_message = matches!(said.string("type").as_deref(), Some("user" | "assistant"));
            if is_message && said.object("message").is_some() {
                let item = Item::Said(message::said(&said, key, &mut self.memory, self.source));
                self.tell_agent(&agent, call.as_deref(), record, item)?;
            }
        }
        Ok(())
    }

    /// Returns the messages of a sub-agent that were not told yet. Its progress carries
    /// all of them again and again.
    fn new_messages<'a>(&self, data: &Lent<'a>, agent: &str) -> Vec<Lent<'a>> {
        let (known, _) = self.memory.agent_of(hash(agent));
        let all = data.list("normalizedMessages").unwrap_or_default();
        let all: Vec<Lent<'a>> = all.iter().filter_map(|said| Lent::parse(said)).collect();
        let uuid = |said: &Lent<'_>| said.string("uuid").map(|uuid| hash(&uuid));
        let told = all.iter().rposition(|said| uuid(said) == Some(known));
        let mut new: Vec<Lent<'a>> = match told {
            Some(at) => all.into_iter().skip(at + 1).collect(),
            None => {
                let was_told =
                    |said: &Lent<'_>| uuid(said).is_some_and(|uuid| self.memory.is_nested(uuid));
                all.into_iter().filter(|said| !was_told(said)).collect()
            }
        };
        if let Some(last) = data.object("message") {
            let last_uuid = uuid(&last);
            let was_told = last_uuid.is_some_and(|uuid| self.memory.is_nested(uuid));
            let there = was_told
                || last_uuid == Some(known)
                || new.iter().any(|said| uuid(said) == last_uuid);
            if last_uuid.is_none() || !there {
                new.push(last);
            }
        }
        new
    }

    fn tell_agent(
        &mut self,
        agent: &str,
        call: Option<&str>,
        outer: &Lent<'_>,
        item: Item,
    ) -> Result<()> {
        let id = hash(agent);
        if !self
            .agents
            .insert(hash(&format!("{agent}\n{}", item.key())))
        {
            return Ok(());
        }
        let (said_at, model, text) = match &item {
            Item::Said(said) => (
                said.at,
                said.model.clone(),
                message::first_text(&said.message),
            ),
            _ => (None, None, None),
        };
        let is_new = self.memory.agent_of(id).1;
        let task = text.filter(|_| is_new && call.is_none());
        let task = task.and_then(|text| self.memory.take_task(hash(text.trim())));
        let tool_use_id = call.map(str::to_owned).or(task.map(|task| key_of(&task)));
        self.switch(&Thread {
            which: Which::Agent(agent.to_owned()),
            origin: Origin::Spawned {
                session: None,
                tool_use_id,
            },
        })?;
        let mut about = About::default();
        if is_new {
            about.began = said_at;
            about.directory = directory(outer, "cwd");
        }
        let known = self.memory.agent(id);
        known.last = hash(item.key());
        if let Some(model) = model.filter(|model| hash(model) != known.model) {
            known.model = hash(&model);
            about.model = Some(model);
        }
        self.memory.nested(hash(item.key()));
        if about != About::default() {
            self.sink.about(about)?;
        }
        self.sink.item(item)
    }
}

fn directory(record: &Lent<'_>, field: &str) -> Option<PathBuf> {
    let path = record.string(field).filter(|path| !path.is_empty())?;
    Some(PathBuf::from(path.into_owned()))
}

/// Makes what is told of a line.
fn item_of(
    record: &Lent<'_>,
    node: &Node,
    key: String,
    memory: &mut Memory,
    source: &Source,
) -> Option<Item> {
    match node.kind {
        Kind::Summary => Some(Item::Summarised(summary(record, key, memory, source))),
        Kind::Queued => message::queued(record, key).map(Item::Said),
        Kind::User | Kind::Assistant => {
            Some(Item::Said(message::said(record, key, memory, source)))
        }
        _ => None,
    }
}

fn summary(record: &Lent<'_>, key: String, memory: &mut Memory, source: &Source) -> Summarised {
    let Said { at, message, .. } = message::said(record, key.clone(), memory, source);
    Summarised {
        covers: None,
        key,
        at,
        summary: message.text().into_owned(),
        keep: std::mem::take(&mut memory.keep),
        model: None,
        usage: None,
    }
}

/// Returns how many messages a compact boundary keeps.
fn kept(record: &Lent<'_>, memory: &Memory) -> u64 {
    let Some(compact) = record.object("compactMetadata") else {
        return 0;
    };
    if let Some(kept) = compact.object("preservedMessages") {
        return kept.list("uuids").map_or(0, |uuids| uuids.len() as u64);
    }
    let head = compact.object("preservedSegment");
    let head = head.and_then(|kept| kept.string("headUuid").map(|uuid| hash(&uuid)));
    head.map_or(0, |head| memory.told_since(head))
}

/// Returns what names a line: its uuid, else its number.
fn line_key(record: &Lent<'_>, node: &Node, source: &Source) -> Result<String> {
    let uuid = record.string("uuid").filter(|uuid| !uuid.is_empty());
    Ok(match uuid {
        None => format!("line-{}", node.number),
        Some(uuid) if node.again => key_of(&format!(
            "{uuid}~{:016x}",
            line_hash(node.at..node.end, source)?
        )),
        Some(uuid) => key_of(&uuid),
    })
}

/// Returns a line once more.
fn line_at(node: &Node, source: &Source) -> Result<String> {
    let bytes = source.read_range(node.at..node.end)?;
    let text = String::from_utf8_lossy(&bytes);
    let is_around = |c: char| c.is_ascii_whitespace() || matches!(c, '\0' | '\u{feff}');
    Ok(text.trim_matches(is_around).to_owned())
}

/// Returns a number for what stands in a place, without the line break.
pub(super) fn line_hash(place: std::ops::Range<u64>, source: &Source) -> Result<u64> {
    let bytes = source.read_range(place)?;
    let hash = blake3::hash(bytes.trim_ascii());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.as_bytes()[..8]);
    Ok(u64::from_le_bytes(first))
}
