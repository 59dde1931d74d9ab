//! The lines of a file, as they revise each other: where each message stands that is
//! told, and in which order.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use backtrail::Json;

use super::super::pieces::{Seen, hash_of, object_at, squeezed};
use super::read_about;
use super::says::{Kind, Teller, is_results, kind, notes};
use crate::error::Result;
use crate::json::Object;
use crate::reading::{Found, Reading};
use crate::source::Source;
use crate::told::{About, Item, Sink, Summarised};

type Id = [u8; 16];

/// Where a message is written: a line, or an element of the list in one.
#[derive(Debug, Clone)]
struct Place {
    line: Range<u64>,
    element: Option<u32>,
}

/// What happens, in order.
#[derive(Debug)]
enum Step {
    /// A message is said: the one of this number.
    Say(u32),
    /// The conversation goes back behind a step, or to its beginning.
    Back(Option<u32>),
    /// A summary takes the place of what came before.
    Sum {
        line: Range<u64>,
        /// Which elements of the list there are the summary.
        elements: Vec<u32>,
        /// The messages that stay.
        kept: Vec<u32>,
    },
}

/// A message that is in the conversation at present.
#[derive(Debug, Clone)]
struct Live {
    id: Id,
    /// The same message under another id is known by what it says.
    content: Id,
    /// The step that told it.
    step: u32,
    /// Its number; `None` for a part of a summary.
    message: Option<u32>,
    /// Whether the model sees it: what the agent tells the person is no part of that.
    in_context: bool,
}

/// The lines of a file.
#[derive(Debug)]
pub(super) struct Log {
    places: Vec<Place>,
    steps: Vec<Step>,
    live: Vec<Live>,
    by_id: HashMap<Id, usize>,
    /// Whether the lines are read behind others that are not known here.
    behind: bool,
    /// Whether a line says something of lines before those that are known here.
    pub(super) revises: bool,
    /// Whether the file has said of which session it is.
    pub(super) is_named: bool,
    pub(super) seen: Seen,
    pub(super) session: Option<String>,
    pub(super) is_agent: bool,
    pub(super) about: About,
}

impl Log {
    pub(super) fn new(seen: Seen) -> Self {
        Self {
            places: Vec::new(),
            steps: Vec::new(),
            live: Vec::new(),
            by_id: HashMap::new(),
            behind: false,
            revises: false,
            is_named: false,
            seen,
            session: None,
            is_agent: false,
            about: About::default(),
        }
    }

    /// Begins behind lines that were read before.
    pub(super) fn behind(seen: Seen) -> Self {
        Self {
            behind: true,
            is_named: true,
            ..Self::new(seen)
        }
    }

    /// Adds the next line.
    pub(super) fn add(&mut self, found: &Found, reading: &mut Reading<'_>) {
        let object = &found.object;
        if let Some(id) = object.string("$rewindTo") {
            self.revises |= self.behind;
            self.rewind(short(&id));
        } else if object.get("id").is_some() && object.get("type").is_some() {
            self.add_message(found, reading);
        } else if let Some(set) = object.object("$set") {
            self.set(&set, found);
        } else if object.string("sessionId").is_some() {
            self.set(object, found);
        } else {
            reading.unknown(object.fields().next().map_or("{}", |(name, _)| name));
        }
    }

    fn add_message(&mut self, found: &Found, reading: &mut Reading<'_>) {
        let Some(id) = found.object.string("id") else {
            return reading.damaged(found, "a message whose id is no string");
        };
        let kind = kind(&found.object);
        if let Kind::Unknown(name) = kind {
            return reading.unknown(&format!("message: {name}"));
        }
        let place = Place {
            line: found.place.clone(),
            element: None,
        };
        let known = self.by_id.get(&short(&id)).copied();
        match known.and_then(|at| self.live.get_mut(at)) {
            // It is said again, with more: where it stands is where it stood.
            Some(live) => {
                if let Some(message) = live.message {
                    live.content = content(&found.object);
                    self.places[message as usize] = place;
                }
            }
            None => self.say(&id, &found.object, kind, place),
        }
    }

    fn say(&mut self, id: &str, object: &Object, kind: Kind, place: Place) {
        self.revises |= self.behind && self.seen.may_have(id);
        self.seen.add(id);
        let message = self.places.len() as u32;
        self.places.push(place);
        self.steps.push(Step::Say(message));
        self.push(Live {
            id: short(id),
            content: content(object),
            step: self.steps.len() as u32 - 1,
            message: Some(message),
            in_context: !matches!(kind, Kind::Notice),
        });
    }

    fn push(&mut self, live: Live) {
        self.by_id.insert(live.id, self.live.len());
        self.live.push(live);
    }

    /// Goes back to before a message. One that is not known takes everything away, as it
    /// does for the agent.
    fn rewind(&mut self, id: Id) {
        let at = self.by_id.get(&id).copied().unwrap_or(0);
        self.cut(at);
    }

