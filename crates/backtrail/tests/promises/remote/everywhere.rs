//! Whatever fails on the way and on the disk, what was acknowledged is at the remote, once.

use backtrail::replica::WhenAway;
use backtrail::{
    Compaction, Error, ErrorKind, LocalStorage, Note, Result, Session, SessionId, SessionOptions,
    Storage,
};
use backtrail_testkit::{Fault, FaultyStorage, Loss, MemoryStorage, When};

use super::kit::{Machine, ROOT, Wire, WireFault, options, same_there, texts, there, user};

/// A trail is full after a few records.
const ROTATION: u64 = 1500;

const WIRE_FAULTS: [WireFault; 4] = [
    WireFault::RequestLost,
    WireFault::AnswerLost,
    WireFault::AwayFrom,
    WireFault::AnswerLostThenAway,
];

/// A session's life, and what was acknowledged in it.
struct Life<'a, S> {
    machine: &'a Machine<S>,
    wire: &'a Wire,
    /// The texts of messages that were acknowledged.
    acknowledged: Vec<String>,
    /// Whether failures are those of the way alone, and are mended.
    mends: bool,
}

impl<S: Storage + Clone> Life<'_, S> {
    /// Checks that what is acknowledged is there. After a failure of the way, the way is mended
    /// and the session catches up.
    fn done<T>(&mut self, session: &Session, outcome: Result<T>) -> Result<()> {
        match outcome {
            Ok(_) if self.mends => same_there(self.machine, self.wire, session.id()),
            Ok(_) => {}
            Err(error) if self.mends => {
                assert_eq!(error.kind(), ErrorKind::Away, "{error:?}");
                self.wire.set_away(false);
                session.acknowledge().unwrap();
                same_there(self.machine, self.wire, session.id());
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn say(&mut self, session: &Session, text: &str) -> Result<()> {
        let outcome = session.append(user(text));
        self.done(session, outcome)?;
        self.acknowledged.push(text.to_owned());
        Ok(())
    }

    fn open<T>(&self, open: impl Fn() -> Result<T>) -> Result<T> {
        match open() {
            Err(error) if self.mends => {
                assert_eq!(error.kind(), ErrorKind::Away, "{error:?}");
                self.wire.set_away(false);
                open()
            }
            opened => opened,
        }
    }

    fn live(&mut self) -> (Option<SessionId>, Option<Error>) {
        let store = &self.machine.store;
        let created = self.open(|| store.create_session(SessionOptions::new().title("it")));
        let session = match created {
            Ok(session) => session,
            Err(error) => return (None, Some(error)),
        };
        let id = session.id().clone();
        let lived = self.live_on(session);
        (Some(id), lived.err())
    }

    fn live_on(&mut self, session: Session) -> Result<()> {
        let store = &self.machine.store;
        self.say(&session, "one")?;
        self.say(&session, &"x".repeat((1 << 20) + 100))?;
        store.note(session.id(), &Note::new().title("another process"))?;
        self.say(&session, "two")?;
        let compacted = session.compact(&Compaction::new("so far").keep(1));
        self.done(&session, compacted)?;
        let moved = session.rewind_chat(3);
        self.done(&session, moved)?;
        self.say(&session, "three")?;
        let noted = session.note(&Note::new().title("our own"));
        self.done(&session, noted)?;
        let undone = session.undo();
        self.done(&session, undone)?;
        for text in ["four", "five", "six"] {
            self.say(&session, text)?;
        }
        let batch = session.append_batch([user("seven"), user("eight")]);
        for outcome in batch {
            self.done(&session, outcome)?;
        }
        let id = session.id().clone();
        let closed = session.close();
        if !self.mends {
            closed?;
        }
        if self.mends {
            self.wire.set_away(false);
        }
        let session = self.open(|| store.open_session(&id))?;
        self.say(&session, "nine")
    }
}

fn life<'a, S>(machine: &'a Machine<S>, wire: &'a Wire, mends: bool) -> Life<'a, S> {
    Life {
        machine,
        wire,
        acknowledged: Vec::new(),
        mends,
    }
}

fn at_every_call<S: Storage + Clone>(machine: impl Fn(&Wire) -> Machine<S>) {
    for fault in WIRE_FAULTS {
        for call in 0.. {
            let wire = Wire::new();
            let machine = machine(&wire);
            wire.arm(call, fault);
            let mut life = life(&machine, &wire, true);
            let (id, error) = life.live();
            let id = id.unwrap();
            assert!(error.is_none(), "{error:?}");
            same_there(&machine, &wire, &id);
            let all: String = there(&wire, &id)
                .into_iter()
                .map(|(_, lines)| lines)
                .collect();
            for text in ["one", "two", "three", "four", "nine"] {
                let said = format!("\"text\":\"{text}\"");
                assert_eq!(all.matches(&said).count(), 1, "{text}, {fault:?} at {call}");
            }
            if !wire.fired() {
                assert!(call > 10, "only {call} calls");
                break;
            }
        }
    }
}

#[test]
fn acknowledged_means_there_whatever_call_fails() {
    at_every_call(|wire| {
        let disk = MemoryStorage::new();
        let options = options(wire, "a", WhenAway::Fail).rotation(ROTATION);
        Machine::on(disk.clone(), ROOT.into(), options.storage(disk))
    });
}

#[test]
fn acknowledged_means_there_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    at_every_call(|wire| {
        count.set(count.get() + 1);
        let options = options(wire, "a", WhenAway::Fail).rotation(ROTATION);
        let root = dir.path().join(format!("store-{}", count.get()));
        Machine::on(LocalStorage, root, options)
    });
}

/// The machine stops at every operation of its disk, and loses what was not synced or keeps it.
/// It restarts, and everything that it acknowledged is there and here.
#[test]
fn acknowledged_means_there_wherever_the_machine_stops() {
    for (when, loss) in [
        (When::Before, Loss::Unsynced),
        (When::Before, Loss::Nothing),
        (When::After, Loss::Unsynced),
        (When::After, Loss::Shuffled { seed: 5 }),
    ] {
        for operation in 0.. {
            if !stops_at(operation, when, loss) {
                assert!(operation > 50);
                break;
            }
        }
    }
}

/// Returns whether the operation was reached.
fn stops_at(operation: u64, when: When, loss: Loss) -> bool {
    let wire = Wire::new();
    let memory = MemoryStorage::new();
    let disk = FaultyStorage::new(memory.clone());
    let settings = || options(&wire, "a", WhenAway::Fail).rotation(ROTATION);
    let machine = Machine::on(disk.clone(), ROOT.into(), settings().storage(disk.clone()));
    disk.arm(operation, Fault::Crash { when });
    let mut life = life(&machine, &wire, false);
    let (id, _) = life.live();
    let Some(id) = &id else {
        return disk.fired();
    };
    let all: String = there(&wire, id)
        .into_iter()
        .map(|(_, lines)| lines)
        .collect();
    for text in &life.acknowledged {
        let is_there = text.len() > 1000 || all.contains(&format!("\"{text}\""));
        assert!(is_there, "{text} is lost there, {when:?} {operation}");
    }
    let after = memory.crash(loss);
    let restarted = Machine::on(after.clone(), ROOT.into(), settings().storage(after));
    let session = restarted.store.open_session(id).unwrap();
    session.append(user("after it")).unwrap();
    same_there(&restarted, &wire, id);
    texts(&restarted.store, id);
    disk.fired()
}
