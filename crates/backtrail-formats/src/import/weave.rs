//! Takes what a file tells into the sessions that it is of.

use std::collections::{BTreeMap, HashSet, VecDeque};

use backtrail::{KeptSource, SessionId, SessionReader, Store, Timestamp};

use super::joined::can_be_joined;
use super::names::{branch_id, other_id, session_id};
use super::shop::{Claim, Shop, find_place, tells_item};
use super::strand::{Birth, Comparing, State, Strand, Verdict};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::source::Source;
use crate::told::{About, Item, Origin, Sink, Thread, Which, agent_name};

/// How a file is read.
#[derive(Debug, Clone)]
pub(super) enum Mode {
    /// From its beginning; `known` is the session that it was taken into before.
    Whole {
        known: Option<SessionId>,
        /// Whether it is shorter than it was.
        shrunk: bool,
        /// Whether all files of the session are read as one.
        joined: bool,
    },
    /// From where it was read to, behind the end of this session.
    GoOn(SessionId),
}

/// Why a file was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Another file must come first, or is being taken in now.
    Later,
    /// Its session was deleted here.
    Deleted,
    /// It must be read from its beginning.
    StartOver,
    /// Other files tell parts of the same session: all of them are read as one.
    Join,
}

/// Takes in what one file tells.
pub(super) struct Weave<'w> {
    shop: &'w Shop<'w>,
    format: &'static dyn Format,
    source: &'w Source,
    mode: Mode,
    /// Whether nobody is waited for any more.
    last_pass: bool,
    name: String,
    /// The session of the file's own conversation.
    main: Option<SessionId>,
    claim: Option<Claim<'w>>,
    /// Whether the session goes along where the file takes another way: it is the file's own.
    goes_along: bool,
    /// Whether it goes along where the file ends before the session does, too.
    follows: bool,
    strands: BTreeMap<Which, Strand>,
    present: Which,
    /// Conversations that may be open, those that were told longest ago first.
    open: VecDeque<Which>,
    pub(super) stop: Option<Stop>,
    /// When the file was last written to: for what says no time.
    pub(super) modified: Timestamp,
}

/// How many sessions are open at once.
const OPEN: usize = 16;
/// How far back an item is looked for that may have been written before a crash.
const FAR: usize = 1_000;

impl<'w> Weave<'w> {
    pub(super) fn new(
        shop: &'w Shop<'w>,
        format: &'static dyn Format,
        source: &'w Source,
        mode: Mode,
        last_pass: bool,
        modified: Timestamp,
    ) -> Self {
        Self {
            shop,
            format,
            source,
            mode,
            last_pass,
            name: String::new(),
            main: None,
            claim: None,
            goes_along: false,
            follows: false,
            strands: BTreeMap::new(),
            present: Which::Main,
            open: VecDeque::new(),
            stop: None,
            modified,
        }
    }

    /// Returns the session of the file's own conversation, once it is known.
    pub(super) fn main(&self) -> Option<&SessionId> {
        self.main.as_ref()
    }

    /// Returns whether other files tell parts of the session that holds these. Names that are
    /// made up are given to more than one session.
    fn is_one_of_several(&self, sources: &[KeptSource]) -> bool {
        let path = self.source.path();
        let may_join = self.format.joins() && can_be_joined(path);
        if !may_join || uuid::Uuid::try_parse(&self.name).is_err() {
            return false;
        }
        let is_other = |kept: &&KeptSource| kept.held_by.is_none() && kept.path != path;
        let mut others = sources.iter().filter(is_other).peekable();
        others.peek().is_some() && others.all(|kept| can_be_joined(&kept.path))
    }

    /// Returns whether a session that holds these is this file's alone. Files that are gone
    /// have no say any more.
    fn is_alone(&self, sources: &[KeptSource]) -> bool {
        let path = self.source.path();
        let has_say = |kept: &KeptSource| kept.path != path && kept.path.exists();
        !sources.iter().any(has_say)
    }

    /// Finds out what the session that a file names is to it: one that it was taken into
    /// before, one that is another's, or one that it tells a part of. Returns its id.
    fn look_at(&mut self, id: SessionId, known: bool, shrunk: bool) -> Result<SessionId> {
        let Some(store) = self.shop.find(&id)? else {
            return Ok(id);
        };
        let reader = store.read_session(&id)?;
        let agent = self.format.name();
        if !known && reader.info()?.belongs_to.as_deref() != Some(agent) {
            return Ok(other_id(&id, agent));
        }
        let sources = reader.sources()?;
        if self.is_one_of_several(&sources) {
            self.main = Some(id);
            return self.stop(Stop::Join);
        }
        let path = self.source.path();
        let is_held = |kept: &KeptSource| kept.path == path && kept.held_by.is_none();
        self.goes_along = (known || sources.iter().any(is_held)) && self.is_alone(&sources);
        self.follows = known && !shrunk && self.goes_along;
        Ok(id)
    }

