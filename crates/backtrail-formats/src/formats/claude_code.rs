//! Claude Code: a tree of JSON lines.
//!
//! A file is read twice: once for its tree, then for what is said in it. A file that
//! only grew, and whose conversation only went on, is read from where it ended; anything
//! else (somebody went back and took another way) takes the whole.

mod entry;
mod flat;
mod lent;
mod message;
mod names;
mod recognise;
mod split;
mod state;
mod teller;
mod tree;

#[cfg(test)]
mod cut_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod speed_tests;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use entry::{Entry, Kind, scan};
use flat::Flat;
use names::Naming;
use state::{Seen, State, TIPS};
use teller::{Teller, line_hash};
use tree::{MAIN, Node, Tree};

use super::pieces::key_of;
use crate::error::Result as Read;
use crate::format::{Format, ReadError, Resume, Support};
use crate::places::Environment;
use crate::reading::Reading;
use crate::source::Source;
use crate::told::{Origin, Sink, Thread, Told, Which};

/// Claude Code: a tree of JSON lines.
#[derive(Debug, Clone, Copy)]
pub struct ClaudeCode;

impl Format for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn support(&self) -> Support {
        Support {
            appends: true,
            branches: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Support::messages("1.0 to 2.1")
        }
    }

    fn places(&self, environment: &Environment) -> Vec<PathBuf> {
        names::places(environment)
    }

    fn is_session_name(&self, path: &Path) -> bool {
        names::is_session_name(path)
    }

    fn follows(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("agent-"))
    }

    fn joins(&self) -> bool {
        true
    }

    fn recognises(&self, source: &Source) -> bool {
        recognise::recognises(source)
    }

    fn read(
        &self,
        source: &Source,
        resume: Option<&Resume>,
        sink: &mut dyn Sink,
    ) -> Result<Told, ReadError> {
        if let Some(resume) = resume {
            return go_on(source, resume, sink);
        }
        let whole = match flat::flatten(source)? {
            Flat::No => return Ok(read_all(source, sink)?),
            Flat::Half => read_all(source, sink)?,
            Flat::Records(records) => Told {
                read_to: source.len(),
                ..read_all(&records, sink)?
            },
        };
        Ok(Told {
            state: None,
            ..whole
        })
    }
}

/// The first reading of a file.
struct Whole {
    tree: Tree,
    /// The first line with each uuid that something is told of, and what lines had the
    /// same one.
    told: HashMap<u64, u32>,
    repeats: HashMap<u64, HashSet<u64>>,
    session: Option<String>,
    copied: Option<String>,
}

impl Whole {
    fn add(
        &mut self,
        entry: &Entry,
        line: u64,
        place: std::ops::Range<u64>,
        source: &Source,
    ) -> Read<()> {
        if self.session.is_none() {
            self.session.clone_from(&entry.session);
        }
        if self.copied.is_none() && !entry.side {
            self.copied.clone_from(&entry.forked);
        }
        if !entry.kind.is_chained() && entry.kind != Kind::About {
            return Ok(());
        }
        let mut again = false;
        if let Some(uuid) = entry.uuid.filter(|_| entry.kind.is_told()) {
            if let Some(first) = self.told.get(&uuid) {
                let lines = self.repeats.entry(uuid).or_default();
                if let Some(first) = self
                    .tree
                    .nodes
                    .get(*first as usize)
                    .filter(|_| lines.is_empty())
                {
                    lines.insert(line_hash(first.at..first.end, source)?);
                }
                // The same line once more says nothing new.
                if !lines.insert(line_hash(place.clone(), source)?) {
                    return Ok(());
                }
                again = true;
            } else {
                let at = u32::try_from(self.tree.nodes.len()).unwrap_or(u32::MAX);
                self.told.insert(uuid, at);
            }
        }
        self.tree.add(entry, line, &place);
        if again {
            self.tree.mark_again();
        }
        Ok(())
    }
}

fn read_all(source: &Source, sink: &mut dyn Sink) -> Read<Told> {
    let naming = Naming::of(source);
    let mut reading = Reading::new(source, 0, 0);
    let mut whole = Whole {
        tree: Tree::default(),
        told: HashMap::new(),
        repeats: HashMap::new(),
        session: None,
        copied: None,
    };
    loop {
        let want = whole.session.is_none();
        let Some((mut entry, line, place)) = reading.next_as(|text| scan(text, want))? else {
            break;
        };
        count(&mut reading, &entry, line, &place);
        entry.side &= !naming.is_agent();
        whole.add(&entry, line, place, source)?;
    }
    whole.tree.settle();
    let named = naming.is_fixed() || whole.session.is_some();
    let session = naming.name(whole.session.as_deref(), source);
    sink.session(&session)?;
    let main = thread(&naming, &whole.session, whole.copied.as_deref(), source);
    let mut state = State::new(session.clone(), named, whole.copied);
    let mut teller = Teller::new(source, sink, main, state.memory.clone())?;
    if let Some(about) = naming.about(source) {
        teller.about(about)?;
    }
    teller.tell(0, &whole.tree.nodes, &whole.tree.branches)?;
    state.memory = teller.finish();
    state.set_tips(whole.tree.tips(TIPS));
    let uuids: Vec<u64> = whole.told.into_keys().collect();
    state.set_seen(Seen::of(&uuids));
    Ok(finish(reading, state))
}

