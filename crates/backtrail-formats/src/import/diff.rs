//! Compares the events of a file with those that a session already has, and plans what to do.
//!
//! It does no input or output of its own: changes go in one at a time, steps come out. So the
//! plan of a file of any length needs little memory, and tests can check it against a model.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::event::{Event, MessageEvent, UsageEvent};

/// A change that a file makes to a conversation.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "most are events, and each is taken apart at once"
)]
pub(super) enum Change {
    /// Adds an event.
    Add(Event),
    /// Continues after the event with this key, or from the beginning.
    RewindTo(Option<String>),
}

/// An event that the session has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Existing {
    pub(super) key: String,
    pub(super) seq: u64,
    pub(super) has_usage: bool,
}

/// What to do where the file and the session differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDifference {
    /// Rewind the session to the last common event, and continue as the file does.
    Rewind,
    /// The same, also if the file only ends earlier than the session.
    RewindAtEnd,
    /// Leave the session as it is: the rest of the file belongs to another one.
    Leave,
}

/// What to do with a session.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "most are events, and each is taken apart at once"
)]
pub(super) enum Step {
    /// Make a change of the file. An event to rewind to that is not there was undone before.
    Make(Change),
    /// Rewind to a record; `None` for the record before the session's first one.
    RewindToRecord(Option<u64>),
    /// Leave the session: the changes belong to another one, which parts from this one after
    /// the record `common`, or has nothing in common with it.
    Leave {
        common: Option<u64>,
        changes: Vec<Change>,
    },
}

/// Plans the import of one conversation.
pub(super) struct Diff<I> {
    mode: Mode<I>,
    /// Usage to add at the end.
    late_usage: Vec<UsageEvent>,
    /// The keys of the usage that the session has, wherever the file has it.
    known_usage: HashSet<String>,
    /// Whether the session keeps events after those that the file has.
    ends_early: bool,
}

enum Mode<I> {
    Append,
    AppendAfter(HashSet<String>),
    AddMissing(HashSet<String>),
    Compare(Box<Compare<I>>),
}

/// A comparison under way.
struct Compare<I> {
    existing: I,
    on_difference: OnDifference,
    /// The session's next event that the file did not have yet.
    next: Option<Existing>,
    /// The last event that both have.
    common: Option<Existing>,
    /// The changes since the two differ.
    held: Vec<Change>,
    /// Whether the session is rewound to the last common event.
    is_rewound: bool,
    late_usage: LateUsage,
}

/// How many changes are held back to see whether the file itself undoes them.
const MAX_HELD: usize = 4_096;

impl<I: Iterator<Item = Result<Existing>>> Diff<I> {
    /// Plans for a session that has nothing of the file's changes.
    pub(super) fn append() -> Self {
        Self::new(Mode::Append)
    }

    /// Plans for a session that has nothing of the file's changes, unless a crash left the
    /// first of them without a note of their import: `keys` are skipped until the first key
    /// that is new.
    pub(super) fn append_after(keys: HashSet<String>) -> Self {
        Self::new(Mode::AppendAfter(keys))
    }

    /// Plans for a session of which several files contain parts: events whose keys are not
    /// among `keys` are added.
    pub(super) fn add_missing(keys: HashSet<String>) -> Self {
        Self::new(Mode::AddMissing(keys))
    }

    /// Plans for a session that may have a part of the file, or differ from it.
    pub(super) fn compare(existing: I, on_difference: OnDifference) -> Result<Self> {
        let mut compare = Compare {
            existing,
            on_difference,
            next: None,
            common: None,
            held: Vec::new(),
            is_rewound: false,
            late_usage: LateUsage::default(),
        };
        compare.advance()?;
        Ok(Self::new(Mode::Compare(Box::new(compare))))
    }

    fn new(mode: Mode<I>) -> Self {
        Self {
            mode,
            late_usage: Vec::new(),
            known_usage: HashSet::new(),
            ends_early: false,
        }
    }

    /// Returns whether the file ended before the session, which keeps the rest: what is
    /// appended to the file does not belong at the end of the session.
    pub(super) fn ends_early(&self) -> bool {
        self.ends_early
    }

