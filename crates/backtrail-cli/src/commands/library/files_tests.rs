//! What the screens are told about files: what changed, what is there, and who wrote it.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at files and change them"
)]

use std::ffi::OsString;
use std::fs;

use backtrail::{Block, Message, ToolResult, ToolUse};
use backtrail_view::library::{
    Action, Changes, ChangesOf, DiffKind, Library, Moment, OnConflict, PartOrTurn,
};

use super::lab::{Lab, at, place};

/// Returns the files with what happened to them.
fn listed(changes: &Changes) -> Vec<String> {
    let file = |file: &backtrail_view::library::ChangedFile| {
        let lines = file
            .lines
            .map(|(added, removed)| format!(" +{added} -{removed}"));
        format!("{} {}{}", file.what, file.path, lines.unwrap_or_default())
    };
    changes.files.iter().map(file).collect()
}

#[test]
fn two_moments_differ_in_these_files_and_lines() {
    let lab = Lab::new();
    lab.write("edited", "1\n2\n3\n");
    lab.write("gone", "x\n");
    lab.write("old", "a file that is long enough to be found again\n");
    let first = lab.checkpoint();
    lab.write("edited", "1\ntwo\n3\n");
    lab.write("new", "1\n");
    lab.write("binary", "\0");
    fs::remove_file(lab.path("gone")).unwrap();
    fs::rename(lab.path("old"), lab.path("moved")).unwrap();
    let second = lab.checkpoint();

    let files = [
        "new binary",
        "edited edited +1 -1",
        "deleted gone +0 -1",
        "renamed from old moved +0 -0",
        "new new +1 -0",
    ];
    for to in [at(&second), Moment::Now] {
        let between = lab.between(&first, to);
        let changes = lab
            .library
            .changes(&ChangesOf::Between(between.clone()))
            .unwrap();
        assert_eq!(listed(&changes), files);
        assert!(changes.title.contains(" to "), "{}", changes.title);
        assert_eq!(changes.between, Some(between));
    }
    let back = lab.between(&second, at(&first));
    let back = lab.library.changes(&ChangesOf::Between(back)).unwrap();
    assert!(listed(&back).contains(&"deleted new +0 -1".to_owned()));
}

#[test]
fn the_difference_of_a_file_has_numbers_and_no_escapes() {
    let lab = Lab::new();
    lab.write("a", "1\n2\n3\n");
    let first = lab.checkpoint();
    lab.write("a", "1\n\u{1b}[31m\ttwo\n3\n");
    lab.write("binary", "\0\0");
    let between = lab.between(&first, Moment::Now);
    let of = ChangesOf::Between(between.clone());
    let diff = lab.library.diff(&of, Some(&between), "a").unwrap();
    let lines: Vec<_> = diff
        .lines
        .iter()
        .map(|line| (line.kind, line.old, line.new, line.text.as_str()))
        .collect();
    assert_eq!(
        lines,
        [
            (DiffKind::Hunk, None, None, "@@ -1,3 +1,3 @@"),
            (DiffKind::Same, Some(1), Some(1), "1"),
            (DiffKind::Removed, Some(2), None, "2"),
            (DiffKind::Added, None, Some(2), "^[[31m    two"),
            (DiffKind::Same, Some(3), Some(3), "3"),
        ]
    );
    let binary = lab.library.diff(&of, Some(&between), "binary").unwrap();
    assert!(binary.lines.is_empty());
    assert_eq!(binary.note.as_deref(), Some("binary: 2 bytes"));
    let same = lab.library.diff(&of, Some(&between), "nowhere").unwrap();
    assert_eq!(same.note.as_deref(), Some("no change"));
}

/// A conversation may be open without its changes, in another workspace.
#[test]
fn the_files_at_a_record_are_those_where_its_session_works() {
    let mut lab = Lab::new();
    lab.write("a", "old\n");
    lab.checkpoint();
    let id = lab.turn("change a", "a", "new\n");
    lab.library.root = None;
    let moment = |seq| Moment::Record(place(&id, seq));
    assert_eq!(lab.library.files("", &moment(3)).unwrap(), ["a"]);
    assert_eq!(lab.library.file("", &moment(1), "a").unwrap(), "old\n");
    let blame = lab.library.blame("", &moment(3), "a").unwrap();
    assert_eq!(blame[0].place, Some(place(&id, 1)));
    let bare = lab.edited("a", "x", "y");
    let refused = lab.library.files("", &Moment::Record(place(&bare, 1)));
    let refused = refused.unwrap_err().message;
    assert!(refused.contains("no file checkpoints"), "{refused}");
}

