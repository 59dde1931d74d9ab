//! Others: what one session undoes is its own, and neither another's nor the
//! person's (F31); sub-agents and forks; two clones of one repository; a move while
//! somebody works; conversations that belong to another agent, or in which somebody
//! else speaks; and plans that come too late.

use std::fs;

use backtrail::plumbing::ImportWriterOptions;
use backtrail::rewind::{ChangedBy, KeptReason, Verb};
use backtrail::workspace::CheckpointReason;
use backtrail::{
    Block, Draft, ErrorKind, ForkOptions, Message, Point, Rewind, Session, SessionId,
    SessionOptions, Step, StepKind, Store, ToolUse,
};

use super::kit::{Lab, begin, done, end, is_tree, run, run_end, run_start, stopped, turn};

/// Returns the last record of a session as a reader sees it.
fn head(store: &Store, id: &SessionId) -> u64 {
    let last = store.read_session(id).unwrap().last_records(1).unwrap();
    last.first().map_or(0, |record| record.seq())
}

fn point(session: &Session, seq: u64) -> Point {
    Point::record(session.id(), seq)
}

#[test]
fn f31_a_session_undoes_its_own_work_and_nobody_elses() {
    let lab = Lab::new(1);
    lab.write("shared", "at first");
    let (a, b) = (lab.session(), lab.session());
    turn(&a, "a begins", || {
        lab.write("of-a", "1");
        lab.write("shared", "by a");
    });
    turn(&b, "b works", || {
        lab.write("of-b", "1");
        lab.write("shared", "by b");
    });
    lab.write("of-the-person", "saved");
    lab.keep();
    turn(&a, "a again", || lab.write("of-a", "2"));
    lab.write("unsaved", "by the person");
    let before = lab.tree();

    let attempt = lab
        .workspace
        .rewind(&point(&a, 0), Rewind::files())
        .unwrap();
    assert_eq!(
        stopped(attempt),
        ["of-b", "of-the-person", "shared", "unsaved"].map(Into::<std::path::PathBuf>::into)
    );
    is_tree(lab.root(), &before, "stopped");
    let plan = lab
        .workspace
        .rewind_plan(&point(&a, 0), Rewind::files())
        .unwrap();
    let by: Vec<_> = plan
        .outcome()
        .conflicts
        .iter()
        .map(|one| &one.changed_by)
        .collect();
    let b_did = ChangedBy::Session(b.id().clone());
    assert_eq!(by, [&b_did, &ChangedBy::Person, &b_did, &ChangedBy::Person]);
    let unsaved: Vec<bool> = plan
        .outcome()
        .conflicts
        .iter()
        .map(|one| one.unsaved)
        .collect();
    assert_eq!(unsaved, [false, false, false, true]);
    assert_eq!(
        plan.outcome().conflicts[2].also.as_deref(),
        Some("the turn \"a begins\"")
    );
    // A plan with conflicts cannot be applied.
    assert_eq!(plan.apply().unwrap_err().kind(), ErrorKind::Conflict);
    is_tree(lab.root(), &before, "refused");

    let options = Rewind::files().keep();
    let report = done(lab.workspace.rewind(&point(&a, 0), options).unwrap());
    assert!(
        report
            .kept
            .iter()
            .all(|kept| kept.reason == KeptReason::Conflict)
    );
    assert_eq!(report.kept.len(), 4);
    assert_eq!(report.deleted(), [std::path::PathBuf::from("of-a")]);
    assert!(!lab.has("of-a"));
    assert_eq!(lab.read("shared"), "by b");
    assert_eq!(lab.read("unsaved"), "by the person");
    let undone = done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert_eq!(undone.verb, Verb::Undo);
    is_tree(lab.root(), &before, "undone");

    let options = Rewind::files().overwrite();
    done(lab.workspace.rewind(&point(&a, 0), options).unwrap());
    assert_eq!(lab.read("shared"), "at first");
    assert!(!lab.has("unsaved"));
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    is_tree(lab.root(), &before, "undone");
    lab.verify();
}

