//! A13: with a keep count, older trails that are wholly before the last compaction go to
//! the trash, and the history says where it begins.

use backtrail::trash::{EmptyOptions, TrashKind};
use backtrail::verify::GapReason;
use backtrail::{
    Compaction, ForkOptions, Message, Result, Session, SessionId, SessionOptions, SessionReader,
    Shape, Store,
};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage, When};

use super::{HOME, fork, options, said};

const ROTATION: u64 = 1200;

fn store(storage: impl backtrail::Storage) -> Store {
    let options = options(storage).rotation(ROTATION).keep_trails(2);
    options.open_or_create(HOME).unwrap()
}

fn text(n: usize) -> String {
    format!("message {n} {}", "x".repeat(200))
}

/// Appends many messages, with instructions first.
fn talk(session: &Session, range: std::ops::Range<usize>) -> Result<()> {
    for n in range {
        session.append(Message::user_text(text(n)))?;
    }
    Ok(())
}

fn begin(store: &Store) -> SessionId {
    let session = store
        .create_session(SessionOptions::new().title("long"))
        .unwrap();
    session.append(Message::system_text("be brief")).unwrap();
    talk(&session, 0..20).unwrap();
    session.close().unwrap();
    session_id(store)
}

fn session_id(store: &Store) -> SessionId {
    store.resolve("latest").unwrap()
}

fn trails(store: &Store, id: &SessionId) -> u32 {
    store.read_session(id).unwrap().info().unwrap().trails
}

fn context(store: &Store, id: &SessionId) -> String {
    let reader = store.read_session(id).unwrap();
    reader
        .context(Shape::Anthropic)
        .unwrap()
        .as_json()
        .to_owned()
}

/// Compacts, and appends enough for a rotation.
fn compact_and_rotate(store: &Store, id: &SessionId) -> Result<()> {
    let session = store.open_session(id)?;
    session.compact(&Compaction::new("so far so good").keep(2))?;
    talk(&session, 20..26)?;
    session.close()
}

#[test]
fn a13_without_a_compaction_nothing_goes() {
    let memory = MemoryStorage::new();
    let store = store(memory);
    let id = begin(&store);
    assert!(trails(&store, &id) > 4);
    assert!(store.trash().unwrap().entries.is_empty());
}

#[test]
fn a13_older_trails_go_to_the_trash_and_history_says_where_it_begins() {
    let memory = MemoryStorage::new();
    let store = store(memory.clone());
    let id = begin(&store);
    let reader = store.read_session(&id).unwrap();
    let (many, created) = (trails(&store, &id), reader.info().unwrap().created_at);
    compact_and_rotate(&store, &id).unwrap();
    let all: Vec<String> = (0..26).map(text).collect();
    let contents = store.trash().unwrap();
    let [entry] = contents.entries.as_slice() else {
        panic!("{contents:?}");
    };
    assert_eq!((&entry.name.id, entry.name.kind), (&id, TrashKind::Trails));
    assert!(trails(&store, &id) < many);
    // As long as they are in the trash they are read: nothing changes.
    let told = said(&reader);
    assert_eq!(told[0], "be brief");
    assert_eq!(told[1..], all);
    let gaps = reader.gaps().unwrap();
    let [gap] = gaps.as_slice() else {
        panic!("{gaps:?}");
    };
    assert_eq!(gap.reason, GapReason::InTrash);
    assert!(reader.verify().unwrap().is_ok());
    let before = context(&store, &id);
    assert!(before.contains("be brief") && before.contains("so far so good"));
    assert_eq!(reader.stats().unwrap().gone, 0);

    // Emptied, they are gone, which is reported; the context is unchanged.
    let (from, until) = (gap.from, gap.until);
    let plan = store.empty_plan(&EmptyOptions::new()).unwrap();
    assert_eq!(plan.emptied().len(), 1);
    plan.apply().unwrap();
    assert_eq!(context(&store, &id), before);
    let gaps = reader.gaps().unwrap();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert_eq!((gaps[0].from, gaps[0].until), (from, until));
    assert_eq!(gaps[0].reason, GapReason::Emptied);
    let report = reader.verify().unwrap();
    assert!(report.is_ok() && report.gaps == gaps, "{report:?}");
    let stats = reader.stats().unwrap();
    assert_eq!(stats.gone, gaps[0].count());
    assert_eq!(stats.damaged, 0);
    let rest = said(&reader);
    assert_eq!(rest.len() as u64 + gaps[0].count(), told.len() as u64);
    assert_eq!(rest[0], "be brief", "the first trail stays");
    assert_eq!(rest.last(), told.last());
    assert_eq!(reader.info().unwrap().created_at, created);
    assert!(reader.record(until).unwrap().is_none());
    assert!(reader.record(until + 1).unwrap().is_some());
    // And the session continues.
    compact_and_rotate(&store, &id).unwrap();
    assert!(reader.verify().unwrap().is_ok());
    assert!(
        store.repair_plan(&id).unwrap().is_empty(),
        "there is nothing to repair"
    );
}

