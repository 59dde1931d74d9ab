//! Random lives of two agents and a user in one workspace, compared with a plain model: the
//! values of a few files, and what each turn and each call did to them.
//!
//! F33: a turn or call is undone exactly where nobody changed its files since; otherwise nothing
//! is touched, and each file that stops it is named. `BACKTRAIL_TEST_LIVES` multiplies the lives,
//! `BACKTRAIL_TEST_SEED` says where seeds begin.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use backtrail::rewind::Stage;
use backtrail::workspace::{AgentPlace, AgentTurn};
use backtrail::{CheckpointOptions, Outcome, Rewind};

use crate::rewind::kit::setting;
use crate::snapshots::desk::Desk;
use crate::snapshots::world::Dice;

/// The files: two of each agent, and two of all.
const FILES: [&str; 6] = ["one-a", "one-b", "two-a", "two-b", "all-a", "all-b"];
/// How many operations a life has.
const OPERATIONS: usize = 24;

/// The files that changed, each from one value to another.
type Changes = BTreeMap<&'static str, (u64, u64)>;

/// What an agent did in a turn.
#[derive(Debug, Clone, Default)]
struct Work {
    /// Its calls in order, and whether each is undone.
    calls: Vec<(Changes, bool)>,
}

impl Work {
    /// Returns what is left of it.
    fn left(&self) -> Changes {
        let mut all = Changes::new();
        for (call, undone) in &self.calls {
            for (file, (from, to)) in call {
                let known = all.entry(file).or_insert((*from, *from));
                known.1 = if *undone { known.1 } else { *to };
            }
        }
        all.retain(|_, (from, to)| from != to);
        all
    }

    fn is_step(&self) -> bool {
        let mut all = Changes::new();
        for (file, (from, to)) in self.calls.iter().flat_map(|(call, _)| call) {
            all.entry(file).or_insert((*from, *to)).1 = *to;
        }
        all.values().any(|(from, to)| from != to)
    }
}

/// A step that was undone.
#[derive(Debug, Clone)]
enum Undone {
    Turn(Work, Changes),
    /// A call of a turn that is done, by both positions.
    Call(usize, usize, Changes),
}

/// The model.
#[derive(Debug, Default)]
struct Model {
    values: BTreeMap<&'static str, u64>,
    done: Vec<Work>,
    undone: Vec<Undone>,
    next: u64,
}

/// What a move comes to: the files that stop it, or nothing to do.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Nothing,
    Stopped(BTreeSet<String>),
    Done,
}

impl Model {
    fn value(&self, file: &str) -> u64 {
        self.values.get(file).copied().unwrap_or_default()
    }

    /// Takes changes back, unless others came on top. Returns what changed.
    fn reverse(&mut self, changes: &Changes) -> Result<Changes, BTreeSet<String>> {
        let stops = |(file, (from, to)): &(&&'static str, &(u64, u64))| {
            let now = self.value(file);
            now != *from && now != *to
        };
        let stopping: BTreeSet<String> = changes
            .iter()
            .filter(stops)
            .map(|(file, _)| (*file).to_owned())
            .collect();
        if !stopping.is_empty() {
            return Err(stopping);
        }
        let mut did = Changes::new();
        for (file, (from, to)) in changes {
            if self.value(file) == *to {
                self.values.insert(file, *from);
                did.insert(file, (*to, *from));
            }
        }
        Ok(did)
    }

    fn undo(&mut self) -> Expected {
        let Some(work) = self.done.last().cloned() else {
            return Expected::Nothing;
        };
        match self.reverse(&work.left()) {
            Err(stopping) => Expected::Stopped(stopping),
            Ok(did) => {
                self.done.pop();
                self.undone.push(Undone::Turn(work, did));
                Expected::Done
            }
        }
    }

