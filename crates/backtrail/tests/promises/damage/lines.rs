//! Lines are lost, duplicated, moved, overwritten and joined.

use backtrail::verify::Damage;
use backtrail::{Message, Reason, Storage, StoreOptions};
use backtrail_testkit::{Count, FaultyStorage};

use super::lab::{
    Lab, Shown, Story, assert_goes_on, assert_shows, backwards, forge, forwards, lines, starts,
    trail_path, trim_newline,
};

/// Checks a reassembled trail: that exactly these lines are lost, that the loss is
/// reported, and that the session continues. Returns what `verify` found.
fn check(story: &Story, bytes: &[u8], lost: &[&[u8]], what: &str) -> Vec<Damage> {
    let expected = story.without(lost.iter().copied());
    let lab = story.with(0, bytes);
    assert_shows(&lab, &story.id, &expected, what);
    let report = lab.reader(&story.id).verify().unwrap();
    for damage in report.damage.first() {
        assert_eq!(damage.file, trail_path(&story.id, 0), "{what}");
        assert!(damage.line.is_some(), "{what}: {damage:?}");
        assert!(damage.byte < bytes.len() as u64, "{what}: {damage:?}");
    }
    assert_goes_on(&lab, &story.id, &expected, what);
    report.damage.first().to_vec()
}

fn reasons(damage: &[Damage]) -> Vec<&Reason> {
    damage.iter().map(|damage| &damage.reason).collect()
}

#[test]
fn a_deleted_line_is_noticed_and_costs_only_itself() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    let starts = starts(&bytes);
    for n in 0..all.len() {
        let what = format!("line {} deleted", n + 1);
        let rest = [&all[..n], &all[n + 1..]].concat().concat();
        let damage = check(&story, &rest, &[all[n]], &what);
        if n == 0 {
            assert_eq!(reasons(&damage), [&Reason::BadOpener], "{what}");
        } else if n + 1 < all.len() {
            assert_eq!(reasons(&damage), [&Reason::Gap], "{what}");
            assert_eq!(damage[0].line, Some(n as u64 + 1), "{what}");
            assert_eq!(damage[0].byte, starts[n] as u64, "{what}");
        }
    }
}

#[test]
fn a_line_that_stands_twice_is_noticed_and_shown_once() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    for n in 0..all.len() {
        let what = format!("line {} twice", n + 1);
        let doubled = [&all[..=n], &all[n..]].concat().concat();
        let damage = check(&story, &doubled, &[], &what);
        assert_eq!(damage[0].line, Some(n as u64 + 2), "{what}");
        match &damage[0].reason {
            Reason::UnsupportedType(name) => assert_eq!((n, name.as_str()), (0, "session_meta")),
            Reason::OutOfOrder { seq, after } => assert_eq!((*seq, *after), (n as u64, n as u64)),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn two_lines_that_changed_places_are_noticed_and_hide_no_other() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let mut all = lines(&bytes);
    for n in 0..all.len() - 1 {
        let what = format!("lines {} and {} swapped", n + 1, n + 2);
        let (first, second) = (
            trim_newline(all[n]).to_vec(),
            trim_newline(all[n + 1]).to_vec(),
        );
        all.swap(n, n + 1);
        let lab = story.with(0, &all.concat());
        all.swap(n, n + 1);
        let reader = lab.reader(&story.id);
        for (shown, damage) in [forwards(&reader), backwards(&reader)] {
            let moved = |bytes: &Vec<u8>| *bytes == first || *bytes == second;
            let others = |shown: &[Shown]| {
                let mut others = shown.to_vec();
                others.retain(|(_, bytes)| !moved(bytes));
                others
            };
            assert_eq!(others(&shown), others(&story.shown), "{what}");
            let count = shown.iter().filter(|(_, bytes)| moved(bytes)).count();
            assert!(count >= 1, "{what}");
            assert!(!damage.is_empty(), "{what}");
        }
        assert!(!reader.verify().unwrap().is_ok(), "{what}");
        let session = lab.store.open_session(&story.id).unwrap();
        session.append(Message::user_text("on")).unwrap();
    }
}

#[test]
fn a_line_of_garbage_costs_only_the_record_it_replaced() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    let garbage: [(&[u8], Reason); 6] = [
        (b"garbage\n", Reason::NotARecord),
        (b"\xff\xfe\x80 not UTF-8 \xc3\n", Reason::NotARecord),
        (b"{}\n", Reason::MissingSum),
        (b"{\"type\":\"message\",\"seq\":3}\n", Reason::MissingSum),
        (
            b"{\"type\":\"message\",\"seq\":3,\"sum\":\"0123456789abcdef\"}\n",
            Reason::BadSum,
        ),
        (b"\0\0\0\0\n", Reason::NulBlock),
    ];
    for (line, reason) in &garbage {
        for n in 0..all.len() {
            let what = format!("line {} is {:?}", n + 1, String::from_utf8_lossy(line));
            let mut changed = all.clone();
            changed[n] = line;
            let damage = check(&story, &changed.concat(), &[all[n]], &what);
            assert_eq!(&damage[0].reason, reason, "{what}");
            assert_eq!(damage[0].line, Some(n as u64 + 1), "{what}");
            assert_eq!(
                damage[0].byte as usize,
                changed[..n].concat().len(),
                "{what}"
            );
            assert_eq!(damage[0].bytes as usize, line.len() - 1, "{what}");
        }
    }
}

