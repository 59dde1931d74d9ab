//! Within a step, captured entries stay captured, whatever the step writes into the
//! rules. The next scan without `keep` decides by the rules alone.

#![expect(
    clippy::disallowed_methods,
    reason = "tests change a workspace as programs do"
)]

use std::fs;
use std::os::unix::fs::symlink;

use super::super::entry::SkippedReason;
use super::testing::{TestWorkspace, Thing, Things};
use super::{Hook, ScanStep, StatCache};

fn place() -> TestWorkspace {
    let mut place = TestWorkspace::new();
    place.later_millis = 3_600_000;
    place.options.small_ignored = 10;
    place
}

/// Scans with the cache, keeping captured entries.
fn keep(place: &mut TestWorkspace) -> Things {
    place.options.keep = true;
    let scanned = place.scan();
    place.options.keep = false;
    place.of(&scanned)
}

/// Returns a file's content, if captured, and whether it was ignored.
fn file<'a>(things: &'a Things, path: &str) -> Option<(&'a [u8], bool)> {
    match things.get(path.as_bytes())? {
        Thing::File { bytes, ignored, .. } => Some((bytes, *ignored)),
        _ => None,
    }
}

fn is_skipped(things: &Things, path: &str) -> bool {
    let thing = things.get(path.as_bytes());
    matches!(thing, Some(Thing::Skipped(SkippedReason::Ignored, _)))
}

/// B3: a step cannot hide its changes by adding them to `.gitignore`.
#[test]
fn a_directory_that_becomes_ignored_is_looked_into_for_what_was_captured() {
    let mut place = place();
    for path in ["src/a", "src/b", "src/deep/er/c", "src/same", "top"] {
        place.write(path, "before");
    }
    symlink("a", place.at("src/link")).unwrap();
    place.scan();
    place.write(".gitignore", "/src/\n");
    place.write("src/a", "changed");
    place.write("src/deep/er/c", "changed too");
    place.write("src/new", "new");
    place.write("src/fresh/new", "new");
    fs::remove_file(place.at("src/b")).unwrap();
    for _ in 0..3 {
        let things = keep(&mut place);
        assert_eq!(file(&things, "src/a"), Some((&b"changed"[..], true)));
        assert_eq!(file(&things, "src/same"), Some((&b"before"[..], true)));
        let deep = file(&things, "src/deep/er/c");
        assert_eq!(deep, Some((&b"changed too"[..], true)));
        assert_eq!(
            things.get(&b"src/link"[..]),
            Some(&Thing::Link(b"a".into()))
        );
        assert_eq!(things.get(&b"src/b"[..]), None);
        assert!(is_skipped(&things, "src/new"));
        assert!(is_skipped(&things, "src/fresh"));
        assert_eq!(file(&things, "top"), Some((&b"before"[..], false)));
    }
}

/// B3: nor with a larger file, or one that grew.
#[test]
fn a_file_that_was_captured_is_captured_however_large_it_is_now() {
    let mut place = place();
    place.write(".gitignore", "*.log\n");
    place.write("small.log", "small");
    place.write("large.bin", "larger than ten bytes");
    place.scan();
    place.write(".gitignore", "*.log\n*.bin\n");
    place.write("small.log", "and now it is longer");
    place.write("new.log", "a longer one that is new");
    for _ in 0..3 {
        let things = keep(&mut place);
        let grown = file(&things, "small.log");
        assert_eq!(grown, Some((&b"and now it is longer"[..], true)));
        assert!(matches!(file(&things, "large.bin"), Some((_, true))));
        assert!(is_skipped(&things, "new.log"));
    }
    // The cap is not a rule.
    place.options.cap = 12;
    let things = keep(&mut place);
    let reason = |path: &str| match things.get(path.as_bytes()) {
        Some(Thing::Skipped(reason, _)) => Some(*reason),
        _ => None,
    };
    assert_eq!(reason("large.bin"), Some(SkippedReason::TooLarge));
}