    fn stop<T>(&mut self, stop: Stop) -> Result<T> {
        self.stop = Some(stop);
        Err(Error::invalid(
            "the reading was stopped",
            self.source.path(),
        ))
    }

    fn strand(&mut self) -> Result<&mut Strand> {
        if !self.strands.contains_key(&self.present) {
            self.begin(&Thread::main())?;
        }
        let present = self.present.clone();
        self.strands
            .get_mut(&present)
            .ok_or_else(|| Error::invalid("nothing was begun", self.source.path()))
    }

    /// Begins a conversation that was not named before.
    fn begin(&mut self, thread: &Thread) -> Result<()> {
        let Some(main) = self.main.clone() else {
            let what = "the reader told something before it named the session";
            return Err(Error::invalid(what, self.source.path()));
        };
        let agent = self.format.name();
        let id = match &thread.which {
            Which::Main => main.clone(),
            Which::Branch(key) => branch_id(&main, key),
            Which::Agent(agent_id) => session_id(agent, &agent_name(&self.name, agent_id)),
        };
        let strand = self.strand_of(id, &thread.which, &thread.origin)?;
        self.strands.insert(thread.which.clone(), strand);
        Ok(())
    }

    fn strand_of(&mut self, id: SessionId, which: &Which, origin: &Origin) -> Result<Strand> {
        if *which != Which::Main && self.shop.was_deleted(&id) {
            return Ok(Strand::new(id, Birth::Start, State::Ignored, self.modified));
        }
        let spawned = matches!(origin, Origin::Spawned { .. });
        let Some(store) = self.shop.find(&id)? else {
            let (birth, store) = self.birth(origin)?;
            let mut strand = Strand::new(id, birth, State::Fresh(store), self.modified);
            strand.keys = spawned.then(HashSet::new);
            return Ok(strand);
        };
        let (state, keys) = match &self.mode {
            Mode::GoOn(_) if *which == Which::Main => (State::Parked(Some(store)), None),
            _ if spawned && !(*which == Which::Main && self.goes_along) => {
                let keys = all_keys(&store, &id)?;
                (State::Parked(Some(store)), Some(keys))
            }
            Mode::GoOn(_) => (State::Parked(Some(store)), None),
            Mode::Whole { .. } => {
                let comparing = Comparing::new(&store, &id)?;
                (State::Comparing(Box::new(comparing)), None)
            }
        };
        let mut strand = Strand::new(id, Birth::Start, state, self.modified);
        strand.keys = keys;
        Ok(strand)
    }

    /// Finds out where a new session comes from, and in which store it is made.
    fn birth(&mut self, origin: &Origin) -> Result<(Birth, Option<Store>)> {
        let aside = self.shop.aside().cloned();
        let agent = self.format.name();
        let (session, own) = match origin {
            Origin::Start => return Ok((Birth::Start, aside)),
            Origin::Copy { session } => {
                return Ok((Birth::CopyOf(session_id(agent, session)), aside));
            }
            Origin::Continues { session, .. } | Origin::Spawned { session, .. } => match session {
                Some(session) => (session_id(agent, session), false),
                None => {
                    // The others refer to it: it must be there, and be read.
                    self.main_is_there()?;
                    (
                        self.main.clone().unwrap_or_else(|| session_id(agent, "")),
                        true,
                    )
                }
            },
        };
        let store = self.shop.find(&session)?;
        if !own && !self.last_pass && (store.is_none() || self.shop.is_busy(&session)) {
            return self.stop(Stop::Later);
        }
        let parent: Option<SessionReader> = match &store {
            Some(store) => Some(store.read_session(&session)?),
            None => None,
        };
        match origin {
            Origin::Continues { after, .. } => {
                let place = match &parent {
                    Some(parent) => find_place(parent, after)?,
                    None => None,
                };
                // What it goes on from is not here: it stands by itself.
                Ok(match place {
                    Some(seq) => (Birth::Continues(session, seq), store),
                    None => (Birth::CopyOf(session), aside),
                })
            }
            Origin::Spawned { tool_use_id, .. } => {
                let call = tool_use_id.as_deref().unwrap_or_default();
                let seq = match &parent {
                    Some(parent) if !call.is_empty() => self.shop.call(parent, call)?,
                    _ => 0,
                };
                Ok((Birth::Spawned(session, seq, call.to_owned()), aside))
            }
            Origin::Start | Origin::Copy { .. } => Ok((Birth::Start, aside)),
        }
    }