    fn cut(&mut self, at: usize) {
        if at >= self.live.len() {
            return;
        }
        for live in self.live.drain(at..) {
            self.by_id.remove(&live.id);
        }
        let behind = self.live.last().map(|live| live.step);
        self.steps.push(Step::Back(behind));
    }

    fn set(&mut self, set: &Object, found: &Found) {
        read_about(set, &mut self.about);
        if self.session.is_none() {
            let session = set.string("sessionId").filter(|id| !id.is_empty());
            self.session = session.map(|id| id.into_owned());
            self.is_named |= self.session.is_some();
        }
        // Whose sub-agent it is must be known from the beginning.
        self.revises |= self.behind && set.has("kind");
        self.is_agent |= set.string("kind").as_deref() == Some("subagent");
        if let Some(messages) = set.list("messages") {
            // The list of a header that begins a file is mostly empty.
            if set.get("projectHash").is_none() || !messages.is_empty() {
                self.replace(&messages, found);
            }
        }
    }

    /// Takes a list of messages in the place of all. The agent writes one when it sums up,
    /// when it goes back, and when it has made its list anew and nothing changed.
    fn replace(&mut self, messages: &[Json], found: &Found) {
        self.revises |= self.behind;
        let all = Listed::read(messages);
        let (list, results): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| !one.is_results);
        // What the agent tells the person is no part of such a list.
        self.live.retain(|live| live.in_context);
        self.index();
        let mut known = Known::of(&self.live);
        let matched: Vec<Option<usize>> = list.iter().map(|one| known.find(one)).collect();
        let in_order = matched.iter().flatten().is_sorted();
        let still_there = matched.iter().flatten().count();
        let is_beginning = matched.iter().copied().eq((0..list.len()).map(Some));
        if still_there == self.live.len() && in_order {
            self.go_on_with(&list, &results, &matched, found);
        } else if is_beginning {
            self.cut(list.len());
        } else {
            self.sum_up(&list, &matched, found);
        }
    }

    fn index(&mut self) {
        let ids = self.live.iter().enumerate();
        self.by_id = ids.map(|(n, live)| (live.id, n)).collect();
    }

    /// What was there is still there: what is new comes behind it.
    fn go_on_with(
        &mut self,
        list: &[Listed],
        results: &[Listed],
        matched: &[Option<usize>],
        found: &Found,
    ) {
        for (one, known) in list.iter().zip(matched) {
            if let Some(known) = known {
                self.live[*known].id = short(&one.id);
                self.seen.add(&one.id);
            }
        }
        self.index();
        let last = matched.iter().rposition(Option::is_some);
        let behind = last.map_or(0, |last| list[last].element + 1);
        let mut new: Vec<_> = list.iter().chain(results).collect();
        new.retain(|one| one.element >= behind);
        new.sort_by_key(|one| one.element);
        for one in new {
            let place = Place {
                line: found.place.clone(),
                element: Some(one.element),
            };
            if !self.by_id.contains_key(&short(&one.id)) {
                self.say(&one.id, &one.object, kind(&one.object), place);
            }
        }
    }

    fn sum_up(&mut self, list: &[Listed], matched: &[Option<usize>], found: &Found) {
        let context = std::mem::take(&mut self.live);
        let backwards = (0..context.len()).rev().zip(matched.iter().rev());
        let kept = backwards
            .take_while(|(n, known)| **known == Some(*n))
            .count();
        let new = list
            .iter()
            .zip(matched)
            .filter(|(_, known)| known.is_none());
        let new: Vec<&Listed> = new.map(|(one, _)| one).collect();
        let of_user = |one: &&&Listed| kind(&one.object) == Kind::User;
        let mut elements: Vec<u32> = new.iter().filter(of_user).map(|one| one.element).collect();
        if elements.is_empty() {
            elements = new.iter().map(|one| one.element).collect();
        }
        let stay = &context[context.len() - kept..];
        self.steps.push(Step::Sum {
            line: found.place.clone(),
            elements,
            kept: stay.iter().filter_map(|live| live.message).collect(),
        });
        self.by_id.clear();
        let step = self.steps.len() as u32 - 1;
        for (one, known) in list.iter().zip(matched) {
            self.seen.add(&one.id);
            self.push(Live {
                id: short(&one.id),
                content: one.content,
                step,
                message: known.and_then(|known| context[known].message),
                in_context: true,
            });
        }
    }

    /// Tells what the lines come to.
    pub(super) fn tell(
        &self,
        source: &Source,
        teller: &mut Teller<'_>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let targets: HashSet<u32> = self.steps.iter().filter_map(Step::target).collect();
        let mut keys = HashMap::new();
        let mut counts = vec![0u64; self.places.len()];
        let mut lists = Lists::default();
        for (n, step) in (0..).zip(&self.steps) {
            match step {
                Step::Say(message) => {
                    let place = &self.places[*message as usize];
                    if let Some(record) = lists.record(source, place) {
                        counts[*message as usize] = teller.tell(&record, sink)?;
                    }
                }
                Step::Back(target) => {
                    let key = target.and_then(|target| keys.get(&target).cloned().flatten());
                    sink.back_to(key.as_deref())?;
                    teller.last = key;
                }
                Step::Sum {
                    line,
                    elements,
                    kept,
                } => {
                    let keep = kept.iter().map(|kept| counts[*kept as usize]).sum();
                    let item = lists.summary(source, line, elements, keep, teller);
                    teller.last = Some(item.key().to_owned());
                    sink.item(item)?;
                }
            }
            if targets.contains(&n) {
                keys.insert(n, teller.last.clone());
            }
        }
        Ok(())
    }
}

