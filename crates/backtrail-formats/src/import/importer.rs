//! Imports the events of one file into the sessions that they belong to.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use backtrail::{SessionId, SessionReader, Store, Timestamp};

use super::copies::Copies;
use super::destination::{Destination, find_fork_point, is_only_file};
use super::diff::{Change, OnDifference, Step};
use super::ids::{branch_id, other_id, session_id};
use super::session_import::{FileTimes, Known, Parent, SessionImport};
use crate::error::Result;
use crate::event::{Details, Event, EventSink, Origin, Thread, ThreadId, sub_agent_name};
use crate::format::Format;

/// The session of a file's own conversation, and how the file is read.
#[derive(Debug, Clone)]
pub(super) struct MainSession {
    pub(super) id: SessionId,
    /// The agent's name for it.
    pub(super) name: String,
    /// What to do where the file and the session differ.
    pub(super) on_difference: OnDifference,
    /// Whether only the part of the file that was appended is read.
    pub(super) is_resumed: bool,
}

/// Receives the events of a file, plans what to do with them and does it.
pub(super) struct Importer<'i> {
    destination: &'i Destination<'i>,
    format: &'static dyn Format,
    main: MainSession,
    times: FileTimes,
    path: &'i Path,
    sessions: BTreeMap<ThreadId, SessionImport>,
    current: ThreadId,
    /// Threads whose sessions may be open, the one used longest ago first.
    recent: VecDeque<ThreadId>,
    plan: Vec<Step>,
    /// Whether the file has an event.
    has_events: bool,
    /// Whether the file turned out to belong to a session that was deleted here.
    is_deleted: bool,
    /// The session that all of the file belongs to, if it turned out to be another one.
    other: Option<SessionId>,
}

/// What became of a file's events.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub(super) enum Imported {
    Sessions(ImportedSessions),
    /// They belong to a session that was deleted here.
    Deleted,
    /// All of them belong to this session, which only has its name in common with the one that
    /// they were compared with.
    Other(SessionId),
    /// There are none: no session was created for them, and one that exists stays as it is.
    Nothing,
}

/// The sessions of a file.
pub(super) struct ImportedSessions {
    pub(super) main: SessionImport,
    pub(super) others: Vec<SessionImport>,
}

/// How many sessions are open at a time.
const MAX_OPEN: usize = 16;

