//! A repair collects everything readable in a new trail, and changes nothing that exists.

use std::path::PathBuf;

use backtrail::{Message, Reason, SessionId, Storage};

use super::lab::forge::{self, From};
use super::lab::{Lab, Shown, Story, assert_shows, forwards, lines, starts, trail_path};

/// A way to damage a trail, and the lines that are lost.
struct Case {
    what: &'static str,
    bytes: Vec<u8>,
    lost: Vec<usize>,
}

/// Returns every kind of damage that a trail can have in its middle.
fn cases(bytes: &[u8]) -> Vec<Case> {
    let all = lines(bytes);
    let starts = starts(bytes);
    let case = |what, lines: &[&[u8]], lost: &[usize]| Case {
        what,
        bytes: lines.concat(),
        lost: lost.to_vec(),
    };
    let replaced = |n: usize, with: &'static [u8]| {
        let mut changed = all.clone();
        changed[n] = with;
        changed
    };
    let inserted = |n: usize, with: &'static [u8]| {
        let mut changed = all.clone();
        changed.insert(n, with);
        changed
    };
    let mut flipped = bytes.to_vec();
    flipped[starts[2] + 40] ^= 1;
    let mut newline = bytes.to_vec();
    newline[starts[2] - 1] = b'"';
    let mut nuls = bytes.to_vec();
    nuls[starts[1] + 9..starts[2] + 9].fill(0);
    vec![
        case("a flipped bit", &[&flipped], &[2]),
        case("a newline that is none", &[&newline], &[]),
        case("a deleted line", &[&all[..2], &all[3..]].concat(), &[2]),
        case("a doubled line", &[&all[..3], &all[2..]].concat(), &[]),
        case("a line of garbage", &replaced(1, b"garbage\n"), &[1]),
        case("garbage between lines", &inserted(2, b"\xff\xfe\n"), &[]),
        case("NULs between lines", &inserted(2, &[0; 600]), &[]),
        case("NULs over lines", &[&nuls], &[1, 2]),
        case("a damaged opener", &replaced(0, b"garbage\n"), &[]),
        case("a lost opener", &all[1..], &[]),
        case(
            "a second opener",
            &[&all[..2], &all[..1], &all[2..]].concat(),
            &[],
        ),
        case(
            "a lost last record",
            &replaced(all.len() - 1, b"garbage\n"),
            &[all.len() - 1],
        ),
    ]
}

/// Splits off the part that links a record to the one before it.
fn body(bytes: &[u8]) -> &[u8] {
    let at = bytes
        .windows(9)
        .rposition(|window| window == b",\"prev\":\"");
    &bytes[..at.expect("every record says what was before it")]
}

fn bodies(shown: &[Shown]) -> Vec<(u64, &[u8])> {
    shown
        .iter()
        .map(|(seq, bytes)| (*seq, body(bytes)))
        .collect()
}

/// Returns every trail, with its bytes.
fn trails(lab: &Lab) -> Vec<(PathBuf, Vec<u8>)> {
    let files = lab.disk.files().into_iter();
    files
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .map(|path| (path.clone(), lab.disk.read(&path).unwrap()))
        .collect()
}

/// Repairs a damaged session and checks all promises of a repair.
fn check_repair(lab: &Lab, id: &SessionId, expected: &[Shown], missing: &[u64], what: &str) {
    let (readable, _) = forwards(&lab.reader(id));
    assert_eq!(
        bodies(&readable),
        bodies(expected),
        "{what}: before the repair"
    );
    let before = trails(lab);
    let plan = lab.store.repair_plan(id).unwrap();
    assert!(!plan.is_empty(), "{what}: nothing to repair");
    assert!(!plan.damage().is_empty(), "{what}");
    let named: Vec<u64> = plan.missing().iter().cloned().flatten().collect();
    assert_eq!(named, missing, "{what}: seqs that are missing");
    assert_eq!(trails(lab), before, "{what}: a plan changes nothing");
    let copied = plan.copied();

    let report = plan.apply().unwrap();
    let trail = report
        .trail
        .unwrap_or_else(|| panic!("{what}: no new trail"));
    assert_eq!(report.copied, copied, "{what}");
    let named: Vec<u64> = report.missing.iter().cloned().flatten().collect();
    assert_eq!(named, missing, "{what}");
    let after = trails(lab);
    assert_eq!(after.len(), before.len() + 1, "{what}");
    assert_eq!(
        after[..before.len()],
        before,
        "{what}: old trails were touched"
    );
    assert_eq!(after[before.len()].0, trail_path(id, trail), "{what}");

    let (now, damage) = forwards(&lab.reader(id));
    assert_eq!(bodies(&now), bodies(expected), "{what}: after the repair");
    assert_eq!(damage, [], "{what}: readers still go around it");
    assert_shows(lab, id, &now, what);
    let verified = lab.reader(id).verify().unwrap();
    assert!(verified.is_ok(), "{what}: {:?}", verified.damage.first());
    let plan = lab.store.repair_plan(id).unwrap();
    assert!(plan.is_empty(), "{what}: {:?}", plan.damage().first());
    assert_eq!(plan.apply().unwrap().trail, None, "{what}");

    let session = lab.store.open_session(id).unwrap();
    let seq = session
        .append(Message::user_text("after the repair"))
        .unwrap();
    session.close().unwrap();
    assert!(seq > expected.last().map_or(0, |(seq, _)| *seq), "{what}");
    assert!(lab.reader(id).verify().unwrap().is_ok(), "{what}");
}