#[test]
fn the_next_scan_decides_by_the_rules_again() {
    let mut place = place();
    place.write("src/a", "x");
    place.write("src/deep/b", "x");
    place.write("large.bin", "larger than ten bytes");
    place.scan();
    place.write(".gitignore", "/src/\n*.bin\n");
    place.write("src/new", "x");
    assert!(file(&keep(&mut place), "src/deep/b").is_some());
    assert!(file(&keep(&mut place), "large.bin").is_some());
    // Compared with a scan without cache.
    let things = place.things();
    assert!(is_skipped(&things, "src") && is_skipped(&things, "large.bin"));
    // Entries skipped in between are not captured any more.
    let things = keep(&mut place);
    assert!(is_skipped(&things, "src") && is_skipped(&things, "large.bin"));
}

#[test]
fn what_is_no_longer_ignored_is_whole_again() {
    let mut place = place();
    place.write("src/a", "x");
    place.scan();
    place.write(".gitignore", "/src/\n");
    place.write("src/new", "x");
    place.write("src/deep/new", "x");
    assert!(is_skipped(&keep(&mut place), "src/new"));
    fs::remove_file(place.at(".gitignore")).unwrap();
    let things = place.things();
    for path in ["src/a", "src/new", "src/deep/new"] {
        assert_eq!(file(&things, path), Some((&b"x"[..], false)), "{path}");
    }
}

#[test]
fn our_own_rules_hold_at_once() {
    let mut place = place();
    place.write("src/a", "x");
    place.write("src/secret", "x");
    place.write("other/a", "x");
    place.write("key", "x");
    place.scan();
    place.write(".gitignore", "/src/\n");
    place.write(".backtrailignore", "/other/\nkey\nsecret\n");
    let things = keep(&mut place);
    assert!(file(&things, "src/a").is_some());
    for path in ["src/secret", "other", "key"] {
        assert!(is_skipped(&things, path), "{path}");
    }
    place.write("src/.backtrailignore", "a\n");
    assert!(is_skipped(&keep(&mut place), "src/a"));
}

#[test]
fn without_a_cache_the_rules_hold() {
    let mut place = place();
    place.write("src/a", "x");
    place.scan();
    place.write(".gitignore", "/src/\n");
    place.cache = StatCache::empty();
    assert!(is_skipped(&keep(&mut place), "src"));
}

#[test]
fn a_file_in_the_place_of_a_directory_is_still_what_was_captured() {
    let mut place = place();
    place.write("src/sub/a", "x");
    place.write("src/b", "x");
    place.scan();
    place.write(".gitignore", "/src/\n");
    fs::remove_dir_all(place.at("src/sub")).unwrap();
    place.write("src/sub", "a file");
    let things = keep(&mut place);
    assert_eq!(file(&things, "src/sub"), Some((&b"a file"[..], true)));
}

/// The state of a directory while it is opened is not a decision of the rules.
#[test]
fn a_kept_directory_that_goes_wrong_is_decided_by_the_rules_later() {
    let mut place = place();
    place.write("src/sub/a", "x");
    place.scan();
    place.write(".gitignore", "/src\n");
    let src = place.at("src");
    let moved = place.at("moved");
    place.options.hook = Some(Hook(std::sync::Arc::new(move |step, path| {
        if step == ScanStep::OpenDir && path == b"src" && src.is_dir() {
            fs::rename(&src, &moved).unwrap();
            fs::write(&src, "a file that took its place").unwrap();
        }
    })));
    let things = keep(&mut place);
    assert!(
        matches!(file(&things, "src"), Some((_, true))),
        "{things:?}"
    );
    place.options.hook = None;
    place.things();
}

#[test]
fn a_kept_directory_that_is_skipped_when_it_is_opened_is_ignored_later() {
    let mut place = place();
    place.write("src/a", "x");
    place.scan();
    place.write(".gitignore", "/src/\n");
    let src = place.at("src");
    let store = std::mem::replace(&mut place.options.store, src);
    let things = keep(&mut place);
    let reason = SkippedReason::Store;
    let src = things.get(&b"src"[..]);
    assert!(matches!(src, Some(Thing::Skipped(was, _)) if *was == reason));
    place.options.store = store;
    assert!(is_skipped(&place.things(), "src"));
}
