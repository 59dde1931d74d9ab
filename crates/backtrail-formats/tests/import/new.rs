//! Importing what is new in a limited time: what is looked at, what is left, and what stays away.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};

use backtrail::trash::{DeleteScope, EmptyOptions, TrashKind};
use backtrail::{SessionId, Store};
use backtrail_formats::{Environment, Exclude, NewReport, forgetting_sessions, import, import_new};

use crate::toy::{Kit, lines};

fn name(n: u32) -> String {
    format!("0b1c2d3e-0000-4000-8000-{n:012}")
}

fn id(n: u32) -> SessionId {
    name(n).parse().unwrap()
}

/// Imports what is new, without a limit of time.
fn new(kit: &Kit) -> NewReport {
    import_new(&kit.store, &kit.options(), &|| false).unwrap()
}

/// Returns how many were imported and how many are left; there are no errors.
fn counts(report: &NewReport) -> (u64, u64) {
    assert!(report.errors.is_empty() && !report.is_busy, "{report:?}");
    (report.imported, report.left)
}

fn write(kit: &Kit, n: u32, keys: &[&str]) {
    kit.write(&format!("{n}.toy"), lines(&name(n), keys));
}

#[test]
fn only_an_agent_that_was_imported_is_looked_at() {
    let kit = Kit::new();
    write(&kit, 1, &["1"]);
    assert_eq!(counts(&new(&kit)), (0, 0));
    // A single file is not the agent's history.
    let options = kit.options().paths(vec![kit.path("1.toy")]);
    import(&kit.store, &options, &|_| {}).unwrap();
    write(&kit, 2, &["2"]);
    assert_eq!(counts(&new(&kit)), (0, 0));
    kit.import();
    write(&kit, 1, &["1", "11"]);
    write(&kit, 3, &["3"]);
    assert_eq!(counts(&new(&kit)), (2, 0));
    assert_eq!(kit.all(), [vec!["1", "11"], vec!["2"], vec!["3"]]);
    assert_eq!(counts(&new(&kit)), (0, 0));
    // What was learnt is not lost with the derived data.
    kit.forget_cache();
    write(&kit, 3, &["3", "33"]);
    assert_eq!(counts(&new(&kit)).0, 1);
    assert_eq!(kit.all(), [vec!["1", "11"], vec!["2"], vec!["3", "33"]]);
}

/// Replaces the bytes of a file so that only reading it shows that they are others.
fn change_secretly(kit: &Kit, file: &str) {
    let path = kit.path(file);
    let before = std::fs::metadata(&path).unwrap();
    std::fs::write(&path, "x".repeat(before.len() as usize)).unwrap();
    let file = File::options().append(true).open(&path).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
}

#[test]
fn files_that_did_not_change_are_not_opened() {
    let kit = Kit::new();
    let damaged_name = "9.toy";
    for n in 1..5 {
        write(&kit, n, &["1"]);
    }
    // Neither are those from which nothing comes.
    kit.write(damaged_name, "not a session\n");
    kit.write("empty.toy", "");
    import(&kit.store, &kit.options(), &|_| {}).unwrap();
    let cache = kit.cache();
    for file in ["1.toy", "2.toy", "3.toy", "4.toy", damaged_name] {
        change_secretly(&kit, file);
    }
    assert_eq!(counts(&new(&kit)), (0, 0));
    assert_eq!(kit.cache(), cache, "nothing is written");
    write(&kit, 2, &["1", "2"]);
    assert_eq!(counts(&new(&kit)), (1, 0));
    assert_eq!(kit.keys(&id(2)), ["1", "2"]);
    assert_eq!(kit.keys(&id(1)), ["1"]);
}

#[test]
fn what_is_left_when_the_time_is_over_is_counted_and_comes_next_newest_first() {
    let kit = Kit::new();
    write(&kit, 1, &["1"]);
    kit.import();
    for n in 2..8 {
        write(&kit, n, &["1"]);
    }
    let calls = AtomicUsize::new(0);
    let is_over = || calls.fetch_add(1, Ordering::Relaxed) >= 2;
    let report = import_new(&kit.store, &kit.options(), &is_over).unwrap();
    assert_eq!(counts(&report), (2, 4));
    let mut sessions = kit.store.sessions().unwrap();
    sessions.sort();
    assert_eq!(sessions, [id(1), id(6), id(7)]);
    let none = import_new(&kit.store, &kit.options(), &|| true).unwrap();
    assert_eq!(counts(&none), (0, 4));
    assert_eq!(counts(&new(&kit)), (4, 0));
    assert_eq!(kit.store.sessions().unwrap().len(), 7);
    assert_eq!(counts(&new(&kit)), (0, 0));
}

#[test]
fn it_does_not_wait_for_another_import() {
    let kit = Kit::new();
    write(&kit, 1, &["1"]);
    kit.import();
    write(&kit, 2, &["2"]);
    let other = kit.store.stage().unwrap();
    let report = new(&kit);
    assert!(report.is_busy && report.imported == 0, "{report:?}");
    // With nothing new, nobody needs the lock.
    std::fs::remove_file(kit.path("2.toy")).unwrap();
    assert_eq!(counts(&new(&kit)), (0, 0));
    write(&kit, 2, &["2"]);
    let options = kit.options().without_waiting();
    let report = import(&kit.store, &options, &|_| {}).unwrap();
    assert!(report.agents.is_empty());
    drop(other);
    assert_eq!(counts(&new(&kit)), (1, 0));
}

fn delete(store: &Store, id: &SessionId) {
    let plan = store.delete_plan(std::slice::from_ref(id), DeleteScope::Named);
    plan.unwrap().apply().unwrap();
}

