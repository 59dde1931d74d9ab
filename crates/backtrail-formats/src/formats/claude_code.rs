//! Claude Code: a tree of JSON lines.
//!
//! A file is read twice: first for its tree, then for its events. If a file has grown and its
//! conversation only continued, the new lines are enough; if it has a new branch, the whole
//! file is read again.

mod cost;
mod emitter;
mod entry;
mod message;
mod names;
mod recognise;
mod sent;
mod state;
mod tree;

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod cut_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod sent_tests;
#[cfg(test)]
mod speed_tests;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use emitter::{Emitter, line_hash};
use entry::{Entry, LineKind, scan};
use names::Naming;
use recognise::Content;
use state::ClaudeState;
use tree::{MAIN, Node, Tips, Tree};

pub use sent::{SentRequest, WhichRequest, sent_request};

use super::keys::{SeenIds, valid_key};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{EventSink, Origin, ReadReport};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json_lines::JsonLines;
use crate::source::Source;

/// Claude Code: a tree of JSON lines.
#[derive(Debug, Clone, Copy)]
pub struct ClaudeCode;

impl Format for ClaudeCode {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["claude"],
            packages: &["@anthropic-ai/claude-code"],
            appends: true,
            branches: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new("claude-code", "Claude Code", "1.0 to 2.1")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        names::directories(environment)
    }

    fn turn_end(&self) -> Option<fn(&str) -> bool> {
        Some(message::ends_turn)
    }

    fn is_session_file(&self, path: &Path) -> bool {
        names::is_session_file(path)
    }

    fn is_sub_agent_file(&self, path: &Path) -> bool {
        names::is_sub_agent_file(path)
    }

    fn joins_files(&self) -> bool {
        true
    }

    fn recognises(&self, source: &Source) -> bool {
        recognise::recognises(source)
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        let content = Content::read(source)?;
        let pass = FirstPass::read(content.source())?;
        Ok(pass.open(content))
    }

    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        // If nothing was read, perhaps not even the name is known.
        match ClaudeState::from_json(&resume.state) {
            Some(state) if resume.read_to > 0 => resume_lines(source, resume.read_to, state),
            _ => Ok(None),
        }
    }
}

/// The first pass through a file, for its tree.
struct FirstPass {
    report: ReadReport,
    tree: Tree,
    /// The first line with each uuid of an event, and the hashes of all lines with uuids that
    /// are repeated.
    first_lines: HashMap<u64, u32>,
    repeated: HashMap<u64, HashSet<u64>>,
    /// Where the last line starts whose uuid is repeated.
    last_repeated: Option<u64>,
    seen: SeenIds,
    session: Option<String>,
    copied: Option<String>,
}

impl FirstPass {
    fn read(source: &Source) -> Result<Self> {
        let naming = Naming::for_source(source);
        let (mut lines, mut report) = JsonLines::new(source);
        let mut pass = Self {
            report: ReadReport::default(),
            tree: Tree::default(),
            first_lines: HashMap::new(),
            repeated: HashMap::new(),
            last_repeated: None,
            seen: SeenIds::default(),
            session: None,
            copied: None,
        };
        loop {
            let want_session = pass.session.is_none();
            let scanned = lines.next_parsed(&mut report, |text| scan(text, want_session))?;
            let Some((mut entry, number, range)) = scanned else {
                break;
            };
            count(&mut report, &entry, number, &range);
            entry.belongs_to(&naming);
            pass.add(&entry, number, range, source)?;
        }
        pass.report = report;
        pass.tree.assign();
        Ok(pass)
    }

    fn add(
        &mut self,
        entry: &Entry,
        number: u64,
        range: Range<u64>,
        source: &Source,
    ) -> Result<()> {
        if self.session.is_none() {
            self.session.clone_from(&entry.session);
        }
        if self.copied.is_none() && !entry.is_side {
            self.copied.clone_from(&entry.forked);
        }
        if !entry.kind.is_needed() {
            return Ok(());
        }
        let mut is_repeated = false;
        if let Some(uuid) = entry.uuid.filter(|_| entry.kind.is_event()) {
            if let Some(first) = self.first_lines.get(&uuid) {
                self.last_repeated = Some(range.start);
                let lines = self.repeated.entry(uuid).or_default();
                let first = self.tree.nodes.get(*first as usize);
                if let Some(first) = first.filter(|_| lines.is_empty()) {
                    lines.insert(line_hash(first.at..first.end, source)?);
                }
                // An identical line adds nothing.
                if !lines.insert(line_hash(range.clone(), source)?) {
                    return Ok(());
                }
                is_repeated = true;
            } else {
                let at = u32::try_from(self.tree.nodes.len()).unwrap_or(u32::MAX);
                self.first_lines.insert(uuid, at);
                self.seen.add(uuid);
            }
        }
        self.tree.add(entry, number, &range);
        if is_repeated {
            self.tree.mark_repeated();
        }
        Ok(())
    }

