//! Who wrote a line, and when.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use serde::Serialize;

use super::imported::{ImportedEdit, Window, edits_in, lines_of};
use super::states::States;
use super::walk::{Source, SourceKind};
use crate::error::Result;
use crate::hex::lossy_path;
use crate::ids::{CheckpointId, SessionId};
use crate::rewind::authors::{Author, AuthorKind, authors_of_states};
use crate::session::SessionInfo;
use crate::store::Store;
use crate::time::Timestamp;
use crate::workspace::{Checkpoint, CheckpointReason, Description, SessionPlace};

/// How many possible authors are named where states are missing.
const MAX_NAMED: usize = 8;

/// Where lines come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LineOrigin {
    /// How they came into the file.
    pub kind: OriginKind,
    /// Who wrote them. If there are several, any of them may have; none if that is not known.
    pub by: Vec<LineAuthor>,
    /// When they were seen for the first time or, in an imported session, written.
    pub at: Timestamp,
    /// The checkpoint that has them first; `None` if none has them yet.
    pub checkpoint: Option<CheckpointId>,
    /// The last checkpoint before, if files of checkpoints in between are missing: the lines came
    /// at some time since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<CheckpointId>,
    /// How many more may have written them.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The name that the file had then, if it was another one.
    #[serde(
        serialize_with = "optional_path",
        skip_serializing_if = "Option::is_none"
    )]
    pub path: Option<PathBuf>,
}

/// How lines came into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OriginKind {
    /// They were written between two checkpoints.
    Written,
    /// They were there when Backtrail first saved the file.
    Before,
    /// An edit in an imported session has exactly these lines. No checkpoint proves it.
    Imported,
    /// Backtrail restored them from a state that is missing.
    Restored,
}

/// Who wrote lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum LineAuthor {
    /// The user: no turn or run was in progress.
    You,
    /// A turn of a session.
    Turn {
        /// The session, if it is here.
        session: Option<SessionId>,
        /// The agent, if known.
        agent: Option<String>,
        /// The agent's own id of a session that is not here.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent_session: Option<String>,
        /// The record of the prompt.
        seq: Option<u64>,
        /// The text of the prompt; `None` if it cannot be read or the session was deleted.
        prompt: Option<String>,
        /// The tool that wrote them, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// A command.
    Run {
        /// Its session, if it has one.
        session: Option<SessionId>,
        /// The command, if known.
        command: Option<String>,
    },
    /// A session that asked for a checkpoint.
    Session {
        /// The session.
        session: SessionId,
        /// The agent, if known.
        agent: Option<String>,
    },
}

impl LineAuthor {
    /// Returns the session, if there is one.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::You => None,
            Self::Turn { session, .. } | Self::Run { session, .. } => session.as_ref(),
            Self::Session { session, .. } => Some(session),
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn optional_path<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => lossy_path(path, serializer),
        None => serializer.serialize_none(),
    }
}

/// The origins of all lines.
pub(super) struct Origins<'a> {
    states: &'a States,
    names: &'a [PathBuf],
    origins: Vec<LineOrigin>,
    /// The origin of each line.
    places: Vec<usize>,
    /// Where each origin was found.
    sources: Vec<Source>,
}

impl<'a> Origins<'a> {
    /// Finds out who wrote the lines that come from some sources.
    pub(super) fn new(states: &'a States, names: &'a [PathBuf], sources: &[Source]) -> Self {
        let distinct: BTreeSet<Source> = sources.iter().copied().collect();
        let distinct: Vec<Source> = distinct.into_iter().collect();
        let authors = Authors::of(states, &distinct);
        let mut people = People::new(states.workspace.store());
        let origin = |source: &Source| origin_of(states, names, *source, &authors, &mut people);
        let origins = distinct.iter().map(origin).collect();
        let place = |source: &Source| distinct.partition_point(|it| it < source);
        Self {
            states,
            names,
            origins,
            places: sources.iter().map(place).collect(),
            sources: distinct,
        }
    }

