//! One meaning of a step: undo, `last~N`, the list of steps and the log count the same. A
//! run that changed nothing is no step and does not end redo; a turn of words alone is.

use backtrail::workspace::{CheckpointReason, LogKind};
use backtrail::{
    CheckpointId, CheckpointOptions, Message, Point, Rewind, RewindPlan, Session, Step, StepKind,
};

use super::actors::Dice;
use super::kit::{Checked, Lab, done, run, run_end, run_start, setting, told, turn, verify};
use crate::snapshots::tree::{Tree, same};

const LIVES: u64 = 60;
const ROUNDS: usize = 16;

/// A turn or run that counts.
#[derive(Debug, Clone)]
struct Known {
    start: CheckpointId,
    before: (Tree, u64),
    after: (Tree, u64),
}

/// A workspace, and the steps as they should be.
struct Life {
    lab: Lab,
    session: Session,
    dice: Dice,
    done: Vec<Known>,
    undone: Vec<Known>,
    /// How many turns and runs counted, undone or not.
    all: usize,
    log: Vec<String>,
}

#[test]
fn undo_last_n_the_steps_and_the_log_count_the_same() {
    let first = setting("BACKTRAIL_TEST_SEED", 1);
    let lives = LIVES * setting("BACKTRAIL_TEST_LIVES", 1);
    for seed in first..first + lives {
        let mut life = Life::new(seed);
        if let Err(wrong) = life.live() {
            panic!("seed {seed}: {wrong}\n  {}", life.log.join("\n  "));
        }
    }
}

impl Life {
    fn new(seed: u64) -> Self {
        let lab = Lab::new(seed);
        lab.write("first", "1");
        lab.keep();
        let session = lab.session();
        Self {
            lab,
            session,
            dice: Dice::new(seed),
            done: Vec::new(),
            undone: Vec::new(),
            all: 0,
            log: Vec::new(),
        }
    }

    fn live(&mut self) -> Checked {
        for _ in 0..ROUNDS {
            let what = self.dice.below(9);
            self.log.push(what.to_string());
            match what {
                0 => self.acts(|life| drop(turn(&life.session, "work", || life.write()))),
                1 => self.acts(|life| drop(turn(&life.session, "words", || {}))),
                2 => self.acts(|life| drop(run(&life.lab, Some(&life.session), || life.write()))),
                3 => self.acts(|life| drop(run(&life.lab, None, || life.write()))),
                4 => self.acts(Self::run_that_speaks),
                5 | 6 => self.idles(),
                7 => self.undo()?,
                _ => self.redo()?,
            }
            self.check()?;
        }
        verify(&self.lab.store)
    }

    fn now(&self) -> (Tree, u64) {
        (self.lab.tree(), self.session.last_seq())
    }

    fn write(&self) {
        self.lab.write("file", self.all.to_string());
    }

    /// A run in which messages are recorded, and no file changes.
    fn run_that_speaks(&self) {
        let message = Message::user_text("said in a run");
        run(&self.lab, Some(&self.session), || {
            self.session.append(message).map(drop).unwrap();
        });
    }

    /// Something that counts.
    fn acts(&mut self, act: impl Fn(&Self)) {
        let before = self.now();
        let log = self.lab.workspace.log().unwrap().len();
        act(self);
        let made = self.lab.workspace.log().unwrap().remove(log);
        let start = made.before().unwrap().id();
        self.all += 1;
        self.undone.clear();
        let after = self.now();
        self.done.push(Known {
            start,
            before,
            after,
        });
    }

    /// Runs that change nothing: one that leaves all alone, one that puts back what it
    /// did, and one that a checkpoint is made in.
    fn idles(&mut self) {
        let session = self.session.clone();
        let session = [None, Some(&session)][self.dice.below(2)];
        let start = run_start(&self.lab, session);
        match self.dice.below(3) {
            0 => {}
            1 => {
                self.lab.write("for a moment", "1");
                std::fs::remove_file(self.lab.path("for a moment")).unwrap();
            }
            _ => drop(self.lab.workspace.checkpoint(CheckpointOptions::new())),
        }
        run_end(&self.lab, session, &start);
    }

    fn undo(&mut self) -> Checked {
        let workspace = &self.lab.workspace;
        let plan = workspace
            .undo_plan(Rewind::files_and_chat())
            .map_err(told)?;
        let undone = self.apply(plan, |session, options| session.undo_plan(options))?;
        let Some(step) = self.done.pop() else {
            return match undone {
                false => Ok(()),
                true => Err("there was nothing to undo".to_owned()),
            };
        };
        self.is_at(&step.before, "undone")?;
        self.undone.push(step);
        Ok(())
    }

    fn redo(&mut self) -> Checked {
        let workspace = &self.lab.workspace;
        let plan = workspace
            .redo_plan(Rewind::files_and_chat())
            .map_err(told)?;
        let redone = self.apply(plan, |session, options| session.redo_plan(options))?;
        let Some(step) = self.undone.pop() else {
            return match redone {
                false => Ok(()),
                true => Err("there was nothing to redo".to_owned()),
            };
        };
        self.is_at(&step.after, "redone")?;
        self.done.push(step);
        Ok(())
    }