fn check_cases(story: &Story, trail: u32) {
    let bytes = story.bytes(trail);
    let all = lines(&bytes);
    let end = story.shown.last().unwrap().0;
    for case in cases(&bytes) {
        let what = format!("{} in trail {trail}", case.what);
        let expected = story.without(case.lost.iter().map(|n| all[*n]));
        // Records lost at the very end cannot be distinguished from ones that never
        // existed.
        let last = expected.last().map_or(0, |(seq, _)| *seq);
        let is_missing = |seq: &u64| !expected.iter().any(|(n, _)| n == seq);
        let missing: Vec<u64> = (1..=end)
            .filter(is_missing)
            .filter(|seq| *seq < last)
            .collect();
        let lab = story.with(trail, &case.bytes);
        check_repair(&lab, &story.id, &expected, &missing, &what);
        let verified = lab.reader(&story.id).verify().unwrap();
        assert!(!verified.repaired.is_empty(), "{what}");
    }
}

#[test]
fn a_repair_keeps_every_readable_record_and_every_old_byte() {
    check_cases(&Story::in_one_trail(), 0);
}

#[test]
fn a_repair_of_an_older_trail_keeps_every_readable_record_and_every_old_byte() {
    check_cases(&Story::in_two_trails(), 0);
}

#[test]
fn a_repair_of_a_second_trail_keeps_every_readable_record_and_every_old_byte() {
    check_cases(&Story::in_two_trails(), 1);
}

/// Nothing is readable, so the trail gets an opener after the garbage.
#[test]
fn a_repair_of_a_trail_without_a_readable_line_keeps_the_garbage_and_the_other_trails() {
    for (story, trail) in [(Story::in_one_trail(), 0), (Story::in_two_trails(), 1)] {
        let bytes = story.bytes(trail);
        let garbage = b"garbage\nmore\n";
        let lab = story.with(trail, garbage);
        let expected = story.without(lines(&bytes));
        let plan = lab.store.repair_plan(&story.id).unwrap();
        assert!(!plan.is_empty());
        plan.apply().unwrap();
        assert!(lab.bytes(&story.id, trail).starts_with(garbage));
        assert_shows(&lab, &story.id, &expected, "after the repair");
        let verified = lab.reader(&story.id).verify().unwrap();
        assert!(verified.is_ok(), "{:?}", verified.damage.first());
        assert!(lab.store.repair_plan(&story.id).unwrap().is_empty());
    }
}

/// An older trail ends too early: cleanly, as with a lost append, or torn.
#[test]
fn a_repair_goes_around_an_older_trail_that_was_cut_off() {
    let story = Story::in_two_trails();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    let last = story.without([*all.last().unwrap()]);
    let start = *starts(&bytes).last().unwrap();
    for at in [start, start + 10] {
        let lab = story.with(0, &bytes[..at]);
        check_repair(
            &lab,
            &story.id,
            &last,
            &[3],
            &format!("trail 0 cut at {at}"),
        );
    }
}

#[test]
fn a_repair_goes_around_a_trail_that_is_gone() {
    let (lab, a): (_, SessionId) = (Lab::new(), "gone".parse().unwrap());
    let t0 = forge::trail(&a, 0, "start", None, 2);
    let t1 = forge::trail(&a, 1, "rotation", Some(From::new(&a, 0, 2, &t0)), 2);
    let t2 = forge::trail(&a, 2, "rotation", Some(From::new(&a, 1, 4, &t1)), 2);
    lab.plant(&a, &[&t0, &t1, &t2]);
    lab.disk.remove_file(&trail_path(&a, 1)).unwrap();
    let (expected, _) = forwards(&lab.reader(&a));
    check_repair(&lab, &a, &expected, &[3, 4], "trail 1 is gone");
}

#[test]
fn a_repair_straightens_openers_that_run_in_circles() {
    let (lab, a): (_, SessionId) = (Lab::new(), "circle".parse().unwrap());
    let t0 = forge::trail(&a, 0, "start", None, 2);
    let mut from = From::new(&a, 0, 2, &t0);
    from.trail = 1;
    let t1 = forge::trail(&a, 1, "rotation", Some(from), 2);
    lab.plant(&a, &[&t0, &t1]);
    let (expected, _) = forwards(&lab.reader(&a));
    assert_eq!(expected.len(), 4);
    check_repair(&lab, &a, &expected, &[], "trail 1 continues itself");
}

