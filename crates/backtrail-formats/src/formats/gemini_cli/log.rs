//! The lines of a file, as they revise each other: where the content of each message is, and
//! in which order the messages come.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::super::keys::{
    SeenIds, copied_from, hash_json, hash_name, hash_without_blanks, short_hash,
};
use super::messages::{
    Emitter, MessageKind, is_results, is_session_context, message_kind, message_text,
};
use super::read_details;
use crate::error::Result;
use crate::event::{Details, Event, ReadReport, SummaryEvent};
use crate::json::Object;
use crate::json_lines::JsonLine;
use crate::source::Source;

/// The hash of an id or of a content.
type Hash = [u8; 16];

/// Where a message is: a line, or an element of the list in a line.
#[derive(Debug, Clone)]
struct MessagePlace {
    line: Range<u64>,
    element: Option<u32>,
}

/// One step of the conversation.
#[derive(Debug)]
enum LogStep {
    /// The message with this number.
    Message(u32),
    /// The conversation is rewound to a step, or to its beginning.
    Rewind(Option<u32>),
    /// A summary replaces what came before.
    Summary {
        line: Range<u64>,
        /// The elements of the list there that are the summary.
        elements: Vec<u32>,
        /// The messages that are kept.
        kept: Vec<u32>,
    },
}

/// A message that is in the conversation now.
#[derive(Debug, Clone)]
struct CurrentMessage {
    id: Hash,
    /// Identifies the same message under another id.
    content: Hash,
    /// The step that added it.
    step: u32,
    /// Its number; `None` for a part of a summary.
    message: Option<u32>,
    /// Whether the model sees it; it does not see the agent's notices.
    in_context: bool,
    /// Whether it contains only tool results.
    is_results: bool,
}

/// The lines of a file.
#[derive(Debug, Default)]
pub(super) struct Log {
    places: Vec<MessagePlace>,
    steps: Vec<LogStep>,
    current: Vec<CurrentMessage>,
    by_id: HashMap<Hash, usize>,
    /// Whether earlier lines were read before and are not known here.
    is_resumed: bool,
    /// Whether a line revises lines that are not known here.
    pub(super) revises: bool,
    /// Whether the file names its session.
    pub(super) is_named: bool,
    pub(super) seen: SeenIds,
    pub(super) session: Option<String>,
    /// The session that the file is a copy of, and the first one of several copies.
    pub(super) copied_from: Option<(String, String)>,
    pub(super) is_agent: bool,
    /// Whether there is more than what the agent itself writes at the start of a session.
    has_conversation: bool,
    /// Whether the agent was started again and has not listed its messages yet.
    is_restarted: bool,
    pub(super) details: Details,
}

impl Log {
    /// Starts at the beginning, or after lines with these ids that were read before.
    pub(super) fn new(seen: SeenIds, is_resumed: bool) -> Self {
        Self {
            is_resumed,
            is_named: is_resumed,
            has_conversation: is_resumed,
            seen,
            ..Self::default()
        }
    }

    /// Returns whether the file contains only the context that the agent writes at the start of
    /// a session. A resume leaves such a file beside the one with the conversation.
    pub(super) fn is_stub(&self) -> bool {
        !self.has_conversation && !self.places.is_empty()
    }

    /// Adds the next line.
    pub(super) fn add(&mut self, line: &JsonLine<'_>, report: &mut ReadReport) {
        let object = line.object();
        if let Some(id) = object.string("$rewindTo") {
            self.revises |= self.is_resumed;
            self.rewind(hash_id(&id));
        } else if object.get("id").is_some() && object.get("type").is_some() {
            self.add_message(&object, line, report);
        } else if let Some(set) = object.object("$set") {
            self.set(&set, line);
        } else if object.string("sessionId").is_some() {
            self.set(&object, line);
        } else {
            report.add_unknown(object.fields().next().map_or("{}", |(name, _)| name));
        }
    }

    fn add_message(&mut self, object: &Object<'_>, line: &JsonLine<'_>, report: &mut ReadReport) {
        let Some(id) = object.string("id") else {
            let reason = "message whose id is not a string";
            return report.add_damage(line.number, &line.range, reason);
        };
        let kind = message_kind(object);
        if let MessageKind::Unknown(name) = kind {
            return report.add_unknown(&format!("message: {name}"));
        }
        let place = MessagePlace {
            line: line.range.clone(),
            element: None,
        };
        let known = self.by_id.get(&hash_id(&id)).copied();
        match known.and_then(|at| self.current.get_mut(at)) {
            // It is written again with more content, and keeps its position.
            Some(known) => {
                if let Some(message) = known.message {
                    known.content = hash_content(object);
                    self.places[message as usize] = place;
                }
            }
            None => self.push_message(&id, object, &kind, place),
        }
    }