    fn undo_call(&mut self) -> Expected {
        let turns = self.done.iter().enumerate().rev();
        let mut calls = turns.flat_map(|(turn, work)| {
            let calls = work.calls.iter().enumerate().rev();
            let calls = calls.filter(|(_, (call, undone))| !undone && !call.is_empty());
            calls.map(move |(n, (call, _))| (turn, n, call.clone()))
        });
        let Some((turn, n, call)) = calls.next() else {
            return Expected::Nothing;
        };
        drop(calls);
        match self.reverse(&call) {
            Err(stopping) => Expected::Stopped(stopping),
            Ok(did) => {
                self.done[turn].calls[n].1 = true;
                self.undone.push(Undone::Call(turn, n, did));
                Expected::Done
            }
        }
    }

    fn redo(&mut self) -> Expected {
        let Some(undone) = self.undone.last().cloned() else {
            return Expected::Nothing;
        };
        let (Undone::Turn(_, did) | Undone::Call(_, _, did)) = &undone;
        match self.reverse(did) {
            Err(stopping) => Expected::Stopped(stopping),
            Ok(_) => {
                self.undone.pop();
                match undone {
                    Undone::Turn(work, _) => self.done.push(work),
                    Undone::Call(turn, n, _) => self.done[turn].calls[n].1 = false,
                }
                Expected::Done
            }
        }
    }
}

/// A life: the workspace, and the model of it.
struct Life {
    desk: Desk,
    dice: Dice,
    model: Model,
    script: Vec<String>,
    calls: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let desk = Desk::new();
        let mut model = Model::default();
        for file in FILES {
            desk.write(file, "0");
            model.values.insert(file, 0);
        }
        desk.keep();
        Self {
            desk,
            dice: Dice::new(seed),
            model,
            script: Vec::new(),
            calls: 0,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.dice.below(12) {
            0..=2 => self.turn(),
            3 => self.overlapping(),
            4 => self.interrupted(),
            5 | 6 => self.edit(),
            7 | 8 => self.undo()?,
            9 => self.undo_call()?,
            _ => self.redo()?,
        }
        self.compare()
    }

    fn write(&mut self, file: &'static str) -> (u64, u64) {
        self.model.next += 1;
        let (before, now) = (self.model.value(file), self.model.next);
        self.desk.write(file, now.to_string());
        self.model.values.insert(file, now);
        (before, now)
    }

    /// A change of the user between turns.
    fn edit(&mut self) {
        let file = FILES[self.dice.below(FILES.len())];
        self.write(file);
        self.script.push(format!("edit {file}"));
        if self.dice.below(3) == 0 {
            self.desk.keep();
            self.script.push("checkpoint".to_owned());
        }
    }

    fn place(agent: usize) -> AgentPlace {
        AgentPlace::new("toy", format!("toy-session-number-{agent}"))
    }

    fn begin(&mut self, agent: usize) -> AgentTurn {
        let options = CheckpointOptions::new().agent_prompt(format!("prompt {}", self.calls));
        let workspace = &self.desk.workspace;
        let turn = workspace.begin_agent_turn(&Self::place(agent), options, None);
        turn.unwrap()
    }

