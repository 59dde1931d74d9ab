//! Two agents and the user in one directory, and moves to random points: the result
//! is exact, or nothing was touched, and nobody's bytes go without being asked for
//! (B7, F14, F15, F29, F31).
//!
//! The agents work in turns and in runs, some of them at the same time; the user
//! works in between, saved or not. What must be in conflict, and what may be, comes
//! from the model in `actors`; so does which step undo takes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use backtrail::rewind::{OnConflict, Stage};
use backtrail::{Outcome, Point, Rewind};

use super::actors::{Actor, Own, World, differing, is_dir};
use super::kit::{Checked, Stamps, setting, stamps, told, untouched, verify};
use crate::snapshots::tree::{Tree, same};

/// How many lives there are, and how much happens in each.
const LIVES: u64 = 400;
const ROUNDS: usize = 14;

#[test]
fn b7_f14_f15_f29_f31_rewinds_are_exact_or_touch_nothing_and_spare_the_work_of_others() {
    let first = setting("BACKTRAIL_TEST_SEED", 1);
    let lives = LIVES * setting("BACKTRAIL_TEST_LIVES", 1);
    let mut seen = Seen::default();
    for seed in first..first + lives {
        let mut life = Life::new(seed);
        if let Err(wrong) = life.live(&mut seen) {
            let log = life.world.log.join("\n  ");
            panic!("seed {seed}: {wrong}\n  {log}");
        }
    }
    eprintln!("{seen:?}");
    let enough = [
        seen.exact,
        seen.stopped,
        seen.kept,
        seen.undone,
        seen.redone,
    ];
    let least = lives / 4;
    assert!(enough.iter().all(|count| *count > least), "{seen:?}");
}

/// What was seen, so that a test that tests nothing is found out.
#[derive(Debug, Default)]
struct Seen {
    exact: u64,
    stopped: u64,
    kept: u64,
    undone: u64,
    redone: u64,
    restored: u64,
}

/// A step that undo may take.
#[derive(Debug, Clone)]
struct Step {
    before: usize,
    after: usize,
    /// Whose it is; nobody's where it is a move.
    by: Option<Actor>,
    /// The agent whose step it is, or whose work it undid.
    of: Option<Actor>,
    state: State,
    /// The steps that it undid as a rewind.
    covers: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Done,
    Undone,
    /// A rewind took it back with others.
    Covered(usize),
    /// It was undone, and something else came.
    Gone,
}

struct Life {
    world: World,
    steps: Vec<Step>,
    /// The steps that were undone, the last one last, each with the states before
    /// and after its undo.
    undone: Vec<(usize, usize, usize)>,
}

/// The directory at a moment.
struct Look {
    tree: Tree,
    stamps: Stamps,
}

/// What a move is judged by.
struct Judged<'a> {
    since: usize,
    own: &'a Own,
    /// The paths that would become something else.
    wanted: BTreeSet<PathBuf>,
    /// Those of them that nobody may touch.
    must: BTreeSet<PathBuf>,
    now: &'a Tree,
    then: &'a Tree,
}

impl Judged<'_> {
    /// Returns whether a directory comes or goes, and no more: it shows by what is
    /// in it.
    fn comes_or_goes(&self, path: &Path) -> bool {
        let one = self.now.contains_key(path) != self.then.contains_key(path);
        one && (is_dir(self.now, path) || is_dir(self.then, path))
    }
}

impl Life {
    fn new(seed: u64) -> Self {
        Self {
            world: World::new(seed),
            steps: Vec::new(),
            undone: Vec::new(),
        }
    }

    fn live(&mut self, seen: &mut Seen) -> Checked {
        for _ in 0..ROUNDS {
            match self.world.dice.below(20) {
                0..7 => self.work(),
                7 | 8 => self.world.act(Actor::Person),
                9 => self.world.save(None),
                10 => self.world.save(Some(Actor::A)),
                11..15 => self.rewind(seen)?,
                15 => self.restore(seen)?,
                16..19 => self.undo(seen)?,
                _ => self.redo(seen)?,
            }
        }
        verify(&self.world.lab.store)
    }