#[test]
fn a13_the_first_trail_stays_and_says_where_the_session_comes_from() {
    let memory = MemoryStorage::new();
    let store = store(memory);
    let parent = super::session(&store, &["a parent"]);
    let made = store.fork_session(&parent, &ForkOptions::new()).unwrap();
    let id = made.id().clone();
    talk(&made, 0..20).unwrap();
    made.close().unwrap();
    let before = store.read_session(&id).unwrap().info().unwrap();
    compact_and_rotate(&store, &id).unwrap();
    let plan = store.empty_plan(&EmptyOptions::new()).unwrap();
    assert_eq!(plan.emptied().len(), 1);
    plan.apply().unwrap();
    let reader = store.read_session(&id).unwrap();
    let after = reader.info().unwrap();
    assert_eq!(after.created_at, before.created_at);
    assert_eq!(after.forked_from, before.forked_from);
    assert_eq!(said(&reader)[0], "a parent");
}

#[test]
fn a13_trails_come_back_from_the_trash() {
    let memory = MemoryStorage::new();
    let store = store(memory);
    let id = begin(&store);
    compact_and_rotate(&store, &id).unwrap();
    let before = trails(&store, &id);
    let name = store.trash().unwrap().entries[0].name.clone();
    store.restore_deleted(&name).unwrap();
    assert!(trails(&store, &id) > before);
    assert!(store.trash().unwrap().entries.is_empty());
    let reader = store.read_session(&id).unwrap();
    assert!(reader.gaps().unwrap().is_empty());
    assert_eq!(said(&reader).len(), 27);
    assert!(reader.verify().unwrap().is_ok());
}

#[test]
fn a13_trails_that_a_fork_reads_are_kept_and_named() {
    let memory = MemoryStorage::new();
    let store = store(memory);
    let id = begin(&store);
    let child = fork(&store, &id, "mine");
    let before = said(&store.read_session(&child).unwrap());
    compact_and_rotate(&store, &id).unwrap();
    let plan = store.empty_plan(&EmptyOptions::new()).unwrap();
    assert!(plan.emptied().is_empty());
    assert_eq!(plan.kept()[0].read_by, std::slice::from_ref(&child));
    plan.apply().unwrap();
    let reader = store.read_session(&child).unwrap();
    assert_eq!(said(&reader), before);
    assert!(reader.verify().unwrap().is_ok());
}

#[test]
fn a13_a_crash_at_every_step_costs_no_message() {
    const LOSSES: [Loss; 4] = [
        Loss::Unsynced,
        Loss::Nothing,
        Loss::Shuffled { seed: 1 },
        Loss::Shuffled { seed: 2 },
    ];
    for when in [When::Before, When::After] {
        for n in 0.. {
            let memory = MemoryStorage::new();
            let id = begin(&store(memory.clone()));
            let disk = FaultyStorage::new(memory.clone()).counting(Count::Writes);
            let faulty = options(disk.clone()).rotation(ROTATION).keep_trails(2);
            let faulty = faulty.open(HOME).unwrap();
            disk.arm(n, Fault::Crash { when });
            compact_and_rotate(&faulty, &id).ok();
            let fired = disk.fired();
            disk.disarm();
            drop(faulty);
            for loss in LOSSES {
                let store = store(memory.crash(loss));
                let reader = store.read_session(&id).unwrap();
                let shuffled = matches!(loss, Loss::Shuffled { .. });
                let said = |reader| match shuffled {
                    // What was never acknowledged may be there in part.
                    true => said_in_part(reader),
                    false => said(reader),
                };
                let told = said(&reader);
                assert!(told.len() >= 21, "{loss:?}: {}", told.len());
                assert_eq!(told[20], text(19));
                let report = reader.verify().unwrap();
                let torn = |damage: &backtrail::verify::Damage| {
                    damage.reason == backtrail::Reason::Unfinished
                };
                let whole = report.damage.first().iter().all(torn);
                assert!(whole || shuffled, "{:?}", report.damage);
                let context = context(&store, &id);
                assert!(context.contains("be brief"));
                store
                    .empty_plan(&EmptyOptions::new())
                    .unwrap()
                    .apply()
                    .unwrap();
                let reader = store.read_session(&id).unwrap();
                let rest = said(&reader);
                assert_eq!(rest.last(), told.last());
                let gone: u64 = reader.gaps().unwrap().iter().map(|gap| gap.count()).sum();
                assert!(shuffled || rest.len() as u64 + gone == told.len() as u64);
            }
            if !fired {
                break;
            }
        }
    }
}

/// Returns the messages, whatever the damage.
fn said_in_part(reader: &SessionReader) -> Vec<String> {
    let records = reader.records().unwrap().owned().map(Result::unwrap);
    let messages = records.filter_map(|record| record.message().ok().flatten());
    messages
        .map(|message| message.text().into_owned())
        .collect()
}

/// The first trail, which has the session's start, is one of those that are kept.
#[test]
fn a13_as_many_trails_are_left_as_are_to_be_kept() {
    // Below three, what the last compaction keeps is in a trail of its own.
    for keep in 3..6 {
        let options = options(MemoryStorage::new()).rotation(ROTATION);
        let store = options.keep_trails(keep).open_or_create(HOME).unwrap();
        let id = begin(&store);
        assert!(trails(&store, &id) > keep);
        let session = store.open_session(&id).unwrap();
        // Everything is covered, so that the keep count alone decides at each rotation.
        for n in 30..60 {
            session.compact(&Compaction::new("so far").keep(1)).unwrap();
            talk(&session, n..n + 1).unwrap();
        }
        session.close().unwrap();
        assert_eq!(trails(&store, &id), keep);
        let reader = store.read_session(&id).unwrap();
        assert_eq!(said(&reader).len(), 51, "nothing is lost");
    }
}
