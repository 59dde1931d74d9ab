//! What is undone goes, what others did to the same files stays; or nothing is
//! touched.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use backtrail::rewind::{Conflict, Merge, PathOutcomeKind, Stage};
use backtrail::{CheckpointId, Outcome, Point, Rewind, Session};

use super::kit::{Lab, begin, done, end, stopped, turn};

const FIRST: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

/// A workspace in which the agent and the user both change `a`.
struct Desk {
    lab: Lab,
    session: Session,
    first: CheckpointId,
}

impl Desk {
    fn new(first: &str) -> Self {
        let lab = Lab::new(7);
        lab.write("a", first);
        lab.write("b", "untouched\n");
        let session = lab.session();
        session
            .append(backtrail::Message::user_text("hello"))
            .unwrap();
        let first = lab.keep().id();
        Self {
            lab,
            session,
            first,
        }
    }

    /// The agent replaces a text in a file.
    fn agent(&self, name: &str, old: &str, new: &str) {
        turn(&self.session, "work", || self.edit(name, old, new));
    }

    fn edit(&self, name: &str, old: &str, new: &str) {
        let text = self.lab.read(name);
        assert!(text.contains(old), "{text:?} has no {old:?}");
        self.lab.write(name, text.replacen(old, new, 1));
    }

    fn start(&self) -> Point {
        Point::record(self.session.id(), 1)
    }

    fn rewind(&self, options: Rewind) -> Outcome {
        let workspace = &self.lab.workspace;
        let plan = workspace.rewind_plan(&self.start(), options.clone());
        let plan = plan.unwrap();
        let outcome = workspace.rewind(&self.start(), options).unwrap();
        // The plan says what is done.
        let planned = plan.outcome();
        match outcome.stage {
            Stage::Done => {
                assert!(!plan.is_stopped(), "{:?}", planned.conflicts);
                assert_eq!(planned.kept, outcome.kept);
                assert_eq!(planned.merged(), outcome.merged(), "{outcome:#?}");
            }
            _ => {
                assert!(plan.is_stopped());
                let merges = |outcome: &Outcome| {
                    let merges = outcome.conflicts.iter().map(|one| one.merge.clone());
                    merges.collect::<Vec<_>>()
                };
                assert_eq!(merges(planned), merges(&outcome));
            }
        }
        outcome
    }

    fn merge(&self) -> Outcome {
        done(self.rewind(Rewind::files().merge()))
    }

    /// Merges, which must stop at `name` with nothing touched, and returns why.
    fn stops_at(&self, name: &str) -> Conflict {
        let before = self.lab.tree();
        let outcome = self.rewind(Rewind::files().merge());
        assert_eq!(outcome.stage, Stage::Stopped, "{outcome:#?}");
        assert!(self.lab.tree() == before, "something was touched");
        let stops: Vec<&Conflict> = outcome.stopping().collect();
        assert_eq!(stops.len(), 1, "{stops:#?}");
        assert_eq!(stops[0].path, Path::new(name));
        stops[0].clone()
    }
}

fn why(conflict: &Conflict) -> &str {
    match &conflict.merge {
        Some(Merge::Stopped(unmerged)) => &unmerged.reason,
        merge => panic!("{merge:?}"),
    }
}

fn chmod(desk: &Desk, name: &str, mode: u32) {
    fs::set_permissions(desk.lab.path(name), Permissions::from_mode(mode)).unwrap();
}

fn mode(desk: &Desk, name: &str) -> u32 {
    let meta = fs::metadata(desk.lab.path(name)).unwrap();
    meta.permissions().mode() & 0o777
}