/// The last record was acknowledged, so its number may be known to others.
#[test]
fn the_number_of_a_damaged_last_record_is_not_given_to_another() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let lost = story.shown.last().unwrap().0;
    for damaged in [bytes.len() - 30, *starts(&bytes).last().unwrap()] {
        let mut changed = bytes.clone();
        changed[damaged] ^= 1;
        let lab = story.with(0, &changed);
        let session = lab.store.open_session(&story.id).unwrap();
        let seq = session.append(Message::user_text("on")).unwrap();
        assert_eq!(seq, lost + 1);
    }
}

#[test]
fn lines_of_garbage_between_the_records_cost_nothing() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    for garbage in [
        &b"\xff\xfe\x80\n"[..],
        b"null\n",
        b"[1]\n",
        b"\"sum\"\n",
        b"}\n",
    ] {
        for n in 0..=all.len() {
            let what = format!(
                "{:?} before line {}",
                String::from_utf8_lossy(garbage),
                n + 1
            );
            let mut changed = all.clone();
            changed.insert(n, garbage);
            let damage = check(&story, &changed.concat(), &[], &what);
            assert_eq!(reasons(&damage), [&Reason::NotARecord], "{what}");
        }
    }
}

/// F19: power cuts leave blocks of NUL bytes.
#[test]
fn nul_blocks_between_lines_cost_nothing_and_hide_nothing() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    for size in [1, 512, 4096, 70_000] {
        for at in starts(&bytes).into_iter().chain([bytes.len()]) {
            let what = format!("{size} NULs at byte {at}");
            let changed = [&bytes[..at], &vec![0; size], &bytes[at..]].concat();
            let damage = check(&story, &changed, &[], &what);
            assert_eq!(reasons(&damage), [&Reason::NulBlock], "{what}");
            assert_eq!(
                (damage[0].byte, damage[0].bytes),
                (at as u64, size as u64),
                "{what}"
            );
        }
    }
}

/// F19, within a record.
#[test]
fn nul_blocks_inside_a_line_cost_only_that_record() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    for size in [1, 512, 4096, 70_000] {
        for (n, start) in starts(&bytes).into_iter().enumerate() {
            for at in [
                start + 1,
                start + all[n].len() / 2,
                start + all[n].len() - 2,
            ] {
                let what = format!("{size} NULs at byte {at}");
                let changed = [&bytes[..at], &vec![0; size], &bytes[at..]].concat();
                let damage = check(&story, &changed, &[all[n]], &what);
                assert_eq!(damage[0].line, Some(n as u64 + 1), "{what}");
            }
        }
    }
}

/// F19: bytes that never reached the disk read as NULs, including newlines.
#[test]
fn lines_overwritten_with_nuls_hide_nothing_after_them() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    let starts = starts(&bytes);
    let middle = |n: usize| starts[n] + all[n].len() / 2;
    for first in 0..all.len() {
        for last in first..all.len() {
            let what = format!("NULs over lines {} to {}", first + 1, last + 1);
            let mut changed = bytes.clone();
            changed[middle(first)..=middle(last)].fill(0);
            let damage = check(&story, &changed, &all[first..=last], &what);
            assert!(!damage.is_empty(), "{what}");
        }
    }
}

