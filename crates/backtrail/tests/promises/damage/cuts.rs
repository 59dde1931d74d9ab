//! A trail is truncated at every byte (F1).

use backtrail::SessionId;

use super::lab::{Lab, Shown, Story, assert_goes_on, assert_shows, lines, trail_path};

/// The expected result for a trail that is cut at one byte.
struct Cut {
    /// The bytes of whole lines, including a last one that only lacks its newline.
    whole: usize,
    /// The number of those lines.
    lines: usize,
}

impl Cut {
    fn at(bytes: &[u8], at: usize) -> Self {
        let mut cut = Self { whole: 0, lines: 0 };
        for line in lines(bytes) {
            let end = cut.whole + line.len();
            if end > at + 1 {
                break;
            }
            cut.whole = end.min(at);
            cut.lines += 1;
        }
        cut
    }
}

/// Returns what is shown of a story whose last trail is cut.
fn expected(story: &Story, trail_lines: usize, cut: &Cut) -> Vec<Shown> {
    let lost = trail_lines - cut.lines.max(1);
    story.shown[..story.shown.len() - lost].to_vec()
}

fn check_every_cut(story: &Story, trail: u32) {
    let bytes = story.bytes(trail);
    let count = lines(&bytes).len();
    for at in 0..bytes.len() {
        let what = format!("trail {trail} cut at byte {at}");
        let cut = Cut::at(&bytes, at);
        let expected = expected(story, count, &cut);
        let lab = story.with(trail, &bytes[..at]);
        assert_shows(&lab, &story.id, &expected, &what);
        let mut records = lab.reader(&story.id).records().unwrap();
        while records.next().unwrap().is_some() {}
        let unfinished = bytes[cut.whole..at].trim_ascii_end();
        assert_eq!(
            records.unfinished_bytes(),
            unfinished.len() as u64,
            "{what}"
        );
        drop(records);
        check_reopened(&lab, &story.id, trail, &bytes[..at], &cut, &expected, &what);
    }
}

/// Opens the session for writing and checks the cut line.
fn check_reopened(
    lab: &Lab,
    id: &SessionId,
    trail: u32,
    bytes: &[u8],
    cut: &Cut,
    expected: &[Shown],
    what: &str,
) {
    let set_aside = assert_goes_on(lab, id, expected, what);
    let rest = &bytes[cut.whole..];
    assert_eq!(set_aside.len(), usize::from(!rest.is_empty()), "{what}");
    for aside in &set_aside {
        assert_eq!(aside.trail, trail_path(id, trail), "{what}");
        assert_eq!(aside.byte, cut.whole as u64, "{what}");
        assert_eq!(aside.bytes, rest.len() as u64, "{what}");
        assert_eq!(lab.disk.read(&aside.file).unwrap(), rest, "{what}");
    }
    let report = lab.reader(id).verify().unwrap();
    assert!(report.is_ok(), "{what}: {:?}", report.damage.first());
    assert_eq!(report.set_aside.len(), set_aside.len(), "{what}");
    let now = lab.bytes(id, trail);
    assert!(now.starts_with(&bytes[..cut.whole]), "{what}");
    // A trail without its opener gets a new one; then comes the new record.
    assert_eq!(lines(&now).len(), cut.lines.max(1) + 1, "{what}");
    assert!(now.ends_with(b"}\n"), "{what}");
    let seq = expected.last().map_or(0, |(seq, _)| *seq) + 1;
    let last = lab.reader(id).last_records(1).unwrap();
    assert_eq!(last[0].seq(), seq, "{what}: a torn record's number is free");
}

#[test]
fn a_trail_cut_at_any_byte_keeps_every_whole_record_and_continues_cleanly() {
    check_every_cut(&Story::in_one_trail(), 0);
}

#[test]
fn a_second_trail_cut_at_any_byte_keeps_every_whole_record_and_continues_cleanly() {
    check_every_cut(&Story::in_two_trails(), 1);
}

/// The cut trail is not the head: nothing of the later trails is lost, writers leave it
/// unchanged, and `verify` reports that it is short.
#[test]
fn an_older_trail_cut_at_any_byte_costs_nothing_of_the_trails_after_it() {
    let story = Story::in_two_trails();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    for at in 0..bytes.len() {
        let what = format!("trail 0 cut at byte {at}");
        let cut = Cut::at(&bytes, at);
        let expected = story.without(all[cut.lines..].iter().copied());
        let lab = story.with(0, &bytes[..at]);
        assert_shows(&lab, &story.id, &expected, &what);
        let is_ok = lab.reader(&story.id).verify().unwrap().is_ok();
        assert_eq!(is_ok, cut.lines == all.len(), "{what}");
        assert!(assert_goes_on(&lab, &story.id, &expected, &what).is_empty());
        assert_eq!(lab.bytes(&story.id, 0), &bytes[..at], "{what}");
    }
}

/// A dead process left half a line, and the next left another half: each gets its own
/// side file.
#[test]
fn every_torn_line_gets_a_side_file_of_its_own() {
    let story = Story::in_one_trail();
    let lab = story.lab.copy();
    let mut asides = Vec::new();
    for torn in [
        &b"{\"type\":\"mess"[..],
        b"{\"type\":\"message\",\"se",
        b"\0\0\0",
    ] {
        let bytes = story.bytes(0);
        lab.put(&story.id, 0, &[&bytes, torn].concat());
        let session = lab.store.open_session(&story.id).unwrap();
        assert_eq!(session.set_aside().len(), 1);
        asides.push((session.set_aside()[0].file.clone(), torn));
        assert_eq!(lab.bytes(&story.id, 0), bytes);
    }
    for (file, torn) in asides {
        assert_eq!(lab.disk.read(&file).unwrap(), torn);
    }
}

/// A note repairs the end as well, under the short lock alone.
#[test]
fn a_note_after_a_torn_line_is_clean_as_well() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let lab = story.with(0, &bytes[..bytes.len() - 30]);
    lab.store
        .note(&story.id, &backtrail::Note::new().title("noted"))
        .unwrap();
    let report = lab.reader(&story.id).verify().unwrap();
    assert!(report.is_ok(), "{:?}", report.damage.first());
    assert_eq!(report.set_aside.len(), 1);
    let info = lab.reader(&story.id).info().unwrap();
    assert_eq!(info.title.as_deref(), Some("noted"));
}