#[test]
fn the_agents_lines_are_undone_and_the_users_stay() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "two\n", "agent\n");
    desk.edit("a", "six\n", "person\n");
    assert_eq!(
        stopped(desk.rewind(Rewind::files())),
        [Path::new("a").to_owned()]
    );
    let before = desk.lab.tree();
    let report = desk.merge();
    assert_eq!(desk.lab.read("a"), FIRST.replace("six", "person"));
    let merged = &report.merged()[0];
    assert_eq!(merged.path, Path::new("a"));
    let lines = PathOutcomeKind::Merge {
        removed: 1,
        returned: 1,
    };
    assert_eq!(merged.kind, lines);
    assert!(report.restored().is_empty() && report.kept.is_empty());
    assert_eq!(report.conflicts[0].merge, Some(Merge::Merged));
    // Taken back, it is exactly what it was.
    done(desk.lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    assert!(desk.lab.tree() == before);
    done(desk.lab.workspace.redo(Rewind::files()).unwrap().unwrap());
    assert_eq!(desk.lab.read("a"), FIRST.replace("six", "person"));
    desk.lab.verify();
}

#[test]
fn several_turns_are_undone_between_the_users_changes() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "one\n", "agent 1\none\n");
    desk.edit("a", "four\n", "person 1\n");
    desk.lab.keep();
    desk.agent("a", "person 1\n", "agent over person\n");
    desk.agent("a", "seven\n", "agent 3\n");
    desk.edit("a", "two\n", "");
    desk.merge();
    assert_eq!(
        desk.lab.read("a"),
        "one\nthree\nperson 1\nfive\nsix\nseven\n"
    );
}

#[test]
fn without_a_conflict_a_merge_is_a_plain_rewind() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "two\n", "agent\n");
    desk.agent("b", "untouched\n", "agent\n");
    let report = desk.merge();
    assert!(report.conflicts.is_empty() && report.merged().is_empty());
    assert_eq!(desk.lab.read("a"), FIRST);
    assert_eq!(desk.lab.read("b"), "untouched\n");
}

#[test]
fn changes_by_the_user_alone_are_kept_and_the_rest_is_undone() {
    let desk = Desk::new(FIRST);
    desk.agent("b", "untouched\n", "agent\n");
    desk.edit("a", "one\n", "person\n");
    desk.lab.write("new/of/person", "mine\n");
    desk.lab.keep();
    let report = desk.merge();
    assert_eq!(desk.lab.read("a"), FIRST.replace("one", "person"));
    assert_eq!(desk.lab.read("new/of/person"), "mine\n");
    assert_eq!(desk.lab.read("b"), "untouched\n");
    assert_eq!(report.kept.len(), 2, "{report:#?}");
}

#[test]
fn lines_that_overlap_or_touch_stop_it_and_are_shown() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "two\n", "agent\n");
    desk.edit("a", "agent\n", "person over agent\n");
    let conflict = desk.stops_at("a");
    let [overlap] = conflict.overlaps() else {
        panic!("{conflict:#?}");
    };
    assert_eq!(overlap.line, 2);
    assert_eq!(overlap.now, b"person over agent\n");
    assert_eq!(overlap.left, b"agent\n");
    assert_eq!(overlap.was, b"two\n");
    assert_eq!(overlap.by.as_deref(), Some("the turn \"work\""));

    let desk = Desk::new(FIRST);
    desk.agent("a", "two\n", "agent\n");
    desk.edit("a", "three\n", "beside it\n");
    desk.stops_at("a");
    let desk = Desk::new(FIRST);
    desk.agent("a", "two\n", "agent\n");
    desk.edit("a", "four\n", "not beside it\n");
    desk.merge();
}

/// One file that cannot be merged stops all of them.
#[test]
fn one_file_that_cannot_be_merged_stops_all() {
    let desk = Desk::new(FIRST);
    turn(&desk.session, "work", || {
        desk.edit("a", "two\n", "agent\n");
        desk.edit("b", "untouched\n", "agent\n");
    });
    desk.edit("a", "six\n", "person\n");
    desk.edit("b", "agent\n", "person\n");
    desk.stops_at("b");
}

