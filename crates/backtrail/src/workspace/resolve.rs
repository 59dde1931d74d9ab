//! Finds the checkpoint that a point names.

use super::Workspace;
use super::checkpoint::{Checkpoint, CheckpointReason, SessionPlace};
use super::point::{Named, Point};
use super::timeline::Timeline;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::ids::SessionId;
use crate::snapshot::Snapshot;

/// The shortest prefix of an id that is accepted.
const SHORTEST_PREFIX: usize = 4;
/// How many points an error names.
const NAMED: usize = 5;

/// The moment that a point names: a checkpoint, and a place in a conversation.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) checkpoint: Checkpoint,
    /// Its last record, if it belongs to a session.
    pub(crate) session: Option<SessionPlace>,
    /// Whether the point is a record of that session, and not a moment of the workspace.
    pub(crate) is_record: bool,
}

impl Moment {
    fn of(checkpoint: Checkpoint) -> Self {
        Self {
            session: checkpoint.session().cloned(),
            checkpoint,
            is_record: false,
        }
    }
}

impl Workspace {
    /// Opens the snapshot of the newest checkpoint at or before a point.
    ///
    /// # Errors
    ///
    /// Fails as [`resolve`](Self::resolve) and [`Checkpoint::snapshot`] do.
    pub fn snapshot(&self, point: &Point) -> Result<Snapshot> {
        self.resolve(point)?.snapshot()
    }

    /// Finds the newest checkpoint at or before a point.
    ///
    /// # Errors
    ///
    /// Fails with [`Ambiguous`](ErrorKind::Ambiguous) if the point matches several
    /// things, and with [`NotFound`](ErrorKind::NotFound) if it matches none;
    /// [`Error::points`] names the candidates or the nearest ones.
    pub fn resolve(&self, point: &Point) -> Result<Checkpoint> {
        self.locate(point).map(|moment| moment.checkpoint)
    }

    /// Finds the newest checkpoint at or before a point, and the place in the conversation.
    pub(crate) fn locate(&self, point: &Point) -> Result<Moment> {
        match &point.0 {
            Named::Last => {
                let last = self.last_checkpoint()?.ok_or_else(|| self.no_checkpoint());
                last.map(Moment::of)
            }
            Named::TurnsBack(count) => self.before_turns(*count).map(Moment::of),
            Named::Record(reference, seq) => {
                let session = self.session_meant(reference.as_deref())?;
                self.at_record(&session, *seq)
            }
            Named::Checkpoint(id) => {
                let found = self.checkpoint_by_id(*id)?.ok_or_else(|| {
                    let what = format!("{} has no checkpoint {id}", self.root().display());
                    Error::new(ErrorKind::NotFound, what)
                });
                found.map(Moment::of)
            }
            Named::Label(label) => {
                let found = self.find_back(|checkpoint| checkpoint.label() == Some(label))?;
                found.map(Moment::of).ok_or_else(|| self.no_such(label))
            }
            Named::Text(text) => self.by_text(text),
        }
    }

    /// Finds the place in a conversation that a point names, if it names one.
    pub(crate) fn locate_chat(&self, point: &Point) -> Result<Option<SessionPlace>> {
        match &point.0 {
            // The state of the files is not needed.
            Named::Record(reference, seq) => {
                let session = self.session_meant(reference.as_deref())?;
                self.store().record_place(&session, *seq).map(Some)
            }
            _ => self.locate(point).map(|moment| moment.session),
        }
    }

    /// Finds the checkpoint that the last `count` turns and runs began with.
    fn before_turns(&self, count: u64) -> Result<Checkpoint> {
        let timeline = Timeline::read(self)?;
        let spans = timeline.spans_counted();
        let mut checkpoints = timeline.checkpoints;
        let wanted = usize::try_from(count)
            .ok()
            .and_then(|count| spans.len().checked_sub(count));
        match wanted {
            Some(n) => Ok(checkpoints.swap_remove(spans[n].start)),
            None => {
                let what = match spans.len() {
                    0 => "no turns or runs here yet".to_owned(),
                    1 => "there is only one turn or run to go back to: last~1".to_owned(),
                    n => format!(
                        "there are only {n} turns and runs to go back to; the oldest is last~{n}"
                    ),
                };
                Err(Error::new(ErrorKind::NotFound, what).at_path(self.root()))
            }
        }
    }

    fn session_meant(&self, reference: Option<&str>) -> Result<SessionId> {
        match reference {
            Some(reference) => self.store().resolve_in(reference, self.root()),
            None => self.latest_session()?.ok_or_else(|| {
                let what = format!("no sessions in {} yet", self.root().display());
                Error::new(ErrorKind::NotFound, what)
            }),
        }
    }