    fn work(&mut self) {
        for (actor, before, after) in self.world.work() {
            self.begin_step(before, after, Some(actor));
        }
    }

    fn begin_step(&mut self, before: usize, after: usize, by: Option<Actor>) {
        self.steps.push(Step {
            before,
            after,
            by,
            of: by,
            state: State::Done,
            covers: Vec::new(),
        });
        for (step, ..) in self.undone.drain(..) {
            self.steps[step].state = State::Gone;
        }
    }

    fn look(&self) -> Look {
        let tree = self.world.tree();
        Look {
            stamps: stamps(self.world.lab.root(), &tree),
            tree,
        }
    }

    /// Goes to a random point, in one of the three ways.
    fn rewind(&mut self, seen: &mut Seen) -> Checked {
        let (point, target, own) = self.world.point();
        let how = [OnConflict::Stop, OnConflict::Stop, OnConflict::Keep];
        let how = *self
            .world
            .dice
            .pick(&[&how[..], &[OnConflict::Overwrite]].concat());
        let options = Rewind::files().on_conflict(how);
        self.world
            .log
            .push(format!("rewind to {target} ({point}) {how:?}"));
        let before = self.look();
        let tree = self.world.kept[target].tree.clone();
        let wanted = differing(&before.tree, &tree);
        let judged = Judged {
            since: target,
            own: &own,
            must: self.world.written_by_others(target, &own, &wanted),
            wanted,
            now: &before.tree,
            then: &tree,
        };
        self.check_plan(&point, &options, &judged, &before)?;
        let attempt = self.world.lab.workspace.rewind(&point, options);
        let report = attempt.map_err(told)?;
        if report.stage == Stage::Stopped {
            seen.stopped += 1;
            return self.check_stopped(how, &report, &judged, &before);
        }
        if how == OnConflict::Stop && !judged.must.is_empty() {
            return Err(format!("{:?} were taken from others", judged.must));
        }
        if how == OnConflict::Keep {
            seen.kept += 1;
            self.check_kept(&report, &judged, &before.tree, &tree)?;
        } else {
            seen.exact += 1;
            same(&self.world.tree(), &tree)?;
            if !report.not_restored.is_empty() || !report.kept.is_empty() {
                return Err(format!("it is exact, and says otherwise: {report:#?}"));
            }
        }
        let is_one = own.len() == 1;
        let Some((from, now)) = self.moved(&report, &before)? else {
            return Ok(());
        };
        self.begin_step(from, now, None);
        self.cover(target, own.first().copied().filter(|_| is_one));
        self.there_and_back(seen)
    }

    /// Checks that a plan says what would be done, and touches nothing.
    fn check_plan(
        &self,
        point: &Point,
        options: &Rewind,
        judged: &Judged<'_>,
        before: &Look,
    ) -> Checked {
        let plan = self.world.lab.workspace.rewind_plan(point, options.clone());
        let plan = plan.map_err(told)?;
        self.check_conflicts(plan.outcome(), judged)?;
        self.nothing_happened(before)?;
        for change in &plan.outcome().changes {
            if !judged.wanted.contains(&change.path) {
                return Err(format!("{change:?} is planned, and is so already"));
            }
        }
        Ok(())
    }

    fn check_stopped(
        &self,
        how: OnConflict,
        outcome: &Outcome,
        judged: &Judged<'_>,
        before: &Look,
    ) -> Checked {
        if how != OnConflict::Stop {
            return Err(format!("{how:?} never stops"));
        }
        if outcome.conflicts.is_empty() {
            return Err("it stopped for nothing".to_owned());
        }
        self.check_conflicts(outcome, judged)?;
        self.nothing_happened(before)
    }