#[test]
fn the_same_line_by_the_user_is_no_conflict() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "two\n", "");
    // The user restores it by hand, and changes another line too.
    desk.edit("a", "one\n", "one\ntwo\n");
    desk.edit("a", "six\n", "person\n");
    let report = desk.merge();
    assert_eq!(desk.lab.read("a"), FIRST.replace("six", "person"));
    assert_eq!(report.conflicts[0].merge, Some(Merge::Kept));
}

#[test]
fn modes_are_merged_on_their_own() {
    let desk = Desk::new(FIRST);
    chmod(&desk, "a", 0o644);
    desk.lab.keep();
    turn(&desk.session, "work", || {
        chmod(&desk, "a", 0o755);
        desk.edit("a", "one\n", "agent\n");
    });
    desk.edit("a", "six\n", "person\n");
    let attempt = desk.lab.workspace.undo(Rewind::files().merge());
    done(attempt.unwrap().unwrap());
    assert_eq!(mode(&desk, "a"), 0o644);
    assert_eq!(desk.lab.read("a"), FIRST.replace("six", "person"));
    // The mode alone by the agent, the content by the user.
    desk.lab.keep();
    turn(&desk.session, "more", || chmod(&desk, "a", 0o700));
    desk.edit("a", "one\n", "person 2\n");
    let attempt = desk.lab.workspace.undo(Rewind::files().merge());
    let report = done(attempt.unwrap().unwrap());
    assert_eq!(report.restored(), [Path::new("a")]);
    assert_eq!(mode(&desk, "a"), 0o644);
    assert!(desk.lab.read("a").starts_with("person 2\n"));
    // The other way round: nothing of the user's is lost.
    desk.lab.keep();
    turn(&desk.session, "more", || desk.edit("a", "two\n", "agent\n"));
    chmod(&desk, "a", 0o600);
    let attempt = desk.lab.workspace.undo(Rewind::files().merge());
    done(attempt.unwrap().unwrap());
    assert_eq!(mode(&desk, "a"), 0o600);
    assert!(desk.lab.read("a").contains("two\n"));
    // Both.
    desk.lab.keep();
    turn(&desk.session, "more", || chmod(&desk, "a", 0o755));
    chmod(&desk, "a", 0o711);
    let attempt = desk.lab.workspace.undo(Rewind::files().merge());
    assert_eq!(stopped(attempt.unwrap().unwrap()), [Path::new("a")]);
    assert_eq!(mode(&desk, "a"), 0o711);
}

#[test]
fn created_deleted_and_binary_files_are_conflicts_with_a_reason() {
    // The agent made it, and there are lines of the user's in it.
    let desk = Desk::new(FIRST);
    turn(&desk.session, "work", || desk.lab.write("new", "agent\n"));
    desk.edit("new", "agent\n", "agent\nperson\n");
    assert!(why(&desk.stops_at("new")).contains("created, then you changed it"));
    // The agent deletes it, and the user creates it again.
    let desk = Desk::new(FIRST);
    turn(&desk.session, "work", || {
        fs::remove_file(desk.lab.path("a")).unwrap();
    });
    desk.lab.write("a", "person\n");
    assert!(why(&desk.stops_at("a")).contains("deleted, then you created it again"));
    // The agent changed it, and the user deleted it.
    let desk = Desk::new(FIRST);
    desk.agent("a", "two\n", "agent\n");
    fs::remove_file(desk.lab.path("a")).unwrap();
    assert!(why(&desk.stops_at("a")).contains("then you deleted it"));
    // Not text.
    let desk = Desk::new("one\0\ntwo\nthree\nfour\n");
    desk.agent("a", "two\n", "agent\n");
    desk.edit("a", "four\n", "person\n");
    assert_eq!(why(&desk.stops_at("a")), "it is not text");
    // A link.
    let desk = Desk::new(FIRST);
    symlink("a", desk.lab.path("link")).unwrap();
    desk.lab.keep();
    let link = |target: &str| {
        fs::remove_file(desk.lab.path("link")).unwrap();
        symlink(target, desk.lab.path("link")).unwrap();
    };
    turn(&desk.session, "work", || link("agent"));
    link("person");
    let attempt = desk.lab.workspace.undo(Rewind::files().merge());
    let outcome = attempt.unwrap().unwrap();
    assert_eq!(outcome.stage, Stage::Stopped, "links are not merged");
    assert!(why(&outcome.conflicts[0]).contains("link"));
}