#[test]
fn f31_undo_of_a_session_takes_its_own_last_step() {
    let lab = Lab::new(2);
    let (a, b) = (lab.session(), lab.session());
    turn(&a, "first of a", || lab.write("a1", "1"));
    turn(&b, "of b", || lab.write("b1", "1"));
    let ids = [Some(a.id()), Some(b.id()), None];
    let newest = |session: Option<&SessionId>| -> Option<Step> {
        let steps = match session {
            Some(session) => lab.workspace.steps_of(session),
            None => lab.workspace.steps(),
        };
        steps.unwrap().to_undo.into_iter().next()
    };
    let abouts = ids.map(|id| match newest(id).unwrap().kind {
        StepKind::Turn { about } => about.unwrap(),
        other => panic!("{other:?}"),
    });
    assert_eq!(abouts, ["first of a", "of b", "of b"]);
    done(
        lab.workspace
            .undo(Rewind::files().session(a.id()))
            .unwrap()
            .unwrap(),
    );
    assert!(!lab.has("a1") && lab.has("b1"));
    let nothing = lab.workspace.undo(Rewind::files().session(a.id())).unwrap();
    assert!(nothing.is_none());
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert!(!lab.has("b1"));
    done(
        lab.workspace
            .redo(Rewind::files().session(a.id()))
            .unwrap()
            .unwrap(),
    );
    assert!(lab.has("a1") && !lab.has("b1"));
    lab.verify();
}

/// The steps that a rewind of one session had undone stand among those of
/// others where they stood before.
#[test]
fn f31_undo_after_the_undo_of_a_rewind_takes_the_last_step_of_all() {
    let lab = Lab::new(3);
    let (a, b) = (lab.session(), lab.session());
    turn(&a, "first of a", || lab.write("a1", "1"));
    turn(&b, "of b", || lab.write("b1", "1"));
    let options = Rewind::files().keep();
    done(lab.workspace.rewind(&point(&a, 0), options).unwrap());
    let undo = || done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    undo();
    assert!(lab.has("a1") && lab.has("b1"));
    undo();
    assert!(lab.has("a1") && !lab.has("b1"), "that of b is the newest");
    undo();
    assert!(!lab.has("a1"));
}

#[test]
fn f31_the_work_of_sub_agents_is_undone_with_their_parents() {
    let lab = Lab::new(4);
    let parent = lab.session();
    let turn_of_parent = parent.begin_turn(Message::user_text("delegate")).unwrap();
    let call = ToolUse::new("t1", "agent", "{}").unwrap();
    turn_of_parent
        .append(Message::assistant([Block::from(call)]))
        .unwrap();
    turn_of_parent.begin_tool("t1").map(drop).unwrap();
    let child = turn_of_parent.spawn("t1", SessionOptions::new()).unwrap();
    turn(&child, "the sub-agent works", || {
        lab.write("by-the-child", "1")
    });
    let tool = turn_of_parent.begin_tool("t1").unwrap();
    tool.finish(backtrail::ToolResult::ok("done")).unwrap();
    turn_of_parent.end().unwrap();
    // Also what it does when the parent's turn is over.
    turn(&child, "the sub-agent works on", || lab.write("later", "1"));
    let stranger = lab.session();
    turn(&stranger, "somebody else", || lab.write("other", "1"));

    let attempt = lab.workspace.rewind(&point(&parent, 0), Rewind::files());
    assert_eq!(
        stopped(attempt.unwrap()),
        [std::path::PathBuf::from("other")]
    );
    let options = Rewind::files().keep();
    done(lab.workspace.rewind(&point(&parent, 0), options).unwrap());
    assert!(!lab.has("by-the-child") && !lab.has("later") && lab.has("other"));
    // A sub-agent's own point does not undo what its parent did, or may have
    // done: they worked at the same time.
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    turn(&parent, "the parent again", || {
        lab.write("of-the-parent", "1")
    });
    let attempt = lab.workspace.rewind(&point(&child, 0), Rewind::files());
    let paths = stopped(attempt.unwrap());
    let expected = ["by-the-child", "of-the-parent", "other"];
    assert_eq!(paths, expected.map(Into::<std::path::PathBuf>::into));
    lab.verify();
}

