//! Openers say how trails are connected. If they are wrong, circular or lost, everything
//! readable is still shown, and no reader hangs.

use backtrail::verify::Damage;
use backtrail::{Reason, SessionId, SessionReader, Storage};

use super::lab::forge::{self, From};
use super::lab::{
    Lab, Story, assert_goes_on, assert_shows, backwards, forwards, lines, trail_path,
};

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

/// Returns the messages: `session/trail/seq`.
fn said(reader: &SessionReader) -> Vec<String> {
    let mut records = reader.records().unwrap();
    let mut said = Vec::new();
    while let Some(record) = records.next().unwrap() {
        said.push(record.message().unwrap().unwrap().text().into_owned());
    }
    said
}

/// Asserts the messages, from both ends and by number, and that the session continues;
/// returns the damage that `verify` finds and that readers report.
fn check(lab: &Lab, id: &SessionId, expected: &[&str]) -> (Vec<Damage>, Vec<Damage>) {
    let reader = lab.reader(id);
    assert_eq!(said(&reader), expected);
    let (shown, _) = forwards(&reader);
    let damage = assert_shows(lab, id, &shown, &format!("{id}"));
    let report = reader.verify().unwrap();
    assert_goes_on(lab, id, &shown, &format!("{id}"));
    (report.damage.first().to_vec(), damage)
}

fn reasons(damage: &[Damage]) -> Vec<&Reason> {
    damage.iter().map(|damage| &damage.reason).collect()
}

/// Returns whether a broken link, and nothing else, is reported.
fn is_broken_link(damage: &[Damage]) -> bool {
    let broken = |damage: &Damage| matches!(damage.reason, Reason::BrokenLink(_));
    !damage.is_empty() && damage.iter().all(broken)
}

#[test]
fn a_trail_that_continues_an_earlier_record_shows_what_came_before_that_and_its_own() {
    let (lab, a) = (Lab::new(), id("rewound"));
    let t0 = forge::trail(&a, 0, "start", None, 5);
    let t1 = forge::trail(&a, 1, "rewind", Some(From::new(&a, 0, 2, &t0)), 2);
    lab.plant(&a, &[&t0, &t1]);
    let (damage, _) = check(
        &lab,
        &a,
        &["rewound/0/1", "rewound/0/2", "rewound/1/3", "rewound/1/4"],
    );
    assert_eq!(damage, []);
}

#[test]
fn a_trail_may_continue_another_before_that_ones_own_records() {
    let (lab, a) = (Lab::new(), id("twice"));
    let t0 = forge::trail(&a, 0, "start", None, 5);
    let t1 = forge::trail(&a, 1, "rewind", Some(From::new(&a, 0, 3, &t0)), 2);
    // Record 1 is in trail 0, from which trail 1 inherits it.
    let mut from = From::new(&a, 0, 1, &t0);
    from.trail = 1;
    let t2 = forge::trail(&a, 2, "rewind", Some(from), 2);
    lab.plant(&a, &[&t0, &t1, &t2]);
    let (damage, _) = check(&lab, &a, &["twice/0/1", "twice/2/2", "twice/2/3"]);
    assert_eq!(damage, []);
}

#[test]
fn a_trail_may_continue_one_that_nothing_was_said_in() {
    let (lab, a) = (Lab::new(), id("empty"));
    let t0 = forge::trail(&a, 0, "start", None, 3);
    let t1 = forge::trail(&a, 1, "rewind", Some(From::new(&a, 0, 2, &t0)), 0);
    let mut from = From::new(&a, 0, 2, &t0);
    from.trail = 1;
    let t2 = forge::trail(&a, 2, "rotation", Some(from), 2);
    lab.plant(&a, &[&t0, &t1, &t2]);
    let (damage, _) = check(
        &lab,
        &a,
        &["empty/0/1", "empty/0/2", "empty/2/3", "empty/2/4"],
    );
    assert_eq!(damage, []);
}

