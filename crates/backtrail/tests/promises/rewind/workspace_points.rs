//! A moment of the workspace, by whatever name: what all agents and runs did since is
//! undone, and what the user did as far as a checkpoint of their own has it. A record of
//! a session means that session's work. Naming a file is consent.

use std::path::{Path, PathBuf};

use backtrail::rewind::{ChangedBy, Stage};
use backtrail::{
    Checkpoint, CheckpointOptions, Message, Outcome, Point, Rewind, Session, Workspace,
};

use super::kit::{Lab, begin, done, end, is_tree, run, run_start, stopped, turn};

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn at(checkpoint: &Checkpoint) -> Point {
    Point::checkpoint(checkpoint.id())
}

fn labelled(workspace: &Workspace, label: &str) -> Checkpoint {
    let options = CheckpointOptions::new().label(label);
    workspace.checkpoint(options).unwrap()
}

/// What happened since the point, and which of it stops going there.
struct Case {
    what: &'static str,
    happens: fn(&Lab, &Session, &Session),
    stops: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        what: "agents and runs, of several sessions and of none",
        happens: |lab, a, b| {
            turn(a, "a", || lab.write("one", "a"));
            turn(b, "b", || lab.write("one", "b"));
            run(lab, Some(a), || lab.write("two", "a"));
            run(lab, None, || lab.write("two", "nobody"));
        },
        stops: &[],
    },
    Case {
        what: "two agents at the same time",
        happens: |lab, a, b| {
            let (first, second) = (begin(a, "a"), begin(b, "b"));
            lab.write("one", "either");
            end(first);
            end(second);
        },
        stops: &[],
    },
    Case {
        what: "edits that no checkpoint has",
        happens: |lab, a, _| {
            turn(a, "a", || lab.write("one", "a"));
            lab.write("two", "mine");
        },
        stops: &["two"],
    },
    Case {
        what: "edits that only the start of a run has",
        happens: |lab, a, _| {
            lab.write("two", "mine");
            run(lab, Some(a), || lab.write("one", "a"));
        },
        stops: &["two"],
    },
    Case {
        what: "edits that only the start of a turn has",
        happens: |lab, a, _| {
            lab.write("two", "mine");
            turn(a, "a", || lab.write("one", "a"));
        },
        stops: &["two"],
    },
    Case {
        what: "edits that only a rewind has",
        happens: |lab, a, _| {
            turn(a, "a", || lab.write("one", "a"));
            lab.write("two", "mine");
            done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
        },
        stops: &["two"],
    },
    Case {
        what: "edits that the user saved",
        happens: |lab, a, _| {
            lab.write("two", "mine");
            lab.keep();
            turn(a, "a", || lab.write("one", "a"));
        },
        stops: &[],
    },
    Case {
        what: "edits that the user saved after a turn began",
        happens: |lab, a, _| {
            lab.write("two", "mine");
            turn(a, "a", || lab.write("two", "a on top of mine"));
            lab.keep();
        },
        stops: &[],
    },
    Case {
        what: "edits after the user saved others",
        happens: |lab, a, _| {
            lab.write("one", "mine");
            lab.keep();
            lab.write("two", "mine, later");
            turn(a, "a", || lab.write("one", "a"));
        },
        stops: &["two"],
    },
    Case {
        what: "edits that a rewind returned after the user saved something else",
        happens: |lab, _, _| {
            let before = lab.keep();
            lab.write("two", "mine");
            let overwrite = Rewind::files().overwrite();
            done(lab.workspace.rewind(&at(&before), overwrite).unwrap());
            lab.keep();
            done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
        },
        stops: &["two"],
    },
    Case {
        what: "what a session asked to be kept is the session's",
        happens: |lab, a, _| {
            lab.write("two", "by a program of the agent");
            a.checkpoint(CheckpointOptions::new()).unwrap();
        },
        stops: &[],
    },
];

/// F31: whichever checkpoint has the state, and whatever it is called.
#[test]
fn f31_the_same_state_gives_the_same_answer_by_whatever_name() {
    for case in CASES {
        for of_session in [false, true] {
            let lab = Lab::new(1);
            lab.write("one", "at first");
            lab.write("two", "at first");
            let (a, b) = (lab.session(), lab.session());
            for session in [&a, &b] {
                session.append(Message::user_text("hello")).unwrap();
            }
            let options = CheckpointOptions::new().label("before lunch");
            let point = match of_session {
                true => a.checkpoint(options),
                false => lab.workspace.checkpoint(options),
            };
            let point = point.unwrap();
            let then = lab.tree();
            // Runs that change nothing are no steps, and this one begins at that state.
            run(&lab, None, || lab.write("three", "by the first"));
            (case.happens)(&lab, &a, &b);
            same_answers(&lab, &point, case, of_session);
            let outcome = lab.workspace.rewind(&at(&point), Rewind::files()).unwrap();
            match case.stops {
                [] => {
                    done(outcome);
                    is_tree(lab.root(), &then, case.what);
                }
                stops => assert_eq!(stopped(outcome), paths(stops), "{}", case.what),
            }
            lab.verify();
        }
    }
}