#[test]
fn blank_lines_and_line_ends_of_other_systems_are_not_damage() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let mut cases = vec![
        ("CRLF".to_owned(), replace_newlines(&bytes, b"\r\n")),
        (
            "spaces at the end".to_owned(),
            replace_newlines(&bytes, b" \t \n"),
        ),
        (
            "blank lines".to_owned(),
            replace_newlines(&bytes, b"\n\n \n\r\n"),
        ),
    ];
    for at in starts(&bytes) {
        let changed = [&bytes[..at], b"\n", &bytes[at..]].concat();
        cases.push((format!("a blank line at byte {at}"), changed));
    }
    for (what, changed) in &cases {
        let damage = check(&story, changed, &[], what);
        assert_eq!(damage, [], "{what}");
    }
}

fn replace_newlines(bytes: &[u8], with: &[u8]) -> Vec<u8> {
    let lines = lines(bytes);
    let ended = lines.iter().flat_map(|line| [trim_newline(line), with]);
    ended.collect::<Vec<_>>().concat()
}

/// F1: records appended to a torn line, as earlier engines left them, and F19's joined
/// records.
#[test]
fn a_record_glued_onto_a_torn_one_is_shown() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    let starts = starts(&bytes);
    for n in 1..all.len() {
        // The line before is torn at every byte, and this one follows directly.
        for torn in 1..all[n - 1].len() - 1 {
            let what = format!("line {} glued onto {torn} bytes", n + 1);
            let changed = [&bytes[..starts[n - 1] + torn], &bytes[starts[n]..]].concat();
            let lab = story.with(0, &changed);
            let expected = story.without([all[n - 1]]);
            let damage = assert_shows(&lab, &story.id, &expected, &what);
            assert!(!damage.is_empty(), "{what}");
        }
    }
}

#[test]
fn records_that_lost_the_newlines_between_them_are_all_shown() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    for glue in [&b""[..], b"\r", b"\0\0\0", b"\x0b"] {
        let what = format!("joined by {glue:?}");
        check(&story, &replace_newlines(&bytes, glue), &[], &what);
    }
}

/// A tool may be called with a record as its input. If the line around it is damaged, it
/// is not a record of this trail.
#[test]
fn a_record_quoted_inside_a_damaged_one_does_not_count_and_hides_nothing() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let quoted = forge::message(500, "from elsewhere", forge::NOTHING);
    let quoted = String::from_utf8(trim_newline(&quoted).to_vec()).unwrap();
    let last = forge::sum(lines(&bytes).last().unwrap());
    let seq = story.shown.len() as u64 + 1;
    let front = format!(
        r#"{{"type":"message","seq":{seq},"at":"2026-11-15T08:00:00.000Z","id":"q","message":{{"role":"assistant","blocks":[{{"type":"tool_use","id":"t","name":"x","input":{quoted}}},{{"type":"tool_use","id":"t","name":"x","input":[{quoted},{quoted}]}}]}}"#
    );
    let quoting = forge::line(front.as_bytes(), &last);
    let after = forge::message(seq + 1, "after it", &forge::sum(&quoting));
    let mut flipped = quoting.clone();
    flipped[10] ^= 1;
    let lab = story.with(0, &[&bytes[..], &flipped, &after].concat());
    let mut expected = story.shown.clone();
    expected.push((seq + 1, trim_newline(&after).to_vec()));
    assert_shows(&lab, &story.id, &expected, "a quoted record");
    assert_goes_on(&lab, &story.id, &expected, "a quoted record");
}

/// After a crash a file system may show blocks of another file, or old ones of this:
/// intact records out of place.
#[test]
fn records_of_another_session_in_the_middle_hide_nothing_after_them() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    for foreign in [1, 3, 5000] {
        let one = forge::message(foreign, "from elsewhere", "00000000000000ff");
        let two = forge::message(foreign + 1, "from elsewhere", &forge::sum(&one));
        for block in [one.clone(), [one, two].concat()] {
            for n in 1..all.len() {
                let what = format!("record {foreign} of another before line {}", n + 1);
                let mut changed = all.clone();
                changed.insert(n, &block);
                let lab = story.with(0, &changed.concat());
                check_out_of_place(&lab, &story, &what);
            }
        }
    }
}

/// The same at the very end, where the next record goes.
#[test]
fn a_record_out_of_place_at_the_end_hides_neither_what_was_said_nor_what_will_be() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    let foreign = forge::message(1, "from elsewhere", "00000000000000ff");
    for last in [foreign.as_slice(), all[0], all[1], all[4]] {
        let what = format!("{:?} at the end", String::from_utf8_lossy(&last[..40]));
        let lab = story.with(0, &[&bytes[..], last].concat());
        check_out_of_place(&lab, &story, &what);
        let session = lab.store.open_session(&story.id).unwrap();
        let seq = session.append(Message::user_text("on")).unwrap();
        assert!(seq > story.shown.last().unwrap().0, "{what}");
        session.close().unwrap();
        check_out_of_place(&lab, &story, &format!("{what}, and one more"));
        assert!(
            lab.reader(&story.id).record(seq).unwrap().is_some(),
            "{what}"
        );
        let (shown, _) = forwards(&lab.reader(&story.id));
        assert_eq!(shown.last().unwrap().0, seq, "{what}");
    }
}

