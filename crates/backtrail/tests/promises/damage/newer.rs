//! A trail of a newer version can be read, but is not changed.

use backtrail::{ErrorKind, Message, Note};

use super::lab::{Lab, Story, assert_shows, forge, lines};

fn assert_read_only(lab: &Lab, story: &Story, trail: u32, what: &str) {
    let before: Vec<_> = trails(lab);
    assert_shows(lab, &story.id, &story.shown, what);
    let info = lab.reader(&story.id).info().unwrap();
    assert_eq!(info.version, Some(3), "{what}");
    let error = lab.store.open_session(&story.id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerFormat, "{what}: {error:?}");
    assert!(
        error.path().unwrap().ends_with(format!("{trail:04}.jsonl")),
        "{what}"
    );
    let note = Note::new().title("not taken");
    let error = lab.store.note(&story.id, &note).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerFormat, "{what}: {error:?}");
    // The refusal releases the lock.
    assert_eq!(lab.reader(&story.id).writer().unwrap(), None, "{what}");
    assert_eq!(trails(lab), before, "{what}: bytes were changed");
}

/// Returns all files except the locks, with their bytes.
fn trails(lab: &Lab) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = lab.disk.files().into_iter();
    files
        .filter(|path| path.extension().is_none_or(|ext| ext != "lock"))
        .map(|path| (path.clone(), lab.disk.read(&path).unwrap()))
        .collect()
}

#[test]
fn a_trail_of_a_newer_version_is_read_and_not_changed() {
    for (story, trail) in [(Story::in_one_trail(), 0), (Story::in_two_trails(), 1)] {
        let bytes = story.bytes(trail);
        let all = lines(&bytes);
        let opener = forge::change(all[0], "\"version\":2", "\"version\":3");
        let newer = [&[opener.as_slice()], &all[1..]].concat().concat();
        let lab = story.with(trail, &newer);
        assert_read_only(&lab, &story, trail, "version 3");
        // Not even an unfinished line is repaired.
        let lab = story.with(trail, &[&newer[..], b"{\"type\":\"mess"].concat());
        let before = lab.bytes(&story.id, trail);
        let error = lab.store.open_session(&story.id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NewerFormat);
        assert_eq!(lab.bytes(&story.id, trail), before);
    }
}

/// A newer version may have other fields in its opener.
#[test]
fn a_newer_opener_of_another_shape_is_still_seen_to_be_newer() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let all = lines(&bytes);
    let shapes: [&[u8]; 3] = [
        br#"{"type":"session_meta","version":3,"seq":0"#,
        br#"{"type":"session_meta","version":3,"seq":0,"at":{"s":1},"session_id":["x"],"continues":"words""#,
        br#"{"seq":0,"future":1e400,"version":3,"type":"session_meta","title":7"#,
    ];
    for front in shapes {
        let opener = forge::line(front, forge::NOTHING);
        let newer = [&[opener.as_slice()], &all[1..]].concat().concat();
        let lab = story.with(0, &newer);
        assert_read_only(&lab, &story, 0, &String::from_utf8_lossy(front));
    }
}

#[test]
fn a_newer_session_is_not_repaired() {
    let story = Story::in_one_trail();
    let bytes = story.bytes(0);
    let mut all = lines(&bytes);
    let opener = forge::change(all[0], "\"version\":2", "\"version\":3");
    all[0] = &opener;
    all[2] = b"garbage\n";
    let lab = story.with(0, &all.concat());
    let before = trails(&lab);
    let plan = lab.store.repair_plan(&story.id).unwrap();
    assert!(!plan.is_empty());
    let error = plan.apply().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NewerFormat);
    assert_eq!(trails(&lab), before);
}

/// The sum is wrong, so the 3 is damage and not a version.
#[test]
fn a_version_that_a_flipped_bit_made_does_not_lock_a_session() {
    let story = Story::in_one_trail();
    let mut bytes = story.bytes(0);
    let at = bytes
        .windows(11)
        .position(|w| w == b"\"version\":2")
        .unwrap()
        + 10;
    bytes[at] ^= 1;
    assert_eq!(bytes[at], b'3');
    let lab = story.with(0, &bytes);
    let session = lab.store.open_session(&story.id).unwrap();
    session.append(Message::user_text("on")).unwrap();
}