impl<'i> Importer<'i> {
    pub(super) fn new(
        destination: &'i Destination<'i>,
        format: &'static dyn Format,
        path: &'i Path,
        main: MainSession,
        file_modified: Timestamp,
    ) -> Self {
        let times = FileTimes {
            in_id: Timestamp::in_id(&main.name),
            modified: file_modified,
        };
        Self {
            destination,
            format,
            main,
            times,
            path,
            sessions: BTreeMap::new(),
            current: ThreadId::Main,
            recent: VecDeque::new(),
            plan: Vec::new(),
            has_events: false,
            is_deleted: false,
            other: None,
        }
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> Result<Imported> {
        let mut sessions = self.sessions.values();
        if !self.has_events && !self.main.is_resumed && !sessions.any(SessionImport::is_new) {
            // It is damaged rather than empty: the session is not rewound to its beginning.
            return Ok(Imported::Nothing);
        }
        let threads: Vec<ThreadId> = self.sessions.keys().cloned().collect();
        for thread in threads {
            self.current = thread;
            self.end_thread()?;
            if self.is_over() {
                return Ok(match self.other {
                    Some(other) => Imported::Other(other),
                    None => Imported::Deleted,
                });
            }
        }
        if self.sessions.values().all(SessionImport::has_nothing) {
            return Ok(Imported::Nothing);
        }
        self.ensure_main()?;
        Ok(match self.sessions.remove(&ThreadId::Main) {
            Some(main) => Imported::Sessions(ImportedSessions {
                main,
                others: self.sessions.into_values().collect(),
            }),
            None => Imported::Nothing,
        })
    }

    fn end_thread(&mut self) -> Result<()> {
        loop {
            let id = self.session()?.id.clone();
            let mut plan = std::mem::take(&mut self.plan);
            self.session()?.plan_end(&mut plan)?;
            self.apply(plan)?;
            // A session that the rest of the file belongs to has an end of its own.
            if self.is_over() || self.session()?.id == id {
                return Ok(());
            }
        }
    }

    /// Returns whether the rest of the file does not matter.
    fn is_over(&self) -> bool {
        self.is_deleted || self.other.is_some()
    }

    /// Returns the session of the current thread.
    fn session(&mut self) -> Result<&mut SessionImport> {
        if !self.sessions.contains_key(&self.current) {
            self.start(&Thread {
                id: self.current.clone(),
                origin: Origin::Start,
            })?;
        }
        let session = self.sessions.get_mut(&self.current);
        Ok(session.expect("it was started"))
    }

    /// Starts a thread that is new in this file.
    fn start(&mut self, thread: &Thread) -> Result<()> {
        let id = match &thread.id {
            ThreadId::Main => self.main.id.clone(),
            ThreadId::Branch(key) => branch_id(&self.main.id, key),
            ThreadId::SubAgent(agent) => {
                let name = sub_agent_name(&self.main.name, agent);
                session_id(self.format.name(), &name)
            }
        };
        let session = self.session_for(id, thread)?;
        self.sessions.insert(thread.id.clone(), session);
        Ok(())
    }

    fn session_for(&mut self, id: SessionId, thread: &Thread) -> Result<SessionImport> {
        let is_main = thread.id == ThreadId::Main;
        if !is_main && self.destination.was_deleted(&id) {
            return Ok(SessionImport::deleted(id, self.times));
        }
        if self.destination.is_previewed(&id) {
            return Ok(SessionImport::previewed(id, self.times));
        }
        let is_spawned = matches!(thread.origin, Origin::Spawned { .. });
        let Some(store) = self.destination.find_store(&id)? else {
            let (parent, store) = self.parent(thread)?;
            let copies = match (&thread.id, &parent, &store) {
                (ThreadId::Branch(_), Parent::Continues(parent, _), Some(store)) => {
                    Copies::inherited(store, &store.read_session(parent)?)?
                }
                (ThreadId::Main, Parent::Continues(parent, _), Some(store))
                    if matches!(thread.origin, Origin::Copy { .. }) =>
                {
                    let copies = Copies::inherited(store, &store.read_session(parent)?)?;
                    copies.map(Copies::at_beginning)
                }
                _ => None,
            };
            let session = SessionImport::into_new(id, parent, store, self.times).skipping(copies);
            return Ok(match is_spawned {
                true => session.adding_missing(),
                false => session,
            });
        };
        let is_own = is_main && self.main.on_difference != OnDifference::Leave;
        let known = match (is_main, self.main.is_resumed) {
            (true, true) => Known::Everything,
            _ if is_spawned && !is_own => Known::AnyPart,
            (false, true) => Known::EverythingUnlessCrashed,
            (true, false) => Known::Beginning(self.main.on_difference),
            (false, false) => Known::Beginning(OnDifference::Rewind),
        };
        let copies = self.copies(&store, &store.read_session(&id)?, thread)?;
        let session = SessionImport::into_existing(id, store, known, self.times)?;
        Ok(session.skipping(copies))
    }

    /// Returns the copies among the events of a thread whose session exists.
    fn copies(
        &self,
        store: &Store,
        reader: &SessionReader,
        thread: &Thread,
    ) -> Result<Option<Copies>> {
        match (&thread.id, &thread.origin) {
            (ThreadId::SubAgent(_), _) => Ok(None),
            (ThreadId::Branch(_), _) => Copies::inherited(store, reader),
            // The copies are in another file, and events of this one may have the same keys.
            (ThreadId::Main, Origin::Continues { .. }) => Copies::of(reader),
            (ThreadId::Main, _) if self.main.is_resumed => Copies::of(reader),
            (ThreadId::Main, _) => {
                let copies = Copies::inherited(store, reader)?;
                Ok(copies.map(Copies::at_beginning))
            }
        }
    }

    /// Returns where the own part of a session begins that was handed over: a copy of its file has
    /// the copies in it too.
    fn handed_over_at(&self, id: &SessionId) -> Result<Option<(Store, u64)>> {
        let Some(store) = self.destination.find_store(id)? else {
            return Ok(None);
        };
        let copies = Copies::inherited(&store, &store.read_session(id)?)?;
        Ok(copies.map(|copies| (store, copies.shared_to())))
    }

    /// Returns where a new session comes from, and the store in which it is created.
    fn parent(&mut self, thread: &Thread) -> Result<(Parent, Option<Store>)> {
        let origin = &thread.origin;
        let staging = self.destination.staging_store()?;
        let agent = self.format.name();
        let parent = match origin {
            Origin::Start => return Ok((Parent::None, staging)),
            Origin::Copy { session } => {
                let parent = session_id(agent, session);
                return Ok(match self.handed_over_at(&parent)? {
                    Some((store, seq)) => (Parent::Continues(parent, seq), Some(store)),
                    None => (Parent::CopyOf(parent), staging),
                });
            }
            Origin::Continues { session, .. } | Origin::Spawned { session, .. } => match session {
                Some(session) => session_id(agent, session),
                None => {
                    // It must exist and be readable, since others refer to it.
                    self.ensure_main()?;
                    self.main.id.clone()
                }
            },
        };
        let store = self.destination.find_store(&parent)?;
        let reader = match &store {
            Some(store) => Some(store.read_session(&parent)?),
            None => None,
        };
        match origin {
            Origin::Continues { point, .. } => {
                let seq = match (&store, &reader) {
                    (Some(store), Some(reader)) => match Copies::inherited(store, reader)? {
                        Some(copies) => copies.fork_point(reader, thread, point)?,
                        None => find_fork_point(reader, point)?,
                    },
                    _ => None,
                };
                // If the shared part is not here, the session has no parent.
                Ok(match seq {
                    Some(seq) => (Parent::Continues(parent, seq), store),
                    None => (Parent::CopyOf(parent), staging),
                })
            }
            Origin::Spawned {
                session,
                tool_use_id,
            } => {
                let (destination, name) = (self.destination, &self.main.name);
                let call = match (tool_use_id, &reader) {
                    // A file of its own, that does not name the call: the call may name it.
                    (None, Some(reader)) if session.is_some() => {
                        destination.call_that_started(reader, name)?
                    }
                    _ => tool_use_id.clone(),
                };
                let call = call.unwrap_or_default();
                let seq = match &reader {
                    Some(reader) if !call.is_empty() => destination.find_call(reader, &call)?,
                    _ => 0,
                };
                Ok((Parent::SpawnedBy(parent, seq, call), staging))
            }
            Origin::Start | Origin::Copy { .. } => Ok((Parent::None, staging)),
        }
    }

    /// Creates the file's own session if it does not exist, and writes what is buffered.
    fn ensure_main(&mut self) -> Result<()> {
        if !self.sessions.contains_key(&ThreadId::Main) {
            self.start(&Thread::main(Origin::Start))?;
        }
        let (agent, name) = (self.format.name(), self.main.name.as_str());
        if let Some(main) = self.sessions.get_mut(&ThreadId::Main) {
            if main.is_new() {
                main.open(self.destination, agent, Some(name))?;
            }
            if let Some(writer) = &mut main.writer {
                writer.flush()?;
            }
            self.destination.forget_calls(&main.id);
        }
        Ok(())
    }

    /// Plans a change of the current thread, and carries the plan out.
    fn change(&mut self, change: Change) -> Result<()> {
        self.has_events = true;
        if self.is_over() {
            return Ok(());
        }
        let mut plan = std::mem::take(&mut self.plan);
        self.session()?.plan(change, &mut plan)?;
        self.apply(plan)
    }

    fn apply(&mut self, mut plan: Vec<Step>) -> Result<()> {
        let (destination, agent) = (self.destination, self.format.name());
        for step in plan.drain(..) {
            if let Step::Leave { common, changes } = step {
                self.leave(common, changes)?;
                continue;
            }
            let is_rewind = !matches!(step, Step::Make(Change::Add(_)));
            let name = (self.current == ThreadId::Main).then(|| self.main.name.clone());
            let session = self.session()?;
            if is_rewind && session.is_new() {
                continue;
            }
            if let Step::Make(Change::Add(event)) = &step
                && !destination.is_to_be_added(&session.id, event.key())
            {
                continue;
            }
            session.open(destination, agent, name.as_deref())?;
            match step {
                Step::Make(Change::Add(event)) => session.append(event)?,
                Step::Make(Change::RewindTo(key)) => session.rewind_to_key(key)?,
                Step::RewindToRecord(seq) => session.rewind_to_record(seq)?,
                Step::Leave { .. } => {}
            }
        }
        // The buffer is used again, unless another plan took its place.
        if self.plan.is_empty() {
            self.plan = plan;
        }
        Ok(())
    }

    /// Continues with another session, since the file differs from the one it names: a branch
    /// of it, or a session that has only the name in common.
    fn leave(&mut self, common: Option<u64>, changes: Vec<Change>) -> Result<()> {
        let left = self.session()?;
        let copies = left.copies.take();
        let common = common.or(copies.as_ref().and_then(Copies::seen_to));
        let (left_id, left_store) = (left.id.clone(), left.store.clone());
        let details = std::mem::take(&mut left.details);
        let first_key = changes.iter().find_map(|change| match change {
            Change::Add(event) => Some(event.key()),
            Change::RewindTo(_) => None,
        });
        let first_key = first_key.unwrap_or_default();
        let (id, parent, store) = match common {
            Some(_) if !self.format.has_unique_names() => {
                self.other = Some(other_id(&left_id, first_key));
                return Ok(());
            }
            Some(seq) => {
                let parent = Parent::Continues(left_id.clone(), seq);
                (branch_id(&left_id, first_key), parent, left_store)
            }
            None => {
                let staging = self.destination.staging_store()?;
                (other_id(&left_id, first_key), Parent::None, staging)
            }
        };
        if self.destination.was_deleted(&id) {
            self.is_deleted = true;
            return Ok(());
        }
        self.main.id = id.clone();
        let mut session = match self.destination.find_store(&id)? {
            Some(store) => {
                // From now on this is one of that session's files.
                let sources = store.read_session(&id)?.sources()?;
                self.main.on_difference = match is_only_file(self.path, &sources) {
                    true => OnDifference::Rewind,
                    false => OnDifference::Leave,
                };
                let known = Known::Beginning(self.main.on_difference);
                SessionImport::into_existing(id, store, known, self.times)?
            }
            None => SessionImport::into_new(id, parent, store, self.times),
        };
        session.copies = copies.map(Copies::in_the_middle);
        session.details = details;
        self.sessions.insert(ThreadId::Main, session);
        changes
            .into_iter()
            .try_for_each(|change| self.change(change))
    }
}

impl EventSink for Importer<'_> {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        if self.is_over() {
            return Ok(());
        }
        if thread.id != ThreadId::Main && self.recent.back() != Some(&thread.id) {
            self.recent.push_back(thread.id.clone());
        }
        if self.recent.len() > MAX_OPEN
            && let Some(oldest) = self.recent.pop_front()
            && oldest != thread.id
            && let Some(session) = self.sessions.get_mut(&oldest)
        {
            session.close()?;
        }
        self.current = thread.id.clone();
        if !self.sessions.contains_key(&thread.id) {
            self.start(thread)?;
        }
        Ok(())
    }

    fn details(&mut self, details: Details) -> Result<()> {
        if !self.is_over() {
            self.session()?.details.update(details);
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<()> {
        self.change(Change::Add(event))
    }

    fn rewind_to(&mut self, key: Option<&str>) -> Result<()> {
        self.change(Change::RewindTo(key.map(str::to_owned)))
    }
}