/// Checks that every name of a point plans the same.
fn same_answers(lab: &Lab, point: &Checkpoint, case: &Case, of_session: bool) {
    let id = point.id().to_string();
    let mut names = vec![at(point), Point::label("before lunch")];
    for text in ["before lunch", &id, &id[..8], &id[..13]] {
        names.push(text.parse().unwrap());
    }
    let planned = |name: &Point| -> Outcome {
        let plan = lab.workspace.rewind_plan(name, Rewind::files()).unwrap();
        plan.outcome().clone()
    };
    let first = planned(&names[0]);
    let named: Vec<PathBuf> = first.stopping().map(|one| one.path.clone()).collect();
    assert_eq!(named, paths(case.stops), "{}", case.what);
    for name in &names {
        assert_eq!(planned(name), first, "{}: {name}", case.what);
    }
    // By the number of turns and runs since, it is the checkpoint after it, of the same
    // state.
    let turns = (1..20).map(Point::turns_back).filter(|turns| {
        let found = lab.workspace.resolve(turns);
        found.is_ok_and(|found| found.snapshot_id() == point.snapshot_id())
    });
    let turns: Vec<Point> = turns.collect();
    assert!(!turns.is_empty(), "{}", case.what);
    for name in &turns {
        let by_turns = planned(name);
        let what = format!("{}, {of_session}: {name}", case.what);
        assert_eq!(by_turns.changes, first.changes, "{what}");
        assert_eq!(by_turns.conflicts, first.conflicts, "{what}");
    }
}

/// F31: a record of a session is about that session's work.
#[test]
fn f31_a_record_of_a_session_means_its_work_alone() {
    let lab = Lab::new(2);
    lab.write("one", "at first");
    let (a, b) = (lab.session(), lab.session());
    a.append(Message::user_text("hello")).unwrap();
    turn(&a, "a", || lab.write("one", "a"));
    turn(&b, "b", || lab.write("two", "b"));
    lab.write("three", "mine");
    lab.keep();
    let to = Point::record(a.id(), 1);
    let attempt = lab.workspace.rewind(&to, Rewind::files()).unwrap();
    assert_eq!(stopped(attempt), paths(&["three", "two"]));
    // The checkpoint that it means, by its own name, is a moment of the workspace.
    let checkpoint = lab.workspace.resolve(&to).unwrap();
    done(
        lab.workspace
            .rewind(&at(&checkpoint), Rewind::files())
            .unwrap(),
    );
    assert!(!lab.has("two") && !lab.has("three"));
    assert_eq!(lab.read("one"), "at first");
}

/// A running session is named, and stops nothing.
#[test]
fn a_running_session_is_named_and_its_conversation_stays_while_it_is_written() {
    let lab = Lab::new(3);
    lab.write("one", "at first");
    let (a, b) = (lab.session(), lab.session());
    let point = {
        a.append(Message::user_text("hello")).unwrap();
        a.checkpoint(CheckpointOptions::new()).unwrap()
    };
    let of_b = begin(&b, "b works");
    lab.write("one", "b, so far");
    turn(&a, "a works", || lab.write("two", "a"));
    let start = run_start(&lab, None);
    let running = lab.workspace.activate(&start).unwrap();
    let both = Rewind::files_and_chat();
    let plan = lab
        .workspace
        .rewind_plan(&at(&point), both.clone())
        .unwrap();
    assert_eq!(plan.outcome().chat_in_use.as_ref(), Some(a.id()));
    assert!(plan.outcome().chat.is_none() && !plan.is_stopped());
    let outcome = done(lab.workspace.rewind(&at(&point), both.clone()).unwrap());
    assert_eq!(outcome.chat_in_use.as_ref(), Some(a.id()));
    assert!(outcome.chat.is_none());
    assert_eq!(outcome.other_sessions, [b.id().clone()]);
    let named: Vec<_> = outcome.active.iter().map(|one| one.checkpoint).collect();
    assert!(named.contains(&start.id()) && named.len() == 2, "{named:?}");
    assert_eq!(lab.read("one"), "at first");
    assert!(!lab.has("two"));
    assert_eq!(a.last_seq(), 4, "the conversation stays");
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    // The process that writes to it moves it.
    let outcome = a.rewind(&at(&point)).unwrap();
    assert_eq!(outcome.chat_in_use, None);
    assert_eq!(outcome.chat.map(|chat| chat.to), Some(1));
    assert!(!lab.has("two"));
    drop(running);
    end(of_b);
    lab.verify();
}

/// A session that nobody writes to moves with the workspace; the others are named.
#[test]
fn the_conversation_of_the_point_moves_and_others_are_named() {
    let lab = Lab::new(4);
    let (a, b) = (lab.session(), lab.session());
    let ids = [a.id().clone(), b.id().clone()];
    turn(&a, "a works", || lab.write("one", "a"));
    turn(&b, "b works", || lab.write("two", "b"));
    drop((a, b));
    let before_a = Point::turns_back(2);
    let outcome = lab.workspace.rewind(&before_a, Rewind::files_and_chat());
    let outcome = done(outcome.unwrap());
    assert_eq!(outcome.chat.map(|chat| chat.session), Some(ids[0].clone()));
    assert_eq!(outcome.chat_in_use, None);
    assert_eq!(outcome.other_sessions, [ids[1].clone()]);
}