fn empty(store: &Store) {
    let plan = store.empty_plan(&EmptyOptions::new()).unwrap();
    assert_eq!(plan.apply().unwrap().emptied.len(), 1);
}

fn purge(store: &Store, id: &SessionId) {
    let ids = std::slice::from_ref(id);
    let plan = store.purge_plan(ids, DeleteScope::Named).unwrap();
    forgetting_sessions(store, ids, || plan.apply()).unwrap();
}

// What was removed does not come back, however it was removed, whatever its file does and
// whatever is still known about it.
#[test]
fn deleted_emptied_and_purged_sessions_stay_away() {
    type Removal = fn(&Store, &SessionId);
    let ways: [(&str, Removal); 3] = [
        ("deleted", |store, id| delete(store, id)),
        ("emptied", |store, id| {
            delete(store, id);
            empty(store);
        }),
        ("purged", |store, id| purge(store, id)),
    ];
    for (way, remove) in ways {
        for forget in [false, true] {
            let kit = Kit::new();
            write(&kit, 1, &["1"]);
            write(&kit, 2, &["2"]);
            kit.import();
            remove(&kit.store, &id(1));
            if forget {
                kit.forget_cache();
            }
            let is_away = |what: &str| {
                let sessions = kit.store.sessions().unwrap();
                assert_eq!(sessions, [id(2)], "{way}, {what}, {forget}");
            };
            assert_eq!(counts(&new(&kit)).1, 0, "{way}");
            is_away("new");
            // It was read once, and is not opened again before it changes.
            change_secretly(&kit, "1.toy");
            assert_eq!(counts(&new(&kit)), (0, 0), "{way}");
            is_away("unchanged");
            write(&kit, 1, &["1", "more"]);
            assert_eq!(counts(&new(&kit)), (0, 0), "{way}");
            is_away("grown");
            kit.import();
            is_away("import");
            assert_eq!(counts(&new(&kit)), (0, 0), "{way}");
        }
    }
}

#[test]
fn an_emptied_session_can_be_imported_again_once_that_is_forgotten() {
    let kit = Kit::new();
    write(&kit, 1, &["1"]);
    kit.import();
    assert!(!kit.store.forget_emptied(&id(1)).unwrap());
    delete(&kit.store, &id(1));
    empty(&kit.store);
    assert!(kit.store.trash().unwrap().unknown.is_empty());
    assert!(kit.store.was_deleted(&id(1)));
    assert!(kit.store.forget_emptied(&id(1)).unwrap());
    assert!(!kit.store.was_deleted(&id(1)));
    kit.import();
    assert_eq!(kit.keys(&id(1)), ["1"]);
}

#[test]
fn a_restored_session_gets_what_its_file_got_meanwhile() {
    let kit = Kit::new();
    write(&kit, 1, &["1"]);
    kit.import();
    delete(&kit.store, &id(1));
    write(&kit, 1, &["1", "2"]);
    assert_eq!(counts(&new(&kit)), (0, 0));
    let trash = kit.store.trash().unwrap();
    let entry = trash.entries.first().unwrap();
    assert_eq!(entry.name.kind, TrashKind::Session);
    kit.store.restore_deleted(&entry.name).unwrap();
    assert_eq!(counts(&new(&kit)), (1, 0));
    assert_eq!(kit.keys(&id(1)), ["1", "2"]);
}

#[test]
fn a_purge_keeps_what_is_known_about_other_files() {
    let kit = Kit::new();
    write(&kit, 1, &["1"]);
    write(&kit, 2, &["2"]);
    kit.import();
    purge(&kit.store, &id(1));
    let cache = String::from_utf8(kit.cache().unwrap()).unwrap();
    assert!(
        cache.contains(&name(2)) && !cache.contains(&name(1)),
        "{cache}"
    );
    change_secretly(&kit, "2.toy");
    assert_eq!(counts(&new(&kit)), (0, 0));
    assert_eq!(kit.keys(&id(2)), ["2"]);
}

#[test]
fn a_file_that_is_not_whole_yet_comes_when_it_is() {
    let kit = Kit::new();
    write(&kit, 1, &["1"]);
    kit.import();
    write(&kit, 2, &["2"]);
    let text = lines(&name(3), &["3"]);
    kit.write("3.toy", &text[..8]);
    assert_eq!(counts(&new(&kit)), (1, 0));
    assert_eq!(counts(&new(&kit)), (0, 0));
    kit.write("3.toy", &text[..text.len() - 4]);
    assert_eq!(counts(&new(&kit)).1, 0);
    kit.write("3.toy", &text);
    assert_eq!(counts(&new(&kit)), (1, 0));
    assert_eq!(kit.keys(&id(3)), ["3"]);
}

#[test]
fn excluded_files_are_never_imported_and_are_when_that_ends() {
    let kit = Kit::new();
    write(&kit, 1, &["1"]);
    kit.import();
    write(&kit, 2, &["2"]);
    let root = kit.path("2.toy").display().to_string();
    let environment = Environment::default();
    for pattern in [root.as_str(), "2.*"] {
        let exclude = Exclude::new(&[pattern.to_owned()], &environment).unwrap();
        let options = kit.options().exclude(exclude);
        let report = import_new(&kit.store, &options, &|| false).unwrap();
        assert_eq!(counts(&report), (0, 0), "{pattern}");
        let report = import(&kit.store, &options, &|_| {}).unwrap();
        let agent = &report.agents[0];
        assert_eq!((agent.found, agent.excluded, agent.new), (2, 1, 0));
    }
    assert_eq!(counts(&new(&kit)), (1, 0));
}