    fn push_message(
        &mut self,
        id: &str,
        object: &Object<'_>,
        kind: &MessageKind,
        place: MessagePlace,
    ) {
        self.revises |= self.is_resumed && self.seen.may_have(hash_name(id));
        self.seen.add(hash_name(id));
        self.has_conversation = self.has_conversation || !is_session_context(object);
        let message = self.places.len() as u32;
        self.places.push(place);
        self.steps.push(LogStep::Message(message));
        self.push(CurrentMessage {
            id: hash_id(id),
            content: hash_content(object),
            step: self.steps.len() as u32 - 1,
            message: Some(message),
            in_context: !matches!(kind, MessageKind::Notice),
            is_results: is_results(object),
        });
    }

    fn push(&mut self, message: CurrentMessage) {
        self.by_id.insert(message.id, self.current.len());
        self.current.push(message);
    }

    /// Rewinds to before a message. An unknown one removes everything, as in the agent itself.
    fn rewind(&mut self, id: Hash) {
        let at = self.by_id.get(&id).copied().unwrap_or(0);
        self.truncate(at);
    }

    fn truncate(&mut self, at: usize) {
        if at >= self.current.len() {
            return;
        }
        for removed in self.current.drain(at..) {
            self.by_id.remove(&removed.id);
        }
        let last = self.current.last().map(|last| last.step);
        self.steps.push(LogStep::Rewind(last));
    }

    fn set(&mut self, set: &Object<'_>, line: &JsonLine<'_>) {
        read_details(set, &mut self.details);
        if self.session.is_none() {
            self.session = set.non_blank("sessionId").map(Cow::into_owned);
            self.is_named |= self.session.is_some();
            self.copied_from = copied_from(set);
        }
        // A sub-agent must be known as one from the beginning.
        self.revises |= self.is_resumed && set.has("kind");
        self.is_agent |= set.string("kind").as_deref() == Some("subagent");
        let is_header = set.get("projectHash").is_some();
        self.is_restarted |= is_header && self.has_conversation;
        if let Some(messages) = set.list("messages") {
            // The header at the beginning of a file mostly has an empty list.
            if !is_header || !messages.is_empty() {
                self.replace(&messages, line);
            }
        }
    }

