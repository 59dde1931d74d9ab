//! A deed, performed in a session and in its model: do they agree on the result?

use backtrail::{Durability, Session, SessionId};
use backtrail_testkit::{Fault, Loss, When};

use super::chance::Trouble;
use super::perform::{Performed, refusals};
use super::seen::{Seen, last_spawned, told};
use super::state::{Answer, Deed, Model, Origin};
use super::world::{Kept, World};
use crate::kit::{Checked, End};

impl World {
    /// Performs a deed in a session and checks that the model predicted it. If a fault
    /// made it fail, it either happened or did not.
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
        let failed = self.judge(&done, &expected, trouble)?;
        let begun = done.child.as_ref().map(|child| child.id().clone());
        let stopped = trouble.filter(|_| self.disk.crashed());
        let stopped = stopped.map(|trouble| trouble.end);
        match stopped {
            Some(end) => self.restart(end, self.rotation)?,
            None if failed => self.look_after_failure(n, deed)?,
            None => self.look_at_handle(n, deed, &done, after.last())?,
        }
        let named = || last_spawned(&self.reader(n).ok()?);
        if let Some(id) = begun.clone().or_else(named) {
            after.name_spawned(&id);
        }
        let durable = self.is_durable(&expected, deed);
        let may = match failed {
            true => either(&before, &after, deed, &done.acknowledged),
            false => vec![after],
        };
        if !durable && !failed {
            self.sessions[n].doubts.extend(halfway(&before, deed));
        }
        self.settle(n, may, stopped, durable)?;
        if let Some(end) = stopped {
            self.find_again(end, Some(n))?;
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

    /// Compares answers, and returns whether the deed failed because of a fault.
    fn judge(
        &mut self,
        done: &Performed,
        expected: &Answer,
        trouble: Option<Trouble>,
    ) -> Checked<bool> {
        let full = trouble.is_some_and(|trouble| trouble.space.is_some());
        let hit = self.disk.fired() || (full && done.answer.is_err());
        self.hit += u64::from(hit);
        self.log = self.disk.log();
        match &done.answer {
            Ok(answer) if answer == expected => Ok(false),
            Err(error) if *expected == Answer::Refused(error.kind()) => Ok(false),
            Err(_) if hit => Ok(true),
            other => Err(format!("{other:?}, not {expected:?}")),
        }
    }

    /// Checks the handle after a successful deed.
    fn look_at_handle(&mut self, n: usize, deed: &Deed, done: &Performed, last: u64) -> Checked {
        self.work_again();
        if let Some(trail) = done.trail {
            let info = self.reader(n)?.info().map_err(|e| told("info", &e))?;
            if trail + 1 != info.trails {
                return Err(format!("{trail} of {} trails is new", info.trails));
            }
        }
        match &self.sessions[n].handle {
            Some(session) if deed.is_spoken() && session.last_seq() != last => {
                Err(format!("last_seq is {}, not {last}", session.last_seq()))
            }
            _ => Ok(()),
        }
    }

    /// Checks the handle after a deed that failed on a running machine.
    fn look_after_failure(&mut self, n: usize, deed: &Deed) -> Checked {
        self.work_again();
        let kept = &mut self.sessions[n];
        let Some(session) = &kept.handle else {
            return Ok(());
        };
        let unsynced = |line: &String| line.starts_with("sync 0") && line.contains("<- Error");
        if session.stopped().is_some() {
            // Nothing is acknowledged until it is opened again.
            refusals(session).ok_or("a handle does something after a failed sync")?;
            kept.handle = None;
        } else if deed.is_spoken() && self.log.iter().any(unsynced) {
            return Err("a handle goes on after a failed sync".to_owned());
        } else if self.dice.once_in(2) {
            kept.handle = None;
        }
        Ok(())
    }

    /// Lets the disk work again.
    fn work_again(&mut self) {
        self.disk.disarm();
        self.memory.set_space(None);
    }

    /// Returns whether an answer means that a record, and everything before it, is
    /// durable now.
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

    /// Finds out which of several models a session matches, after a deed and after the
    /// machine stopped, if it did.
    pub(super) fn settle(
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
                // Any unsynced data may be missing.
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

    /// Records the session that a deed began, or may have begun.
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
}

/// Returns what a deed without a sync may leave after a power cut.
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

/// Returns what a session may be after a failed deed: as before, or as after it. Of
/// several messages, any may be there, and the acknowledged ones are.
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
    // A fully acknowledged batch looks the same as one that is not.
    may.push(may.last().unwrap_or(before).clone());
    may
}

fn describe(n: usize, deed: &Deed, trouble: Option<Trouble>) -> String {
    match trouble {
        Some(trouble) => format!("session {n}: {deed:?} with {trouble:?}"),
        None => format!("session {n}: {deed:?}"),
    }
}