/// A named file goes to the point whoever changed it, and undo returns it. A named
/// directory stops at what the user did and did not save.
#[test]
fn naming_a_file_is_consent_and_naming_a_directory_is_not() {
    /// What is done to `dir/file` after the point, what is named, and what stops it.
    type Row = (
        &'static str,
        fn(&Lab),
        &'static [&'static str],
        &'static [&'static str],
    );
    let rows: &[Row] = &[
        (
            "changed",
            |lab| lab.write("dir/file", "mine"),
            &["dir/file"],
            &[],
        ),
        (
            "deleted",
            |lab| std::fs::remove_file(lab.path("dir/file")).unwrap(),
            &["dir/file"],
            &[],
        ),
        (
            "created",
            |lab| lab.write("dir/new", "mine"),
            &["dir/new"],
            &[],
        ),
        (
            "changed",
            |lab| lab.write("dir/file", "mine"),
            &["dir"],
            &["dir/file"],
        ),
        (
            "changed",
            |lab| lab.write("dir/file", "mine"),
            &["dir/file", "dir"],
            &[],
        ),
        (
            "two of them",
            |lab| {
                lab.write("dir/file", "mine");
                lab.write("dir/other", "mine");
            },
            &["dir/file", "dir"],
            &["dir/other"],
        ),
        (
            "saved",
            |lab| {
                lab.write("dir/file", "mine");
                lab.keep();
            },
            &["dir"],
            &[],
        ),
        (
            "captured by a run",
            |lab| {
                lab.write("dir/file", "mine");
                run(lab, None, || lab.write("dir/other", "by the run"));
            },
            &["dir"],
            &["dir/file"],
        ),
        (
            "a file in its place",
            |lab| {
                std::fs::remove_dir_all(lab.path("dir")).unwrap();
                lab.write("dir", "mine");
            },
            &["dir"],
            &[],
        ),
        (
            "a directory in its place",
            |lab| {
                std::fs::remove_file(lab.path("dir/file")).unwrap();
                lab.write("dir/file/mine", "mine");
            },
            &["dir/file"],
            &["dir/file", "dir/file/mine"],
        ),
    ];
    for (what, happens, named, stops) in rows {
        let lab = Lab::new(5);
        lab.write("dir/file", "at first");
        lab.write("dir/other", "at first");
        lab.write("elsewhere", "at first");
        let point = labelled(&lab.workspace, "first");
        let of_session = lab.session();
        turn(&of_session, "work", || {
            lab.write("dir/file", "by the agent");
            lab.write("elsewhere", "by the agent");
        });
        happens(&lab);
        let before = lab.tree();
        let options = Rewind::files().paths(named.iter());
        let outcome = lab.workspace.rewind(&at(&point), options).unwrap();
        let stopping: Vec<PathBuf> = outcome.stopping().map(|one| one.path.clone()).collect();
        assert_eq!(stopping, paths(stops), "{what} {named:?}");
        assert_eq!(lab.read("elsewhere"), "by the agent");
        if outcome.stage == Stage::Stopped {
            is_tree(lab.root(), &before, what);
            continue;
        }
        if *what != "created" {
            assert_eq!(lab.read("dir/file"), "at first", "{what} {named:?}");
        }
        assert!(!lab.has("dir/new"), "{what} {named:?}");
        for one in outcome.replaced() {
            assert_eq!(one.changed_by, ChangedBy::Person, "{what} {named:?}");
        }
        let replaced: Vec<&Path> = outcome.replaced().map(|one| one.path.as_path()).collect();
        let is_unsaved = *what != "saved";
        assert_eq!(!replaced.is_empty(), is_unsaved, "{what} {named:?}");
        done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
        is_tree(lab.root(), &before, what);
        lab.verify();
    }
}

/// The same for a record of a session: what another did to a named file is replaced, and
/// the answer says whose it was.
#[test]
fn naming_a_file_is_consent_whatever_the_point() {
    let lab = Lab::new(6);
    lab.write("file", "at first");
    let (a, b) = (lab.session(), lab.session());
    a.append(Message::user_text("hello")).unwrap();
    turn(&a, "a", || lab.write("file", "a"));
    turn(&b, "b", || lab.write("file", "b"));
    let to = Point::record(a.id(), 1);
    let outcome = lab.workspace.rewind(&to, Rewind::files().paths(["file"]));
    let outcome = done(outcome.unwrap());
    let by: Vec<&ChangedBy> = outcome.replaced().map(|one| &one.changed_by).collect();
    assert_eq!(by, [&ChangedBy::Session(b.id().clone())]);
    assert_eq!(lab.read("file"), "at first");
    // Keeping what others did is still possible.
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    let keep = Rewind::files().paths(["file"]).keep();
    let outcome = done(lab.workspace.rewind(&to, keep).unwrap());
    assert_eq!((outcome.kept.len(), outcome.replaced().count()), (1, 0));
    assert_eq!(lab.read("file"), "b");
}
