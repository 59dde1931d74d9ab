//! Several operations at once: one wins, and nothing is lost.

use std::sync::Barrier;
use std::thread;

use backtrail::{ErrorKind, ForkOptions, Message, Note, Result, SessionId, Store};
use backtrail_testkit::MemoryStorage;

use super::{delete, empty, name, said, session, store_on};

/// An operation on a store.
type Job<'a> = dyn Fn(&Store) -> Result<()> + Sync + 'a;

/// Runs several operations at the same moment.
fn together(store: &Store, jobs: &[&Job<'_>]) -> Vec<Result<()>> {
    let barrier = Barrier::new(jobs.len());
    thread::scope(|scope| {
        let threads: Vec<_> = jobs
            .iter()
            .map(|job| {
                let (store, barrier) = (store.clone(), &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    job(&store)
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

fn typed(result: &Result<()>) {
    if let Err(error) = result {
        let kinds = [ErrorKind::NotFound, ErrorKind::Locked];
        assert!(kinds.contains(&error.kind()), "{error:?}");
    }
}

/// Returns a session's messages, wherever it is.
fn words(store: &Store, id: &SessionId) -> Vec<String> {
    match store.read_session(id) {
        Ok(reader) => said(&reader),
        Err(_) => said(&store.read_deleted(id).unwrap()),
    }
}

#[test]
fn delete_next_to_notes_writers_forks_and_other_deletes() {
    for _ in 0..200 {
        let memory = MemoryStorage::new();
        let store = store_on(&memory);
        let id = session(&store, &["one"]);
        let noted = |store: &Store| store.note(&id, &Note::new().title("noted")).map(drop);
        let spoken = |store: &Store| {
            let opened = store.open_session(&id)?;
            opened.append(Message::user_text("two"))?;
            opened.close()
        };
        let forked = |store: &Store| store.fork_session(&id, &ForkOptions::new())?.close();
        let deleted = |store: &Store| delete(store, &id);
        let results = together(&store, &[&noted, &spoken, &forked, &deleted, &deleted]);
        results.iter().for_each(typed);
        // It is in one place, with all that was acknowledged.
        let live = store.sessions().unwrap().contains(&id);
        let trashed = store.deleted_sessions().unwrap().contains(&id);
        assert!(live != trashed);
        let deletes = results[3..].iter().filter(|result| result.is_ok()).count();
        assert_eq!(
            deletes,
            usize::from(trashed),
            "one of both wins, or neither"
        );
        let words = words(&store, &id);
        assert_eq!(
            words.len(),
            1 + usize::from(results[1].is_ok()),
            "{results:?}"
        );
        let reader = match live {
            true => store.read_session(&id).unwrap(),
            false => store.read_deleted(&id).unwrap(),
        };
        if results[0].is_ok() {
            assert_eq!(reader.info().unwrap().title.as_deref(), Some("noted"));
        }
        for fork in store.sessions().unwrap() {
            if fork != id {
                let read = said(&store.read_session(&fork).unwrap());
                assert_eq!(read[0], "one");
            }
        }
    }
}

#[test]
fn a_fork_never_loses_what_it_continues() {
    for _ in 0..200 {
        let memory = MemoryStorage::new();
        let store = store_on(&memory);
        let id = session(&store, &["one"]);
        let forked = |store: &Store| store.fork_session(&id, &ForkOptions::new())?.close();
        let gone = |store: &Store| {
            delete(store, &id)?;
            empty(store).map(drop)
        };
        let results = together(&store, &[&forked, &gone]);
        results.iter().for_each(typed);
        for fork in store.sessions().unwrap() {
            let reader = store.read_session(&fork).unwrap();
            assert_eq!(said(&reader), ["one"], "{results:?}");
            assert!(reader.verify().unwrap().is_ok());
        }
    }
}

#[test]
fn restore_next_to_emptying_leaves_it_whole_or_gone() {
    for _ in 0..200 {
        let memory = MemoryStorage::new();
        let store = store_on(&memory);
        let id = session(&store, &["one"]);
        let child = super::fork(&store, &id, "two");
        delete(&store, &child).unwrap();
        delete(&store, &id).unwrap();
        let restored = |store: &Store| store.restore_deleted(&name(&child));
        let emptied = |store: &Store| empty(store).map(drop);
        let results = together(&store, &[&restored, &emptied, &restored]);
        results.iter().for_each(typed);
        for live in store.sessions().unwrap() {
            let reader = store.read_session(&live).unwrap();
            assert_eq!(said(&reader), ["one", "two"], "{results:?}");
        }
        assert!(store.trash().unwrap().leftovers.is_empty());
    }
}
