//! Sessions in the trash, and purged ones, here and there.

use backtrail::ErrorKind;
use backtrail::replica::{
    PullOptions, Refusal, delete_there, purge_there, restore_there, sessions_there,
};

use super::kit::{Side, Story, named, replica};

#[test]
fn f41_a_session_that_was_purged_there_never_returns_by_a_push() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    b.pull(&story.main, &there);
    purge_there(&there, &story.main).unwrap();
    for side in [&a, &b] {
        side.say(&story.main, "once more");
        let error = side.push_error(&story.main, &there);
        assert!(
            matches!(error.refusal(), Some(Refusal::PurgedThere(_))),
            "{error}"
        );
        let error = side.pull_error(&story.main, &there);
        assert!(
            matches!(error.refusal(), Some(Refusal::PurgedThere(_))),
            "{error}"
        );
    }
    let listed = sessions_there(&there).unwrap();
    assert!(!listed.iter().any(|(id, _)| *id == story.main));
    // A fork has a gap there, as after a purge here.
    let pushed = a.try_push(&story.fork_of_fork, &there);
    pushed.check().unwrap();
}

#[test]
fn a_session_that_was_purged_here_is_pulled_only_if_that_is_asked_for() {
    let (a, there) = (Side::new(1), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    let texts = a.texts(&story.main);
    a.purge(&story.main);
    let error = a.pull_error(&story.main, &there);
    assert_eq!(error.was_purged(), Some(&story.main));
    assert!(a.store.read_session(&story.main).is_err());
    assert_eq!(
        a.push_error(&story.main, &there).was_purged(),
        Some(&story.main)
    );
    let ids = [story.main.clone()];
    let options = PullOptions::new().even_purged();
    let pulled = a.store.pull(&ids, &there, &options, &mut |_| {}).unwrap();
    assert!(named(pulled, &story.main).unwrap().is_new);
    assert_eq!(a.texts(&story.main), texts);
    // It can be purged again.
    a.purge(&story.main);
    assert_eq!(
        a.pull_error(&story.main, &there).was_purged(),
        Some(&story.main)
    );
}

#[test]
fn a_session_in_the_trash_stays_there_on_both_sides() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    a.push(&story.main, &there);
    b.pull(&story.main, &there);
    a.delete(&story.main);
    for error in [
        a.push_error(&story.main, &there),
        a.pull_error(&story.main, &there),
    ] {
        assert_eq!(error.in_trash(), Some(&story.main), "{error}");
    }
    // Deleting here does not delete there.
    assert!(b.pull(&story.main, &there).is_nothing());
    delete_there(&there, &story.main).unwrap();
    b.say(&story.main, "more");
    for error in [
        b.push_error(&story.main, &there),
        b.pull_error(&story.main, &there),
    ] {
        assert!(
            matches!(error.refusal(), Some(Refusal::InTrashThere(_))),
            "{error}"
        );
    }
    restore_there(&there, &story.main).unwrap();
    b.push(&story.main, &there);
}

#[test]
fn a_fork_of_a_session_in_the_trash_is_pushed_with_it() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    let texts = a.texts(&story.fork_of_fork);
    a.delete(&story.main);
    a.push(&story.fork_of_fork, &there);
    b.pull(&story.fork_of_fork, &there);
    assert_eq!(b.texts(&story.fork_of_fork), texts);
}

#[test]
fn what_is_not_there_is_named() {
    let (a, b, there) = (Side::new(1), Side::new(2), replica());
    let story = Story::begin(&a.store);
    let error = b.pull_error(&story.main, &there);
    assert_eq!(error.refusal(), Some(&Refusal::NotThere));
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        b.push_error(&story.main, &there).kind(),
        ErrorKind::NotFound
    );
    assert!(b.store.sessions().unwrap().is_empty());
}
