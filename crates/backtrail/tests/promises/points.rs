//! Points: every point means one checkpoint, and one that means none or two is refused with
//! suggestions.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

use std::fs;
use std::path::Path;

use backtrail::workspace::CheckpointReason;
use backtrail::{
    Checkpoint, CheckpointOptions, ErrorKind, LocalStorage, Message, Point, SessionOptions, Store,
    StoreOptions, Workspace,
};
use backtrail_testkit::{Count, FaultyStorage};

use crate::snapshots::desk::Desk;

fn point(text: &str) -> Point {
    text.parse().unwrap()
}

fn find(desk: &Desk, text: &str) -> Checkpoint {
    desk.workspace.resolve(&point(text)).unwrap()
}

fn make(workspace: &Workspace, options: CheckpointOptions) -> Checkpoint {
    workspace.checkpoint(options).unwrap()
}

#[test]
fn ids_prefixes_labels_and_last_find_their_checkpoint() {
    let desk = Desk::new();
    let first = desk.label("before the storm");
    let second = desk.label("same");
    let third = desk.label("same");
    let id = first.id().to_string();
    assert_eq!(find(&desk, &id).id(), first.id());
    assert_eq!(find(&desk, &id[..13]).id(), first.id());
    assert_eq!(find(&desk, "before the storm").id(), first.id());
    assert_eq!(
        find(&desk, "same").id(),
        third.id(),
        "the newest that bears it"
    );
    assert_eq!(find(&desk, &second.id().to_string()).id(), second.id());
    assert_eq!(find(&desk, "last").id(), third.id());
    let label = Point::label("before the storm");
    assert_eq!(desk.workspace.resolve(&label).unwrap().id(), first.id());
    // A point that is written and parsed is the same point.
    for text in ["last", "last~3", "same", "abcd", "latest:4", ":4"] {
        assert_eq!(point(text).to_string(), text);
    }
}

#[test]
fn a_record_of_a_session_is_a_point_by_its_id_too() {
    let desk = Desk::new();
    let options = SessionOptions::new().workspace(&desk.workspace);
    let session = desk.store.create_session(options).unwrap();
    session.append(Message::user_text("one")).unwrap();
    let kept = session.checkpoint(CheckpointOptions::new()).unwrap();
    session.append(Message::user_text("two")).unwrap();
    let reader = desk.store.read_session(session.id()).unwrap();
    let mut records = reader.records_back().unwrap();
    let record = records.next().unwrap().unwrap();
    let json: serde_json::Value = serde_json::from_slice(record.bytes()).unwrap();
    let id = json["id"].as_str().unwrap();
    assert_eq!(find(&desk, id).id(), kept.id());
    assert_eq!(find(&desk, &id[..8]).id(), kept.id());
}

