//! The tree of a file's records. Only records that become events are nodes: any other stands
//! for the event before it.

use std::collections::{HashMap, VecDeque};

use super::super::forest::{Branch, Forest, NONE};
use super::super::keys::{
    SeenIds, hash_name, hash_without_blanks, push_limited, short_hash, valid_key,
};
use super::QwenState;
use super::messages::QwenEmitter;
use super::records::{RecordKind, model_call, record_kind};
use crate::error::Result;
use crate::event::ReadReport;
use crate::json::Object;
use crate::json_lines::JsonLine;
use crate::source::Source;

/// How many records at the end are remembered that a new one may continue.
const MAX_TAIL: usize = 40;

/// One record that becomes an event.
#[derive(Debug)]
struct QwenNode {
    /// How many earlier records have the same id.
    duplicates: u32,
    /// How many messages a summary keeps.
    keep: u32,
    /// The last message among the nodes that lead to it and itself, and the one before that.
    last_message: u32,
    message_before: u32,
    /// Identifies the content of a message.
    content: [u8; 16],
}

/// The records of a file, or those that were appended since it was last read.
#[derive(Debug)]
pub(super) struct Tree<'s> {
    source: &'s Source,
    forest: Forest,
    nodes: Vec<QwenNode>,
    /// The node that each record is or stands for.
    by_id: HashMap<[u8; 16], u32>,
    /// The node at which the conversation ends. `NONE` is what was read before.
    leaf: u32,
    is_resumed: bool,
    is_linear: bool,
    /// Whether the sub-agents that are known by now have files of their own.
    own_files: HashMap<String, bool>,
    pub(super) tail: VecDeque<u64>,
    pub(super) last: Option<(u64, u32)>,
    pub(super) seen: SeenIds,
    /// The last title of the session.
    pub(super) title: Option<String>,
    pub(super) parent_session: Option<String>,
}

