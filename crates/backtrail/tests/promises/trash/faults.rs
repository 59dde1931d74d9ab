//! Whatever fails, a session is in one place, whole; and the next try completes the rest.
//!
//! The fault comes at every operation in turn, until there are no more.

use backtrail::trash::EmptyOptions;
use backtrail::{CheckpointOptions, Message, Result, SessionId, SessionOptions, Store};
use backtrail_testkit::{Count, Fault, FaultyStorage, Loss, MemoryStorage, When};

use super::HOME;
use super::{delete, empty, fork, name, options, said, session, store_on};

const EIO: i32 = 5;
const FAULTS: [Fault; 4] = [
    Fault::Crash { when: When::Before },
    Fault::Crash { when: When::After },
    Fault::Error(EIO),
    Fault::ErrorFrom(EIO),
];
const LOSSES: [Loss; 5] = [
    Loss::Unsynced,
    Loss::Nothing,
    Loss::Tail { keep_bytes: 10 },
    Loss::Shuffled { seed: 1 },
    Loss::Shuffled { seed: 2 },
];

/// The store before a fault.
struct Scene {
    memory: MemoryStorage,
    id: SessionId,
    fork: SessionId,
    other: SessionId,
}

impl Scene {
    fn new() -> Self {
        let memory = MemoryStorage::new();
        let store = store_on(&memory);
        let id = session(&store, &["one", "two"]);
        let fork = fork(&store, &id, "three");
        let other = session(&store, &["else"]);
        Self {
            memory,
            id,
            fork,
            other,
        }
    }
}

/// Lets an action fail at every operation, and checks what is left each time.
fn at_every_step(
    prepare: impl Fn(&Scene, &Store),
    act: impl Fn(&Scene, &Store) -> Result<()>,
    check: impl Fn(&Scene, &Store, bool),
) {
    for fault in FAULTS {
        for n in 0.. {
            let scene = Scene::new();
            prepare(&scene, &store_on(&scene.memory));
            let disk = FaultyStorage::new(scene.memory.clone()).counting(Count::Writes);
            let store = options(disk.clone()).open(HOME).unwrap();
            disk.arm(n, fault);
            let done = act(&scene, &store).is_ok();
            let fired = disk.fired();
            disk.disarm();
            drop(store);
            check(&scene, &store_on(&scene.memory.kill()), done);
            for loss in LOSSES {
                check(&scene, &store_on(&scene.memory.crash(loss)), done);
            }
            if !fired {
                assert!(done, "without a fault it works");
                assert!(n > 5, "there were operations to fail");
                break;
            }
        }
    }
}

/// Asserts what no fault may harm.
fn others_are_whole(scene: &Scene, store: &Store) {
    assert_eq!(said(&store.read_session(&scene.other).unwrap()), ["else"]);
    if store.sessions().unwrap().contains(&scene.fork) {
        let reader = store.read_session(&scene.fork).unwrap();
        assert_eq!(said(&reader), ["one", "two", "three"]);
        assert!(reader.verify().unwrap().is_ok());
    }
}

/// Returns whether the session is not in the trash, and asserts that it is whole and in one
/// place.
fn is_live(scene: &Scene, store: &Store) -> bool {
    let live = store.sessions().unwrap().contains(&scene.id);
    let trashed = store.deleted_sessions().unwrap().contains(&scene.id);
    assert!(live != trashed, "it is in one place: {live} {trashed}");
    let reader = match live {
        true => store.read_session(&scene.id).unwrap(),
        false => store.read_deleted(&scene.id).unwrap(),
    };
    assert_eq!(said(&reader), ["one", "two"]);
    live
}

#[test]
fn a_delete_is_done_or_not_done() {
    at_every_step(
        |_, _| {},
        |scene, store| delete(store, &scene.id),
        |scene, store, done| {
            others_are_whole(scene, store);
            let live = is_live(scene, store);
            assert!(!(done && live), "what was done stays done");
            if live {
                delete(store, &scene.id).unwrap();
            }
            assert!(!is_live(scene, store));
            others_are_whole(scene, store);
        },
    );
}

#[test]
fn a_restore_is_done_or_not_done() {
    at_every_step(
        |scene, store| delete(store, &scene.id).unwrap(),
        |scene, store| store.restore_deleted(&name(&scene.id)),
        |scene, store, done| {
            others_are_whole(scene, store);
            let live = is_live(scene, store);
            assert!(!done || live, "what was done stays done");
            if !live {
                store.restore_deleted(&name(&scene.id)).unwrap();
            }
            assert!(is_live(scene, store));
            others_are_whole(scene, store);
        },
    );
}

#[test]
fn emptying_that_is_interrupted_is_finished_by_the_next() {
    at_every_step(
        |scene, store| {
            delete(store, &scene.fork).unwrap();
            delete(store, &scene.id).unwrap();
        },
        |_, store| empty(store).map(drop),
        |scene, store, done| {
            others_are_whole(scene, store);
            // Each is whole, or gone.
            for id in store.deleted_sessions().unwrap() {
                assert!(!done);
                let words = said(&store.read_deleted(&id).unwrap());
                // A fork is removed before its parent.
                assert!(words.len() >= 2, "{words:?}");
            }
            let report = store
                .empty_plan(&EmptyOptions::new())
                .unwrap()
                .apply()
                .unwrap();
            assert!(report.kept.is_empty() && report.left.is_empty());
            let contents = store.trash().unwrap();
            assert!(contents.entries.is_empty() && contents.leftovers.is_empty());
            assert!(contents.unknown.is_empty());
        },
    );
}