    fn open(self, content: Content<'_>) -> OpenFile<'_> {
        let source = content.source();
        let naming = Naming::for_source(source);
        let is_named = naming.is_fixed() || self.session.is_some();
        let session = naming.name(self.session.as_deref(), source);
        let copied = self.copied.as_deref();
        let origin = origin(&naming, self.session.as_deref(), copied, source);
        let state = ClaudeState::new(session.clone(), is_named, self.copied.clone());
        OpenFile::new(session, origin.clone(), move |sink| {
            self.send(&content, &naming, origin, state, sink)
        })
    }

    /// Sends the events, in a second pass through the file.
    fn send(
        self,
        content: &Content<'_>,
        naming: &Naming,
        origin: Origin,
        mut state: ClaudeState,
        sink: &mut dyn EventSink,
    ) -> Result<ReadReport> {
        let (source, mut report) = (content.source(), self.report);
        let mut emitter = Emitter::new(source, sink, origin, state.memory.clone());
        if let Some(details) = naming.details(source) {
            emitter.details(details)?;
        }
        emitter.emit(0, &self.tree.nodes, &self.tree.branches)?;
        match content {
            Content::Lines(_) => {
                state.memory = emitter.finish();
                let cost = &mut state.memory.cost;
                cost.needs_whole |= self.last_repeated.is_some_and(|at| at >= cost.from);
                state.tips = self.tree.tips();
                state.seen = self.seen;
                state.lines = report.lines;
                // The name of a file that no line names comes from its first line, which may
                // not be complete.
                if state.named || !report.unfinished {
                    report.state = state.to_json();
                }
            }
            Content::Value(_) => {}
            Content::SplitValue(_, len) => report.read_to = *len,
        }
        Ok(report)
    }
}

/// Opens what was appended.
fn resume_lines(
    source: &Source,
    from: u64,
    mut state: ClaudeState,
) -> Result<Option<OpenFile<'_>>> {
    let naming = Naming::for_source(source);
    let (mut lines, mut report) = JsonLines::resume(source, from, state.lines);
    let mut appended = Appended {
        tips: std::mem::take(&mut state.tips),
        seen: std::mem::take(&mut state.seen),
        uuids: HashSet::new(),
        nodes: Vec::new(),
    };
    let want_session = !state.named;
    while let Some((mut entry, number, range)) =
        lines.next_parsed(&mut report, |text| scan(text, want_session))?
    {
        count(&mut report, &entry, number, &range);
        entry.belongs_to(&naming);
        let is_renamed =
            entry.session.is_some() || (entry.forked.is_some() && state.copied.is_none());
        let needs_whole = match entry.kind {
            LineKind::Cost => state.memory.cost.needs_whole,
            // Whether the message that it names is in the file is known by all of it.
            _ => entry.leaf.is_some() || entry.uuid.is_some_and(|uuid| state.memory.has_leaf(uuid)),
        };
        if is_renamed || needs_whole || appended.add(&entry, number, &range).is_none() {
            return Ok(None);
        }
    }
    let session = state.session.clone();
    let origin = origin(&naming, Some(&session), state.copied.as_deref(), source);
    Ok(Some(OpenFile::new(session, origin.clone(), move |sink| {
        let mut emitter = Emitter::new(source, sink, origin, state.memory.clone());
        emitter.emit(from, &appended.nodes, &[])?;
        state.memory = emitter.finish();
        state.tips = appended.tips;
        state.seen = appended.seen;
        state.lines = report.lines;
        report.state = state.to_json();
        Ok(report)
    })))
}

/// The lines that were appended since the last reading.
struct Appended {
    tips: Tips,
    seen: SeenIds,
    uuids: HashSet<u64>,
    nodes: Vec<Node>,
}

impl Appended {
    /// Adds a line; `None` if that needs the whole tree.
    fn add(&mut self, entry: &Entry, number: u64, range: &Range<u64>) -> Option<()> {
        if !entry.kind.is_needed() {
            return Some(());
        }
        if let Some(uuid) = entry.uuid.filter(|_| entry.kind.is_event()) {
            let known = self.seen.may_have(uuid) || self.tips.uuids.contains(&uuid);
            if known || !self.uuids.insert(uuid) {
                return None;
            }
            self.seen.add(uuid);
        }
        match entry.kind.is_in_tree() && !entry.is_side {
            true => self.tips.push(entry)?,
            false => self.tips.remove(entry.uuid),
        }
        let mut node = Node::new(entry, number, range);
        if node.is_read_again() {
            node.owner = MAIN;
            self.nodes.push(node);
        }
        Some(())
    }
}

/// Counts unknown and damaged lines.
fn count(report: &mut ReadReport, entry: &Entry, number: u64, range: &Range<u64>) {
    if let Some(kind) = &entry.unknown {
        report.add_unknown(kind);
    }
    if entry.kind == LineKind::Broken {
        let reason = "message record without a message";
        report.add_damage(number, range, reason);
    }
}

fn origin(naming: &Naming, session: Option<&str>, copied: Option<&str>, source: &Source) -> Origin {
    match (naming.origin(session, source), copied) {
        (Some(origin), _) => origin,
        (None, Some(copied)) => Origin::Copy {
            session: valid_key(copied),
        },
        (None, None) => Origin::Start,
    }
}