#[test]
fn an_ambiguous_point_is_refused_with_both_candidates() {
    let desk = Desk::new();
    let first = desk.keep();
    // A label that looks like a prefix of an id.
    let prefix = &first.id().to_string()[..4];
    let second = desk.label(prefix);
    let error = desk.workspace.resolve(&point(prefix)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    let points = error.points();
    assert!(points.contains(&first.id().to_string()), "{points:?}");
    assert!(points.contains(&second.id().to_string()), "{points:?}");
    assert_eq!(find(&desk, &first.id().to_string()).id(), first.id());
    assert_eq!(find(&desk, &second.id().to_string()).id(), second.id());
    // As a label it is one.
    let label = Point::label(prefix);
    assert_eq!(desk.workspace.resolve(&label).unwrap().id(), second.id());
}

#[test]
fn an_unknown_point_is_refused_with_the_nearest() {
    let desk = Desk::new();
    let error = desk.workspace.resolve(&Point::last()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("no checkpoint yet"), "{error}");
    desk.label("release-1");
    desk.label("other");
    let error = desk.workspace.resolve(&point("release-2")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.points(), ["release-1"]);
    // Three characters are too few for an id.
    let short = &desk.keep().id().to_string()[..3];
    let error = desk.workspace.resolve(&point(short)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = desk.workspace.resolve(&point("last~1")).unwrap_err();
    assert!(error.to_string().contains("no turns or runs"), "{error}");
    let error = desk.workspace.resolve(&point(":1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn labels_that_could_not_be_named_are_refused_and_keep_nothing() {
    let desk = Desk::new();
    let long = "x".repeat(201);
    for label in [
        "", " ", "last", "last~1", "last~x", "~1", "#1", "-x", "a:1", ":1", "a\nb", " a", "a ",
        &long,
    ] {
        let options = CheckpointOptions::new().label(label);
        let error = desk.workspace.checkpoint(options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{label:?}: {error}");
    }
    assert!(desk.workspace.last_checkpoint().unwrap().is_none());
    for label in ["lastly", "a:b", "größe", "with space", "1", "last-1"] {
        let kept = desk.label(label);
        assert_eq!(find(&desk, label).id(), kept.id(), "{label}");
    }
    for text in ["", "~1", "#1", "-1", "last~", "last~x", "last~-1"] {
        assert!(text.parse::<Point>().is_err(), "{text:?}");
    }
}

#[test]
fn last_n_counts_turns_and_runs_of_all_sessions_but_not_nested_ones() {
    let desk = Desk::new();
    let new_session = || {
        let options = SessionOptions::new().workspace(&desk.workspace);
        desk.store.create_session(options).unwrap()
    };
    let (one, two) = (new_session(), new_session());
    let set = |state: &str| desk.write("file", state);
    let at = |text: &str| {
        let kept = find(&desk, text);
        let bytes = kept.snapshot().unwrap().read("file").unwrap().unwrap();
        String::from_utf8(bytes).unwrap()
    };
    set("0");
    // A turn with a run within it, which joined its session.
    let turn = one.begin_turn(Message::user_text("a")).unwrap();
    turn.append(Message::assistant([])).unwrap();
    let wait = |count: usize| while desk.workspace.checkpoints().unwrap().count() < count {};
    wait(1);
    set("1 before the run");
    let run = |reason| CheckpointOptions::new().reason(reason).session(one.id());
    let start = make(&desk.workspace, run(CheckpointReason::RunStart));
    set("1 after the run");
    make(
        &desk.workspace,
        run(CheckpointReason::RunEnd).begun_by(start.id()),
    );
    turn.end().unwrap();
    // A manual checkpoint in between, which is not a turn.
    set("by hand");
    desk.label("mine");
    // A run of another session.
    let run = |reason| CheckpointOptions::new().reason(reason).session(two.id());
    let start = make(&desk.workspace, run(CheckpointReason::RunStart));
    set("2");
    make(
        &desk.workspace,
        run(CheckpointReason::RunEnd).begun_by(start.id()),
    );
    // One without an end.
    make(&desk.workspace, run(CheckpointReason::RunStart));
    set("3");

    assert_eq!(at("last"), "2");
    assert_eq!(at("last~1"), "2", "as it was before the last");
    assert_eq!(at("last~2"), "by hand");
    assert_eq!(at("last~3"), "0", "the run within the turn is part of it");
    let error = desk.workspace.resolve(&point("last~4")).unwrap_err();
    assert!(error.to_string().contains("only 3"), "{error}");
    assert_eq!(at("last~0"), "2");
}

#[test]
fn a_place_in_a_session_does_not_lead_to_branches_that_it_has_left() {
    let desk = Desk::new();
    let options = SessionOptions::new().workspace(&desk.workspace);
    let session = desk.store.create_session(options).unwrap();
    let say = |text: &str| session.append(Message::user_text(text)).unwrap();
    let keep = || session.checkpoint(CheckpointOptions::new()).unwrap();
    say("one");
    desk.write("file", "one");
    let one = keep();
    say("two");
    desk.write("file", "two");
    let two = keep();
    say("three");
    desk.write("file", "three");
    let three = keep();
    let id = session.id().to_string();
    for (seq, kept) in [(1, &one), (2, &two), (3, &three)] {
        assert_eq!(find(&desk, &format!("{id}:{seq}")).id(), kept.id());
        assert_eq!(find(&desk, &format!(":{seq}")).id(), kept.id());
    }
    // Back to the first, and another way from there.
    session.rewind_chat(1).unwrap();
    say("another two");
    assert_eq!(
        find(&desk, ":2").id(),
        one.id(),
        "two is on a branch left behind"
    );
    desk.write("file", "another two");
    let other = keep();
    assert_eq!(find(&desk, ":2").id(), other.id());
    assert_eq!(find(&desk, ":1").id(), one.id());
    let record = Point::record(session.id(), 2);
    assert_eq!(desk.workspace.resolve(&record).unwrap().id(), other.id());
    let error = desk.workspace.resolve(&point(":3")).unwrap_err();
    assert!(error.to_string().contains("its last is 2"), "{error}");
    let error = desk.workspace.resolve(&point(":0")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // A place before all checkpoints of a session has none.
    session.rewind_chat(0).unwrap();
    say("afresh");
    let error = desk.workspace.resolve(&point(":1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn a_moved_workspace_is_recognised_and_keeps_its_past() {
    let desk = Desk::new();
    desk.write("file", "precious");
    let kept = desk.label("mine");
    let moved = desk.dir.path().join("moved");
    fs::rename(desk.root(), &moved).unwrap();
    let found = desk.store.find_workspace(&moved).unwrap();
    assert_eq!(
        found.expect("by what the file system calls it").id(),
        desk.workspace.id()
    );
    let workspace = desk.store.workspace(&moved).unwrap();
    assert_eq!(workspace.id(), desk.workspace.id());
    assert_eq!(workspace.root(), moved.canonicalize().unwrap());
    assert_eq!(workspace.resolve(&point("mine")).unwrap().id(), kept.id());
    let again = make(&workspace, CheckpointOptions::new());
    assert_eq!(
        (again.changed(), again.snapshot_id()),
        (0, kept.snapshot_id())
    );
    // Another directory at the old path is another workspace.
    fs::create_dir(desk.root()).unwrap();
    let new = desk.store.workspace(desk.root()).unwrap();
    assert_ne!(new.id(), desk.workspace.id());
    assert!(new.last_checkpoint().unwrap().is_none());
    assert_eq!(desk.store.workspaces().unwrap().len(), 2);
    desk.verify();
}

#[test]
fn two_clones_never_cross() {
    let desk = Desk::new();
    desk.write("file", "same in both");
    let clone = desk.dir.path().join("clone");
    fs::create_dir(&clone).unwrap();
    fs::write(clone.join("file"), "same in both").unwrap();
    let other = desk.store.workspace(&clone).unwrap();
    let mine = desk.label("here");
    let theirs = make(&other, CheckpointOptions::new().label("there"));
    assert_eq!(
        mine.snapshot().unwrap().read("file").unwrap(),
        theirs.snapshot().unwrap().read("file").unwrap()
    );
    for (workspace, foreign) in [(&desk.workspace, &theirs), (&other, &mine)] {
        let by_id = workspace.resolve(&point(&foreign.id().to_string()));
        assert_eq!(by_id.unwrap_err().kind(), ErrorKind::NotFound);
        let by_label = workspace.resolve(&point(foreign.label().unwrap()));
        assert_eq!(by_label.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(workspace.checkpoints().unwrap().count(), 1);
    }
    // A session of one workspace is not in the other.
    let options = SessionOptions::new().workspace(&other);
    let session = desk.store.create_session(options).unwrap();
    session.append(Message::user_text("there")).unwrap();
    session.checkpoint(CheckpointOptions::new()).unwrap();
    let error = desk.workspace.resolve(&Point::record(session.id(), 1));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn checkpoints_and_log_entries_are_json_with_what_they_are_about() {
    let desk = Desk::new();
    let options = CheckpointOptions::new().reason(CheckpointReason::RunStart);
    let run = make(&desk.workspace, options.about("make all"));
    let json = serde_json::to_value(&run).unwrap();
    assert_eq!(json["id"], run.id().to_string());
    assert_eq!(json["reason"], "run-start");
    assert_eq!(json["about"], "make all");
    assert_eq!(json["skipped"]["count"], 0);
    for name in ["session", "seq", "label"] {
        assert!(json[name].is_null(), "{name}: {json}");
    }
    for name in ["session_deleted", "begun_by", "dropped"] {
        assert!(json.get(name).is_none(), "{name}: {json}");
    }
    let log = desk.workspace.log().unwrap();
    let entry = serde_json::to_value(&log[0]).unwrap();
    assert_eq!(entry["kind"], "run");
    assert_eq!(entry["ended"], false);
    assert_eq!(entry["before"]["id"], json["id"]);
}

/// A store on the disk whose operations are counted, and workspaces in it with a checkpoint each.
fn counted(dir: &Path) -> (FaultyStorage, Store, impl Fn(&str) -> Workspace) {
    let storage = FaultyStorage::new(LocalStorage).counting(Count::All);
    let options = StoreOptions::new().storage(storage.clone());
    let store = options.open_or_create(dir.join("store")).unwrap();
    let (dir, of) = (dir.to_owned(), store.clone());
    let make = move |name: &str| {
        let root = dir.join(name);
        fs::create_dir(&root).unwrap();
        let workspace = of.workspace(&root).unwrap();
        make(&workspace, CheckpointOptions::new());
        workspace
    };
    (storage, store, make)
}

#[test]
fn a_workspace_is_found_without_reading_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, store, new) = counted(dir.path());
    let first = new("first");
    let reads = || {
        let before = storage.operations();
        assert_eq!(store.workspace_root(first.root()).unwrap(), first.root());
        let found = store.find_workspace(first.root()).unwrap().unwrap();
        assert_eq!(found.id(), first.id());
        assert_eq!(store.workspace(first.root()).unwrap().id(), first.id());
        storage.operations() - before
    };
    let alone = reads();
    for n in 0..20 {
        new(&format!("other-{n}"));
    }
    assert_eq!(reads(), alone);
}

#[test]
fn a_wrong_hint_at_which_path_a_workspace_is_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_, store, new) = counted(dir.path());
    let (one, two) = (new("one"), new("two"));
    let hint = store.root().join("derived/workspace-roots.json");
    let swapped = format!(r#"{{"{}":"{}"}}"#, one.root().display(), two.id());
    let unknown = swapped.replace(two.id().as_str(), "00000000-0000-4000-8000-000000000000");
    for wrong in ["", "{", "[]", &swapped, &unknown] {
        fs::write(&hint, wrong).unwrap();
        for workspace in [&one, &two] {
            let root = workspace.root();
            assert_eq!(store.workspace_root(root).unwrap(), root, "{wrong}");
            let found = store.find_workspace(root).unwrap().unwrap();
            assert_eq!(found.id(), workspace.id(), "{wrong}");
        }
        assert_eq!(
            store.workspace(one.root()).unwrap().id(),
            one.id(),
            "{wrong}"
        );
        assert_eq!(store.workspaces().unwrap().len(), 2, "{wrong}");
    }
    // The right one is noted again.
    let noted = fs::read_to_string(&hint).unwrap();
    assert!(noted.contains(one.id().as_str()), "{noted}");
}