    /// Makes the file's own session where it is not there yet, and writes what waits.
    fn main_is_there(&mut self) -> Result<()> {
        if !self.strands.contains_key(&Which::Main) {
            self.begin(&Thread::main())?;
        }
        let agent = self.format.name();
        let name = self.name.clone();
        if let Some(main) = self.strands.get_mut(&Which::Main) {
            if let State::Fresh(_) = main.state {
                main.last_at = main.last_at.or(Some(self.modified));
                main.open(self.shop, agent, Some(&name))?;
            }
            main.flush()?;
            self.shop.forget_calls(&main.id);
        }
        Ok(())
    }

    /// Writes an item behind the end of the present conversation.
    fn write(&mut self, item: Item) -> Result<()> {
        let (shop, agent, name) = (self.shop, self.format.name(), self.name.clone());
        let is_main = self.present == Which::Main;
        let strand = self.strand()?;
        if let State::Fresh(_) = strand.state {
            // So that the session begins when its first words were said.
            strand.pass_by(&item);
        }
        strand.open(shop, agent, is_main.then_some(name.as_str()))?;
        strand.write(item)
    }

    /// Takes an item in a comparison.
    fn compare(&mut self, item: Item) -> Result<()> {
        let strand = self.strand()?;
        strand.pass_by(&item);
        let State::Comparing(comparing) = &mut strand.state else {
            return Ok(());
        };
        match comparing.take(item)? {
            Verdict::Same => Ok(()),
            Verdict::Behind(item) => self.write(item),
            Verdict::Parted => self.part(),
        }
    }

    /// Ends a comparison of two conversations that went different ways.
    fn part(&mut self) -> Result<()> {
        let goes_along = self.goes_along;
        let is_main = self.present == Which::Main;
        let strand = self.strand()?;
        let State::Comparing(comparing) = &mut strand.state else {
            return Ok(());
        };
        let pending = std::mem::take(&mut comparing.pending);
        let Some(first) = pending.first() else {
            return Ok(());
        };
        if goes_along || !is_main {
            // The agent took another way, and the session goes along.
            let seq = comparing.common_seq();
            let (shop, agent) = (self.shop, self.format.name());
            let strand = self.strand()?;
            strand.open(shop, agent, None)?;
            strand.back_to_seq(seq)?;
            return pending.into_iter().try_for_each(|item| self.write(item));
        }
        // Another file of the same name: a branch, or a stranger.
        let taken = strand.id.clone();
        let (id, origin_seq) = match comparing.common.as_ref() {
            Some((_, seq)) => (branch_id(&taken, first.key()), Some(*seq)),
            None => (other_id(&taken, first.key()), None),
        };
        let store = comparing.store.clone();
        let about = std::mem::take(&mut strand.about);
        if self.shop.was_deleted(&id) {
            return self.stop(Stop::Deleted);
        }
        let mut fresh = match self.shop.find(&id)? {
            Some(store) => {
                let comparing = Comparing::new(&store, &id)?;
                let state = State::Comparing(Box::new(comparing));
                // From now on it is a file of that session.
                let sources = store.read_session(&id)?.sources()?;
                self.goes_along = self.is_alone(&sources);
                Strand::new(id.clone(), Birth::Start, state, self.modified)
            }
            None => match origin_seq {
                Some(seq) => {
                    let birth = Birth::Continues(taken, seq);
                    Strand::new(id.clone(), birth, State::Fresh(Some(store)), self.modified)
                }
                None => {
                    let store = self.shop.aside().cloned();
                    Strand::new(id.clone(), Birth::Start, State::Fresh(store), self.modified)
                }
            },
        };
        fresh.about = about;
        self.main = Some(id);
        self.strands.insert(Which::Main, fresh);
        pending.into_iter().try_for_each(|item| self.item(item))
    }