#[test]
fn purging_that_is_interrupted_is_finished_by_the_next() {
    at_every_step(
        |_, _| {},
        |scene, store| {
            let ids = std::slice::from_ref(&scene.id);
            store.purge_plan(ids, Default::default())?.apply().map(drop)
        },
        |scene, store, done| {
            let live = store.sessions().unwrap().contains(&scene.id);
            assert!(!(done && live), "what was done stays done");
            assert_eq!(said(&store.read_session(&scene.other).unwrap()), ["else"]);
            // The fork can always be read, and what it lacks is not damage.
            let reader = store.read_session(&scene.fork).unwrap();
            let words = said(&reader);
            let whole = words == ["one", "two", "three"];
            assert!(whole || words == ["three"], "{words:?}");
            assert!(reader.verify().unwrap().is_ok());
            if live {
                let ids = std::slice::from_ref(&scene.id);
                let plan = store.purge_plan(ids, Default::default()).unwrap();
                plan.apply().unwrap();
            } else {
                store
                    .empty_plan(&EmptyOptions::new())
                    .unwrap()
                    .apply()
                    .unwrap();
            }
            assert_eq!(said(&store.read_session(&scene.fork).unwrap()), ["three"]);
            let contents = store.trash().unwrap();
            assert!(contents.entries.is_empty() && contents.leftovers.is_empty());
            let error = store.read_session(&scene.id).unwrap_err();
            assert!(error.to_string().contains("was purged"), "{error}");
        },
    );
}

const SECRET: &str = "hunter2-sEcReT";

/// A store in memory that keeps a real directory, with a session that leaked something.
fn leak(memory: &MemoryStorage, root: &std::path::Path) -> SessionId {
    let store = rotating(memory.clone());
    let workspace = store.workspace(root).unwrap();
    let mine = |label: &str| {
        let options = CheckpointOptions::new().label(label);
        workspace.checkpoint(options).unwrap();
    };
    mine("first");
    let options = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(options).unwrap();
    let id = session.id().clone();
    session.append(Message::user_text(SECRET)).unwrap();
    session.close().unwrap();
    for n in 0..3 {
        let own = CheckpointOptions::new().session(&id).about(SECRET);
        workspace.checkpoint(own).unwrap();
        mine(&format!("mine {n}"));
    }
    id
}

/// Opens a store whose workspaces have several trails.
fn rotating(storage: impl backtrail::Storage) -> Store {
    options(storage).rotation(900).open_or_create(HOME).unwrap()
}

/// Asserts that a workspace can be read, and has all of your checkpoints.
fn workspace_is_whole(store: &Store, root: &std::path::Path) {
    let workspace = store.find_workspace(root).unwrap().unwrap();
    let all: Vec<_> = workspace
        .checkpoints()
        .unwrap()
        .map(|it| it.unwrap())
        .collect();
    let seqs: Vec<u64> = all.iter().map(|checkpoint| checkpoint.seq()).collect();
    assert!(seqs.is_sorted() && seqs.len() == 7, "{seqs:?}");
    let labels: Vec<_> = all.iter().filter_map(|it| it.label()).collect();
    assert_eq!(labels, ["first", "mine 0", "mine 1", "mine 2"]);
    for checkpoint in all.iter().filter(|it| it.session().is_none()) {
        assert!(checkpoint.dropped().unwrap().is_none());
        checkpoint.snapshot().unwrap();
    }
}

#[test]
fn an_interrupted_purge_leaves_workspaces_whole_and_in_the_end_no_text() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for fault in FAULTS {
        for n in 0.. {
            let memory = MemoryStorage::new();
            let id = leak(&memory, root);
            let disk = FaultyStorage::new(memory.clone()).counting(Count::Writes);
            let store = rotating(disk.clone());
            disk.arm(n, fault);
            let ids = std::slice::from_ref(&id);
            let purged = store.purge_plan(ids, Default::default());
            let done = purged.and_then(|plan| plan.apply()).is_ok();
            let fired = disk.fired();
            disk.disarm();
            drop(store);
            let left = LOSSES.map(|loss| memory.crash(loss));
            for memory in left.into_iter().chain([memory.kill()]) {
                let store = rotating(memory.clone());
                workspace_is_whole(&store, root);
                if store.sessions().unwrap().contains(&id) {
                    assert!(!done);
                    store
                        .purge_plan(ids, Default::default())
                        .unwrap()
                        .apply()
                        .unwrap();
                } else {
                    store
                        .empty_plan(&EmptyOptions::new())
                        .unwrap()
                        .apply()
                        .unwrap();
                }
                workspace_is_whole(&store, root);
                // A file that was being written when it stopped is removed, too.
                let report = store.verify_snapshots().unwrap();
                let trails = report.trails.iter().map(|(_, trail)| &trail.damage);
                assert!(report.is_ok(), "{:?}", trails.collect::<Vec<_>>());
                for path in memory.files() {
                    let bytes = memory.read(&path).unwrap();
                    let has = bytes
                        .windows(SECRET.len())
                        .any(|part| part == SECRET.as_bytes());
                    assert!(!has, "{} after {n}: {:?}", path.display(), disk.log());
                }
            }
            if !fired {
                assert!(done && n > 20);
                break;
            }
        }
    }
}