/// What the agent did on top of what the user did is taken off it again.
#[test]
fn the_users_changes_before_the_agents_are_restored() {
    let desk = Desk::new(FIRST);
    desk.edit("a", "one\n", "person\n");
    fs::remove_file(desk.lab.path("b")).unwrap();
    desk.lab.write("c", "person\n");
    desk.lab.keep();
    let state = desk.lab.tree();
    turn(&desk.session, "work", || {
        desk.edit("a", "person\n", "agent\n");
        desk.lab.write("b", "agent\n");
        fs::remove_file(desk.lab.path("c")).unwrap();
    });
    let report = desk.merge();
    assert!(desk.lab.tree() == state, "{report:#?}");
    assert_eq!(report.deleted(), [Path::new("b")]);
}

/// Where two work at the same time nobody knows whose lines are whose.
#[test]
fn changes_by_two_sessions_at_the_same_time_are_a_conflict() {
    let desk = Desk::new(FIRST);
    let other = desk.lab.session();
    let turn = begin(&desk.session, "work");
    let others = begin(&other, "other work");
    desk.edit("a", "two\n", "either's\n");
    end(others);
    end(turn);
    let outcome = desk.rewind(Rewind::files());
    assert!(outcome.conflicts[0].overlapped && !outcome.can_merge);
    desk.edit("a", "six\n", "person\n");
    assert!(why(&desk.stops_at("a")).contains("overlapped"));
}

/// Another session's work is kept like the user's.
#[test]
fn changes_by_another_session_stay() {
    let desk = Desk::new(FIRST);
    let other = desk.lab.session();
    desk.agent("a", "two\n", "agent\n");
    turn(&other, "other work", || desk.edit("a", "six\n", "other\n"));
    desk.agent("a", "four\n", "agent\n");
    desk.merge();
    assert_eq!(desk.lab.read("a"), FIRST.replace("six", "other"));
}

/// Once merged, the user's lines are still the user's.
#[test]
fn after_a_merge_the_users_lines_stop_a_rewind_further_back() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "one\n", "agent 1\n");
    desk.edit("a", "four\n", "person 1\n");
    desk.agent("a", "seven\n", "agent 2\n");
    let workspace = &desk.lab.workspace;
    let attempt = workspace.rewind(&Point::turns_back(1), Rewind::files().merge());
    done(attempt.unwrap());
    desk.edit("a", "five\nsix\nseven\n", "five\nsix\nseven\nperson 2\n");
    let attempt = workspace.undo(Rewind::files());
    stopped(attempt.unwrap().unwrap());
    let before = desk.lab.tree();
    assert_eq!(
        stopped(desk.rewind(Rewind::files())),
        [Path::new("a").to_owned()]
    );
    assert!(desk.lab.tree() == before);
    desk.merge();
    let merged = "one\ntwo\nthree\nperson 1\nfive\nsix\nseven\nperson 2\n";
    assert_eq!(desk.lab.read("a"), merged);
    // Again: nothing is left to undo, and nothing goes.
    stopped(desk.rewind(Rewind::files()));
    let report = desk.merge();
    assert_eq!(report.conflicts[0].merge, Some(Merge::Kept));
    assert_eq!(desk.lab.read("a"), merged);
    // New work on top of it, beside what was undone before.
    desk.agent("a", "one\n", "one\nagent 3\n");
    desk.merge();
    assert_eq!(desk.lab.read("a"), merged);
    desk.lab.verify();
}