    /// Checks that all that others wrote last is named, and nothing that they never
    /// had in hand.
    fn check_conflicts(&self, outcome: &Outcome, judged: &Judged<'_>) -> Checked {
        let named: Vec<PathBuf> = outcome
            .conflicts
            .iter()
            .map(|one| one.path.clone())
            .collect();
        let is_named = |path: &Path| {
            let mut named = named.iter();
            named.any(|one| one == path || (judged.comes_or_goes(path) && one.starts_with(path)))
        };
        let cannot = |path: &Path| outcome.not_restored.iter().any(|one| one.path == path);
        // A directory stays for what is in it.
        let stays = |path: &Path| {
            let mut changes = outcome.changes.iter();
            is_dir(judged.now, path) && !changes.any(|change| change.path == path)
        };
        let is_told = |path: &PathBuf| is_named(path) || cannot(path) || stays(path);
        if let Some(path) = judged.must.iter().find(|path| !is_told(path)) {
            return Err(format!(
                "{path:?} is another's, and only {named:?} are told"
            ));
        }
        for path in &named {
            let known = judged.must.contains(path)
                || self.world.maybe_others(judged.since, judged.own, path);
            if !known || !judged.wanted.contains(path) {
                return Err(format!(
                    "{path:?} is nobody else's: {:#?} {:?}",
                    outcome.conflicts, outcome.step
                ));
            }
        }
        Ok(())
    }

    fn nothing_happened(&self, before: &Look) -> Checked {
        let now = self.look();
        same(&now.tree, &before.tree)?;
        match now.stamps == before.stamps {
            true => Ok(()),
            false => Err("something was touched".to_owned()),
        }
    }

    /// Checks that what is in conflict stayed, and all else is as it should be.
    fn check_kept(
        &self,
        report: &Outcome,
        judged: &Judged<'_>,
        before: &Tree,
        target: &Tree,
    ) -> Checked {
        let now = self.world.tree();
        let conflicts: BTreeSet<&Path> =
            report.conflicts.iter().map(|c| c.path.as_path()).collect();
        let cannot = report.not_restored.iter().map(|one| one.path.as_path());
        let named: BTreeSet<&Path> = cannot.chain(conflicts.iter().copied()).collect();
        for path in &judged.wanted {
            let [was, shall, is] = [before, target, &now].map(|tree| tree.get(path));
            let named_below = named.iter().any(|one| one.starts_with(path));
            let excused = named_below || path == Path::new(".");
            if is != shall && (is != was || !excused) {
                return Err(format!("{path:?} is {is:?}, not {shall:?} and not kept"));
            }
            // A directory comes back for what comes back in it.
            let comes_back = is_dir(target, path);
            if (conflicts.contains(&**path) || judged.must.contains(path))
                && is != was
                && !comes_back
            {
                return Err(format!("{path:?} was to be kept, and is {is:?}"));
            }
        }
        for one in &report.not_restored {
            let near = |other: &&&Path| other.starts_with(&one.path) || one.path.starts_with(other);
            if conflicts.iter().find(near).is_none() {
                return Err(format!("{one:?} stands in nobody's way"));
            }
        }
        let before_differs: BTreeSet<PathBuf> = differing(before, &now);
        match before_differs.is_subset(&judged.wanted) {
            true => Ok(()),
            false => Err("something else changed".to_owned()),
        }
    }

    /// Takes in that files were moved; `None` where nothing was to be done.
    fn moved(&mut self, report: &Outcome, before: &Look) -> Checked<Option<(usize, usize)>> {
        let after = self.look();
        untouched((&before.tree, &before.stamps), (&after.tree, &after.stamps))?;
        let (Some(from), Some(now)) = (report.from, report.now) else {
            same(&after.tree, &before.tree)?;
            return Ok(None);
        };
        let workspace = self.world.lab.workspace.clone();
        let by_id = |id| workspace.checkpoint_by_id(id).map_err(told);
        let from = by_id(from)?.ok_or("the state before it was not kept")?;
        let now = by_id(now)?.ok_or("the state after it was not kept")?;
        let last = self.world.kept.last().expect("one was kept");
        let from = match last.checkpoint.id() == from.id() {
            true => self.world.kept.len() - 1,
            false => {
                let tree = before.tree.clone();
                self.world.note_tree(from, tree, None)
            }
        };
        Ok(Some((from, self.world.note_moved(now, &before.tree))))
    }

    /// Notes that the last step, a rewind, undid what was done since a state.
    fn cover(&mut self, target: usize, of: Option<Actor>) {
        let by = self.steps.len() - 1;
        let mut covers = Vec::new();
        for (n, step) in self.steps[..by].iter_mut().enumerate() {
            let its = of.is_none() || step.of == of;
            if step.state == State::Done && its && step.before >= target {
                step.state = State::Covered(by);
                covers.push(n);
            }
        }
        self.steps[by].covers = covers;
        self.steps[by].of = of;
    }