    /// A call that changes one or two files, or none.
    fn call(&mut self, turn: &AgentTurn, agent: usize, files: &[&'static str]) -> Changes {
        self.calls += 1;
        let place = Self::place(agent).call(format!("call-{}", self.calls));
        turn.begin_tool(&place, CheckpointOptions::new()).unwrap();
        let mut changes = Changes::new();
        for _ in 0..self.dice.below(3) {
            let file = files[self.dice.below(files.len())];
            let (from, to) = self.write(file);
            changes.entry(file).or_insert((from, to)).1 = to;
        }
        turn.end_tool(&place, CheckpointOptions::new()).unwrap();
        self.script.push(format!("agent {agent} call: {changes:?}"));
        changes
    }

    fn end(&mut self, turn: AgentTurn, agent: usize) {
        turn.end(&Self::place(agent), CheckpointOptions::new())
            .unwrap();
    }

    fn add(&mut self, work: Work) {
        if work.is_step() {
            self.model.done.push(work);
            self.model.undone.clear();
        }
    }

    fn turn(&mut self) {
        let agent = self.dice.below(2);
        self.script.push(format!("agent {agent} begins"));
        let turn = self.begin(agent);
        let mut work = Work::default();
        for _ in 0..=self.dice.below(3) {
            work.calls.push((self.call(&turn, agent, &FILES), false));
        }
        self.end(turn, agent);
        self.add(work);
    }

    /// Two turns at once, each with calls on files of its own.
    fn overlapping(&mut self) {
        self.script.push("both begin".to_owned());
        let turns = [self.begin(0), self.begin(1)];
        let mut works = [Work::default(), Work::default()];
        for _ in 0..=self.dice.below(4) {
            let agent = self.dice.below(2);
            let files = &FILES[agent * 2..agent * 2 + 2];
            let call = self.call(&turns[agent], agent, files);
            works[agent].calls.push((call, false));
        }
        let [one, two] = turns;
        self.end(one, 0);
        self.end(two, 1);
        for work in works {
            self.add(work);
        }
    }

    /// A turn without an end, which the next prompt shows to be over.
    fn interrupted(&mut self) {
        let agent = self.dice.below(2);
        self.script
            .push(format!("agent {agent} begins, and is interrupted"));
        let turn = self.begin(agent);
        let call = self.call(&turn, agent, &FILES);
        let work = Work {
            calls: vec![(call, false)],
        };
        let next = self.begin(agent);
        self.add(work);
        self.end(next, agent);
    }

    fn undo(&mut self) -> Result<(), String> {
        let expected = self.model.undo();
        self.script.push(format!("undo: {expected:?}"));
        let outcome = self.desk.workspace.undo(Rewind::files_and_chat());
        check(expected, outcome.map_err(|error| error.to_string())?)
    }

    fn undo_call(&mut self) -> Result<(), String> {
        let expected = self.model.undo_call();
        self.script.push(format!("undo --tool: {expected:?}"));
        let outcome = self.desk.workspace.undo(Rewind::files().last_call());
        check(expected, outcome.map_err(|error| error.to_string())?)
    }

    fn redo(&mut self) -> Result<(), String> {
        let expected = self.model.redo();
        self.script.push(format!("redo: {expected:?}"));
        let outcome = self.desk.workspace.redo(Rewind::files_and_chat());
        check(expected, outcome.map_err(|error| error.to_string())?)
    }

    fn compare(&self) -> Result<(), String> {
        for file in FILES {
            let now = fs::read_to_string(self.desk.path(file)).unwrap_or_default();
            let expected = self.model.value(file).to_string();
            if now != expected {
                return Err(format!("{file} has {now}, not {expected}"));
            }
        }
        Ok(())
    }
}

fn check(expected: Expected, outcome: Option<Outcome>) -> Result<(), String> {
    let found = match &outcome {
        None => Expected::Nothing,
        Some(outcome) if outcome.stage == Stage::Stopped => {
            let paths = outcome.stopping().map(|it| it.path.display().to_string());
            Expected::Stopped(paths.collect())
        }
        Some(_) => Expected::Done,
    };
    match found == expected {
        true => Ok(()),
        false => Err(format!(
            "{found:?} where {expected:?} is right: {outcome:#?}"
        )),
    }
}

/// F33.
#[test]
fn f33_random_lives_of_agents_are_undone_and_redone_as_a_plain_model_says() {
    let first = setting("BACKTRAIL_TEST_SEED", 0);
    for seed in first..first + 20 * setting("BACKTRAIL_TEST_LIVES", 1) {
        let mut life = Life::new(seed);
        let lived = (0..OPERATIONS).try_for_each(|_| life.step());
        if let Err(wrong) = lived {
            panic!("seed {seed}: {wrong}\n  {}", life.script.join("\n  "));
        }
    }
}