    /// Finds the newest checkpoint at or before a record of a session. Checkpoints on branches
    /// that the session has left do not count.
    fn at_record(&self, session: &SessionId, seq: u64) -> Result<Moment> {
        let place = self.store().record_place(session, seq)?;
        let line = self.store().read_session(session)?.log.line()?;
        let fits = |checkpoint: &Checkpoint| {
            checkpoint.session().is_some_and(|place| {
                // The record of a run comes after its last checkpoint.
                let since = place.seq + u64::from(*checkpoint.reason() == CheckpointReason::RunEnd);
                since <= seq && line.holds(&place.id, place.trail, place.seq)
            })
        };
        let mut found: Option<Checkpoint> = None;
        for checkpoint in self.checkpoints_back()? {
            let checkpoint = checkpoint?;
            if checkpoint.is_late() || !fits(&checkpoint) {
                continue;
            }
            // Calls that one message asks for begin one after the other: the first one began
            // with the files as they were when the message came.
            let is_call = *checkpoint.reason() == CheckpointReason::ToolStart;
            let is_same_place = |later: &Checkpoint| later.session() == checkpoint.session();
            if found
                .as_ref()
                .is_some_and(|later| !is_call || !is_same_place(later))
            {
                break;
            }
            found = Some(checkpoint);
            if !is_call {
                break;
            }
        }
        let moment = found.map(|checkpoint| Moment {
            checkpoint,
            session: Some(place),
            is_record: true,
        });
        moment.ok_or_else(|| {
            let what = format!(
                "no checkpoint in {} was made at or before record {seq} of session {session}",
                self.root().display()
            );
            Error::new(ErrorKind::NotFound, what)
        })
    }

    /// Finds the matches of a text: checkpoints and records by their ids, or a label.
    fn by_text(&self, text: &str) -> Result<Moment> {
        let mut found: Vec<Checkpoint> = Vec::new();
        let mut sessions: Vec<SessionId> = Vec::new();
        let mut is_labelled = false;
        let is_prefix = is_prefix(text);
        for checkpoint in self.checkpoints_back()? {
            let checkpoint = checkpoint?;
            if let Some(place) = checkpoint.session()
                && !sessions.contains(&place.id)
            {
                sessions.push(place.id.clone());
            }
            if is_prefix && checkpoint.id().to_string().starts_with(text) {
                found.push(checkpoint);
            } else if !is_labelled && checkpoint.label() == Some(text) {
                is_labelled = true;
                found.push(checkpoint);
            }
        }
        let mut records = Vec::new();
        for session in sessions.into_iter().filter(|_| is_prefix) {
            // An unreadable session must not hide the others.
            let reader = self.store().read_session(&session);
            let by_id = reader.and_then(|reader| reader.log.records_by_id(text));
            for (seq, id) in by_id.unwrap_or_default() {
                records.push((session.clone(), seq, id));
            }
        }
        let ids = found.iter().map(|checkpoint| checkpoint.id().to_string());
        let ids: Vec<String> = ids
            .chain(records.iter().map(|(.., id)| id.clone()))
            .collect();
        match (found.pop(), records.first()) {
            _ if ids.len() > 1 => {
                let what = format!(
                    "{} matches {} checkpoints or records",
                    quoted(text),
                    ids.len()
                );
                Err(Error::new(ErrorKind::Ambiguous, what).with_points(ids))
            }
            (Some(checkpoint), _) => Ok(Moment::of(checkpoint)),
            (None, Some((session, seq, _))) => self.at_record(session, *seq),
            (None, None) => Err(self.no_such(text)),
        }
    }

    fn no_such(&self, text: &str) -> Error {
        let what = match is_prefix(text) {
            true => format!("no checkpoint, record or label matches {}", quoted(text)),
            false => format!("no checkpoint or label matches {}", quoted(text)),
        };
        let error = Error::new(ErrorKind::NotFound, what);
        error.with_points(self.nearest_points(text))
    }

    /// Returns the labels and ids with the longest common beginning with a text.
    fn nearest_points(&self, text: &str) -> Vec<String> {
        let mut near: Vec<(usize, String)> = Vec::new();
        for checkpoint in self.checkpoints_back().into_iter().flatten().flatten() {
            let id = checkpoint.id().prefix(8);
            let label = checkpoint.record.label.map(|label| (label, 1));
            // A match of one or two digits of an id is chance.
            for (name, least) in label.into_iter().chain([(id, 3)]) {
                let shared = text.bytes().zip(name.bytes()).take_while(|(a, b)| a == b);
                let shared = shared.count();
                if shared >= least && !near.iter().any(|(_, known)| *known == name) {
                    near.push((shared, name));
                }
            }
        }
        near.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
        near.into_iter().take(NAMED).map(|(_, name)| name).collect()
    }
}

/// Returns whether a text may be the beginning of an id.
fn is_prefix(text: &str) -> bool {
    text.len() >= SHORTEST_PREFIX
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'))
}
