//! Whatever happens to the disk during a compaction, the context is as before or as after
//! it, and nothing between (F5, F6, F22).

use backtrail::{Compaction, Durability, ErrorKind, Session, SessionId, Shape, Store};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage};

use super::{begin, contexts, play, store_on};
use crate::faults::{ERRORS, STOPS, ends};
use crate::kit::{EVERY_DURABILITY, End, Flaws, Kept};

/// A session on a disk that can fail, before it is compacted.
struct Case {
    memory: MemoryStorage,
    disk: FaultyStorage,
    store: Store,
    rotation: u64,
}

impl Case {
    fn new(memory: MemoryStorage, rotation: u64, count: Count) -> Self {
        let disk = FaultyStorage::new(memory.clone()).counting(count);
        Self {
            store: store_on(disk.clone(), rotation),
            memory,
            disk,
            rotation,
        }
    }

    fn contexts_after(&self, end: End, id: &SessionId) -> [String; 4] {
        let store = store_on(end.of(&self.memory), self.rotation);
        let session = store.open_session(id).unwrap();
        let report = session.reader().verify().unwrap();
        assert!(report.is_ok() || end.leaves() != Flaws::Unfinished);
        Shape::ALL.map(|shape| session.context(shape).unwrap().into_json())
    }
}

fn compaction() -> Compaction {
    Compaction::new("all that was said and done").keep(1)
}

/// Returns a durable session, and its context before and after.
fn rehearsed(rotation: u64) -> (MemoryStorage, SessionId, [[String; 4]; 2]) {
    let memory = MemoryStorage::new();
    let store = store_on(memory.clone(), rotation);
    let session = begin(&store);
    play(&session, "s u cA rA a *1 u a");
    let id = session.id().clone();
    session.close().unwrap();
    let memory = memory.crash(Loss::Nothing);
    let store = store_on(memory.kill(), rotation);
    let session = store.open_session(&id).unwrap();
    let before = contexts(&session);
    session.compact(&compaction()).unwrap();
    (memory, id, [before, contexts(&session)])
}

/// The result of a compaction.
struct Outcome<'a> {
    case: &'a Case,
    /// The operation of the fault.
    n: u64,
    id: &'a SessionId,
    /// Still open, unless opening failed.
    session: Option<Session>,
    /// Whether the compaction was acknowledged.
    done: bool,
    known: &'a [[String; 4]; 2],
}

/// Compacts with a fault at each operation in turn, from opening the session on, and
/// checks the result.
fn at_every_operation(
    rotation: u64,
    fault: Fault,
    count: Count,
    durability: Durability,
    check: impl Fn(Outcome<'_>),
) {
    let (memory, id, known) = rehearsed(rotation);
    for n in 0.. {
        let case = Case::new(memory.kill(), rotation, count);
        case.disk.arm(n, fault);
        let session = case.store.open_session_with(&id, durability).ok();
        let done = session
            .as_ref()
            .is_some_and(|session| session.compact(&compaction()).is_ok());
        let fired = case.disk.fired();
        case.disk.disarm();
        check(Outcome {
            case: &case,
            n,
            id: &id,
            session,
            done,
            known: &known,
        });
        if !fired {
            assert!(n > 8, "only {n} operations");
            assert!(done);
            break;
        }
    }
}

#[test]
fn f5_f6_a_stop_anywhere_leaves_the_context_from_before_or_after() {
    for (rotation, durability) in [u64::MAX, 1]
        .into_iter()
        .flat_map(|rotation| EVERY_DURABILITY.map(|durability| (rotation, durability)))
    {
        for fault in STOPS {
            at_every_operation(rotation, fault, Count::Writes, durability, |outcome| {
                let Outcome { n, done, .. } = outcome;
                let [before, after] = outcome.known;
                for end in ends(n) {
                    let found = outcome.case.contexts_after(end, outcome.id);
                    let must = done && end.keeps(durability) == Kept::Acknowledged;
                    let allowed = found == *after || !must && found == *before;
                    assert!(allowed, "{fault:?} at {n}, {end:?}: {}", found[0]);
                }
            });
        }
    }
}

/// F22: and a second attempt records it once.
#[test]
fn f22_after_an_error_a_second_try_compacts_once() {
    for rotation in [u64::MAX, 1] {
        for (fault, count) in ERRORS
            .map(|fault| (fault, Count::Writes))
            .into_iter()
            .chain([(ERRORS[0], Count::All)])
        {
            at_every_operation(rotation, fault, count, Durability::Record, |outcome| {
                let Outcome { n, done, .. } = outcome;
                drop(outcome.session);
                let [_, after] = outcome.known;
                let session = outcome.case.store.open_session(outcome.id).unwrap();
                let again = session.compact(&compaction().expect(8));
                match again {
                    Ok(_) => assert!(!done, "{fault:?} at {n}: twice"),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
                }
                assert_eq!(contexts(&session), *after, "{fault:?} at {n}");
                let stats = session.reader().stats().unwrap();
                assert_eq!(stats.compactions, 2);
                assert!(session.reader().verify().unwrap().is_ok());
            });
        }
    }
}