#[test]
fn a_second_repair_after_new_damage_works_like_the_first() {
    let story = Story::in_two_trails();
    let bytes = story.bytes(1);
    let mut all = lines(&bytes);
    let lost = all[2];
    all[2] = b"garbage\n";
    let lab = story.with(1, &all.concat());
    let expected = story.without([lost]);
    let seq = story
        .shown
        .iter()
        .find(|(_, bytes)| lost.starts_with(bytes))
        .unwrap()
        .0;
    check_repair(&lab, &story.id, &expected, &[seq], "first");
    let bytes = lab.bytes(&story.id, 2);
    let mut all = lines(&bytes);
    all[1] = b"\0\0\0\n";
    lab.put(&story.id, 2, &all.concat());
    let (expected, damage) = forwards(&lab.reader(&story.id));
    assert_eq!(damage.len(), 1);
    let gone = seq + 1;
    assert!(expected.iter().all(|(seq, _)| *seq != gone));
    check_repair(&lab, &story.id, &expected, &[seq, gone], "second");
}

/// The parent's files are not changed: the fork gets the readable part of them.
#[test]
fn a_repair_of_a_fork_takes_along_what_is_readable_of_its_parent() {
    let lab = Lab::new();
    let (parent, child): (SessionId, SessionId) = ("par".parse().unwrap(), "chi".parse().unwrap());
    let p0 = forge::trail(&parent, 0, "start", None, 4);
    let c0 = forge::trail(&child, 0, "fork", Some(From::new(&parent, 0, 4, &p0)), 3);
    let mut all = lines(&p0);
    all[2] = b"garbage\n";
    lab.plant(&parent, &[&all.concat()]);
    let mut own = lines(&c0);
    own[2] = b"garbage\n";
    lab.plant(&child, &[&own.concat()]);
    let (expected, _) = forwards(&lab.reader(&child));
    let seqs: Vec<u64> = expected.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, [1, 3, 4, 5, 7]);
    let before = lab.bytes(&parent, 0);
    let report = lab.store.repair_plan(&child).unwrap().apply().unwrap();
    assert_eq!(report.missing, [2..=2, 6..=6]);
    assert_eq!(lab.bytes(&parent, 0), before);
    let (now, damage) = forwards(&lab.reader(&child));
    assert_eq!(bodies(&now), bodies(&expected));
    assert_eq!(damage, []);
    let verified = lab.reader(&child).verify().unwrap();
    assert!(verified.is_ok(), "{:?}", verified.damage.first());
}

#[test]
fn an_undamaged_session_needs_no_repair() {
    for story in [Story::in_one_trail(), Story::in_two_trails()] {
        let before = trails(&story.lab);
        let plan = story.lab.store.repair_plan(&story.id).unwrap();
        assert!(plan.is_empty());
        assert_eq!((plan.copied(), plan.missing().len()), (0, 0));
        assert_eq!(plan.unfinished_bytes(), 0);
        assert_eq!(plan.apply().unwrap().trail, None);
        assert_eq!(trails(&story.lab), before);
    }
}

#[test]
fn a_repair_sets_an_unfinished_line_aside_and_makes_no_trail_for_it() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let torn = b"{\"type\":\"message\",\"seq\":7";
    let lab = story.with(0, &[&bytes[..], torn].concat());
    let plan = lab.store.repair_plan(&story.id).unwrap();
    assert_eq!(plan.unfinished_bytes(), torn.len() as u64);
    assert!(!plan.is_empty() && plan.damage().is_empty());
    let report = plan.apply().unwrap();
    assert_eq!((report.trail, report.set_aside.len()), (None, 1));
    assert_eq!(lab.disk.read(&report.set_aside[0].file).unwrap(), torn);
    assert_eq!(lab.bytes(&story.id, 0), bytes);
    assert!(lab.reader(&story.id).verify().unwrap().is_ok());
}

#[test]
fn a_repair_does_not_wait_for_a_writer() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let mut all = lines(&bytes);
    all[1] = b"garbage\n";
    let lab = story.with(0, &all.concat());
    let session = lab.store.open_session(&story.id).unwrap();
    let error = lab
        .store
        .repair_plan(&story.id)
        .unwrap()
        .apply()
        .unwrap_err();
    assert_eq!(error.kind(), backtrail::ErrorKind::Locked);
    session.close().unwrap();
    let report = lab.store.repair_plan(&story.id).unwrap().apply().unwrap();
    assert_eq!(report.trail, Some(1));
    let first = &report.damage.first()[0];
    assert_eq!((&first.reason, first.line), (&Reason::NotARecord, Some(2)));
}

/// Title, tags and model are those that the session had, not those at the place that the
/// new trail continues.
#[test]
fn a_repaired_session_keeps_its_title() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    for n in [1, 2] {
        let mut all = lines(&bytes);
        all[n] = b"garbage\n";
        let lab = story.with(0, &all.concat());
        lab.store.repair_plan(&story.id).unwrap().apply().unwrap();
        let info = lab.reader(&story.id).info().unwrap();
        assert_eq!(info.title.as_deref(), Some("renamed"));
        assert_eq!(info.agent.as_deref(), Some("tester"));
    }
}