#[test]
fn a_turn_is_found_by_any_of_its_records() {
    let lab = Lab::new();
    lab.write("a", "1\n");
    lab.checkpoint();
    let session = lab.session();
    lab.turn_of(&session, "make b", "b", "x\n");
    lab.turn_of(&session, "make c", "c", "x\n");
    let id = session.id().to_string();
    for seq in 1..=6 {
        let file = if seq <= 3 {
            "new b +1 -0"
        } else {
            "new c +1 -0"
        };
        let of = ChangesOf::Part(place(&id, seq), PartOrTurn::Turn);
        let changes = lab.library.changes(&of).unwrap();
        assert_eq!(listed(&changes), [file], "record {seq}");
        assert!(changes.between.is_some());
    }
}

#[test]
fn a_call_changed_what_differs_between_its_checkpoints() {
    let lab = Lab::new();
    lab.write("a", "1\n");
    lab.checkpoint();
    let session = lab.session();
    let turn = session.begin_turn(Message::user_text("go")).unwrap();
    for name in ["b", "c"] {
        let call = ToolUse::new(name, "bash", "{}").unwrap();
        turn.append(Message::assistant([Block::from(call)]))
            .unwrap();
        let tool = turn.begin_tool(name).unwrap();
        lab.write(name, "x\n");
        tool.finish(ToolResult::ok("done")).unwrap();
    }
    turn.end().unwrap();
    let id = session.id().to_string();
    // Calls and their results, in turn.
    for (seq, file) in [(2, "new b +1 -0"), (3, "new b +1 -0"), (4, "new c +1 -0")] {
        let of = ChangesOf::Part(place(&id, seq), PartOrTurn::Part);
        let changes = lab.library.changes(&of).unwrap();
        assert_eq!(listed(&changes), [file], "record {seq}");
        assert!(changes.title.starts_with("bash"), "{}", changes.title);
    }
    let turn = ChangesOf::Part(place(&id, 2), PartOrTurn::Turn);
    assert_eq!(lab.library.changes(&turn).unwrap().files.len(), 2);
}

#[test]
fn an_undone_turn_is_found_by_its_trail() {
    let lab = Lab::new();
    lab.write("a", "1\n");
    lab.checkpoint();
    let id = lab.turn("make b", "b", "x\n");
    let undo = lab.library.plan(&Action::Undo).unwrap();
    lab.library.apply(undo.token, OnConflict::Stop).unwrap();
    let timeline = lab.library.timeline(10).unwrap();
    let row = timeline.rows.iter().find(|row| row.kind == "turn").unwrap();
    assert_eq!(row.step, Some(false));
    let place = row.session.clone().unwrap();
    assert_eq!((place.session.as_str(), place.seq), (id.as_str(), 1));
    assert!(place.trail.is_some());
    let of = ChangesOf::Part(place.clone(), PartOrTurn::Turn);
    assert_eq!(listed(&lab.library.changes(&of).unwrap()), ["new b +1 -0"]);
    let files = lab
        .library
        .files(&lab.id(), &Moment::Record(place))
        .unwrap();
    assert_eq!(files, ["a"]);
}

#[test]
fn without_checkpoints_the_edits_of_the_agent_are_known() {
    let lab = Lab::new();
    let id = lab.edited("src/a.rs", "one\ntwo\n", "one\n2\n");
    for whole in [PartOrTurn::Part, PartOrTurn::Turn] {
        let of = ChangesOf::Part(place(&id, 2), whole);
        let changes = lab.library.changes(&of).unwrap();
        assert_eq!(listed(&changes), ["edited src/a.rs +1 -1"]);
        assert_eq!(changes.between, None);
        assert!(changes.note.unwrap().contains("no checkpoints"));
        let diff = lab.library.diff(&of, None, "src/a.rs").unwrap();
        let lines: Vec<_> = diff
            .lines
            .iter()
            .map(|it| (it.kind, it.text.as_str()))
            .collect();
        assert_eq!(
            lines[1..],
            [
                (DiffKind::Same, "one"),
                (DiffKind::Removed, "two"),
                (DiffKind::Added, "2"),
            ]
        );
    }
}

