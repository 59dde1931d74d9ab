//! The expected state of a session, kept as a text editor keeps a document: the current
//! line, and whole earlier lines for undo and redo.
//!
//! Nothing here knows of trails, openers or positions.

use std::rc::Rc;

use backtrail::{ErrorKind, SessionId, StepKind, Steps, Timestamp};

use super::boundary;

/// The line of history, every record once.
pub(crate) type Line = Vec<Rc<Entry>>;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) what: What,
    /// Identifies it among all others of its kind.
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Message(Talk),
    Note,
    Compaction(Cover),
    /// The session that a call started, once known.
    Spawned(Option<SessionId>),
}

/// A message, as far as it matters for a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Talk {
    pub(crate) role: String,
    /// Whether it has a text block.
    pub(crate) speaks: bool,
    pub(crate) calls: Vec<String>,
    pub(crate) results: Vec<String>,
}

/// The content of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cover {
    pub(crate) count: u64,
    pub(crate) removed: u64,
    pub(crate) keeps_from: u64,
}

/// A step that was made, with the line before it.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) kind: StepKind,
    /// The time; `None` until the engine reports it.
    pub(crate) at: Option<Timestamp>,
    before: Line,
}

/// A step that was undone, with the line until then.
#[derive(Debug, Clone)]
pub(crate) struct Undone {
    pub(crate) done: Done,
    ahead: Line,
}

/// The metadata of a session, which is not affected by undo.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Known {
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) pinned: bool,
}

/// The origin of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Nowhere,
    /// The parent, the branch name, and the last record in common.
    Fork(String, Option<String>, Option<u64>),
    /// The caller, the record of the call, and the call.
    Call(SessionId, u64, String),
}

#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) line: Line,
    pub(crate) undo: Vec<Done>,
    pub(crate) redo: Vec<Undone>,
    pub(crate) known: Known,
    pub(crate) origin: Origin,
}

/// A deed in a session.
#[derive(Debug, Clone)]
pub(crate) enum Deed {
    Say {
        talk: Talk,
        word: String,
        expect: Option<u64>,
    },
    Batch(Vec<(Talk, String)>),
    /// Sets a title, or tags, or the pin.
    Note(Change),
    Rewind(u64),
    Undo,
    Redo,
    Compact {
        keep: u64,
        summary: String,
    },
    Fork {
        at: Option<u64>,
        name: Option<String>,
    },
    Spawn(String),
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Title(String),
    Tags(Vec<String>),
    Pinned(bool),
}

/// The expected answer of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Seqs(Vec<u64>),
    Moved(Option<Went>),
    Compacted {
        seq: u64,
        cover: Cover,
        kept: u64,
    },
    /// A session is created.
    Begun,
    Refused(ErrorKind),
}

/// A move: from where, to where, and by which step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Went {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) kind: StepKind,
}

impl Model {
    pub(crate) fn new(known: Known, origin: Origin) -> Self {
        Self {
            line: Line::new(),
            undo: Vec::new(),
            redo: Vec::new(),
            known,
            origin,
        }
    }

    pub(crate) fn last(&self) -> u64 {
        self.line.last().map_or(0, |entry| entry.seq)
    }

    pub(crate) fn entry(&self, seq: u64) -> Option<&Rc<Entry>> {
        self.line.iter().find(|entry| entry.seq == seq)
    }

    /// Performs a deed, and returns the expected answer and the session that it creates,
    /// if any. A refused deed changes nothing.
    pub(crate) fn act(&mut self, id: &SessionId, deed: &Deed) -> (Answer, Option<Self>) {
        let answer = match deed {
            Deed::Say { talk, word, expect } => self.say_if(talk, word, *expect),
            Deed::Batch(all) => Answer::Seqs(all.iter().map(|(t, w)| self.say(t, w)).collect()),
            Deed::Note(change) => Answer::Seqs(vec![self.note(change)]),
            Deed::Rewind(to) => self.rewind(*to),
            Deed::Undo => Answer::Moved(self.undo()),
            Deed::Redo => Answer::Moved(self.redo()),
            Deed::Compact { keep, summary } => self.compact(*keep, summary),
            Deed::Fork { at, name } => return self.fork(id, *at, name.as_deref()),
            Deed::Spawn(call) => return self.spawn(id, call),
        };
        (answer, None)
    }

    fn push(&mut self, what: What, text: &str) -> u64 {
        let seq = self.last() + 1;
        let text = text.to_owned();
        self.line.push(Rc::new(Entry { seq, what, text }));
        seq
    }

    pub(crate) fn say(&mut self, talk: &Talk, word: &str) -> u64 {
        self.redo.clear();
        self.push(What::Message(talk.clone()), word)
    }

    fn say_if(&mut self, talk: &Talk, word: &str, expect: Option<u64>) -> Answer {
        let spoken = |entry: &Rc<Entry>| !matches!(entry.what, What::Note | What::Spawned(_));
        if let Some(expect) = expect {
            let said_since = self.line.iter().any(|e| e.seq > expect && spoken(e));
            if said_since || expect > self.last() {
                return Answer::Refused(ErrorKind::Conflict);
            }
        }
        Answer::Seqs(vec![self.say(talk, word)])
    }

