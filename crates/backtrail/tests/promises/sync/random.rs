//! Random work on two stores, with pushes and pulls both ways through a bad network: in the end
//! they are equal, or are told that they diverged, and nothing is lost.

use std::collections::BTreeSet;

use backtrail::replica::{PushOptions, Refusal, Replica};
use backtrail::{ErrorKind, ForkOptions, Message, Note, SessionId, SessionOptions};
use backtrail_testkit::ManualClock;
use backtrail_testkit::replica::{MemoryReplica, Mishaps, Unreliable};

use super::kit::{NOW, Side, assert_same, named, picture};
use crate::model::chance::Dice;

struct World {
    sides: [Side; 2],
    clock: ManualClock,
    there: Unreliable<MemoryReplica>,
    dice: Dice,
    sessions: BTreeSet<SessionId>,
    /// Every text that was acknowledged.
    said: Vec<String>,
    counts: [u64; 4],
}

impl World {
    fn new(seed: u64) -> Self {
        let clock = ManualClock::new(NOW);
        let there = MemoryReplica::new(clock.clone());
        Self {
            sides: [Side::new(seed * 2), Side::new(seed * 2 + 1)],
            there: Unreliable::new(there, seed, Mishaps::often()),
            clock,
            dice: Dice::new(seed),
            sessions: BTreeSet::new(),
            said: Vec::new(),
            counts: [0; 4],
        }
    }

    fn step(&mut self) {
        let side = self.dice.below(2) as usize;
        let known = self.sides[side].store.sessions().unwrap();
        let at = self.dice.below(known.len().max(1) as u64) as usize;
        let mut known = known;
        known.sort_unstable();
        let id = known.get(at).cloned();
        match (self.dice.below(100), id) {
            (0..4, _) | (_, None) => self.create(side),
            (4..8, Some(id)) => self.fork(side, &id),
            (8..45, Some(id)) => self.write(side, &id),
            (45..52, Some(id)) => {
                let title = format!("title {}", self.said.len());
                self.sides[side]
                    .store
                    .note(&id, &Note::new().title(title))
                    .unwrap();
            }
            (52..60, Some(id)) => self.move_chat(side, &id),
            (60..82, Some(id)) => self.push(side, &id),
            (_, Some(_)) => self.pull(side),
        }
        // Leases of pushes that were cut off run out.
        self.clock.advance(40_000);
    }

    fn create(&mut self, side: usize) {
        let created = self.sides[side].store.create_session(SessionOptions::new());
        self.sessions.insert(created.unwrap().id().clone());
    }

    fn fork(&mut self, side: usize, id: &SessionId) {
        let fork = self.sides[side].store.fork_session(id, &ForkOptions::new());
        self.sessions.insert(fork.unwrap().id().clone());
    }

    fn write(&mut self, side: usize, id: &SessionId) {
        let session = self.sides[side].store.open_session(id).unwrap();
        for _ in 0..=self.dice.below(3) {
            let text = format!("said {}", self.said.len());
            session.append(Message::user_text(text.as_str())).unwrap();
            self.said.push(text);
        }
        if self.dice.once_in(3) {
            session.append(picture(self.dice.below(200) as u8)).unwrap();
        }
        session.close().unwrap();
    }

    fn move_chat(&mut self, side: usize, id: &SessionId) {
        let session = self.sides[side].store.open_session(id).unwrap();
        let last = session.last_seq();
        match self.dice.below(3) {
            0 => drop(session.rewind_chat(self.dice.below(last + 1)).ok()),
            1 => drop(session.undo().ok()),
            _ => drop(session.redo().ok()),
        }
        session.close().unwrap();
    }

    fn push(&mut self, side: usize, id: &SessionId) {
        let transfer = self.sides[side].try_push(id, &self.there);
        self.count(named(transfer, id).err());
    }