    /// Credits edits of imported sessions with the lines that no turn or run is known to have
    /// written.
    pub(super) fn credit_imported(&mut self, lines: &[&[u8]]) -> Result<()> {
        let is_open = |origin: &LineOrigin| match origin.kind {
            OriginKind::Before | OriginKind::Restored => true,
            OriginKind::Written => origin.by == [LineAuthor::You],
            OriginKind::Imported => false,
        };
        let open: Vec<usize> = (0..self.origins.len())
            .filter(|n| is_open(&self.origins[*n]))
            .collect();
        if open.is_empty() || lines.is_empty() {
            return Ok(());
        }
        let edits = edits_in(&self.states.workspace, self.names)?;
        for n in open.into_iter().filter(|_| !edits.is_empty()) {
            let window = self.window(self.sources[n]);
            let own = self
                .places
                .iter()
                .enumerate()
                .filter(|(_, place)| **place == n);
            let own: Vec<usize> = own.map(|(line, _)| line).collect();
            let texts: Vec<&[u8]> = own.iter().map(|line| lines[*line]).collect();
            for (edit, credited) in lines_of(&edits, window, &texts) {
                self.origins.push(imported_origin(edit, &self.origins[n]));
                let place = self.origins.len() - 1;
                for line in credited {
                    self.places[own[line]] = place;
                }
            }
        }
        Ok(())
    }

    /// Returns when the lines of a source may have been written.
    fn window(&self, source: Source) -> Window {
        Window {
            after: source.since.map(|since| self.states.at(since)),
            until: self.states.at(source.state),
        }
    }

    /// Returns the origins that lines have, and the place among them of each line's.
    pub(super) fn finish(self) -> (Vec<LineOrigin>, Vec<usize>) {
        let mut known: HashMap<usize, usize> = HashMap::new();
        let mut used = Vec::new();
        let places = self.places.iter().map(|place| {
            *known.entry(*place).or_insert_with(|| {
                used.push(self.origins[*place].clone());
                used.len() - 1
            })
        });
        let places = places.collect();
        (used, places)
    }
}

fn imported_origin(edit: &ImportedEdit, over: &LineOrigin) -> LineOrigin {
    LineOrigin {
        kind: OriginKind::Imported,
        by: vec![LineAuthor::Turn {
            session: Some(edit.session.clone()),
            agent: edit.agent.clone(),
            agent_session: None,
            seq: edit.prompt.as_ref().map(|(seq, _)| *seq),
            prompt: edit.prompt.as_ref().map(|(_, text)| text.clone()),
            tool: Some(edit.tool.clone()),
        }],
        at: edit.at.unwrap_or(over.at),
        since: None,
        more: 0,
        ..over.clone()
    }
}

fn origin_of(
    states: &States,
    names: &[PathBuf],
    source: Source,
    authors: &Authors,
    people: &mut People<'_>,
) -> LineOrigin {
    let checkpoint = states.checkpoint(source.state);
    let mut by = authors.between(source);
    let more = by.len().saturating_sub(MAX_NAMED);
    by.truncate(MAX_NAMED);
    let is_gap = source.since.is_some_and(|since| since + 1 < source.state);
    let since = source.since.filter(|_| is_gap);
    LineOrigin {
        kind: match source.kind {
            SourceKind::First => OriginKind::Before,
            SourceKind::Written => OriginKind::Written,
            SourceKind::Restored => OriginKind::Restored,
        },
        by: by
            .iter()
            .map(|author| people.describe(states, author, checkpoint))
            .collect(),
        at: states.at(source.state),
        checkpoint: checkpoint.map(Checkpoint::id),
        since: since
            .and_then(|since| states.checkpoint(since))
            .map(Checkpoint::id),
        more,
        path: (source.path > 0).then(|| names[source.path].clone()),
    }
}

/// The authors of what changed before each of the states that matter.
struct Authors(BTreeMap<usize, Vec<Author>>);