#[test]
fn f31_a_fork_undoes_what_it_inherited_and_not_what_the_other_did_later() {
    let lab = Lab::new(5);
    let first = lab.session();
    turn(&first, "common past", || lab.write("common", "1"));
    let fork = first.fork(&ForkOptions::new()).unwrap();
    turn(&first, "the first goes on", || {
        lab.write("of-the-first", "1")
    });
    turn(&fork, "the fork goes on", || lab.write("of-the-fork", "1"));
    let attempt = lab.workspace.rewind(&point(&fork, 0), Rewind::files());
    assert_eq!(
        stopped(attempt.unwrap()),
        [std::path::PathBuf::from("of-the-first")]
    );
    let options = Rewind::files().keep();
    done(lab.workspace.rewind(&point(&fork, 0), options).unwrap());
    assert!(!lab.has("common") && !lab.has("of-the-fork") && lab.has("of-the-first"));
    lab.verify();
}

#[test]
fn f31_a_move_in_one_clone_never_touches_the_other() {
    let lab = Lab::new(6);
    let clone = lab.dir.path().join("clone");
    for root in [lab.root(), &clone] {
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join(".git/config"), "[remote \"origin\"]\n\turl = x\n").unwrap();
        fs::write(root.join("file"), "at first").unwrap();
    }
    let other = lab.store.workspace(&clone).unwrap();
    other
        .checkpoint(backtrail::CheckpointOptions::new())
        .unwrap();
    let (here, there) = (lab.session(), {
        let options = SessionOptions::new().workspace(&other);
        lab.store.create_session(options).unwrap()
    });
    turn(&here, "here", || lab.write("file", "here"));
    turn(&there, "there", || {
        fs::write(clone.join("file"), "there").unwrap()
    });
    let before = crate::snapshots::tree::read_tree(&clone);
    done(
        lab.workspace
            .rewind(&point(&here, 0), Rewind::files())
            .unwrap(),
    );
    is_tree(&clone, &before, "the other");
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    is_tree(&clone, &before, "the other");
    assert_eq!(lab.read("file"), "here");
    // The newest step there is still its own.
    done(other.undo(Rewind::files()).unwrap().unwrap());
    assert_eq!(fs::read(clone.join("file")).unwrap(), b"at first");
    assert_eq!(lab.read("file"), "here");
    lab.verify();
}

#[test]
fn a_move_during_a_run_works_names_it_and_leaves_the_runs_end_right() {
    let lab = Lab::new(7);
    lab.write("file", "at first");
    let before = lab.keep();
    let start = run_start(&lab, None);
    let active = lab.workspace.activate(&start).unwrap();
    lab.write("file", "by the run");
    lab.write("made", "by the run");
    let options = Rewind::files();
    let report = done(lab.workspace.undo(options.clone()).unwrap().unwrap());
    let named: Vec<_> = report.active.iter().map(|one| one.checkpoint).collect();
    assert_eq!(named, [start.id()]);
    assert_eq!(lab.read("file"), "at first");
    assert!(!lab.has("made"));
    // The command continues, and does not know.
    lab.write("more", "by the run");
    drop(active);
    let ended = run_end(&lab, None, &start);
    let changes = ended.changes().unwrap();
    let changes: Vec<String> = changes
        .changes()
        .iter()
        .map(|one| one.to_string())
        .collect();
    assert_eq!(changes, ["new more"]);
    // What the run did after that is its own, and undo takes it.
    done(lab.workspace.undo(options.clone()).unwrap().unwrap());
    assert!(!lab.has("more"));
    let tree = lab.tree();
    done(
        lab.workspace
            .rewind(&Point::checkpoint(before.id()), options)
            .unwrap(),
    );
    is_tree(lab.root(), &tree, "all of it was taken back");
    lab.verify();
}

