//! Missing, truncated, overwritten or foreign derived data never changes an answer.

use std::fs;
use std::path::{Path, PathBuf};

use backtrail::Message;
use backtrail_index::{
    Filter, Group, Index, SearchAnswer, SearchQuery, SessionRow, SpendingReport,
};

use crate::kit::{Home, call_tool, respond};
use crate::random::Random;

/// The answers to all kinds of queries.
#[derive(Debug, PartialEq)]
struct Answers {
    sessions: Vec<SessionRow>,
    spending: SpendingReport,
    found: Vec<SearchAnswer>,
}

fn ask(index: &Index) -> Answers {
    let words = ["refund", "\"lost a cent\"", "round*", "output or nothing"];
    Answers {
        sessions: index.sessions(&Filter::default()).unwrap(),
        spending: index
            .spending_by(&Filter::default(), &[Group::Model])
            .unwrap(),
        found: words
            .map(|words| index.search(&SearchQuery::new(words)).unwrap())
            .to_vec(),
    }
}

/// A store with indexed sessions.
fn indexed() -> Home {
    let home = Home::new();
    for n in 0..6 {
        let session = home.session();
        let text = format!("refund {n} lost a cent by rounding_mode");
        session.append(Message::user_text(text)).unwrap();
        respond(&session, &format!("r{n}"), (10 + n, 4), "round half even");
        call_tool(&session, &format!("t{n}"), "output of a tool");
    }
    home.index().catch_up().unwrap();
    home
}

/// All files of derived data.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// Damages a file in a random way.
fn harms(path: &Path, random: &mut Random) {
    let mut bytes = fs::read(path).unwrap();
    let noise = |random: &mut Random, n: usize| -> Vec<u8> {
        (0..n).map(|_| random.next() as u8).collect()
    };
    match random.below(7) {
        0 => fs::remove_file(path).unwrap(),
        1 => fs::write(path, b"").unwrap(),
        2 => {
            bytes.truncate(bytes.len() / 2);
            fs::write(path, bytes).unwrap();
        }
        3 => {
            let noise = noise(random, bytes.len());
            fs::write(path, noise).unwrap();
        }
        4 => {
            let at = random.below(bytes.len() + 1);
            let end = (at + 40).min(bytes.len());
            let noise = noise(random, end - at);
            bytes[at..end].copy_from_slice(&noise);
            fs::write(path, bytes).unwrap();
        }
        5 => {
            bytes.extend_from_slice(&noise(random, 500));
            fs::write(path, bytes).unwrap();
        }
        _ => {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }
    }
}

#[test]
fn f23_answers_are_those_of_a_rebuild_whatever_becomes_of_a_file() {
    let home = indexed();
    let expected = ask(&home.index());
    assert_eq!(expected.sessions.len(), 6);
    assert_eq!(
        expected.found.iter().map(|it| it.total).collect::<Vec<_>>(),
        [6, 6, 12, 6]
    );
    let derived = home.store.root().join("derived");
    let mut random = Random::new(7);
    let names: Vec<PathBuf> = files(&derived);
    assert!(names.len() >= 4, "{names:?}");
    for round in 0..60 {
        home.index().catch_up().unwrap();
        let all = files(&derived);
        if all.is_empty() {
            // Directories in the place of the locks: everything is built in memory, until
            // those are gone.
            assert_eq!(ask(&home.index()), expected, "round {round}");
            fs::remove_dir_all(&derived).unwrap();
            continue;
        }
        let path = random.pick(&all).clone();
        harms(&path, &mut random);
        assert_eq!(
            ask(&home.index()),
            expected,
            "round {round}: {}",
            path.display()
        );
    }
}

#[test]
fn a_missing_or_blocked_directory_of_derived_data_costs_only_time() {
    let home = indexed();
    let expected = ask(&home.index());
    let derived = home.store.root().join("derived");
    fs::remove_dir_all(&derived).unwrap();
    assert_eq!(ask(&home.index()), expected);
    fs::remove_dir_all(&derived).unwrap();
    fs::write(&derived, "no directory").unwrap();
    assert_eq!(ask(&home.index()), expected, "made in memory");
    fs::remove_file(&derived).unwrap();
    assert_eq!(ask(&home.index()), expected);
}

#[test]
fn data_of_a_newer_version_is_neither_read_nor_changed() {
    let home = indexed();
    let expected = ask(&home.index());
    let derived = home.store.root().join("derived");
    let database = derived.join("catalogue-7.db");
    let newer = rusqlite::Connection::open(&database).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    newer.close().unwrap();
    fs::write(derived.join("catalogue-8.db"), "of a newer version").unwrap();
    fs::create_dir(derived.join("search-3")).unwrap();
    assert_eq!(ask(&home.index()), expected);
    let kept = fs::read_to_string(derived.join("catalogue-8.db")).unwrap();
    assert_eq!(kept, "of a newer version");
}

#[test]
fn an_index_that_is_open_survives_what_happens_to_its_files() {
    let home = indexed();
    let index = home.index();
    let expected = ask(&index);
    fs::remove_dir_all(home.store.root().join("derived")).unwrap();
    assert_eq!(ask(&index), expected);
    let session = home.session();
    session
        .append(Message::user_text("one more refund"))
        .unwrap();
    let answer = index.search(&SearchQuery::new("refund")).unwrap();
    assert_eq!(answer.total, 7, "and goes on with what is new");
    home.index().rebuild().unwrap();
    assert_eq!(ask(&index), ask(&home.index()), "another one built it anew");
}

#[test]
fn a_purge_leaves_no_text_in_derived_data() {
    let home = indexed();
    let session = home.session();
    session
        .append(Message::user_text("the password is hunter2hunter2"))
        .unwrap();
    let id = session.id().clone();
    drop(session);
    home.index().catch_up().unwrap();
    let derived = home.store.root().join("derived");
    let holds = |word: &str| {
        let has = |path: &PathBuf| {
            let bytes = fs::read(path).unwrap();
            bytes.windows(word.len()).any(|at| at == word.as_bytes())
        };
        files(&derived).iter().any(has)
    };
    assert!(holds("hunter2hunter2"), "it is in there before");
    let plan = home
        .store
        .purge_plan(&[id], backtrail::trash::DeleteScope::default());
    plan.unwrap().apply().unwrap();
    assert!(!holds("hunter2hunter2"));
    let answer = home.index().search(&SearchQuery::new("hunter2hunter2"));
    assert_eq!(answer.unwrap().total, 0);
    assert_eq!(home.rows().len(), 6);
    assert!(!holds("hunter2hunter2"));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_derived_data() {
    use std::os::unix::fs::PermissionsExt;
    let home = indexed();
    for path in files(&home.store.root().join("derived")) {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}

#[test]
fn changes_to_the_catalogue_by_other_programs_are_ignored() {
    let home = indexed();
    let expected = ask(&home.index());
    let database = home.store.root().join("derived/catalogue-7.db");
    let other = rusqlite::Connection::open(&database).unwrap();
    let changed = other.execute("UPDATE totals SET input = input + 1000", []);
    assert!(changed.unwrap() > 0, "the database is whole, and wrong");
    other.close().unwrap();
    assert_eq!(ask(&home.index()), expected);
}