#[test]
fn a_fork_reads_its_parents_records_up_to_where_it_left() {
    let (lab, parent, child) = (Lab::new(), id("parent"), id("child"));
    let p0 = forge::trail(&parent, 0, "start", None, 2);
    let p1 = forge::trail(
        &parent,
        1,
        "rotation",
        Some(From::new(&parent, 0, 2, &p0)),
        3,
    );
    lab.plant(&parent, &[&p0, &p1]);
    let c0 = forge::trail(&child, 0, "fork", Some(From::new(&parent, 1, 3, &p1)), 2);
    let c1 = forge::trail(&child, 1, "rotation", Some(From::new(&child, 0, 5, &c0)), 1);
    lab.plant(&child, &[&c0, &c1]);
    let (damage, _) = check(
        &lab,
        &child,
        &[
            "parent/0/1",
            "parent/0/2",
            "parent/1/3",
            "child/0/4",
            "child/0/5",
            "child/1/6",
        ],
    );
    assert_eq!(damage, []);
    // Later records of the parent are its own.
    let before = said(&lab.reader(&child));
    let session = lab.store.open_session(&parent).unwrap();
    session
        .append(backtrail::Message::user_text("more"))
        .unwrap();
    assert_eq!(said(&lab.reader(&child)), before);
}

#[test]
fn a_trail_that_continues_itself_or_a_later_one_is_damage_and_hides_nothing() {
    for wrong in [1, 2, 7] {
        let (lab, a) = (Lab::new(), id("circle"));
        let t0 = forge::trail(&a, 0, "start", None, 3);
        let mut from = From::new(&a, 0, 3, &t0);
        from.trail = wrong;
        let t1 = forge::trail(&a, 1, "rotation", Some(from), 2);
        let t2 = forge::trail(&a, 2, "rotation", Some(From::new(&a, 1, 5, &t1)), 1);
        lab.plant(&a, &[&t0, &t1, &t2]);
        let all = [
            "circle/0/1",
            "circle/0/2",
            "circle/0/3",
            "circle/1/4",
            "circle/1/5",
            "circle/2/6",
        ];
        let (verified, seen) = check(&lab, &a, &all);
        assert!(reasons(&verified).contains(&&Reason::Loop), "{verified:?}");
        assert_eq!(reasons(&seen), [&Reason::Loop]);
        assert_eq!(seen[0].file, trail_path(&a, 1));
    }
}

#[test]
fn a_first_trail_that_continues_its_own_session_is_damage() {
    let (lab, a) = (Lab::new(), id("snake"));
    let t0 = forge::trail(&a, 0, "start", None, 3);
    let t0 = forge::trail(&a, 0, "fork", Some(From::new(&a, 0, 3, &t0)), 2);
    lab.plant(&a, &[&t0]);
    let (verified, seen) = check(&lab, &a, &["snake/0/4", "snake/0/5"]);
    assert!(reasons(&verified).contains(&&Reason::Loop), "{verified:?}");
    assert_eq!(reasons(&seen), [&Reason::Loop]);
}

#[test]
fn a_trail_whose_predecessor_is_gone_shows_itself_and_what_lies_below() {
    let (lab, a) = (Lab::new(), id("gap"));
    let t0 = forge::trail(&a, 0, "start", None, 2);
    let t1 = forge::trail(&a, 1, "rotation", Some(From::new(&a, 0, 2, &t0)), 2);
    let t2 = forge::trail(&a, 2, "rotation", Some(From::new(&a, 1, 4, &t1)), 2);
    lab.plant(&a, &[&t0, &t1, &t2]);
    lab.disk.remove_file(&trail_path(&a, 1)).unwrap();
    let (verified, seen) = check(&lab, &a, &["gap/0/1", "gap/0/2", "gap/2/5", "gap/2/6"]);
    assert!(is_broken_link(&verified), "{verified:?}");
    assert!(is_broken_link(&seen), "{seen:?}");
    assert_eq!(verified[0].file, trail_path(&a, 2));
}

#[test]
fn a_fork_whose_parent_is_gone_shows_its_own() {
    let (lab, child) = (Lab::new(), id("orphan"));
    let gone = id("gone");
    let from = From {
        id: &gone,
        trail: 0,
        seq: 3,
        sum: "00000000000000ff".to_owned(),
    };
    lab.plant(&child, &[&forge::trail(&child, 0, "fork", Some(from), 2)]);
    let (verified, seen) = check(&lab, &child, &["orphan/0/4", "orphan/0/5"]);
    assert!(is_broken_link(&verified), "{verified:?}");
    assert!(is_broken_link(&seen), "{seen:?}");
}