    /// Replaces all messages by a list. The agent writes one when it summarises, when it
    /// rewinds, and when it has rebuilt its list and nothing changed, as after a resume.
    /// Tool results are not compared: some lists repeat them under the ids of their calls.
    /// A start that resumes the session lists its context first, and then everything.
    fn replace(&mut self, messages: &[&str], line: &JsonLine<'_>) {
        self.revises |= self.is_resumed;
        let all = ListedMessage::read(messages);
        let is_start = all.iter().all(|one| is_session_context(&one.object));
        if std::mem::take(&mut self.is_restarted) && is_start {
            return;
        }
        let (list, results): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| !one.is_results);
        // Such a list does not contain notices.
        self.current.retain(|message| message.in_context);
        self.index();
        let mut known = MessageIndex::new(&self.current, &self.by_id, false);
        let matched: Vec<Option<usize>> = list.iter().map(|one| known.find(one)).collect();
        let compared = self.current.iter().enumerate();
        let compared = compared.filter(|(_, message)| !message.is_results);
        let compared: Vec<usize> = compared.map(|(n, _)| n).collect();
        let in_order = matched.iter().flatten().is_sorted();
        let still_there = matched.iter().flatten().count();
        let beginning = compared.iter().copied().take(list.len());
        let is_beginning = matched.iter().copied().eq(beginning.map(Some));
        if still_there == compared.len() && in_order {
            self.extend(&list, results, &matched, line);
        } else if list.is_empty() {
            self.truncate(0);
        } else if is_beginning {
            self.truncate(compared[list.len()]);
        } else {
            self.summarise(&list, &matched, &compared, line);
        }
    }

    fn index(&mut self) {
        let ids = self.current.iter().enumerate();
        self.by_id = ids.map(|(n, message)| (message.id, n)).collect();
    }

    /// Adds the new messages of a list that contains all current ones.
    fn extend(
        &mut self,
        list: &[ListedMessage<'_>],
        mut results: Vec<ListedMessage<'_>>,
        matched: &[Option<usize>],
        line: &JsonLine<'_>,
    ) {
        let mut known = MessageIndex::new(&self.current, &self.by_id, true);
        results.retain(|one| known.find(one).is_none());
        for (one, known) in list.iter().zip(matched) {
            if let Some(known) = known {
                self.current[*known].id = hash_id(&one.id);
                self.seen.add(hash_name(&one.id));
            }
        }
        self.index();
        let last = matched.iter().rposition(Option::is_some);
        let from = last.map_or(0, |last| list[last].element + 1);
        let mut new: Vec<_> = list.iter().chain(&results).collect();
        new.retain(|one| one.element >= from);
        new.sort_by_key(|one| one.element);
        for one in new {
            let place = MessagePlace {
                line: line.range.clone(),
                element: Some(one.element),
            };
            if !self.by_id.contains_key(&hash_id(&one.id)) {
                let kind = message_kind(&one.object);
                self.push_message(&one.id, &one.object, &kind, place);
            }
        }
    }

    fn summarise(
        &mut self,
        list: &[ListedMessage<'_>],
        matched: &[Option<usize>],
        compared: &[usize],
        line: &JsonLine<'_>,
    ) {
        self.has_conversation = true;
        let context = std::mem::take(&mut self.current);
        let backwards = compared.iter().rev().zip(matched.iter().rev());
        let kept = backwards.take_while(|(n, known)| **known == Some(**n));
        let first_kept = kept.last().map_or(context.len(), |(n, _)| *n);
        let new = list
            .iter()
            .zip(matched)
            .filter(|(_, known)| known.is_none());
        let new: Vec<&ListedMessage<'_>> = new.map(|(one, _)| one).collect();
        let is_user = |one: &&&ListedMessage<'_>| message_kind(&one.object) == MessageKind::User;
        let mut elements: Vec<u32> = new.iter().filter(is_user).map(|one| one.element).collect();
        if elements.is_empty() {
            elements = new.iter().map(|one| one.element).collect();
        }
        let kept = &context[first_kept..];
        self.steps.push(LogStep::Summary {
            line: line.range.clone(),
            elements,
            kept: kept.iter().filter_map(|message| message.message).collect(),
        });
        self.by_id.clear();
        let step = self.steps.len() as u32 - 1;
        for (one, known) in list.iter().zip(matched) {
            self.seen.add(hash_name(&one.id));
            self.push(CurrentMessage {
                id: hash_id(&one.id),
                content: one.content,
                step,
                message: known.and_then(|known| context[known].message),
                in_context: true,
                is_results: false,
            });
        }
    }

    /// Sends the events that the lines amount to.
    pub(super) fn emit(&self, source: &Source, emitter: &mut Emitter<'_>) -> Result<()> {
        let target = |step: &LogStep| match step {
            LogStep::Rewind(target) => *target,
            _ => None,
        };
        let targets: HashSet<u32> = self.steps.iter().filter_map(target).collect();
        let mut keys = HashMap::new();
        let mut counts = vec![0u64; self.places.len()];
        let mut lists = LastList::default();
        for (n, step) in (0..).zip(&self.steps) {
            match step {
                LogStep::Message(message) => {
                    let place = &self.places[*message as usize];
                    if let Some(text) = lists.message(source, place)
                        && let Ok(record) = Object::parse(&text)
                    {
                        counts[*message as usize] = emitter.emit(&record)?;
                    }
                }
                LogStep::Rewind(target) => {
                    let key = target.and_then(|target| keys.get(&target).cloned().flatten());
                    emitter.sink.rewind_to(key.as_deref())?;
                    emitter.last_key = key;
                }
                LogStep::Summary {
                    line,
                    elements,
                    kept,
                } => {
                    let keep = kept.iter().map(|kept| counts[*kept as usize]).sum();
                    let event = lists.summary(source, line, elements, keep, emitter);
                    emitter.last_key = Some(event.key().to_owned());
                    emitter.sink.event(event)?;
                }
            }
            if targets.contains(&n) {
                keys.insert(n, emitter.last_key.clone());
            }
        }
        Ok(())
    }
}

/// A message in a list that replaces all messages.
#[derive(Debug)]
struct ListedMessage<'a> {
    id: String,
    content: Hash,
    element: u32,
    /// Whether it contains only tool results, which are sent with their calls.
    is_results: bool,
    object: Object<'a>,
}

