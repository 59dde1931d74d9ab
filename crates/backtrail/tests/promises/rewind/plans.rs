//! A plan is for one state of the files: it can be changed, and fails once they changed.

use backtrail::rewind::OnConflict;
use backtrail::{ErrorKind, Rewind};

use super::kit::{Lab, done, turn};

fn with_conflict() -> Lab {
    let lab = Lab::new(1);
    lab.write("a", "1\n2\n3\n4\n5\n");
    lab.write("b", "old\n");
    lab.keep();
    turn(&lab.session(), "change them", || {
        lab.write("a", "one\n2\n3\n4\n5\n");
        lab.write("b", "new\n");
    });
    lab.write("a", "one\n2\n3\n4\nfive\n");
    lab
}

#[test]
fn a_plan_that_conflicts_stop_can_be_made_to_treat_them_otherwise() {
    for (on_conflict, a) in [
        (OnConflict::Keep, "one\n2\n3\n4\nfive\n"),
        (OnConflict::Merge, "1\n2\n3\n4\nfive\n"),
        (OnConflict::Overwrite, "1\n2\n3\n4\n5\n"),
    ] {
        let lab = with_conflict();
        let plan = lab.workspace.undo_plan(Rewind::files_and_chat());
        let plan = plan.unwrap().unwrap();
        assert!(plan.is_stopped());
        let plan = plan.on_conflict(on_conflict).unwrap();
        assert!(!plan.is_stopped());
        done(plan.apply().unwrap());
        assert_eq!(
            (lab.read("a").as_str(), lab.read("b").as_str()),
            (a, "old\n")
        );
    }
}

#[test]
fn a_plan_is_not_changed_once_the_files_are_others() {
    let lab = with_conflict();
    let plan = lab.workspace.undo_plan(Rewind::files_and_chat());
    let plan = plan.unwrap().unwrap();
    lab.write("b", "mine\n");
    let error = plan.on_conflict(OnConflict::Overwrite).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(lab.read("b"), "mine\n");
}

#[test]
fn the_next_undo_and_the_log_name_a_step_alike() {
    let lab = with_conflict();
    let options = Rewind::files_and_chat();
    let next = lab.workspace.next_undo(&options).unwrap().unwrap();
    let planned = lab.workspace.undo_plan(options.clone()).unwrap().unwrap();
    assert_eq!(planned.outcome().step.as_ref(), Some(&next));
    let log = lab.workspace.log().unwrap();
    let is_it = |entry: &&backtrail::workspace::LogEntry| entry.step_id() == next.id;
    let turn = log.iter().find(is_it).unwrap();
    assert!(turn.is_step() && !turn.is_undone());

    let plan = planned.on_conflict(OnConflict::Overwrite).unwrap();
    done(plan.apply().unwrap());
    let log = lab.workspace.log().unwrap();
    assert!(log.iter().find(is_it).unwrap().is_undone());
    assert_eq!(lab.workspace.next_undo(&options).unwrap(), None);
    done(lab.workspace.redo(options.clone()).unwrap().unwrap());
    let log = lab.workspace.log().unwrap();
    assert!(!log.iter().find(is_it).unwrap().is_undone());
    assert_eq!(
        lab.workspace.next_undo(&options).unwrap().unwrap().id,
        next.id
    );
}

#[test]
fn the_files_as_they_are_now_are_a_snapshot_that_is_not_stored() {
    let lab = with_conflict();
    let before = lab.workspace.checkpoints().unwrap().count();
    let present = lab.workspace.present().unwrap();
    let read = |path: &str| present.read(path).unwrap().unwrap();
    assert_eq!(read("a"), b"one\n2\n3\n4\nfive\n");
    assert_eq!(present.read("none").unwrap(), None);
    assert_eq!(lab.workspace.checkpoints().unwrap().count(), before);
}
