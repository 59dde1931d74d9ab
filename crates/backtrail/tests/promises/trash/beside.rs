//! Readers find no damage while sessions are deleted, restored and purged.

use backtrail::workspace::{CheckpointReason, Checkpoints};
use backtrail::{Checkpoint, CheckpointOptions};

use super::purge::Desk;
use super::{delete, name, said, session};

/// Reads the rest, and asserts that there is no damage.
fn rest(mut checkpoints: Checkpoints) -> Vec<Checkpoint> {
    let all: Vec<_> = checkpoints.by_ref().map(Result::unwrap).collect();
    let damage = checkpoints.damage().unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    all
}

fn ids(checkpoints: &[Checkpoint]) -> Vec<String> {
    checkpoints.iter().map(|it| it.id().to_string()).collect()
}

#[test]
fn readers_of_a_workspace_continue_in_the_trail_that_a_purge_rewrote() {
    let desk = Desk::new();
    let [one, two] = ["one", "two"].map(|word| session(&desk.store, &[word]));
    for n in 0..4 {
        desk.write("work.txt", &format!("{n}"));
        let session = if n % 2 == 0 { &one } else { &two };
        let options = CheckpointOptions::new()
            .session(session)
            .reason(CheckpointReason::RunEnd);
        desk.workspace.checkpoint(options).unwrap();
    }
    let before = rest(desk.workspace.checkpoints().unwrap());
    assert_eq!(before.len(), 4);
    let forwards = desk.workspace.checkpoints().unwrap();
    let mut begun = desk.workspace.checkpoints().unwrap();
    let first = begun.next().unwrap().unwrap();
    let back = desk.workspace.checkpoints_back().unwrap();
    desk.purge(&one);
    // The workspace's trail is another file now, and then yet another.
    desk.purge(&two);
    assert_eq!(ids(&rest(forwards)), ids(&before));
    let mut again = vec![first];
    again.extend(rest(begun));
    assert_eq!(ids(&again), ids(&before));
    let mut back = rest(back);
    back.reverse();
    assert_eq!(ids(&back), ids(&before));
    desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
}

#[test]
fn a_session_that_is_moved_while_it_is_read_is_not_damage() {
    let desk = Desk::new();
    let id = session(&desk.store, &["one", "two"]);
    let live = desk.store.read_session(&id).unwrap();
    let listed = live.records().unwrap();
    delete(&desk.store, &id).unwrap();
    let error = live.info().unwrap_err();
    assert!(error.is_moved() && error.in_trash() == Some(&id), "{error}");
    let deleted = desk.store.read_deleted(&id).unwrap();
    desk.store.restore_deleted(&name(&id)).unwrap();
    let error = deleted.info().unwrap_err();
    assert!(error.is_moved(), "{error}");
    assert_eq!((error.in_trash(), error.was_purged()), (None, None));
    assert_eq!(said(&live), ["one", "two"]);
    desk.purge(&id);
    let error = live.info().unwrap_err();
    assert!(
        error.is_moved() && error.was_purged() == Some(&id),
        "{error}"
    );
    let error = listed.owned().next().unwrap().unwrap_err();
    assert!(
        error.is_moved() && error.was_purged() == Some(&id),
        "{error}"
    );
    // There is no other one.
    let never = "00000000-0000-4000-8000-000000000000".parse().unwrap();
    assert!(!desk.store.read_session(&never).unwrap_err().is_moved());
}