    fn pull(&mut self, side: usize) {
        let ids: Vec<_> = self.sessions.iter().cloned().collect();
        let id = &ids[self.dice.below(ids.len() as u64) as usize];
        let before = self.sides[side].trails();
        let transfer = self.sides[side].try_pull(id, &self.there);
        self.count(named(transfer, id).err());
        // Nothing that was written is changed.
        let after = self.sides[side].trails();
        for (path, bytes) in before {
            assert!(after[&path].starts_with(&bytes), "{}", path.display());
        }
    }

    /// Counts an outcome, and checks that it is one of those that can be.
    fn count(&mut self, error: Option<backtrail::Error>) {
        let Some(error) = error else {
            self.counts[0] += 1;
            return;
        };
        match error.refusal() {
            Some(Refusal::Diverged { .. }) => self.counts[1] += 1,
            Some(Refusal::Ahead | Refusal::NotThere) => self.counts[2] += 1,
            _ if error.kind() == ErrorKind::Away => self.counts[3] += 1,
            Some(Refusal::Fenced(_) | Refusal::Held(_)) => self.counts[3] += 1,
            _ => panic!("{error:?}"),
        }
    }

    /// Pushes and pulls everything until nothing changes.
    fn settle(&mut self) {
        self.there.set(Mishaps::default());
        self.there.settle();
        for _ in 0..3 {
            self.clock.advance(60_000);
            let ids: Vec<_> = self.sessions.iter().cloned().collect();
            for id in &ids {
                for side in &self.sides {
                    side.try_push(id, &self.there);
                    side.try_pull(id, &self.there);
                }
            }
        }
    }

    /// Checks that each session is equal, or diverged; the latter are pushed as forks.
    fn check(&mut self) {
        let there: &dyn Replica = &self.there;
        let mut diverged = BTreeSet::new();
        for id in &self.sessions {
            for side in &self.sides {
                if side.store.read_session(id).is_err() {
                    // It continues one that diverged, and cannot be pushed as it is.
                    diverged.insert(id.clone());
                    continue;
                }
                match named(side.try_push(id, there), id) {
                    Ok(_) => {}
                    Err(error) => {
                        let refused = matches!(error.refusal(), Some(Refusal::Diverged { .. }));
                        assert!(refused, "{error:?}");
                        diverged.insert(id.clone());
                        let options = PushOptions::new("fork");
                        let pushed = side.store.push_as_fork(id, there, &options, &mut |_| {});
                        let pushed = pushed.unwrap();
                        assert_eq!(side.texts(&pushed.fork), side.texts(id));
                        pushed.transfer.check().unwrap();
                    }
                }
            }
        }
        let [a, b] = [0, 1].map(|side| {
            let mut files = self.sides[side].trails();
            files.retain(|path, _| {
                let id = path.parent().and_then(|dir| dir.file_name()?.to_str());
                let id: SessionId = id.unwrap().parse().unwrap();
                self.sessions.contains(&id) && !diverged.contains(&id)
            });
            files
        });
        assert_same(&a, &b);
        for side in &self.sides {
            side.verify();
        }
    }

    /// Checks that every text is in one of the stores.
    fn check_nothing_lost(&self) {
        let mut bytes = Vec::new();
        for side in &self.sides {
            for file in side.trails().into_values() {
                bytes.extend(file);
            }
        }
        let all = String::from_utf8(bytes).unwrap();
        for text in &self.said {
            assert!(all.contains(&format!("\"{text}\"")), "{text} is lost");
        }
    }
}

fn run(seed: u64, steps: u32) -> [u64; 4] {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step();
    }
    world.settle();
    world.check();
    world.check_nothing_lost();
    world.counts
}

#[test]
fn random_work_on_two_stores_ends_equal_or_told_that_it_diverged() {
    let seeds = std::env::var("BACKTRAIL_SYNC_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(30);
    let mut counts = [0; 4];
    for seed in 0..seeds {
        eprintln!("seed {seed}");
        let found = run(seed, 120);
        for (count, found) in counts.iter_mut().zip(found) {
            *count += found;
        }
    }
    eprintln!("done, diverged, ahead, away: {counts:?}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}