/// Two turns side by side were undone; that they once touched stops nothing.
#[test]
fn lines_that_a_merge_undid_are_no_conflict_later() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "one\n", "one\nagent 1\n");
    desk.edit("a", "six\n", "person\n");
    desk.agent("a", "agent 1\n", "agent 1\nagent 2\n");
    desk.merge();
    desk.edit("a", "one\n", "one\nperson, where it was\n");
    desk.agent("a", "seven\n", "agent 3\n");
    desk.merge();
    let expected = FIRST.replace("six", "person");
    let expected = expected.replace("one\n", "one\nperson, where it was\n");
    assert_eq!(desk.lab.read("a"), expected);
}

/// Undo of a merge, and of a rewind, can be merged as well, and redo.
#[test]
fn rewinds_are_undone_around_later_changes() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "one\n", "agent\n");
    done(desk.rewind(Rewind::files()));
    assert_eq!(desk.lab.read("a"), FIRST);
    desk.edit("a", "six\n", "person\n");
    let workspace = &desk.lab.workspace;
    let undo = |options: Rewind| workspace.undo(options).unwrap().unwrap();
    stopped(undo(Rewind::files()));
    done(undo(Rewind::files().merge()));
    let both = FIRST.replace("one", "agent").replace("six", "person");
    assert_eq!(desk.lab.read("a"), both);
    // The agent's line is the agent's again, and the user's the user's.
    stopped(desk.rewind(Rewind::files()));
    desk.merge();
    assert_eq!(desk.lab.read("a"), FIRST.replace("six", "person"));
    // Redo, around another edit.
    done(undo(Rewind::files()));
    assert_eq!(desk.lab.read("a"), both);
    desk.edit("a", "three\n", "person 2\n");
    let redo = workspace.redo(Rewind::files()).unwrap().unwrap();
    stopped(redo);
    let redo = workspace.redo(Rewind::files().merge());
    done(redo.unwrap().unwrap());
    let expected = FIRST.replace("six", "person").replace("three", "person 2");
    assert_eq!(desk.lab.read("a"), expected);
}

/// A rewind to a checkpoint of nobody's undoes all that was saved, and keeps what
/// was not.
#[test]
fn changes_without_a_checkpoint_are_kept_when_all_else_is_undone() {
    let desk = Desk::new(FIRST);
    desk.agent("a", "one\n", "agent\n");
    desk.edit("a", "three\n", "saved\n");
    desk.lab.keep();
    desk.edit("a", "six\n", "not saved\n");
    let workspace = &desk.lab.workspace;
    let attempt = workspace.rewind(&Point::checkpoint(desk.first), Rewind::files().merge());
    done(attempt.unwrap());
    assert_eq!(desk.lab.read("a"), FIRST.replace("six", "not saved"));
}

#[test]
fn a_turn_in_progress_can_be_merged_out() {
    let desk = Desk::new(FIRST);
    desk.edit("a", "six\n", "person\n");
    let turn = begin(&desk.session, "work");
    desk.edit("a", "two\n", "agent\n");
    let workspace = &desk.lab.workspace;
    let attempt = workspace.undo(Rewind::files().merge());
    done(attempt.unwrap().unwrap());
    assert_eq!(desk.lab.read("a"), FIRST.replace("six", "person"));
    end(turn);
}