    /// Takes the next change of the file and adds steps to the plan.
    pub(super) fn next(&mut self, change: Change, plan: &mut Vec<Step>) -> Result<()> {
        match (&mut self.mode, change) {
            (_, Change::Add(event)) if self.known_usage.contains(event.key()) => {}
            (Mode::AppendAfter(keys), Change::Add(event)) if keys.contains(event.key()) => {}
            (Mode::AddMissing(keys), Change::Add(event)) => {
                if keys.insert(event.key().to_owned()) {
                    plan.push(Step::Make(Change::Add(event)));
                }
            }
            (Mode::AppendAfter(_), change) => {
                self.mode = Mode::Append;
                plan.push(Step::Make(change));
            }
            (Mode::Append | Mode::AddMissing(_), change) => plan.push(Step::Make(change)),
            (Mode::Compare(compare), Change::Add(event)) => {
                if let Some(event) = compare.add(event)? {
                    self.stop_comparing()?;
                    plan.push(Step::Make(Change::Add(event)));
                } else if compare.held.len() > MAX_HELD {
                    self.part(plan)?;
                }
            }
            (Mode::Compare(compare), Change::RewindTo(key)) => {
                if compare.rewind(key.as_deref()) {
                    return Ok(());
                }
                if compare.held.is_empty() {
                    self.stop_comparing()?;
                    plan.push(Step::Make(Change::RewindTo(key)));
                } else {
                    compare.held.push(Change::RewindTo(key));
                    self.part(plan)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) fn end(&mut self, plan: &mut Vec<Step>) -> Result<()> {
        if let Mode::Compare(compare) = &mut self.mode {
            if !compare.held.is_empty() {
                self.part(plan)?;
            } else {
                let ends_early = compare.next.is_some();
                if ends_early && compare.on_difference == OnDifference::RewindAtEnd {
                    plan.push(Step::RewindToRecord(compare.common_seq()));
                } else {
                    self.ends_early = ends_early;
                }
                self.stop_comparing()?;
            }
        }
        let late = std::mem::take(&mut self.late_usage).into_iter();
        plan.extend(late.map(|usage| Step::Make(Change::Add(Event::Usage(usage)))));
        Ok(())
    }

    /// Ends a comparison whose sides differ.
    fn part(&mut self, plan: &mut Vec<Step>) -> Result<()> {
        let Mode::Compare(compare) = &mut self.mode else {
            return Ok(());
        };
        let common = compare.common_seq();
        let changes = std::mem::take(&mut compare.held);
        if compare.on_difference == OnDifference::Leave {
            self.mode = Mode::Append;
            plan.push(Step::Leave { common, changes });
            return Ok(());
        }
        compare.forget_rewound_usage();
        self.stop_comparing()?;
        plan.push(Step::RewindToRecord(common));
        plan.extend(changes.into_iter().map(Step::Make));
        Ok(())
    }

    /// From now on everything is new. The session is read to its end first if that is needed,
    /// since it is about to be written.
    fn stop_comparing(&mut self) -> Result<()> {
        if let Mode::Compare(compare) = &mut self.mode {
            self.late_usage = compare.late_usage()?;
            let known = std::mem::take(&mut compare.late_usage.known);
            self.known_usage = known.into_keys().collect();
        }
        self.mode = Mode::Append;
        Ok(())
    }
}

impl<I: Iterator<Item = Result<Existing>>> Compare<I> {
    fn advance(&mut self) -> Result<()> {
        self.next = None;
        for existing in &mut self.existing {
            let existing = existing?;
            if !self.late_usage.is_known(&existing) {
                self.next = Some(existing);
                break;
            }
        }
        Ok(())
    }

    /// Takes an event; returns it if the session ends before it.
    fn add(&mut self, event: Event) -> Result<Option<Event>> {
        let event = match event {
            Event::Usage(usage) if usage.key.ends_with(UsageEvent::ANYWHERE) => {
                self.late_usage.missing.push(usage);
                return Ok(None);
            }
            event => event,
        };
        if !self.held.is_empty() {
            self.held.push(Change::Add(event));
            return Ok(None);
        }
        match &self.next {
            None => Ok(Some(event)),
            Some(next) if next.key == event.key() => {
                if let Event::Message(message) = event
                    && !next.has_usage
                {
                    self.late_usage.add(message);
                }
                self.common = self.next.take();
                self.advance()?;
                Ok(None)
            }
            Some(_) => {
                self.held.push(Change::Add(event));
                Ok(None)
            }
        }
    }

    /// Rewinds the file's side; returns whether that only undoes changes that are held.
    fn rewind(&mut self, key: Option<&str>) -> bool {
        let common = self.common.as_ref().map(|common| common.key.as_str());
        if common == key {
            self.held.clear();
            return true;
        }
        let is_target =
            |change: &Change| matches!(change, Change::Add(event) if Some(event.key()) == key);
        match self.held.iter().rposition(is_target) {
            Some(at) => {
                self.held.truncate(at + 1);
                true
            }
            None => false,
        }
    }

    fn common_seq(&self) -> Option<u64> {
        self.common.as_ref().map(|common| common.seq)
    }

    /// Forgets the usage after the last common event, to which the session is rewound.
    fn forget_rewound_usage(&mut self) {
        let common = self.common_seq();
        let known = &mut self.late_usage.known;
        known.retain(|_, seq| common.is_some_and(|common| *seq <= common));
        self.is_rewound = true;
    }

    /// Returns the usage that the session does not have.
    fn late_usage(&mut self) -> Result<Vec<UsageEvent>> {
        let mut missing = std::mem::take(&mut self.late_usage.missing);
        if missing.is_empty() {
            return Ok(missing);
        }
        if !self.is_rewound {
            for existing in &mut self.existing {
                self.late_usage.is_known(&existing?);
            }
        }
        missing.retain(|usage| !self.late_usage.known.contains_key(&usage.key));
        Ok(missing)
    }
}

/// Usage that is added at the end, wherever the file has it: that of messages that the session
/// has without it, because another file had them so, and that of no message.
#[derive(Debug, Default)]
struct LateUsage {
    missing: Vec<UsageEvent>,
    /// By key, with the record.
    known: HashMap<String, u64>,
}

impl LateUsage {
    /// Returns whether an event of the session is such a usage event.
    fn is_known(&mut self, existing: &Existing) -> bool {
        let is_late = existing.key.ends_with(UsageEvent::ANYWHERE);
        if is_late {
            self.known.insert(existing.key.clone(), existing.seq);
        }
        is_late
    }

    fn add(&mut self, message: MessageEvent) {
        let (Some(usage), Some(response_id)) = (message.message.usage, message.response_id) else {
            return;
        };
        let key = message.key.get(..200).unwrap_or(&message.key);
        self.missing.push(UsageEvent {
            key: format!("{key}{}", UsageEvent::ANYWHERE),
            at: message.at,
            response_id,
            model: message.model,
            usage,
            duration_ms: message.duration_ms,
            cost_usd: message.cost_usd,
        });
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