/// Goes on where an earlier reading ended.
fn go_on(source: &Source, resume: &Resume, sink: &mut dyn Sink) -> Result<Told, ReadError> {
    if resume.read_to == 0 {
        // Nothing was read: not even the name, perhaps.
        return Err(ReadError::StartOver);
    }
    let mut state = State::from_json(&resume.state).ok_or(ReadError::StartOver)?;
    let from = begin(source, resume.read_to)?.ok_or(ReadError::StartOver)?;
    let naming = Naming::of(source);
    let mut reading = Reading::new(source, from, state.lines);
    let mut next = Next {
        tips: state.tips(),
        seen: state.take_seen(),
        uuids: HashSet::new(),
        nodes: Vec::new(),
    };
    loop {
        let want = !state.named;
        let Some((mut entry, line, place)) = reading.next_as(|text| scan(text, want))? else {
            break;
        };
        count(&mut reading, &entry, line, &place);
        entry.side &= !naming.is_agent();
        let renamed = entry.session.is_some() || (entry.forked.is_some() && state.copied.is_none());
        if renamed || next.add(&entry, line, &place).is_none() {
            return Err(ReadError::StartOver);
        }
    }
    sink.session(&state.session)?;
    let main = thread(
        &naming,
        &Some(state.session.clone()),
        state.copied.as_deref(),
        source,
    );
    let mut teller = Teller::new(source, sink, main, state.memory.clone())?;
    teller.tell(from, &next.nodes, &[])?;
    state.memory = teller.finish();
    state.set_tips(next.tips);
    state.set_seen(next.seen);
    Ok(finish(reading, state))
}

/// What came since the last reading.
struct Next {
    tips: tree::Tips,
    seen: Option<Seen>,
    uuids: HashSet<u64>,
    nodes: Vec<Node>,
}

impl Next {
    /// Adds a line; `None` where the whole tree is needed.
    fn add(&mut self, entry: &Entry, line: u64, place: &std::ops::Range<u64>) -> Option<()> {
        if !entry.kind.is_chained() && entry.kind != Kind::About {
            return Some(());
        }
        if let Some(uuid) = entry.uuid.filter(|_| entry.kind.is_told()) {
            let known = self.seen.as_ref().is_some_and(|seen| seen.contains(uuid));
            if known || self.tips.uuids.contains(&uuid) || !self.uuids.insert(uuid) {
                return None;
            }
            if let Some(seen) = &mut self.seen {
                seen.insert(uuid);
                if seen.is_full() {
                    // Read whole, there is room for more of them, as long as they fit.
                    if !seen.is_largest() {
                        return None;
                    }
                    self.seen = None;
                }
            }
        }
        match entry.kind.is_chained() && !entry.side {
            true => self.tips.push(entry, TIPS)?,
            false => self.tips.forget(entry.uuid),
        }
        let mut node = Node::new(entry, line, place);
        if node.is_read_again() {
            node.owner = MAIN;
            self.nodes.push(node);
        }
        Some(())
    }
}

/// Returns where reading goes on. `None` where a line that was told went on behind what
/// was an object then.
fn begin(source: &Source, read_to: u64) -> Read<Option<u64>> {
    let Some(before) = read_to.checked_sub(1) else {
        return Ok(Some(0));
    };
    let around = source.read_range(before..read_to + 2)?;
    Ok(match around.as_slice() {
        [b'\n', ..] | [_] => Some(read_to),
        [_, b'\n', ..] => Some(read_to + 1),
        [_, b'\r', b'\n'] => Some(read_to + 2),
        _ => None,
    })
}

/// Counts what is not known and what cannot be understood.
fn count(reading: &mut Reading<'_>, entry: &Entry, line: u64, place: &std::ops::Range<u64>) {
    if let Some(kind) = &entry.unknown {
        reading.unknown(kind);
    }
    if entry.kind == Kind::Broken {
        let reason = "it says that it is a message, and has none";
        reading.damaged_at(line, place, reason);
    }
}

fn thread(
    naming: &Naming,
    session: &Option<String>,
    copied: Option<&str>,
    source: &Source,
) -> Thread {
    let origin = match (naming.origin(session.as_deref(), source), copied) {
        (Some(origin), _) => origin,
        (None, Some(copied)) => Origin::Copy {
            session: key_of(copied),
        },
        (None, None) => Origin::Start,
    };
    Thread {
        which: Which::Main,
        origin,
    }
}

fn finish(reading: Reading<'_>, mut state: State) -> Told {
    let told = reading.finish(state.session.clone(), None);
    state.lines = told.lines;
    Told {
        state: state.to_json(),
        ..told
    }
}
