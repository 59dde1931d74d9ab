//! A store and its sessions, each with its model.

use std::collections::HashSet;

use backtrail::{
    Durability, Session, SessionId, SessionOptions, SessionReader, Store, StoreOptions,
};
use backtrail_testkit::{FaultyStorage, ManualClock, MemoryStorage, SeededRandomness};

use super::chance::{Dice, Op, Plan, end, trouble};
use super::seen::{Seen, check_parts, check_spawned, told};
use super::state::{Known, Model, Origin};
use crate::kit::{Checked, End, ROOT};

/// How many sessions are used at a time.
const LIVE: usize = 4;
/// After how many operations the other sessions are checked.
const ROUND: usize = 50;

pub(crate) struct World {
    pub(super) memory: MemoryStorage,
    pub(super) disk: FaultyStorage,
    pub(super) store: Store,
    pub(super) durability: Durability,
    pub(super) rotation: u64,
    random: SeededRandomness,
    clock: ManualClock,
    /// Whether faults occur.
    troubled: bool,
    pub(crate) sessions: Vec<Kept>,
    /// Decides which parts of a history are checked.
    pub(super) dice: Dice,
    words: u64,
    /// What was done, to be shown by a failing test.
    pub(crate) script: Vec<String>,
    /// The file operations of the last deed.
    pub(crate) log: Vec<String>,
    /// How many deeds were hit by a fault, and how many of those had happened.
    pub(crate) hit: u64,
    pub(crate) happened: u64,
}

/// A session and its model.
pub(crate) struct Kept {
    pub(crate) id: SessionId,
    pub(crate) model: Model,
    pub(crate) handle: Option<Session>,
    /// Other possible states after a power cut that were not acknowledged.
    pub(super) doubts: Vec<Model>,
    rests: bool,
    /// Damaged by a power cut, after everything that was acknowledged.
    pub(super) spoiled: bool,
}

impl World {
    pub(crate) fn new(seed: u64, durability: Durability, troubled: bool) -> Checked<Self> {
        let mut dice = Dice::new(seed);
        let rotation = rotation(&mut dice);
        let parts = (
            SeededRandomness::new(seed),
            ManualClock::new(1_794_729_600_000),
        );
        Self::on(MemoryStorage::new(), parts, durability, rotation).map(|world| Self {
            troubled,
            dice,
            ..world
        })
    }

    fn on(
        memory: MemoryStorage,
        (random, clock): (SeededRandomness, ManualClock),
        durability: Durability,
        rotation: u64,
    ) -> Checked<Self> {
        let disk = FaultyStorage::new(memory.clone());
        let store = StoreOptions::new()
            .storage(disk.clone())
            .clock(clock.clone())
            .randomness(random.clone())
            .durability(durability)
            .rotation(rotation)
            .open_or_create(ROOT)
            .map_err(|e| told("open the store", &e))?;
        Ok(Self {
            memory,
            disk,
            store,
            durability,
            rotation,
            random,
            clock,
            troubled: false,
            sessions: Vec::new(),
            dice: Dice::new(0),
            words: 0,
            script: Vec::new(),
            log: Vec::new(),
            hit: 0,
            happened: 0,
        })
    }

    /// Returns a copy of the world on the current disk, with the sessions as they are and
    /// trails rotated at `rotation`.
    pub(crate) fn copy(&self, rotation: u64) -> Checked<Self> {
        let parts = (self.random.clone(), self.clock.clone());
        let mut copy = Self::on(self.memory.kill(), parts, self.durability, rotation)?;
        let sessions = self.sessions.iter();
        copy.sessions = sessions
            .map(|kept| Kept::of(kept.id.clone(), kept.model.clone(), None))
            .collect();
        copy.words = self.words;
        copy.troubled = true;
        Ok(copy)
    }