impl Authors {
    fn of(states: &States, sources: &[Source]) -> Self {
        let is_written = |source: &&Source| source.kind == SourceKind::Written;
        let wanted = sources.iter().filter(is_written);
        let wanted = wanted.flat_map(|it| it.since.map_or(it.state, |since| since + 1)..=it.state);
        let wanted: BTreeSet<usize> = wanted.collect();
        let wanted: Vec<usize> = wanted.into_iter().collect();
        let authors = authors_of_states(&states.workspace, &states.timeline, &wanted);
        Self(wanted.into_iter().zip(authors).collect())
    }

    /// Returns who may have written what came from a source, each once.
    fn between(&self, source: Source) -> Vec<Author> {
        let mut all: Vec<Author> = Vec::new();
        if source.kind != SourceKind::Written {
            return all;
        }
        let since = source.since.map_or(source.state, |since| since + 1);
        for author in self.0.range(since..=source.state).flat_map(|(_, by)| by) {
            let is_same = |known: &Author| known.kind == author.kind && known.start == author.start;
            if !all.iter().any(is_same) {
                all.push(author.clone());
            }
        }
        all
    }
}

/// What is known of sessions, each read once.
pub(super) struct People<'a> {
    store: &'a Store,
    infos: HashMap<SessionId, Option<SessionInfo>>,
    prompts: HashMap<(SessionId, u32, u64), Option<String>>,
}

impl<'a> People<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self {
            store,
            infos: HashMap::new(),
            prompts: HashMap::new(),
        }
    }

    /// Describes the author of what was first seen in a state.
    pub(super) fn describe(
        &mut self,
        states: &States,
        author: &Author,
        seen: Option<&Checkpoint>,
    ) -> LineAuthor {
        let start = author.start.and_then(|id| states.timeline.index_of(id));
        match (start.and_then(|n| states.checkpoint(n)), &author.kind) {
            (Some(start), _) => self.describe_start(start, seen),
            (None, AuthorKind::Session(place)) => LineAuthor::Session {
                agent: self.agent(&place.id),
                session: place.id.clone(),
            },
            (None, _) => LineAuthor::You,
        }
    }

    /// Describes the turn or run that began with a checkpoint.
    pub(super) fn describe_start(
        &mut self,
        start: &Checkpoint,
        seen: Option<&Checkpoint>,
    ) -> LineAuthor {
        let session = start.session().map(|place| place.id.clone());
        if *start.reason() == CheckpointReason::RunStart {
            let command = start.record.about.clone();
            return LineAuthor::Run { session, command };
        }
        let agent = start.agent();
        let prompt = Description::of_start(start).prompt;
        LineAuthor::Turn {
            agent: match (agent, &session) {
                (Some(agent), _) => Some(agent.name.clone()),
                (None, Some(session)) => self.agent(session),
                (None, None) => None,
            },
            agent_session: match session {
                Some(_) => None,
                None => agent.map(|agent| agent.session.clone()),
            },
            seq: prompt.as_ref().map(|place| place.seq),
            prompt: prompt.and_then(|place| self.prompt(&place)),
            tool: seen.and_then(|seen| tool_of(seen, start)),
            session,
        }
    }

    fn agent(&mut self, id: &SessionId) -> Option<String> {
        let store = self.store;
        let info = self.infos.entry(id.clone()).or_insert_with(|| {
            let reader = store.read_session(id);
            reader.and_then(|reader| reader.info()).ok()
        });
        info.as_ref()?.agent.clone()
    }

    fn prompt(&mut self, place: &SessionPlace) -> Option<String> {
        let key = (place.id.clone(), place.trail, place.seq);
        let store = self.store;
        let read = || {
            let reader = store.read_session(&place.id).ok()?;
            let record = reader.record_at(place.trail, place.seq).ok()??;
            Some(record.message().ok()??.text().into())
        };
        self.prompts.entry(key).or_insert_with(read).clone()
    }
}

/// Returns the tool whose call ended with a checkpoint of a turn.
fn tool_of(seen: &Checkpoint, turn: &Checkpoint) -> Option<String> {
    let is_call = *seen.reason() == CheckpointReason::ToolEnd;
    let is_own = seen.begun_by() == Some(turn.id());
    seen.agent().filter(|_| is_call && is_own)?.tool.clone()
}
