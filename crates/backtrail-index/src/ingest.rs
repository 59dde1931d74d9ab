//! Reads new records of the trails once, for everything that is derived from them.

use std::collections::BTreeMap;

use backtrail::SessionId;

use crate::error::{Error, Result};
use crate::feed::{Sink, TrailPlace, feed};
use crate::index::{CatchUp, Index, Progress};
use crate::plan::{ChangedSession, Derived, Plan};

/// A pass over the new records.
pub(crate) struct Ingest<'a> {
    index: &'a Index,
    /// What is brought up to date, and what it must read.
    targets: Vec<(&'a mut dyn Derived, &'a Plan)>,
    done: u64,
    total: u64,
}

/// What targets want of a session or of a trail, by their positions.
type Wishes<'a, T> = Vec<(usize, &'a T)>;

impl<'a> Ingest<'a> {
    pub(crate) fn new(index: &'a Index, targets: Vec<(&'a mut dyn Derived, &'a Plan)>) -> Self {
        let total = targets.iter().map(|(_, plan)| plan.bytes).max();
        Self {
            index,
            targets,
            done: 0,
            total: total.unwrap_or(0),
        }
    }

    /// Reads everything new, session by session, and adds it to a report.
    pub(crate) fn run(mut self, report: &mut CatchUp) -> Result<()> {
        let mut sessions: BTreeMap<&str, Wishes<'_, ChangedSession>> = BTreeMap::new();
        let mut gone = 0;
        for (n, (target, plan)) in self.targets.iter_mut().enumerate() {
            target.start(plan)?;
            gone = gone.max(plan.gone.len());
            for changed in &plan.changed {
                let wishes = sessions.entry(changed.id.as_str()).or_default();
                wishes.push((n, changed));
            }
        }
        report.sessions += (gone + sessions.len()) as u64;
        self.tell();
        for wishes in sessions.into_values() {
            self.read_session(&wishes)?;
        }
        report.bytes += self.done;
        Ok(())
    }

    fn read_session(&mut self, wishes: &Wishes<'_, ChangedSession>) -> Result<()> {
        let Some((_, ChangedSession { id, .. })) = wishes.first() else {
            return Ok(());
        };
        for (n, changed) in wishes {
            self.targets[*n].0.session(changed)?;
        }
        match self.read_trails(id, wishes) {
            // It is listed as unreadable and hides no other session.
            Err(Error::Store(error)) => {
                let mut targets = self.targets.iter_mut();
                targets.try_for_each(|(target, _)| target.unreadable(id, &error))
            }
            read => read,
        }
    }

    fn read_trails(&mut self, id: &SessionId, wishes: &Wishes<'_, ChangedSession>) -> Result<()> {
        let reader = self.index.store.read_session(id)?;
        let mut trails: BTreeMap<u32, Wishes<'_, TrailPlace>> = BTreeMap::new();
        for (n, changed) in wishes {
            for place in &changed.places {
                trails
                    .entry(place.trail.number)
                    .or_default()
                    .push((*n, place));
            }
        }
        for places in trails.into_values() {
            let mut sinks: Vec<(TrailPlace, &mut dyn Sink)> = Vec::new();
            for (n, (target, _)) in self.targets.iter_mut().enumerate() {
                if let Some((_, place)) = places.iter().find(|(of, _)| *of == n) {
                    sinks.push(((*place).clone(), &mut **target));
                }
            }
            let (done, tell) = (self.done, teller(self.index, self.total));
            self.done += feed(&reader, &mut sinks, &|read| tell(done + read))?;
        }
        self.tell();
        Ok(())
    }

    fn tell(&self) {
        teller(self.index, self.total)(self.done);
    }
}

/// Returns what reports how many bytes of how many were read.
fn teller(index: &Index, total: u64) -> impl Fn(u64) {
    move |done| {
        if let Some(tell) = &index.options.progress {
            tell(Progress {
                done: done.min(total),
                total,
            });
        }
    }
}