    /// Does what the workspace plans. The session's own handle moves its conversation.
    fn apply(
        &self,
        plan: Option<RewindPlan>,
        by_session: impl Fn(&Session, Rewind) -> backtrail::Result<Option<RewindPlan>>,
    ) -> Checked<bool> {
        let Some(plan) = plan else {
            return Ok(false);
        };
        let plan = match plan.outcome().session.as_ref() == Some(self.session.id()) {
            true => {
                let plan = by_session(&self.session, Rewind::files_and_chat());
                plan.map_err(told)?.ok_or("the session has none")?
            }
            false => plan,
        };
        plan.apply().map(|_| true).map_err(told)
    }

    fn is_at(&self, (tree, seq): &(Tree, u64), when: &str) -> Checked {
        same(&self.lab.tree(), tree).map_err(|wrong| format!("{when}: {wrong}"))?;
        let last = self.session.last_seq();
        match last == *seq {
            true => Ok(()),
            false => Err(format!("{when}: at record {last}, not {seq}")),
        }
    }

    /// Checks that all count the same.
    fn check(&self) -> Checked {
        let workspace = &self.lab.workspace;
        let is_counted =
            |step: &&Step| matches!(step.kind, StepKind::Turn { .. } | StepKind::Run { .. });
        let steps = workspace.steps().map_err(told)?;
        let to_undo = steps.to_undo.iter().filter(is_counted).count();
        if to_undo != self.done.len() || steps.to_undo.len() != to_undo {
            return Err(format!("{} done: {:#?}", self.done.len(), steps.to_undo));
        }
        if steps.to_redo.len() != self.undone.len() {
            return Err(format!(
                "{} undone: {:#?}",
                self.undone.len(),
                steps.to_redo
            ));
        }
        let log = workspace.log().map_err(told)?;
        let counted = log.iter().filter(|entry| {
            entry.is_step() && matches!(entry.kind(), LogKind::Turn | LogKind::Run)
        });
        if counted.count() != self.all {
            return Err(format!("{} in all: {log:#?}", self.all));
        }
        // Those that were undone last still count, until another one comes.
        let all: Vec<&Known> = self.done.iter().chain(self.undone.iter().rev()).collect();
        for (n, step) in (1..).zip(all.iter().rev()) {
            let found = workspace.resolve(&Point::turns_back(n)).map_err(told)?;
            if found.id() != step.start {
                return Err(format!("last~{n} is {:?}", found.reason()));
            }
        }
        match workspace.resolve(&Point::turns_back(all.len() as u64 + 1)) {
            Err(_) => Ok(()),
            Ok(found) => Err(format!("last~{} is {:?}", all.len() + 1, found.reason())),
        }
    }
}

/// What was undone can be redone after runs that changed nothing, and not after others.
#[test]
fn a_run_that_changes_nothing_does_not_end_redo() {
    let lab = Lab::new(1);
    run(&lab, None, || lab.write("file", "1"));
    let redo = || lab.workspace.redo(Rewind::files()).unwrap();
    for _ in 0..2 {
        done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
        for _ in 0..3 {
            run(&lab, None, || {});
        }
        done(redo().unwrap());
        assert_eq!(lab.read("file"), "1");
    }
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    run(&lab, None, || lab.write("other", "1"));
    assert!(redo().is_none());
}

/// A run that was undone while it ran had changed something, and can be redone.
#[test]
fn a_run_that_was_undone_while_it_ran_can_be_redone() {
    let lab = Lab::new(2);
    let start = run_start(&lab, None);
    let active = lab.workspace.activate(&start).unwrap();
    lab.write("file", "1");
    done(lab.workspace.undo(Rewind::files()).unwrap().unwrap());
    drop(active);
    let ended = run_end(&lab, None, &start);
    assert_eq!(*ended.reason(), CheckpointReason::RunEnd);
    done(lab.workspace.redo(Rewind::files()).unwrap().unwrap());
    assert_eq!(lab.read("file"), "1");
}

/// A turn of words alone is undone and redone with its workspace, and counts.
#[test]
fn a_turn_of_words_alone_is_a_step() {
    let lab = Lab::new(3);
    let session = lab.session();
    turn(&session, "work", || lab.write("file", "1"));
    turn(&session, "words", || {});
    assert_eq!(session.last_seq(), 6);
    let undone = session.undo().unwrap().unwrap();
    assert!(matches!(undone.step.unwrap().kind, StepKind::Turn { .. }));
    assert_eq!((session.last_seq(), lab.read("file").as_str()), (3, "1"));
    turn(&session, "more", || lab.write("file", "2"));
    let before = lab.workspace.resolve(&Point::turns_back(2)).unwrap();
    assert!(before.about().unwrap().to_string().contains("work"));
    lab.verify();
}