#[test]
fn files_are_listed_and_read_as_they_were_and_as_they_are() {
    let lab = Lab::new();
    lab.write("dir/a", "old\u{1b}[31m\n");
    lab.write("b", "\0");
    let first = lab.checkpoint();
    lab.write("dir/a", "new\n");
    lab.write("c", "c\n");
    let (id, then) = (lab.id(), at(&first));
    assert_eq!(lab.library.files(&id, &then).unwrap(), ["b", "dir/a"]);
    assert_eq!(
        lab.library.files(&id, &Moment::Now).unwrap(),
        ["b", "c", "dir/a"]
    );
    let read = |moment: &Moment, path: &str| lab.library.file(&id, moment, path);
    assert_eq!(read(&then, "dir/a").unwrap(), "old^[[31m\n");
    assert_eq!(read(&Moment::Now, "dir/a").unwrap(), "new\n");
    let refused = |path: &str| read(&then, path).unwrap_err().message;
    assert!(refused("b").contains("is binary"));
    assert!(refused("dir").contains("is a directory"));
    assert!(refused("c").contains("does not exist"));
    assert!(lab.library.files("", &then).is_err());
    assert!(lab.library.files("nonsense", &then).is_err());
    let wrong = Moment::Checkpoint("nonsense".to_owned());
    assert!(lab.library.files(&id, &wrong).is_err());
}

#[test]
fn lines_have_their_author_and_the_prompt() {
    let lab = Lab::new();
    lab.write("a", "1\n");
    lab.checkpoint();
    let id = lab.turn("add a line", "a", "1\n\t2\n");
    lab.write("a", "1\n\t2\n3\n");
    let lines = lab.library.blame(&lab.id(), &Moment::Now, "a").unwrap();
    let who: Vec<_> = lines.iter().map(|line| line.who.as_str()).collect();
    assert_eq!(who[0], "before Backtrail");
    assert_eq!(who[2], "you");
    assert_eq!(
        (lines[1].about.as_str(), lines[1].text.as_str()),
        ("add a line", "    2")
    );
    let prompt = lines[1].place.clone().unwrap();
    assert_eq!((prompt.session, prompt.seq), (id, 1));
    assert!(lab.library.blame(&lab.id(), &Moment::Now, "none").is_err());
}

#[test]
fn the_timeline_has_the_newest_rows_and_marks_the_next_step() {
    let lab = Lab::new();
    assert_eq!(lab.library.timeline(10).unwrap().rows.len(), 0);
    lab.write("a", "1\n");
    lab.checkpoint();
    lab.turn("change a", "a", "2\n");
    lab.write("a", "3\n");
    let timeline = lab.library.timeline(10).unwrap();
    assert_eq!(timeline.workspace, lab.id());
    let rows: Vec<_> = timeline
        .rows
        .iter()
        .map(|row| {
            (
                row.kind.as_str(),
                row.about.as_str(),
                row.change.as_str(),
                row.step,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("", "since the last checkpoint: a", "+1 −1 1 file", None),
            ("turn", "change a", "+1 −1 1 file", Some(true)),
            ("checkpoint", "the first", "1 file", None),
        ]
    );
    assert!(!timeline.has_more);
    for row in &timeline.rows[..2] {
        let changes = lab
            .library
            .changes(&ChangesOf::Row(row.id.clone()))
            .unwrap();
        assert_eq!(listed(&changes), ["edited a +1 -1"], "{}", row.about);
    }
    let first = ChangesOf::Row(timeline.rows[2].id.clone());
    assert!(lab.library.changes(&first).unwrap().files.is_empty());
    assert!(
        lab.library
            .changes(&ChangesOf::Row("x".to_owned()))
            .is_err()
    );
    let files = Moment::Checkpoint(timeline.rows[0].id.clone());
    assert_eq!(lab.library.file(&lab.id(), &files, "a").unwrap(), "3\n");

    let some = lab.library.timeline(2).unwrap();
    assert_eq!((some.rows.len(), some.has_more), (2, true));
}

#[test]
fn a_session_continues_by_this_very_program_in_the_same_store() {
    let lab = Lab::new();
    let id = lab.turn("change a", "a", "2\n");
    let command = lab.library.continue_command(&place(&id, 3), "codex");
    let store = lab.dir.path().join("store").into_os_string();
    let program = std::env::current_exe().unwrap().into_os_string();
    let reference = format!("{id}:3");
    let words = ["resume", &reference, "--agent", "codex"].map(OsString::from);
    let mut expected = vec![program, "--store".into(), store];
    expected.extend(words);
    assert_eq!(command, expected);
}

#[test]
fn exports_of_people_come_first_and_none_of_a_session_that_is_not_there() {
    let lab = Lab::new();
    let id = lab.turn("change a", "a", "2\n");
    let exports = lab.library.exports(&id);
    let first: Vec<_> = exports
        .iter()
        .take(3)
        .map(|it| (it.0.as_str(), it.1.as_str()))
        .collect();
    assert_eq!(
        first,
        [("html", "html"), ("markdown", "md"), ("json", "json")]
    );
    assert!(exports.contains(&("claude-code".to_owned(), "jsonl".to_owned())));
    // It did not come from there, and nothing can be written for it.
    assert!(!exports.iter().any(|(name, _)| name == "aider"));
    assert!(lab.library.exports("none").is_empty());
}