impl Step {
    fn target(&self) -> Option<u32> {
        match self {
            Self::Back(target) => *target,
            _ => None,
        }
    }
}

/// A message in a list that replaces all.
#[derive(Debug)]
struct Listed {
    id: String,
    content: Id,
    element: u32,
    /// Whether it is what tools gave back: that is told with their calls.
    is_results: bool,
    object: Object,
}

impl Listed {
    fn read(messages: &[Json]) -> Vec<Self> {
        let one = |(element, json): (u32, &Json)| {
            let object = Object::of(json)?;
            let id = object.string("id")?.into_owned();
            matches!(kind(&object), Kind::User | Kind::Model).then(|| Self {
                content: content(&object),
                element,
                id,
                is_results: is_results(&object),
                object,
            })
        };
        (0..).zip(messages).filter_map(one).collect()
    }
}

/// The messages of the conversation, to be found by id or by what they say, each once.
struct Known {
    by_id: HashMap<Id, usize>,
    by_content: HashMap<Id, Vec<usize>>,
    found: Vec<bool>,
}

impl Known {
    fn of(context: &[Live]) -> Self {
        let mut by_content: HashMap<Id, Vec<usize>> = HashMap::new();
        for (n, live) in context.iter().enumerate().rev() {
            by_content.entry(live.content).or_default().push(n);
        }
        let ids = context.iter().enumerate();
        Self {
            by_id: ids.map(|(n, live)| (live.id, n)).collect(),
            by_content,
            found: vec![false; context.len()],
        }
    }

    fn find(&mut self, one: &Listed) -> Option<usize> {
        let by_id = self.by_id.get(&short(&one.id)).copied();
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

/// The list of the line that was read last: its messages come one after the other.
#[derive(Debug, Default)]
struct Lists {
    line: Range<u64>,
    list: Vec<Json>,
}

impl Lists {
    fn load(&mut self, source: &Source, line: &Range<u64>) {
        if self.line == *line {
            return;
        }
        self.line = line.clone();
        let object = object_at(source, line.clone());
        let list = object.and_then(|object| match object.object("$set") {
            Some(set) => set.list("messages"),
            None => object.list("messages"),
        });
        self.list = list.unwrap_or_default();
    }

    fn record(&mut self, source: &Source, place: &Place) -> Option<Object> {
        let Some(element) = place.element else {
            return object_at(source, place.line.clone());
        };
        self.load(source, &place.line);
        Object::of(self.list.get(element as usize)?)
    }

    fn summary(
        &mut self,
        source: &Source,
        line: &Range<u64>,
        elements: &[u32],
        keep: u64,
        teller: &mut Teller<'_>,
    ) -> Item {
        self.load(source, line);
        let mut texts = Vec::new();
        let mut at = None;
        let mut hashed = String::new();
        for element in elements {
            let Some(json) = self.list.get(*element as usize) else {
                continue;
            };
            hashed.push_str(&hash_of(json.as_str(), 32));
            let Some(object) = Object::of(json) else {
                continue;
            };
            at = at.or_else(|| object.time("timestamp"));
            texts.push(notes(&object));
        }
        Item::Summarised(Summarised {
            covers: None,
            key: teller.key("summary", &hashed),
            at,
            summary: texts.join("\n\n"),
            keep,
            model: None,
            usage: None,
        })
    }
}

fn short(id: &str) -> Id {
    first_half(blake3::hash(id.as_bytes()).as_bytes())
}

fn first_half(hash: &[u8; 32]) -> Id {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    half
}

/// Returns what a message says, by which it is known under another id.
fn content(object: &Object) -> Id {
    let value = |name: &str| object.get(name).map_or("", Json::as_str);
    let mut hasher = blake3::Hasher::new();
    for name in ["type", "content", "parts"] {
        hasher.update(&squeezed(value(name)));
    }
    first_half(hasher.finalize().as_bytes())
}