/// Checks that every record of the story is shown once, whatever else is. If a line
/// occurs twice, each direction shows the one that it reaches first.
fn check_out_of_place(lab: &Lab, story: &Story, what: &str) {
    let reader = lab.reader(&story.id);
    for (mut shown, _) in [forwards(&reader), backwards(&reader)] {
        shown.retain(|record| story.shown.contains(record));
        shown.sort_by_key(|(seq, _)| *seq);
        let seqs = |shown: &[Shown]| shown.iter().map(|(seq, _)| *seq).collect::<Vec<_>>();
        assert_eq!(seqs(&shown), seqs(&story.shown), "{what}");
    }
    assert!(!reader.verify().unwrap().is_ok(), "{what}");
}

/// However much garbage there is, it is read a few times and not once per line.
#[test]
fn a_megabyte_of_garbage_is_skipped_in_a_sweep_or_two() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let garbage = b"\xf0garbage\n".repeat(1 << 17);
    let middle = starts(&bytes)[3];
    let changed = [&bytes[..middle], &garbage, &bytes[middle..]].concat();
    let lab = story.with(0, &changed);
    let counting = FaultyStorage::new(lab.disk.clone()).counting(Count::All);
    let store = StoreOptions::new()
        .storage(counting.clone())
        .open("/store")
        .unwrap();
    let reader = store.read_session(&story.id).unwrap();
    let (shown, _) = forwards(&reader);
    assert_eq!(shown, story.shown);
    // "read 0000.jsonl 0+262144": the offset, and the most bytes.
    let log = counting.log();
    let asked = log
        .iter()
        .filter_map(|line| line.strip_prefix("read ")?.rsplit_once('+'));
    let asked: usize = asked.map(|(_, len)| len.parse::<usize>().unwrap()).sum();
    assert!(asked < 8 * changed.len(), "{asked} bytes were asked for");
}

/// All damage is counted, however much there is.
#[test]
fn damage_is_counted_to_the_last_line() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let changed = [&bytes[..], &b"x\n".repeat(12_345)].concat();
    let lab = story.with(0, &changed);
    let report = lab.reader(&story.id).verify().unwrap();
    assert_eq!(report.damage.count(), 12_345);
    assert_eq!(report.damage.first().len(), 10_000);
    assert_eq!(report.records, story.shown.len() as u64 + 1);
}

/// The newest note has the title of a session; if it is lost, the one before it counts.
#[test]
fn a_damaged_note_gives_way_to_what_was_known_before_it() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    let title = |lab: &Lab| lab.reader(&story.id).info().unwrap().title;
    assert_eq!(title(&story.lab).as_deref(), Some("renamed"));
    let note = all
        .iter()
        .position(|line| line.starts_with(b"{\"type\":\"note\""))
        .unwrap();
    let mut changed = all.clone();
    changed[note] = b"garbage\n";
    let lab = story.with(0, &changed.concat());
    assert_eq!(title(&lab).as_deref(), Some("a story"));
    changed[0] = b"garbage\n";
    let lab = story.with(0, &changed.concat());
    assert_eq!(title(&lab), None);
    assert_goes_on(&lab, &story.id, &story.without([all[note]]), "no note");
}

/// Files that do not belong to a session are ignored.
#[test]
fn strange_files_in_a_sessions_directory_are_not_trails() {
    let story = Story::in_one_trail();
    let lab = story.lab.copy();
    let dir = trail_path(&story.id, 0);
    let dir = dir.parent().unwrap();
    for name in [
        "1.jsonl",
        "00001.jsonl",
        "0001.jsonl.bak",
        "+001.jsonl",
        "x.jsonl",
        "new-trail",
    ] {
        lab.disk.write(&dir.join(name), b"garbage\n").unwrap();
    }
    lab.disk.create_dir(&dir.join("0001")).unwrap();
    assert_shows(&lab, &story.id, &story.shown, "strange files");
    assert_goes_on(&lab, &story.id, &story.shown, "strange files");
    assert!(lab.reader(&story.id).verify().unwrap().is_ok());
}