    pub(crate) fn step(&mut self, op: Op) -> Checked {
        let mut dice = Dice::new(op.seed);
        self.words += 1;
        if self.words.is_multiple_of(ROUND as u64) {
            self.check_others()?;
        }
        let n = self.choose(&mut dice)?;
        let word = format!("w{}", self.words);
        match op.plan {
            Plan::Begin => self.begin().map(drop),
            Plan::Stop => {
                let end = end(&mut dice);
                self.script.push(format!("{end:?}"));
                self.stop(end, rotation(&mut dice))
            }
            Plan::Close => self.close(n, dice.once_in(2)),
            plan => {
                let deed = plan.deed(&self.sessions[n].model, &word, &mut dice);
                let deed = deed.expect("all others are deeds");
                let troubled = self.troubled && dice.once_in(3);
                let trouble = troubled.then(|| trouble(&mut dice));
                let outside = dice.once_in(4);
                self.act(n, &deed, trouble, outside)
            }
        }
    }

    /// Chooses a session, creating one if there is none.
    fn choose(&mut self, dice: &mut Dice) -> Checked<usize> {
        let live = |world: &Self| -> Vec<usize> {
            let all = world.sessions.iter().enumerate();
            all.filter(|(_, kept)| !kept.rests)
                .map(|(n, _)| n)
                .collect()
        };
        while live(self).len() > LIVE {
            let among = live(self);
            let resting = among[dice.below(among.len() as u64) as usize];
            // Made durable, so that no power cut changes it.
            self.sessions[resting].handle = None;
            self.open(resting)?;
            self.sessions[resting].handle = None;
            self.sessions[resting].rests = true;
        }
        match live(self) {
            none if none.is_empty() => self.begin(),
            some => Ok(some[dice.below(some.len() as u64) as usize]),
        }
    }

    /// Creates a session and opens it for writing.
    pub(crate) fn begin(&mut self) -> Checked<usize> {
        let title = format!("title {}", self.words);
        let options = SessionOptions::new().title(title.as_str());
        let created = self.store.create_session(options);
        let session = created.map_err(|e| told("create", &e))?;
        let known = Known {
            title: Some(title),
            ..Known::default()
        };
        let model = Model::new(known, Origin::Nowhere);
        self.script.push("begin".to_owned());
        self.sessions
            .push(Kept::of(session.id().clone(), model, Some(session)));
        self.check(self.sessions.len() - 1)?;
        Ok(self.sessions.len() - 1)
    }

    fn close(&mut self, n: usize, properly: bool) -> Checked {
        self.script.push(format!("session {n}: close"));
        if let Some(session) = self.sessions[n].handle.take() {
            // A dropped session is left, too.
            if properly {
                session.close().map_err(|e| told("close", &e))?;
            }
            self.sessions[n].doubts.clear();
        }
        self.check(n)
    }

    /// Opens a session for writing.
    pub(crate) fn open(&mut self, n: usize) -> Checked {
        let kept = &mut self.sessions[n];
        if kept.handle.is_none() {
            let opened = self.store.open_session(&kept.id);
            kept.handle = Some(opened.map_err(|e| told("open", &e))?);
            kept.doubts.clear();
        }
        Ok(())
    }

    /// Ends the process or the machine, and checks what the next one finds.
    fn stop(&mut self, end: End, rotation: u64) -> Checked {
        self.restart(end, rotation)?;
        self.find_again(end, None)
    }

    /// Checks the sessions that were unused when the machine stopped.
    pub(super) fn find_again(&mut self, end: End, but: Option<usize>) -> Checked {
        for n in self.some().filter(|n| Some(*n) != but) {
            let model = self.sessions[n].model.clone();
            self.settle(n, vec![model], Some(end), false)?;
        }
        Ok(())
    }

    /// Returns the sessions in use, and one of the others.
    fn some(&mut self) -> impl Iterator<Item = usize> + use<> {
        let resting = self.dice.below(self.sessions.len().max(1) as u64) as usize;
        let mut some: Vec<usize> = (0..self.sessions.len()).collect();
        some.retain(|n| !self.sessions[*n].rests || *n == resting);
        some.into_iter()
    }