#[test]
fn f18_changes_by_the_user_during_a_turn_belong_to_the_turn() {
    let lab = Lab::new(8);
    lab.write("file", "at first");
    let session = lab.session();
    let under_way = begin(&session, "work");
    lab.write("file", "by the agent's shell command");
    lab.write("typed", "by the person meanwhile");
    end(under_way);
    let both = lab.tree();
    done(
        lab.workspace
            .rewind(&point(&session, 0), Rewind::files())
            .unwrap(),
    );
    assert_eq!(lab.read("file"), "at first");
    assert!(!lab.has("typed"));
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    is_tree(lab.root(), &both, "it came back");
}

#[test]
fn the_conversation_of_another_agent_stays_and_its_files_move() {
    let lab = Lab::new(9);
    let options = SessionOptions::new().workspace(&lab.workspace);
    let session = lab.store.create_session(options.belongs_to("other-agent"));
    let session = session.unwrap();
    session.append(Message::user_text("hello")).unwrap();
    turn(&session, "work", || lab.write("file", "1"));
    let stands = head(&lab.store, session.id());
    let both = Rewind::files_and_chat();
    let plan = lab
        .workspace
        .rewind_plan(&point(&session, 1), both.clone())
        .unwrap();
    assert_eq!(plan.outcome().belongs_to.as_deref(), Some("other-agent"));
    assert!(plan.outcome().chat.is_none());
    let report = plan.apply().unwrap();
    assert_eq!(report.belongs_to.as_deref(), Some("other-agent"));
    assert!(report.chat.is_none() && !lab.has("file"));
    assert_eq!(head(&lab.store, session.id()), stands);
    let refused = lab.workspace.rewind(&point(&session, 1), Rewind::chat());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    assert!(session.rewind_chat(1).is_err());
    done(lab.workspace.undo(both).unwrap().unwrap());
    assert!(lab.has("file"));
    assert_eq!(head(&lab.store, session.id()), stands);
    lab.verify();
}

/// An imported session is moved by its own agent. What that did to the conversation is not a step
/// here, although it came last.
#[test]
fn undo_passes_by_what_another_agent_did_to_its_own_conversation() {
    let lab = Lab::new(9);
    turn(&lab.session(), "work", || lab.write("file", "1"));
    let id: SessionId = "0123456789abcdef-imported".parse().unwrap();
    let options = SessionOptions::new().workspace(&lab.workspace);
    let options = ImportWriterOptions::new("other-agent", options);
    let mut writer = lab.store.begin_import(&id, options).unwrap();
    for key in ["1", "2", "3"] {
        let draft = Draft::from(Message::user_text(key));
        writer.message(&draft.id(key)).unwrap();
    }
    writer.back_to(1).unwrap();
    writer.close().unwrap();
    let stands = head(&lab.store, &id);
    let steps = lab.workspace.steps().unwrap();
    assert_eq!(steps.to_undo.len(), 1, "{steps:#?}");
    let own = Rewind::files_and_chat().session(&id);
    assert!(lab.workspace.undo(own).unwrap().is_none());
    done(
        lab.workspace
            .undo(Rewind::files_and_chat())
            .unwrap()
            .unwrap(),
    );
    assert!(!lab.has("file"));
    done(
        lab.workspace
            .redo(Rewind::files_and_chat())
            .unwrap()
            .unwrap(),
    );
    assert!(lab.has("file"));
    assert_eq!(head(&lab.store, &id), stands);
    lab.verify();
}