impl<'a> ListedMessage<'a> {
    fn read(messages: &[&'a str]) -> Vec<Self> {
        let one = |(element, json): (u32, &&'a str)| {
            let object = Object::from_json(json)?;
            let id = object.string("id")?.into_owned();
            let kind = message_kind(&object);
            matches!(kind, MessageKind::User | MessageKind::Model).then(|| Self {
                content: hash_content(&object),
                element,
                id,
                is_results: is_results(&object),
                object,
            })
        };
        (0..).zip(messages).filter_map(one).collect()
    }
}

/// Finds messages of the conversation by id or content, each once.
struct MessageIndex<'a> {
    by_id: &'a HashMap<Hash, usize>,
    by_content: HashMap<Hash, Vec<usize>>,
    found: Vec<bool>,
}

impl<'a> MessageIndex<'a> {
    /// Finds those that are tool results, or those that are not.
    fn new(context: &[CurrentMessage], by_id: &'a HashMap<Hash, usize>, is_results: bool) -> Self {
        let mut by_content: HashMap<Hash, Vec<usize>> = HashMap::new();
        for (n, message) in context.iter().enumerate().rev() {
            by_content.entry(message.content).or_default().push(n);
        }
        Self {
            by_id,
            by_content,
            found: context
                .iter()
                .map(|message| message.is_results != is_results)
                .collect(),
        }
    }

    fn find(&mut self, one: &ListedMessage<'_>) -> Option<usize> {
        let by_id = self.by_id.get(&hash_id(&one.id)).copied();
        let found = match by_id.filter(|n| !self.found[*n]) {
            Some(n) => Some(n),
            None => {
                let same = self.by_content.get_mut(&one.content)?;
                std::iter::from_fn(|| same.pop()).find(|n| !self.found[*n])
            }
        };
        if let Some(n) = found {
            self.found[n] = true;
        }
        found
    }
}

/// The list of the line that was read last, since its messages follow one another.
#[derive(Debug, Default)]
struct LastList {
    line: Range<u64>,
    list: Vec<String>,
}

impl LastList {
    fn load(&mut self, source: &Source, line: &Range<u64>) {
        if self.line == *line {
            return;
        }
        self.line = line.clone();
        let text = source.line_at(line.clone()).unwrap_or_default();
        let object = Object::parse(&text).unwrap_or_default();
        let list = match object.object("$set") {
            Some(set) => set.list("messages"),
            None => object.list("messages"),
        };
        let list = list.unwrap_or_default().into_iter();
        self.list = list.map(str::to_owned).collect();
    }

    /// Returns the JSON of a message.
    fn message(&mut self, source: &Source, place: &MessagePlace) -> Option<String> {
        let Some(element) = place.element else {
            return source.line_at(place.line.clone()).ok();
        };
        self.load(source, &place.line);
        self.list.get(element as usize).cloned()
    }

    fn summary(
        &mut self,
        source: &Source,
        line: &Range<u64>,
        elements: &[u32],
        keep: u64,
        emitter: &mut Emitter<'_>,
    ) -> Event {
        self.load(source, line);
        let mut texts = Vec::new();
        let mut at = None;
        let mut hashed = String::new();
        for element in elements {
            let Some(json) = self.list.get(*element as usize) else {
                continue;
            };
            hashed.push_str(&hash_json(json, 32));
            let Some(object) = Object::from_json(json) else {
                continue;
            };
            at = at.or_else(|| object.time("timestamp"));
            texts.push(message_text(&object));
        }
        let key = emitter.key("summary", &hashed);
        Event::Summary(SummaryEvent {
            at,
            keep,
            ..SummaryEvent::new(key, texts.join("\n\n"))
        })
    }
}

fn hash_id(id: &str) -> Hash {
    short_hash(id.as_bytes())
}

/// Returns a hash of a message's content, which identifies it under another id.
fn hash_content(object: &Object<'_>) -> Hash {
    let hash = |name| hash_without_blanks(object.get(name).unwrap_or_default());
    short_hash(&["type", "content", "parts"].map(hash).concat())
}