    pub(super) fn restart(&mut self, end: End, rotation: u64) -> Checked {
        let parts = (self.random.clone(), self.clock.clone());
        // The disk is copied before the handles are dropped, which sync it.
        let next = Self::on(end.of(&self.memory), parts, self.durability, rotation)?;
        for kept in &mut self.sessions {
            kept.handle = None;
        }
        (self.memory, self.disk, self.store) = (next.memory, next.disk, next.store);
        self.rotation = rotation;
        Ok(())
    }

    /// Returns how many operations were started.
    pub(crate) fn steps(&self) -> usize {
        self.words as usize
    }

    pub(crate) fn is_spoiled(&self, n: usize) -> bool {
        self.sessions[n].spoiled
    }

    pub(super) fn reader(&self, n: usize) -> Checked<SessionReader> {
        let id = &self.sessions[n].id;
        let opened = self.store.read_session(id);
        opened.map_err(|e| format!("session {n} is lost: {e:?}"))
    }

    pub(super) fn exist(&self) -> Checked<HashSet<SessionId>> {
        let all = self.store.sessions().map_err(|e| told("sessions", &e))?;
        Ok(all.into_iter().collect())
    }

    /// Checks that a session matches its model.
    pub(crate) fn check(&mut self, n: usize) -> Checked {
        let kept = &self.sessions[n];
        if kept.spoiled {
            return Ok(());
        }
        let reader = self.reader(n)?;
        let seen = Seen::read(&reader)?;
        // Unsynced data can be torn without any other fault.
        let torn = self.troubled || self.durability == Durability::Os;
        if seen.damaged || (seen.unfinished && !torn) {
            return Err("reading passed over damage".to_owned());
        }
        seen.check(&kept.model)?;
        self.check_rest(n, &reader)?;
        self.sessions[n].model.take_times(&seen.steps);
        Ok(())
    }

    pub(super) fn check_rest(&mut self, n: usize, reader: &SessionReader) -> Checked {
        let model = &self.sessions[n].model;
        if !self.sessions[n].spoiled && self.dice.once_in(3) {
            check_parts(reader, model, &mut self.dice)?;
        }
        if model.spawned().next().is_some() {
            check_spawned(reader, model, &self.exist()?)?;
        }
        Ok(())
    }

    /// Checks the sessions that were not used lately.
    fn check_others(&mut self) -> Checked {
        self.some().try_for_each(|n| {
            self.check(n)
                .map_err(|wrong| format!("session {n}: {wrong}"))
        })
    }

    /// Checks that everything is in order at the end.
    pub(crate) fn finish(&mut self) -> Checked {
        let known: HashSet<_> = self.sessions.iter().map(|kept| kept.id.clone()).collect();
        if self.exist()? != known {
            return Err("there are other sessions than were begun".to_owned());
        }
        for n in 0..self.sessions.len() {
            if self.sessions[n].spoiled {
                continue;
            }
            self.open(n)?;
            self.sessions[n].handle = None;
            self.check(n)?;
            let report = self.reader(n)?.verify().map_err(|e| told("verify", &e))?;
            if let Some(damage) = report.damage.first().first() {
                return Err(format!("session {n}: verify says {damage}"));
            }
        }
        Ok(())
    }
}

impl Kept {
    pub(super) fn of(id: SessionId, model: Model, handle: Option<Session>) -> Self {
        Self {
            id,
            model,
            handle,
            doubts: Vec::new(),
            rests: false,
            spoiled: false,
        }
    }

    pub(super) fn spoil(&mut self) {
        self.spoiled = true;
        self.rests = true;
        self.handle = None;
    }
}

fn rotation(dice: &mut Dice) -> u64 {
    dice.pick([1, 400, 900, 3_000, u64::MAX])
}