#[test]
fn a_session_that_another_process_writes_to_is_rewound_in_its_files_alone() {
    let lab = Lab::new(10);
    let session = lab.session();
    session.append(Message::user_text("hello")).unwrap();
    turn(&session, "work", || lab.write("file", "1"));
    let before = lab.tree();
    let both = Rewind::files_and_chat();
    let locked = lab.workspace.rewind(&point(&session, 1), both.clone());
    assert_eq!(locked.unwrap_err().kind(), ErrorKind::Locked);
    let locked = lab.workspace.undo(both.clone());
    assert_eq!(locked.unwrap_err().kind(), ErrorKind::Locked);
    is_tree(lab.root(), &before, "locked");
    done(
        lab.workspace
            .rewind(&point(&session, 1), Rewind::files())
            .unwrap(),
    );
    assert!(!lab.has("file"));
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    // Its writer moves both.
    let stands = head(&lab.store, session.id());
    let plan = session.rewind_plan(&point(&session, 1), both).unwrap();
    assert_eq!(
        plan.outcome()
            .chat
            .as_ref()
            .and_then(|chat| chat.prompt.as_deref()),
        Some("work")
    );
    plan.apply().unwrap();
    assert!(!lab.has("file"));
    assert_eq!(head(&lab.store, session.id()), 1);
    session.undo().unwrap().unwrap();
    assert!(lab.has("file"));
    assert_eq!(head(&lab.store, session.id()), stands);
    session.redo().unwrap().unwrap();
    assert_eq!(head(&lab.store, session.id()), 1);
    assert!(!lab.has("file"));
    lab.verify();
}

#[test]
fn a_plan_refuses_a_tree_or_a_conversation_that_moved() {
    let lab = Lab::new(11);
    let session = lab.session();
    session.append(Message::user_text("hello")).unwrap();
    turn(&session, "work", || lab.write("file", "1"));
    let both = || Rewind::files_and_chat();
    let plan = session.rewind_plan(&point(&session, 1), both()).unwrap();
    lab.write("file", "changed");
    let refused = plan.apply().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused:?}");
    assert_eq!(lab.read("file"), "changed");
    lab.write("file", "1");
    let plan = session.rewind_plan(&point(&session, 1), both()).unwrap();
    session.append(Message::user_text("and more")).unwrap();
    let refused = plan.apply().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused:?}");
    assert!(lab.has("file"));
    assert_eq!(head(&lab.store, session.id()), 5);
    // One that was made since goes through.
    let plan = session.rewind_plan(&point(&session, 1), both()).unwrap();
    plan.apply().unwrap();
    assert!(!lab.has("file"));
    lab.verify();
}

/// The same for a plan made by a process that is not writing to the session.
#[test]
fn a_plan_without_a_writer_refuses_a_conversation_that_moved() {
    let lab = Lab::new(12);
    let id = {
        let session = lab.session();
        session.append(Message::user_text("hello")).unwrap();
        turn(&session, "work", || lab.write("file", "1"));
        session.id().clone()
    };
    let to = Point::record(&id, 1);
    let both = Rewind::files_and_chat();
    let plan = lab.workspace.rewind_plan(&to, both.clone()).unwrap();
    let session = lab.store.open_session(&id).unwrap();
    session.append(Message::user_text("and more")).unwrap();
    drop(session);
    let refused = plan.apply();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(lab.has("file"));
    let report = lab
        .workspace
        .rewind_plan(&to, both)
        .unwrap()
        .apply()
        .unwrap();
    assert_eq!(report.chat.unwrap().prompt.as_deref(), Some("work"));
    assert_eq!(head(&lab.store, &id), 1);
}

#[test]
fn a_run_of_a_session_is_a_step_like_a_turn() {
    let lab = Lab::new(13);
    let session = lab.session();
    let ended = run(&lab, Some(&session), || lab.write("file", "1"));
    assert_eq!(*ended.reason(), CheckpointReason::RunEnd);
    let steps = lab.workspace.steps().unwrap();
    assert!(matches!(
        steps.to_undo[..],
        [Step {
            kind: StepKind::Run { .. },
            ..
        }]
    ));
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert!(!lab.has("file"));
    let steps = lab.workspace.steps().unwrap();
    assert_eq!((steps.to_undo.len(), steps.to_redo.len()), (0, 1));
}