    /// Returns whether an item that comes next is in the session already: a crash kept its
    /// reading from being noted.
    fn was_written(&mut self, item: &Item) -> Result<bool> {
        let strand = self.strand()?;
        let Some(store) = strand.store() else {
            return Ok(false);
        };
        let mut back = store.read_session(&strand.id)?.records_back()?;
        for _ in 0..FAR {
            let Some(record) = back.next()? else {
                break;
            };
            if tells_item(record.kind()) && record.id().is_some_and(|id| id == item.key()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends what was told: returns the strands, the file's own first.
    pub(super) fn finish(&mut self, name: &str) -> Result<Woven<'w>> {
        if self.main.is_none() {
            self.session(name)?;
        }
        let whiches: Vec<Which> = self.strands.keys().cloned().collect();
        for which in whiches {
            self.present = which.clone();
            if let State::Comparing(comparing) = &self.strand()?.state {
                let parted = !comparing.pending.is_empty();
                let (more, seq) = (comparing.has_more(), comparing.common_seq());
                if parted {
                    self.part()?;
                } else if more && self.follows && which == Which::Main {
                    // The agent took the end back itself.
                    let (shop, agent) = (self.shop, self.format.name());
                    let strand = self.strand()?;
                    strand.open(shop, agent, None)?;
                    strand.back_to_seq(seq)?;
                }
            }
            for used in self.strand()?.take_late()? {
                self.write(Item::Used(used))?;
            }
        }
        self.present = Which::Main;
        self.main_is_there()?;
        let main = self.strands.remove(&Which::Main);
        let main = main.ok_or_else(|| Error::invalid("nothing was told", self.source.path()))?;
        let others = std::mem::take(&mut self.strands).into_values().collect();
        Ok(Woven {
            main,
            others,
            name: self.name.clone(),
            claim: self.claim.take(),
        })
    }
}

/// What a file told.
pub(super) struct Woven<'w> {
    pub(super) main: Strand,
    pub(super) others: Vec<Strand>,
    pub(super) name: String,
    /// Nobody else takes the session in until this is dropped.
    pub(super) claim: Option<Claim<'w>>,
}

fn all_keys(store: &Store, id: &SessionId) -> Result<HashSet<String>> {
    let mut keys = HashSet::new();
    let mut records = store.read_session(id)?.records()?;
    while let Some(record) = records.next()? {
        if tells_item(record.kind())
            && let Some(key) = record.id()
        {
            keys.insert(key.into_owned());
        }
    }
    Ok(keys)
}

impl Sink for Weave<'_> {
    fn session(&mut self, name: &str) -> Result<()> {
        name.clone_into(&mut self.name);
        let id = match &self.mode {
            Mode::GoOn(id) => id.clone(),
            Mode::Whole {
                known: Some(id), ..
            } => id.clone(),
            Mode::Whole { .. } => session_id(self.format.name(), name),
        };
        self.claim = self.shop.claim(&id);
        if self.claim.is_none() {
            return self.stop(Stop::Later);
        }
        if self.shop.was_deleted(&id) {
            return self.stop(Stop::Deleted);
        }
        let looked_at = match &self.mode {
            Mode::GoOn(_) => Ok(id),
            Mode::Whole { joined: true, .. } => {
                self.goes_along = true;
                Ok(id)
            }
            Mode::Whole { known, shrunk, .. } => {
                let (known, shrunk) = (known.is_some(), *shrunk);
                self.look_at(id, known, shrunk)
            }
        };
        self.main = Some(looked_at?);
        Ok(())
    }

    fn thread(&mut self, thread: &Thread) -> Result<()> {
        if thread.which != Which::Main && self.open.back() != Some(&thread.which) {
            self.open.push_back(thread.which.clone());
        }
        if self.open.len() > OPEN
            && let Some(oldest) = self.open.pop_front()
            && oldest != thread.which
            && let Some(strand) = self.strands.get_mut(&oldest)
        {
            strand.park()?;
        }
        self.present = thread.which.clone();
        if !self.strands.contains_key(&thread.which) {
            self.begin(thread)?;
        }
        Ok(())
    }

    fn about(&mut self, about: About) -> Result<()> {
        self.strand()?.about.learn(about);
        Ok(())
    }

    fn item(&mut self, item: Item) -> Result<()> {
        let is_main = self.present == Which::Main;
        let going_on = matches!(self.mode, Mode::GoOn(_)) && !is_main;
        let strand = self.strand()?;
        if let Some(keys) = &mut strand.keys
            && !keys.insert(item.key().to_owned())
        {
            strand.pass_by(&item);
            return Ok(());
        }
        match &strand.state {
            State::Ignored => Ok(()),
            State::Comparing(_) => self.compare(item),
            State::Parked(_) if going_on && strand.keys.is_none() && !strand.changed => {
                if self.was_written(&item)? {
                    return self.stop(Stop::StartOver);
                }
                self.write(item)
            }
            State::Fresh(_) | State::Writing(..) | State::Parked(_) => self.write(item),
        }
    }

    fn back_to(&mut self, key: Option<&str>) -> Result<()> {
        let (shop, agent) = (self.shop, self.format.name());
        let strand = self.strand()?;
        match &mut strand.state {
            State::Ignored | State::Fresh(_) => return Ok(()),
            State::Comparing(comparing) => {
                if comparing.back_to(key) {
                    return Ok(());
                }
                // Behind what the session holds; else the two have parted.
                if !comparing.pending.is_empty() {
                    self.part()?;
                }
            }
            State::Writing(..) | State::Parked(_) => {}
        }
        let strand = self.strand()?;
        strand.open(shop, agent, None)?;
        strand.back_to(key)
    }
}