    /// Undoes what was just done, redoes it, and undoes it again: each time everything is
    /// exactly as it was.
    fn there_and_back(&mut self, seen: &mut Seen) -> Checked {
        for _ in 0..self.world.dice.below(4) {
            let step = self.steps.last().expect("one was just done").clone();
            match step.state {
                State::Done => self.undo(seen)?,
                _ => self.redo(seen)?,
            }
            let step = self.steps.last().expect("one was just done");
            let shall = match step.state {
                State::Done => step.after,
                _ => step.before,
            };
            same(&self.world.tree(), &self.world.kept[shall].tree)
                .map_err(|wrong| format!("there and back: {wrong}"))?;
        }
        Ok(())
    }

    /// Takes some paths to a random point.
    fn restore(&mut self, seen: &mut Seen) -> Checked {
        let target = self.world.dice.below(self.world.kept.len());
        let then = self.world.kept[target].tree.clone();
        let before = self.look();
        let mut all: Vec<&PathBuf> = then.keys().chain(before.tree.keys()).collect();
        all.retain(|path| **path != Path::new("."));
        if all.is_empty() {
            return Ok(());
        }
        let path = (*self.world.dice.pick(&all)).clone();
        let id = self.world.kept[target].checkpoint.id();
        self.world
            .log
            .push(format!("restore {path:?} from {target}"));
        let options = Rewind::files().overwrite().paths([&path]);
        let workspace = self.world.lab.workspace.clone();
        let attempt = workspace.rewind(&Point::checkpoint(id), options);
        let report = attempt.map_err(told)?;
        if report.stage != Stage::Done {
            return Err("it was to overwrite".to_owned());
        }
        seen.restored += 1;
        let now = self.world.tree();
        let cannot = |path: &Path| report.not_restored.iter().any(|one| one.path == path);
        for at in before.tree.keys().chain(then.keys()) {
            let [was, shall, is] = [&before.tree, &then, &now].map(|tree| tree.get(at));
            let comes_for_it = path.starts_with(at) && is == shall;
            let right = match at.starts_with(&path) {
                true => is == shall || (is == was && cannot(at)),
                false => is == was || comes_for_it,
            };
            if !right {
                return Err(format!("{at:?} is {is:?}, was {was:?}, shall be {shall:?}"));
            }
        }
        let Some((from, now)) = self.moved(&report, &before)? else {
            return Ok(());
        };
        self.begin_step(from, now, None);
        self.there_and_back(seen)
    }

    /// Undoes the newest step, stopping at conflicts and then overwriting them.
    fn undo(&mut self, seen: &mut Seen) -> Checked {
        let changed = |step: &Step| {
            let [before, after] = [step.before, step.after].map(|n| &self.world.kept[n].tree);
            step.state == State::Done && before != after
        };
        let expected = self.steps.iter().rposition(changed);
        self.world.log.push(format!("undo {expected:?}"));
        let before = self.look();
        let workspace = self.world.lab.workspace.clone();
        let Some(expected) = expected else {
            return match workspace.undo(Rewind::files()).map_err(told)? {
                None => self.nothing_happened(&before),
                Some(done) => Err(format!("there was nothing to undo: {done:#?}")),
            };
        };
        let step = self.steps[expected].clone();
        let [old, new] = [step.before, step.after].map(|n| self.world.kept[n].tree.clone());
        let wanted = differing(&old, &new);
        let own: Own = step.by.into_iter().collect();
        let mut must: BTreeSet<PathBuf> = wanted.clone();
        must.retain(|path| {
            let now = before.tree.get(path);
            now != old.get(path) && now != new.get(path)
        });
        if step.by.is_some() {
            let wanted: BTreeSet<PathBuf> = &wanted & &differing(&before.tree, &old);
            must.extend(self.world.written_by_others(step.before, &own, &wanted));
        }
        let mut attempt = workspace.undo(Rewind::files()).map_err(told)?;
        if let Some(outcome) = attempt.as_ref().filter(|it| it.stage == Stage::Stopped) {
            let judged = Judged {
                since: step.before,
                own: &own,
                wanted: wanted.clone(),
                must,
                now: &before.tree,
                then: &old,
            };
            self.check_stopped(OnConflict::Stop, outcome, &judged, &before)?;
            seen.stopped += 1;
            let options = Rewind::files().overwrite();
            attempt = workspace.undo(options).map_err(told)?;
        } else {
            // What is in its own way is named, and stays.
            let now = self.world.tree();
            must.retain(|path| now.get(path) != before.tree.get(path));
            if !must.is_empty() {
                return Err(format!("{must:?} were taken from others by {step:?}"));
            }
        }
        let Some(report) = attempt.filter(|it| it.stage == Stage::Done) else {
            return Err("it was not undone".to_owned());
        };
        seen.undone += 1;
        self.check_taken(&report, &before.tree, &old, &wanted)?;
        let moved = self.moved(&report, &before)?;
        let (from, now) = moved.ok_or("an undo is always noted")?;
        self.steps[expected].state = State::Undone;
        for step in &mut self.steps {
            if step.state == State::Covered(expected) {
                step.state = State::Done;
            }
        }
        self.undone.push((expected, from, now));
        Ok(())
    }

