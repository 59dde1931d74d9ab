//! What is planned changes nothing, and exactly what was planned is done.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at files and change them"
)]

use std::fs;

use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, Message};
use backtrail_view::library::{Action, Library, Moment, OnConflict, Plan, Report};

use super::super::StoreLibrary;
use super::super::lab::{Lab, at, place};

fn plan(lab: &Lab, action: &Action) -> Plan {
    lab.library.plan(action).unwrap()
}

fn text(plan: &Plan) -> String {
    let line = |line: &Vec<backtrail_view::library::Span>| {
        line.iter().map(|it| it.text.as_str()).collect::<String>()
    };
    plan.lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn apply(lab: &Lab, plan: &Plan) -> Report {
    lab.library.apply(plan.token, OnConflict::Stop).unwrap()
}

fn refusal(library: &StoreLibrary, action: &Action) -> String {
    library.plan(action).unwrap_err().message
}

#[test]
fn a_plan_changes_nothing_and_applying_it_does_what_it_said() {
    let lab = Lab::new();
    lab.write("a", "old\n");
    lab.checkpoint();
    lab.turn("change a", "a", "new\n");
    let before = lab.workspace.checkpoints().unwrap().count();

    let undo = plan(&lab, &Action::Undo);
    assert!(undo.is_possible && undo.choices.is_empty());
    assert!(
        undo.title.starts_with("Undo the turn \"change a\""),
        "{}",
        undo.title
    );
    assert!(text(&undo).contains("would restore  a"), "{}", text(&undo));
    assert_eq!(lab.read("a"), "new\n");
    assert_eq!(lab.workspace.checkpoints().unwrap().count(), before);

    let report = apply(&lab, &undo);
    assert_eq!(lab.read("a"), "old\n");
    assert!(
        report.message.starts_with("Undid the turn \"change a\""),
        "{}",
        report.message
    );
    assert!(report.message.ends_with(": 1 file"), "{}", report.message);
    assert_eq!(report.reverse, Some(Action::Redo));

    let redo = plan(&lab, &Action::Redo);
    let report = apply(&lab, &redo);
    assert_eq!(lab.read("a"), "new\n");
    assert_eq!(report.reverse, Some(Action::Undo));
}

#[test]
fn where_there_is_nothing_to_undo_the_plan_says_so() {
    let lab = Lab::new();
    lab.write("a", "a\n");
    lab.checkpoint();
    for (action, why) in [
        (Action::Undo, "nothing to undo here"),
        (Action::Redo, "nothing to redo here"),
    ] {
        let plan = plan(&lab, &action);
        assert!(!plan.is_possible);
        assert_eq!(text(&plan), why);
        assert!(lab.library.apply(plan.token, OnConflict::Stop).is_err());
    }
}

#[test]
fn a_file_that_changed_since_the_plan_is_not_touched() {
    let lab = Lab::new();
    lab.write("a", "old\n");
    lab.checkpoint();
    lab.turn("change a", "a", "new\n");
    let undo = plan(&lab, &Action::Undo);
    lab.write("b", "mine\n");
    lab.write("a", "mine\n");
    let refused = lab.library.apply(undo.token, OnConflict::Stop).unwrap_err();
    assert!(refused.message.contains("changed since"), "{refused:?}");
    assert_eq!(lab.read("a"), "mine\n");
    // The plan is used up.
    let again = lab.library.apply(undo.token, OnConflict::Stop).unwrap_err();
    assert!(again.message.contains("out of date"), "{again:?}");
}

#[test]
fn a_conflict_that_changed_since_the_plan_is_not_overwritten() {
    let lab = conflicting();
    let undo = plan(&lab, &Action::Undo);
    lab.write("a", "later\n");
    let refused = lab.library.apply(undo.token, OnConflict::Overwrite);
    assert!(refused.unwrap_err().message.contains("changed since"));
    assert_eq!(lab.read("a"), "later\n");
}

/// A turn changed a file, and then the user did, too, in another line.
fn conflicting() -> Lab {
    let lab = Lab::new();
    lab.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    lab.checkpoint();
    lab.turn("change a", "a", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    lab.write("a", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    lab
}

#[test]
fn conflicts_stop_until_one_of_the_choices_is_taken() {
    for (choice, after) in [
        (OnConflict::Keep, "one\n2\n3\n4\n5\n6\n7\n8\nnine\n"),
        (OnConflict::Merge, "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"),
        (OnConflict::Overwrite, "1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
    ] {
        let lab = conflicting();
        let undo = plan(&lab, &Action::Undo);
        assert!(undo.is_possible, "{}", text(&undo));
        let choices: Vec<OnConflict> = undo.choices.iter().map(|it| it.0).collect();
        assert_eq!(
            choices,
            [OnConflict::Keep, OnConflict::Merge, OnConflict::Overwrite]
        );
        assert_eq!(undo.choices[0].1, "leave a as it is, undo the rest");
        assert!(text(&undo).contains("1 file has your changes since this turn"));

        let before = lab.read("a");
        let stopped = lab.library.apply(undo.token, OnConflict::Stop).unwrap_err();
        assert!(
            stopped.message.contains("nothing was touched"),
            "{stopped:?}"
        );
        assert_eq!(lab.read("a"), before);

        lab.library.apply(undo.token, choice).unwrap();
        assert_eq!(lab.read("a"), after, "{choice:?}");
    }
}

#[test]
fn a_merge_is_offered_only_if_it_goes_through() {
    let lab = conflicting();
    lab.write("a", "mine\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let undo = plan(&lab, &Action::Undo);
    let choices: Vec<OnConflict> = undo.choices.iter().map(|it| it.0).collect();
    assert_eq!(choices, [OnConflict::Keep, OnConflict::Overwrite]);
    assert!(
        text(&undo).contains("--merge is not possible"),
        "{}",
        text(&undo)
    );
    assert!(lab.library.apply(undo.token, OnConflict::Merge).is_err());
    assert_eq!(lab.read("a"), "mine\n2\n3\n4\n5\n6\n7\n8\n9\n");
}

#[test]
fn files_go_back_to_a_moment_alone_or_all_together() {
    let lab = Lab::new();
    lab.write("a", "a1\n");
    lab.write("b", "b1\n");
    let first = lab.checkpoint();
    lab.write("a", "a2\n");
    lab.write("b", "b2\n");
    lab.checkpoint();

    let only = Action::Restore(lab.id(), at(&first), vec!["a".to_owned()]);
    let report = apply(&lab, &plan(&lab, &only));
    assert_eq!(
        (lab.read("a"), lab.read("b")),
        ("a1\n".into(), "b2\n".into())
    );
    assert_eq!(report.reverse, Some(Action::Undo));

    let all = Action::Rewind(lab.id(), at(&first));
    apply(&lab, &plan(&lab, &all));
    assert_eq!(
        (lab.read("a"), lab.read("b")),
        ("a1\n".into(), "b1\n".into())
    );

    let again = plan(&lab, &all);
    assert!(!again.is_possible);
    assert!(
        text(&again).starts_with("already as it was"),
        "{}",
        text(&again)
    );
    let now = Action::Rewind(lab.id(), Moment::Now);
    assert!(refusal(&lab.library, &now).contains("as they are now"));
    let none = Action::Restore(lab.id(), at(&first), Vec::new());
    assert!(refusal(&lab.library, &none).contains("at least one"));
    let wrong = Action::Restore(lab.id(), at(&first), vec!["nowhere".to_owned()]);
    assert!(refusal(&lab.library, &wrong).contains("nowhere"));
}

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n";

#[test]
fn one_hunk_of_several_goes_back_and_the_others_stay() {
    let lab = Lab::new();
    lab.write("a", LINES);
    let first = lab.checkpoint();
    let changed = LINES
        .replace("3\n4", "3\nadded\n4")
        .replace("11\n", "eleven\n");
    let changed = changed.replace("19\n", "");
    lab.write("a", &changed);
    let between = lab.between(&first, Moment::Now);

    let hunk = Action::RestoreHunks(between.clone(), "a".to_owned(), vec![1]);
    let planned = plan(&lab, &hunk);
    assert_eq!(lab.read("a"), changed);
    let report = apply(&lab, &planned);
    assert_eq!(lab.read("a"), changed.replace("eleven\n", "11\n"));
    assert_eq!(report.reverse, Some(Action::Undo));
    apply(&lab, &plan(&lab, &Action::Undo));
    assert_eq!(lab.read("a"), changed);

    let others = Action::RestoreHunks(between.clone(), "a".to_owned(), vec![0, 2]);
    apply(&lab, &plan(&lab, &others));
    assert_eq!(lab.read("a"), LINES.replace("11\n", "eleven\n"));

    for wrong in [vec![7], vec![]] {
        let wrong = Action::RestoreHunks(between.clone(), "a".to_owned(), wrong);
        lab.library.plan(&wrong).unwrap_err();
    }
}

#[test]
fn a_hunk_of_an_earlier_change_goes_back_although_the_file_changed_elsewhere() {
    let lab = Lab::new();
    lab.write("a", LINES);
    let first = lab.checkpoint();
    lab.write(
        "a",
        &LINES
            .replace("\n3\n", "\nthree\n")
            .replace("15\n", "fifteen\n"),
    );
    let second = lab.checkpoint();
    lab.write("a", &format!("top\n{}", lab.read("a")));
    let between = lab.between(&first, at(&second));
    let hunk = |n| Action::RestoreHunks(between.clone(), "a".to_owned(), vec![n]);
    apply(&lab, &plan(&lab, &hunk(1)));
    assert_eq!(
        lab.read("a"),
        format!("top\n{}", LINES.replace("\n3\n", "\nthree\n"))
    );

    lab.write("a", &lab.read("a").replace("three\n", "mine\n"));
    assert!(refusal(&lab.library, &hunk(0)).contains("changed there since"));
}

#[test]
fn a_new_file_goes_back_as_a_whole() {
    let lab = Lab::new();
    lab.write("a", "a\n");
    let first = lab.checkpoint();
    lab.write("new", "1\n2\n");
    let between = lab.between(&first, Moment::Now);
    let hunk = Action::RestoreHunks(between, "new".to_owned(), vec![0]);
    apply(&lab, &plan(&lab, &hunk));
    assert_eq!(lab.read("new"), "-");
}

#[test]
fn a_fork_gets_a_directory_of_its_own_and_only_a_new_one() {
    let lab = Lab::new();
    lab.write("a", "old\n");
    lab.checkpoint();
    let session = lab.turn("change a", "a", "new\n");
    let dir = lab.dir.path().join("fork");
    let fork = |dir: &std::path::Path| {
        Action::Fork(place(&session, 3), dir.to_string_lossy().into_owned())
    };
    let planned = plan(&lab, &fork(&dir));
    assert!(
        text(&planned).starts_with("would create"),
        "{}",
        text(&planned)
    );
    assert!(!dir.exists());
    let report = apply(&lab, &planned);
    assert!(report.message.starts_with("created"), "{}", report.message);
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "new\n");

    lab.library.plan(&fork(&dir)).unwrap_err();
    lab.library
        .plan(&Action::Fork(place(&session, 3), "  ".to_owned()))
        .unwrap_err();
    let bare = lab.edited("a", "x", "y");
    let bare = Action::Fork(
        place(&bare, 1),
        lab.dir.path().join("x").display().to_string(),
    );
    assert!(!refusal(&lab.library, &bare).is_empty());
}

/// The screen may be open in another directory, and show no changes.
#[test]
fn what_is_done_at_a_record_is_done_where_its_session_works() {
    let mut lab = Lab::new();
    lab.write("a", "old\n");
    lab.checkpoint();
    let session = lab.turn("change a", "a", "new\n");
    let elsewhere = lab.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("b"), "b\n").unwrap();
    let other = lab.library.store.workspace(&elsewhere).unwrap();
    other.checkpoint(CheckpointOptions::new()).unwrap();
    lab.library.root = Some(other.root().to_owned());
    let at_prompt = || Moment::Record(place(&session, 1));

    let rewind = plan(&lab, &Action::Rewind(String::new(), at_prompt()));
    assert!(text(&rewind).starts_with("in "), "{}", text(&rewind));
    assert!(
        text(&rewind).contains("would restore  a"),
        "{}",
        text(&rewind)
    );
    let paths = vec!["a".to_owned()];
    let restore = plan(&lab, &Action::Restore(String::new(), at_prompt(), paths));
    let report = apply(&lab, &restore);
    assert_eq!(lab.read("a"), "old\n");
    assert_eq!(report.reverse, None, "undo is about the workspace here");

    let dir = lab.dir.path().join("fork");
    let fork = Action::Fork(place(&session, 3), dir.display().to_string());
    apply(&lab, &plan(&lab, &fork));
    assert_eq!(fs::read_to_string(dir.join("a")).unwrap(), "new\n");
}

#[test]
fn a_turn_without_changes_rewinds_files_and_names_the_conflicts() {
    let lab = Lab::new();
    lab.write("keep", "mine\n");
    lab.checkpoint();
    let session = lab.turn("change nothing", "keep", "mine\n");
    lab.write("keep", "mine, later\n");
    let moment = Moment::Record(place(&session, 1));
    let rewind = plan(&lab, &Action::Rewind(String::new(), moment));
    assert!(!rewind.choices.is_empty(), "{}", text(&rewind));
    assert!(text(&rewind).contains("1 file has your changes"));
}

#[test]
fn a_conversation_without_checkpoints_is_rewound_alone() {
    let lab = Lab::new();
    let session = lab.edited("a", "x", "y");
    let moment = || Moment::Record(place(&session, 1));
    let rewind = plan(&lab, &Action::Rewind(String::new(), moment()));
    assert!(rewind.is_possible, "{}", text(&rewind));
    assert!(rewind.title.contains("conversation"), "{}", rewind.title);
    let restore = Action::Restore(String::new(), moment(), vec!["a".to_owned()]);
    assert!(refusal(&lab.library, &restore).contains("no file checkpoints"));
}

#[test]
fn a_conversation_from_before_the_first_checkpoint_is_rewound_alone() {
    let lab = Lab::new();
    let session = lab.session();
    for text in ["first", "second"] {
        session.append(Message::user_text(text)).unwrap();
    }
    let id = session.id().to_string();
    session.close().unwrap();
    lab.checkpoint();
    let moment = Moment::Record(place(&id, 1));
    let rewind = plan(&lab, &Action::Rewind(String::new(), moment));
    assert!(rewind.is_possible, "{}", text(&rewind));
    assert!(rewind.title.contains("conversation"), "{}", rewind.title);
}

#[test]
fn a_session_goes_to_the_trash_and_back() {
    let lab = Lab::new();
    lab.write("a", "old\n");
    lab.checkpoint();
    let session = lab.turn("change a", "a", "new\n");
    let deletion = plan(&lab, &Action::Delete(session.clone()));
    assert_eq!(lab.library.store.sessions().unwrap().len(), 1);
    let report = apply(&lab, &deletion);
    assert_eq!(lab.library.store.sessions().unwrap().len(), 0);
    assert!(
        report.message.ends_with("to the trash"),
        "{}",
        report.message
    );
    let back = report.reverse.unwrap();
    assert_eq!(back, Action::Undelete(session.clone()));
    lab.library
        .plan(&Action::Delete(session.clone()))
        .unwrap_err();
    let report = apply(&lab, &plan(&lab, &back));
    assert_eq!(lab.library.store.sessions().unwrap().len(), 1);
    assert_eq!(report.reverse, Some(Action::Delete(session)));
    lab.library.plan(&back).unwrap_err();
}

#[test]
fn title_tags_and_pin_change_and_go_back() {
    let lab = Lab::new();
    let session = lab.turn("change a", "a", "new\n");
    let id = session.parse().unwrap();
    let info = || lab.library.store.read_session(&id).unwrap().info().unwrap();
    let do_and_undo = |action: Action, check: &dyn Fn(bool)| {
        let planned = plan(&lab, &action);
        check(false);
        let report = apply(&lab, &planned);
        check(true);
        apply(&lab, &plan(&lab, &report.reverse.unwrap()));
        check(false);
    };
    let title = Action::Title(session.clone(), "Port the parser".to_owned());
    do_and_undo(title, &|is_done| {
        let title = info().title.filter(|title| !title.is_empty());
        assert_eq!(title.as_deref(), is_done.then_some("Port the parser"));
    });
    apply(
        &lab,
        &plan(&lab, &Action::Tag(session.clone(), "old".to_owned())),
    );
    let tags = Action::Tag(session.clone(), "+new -old".to_owned());
    do_and_undo(tags, &|is_done| {
        assert_eq!(info().tags, [if is_done { "new" } else { "old" }]);
    });
    do_and_undo(Action::Pin(session.clone(), true), &|is_done| {
        assert_eq!(info().pinned, is_done);
    });
    for blank in ["", "  ", "+", "a -"] {
        let blank = Action::Tag(session.clone(), blank.to_owned());
        assert!(refusal(&lab.library, &blank).contains("blank"));
    }
}

#[test]
fn a_session_that_is_not_there_is_a_clear_error() {
    let lab = Lab::new();
    let none = "00000000-0000-4000-8000-000000000000".to_owned();
    for action in [
        Action::Delete(none.clone()),
        Action::Undelete(none.clone()),
        Action::Title(none.clone(), "x".to_owned()),
        Action::Tag(none.clone(), "+x".to_owned()),
        Action::Pin(none.clone(), true),
        Action::Fork(place(&none, 1), "dir".to_owned()),
        Action::Export(none.clone(), "html".to_owned(), "x.html".to_owned()),
        Action::Rewind(none.clone(), Moment::Record(place(&none, 1))),
    ] {
        assert!(!refusal(&lab.library, &action).is_empty(), "{action:?}");
    }
}

#[test]
fn an_export_is_a_new_file_in_a_directory_that_exists() {
    let lab = Lab::new();
    let session = lab.turn("change a", "a", "new\n");
    let file = lab.dir.path().join("x.md");
    let export = |format: &str, file: &std::path::Path| {
        Action::Export(
            session.clone(),
            format.to_owned(),
            file.display().to_string(),
        )
    };
    let planned = plan(&lab, &export("markdown", &file));
    assert!(!file.exists());
    let report = apply(&lab, &planned);
    assert!(report.message.starts_with("exported"), "{}", report.message);
    assert!(fs::read_to_string(&file).unwrap().contains("change a"));

    assert!(refusal(&lab.library, &export("html", &file)).contains("exists"));
    let nowhere = lab.dir.path().join("no/x.html");
    assert!(refusal(&lab.library, &export("html", &nowhere)).contains("no directory"));
    let other = lab.dir.path().join("y");
    assert!(refusal(&lab.library, &export("docx", &other)).contains("not a format"));
}

#[test]
fn a_file_that_appears_after_the_plan_is_not_replaced_by_an_export() {
    let lab = Lab::new();
    let session = lab.turn("change a", "a", "new\n");
    let file = lab.dir.path().join("x.md");
    let path = file.display().to_string();
    let export = plan(&lab, &Action::Export(session, "markdown".to_owned(), path));
    fs::write(&file, "mine").unwrap();
    lab.library
        .apply(export.token, OnConflict::Stop)
        .unwrap_err();
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn older_plans_are_forgotten_and_tokens_are_never_used_again() {
    let lab = Lab::new();
    let session = lab.turn("change a", "a", "new\n");
    let pin = Action::Pin(session, true);
    let first = plan(&lab, &pin);
    let tokens: Vec<u64> = (0..4).map(|_| plan(&lab, &pin).token).collect();
    assert!(tokens.iter().all(|token| *token > first.token));
    let refused = lab
        .library
        .apply(first.token, OnConflict::Stop)
        .unwrap_err();
    assert!(refused.message.contains("out of date"), "{refused:?}");
    lab.library.apply(tokens[0], OnConflict::Stop).unwrap();
    lab.library.apply(tokens[0], OnConflict::Stop).unwrap_err();
}

#[test]
fn the_footer_says_what_undo_would_do() {
    let lab = Lab::new();
    assert_eq!(
        lab.library.next_undo(),
        "NOT PROTECTED: no checkpoints here yet"
    );
    lab.write("a", "old\n");
    lab.checkpoint();
    assert_eq!(lab.library.next_undo(), "nothing to undo");
    lab.turn("change \u{1b}[31ma", "a", "new\n");
    let line = lab.library.next_undo();
    assert!(line.starts_with("undo: the turn \"change "), "{line}");
    assert!(
        line.ends_with("1 file") && !line.contains('\u{1b}'),
        "{line}"
    );
    apply(&lab, &plan(&lab, &Action::Undo));
    assert_eq!(lab.library.next_undo(), "nothing to undo");
    let label = CheckpointOptions::new().label("x");
    lab.workspace.checkpoint(label).unwrap();
    assert_eq!(lab.library.next_undo(), "nothing to undo");
}

#[test]
fn a_plan_warns_of_agents_that_will_not_notice() {
    let lab = Lab::new();
    lab.write("a", "old\n");
    let first = lab.checkpoint();
    lab.write("a", "new\n");
    let run = CheckpointOptions::new().reason(CheckpointReason::RunStart);
    let start = lab.workspace.checkpoint(run.about("make all")).unwrap();
    let action = Action::Restore(lab.id(), at(&first), vec!["a".to_owned()]);
    let warning = "make all has been running here since";
    assert!(!text(&plan(&lab, &action)).contains(warning));
    let active = lab.workspace.activate(&start).unwrap();
    let planned = text(&plan(&lab, &action));
    assert!(planned.contains(warning), "{planned}");
    assert!(planned.contains("will not notice that its files changed"));
    drop(active);
}

#[test]
fn a_rewind_that_only_conflicts_stop_names_them() {
    let lab = conflicting();
    let start = lab.library.timeline(9).unwrap().rows.pop().unwrap().id;
    let workspace = lab.library.timeline(1).unwrap().workspace;
    let rewind = plan(&lab, &Action::Rewind(workspace, Moment::Checkpoint(start)));
    assert_eq!(rewind.choices.len(), 3);
    let text = text(&rewind);
    assert!(text.contains("1 file has your changes"), "{text}");
    assert!(!text.contains("already"), "{text}");
}
