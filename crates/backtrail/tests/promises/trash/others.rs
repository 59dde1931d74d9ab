//! F7: deleting a session never touches a file that is not the session's.

#![expect(clippy::disallowed_methods, reason = "the files are those of others")]

use std::fs;
use std::os::unix::fs::symlink;

use backtrail::trash::{EmptyOptions, TrashName};
use backtrail::{SessionOptions, Store};

use super::{delete, name, said, session};

#[test]
fn f7_foreign_files_in_the_trash_stay_and_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let id = session(&store, &["one"]);
    delete(&store, &id).unwrap();
    let trash = dir.path().join("store/trash");
    // A user's directory, whose files have the same names as Backtrail's.
    let mine = dir.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("0000.jsonl"), "precious").unwrap();
    symlink(&mine, trash.join("linked")).unwrap();
    symlink(&mine, trash.join("half.emptying")).unwrap();
    symlink(&mine, trash.join("leaked.purging")).unwrap();
    fs::write(trash.join("a-file"), "no directory").unwrap();
    fs::write(trash.join("..odd name"), "odd").unwrap();
    fs::create_dir(trash.join("unknown.suffix")).unwrap();
    let contents = store.trash().unwrap();
    assert_eq!(contents.entries.len(), 1);
    let unknown: Vec<_> = contents
        .unknown
        .iter()
        .map(|path| path.file_name().unwrap())
        .collect();
    for known in ["linked", "a-file", "..odd name", "unknown.suffix"] {
        assert!(unknown.contains(&known.as_ref()), "{known} in {unknown:?}");
    }
    for name in ["linked", "a-file"] {
        let name: TrashName = name.parse().unwrap();
        assert!(store.restore_deleted(&name).is_err());
        assert!(store.empty_plan(&EmptyOptions::new().only([name])).is_err());
    }
    let report = store
        .empty_plan(&EmptyOptions::new())
        .unwrap()
        .apply()
        .unwrap();
    assert_eq!(report.emptied, [name(&id)]);
    assert!(report.left.len() >= 5, "{:?}", report.left);
    assert_eq!(fs::read(mine.join("0000.jsonl")).unwrap(), b"precious");
    assert!(trash.join("linked").is_symlink() && trash.join("half.emptying").is_symlink());
    assert_eq!(fs::read(trash.join("a-file")).unwrap(), b"no directory");
}

#[test]
fn f7_foreign_files_in_a_session_move_with_it_and_are_never_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let id = session(&store, &["one"]);
    let precious = dir.path().join("precious.txt");
    fs::write(&precious, "precious").unwrap();
    let home = store.read_session(&id).unwrap().dir();
    fs::write(home.join("notes.txt"), "a person's").unwrap();
    // It has the name of a Backtrail file, and is none.
    symlink(&precious, home.join("0007.jsonl")).unwrap();
    fs::create_dir(home.join("payloads")).unwrap();
    delete(&store, &id).unwrap();
    store.restore_deleted(&name(&id)).unwrap();
    assert_eq!(fs::read(home.join("notes.txt")).unwrap(), b"a person's");
    delete(&store, &id).unwrap();
    for _ in 0..2 {
        let report = store
            .empty_plan(&EmptyOptions::new())
            .unwrap()
            .apply()
            .unwrap();
        let left: Vec<_> = report
            .left
            .iter()
            .map(|path| path.file_name().unwrap())
            .collect();
        assert_eq!(left, ["0007.jsonl", "notes.txt", "payloads"], "every time");
    }
    let rest = dir.path().join(format!("store/trash/{id}.emptying"));
    assert_eq!(fs::read(rest.join("notes.txt")).unwrap(), b"a person's");
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert!(!rest.join("0000.jsonl").exists());
    assert!(rest.join("0007.jsonl").is_symlink());
}

#[test]
fn f7_a_link_among_the_sessions_is_no_way_to_files_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let id = session(&store, &["mine"]);
    let home = store.read_session(&id).unwrap().dir();
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(&home, &elsewhere).unwrap();
    symlink(&elsewhere, &home).unwrap();
    let refused = delete(&store, &id).unwrap_err();
    assert!(
        format!("{refused:?}").contains("LinkRefused"),
        "{refused:?}"
    );
    let plan = store.empty_plan(&EmptyOptions::new()).unwrap();
    assert!(plan.emptied().is_empty(), "a link is nothing of ours");
    plan.apply().unwrap();
    assert!(home.is_symlink() && elsewhere.join("0000.jsonl").exists());
    drop(store.create_session(SessionOptions::new()).unwrap());
    // Back in its place it is a session again.
    fs::remove_file(&home).unwrap();
    fs::rename(&elsewhere, &home).unwrap();
    let reader = store.read_session(&id).unwrap();
    assert_eq!(said(&reader), ["mine"]);
}