    /// Checks that some paths became what they were, and no others changed.
    fn check_taken(
        &self,
        report: &Outcome,
        was: &Tree,
        then: &Tree,
        wanted: &BTreeSet<PathBuf>,
    ) -> Checked {
        let now = self.world.tree();
        let cannot = |path: &Path| report.not_restored.iter().any(|one| one.path == path);
        let paths: BTreeSet<&PathBuf> = was.keys().chain(then.keys()).chain(now.keys()).collect();
        for path in paths {
            let [was, shall, is] = [was, then, &now].map(|tree| tree.get(path));
            let holds = |path: &Path| {
                let mut all = now.keys();
                all.any(|one| one.starts_with(path) && one != path)
            };
            let stays = |path: &Path, comes: bool| match comes {
                true => cannot(path),
                false => holds(path),
            };
            let right = match wanted.contains(path) {
                // A directory stays for what is in it, and is named where something
                // else should have come.
                true => is == shall || (is == was && stays(path, shall.is_some())),
                // A directory comes back for what comes back in it.
                false => is == was || (is == shall && holds(path)),
            };
            if !right {
                return Err(format!(
                    "{path:?} is {is:?}, was {was:?}, shall be {shall:?}"
                ));
            }
        }
        Ok(())
    }

    /// Brings the last undo forward again.
    fn redo(&mut self, seen: &mut Seen) -> Checked {
        self.world
            .log
            .push(format!("redo {:?}", self.undone.last()));
        let before = self.look();
        let workspace = self.world.lab.workspace.clone();
        let mut attempt = workspace.redo(Rewind::files()).map_err(told)?;
        let Some((step, from, now)) = self.undone.pop() else {
            return match attempt {
                None => self.nothing_happened(&before),
                Some(done) => Err(format!("there was nothing to redo: {done:#?}")),
            };
        };
        let [old, new] = [from, now].map(|n| self.world.kept[n].tree.clone());
        let wanted = differing(&old, &new);
        if attempt
            .as_ref()
            .is_some_and(|it| it.stage == Stage::Stopped)
        {
            self.nothing_happened(&before)?;
            let meddled = wanted
                .iter()
                .any(|path| before.tree.get(path) != new.get(path));
            if !meddled {
                return Err("a redo stopped for nothing".to_owned());
            }
            let options = Rewind::files().overwrite();
            attempt = workspace.redo(options).map_err(told)?;
        }
        let Some(report) = attempt.filter(|it| it.stage == Stage::Done) else {
            return Err("it was not redone".to_owned());
        };
        seen.redone += 1;
        self.check_taken(&report, &before.tree, &old, &wanted)?;
        self.moved(&report, &before)?;
        self.steps[step].state = State::Done;
        // What a rewind had undone is undone again.
        for covered in self.steps[step].covers.clone() {
            self.steps[covered].state = State::Covered(step);
        }
        Ok(())
    }
}
