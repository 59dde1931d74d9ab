//! Changed files are not trusted, and no damage causes a panic.

use std::fs;
use std::path::{Path, PathBuf};

use super::testing::{TestTrail, built, opened, search, wanted};
use super::*;
use crate::feed::Sink as _;

fn trail() -> TestTrail {
    TestTrail::of_texts("s", &["alpha beta", "alpha gamma", "delta"])
}

fn files(derived: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(derived.join("search-2")).expect("listed");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

/// Returns whether an index is ready, and queries it if so.
fn answers(derived: &Path) -> bool {
    match SearchIndex::open(derived).expect("opened") {
        Opened::Ready(dir) => {
            assert_eq!(search(&dir, &wanted("alpha")).total, 2);
            true
        }
        Opened::Missing | Opened::Unusable(_) => false,
    }
}

/// Rebuilds the index and asserts that it answers.
fn assert_rebuilt(derived: &Path) {
    let index = built(derived, &[trail()]);
    assert_eq!(search(&index, &wanted("alpha")).total, 2);
    assert!(answers(derived));
}

/// A way to damage a file.
type Damage = (&'static str, fn(&Path));

#[test]
fn every_file_that_is_damaged_is_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(built(dir.path(), &[trail()]));
    let count = files(dir.path()).len();
    assert!(count >= 6, "{count} files");
    let damages: [Damage; 5] = [
        ("gone", |path| fs::remove_file(path).expect("removed")),
        ("empty", |path| fs::write(path, "").expect("written")),
        ("cut", |path| {
            let bytes = fs::read(path).expect("read");
            fs::write(path, &bytes[..bytes.len() / 2]).expect("written");
        }),
        ("noise", |path| {
            let len = fs::read(path).expect("read").len();
            let noise: Vec<u8> = (0..len).map(|at| (at * 167 + 13) as u8).collect();
            fs::write(path, noise).expect("written");
        }),
        ("a directory", |path| {
            fs::remove_file(path).expect("removed");
            fs::create_dir(path).expect("made");
        }),
    ];
    for at in 0..count {
        for (what, damage) in damages {
            // The names and their order differ between runs.
            let mut all = files(dir.path());
            all.sort_by_key(|path| path.extension().map(|ext| ext.to_owned()));
            let path = &all[at];
            damage(path);
            assert!(!answers(dir.path()), "{what}: {}", path.display());
            assert_rebuilt(dir.path());
        }
    }
}

#[test]
fn a_newer_version_is_rebuilt() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(built(dir.path(), &[trail()]));
    let commit = dir.path().join("search-2/commit");
    let text = fs::read(&commit).expect("read");
    let newer: Vec<u8> = [b"backtrail search 2\n", &text[19..]].concat();
    fs::write(&commit, newer).expect("written");
    match SearchIndex::open(dir.path()).expect("opened") {
        Opened::Unusable(why) => assert_eq!(why, "it has another version"),
        other => panic!("{other:?}"),
    }
    assert_rebuilt(dir.path());
}

#[test]
fn something_else_in_its_place_is_rebuilt() {
    let dir = tempfile::tempdir().expect("a directory");
    assert!(!answers(dir.path()));
    fs::write(dir.path().join("search-2"), "noise").expect("written");
    assert!(!answers(dir.path()));
    assert_rebuilt(dir.path());
}

/// Files with unchanged lengths and times but changed bytes pass the seal. Their answers
/// may be wrong, but must not be a panic.
#[test]
fn damage_that_no_seal_shows_causes_no_panic() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(built(dir.path(), &[trail()]));
    for path in files(dir.path()) {
        if path.ends_with("commit") {
            continue;
        }
        let whole = fs::read(&path).expect("read");
        let modified = fs::metadata(&path)
            .expect("there")
            .modified()
            .expect("a time");
        let put = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("written");
            let file = fs::File::options().write(true).open(&path).expect("opened");
            file.set_modified(modified).expect("touched");
        };
        for at in (0..whole.len()).step_by(7) {
            let mut bad = whole.clone();
            bad[at] ^= 0xff;
            put(&bad);
            if let Opened::Ready(index) = SearchIndex::open(dir.path()).expect("opened") {
                for query in ["alpha", "\"alpha beta\"", "a*", "alpha or delta"] {
                    let allowed = AllowedTrails::of(index.known(), |_| true);
                    drop(find(&wanted(query), &[(&index, &allowed)]));
                }
            }
        }
        put(&whole);
    }
    assert!(answers(dir.path()));
}

#[test]
fn what_a_dead_process_left_is_cleaned_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let index = built(dir.path(), &[trail()]);
    let before = files(dir.path()).len();
    // A process that dies after writing a segment, before its commit.
    let mut writer = SearchWriter::resume(dir.path(), &index).expect("a writer");
    TestTrail::of_texts("t", &["alpha"]).feed(0, &mut writer);
    std::mem::forget(writer);
    fs::write(dir.path().join("search-2/0123.pos"), "half").expect("written");
    fs::write(dir.path().join("search-2/commit-new"), "half").expect("written");
    assert!(answers(dir.path()));
    let index = opened(dir.path());
    let mut writer = SearchWriter::resume(dir.path(), &index).expect("a writer");
    assert_eq!(files(dir.path()).len(), before);
    writer.begin(&trail().place(0)).expect("begun");
    writer.commit().expect("committed");
    assert!(answers(dir.path()));
}

#[test]
fn readers_keep_what_they_have_during_a_rebuild() {
    let dir = tempfile::tempdir().expect("a directory");
    let old = built(dir.path(), &[trail()]);
    let new = built(dir.path(), &[TestTrail::of_texts("s", &["alpha"])]);
    assert_eq!(search(&old, &wanted("alpha")).total, 2);
    assert_eq!(search(&new, &wanted("alpha")).total, 1);
    assert_eq!(search(&opened(dir.path()), &wanted("alpha")).total, 1);
}

#[test]
fn an_index_that_is_mostly_dead_is_worn() {
    let dir = tempfile::tempdir().expect("a directory");
    let texts: Vec<String> = (0..900).map(|at| format!("word{at}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let trail = TestTrail::of_texts("s", &texts);
    let mut index = built(dir.path(), std::slice::from_ref(&trail));
    let mut worn = Vec::new();
    for _ in 0..2 {
        let mut writer = SearchWriter::resume(dir.path(), &index).expect("a writer");
        trail.feed(0, &mut writer);
        index = writer.commit().expect("committed");
        worn.push(index.is_worn());
    }
    assert_eq!(worn, [false, true]);
}
