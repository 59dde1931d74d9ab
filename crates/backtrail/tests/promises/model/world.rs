//! A store and its sessions, each beside what the model says of it.

use std::collections::HashSet;

use backtrail::{
    Durability, Session, SessionId, SessionOptions, SessionReader, Store, StoreOptions,
};
use backtrail_testkit::{Fault, FaultyStorage, Loss, ManualClock, MemoryStorage};
use backtrail_testkit::{SeededRandomness, When};

use super::chance::{Dice, Op, Plan, Trouble, end, trouble};
use super::perform::{Performed, refusals};
use super::seen::{Seen, check_parts, check_spawned, last_spawned, told};
use super::state::{Answer, Deed, Known, Model, Origin};
use crate::kit::{Checked, End, ROOT};

/// How many sessions are used at a time.
const LIVE: usize = 4;
/// After how many operations the other sessions are looked at.
const ROUND: usize = 50;

pub(crate) struct World {
    memory: MemoryStorage,
    disk: FaultyStorage,
    store: Store,
    durability: Durability,
    rotation: u64,
    random: SeededRandomness,
    clock: ManualClock,
    /// Whether things go wrong.
    troubled: bool,
    pub(crate) sessions: Vec<Kept>,
    /// Decides which parts of a history are looked at.
    dice: Dice,
    words: u64,
    /// What was done, for a failing test to tell.
    pub(crate) script: Vec<String>,
    /// The file operations of the last deed.
    pub(crate) log: Vec<String>,
    /// How many deeds were hit by trouble, and how many of those had happened.
    pub(crate) hit: u64,
    pub(crate) happened: u64,
}

/// A session and its model.
pub(crate) struct Kept {
    pub(crate) id: SessionId,
    pub(crate) model: Model,
    pub(crate) handle: Option<Session>,
    /// What a power cut may lead to instead: nobody was told of the difference.
    doubts: Vec<Model>,
    rests: bool,
    /// Damaged by a power cut, behind all that was acknowledged.
    spoiled: bool,
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

    /// Returns a world of its own on what is on the disk now, with the sessions as
    /// they are, where trails are full past `rotation`.
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

    /// Chooses a session to do something in, and begins one where there is none.
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
            // Durable as it is, so that no power cut changes it.
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