    fn note(&mut self, change: &Change) -> u64 {
        match change {
            Change::Title(title) => {
                self.known.title = (!title.is_empty()).then(|| title.clone());
            }
            Change::Tags(tags) => self.known.tags.clone_from(tags),
            Change::Pinned(pinned) => self.known.pinned = *pinned,
        }
        let text = self.known.as_text();
        self.push(What::Note, &text)
    }

    fn rewind(&mut self, to: u64) -> Answer {
        let from = self.last();
        if to == from {
            return Answer::Moved(None);
        }
        if to != 0 && self.entry(to).is_none() {
            return Answer::Refused(ErrorKind::NotFound);
        }
        let mut stays = self.line.clone();
        stays.retain(|entry| entry.seq <= to);
        let before = std::mem::replace(&mut self.line, stays);
        let kind = StepKind::Rewind { from, to };
        self.did(kind.clone(), before);
        Answer::Moved(Some(Went { from, to, kind }))
    }

    /// Records a new step, which drops the undone ones.
    fn did(&mut self, kind: StepKind, before: Line) {
        self.redo.clear();
        self.undo.push(Done {
            kind,
            at: None,
            before,
        });
    }

    fn undo(&mut self) -> Option<Went> {
        let done = self.undo.pop()?;
        let from = self.last();
        let kind = done.kind.clone();
        let ahead = std::mem::replace(&mut self.line, done.before.clone());
        self.redo.push(Undone { done, ahead });
        let to = self.last();
        Some(Went { from, to, kind })
    }

    fn redo(&mut self) -> Option<Went> {
        let Undone { done, ahead } = self.redo.pop()?;
        let from = self.last();
        let kind = done.kind.clone();
        self.line = ahead;
        self.undo.push(done);
        let to = self.last();
        Some(Went { from, to, kind })
    }

    fn compact(&mut self, keep: u64, summary: &str) -> Answer {
        let before = self.line.clone();
        let seq = self.last() + 1;
        let (cover, kept) = boundary::cover(&self.line, keep, seq);
        self.push(What::Compaction(cover), summary);
        let kind = StepKind::Compaction {
            seq,
            count: cover.count,
            removed_message_count: cover.removed,
        };
        self.did(kind, before);
        Answer::Compacted { seq, cover, kept }
    }

    fn fork(&self, id: &SessionId, at: Option<u64>, name: Option<&str>) -> (Answer, Option<Self>) {
        let at = at.unwrap_or(self.last());
        if at != 0 && self.entry(at).is_none() {
            return (Answer::Refused(ErrorKind::NotFound), None);
        }
        let known = Known {
            pinned: false,
            ..self.known.clone()
        };
        let name = name.map(str::trim).filter(|name| !name.is_empty());
        let origin = Origin::Fork(id.to_string(), name.map(str::to_owned), Some(at));
        let mut child = Self::new(known, origin);
        child.line.clone_from(&self.line);
        child.line.retain(|entry| entry.seq <= at);
        (Answer::Begun, Some(child))
    }

    fn spawn(&mut self, id: &SessionId, call: &str) -> (Answer, Option<Self>) {
        let calls = |entry: &&Rc<Entry>| match &entry.what {
            What::Message(talk) => talk.calls.iter().any(|made| made == call),
            _ => false,
        };
        let Some(seq) = self.line.iter().rfind(calls).map(|entry| entry.seq) else {
            return (Answer::Refused(ErrorKind::NotFound), None);
        };
        let child = Self::new(
            Known::default(),
            Origin::Call(id.clone(), seq, call.to_owned()),
        );
        self.push(What::Spawned(None), &format!("{seq} {call}"));
        (Answer::Begun, Some(child))
    }

    /// Learns when the newest step was made, which only the engine knows.
    pub(crate) fn take_times(&mut self, steps: &Steps) {
        if let (Some(done), Some(step)) = (self.undo.last_mut(), steps.to_undo.first()) {
            done.at = done.at.or(step.at);
        }
    }

    /// Learns which session the last record starts, which only the engine knows.
    pub(crate) fn name_spawned(&mut self, id: &SessionId) {
        if let Some(last) = self.line.last_mut()
            && last.what == What::Spawned(None)
        {
            Rc::make_mut(last).what = What::Spawned(Some(id.clone()));
        }
    }

    /// Returns the sessions that the line's records name.
    pub(crate) fn spawned(&self) -> impl Iterator<Item = &SessionId> {
        self.line.iter().filter_map(|entry| match &entry.what {
            What::Spawned(id) => id.as_ref(),
            _ => None,
        })
    }
}

impl Known {
    /// Formats the metadata as one text.
    pub(crate) fn as_text(&self) -> String {
        let Self {
            title,
            tags,
            pinned,
        } = self;
        format!("{title:?} {tags:?} {pinned}")
    }
}

impl Talk {
    /// Returns whether it consists only of results.
    pub(crate) fn only_answers(&self) -> bool {
        !self.speaks && self.calls.is_empty() && !self.results.is_empty()
    }
}
