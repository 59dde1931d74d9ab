//! A file's change, a checkpoint, and the list of them (B3, B4, B5).

use std::collections::HashSet;
use std::fs;

use backtrail::snapshot::ChangeKind;
use backtrail::workspace::CheckpointReason;
use backtrail::{
    CheckpointOptions, ErrorKind, Message, Point, SessionOptions, Store, StoreOptions, Usage,
};
use backtrail_testkit::ManualClock;

use super::desk::Desk;

#[test]
fn b3_a_change_has_path_before_after_bytes_text_and_time() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("work");
    fs::create_dir(&root).unwrap();
    let clock = ManualClock::new(1_700_000_000_000);
    let options = StoreOptions::new().clock(clock.clone());
    let store = options.open_or_create(dir.path().join("store")).unwrap();
    let workspace = store.workspace(&root).unwrap();
    fs::write(root.join("edited"), "one\ntwo\n").unwrap();
    fs::write(root.join("gone"), "was here\n").unwrap();
    workspace.checkpoint(CheckpointOptions::new()).unwrap();
    fs::write(root.join("edited"), "one\n2\n").unwrap();
    fs::remove_file(root.join("gone")).unwrap();
    fs::write(root.join("new"), [0, 159, 146, 150]).unwrap();
    clock.set(1_700_000_100_000);
    clock.set_step(0);
    let after = workspace.checkpoint(CheckpointOptions::new()).unwrap();

    assert_eq!(after.at().as_millis(), 1_700_000_100_000, "when");
    let diff = after.changes().unwrap();
    let [edited, gone, new] = diff.changes() else {
        panic!("{diff:?}")
    };
    assert_eq!(edited.path.to_str(), Some("edited"));
    assert_eq!(edited.kind, ChangeKind::Modified);
    assert_eq!(edited.before.as_ref().unwrap().bytes, 8);
    assert_eq!(edited.after.as_ref().unwrap().bytes, 6);
    assert_eq!(diff.before(edited).unwrap().unwrap(), b"one\ntwo\n");
    assert_eq!(diff.after(edited).unwrap().unwrap(), b"one\n2\n");
    let text = diff.text(edited, 3).unwrap();
    let unified = String::from_utf8(text.unified().to_vec()).unwrap();
    assert!(unified.ends_with("\n one\n-two\n+2\n"), "{unified}");

    assert_eq!(gone.kind, ChangeKind::Deleted);
    assert_eq!(gone.after, None);
    assert_eq!(diff.after(gone).unwrap(), None, "absent, not empty");
    assert_eq!(diff.before(gone).unwrap().unwrap(), b"was here\n");

    assert_eq!(new.kind, ChangeKind::Added);
    assert_eq!(new.before, None);
    assert_eq!(diff.before(new).unwrap(), None);
    assert_eq!(diff.after(new).unwrap().unwrap(), [0, 159, 146, 150]);
}

#[test]
fn b4_a_checkpoint_has_an_id_a_time_the_place_in_the_history_and_the_files() {
    let desk = Desk::new();
    desk.write("file", "1");
    let options = SessionOptions::new().workspace(&desk.workspace);
    let session = desk.store.create_session(options).unwrap();
    session.append(Message::user_text("do it")).unwrap();
    let reply = Message::assistant_with_usage([], Usage::new(100, 20));
    let seq = session.append(reply).unwrap();
    let kept = session
        .checkpoint(CheckpointOptions::new().label("mine"))
        .unwrap();
    session.append(Message::user_text("more")).unwrap();

    assert_eq!(kept.reason(), &CheckpointReason::Manual);
    assert_eq!(kept.label(), Some("mine"), "the caller's name is a label");
    let place = kept.session().unwrap();
    assert_eq!((&place.id, place.seq), (session.id(), seq));
    // The statistics at that moment are those of the history up to the place, also
    // when the conversation was taken back since.
    session.rewind_chat(1).unwrap();
    let stats = kept.stats().unwrap().unwrap();
    assert_eq!((stats.messages.total, stats.usage.total()), (2, 120));
    let snapshot = kept.snapshot().unwrap();
    assert_eq!(snapshot.read("file").unwrap().unwrap(), b"1");
}

#[test]
fn b5_checkpoints_are_saved_loaded_by_id_and_listed_in_order_by_any_process() {
    let desk = Desk::new();
    let mut made = Vec::new();
    for n in 0..20 {
        desk.write("file", format!("{n}"));
        made.push((desk.label(&format!("label {n}")), format!("{n}")));
    }
    let ids: HashSet<_> = made.iter().map(|(kept, _)| kept.id()).collect();
    assert_eq!(ids.len(), 20, "ids are ours and never the same");
    // As another process sees it.
    let store = Store::open(desk.store.root()).unwrap();
    let workspace = store.find_workspace(desk.root()).unwrap().unwrap();
    assert_eq!(workspace.id(), desk.workspace.id());
    let listed: Vec<_> = workspace
        .checkpoints()
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(listed.len(), 20);
    let mut last_at = None;
    for (listed, (made, content)) in listed.iter().zip(&made) {
        assert_eq!(listed.id(), made.id());
        assert_eq!(listed.seq(), made.seq());
        assert_eq!(listed.label(), made.label());
        assert_eq!(listed.at(), made.at());
        assert!(last_at <= Some(listed.at()));
        last_at = Some(listed.at());
        let loaded = workspace.resolve(&Point::checkpoint(made.id())).unwrap();
        assert_eq!(loaded.snapshot_id(), made.snapshot_id());
        let snapshot = loaded.snapshot().unwrap();
        assert_eq!(snapshot.read("file").unwrap().unwrap(), content.as_bytes());
    }
    let mut back: Vec<_> = workspace
        .checkpoints_back()
        .unwrap()
        .map(|kept| kept.unwrap().id())
        .collect();
    back.reverse();
    let ids: Vec<_> = listed.iter().map(|kept| kept.id()).collect();
    assert_eq!(back, ids);
}

#[test]
fn a_directory_that_is_not_there_has_no_workspace() {
    let desk = Desk::new();
    let error = desk.store.workspace(&desk.dir.path().join("none"));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    desk.write("file", "");
    let error = desk.store.workspace(&desk.path("file")).unwrap_err();
    assert!(error.to_string().contains("is not a directory"), "{error}");
}