#[test]
fn two_sessions_that_continue_each_other_are_damage_and_show_what_they_hold() {
    let (lab, a, b) = (Lab::new(), id("aaaa"), id("bbbb"));
    let a0 = forge::trail(&a, 0, "start", None, 3);
    let b0 = forge::trail(&b, 0, "fork", Some(From::new(&a, 0, 3, &a0)), 3);
    let a0 = forge::trail(&a, 0, "fork", Some(From::new(&b, 0, 6, &b0)), 3);
    lab.plant(&a, &[&a0]);
    lab.plant(&b, &[&b0]);
    let own = ["aaaa/0/7", "aaaa/0/8", "aaaa/0/9"];
    let inherited = ["bbbb/0/4", "bbbb/0/5", "bbbb/0/6"];
    let (verified, seen) = check(&lab, &a, &[inherited, own].concat());
    assert!(reasons(&verified).contains(&&Reason::Loop), "{verified:?}");
    assert_eq!(reasons(&seen), [&Reason::Loop]);
    let reader = lab.reader(&b);
    assert!(!reader.verify().unwrap().is_ok());
    assert!(said(&reader).ends_with(&inherited.map(str::to_owned)));
    assert!(!backwards(&reader).1.is_empty());
}

#[test]
fn an_opener_that_names_a_path_for_a_session_reaches_no_file() {
    let (lab, a) = (Lab::new(), id("hostile"));
    let t0 = forge::trail(&a, 0, "start", None, 3);
    let t1 = forge::trail(&a, 1, "rotation", Some(From::new(&a, 0, 3, &t0)), 1);
    let all = lines(&t1);
    let path = r#""session_id":"../../etc","trail":0"#;
    let opener = forge::change(all[0], r#""session_id":"hostile","trail":0"#, path);
    lab.plant(&a, &[&t0, &[&opener, all[1]].concat()]);
    let (verified, _) = check(
        &lab,
        &a,
        &["hostile/0/1", "hostile/0/2", "hostile/0/3", "hostile/1/4"],
    );
    assert!(
        reasons(&verified).contains(&&Reason::BadOpener),
        "{verified:?}"
    );
}

#[test]
fn a_trail_whose_opener_is_lost_continues_the_one_before_up_to_its_first_record() {
    let story = Story::in_two_trails();
    let bytes = story.bytes(1);
    let all = lines(&bytes);
    for opener in [&b"garbage\n"[..], b"", b"\0\0\0\0\n"] {
        let what = format!("opener {:?}", String::from_utf8_lossy(opener));
        let changed = [&[opener], &all[1..]].concat().concat();
        let lab = story.with(1, &changed);
        let seen = assert_shows(&lab, &story.id, &story.shown, &what);
        assert!(
            reasons(&seen).contains(&&Reason::BadOpener),
            "{what}: {seen:?}"
        );
        let report = lab.reader(&story.id).verify().unwrap();
        assert!(
            reasons(report.damage.first()).contains(&&Reason::BadOpener),
            "{what}"
        );
        let info = lab.reader(&story.id).info().unwrap();
        assert_eq!((info.version, info.trails), (None, 2), "{what}");
        assert_eq!(info.title.as_deref(), Some("renamed"), "{what}");
        assert_goes_on(&lab, &story.id, &story.shown, &what);
    }
    // The first own record is lost as well, and only that.
    let changed = [&[&b"garbage\n"[..]], &all[2..]].concat().concat();
    let lab = story.with(1, &changed);
    assert_shows(&lab, &story.id, &story.without([all[1]]), "two lines lost");
}

/// If the trail was a rewind, the records it left stay undone.
#[test]
fn a_lost_opener_of_a_rewound_trail_does_not_restore_what_was_undone() {
    let (lab, a) = (Lab::new(), id("rewound"));
    let t0 = forge::trail(&a, 0, "start", None, 5);
    let t1 = forge::trail(&a, 1, "rewind", Some(From::new(&a, 0, 2, &t0)), 2);
    let own = lines(&t1)[1..].concat();
    lab.plant(&a, &[&t0, &own]);
    let (verified, seen) = check(
        &lab,
        &a,
        &["rewound/0/1", "rewound/0/2", "rewound/1/3", "rewound/1/4"],
    );
    assert_eq!(reasons(&verified), [&Reason::BadOpener]);
    assert_eq!(reasons(&seen), [&Reason::BadOpener]);
}

/// Only the name of the second trail is left.
#[test]
fn a_trail_without_a_readable_line_hides_nothing_before_it() {
    for content in [&b""[..], b"garbage\nmore\n", b"\0\0\0\0", b"\n\n"] {
        let (lab, a) = (Lab::new(), id("husk"));
        let t0 = forge::trail(&a, 0, "start", None, 3);
        lab.plant(&a, &[&t0, content]);
        let (_, seen) = check(&lab, &a, &["husk/0/1", "husk/0/2", "husk/0/3"]);
        assert!(reasons(&seen).contains(&&Reason::BadOpener), "{seen:?}");
    }
}