    /// Begins a session and speaks in it.
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
            // What is dropped is left, too.
            if properly {
                session.close().map_err(|e| told("close", &e))?;
            }
            self.sessions[n].doubts.clear();
        }
        self.check(n)
    }

    /// Speaks in a session from now on.
    pub(crate) fn open(&mut self, n: usize) -> Checked {
        let kept = &mut self.sessions[n];
        if kept.handle.is_none() {
            let opened = self.store.open_session(&kept.id);
            kept.handle = Some(opened.map_err(|e| told("open", &e))?);
            kept.doubts.clear();
        }
        Ok(())
    }

    /// Ends the process or the machine, and looks at what the next one finds.
    fn stop(&mut self, end: End, rotation: u64) -> Checked {
        self.restart(end, rotation)?;
        self.find_again(end, None)
    }

    /// Looks for the sessions that nothing was done in when the machine stopped.
    fn find_again(&mut self, end: End, but: Option<usize>) -> Checked {
        for n in self.some().filter(|n| Some(*n) != but) {
            let model = self.sessions[n].model.clone();
            self.settle(n, vec![model], Some(end), false)?;
        }
        Ok(())
    }

    /// Returns the sessions that are used, and one of those that rest.
    fn some(&mut self) -> impl Iterator<Item = usize> + use<> {
        let resting = self.dice.below(self.sessions.len().max(1) as u64) as usize;
        let mut some: Vec<usize> = (0..self.sessions.len()).collect();
        some.retain(|n| !self.sessions[*n].rests || *n == resting);
        some.into_iter()
    }

    fn restart(&mut self, end: End, rotation: u64) -> Checked {
        let parts = (self.random.clone(), self.clock.clone());
        // What is there is taken before the handles go, which sync it.
        let next = Self::on(end.of(&self.memory), parts, self.durability, rotation)?;
        for kept in &mut self.sessions {
            kept.handle = None;
        }
        (self.memory, self.disk, self.store) = (next.memory, next.disk, next.store);
        self.rotation = rotation;
        Ok(())
    }

    /// Does something in a session, and checks that the model foresaw it. Where
    /// trouble made it fail, it happened or it did not.
    pub(crate) fn act(
        &mut self,
        n: usize,
        deed: &Deed,
        trouble: Option<Trouble>,
        outside: bool,
    ) -> Checked {
        let before = self.sessions[n].model.clone();
        let mut after = before.clone();
        let (expected, child) = after.act(&self.sessions[n].id, deed);
        self.script.push(describe(n, deed, trouble));
        let done = self.perform(n, deed, trouble, outside);
        let full = trouble.is_some_and(|trouble| trouble.space.is_some());
        let hit = self.disk.fired() || (full && done.answer.is_err());
        self.log = self.disk.log();
        let failed = match &done.answer {
            Ok(answer) if *answer == expected => false,
            Err(error) if expected == Answer::Refused(error.kind()) => false,
            Err(_) if hit => true,
            other => return Err(format!("{other:?}, not {expected:?}")),
        };
        self.hit += u64::from(hit);
        let begun = done.child.as_ref().map(|child| child.id().clone());
        let stopped = trouble.filter(|_| self.disk.crashed());
        match stopped {
            Some(trouble) => self.restart(trouble.end, self.rotation)?,
            None => self.after_deed(n, deed, &done, failed)?,
        }
        if let Some(id) = begun
            .clone()
            .or_else(|| last_spawned(&self.reader(n).ok()?))
        {
            after.name_spawned(&id);
        }
        let may = match failed {
            true => either(&before, &after, deed, &done.acknowledged),
            false => vec![after],
        };
        let durable = self.is_durable(&expected, deed);
        if !durable && !failed {
            self.sessions[n].doubts.extend(halfway(&before, deed));
        }
        let end = stopped.map(|trouble| trouble.end);
        self.settle(n, may, end, durable)?;
        if let Some(trouble) = stopped {
            self.find_again(trouble.end, Some(n))?;
        }
        let handle = done.child.filter(|_| stopped.is_none());
        match child {
            Some(model) => self.adopt(n, model, begun, handle, failed),
            None => Ok(()),
        }
    }

    fn perform(
        &mut self,
        n: usize,
        deed: &Deed,
        trouble: Option<Trouble>,
        outside: bool,
    ) -> Performed {
        if let Some(trouble) = trouble {
            self.disk = self.disk.clone().counting(trouble.count);
            self.disk.arm(trouble.n, trouble.fault);
            self.memory.set_space(trouble.space);
        } else {
            self.disk.arm(u64::MAX, Fault::Crash { when: When::Before });
        }
        let kept = &mut self.sessions[n];
        if !deed.is_spoken() && (outside || kept.handle.is_none()) {
            return deed.perform_outside(&self.store, &kept.id);
        }
        if kept.handle.is_none() {
            match self.store.open_session(&kept.id) {
                Ok(session) => kept.handle = Some(session),
                Err(error) => return Performed::of(Err(error)),
            }
            kept.doubts.clear();
        }
        let session = kept.handle.as_ref().expect("it was just opened");
        deed.perform(session)
    }

    /// Looks at the handle after a deed on a machine that still runs.
    fn after_deed(&mut self, n: usize, deed: &Deed, done: &Performed, failed: bool) -> Checked {
        self.disk.disarm();
        self.memory.set_space(None);
        if let Some(trail) = done.trail {
            let info = self.reader(n)?.info().map_err(|e| told("info", &e))?;
            if info.trails != trail + 1 {
                return Err(format!(
                    "trail {trail} of {} is said to be new",
                    info.trails
                ));
            }
        }
        let kept = &mut self.sessions[n];
        let Some(session) = &kept.handle else {
            return Ok(());
        };
        if !failed {
            return Ok(());
        }
        let unsynced = |line: &String| line.starts_with("sync 0") && line.contains("<- Error");
        if session.stopped().is_some() {
            // Nothing more is acknowledged until it is opened again.
            refusals(session).ok_or("a handle does something after a failed sync")?;
            kept.handle = None;
        } else if deed.is_spoken() && self.log.iter().any(unsynced) {
            return Err("a handle goes on after a failed sync".to_owned());
        } else if self.dice.once_in(2) {
            kept.handle = None;
        }
        Ok(())
    }

    /// Returns whether an answer says that something is durable now, and so all
    /// before it.
    fn is_durable(&self, answer: &Answer, deed: &Deed) -> bool {
        match (answer, deed) {
            (_, Deed::Say { .. } | Deed::Batch(_) | Deed::Compact { .. })
                if self.durability == Durability::Os =>
            {
                false
            }
            // A fork writes nothing to the session that it forks.
            (Answer::Begun, Deed::Fork { .. }) => false,
            (Answer::Moved(None) | Answer::Refused(_), _) => false,
            _ => true,
        }
    }

    /// Finds out which of several models a session is as, after a deed and after
    /// the machine stopped, if it did.
    fn settle(
        &mut self,
        n: usize,
        mut may: Vec<Model>,
        end: Option<End>,
        durable: bool,
    ) -> Checked {
        let kept = &self.sessions[n];
        if kept.spoiled {
            return Ok(());
        }
        let failed = may.len() > 1;
        if let Some(End::Power(_)) = end
            && (failed || !durable)
        {
            may.extend(kept.doubts.iter().cloned());
        }
        let reader = self.reader(n)?;
        let seen = Seen::read(&reader)?;
        let shuffled = matches!(end, Some(End::Power(Loss::Shuffled { .. })));
        if seen.damaged && !shuffled {
            return Err("reading passed over damage".to_owned());
        }
        let verdicts: Vec<Checked> = may.iter().map(|model| seen.check(model)).collect();
        let Some(found) = verdicts.iter().position(Result::is_ok) else {
            if shuffled && self.durability == Durability::Os {
                // Anything that nobody synced may be gone from among the rest.
                self.sessions[n].spoil();
                return Ok(());
            }
            let wrong: Vec<String> = verdicts.into_iter().filter_map(Result::err).collect();
            return Err(format!("session {n}: {}", wrong.join("\n or ")));
        };
        let kept = &mut self.sessions[n];
        kept.model = may[found].clone();
        kept.model.take_times(&seen.steps);
        if shuffled && (seen.damaged || seen.unfinished) {
            kept.spoil();
        }
        self.check_rest(n, &reader)?;
        self.happened += u64::from(failed && found > 0);
        let kept = &mut self.sessions[n];
        if matches!(end, Some(End::Power(_))) || (durable && !failed) {
            kept.doubts.clear();
        } else if failed {
            kept.doubts.append(&mut may);
        }
        Ok(())
    }

    /// Takes in the session that a deed began, or may have begun.
    fn adopt(
        &mut self,
        parent: usize,
        model: Model,
        begun: Option<SessionId>,
        handle: Option<Session>,
        failed: bool,
    ) -> Checked {
        let mut new = self.exist()?;
        for kept in &self.sessions {
            new.remove(&kept.id);
        }
        let new: Vec<SessionId> = new.into_iter().collect();
        let id = match (&begun, &new[..]) {
            (Some(id), [one]) if id == one => id.clone(),
            (None, [one]) if failed => one.clone(),
            (None, []) if failed => return Ok(()),
            _ => return Err(format!("{begun:?} was begun, and there is {new:?}")),
        };
        let caller = &self.sessions[parent].model;
        if matches!(model.origin, Origin::Call(..)) && caller.spawned().last() != Some(&id) {
            return Err(format!("session {id} was begun by nobody"));
        }
        self.sessions.push(Kept::of(id, model, handle));
        let n = self.sessions.len() - 1;
        self.open(n)?;
        self.check(n)
    }

    /// Returns how many operations were begun.
    pub(crate) fn steps(&self) -> usize {
        self.words as usize
    }

    pub(crate) fn is_spoiled(&self, n: usize) -> bool {
        self.sessions[n].spoiled
    }

    fn reader(&self, n: usize) -> Checked<SessionReader> {
        let id = &self.sessions[n].id;
        let opened = self.store.read_session(id);
        opened.map_err(|e| format!("session {n} is lost: {e:?}"))
    }

    fn exist(&self) -> Checked<HashSet<SessionId>> {
        let all = self.store.sessions().map_err(|e| told("sessions", &e))?;
        Ok(all.into_iter().collect())
    }

    /// Checks that a session is as its model says.
    pub(crate) fn check(&mut self, n: usize) -> Checked {
        let kept = &self.sessions[n];
        if kept.spoiled {
            return Ok(());
        }
        let reader = self.reader(n)?;
        let seen = Seen::read(&reader)?;
        if seen.damaged || (seen.unfinished && !self.troubled) {
            return Err("reading passed over damage".to_owned());
        }
        seen.check(&kept.model)?;
        self.check_rest(n, &reader)?;
        self.sessions[n].model.take_times(&seen.steps);
        Ok(())
    }

    fn check_rest(&mut self, n: usize, reader: &SessionReader) -> Checked {
        let model = &self.sessions[n].model;
        if !self.sessions[n].spoiled && self.dice.once_in(3) {
            check_parts(reader, model, &mut self.dice)?;
        }
        if model.spawned().next().is_some() {
            check_spawned(reader, model, &self.exist()?)?;
        }
        Ok(())
    }

    /// Checks the sessions that nothing was done in lately.
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
    fn of(id: SessionId, model: Model, handle: Option<Session>) -> Self {
        Self {
            id,
            model,
            handle,
            doubts: Vec::new(),
            rests: false,
            spoiled: false,
        }
    }

    fn spoil(&mut self) {
        self.spoiled = true;
        self.rests = true;
        self.handle = None;
    }
}