/// The process that holds the session settles conflicts itself, in every way; others
/// cannot, since the conversation is theirs.
#[test]
fn the_process_that_holds_the_session_settles_conflicts() {
    let expected = FIRST.replace("six", "person");
    let ways: [(Rewind, String); 3] = [
        (
            Rewind::files_and_chat().keep(),
            FIRST.replace("two", "agent").replace("six", "person"),
        ),
        (Rewind::files_and_chat().merge(), expected),
        (Rewind::files_and_chat().overwrite(), FIRST.to_owned()),
    ];
    for (options, expected) in ways {
        let desk = Desk::new(FIRST);
        desk.agent("a", "two\n", "agent\n");
        desk.edit("a", "six\n", "person\n");
        let before = desk.lab.tree();
        let session = &desk.session;
        let last = session.last_seq();
        let kind = session.undo().unwrap_err().kind();
        assert_eq!(kind, backtrail::ErrorKind::Conflict);
        let both = Rewind::files_and_chat();
        let outcome = session.undo_with(both.clone()).unwrap().unwrap();
        assert!(
            outcome.can_merge && outcome.changes.is_empty(),
            "{outcome:#?}"
        );
        assert_eq!(stopped(outcome), [Path::new("a").to_owned()]);
        // Undo, redo and undo; then the same as a rewind.
        done(session.undo_with(options.clone()).unwrap().unwrap());
        assert_eq!(desk.lab.read("a"), expected);
        assert_eq!(session.last_seq(), 1);
        done(session.redo_with(options.clone()).unwrap().unwrap());
        assert!(desk.lab.tree() == before);
        assert_eq!(session.last_seq(), last);
        stopped(session.rewind_with(&desk.start(), both).unwrap());
        done(session.rewind_with(&desk.start(), options).unwrap());
        assert_eq!(desk.lab.read("a"), expected);
        assert_eq!(session.last_seq(), 1);
        desk.lab.verify();
    }
    // A conversation without files.
    let lab = Lab::new(8);
    let session = lab.store.create_session(backtrail::SessionOptions::new());
    let session = session.unwrap();
    session
        .append(backtrail::Message::user_text("one"))
        .unwrap();
    session
        .append(backtrail::Message::user_text("two"))
        .unwrap();
    session.rewind_chat(1).unwrap();
    let merge = || Rewind::files_and_chat().merge();
    assert!(session.undo_with(merge()).unwrap().is_some());
    assert_eq!(session.last_seq(), 2);
    assert!(session.redo_with(merge()).unwrap().is_some());
    assert!(session.redo_with(merge()).unwrap().is_none());
}

/// What stops a rewind is a conflict and no change, in the plan and in the answer, and a
/// merge is offered where it goes through.
#[test]
fn what_a_merge_would_come_to_is_known_before_it_is_asked_for() {
    type Case = (&'static str, fn(&Desk), bool);
    let cases: [Case; 4] = [
        ("apart", |desk| desk.edit("a", "six\n", "person\n"), true),
        (
            "overlapping",
            |desk| desk.edit("a", "agent\n", "person\n"),
            false,
        ),
        (
            "only the user's",
            |desk| desk.lab.write("b", "person\n"),
            false,
        ),
        (
            "one of each",
            |desk| {
                desk.edit("a", "six\n", "person\n");
                desk.lab.write("new", "person\n");
            },
            false,
        ),
    ];
    for (what, happens, can_merge) in cases {
        let desk = Desk::new(FIRST);
        turn(&desk.session, "work", || {
            desk.edit("a", "two\n", "agent\n");
            desk.lab.write("new", "agent\n");
        });
        happens(&desk);
        let workspace = &desk.lab.workspace;
        let plan = workspace
            .rewind_plan(&desk.start(), Rewind::files())
            .unwrap();
        assert_eq!(plan.outcome().can_merge, can_merge, "{what}");
        let outcome = workspace.rewind(&desk.start(), Rewind::files()).unwrap();
        assert_eq!(outcome.can_merge, can_merge, "{what}");
        for conflict in &outcome.conflicts {
            let mut changes = outcome.changes.iter();
            assert!(!changes.any(|one| one.path == conflict.path), "{what}");
        }
        let merge = Rewind::files().merge();
        let outcome = workspace.rewind(&desk.start(), merge).unwrap();
        let merges = outcome.stage == Stage::Done && !outcome.merged().is_empty();
        assert_eq!(merges, can_merge, "{what}");
    }
}