impl<'s> Tree<'s> {
    /// Starts an empty file, or continues after records that followed one another.
    pub(super) fn new(source: &'s Source, state: &mut QwenState, is_resumed: bool) -> Self {
        Self {
            source,
            forest: Forest::default(),
            nodes: Vec::new(),
            by_id: HashMap::new(),
            leaf: NONE,
            is_resumed,
            is_linear: true,
            own_files: HashMap::new(),
            tail: std::mem::take(&mut state.tail),
            last: state.last.take(),
            seen: std::mem::take(&mut state.ids),
            title: None,
            parent_session: None,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Returns whether every record continues the conversation, so that only new records need
    /// to be read when the file has grown.
    pub(super) fn is_linear(&self) -> bool {
        self.is_linear
    }

    /// Adds the next record of the file.
    pub(super) fn add(
        &mut self,
        record: &Object<'_>,
        line: &JsonLine<'_>,
        report: &mut ReadReport,
    ) {
        let mut kind = record_kind(record);
        match &kind {
            RecordKind::Unknown(name) => report.add_unknown(name),
            RecordKind::Damaged(reason) => {
                return report.add_damage(line.number, &line.range, *reason);
            }
            RecordKind::Title(title) => self.title = Some(title.clone()),
            RecordKind::ParentSession(parent) => self.parent_session = Some(valid_key(parent)),
            RecordKind::Usage if self.is_counted_elsewhere(record) => kind = RecordKind::Other,
            _ => {}
        }
        let id = record.string("uuid").unwrap_or_default();
        let (parent, duplicates) = self.position(record, &id);
        if kind == RecordKind::Side {
            self.stand_for(&id, parent);
            return;
        }
        self.is_linear &= parent == self.leaf;
        self.leaf = parent;
        match kind.is_event() {
            true => self.push(record, line, &kind, &id, duplicates),
            false => self.stand_for(&id, parent),
        }
    }

    /// Returns the node that a record continues, and how many earlier records have its id: the
    /// parts of one message may be in several records.
    fn position(&mut self, record: &Object<'_>, id: &str) -> (u32, u32) {
        if let Some(same) = self.by_id.get(&short_hash(id.as_bytes())) {
            let duplicates = match (self.nodes.get(*same as usize), self.last) {
                (Some(node), _) => node.duplicates,
                // It stands for the last record of an earlier reading.
                (None, Some((last, duplicates))) if self.is_resumed && last == hash_name(id) => {
                    duplicates
                }
                (None, _) => 0,
            };
            return (*same, duplicates + 1);
        }
        if self.is_resumed && self.seen.may_have(hash_name(id)) {
            match self.last {
                Some((last, duplicates)) if last == hash_name(id) && self.leaf == NONE => {
                    return (NONE, duplicates + 1);
                }
                _ => self.is_linear = false,
            }
        }
        (self.parent(record), 0)
    }

    /// Returns the node that a record continues. It is earlier in the file.
    fn parent(&mut self, record: &Object<'_>) -> u32 {
        let Some(parent) = record.string("parentUuid") else {
            self.is_linear &= !self.is_resumed;
            return NONE;
        };
        if let Some(known) = self.by_id.get(&short_hash(parent.as_bytes())) {
            return *known;
        }
        if self.is_resumed {
            self.is_linear &= self.tail.contains(&hash_name(&parent));
            return NONE;
        }
        // A part of the file was lost. The conversation continues what is left of it, unless
        // it was rewound to there.
        match record.string("subtype").as_deref() {
            Some("rewind") => NONE,
            _ => self.leaf,
        }
    }

    /// Remembers that a record stands for a node.
    fn stand_for(&mut self, id: &str, node: u32) {
        self.by_id.insert(short_hash(id.as_bytes()), node);
        if node == self.leaf {
            push_limited(&mut self.tail, hash_name(id), MAX_TAIL);
        }
        self.seen.add(hash_name(id));
    }

    fn push(
        &mut self,
        record: &Object<'_>,
        line: &JsonLine<'_>,
        kind: &RecordKind,
        id: &str,
        duplicates: u32,
    ) {
        let at = self.len();
        let parent = self.leaf;
        let before = self.nodes.get(parent as usize);
        let last_message = before.map_or(NONE, |before| before.last_message);
        let is_message = *kind == RecordKind::Message;
        let keep = match kind {
            RecordKind::Summary => self.kept(record, last_message),
            _ => 0,
        };
        self.forest.push(&line.range, parent);
        self.nodes.push(QwenNode {
            duplicates,
            keep,
            last_message: if is_message { at } else { last_message },
            message_before: last_message,
            content: match record.get("message").filter(|_| is_message) {
                Some(message) => content_hash(message),
                None => [0; 16],
            },
        });
        self.leaf = at;
        self.tail.clear();
        self.last = Some((hash_name(id), duplicates));
        self.stand_for(id, at);
    }

    /// Returns how many messages before a summary are kept: those at the end of the list that
    /// replaces all of them.
    fn kept(&mut self, record: &Object<'_>, last_message: u32) -> u32 {
        // They may be among those that were read before.
        self.is_linear &= !self.is_resumed;
        let payload = record.object("systemPayload").unwrap_or_default();
        let list = payload.list("compressedHistory").unwrap_or_default();
        let (mut kept, mut at) = (0, last_message);
        for content in list.iter().rev() {
            match self.nodes.get(at as usize) {
                Some(node) if node.content == content_hash(content) => at = node.message_before,
                _ => break,
            }
            kept += 1;
        }
        kept
    }

    /// Returns whether a call was made by a sub-agent that has a file of its own, in which its
    /// usage is.
    fn is_counted_elsewhere(&mut self, record: &Object<'_>) -> bool {
        let payload = record.object("systemPayload").unwrap_or_default();
        let prompt = model_call(&payload).and_then(|call| call.string("prompt_id"));
        // `<session>#<agent>#<number>`; that of the session itself has no agent.
        let mut parts = prompt.as_deref().unwrap_or_default().split('#');
        let (session, agent) = (parts.next(), parts.next().unwrap_or_default());
        let is_plain = |name: &str| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        let Some(session) = session.filter(|session| is_plain(session) && is_plain(agent)) else {
            return false;
        };
        let file = format!("subagents/{session}/agent-{agent}.meta.json");
        let source = self.source;
        let exists = || source.read_above(1, &file).is_some();
        *self.own_files.entry(file.clone()).or_insert_with(exists)
    }

    /// Marks the records that lead to the last one.
    pub(super) fn close(&mut self) {
        self.forest.mark_main(self.leaf);
    }

    pub(super) fn is_on_main(&self, at: u32) -> bool {
        self.forest.is_on_main(at)
    }

    /// Returns the abandoned conversations.
    pub(super) fn branches(&self) -> Vec<Branch> {
        match self.is_linear {
            true => Vec::new(),
            false => self.forest.branches(),
        }
    }

    /// Sends the events of a node.
    pub(super) fn emit(
        &self,
        source: &Source,
        at: u32,
        emitter: &mut QwenEmitter<'_>,
    ) -> Result<()> {
        let text = source.line_at(self.forest.range(at))?;
        match (Object::parse(&text), self.nodes.get(at as usize)) {
            (Ok(record), Some(node)) => {
                emitter.emit(&record, &self.key(at, &record), node.keep.into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the key of a node.
    pub(super) fn key_at(&self, source: &Source, at: u32) -> Option<String> {
        self.nodes.get(at as usize)?;
        let text = source.line_at(self.forest.range(at)).ok()?;
        Some(self.key(at, &Object::parse(&text).ok()?))
    }

    fn key(&self, at: u32, record: &Object<'_>) -> String {
        let id = valid_key(record.string("uuid").unwrap_or_default());
        match self
            .nodes
            .get(at as usize)
            .map_or(0, |node| node.duplicates)
        {
            0 => id,
            duplicates => format!("{id}~{}", duplicates + 1),
        }
    }
}

/// Identifies a message in another place.
fn content_hash(message: &str) -> [u8; 16] {
    let message = Object::from_json(message).unwrap_or_default();
    let hash = |name| hash_without_blanks(message.get(name).unwrap_or_default());
    short_hash(&["role", "parts"].map(hash).concat())
}