/// Returns what a deed that is done without a sync may leave after a power cut.
fn halfway(before: &Model, deed: &Deed) -> Vec<Model> {
    let mut all = vec![before.clone()];
    if let Deed::Batch(said) = deed {
        for (talk, word) in said {
            let mut next = all.last().expect("one is there").clone();
            next.say(talk, word);
            all.push(next);
        }
    }
    all
}

/// Returns what a session may be like after a deed that failed: as before, or as
/// after it. Of several messages, any may be there, and those acknowledged are.
fn either(before: &Model, after: &Model, deed: &Deed, acknowledged: &[Option<u64>]) -> Vec<Model> {
    let Deed::Batch(all) = deed else {
        return vec![before.clone(), after.clone()];
    };
    let mut may = vec![before.clone()];
    for ((talk, word), seq) in all.iter().zip(acknowledged) {
        let with = may.iter().cloned().filter_map(|mut model| {
            let given = model.say(talk, word);
            seq.is_none_or(|seq| seq == given).then_some(model)
        });
        let with: Vec<Model> = with.collect();
        if seq.is_some() {
            may.clear();
        }
        may.extend(with);
    }
    // One that is acknowledged in all is not told from one that is not.
    may.push(may.last().unwrap_or(before).clone());
    may
}

fn rotation(dice: &mut Dice) -> u64 {
    dice.pick([1, 400, 900, 3_000, u64::MAX])
}

fn describe(n: usize, deed: &Deed, trouble: Option<Trouble>) -> String {
    match trouble {
        Some(trouble) => format!("session {n}: {deed:?} with {trouble:?}"),
        None => format!("session {n}: {deed:?}"),
    }
}
