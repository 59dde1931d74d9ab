//! An agent and the user who change the same files over several turns, and merges to
//! random points: the user's lines are all there and the agent's all gone, or it
//! stopped with nothing touched.
//!
//! Two independent oracles check each result. In the first, every line carries its author
//! and those who removed it. The second does its own three-way merge, from the longest
//! common subsequence of lines, and must reach the same text or the same refusal.

use std::collections::BTreeMap;
use std::fs;

use backtrail::rewind::Stage;
use backtrail::{Message, Outcome, Point, Rewind, Session};

use super::actors::Dice;
use super::kit::{Checked, Lab, run_end, run_start, setting, told, verify};

const LIVES: u64 = 120;
const ROUNDS: usize = 12;
const NAMES: [&str; 4] = ["a", "b", "d/c", "d/e"];

#[test]
fn merges_keep_the_users_lines_and_undo_the_agents_or_touch_nothing() {
    let first = setting("BACKTRAIL_TEST_SEED", 1);
    let lives = LIVES * setting("BACKTRAIL_TEST_LIVES", 1);
    let mut seen = Seen::default();
    for seed in first..first + lives {
        let mut life = Life::new(seed);
        if let Err(wrong) = life.live(&mut seen) {
            let log = life.log.join("\n  ");
            panic!("seed {seed}: {wrong}\n  {log}");
        }
    }
    eprintln!("{seen:?}");
    let enough = [seen.merged, seen.stopped, seen.again, seen.undone];
    assert!(enough.iter().all(|n| *n > lives / 10), "{seen:?}");
}

/// What was seen, so that a test that tests nothing is found out.
#[derive(Debug, Default)]
struct Seen {
    /// Files in which both had lines.
    merged: u64,
    stopped: u64,
    /// Merges after an earlier one.
    again: u64,
    /// Steps that were undone around what the user did since.
    undone: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Agent,
    Person,
}

/// Every file as its text; `None` where there is none.
type Texts = BTreeMap<&'static str, Option<String>>;

/// A line: its author and all who removed it, each with the event in which that was seen.
#[derive(Debug, Clone)]
struct Line {
    name: &'static str,
    made: (Who, usize),
    gone: Vec<(Who, usize)>,
}

impl Line {
    /// Returns whether it should be there after a merge: it was at the point, or the
    /// person made it, and the user did not take it away. What was done before
    /// `settled` is as it was at the point.
    fn shall_be(&self, text: &str, settled: usize, was: &str) -> bool {
        let (who, n) = self.made;
        let made = match n <= settled {
            true => was.split_inclusive('\n').any(|line| line == text),
            false => who == Who::Person,
        };
        let is_gone = |(who, n): &(Who, usize)| *who == Who::Person && *n > settled;
        made && !self.gone.iter().any(is_gone)
    }
}

/// What happened between two states that were kept.
#[derive(Debug, Clone)]
struct Event {
    /// Nobody is Backtrail.
    who: Option<Who>,
    texts: Texts,
    /// The events that a merge undid: after the one, up to the other.
    took: Option<(usize, usize)>,
}

struct Life {
    lab: Lab,
    session: Session,
    dice: Dice,
    log: Vec<String>,
    /// The first is the beginning.
    events: Vec<Event>,
    /// Whether it goes to moments of the workspace, where the user never asks for a
    /// checkpoint; else to records of the session.
    is_workspaces: bool,
    /// The starts of runs, with the event that each comes after.
    points: Vec<(Point, usize)>,
    lines: BTreeMap<String, Line>,
    count: usize,
    merges: usize,
}

impl Life {
    fn new(seed: u64) -> Self {
        let lab = Lab::new(seed);
        let session = lab.session();
        session.append(Message::user_text("hello")).unwrap();
        let mut life = Self {
            lab,
            session,
            dice: Dice::new(seed),
            log: Vec::new(),
            events: Vec::new(),
            is_workspaces: seed.is_multiple_of(2),
            points: Vec::new(),
            lines: BTreeMap::new(),
            count: 0,
            merges: 0,
        };
        for name in &NAMES[..3] {
            let text = (0..14).map(|_| life.new_line(name, Who::Person, 0));
            let text: String = text.collect();
            life.lab.write(name, text);
        }
        life.lab.keep();
        let texts = life.texts();
        life.events.push(Event {
            who: None,
            texts,
            took: None,
        });
        life
    }

    fn live(&mut self, seen: &mut Seen) -> Checked {
        for _ in 0..ROUNDS {
            match self.dice.below(8) {
                0..3 => self.run(),
                3 | 4 => self.person(),
                5 if !self.is_workspaces => {
                    self.lab.keep();
                    self.take_in(Some(Who::Person));
                }
                6 => {
                    self.run();
                    self.person();
                    self.undo(seen)?;
                }
                7 => self.rewind(seen)?,
                _ => {}
            }
        }
        self.rewind(seen)?;
        verify(&self.lab.store)
    }

    fn texts(&self) -> Texts {
        let read = |name: &&'static str| (*name, fs::read_to_string(self.lab.path(name)).ok());
        NAMES.iter().map(read).collect()
    }

    fn new_line(&mut self, name: &'static str, by: Who, made: usize) -> String {
        self.count += 1;
        let line = format!("{by:?} {}\n", self.count);
        let known = Line {
            name,
            made: (by, made),
            gone: Vec::new(),
        };
        self.lines.insert(line.clone(), known);
        line
    }

    /// Notes what is there, where it is something new.
    fn take_in(&mut self, who: Option<Who>) {
        let texts = self.texts();
        if self.events.last().is_none_or(|last| last.texts != texts) {
            self.events.push(Event {
                who,
                texts,
                took: None,
            });
        }
    }

    fn run(&mut self) {
        self.session.append(Message::user_text("work")).unwrap();
        let start = run_start(&self.lab, Some(&self.session));
        self.take_in(Some(Who::Person));
        let point = match self.is_workspaces {
            true => Point::checkpoint(start.id()),
            false => Point::record(self.session.id(), self.session.last_seq()),
        };
        self.points.push((point, self.events.len() - 1));
        for _ in 0..1 + self.dice.below(3) {
            self.edit(Who::Agent);
        }
        run_end(&self.lab, Some(&self.session), &start);
        self.take_in(Some(Who::Agent));
    }

    fn person(&mut self) {
        for _ in 0..1 + self.dice.below(2) {
            self.edit(Who::Person);
        }
    }

    /// Adds some lines, or takes some away, or both; at times a whole file.
    fn edit(&mut self, who: Who) {
        // What is done now is seen with the next event.
        let now = self.events.len();
        let name = *self.dice.pick(&NAMES);
        let path = self.lab.path(name);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let mut lines: Vec<String> = text.split_inclusive('\n').map(ToOwned::to_owned).collect();
        let at = self.dice.below(lines.len() + 1);
        let mut out = self.dice.below(4).saturating_sub(1).min(lines.len() - at);
        let mut new = self.dice.below(3);
        if self.dice.below(12) == 0 {
            (out, new) = (lines.len(), 0);
        }
        let at = at.min(lines.len() - out);
        for line in lines.drain(at..at + out) {
            let line = self.lines.get_mut(&line).unwrap();
            line.gone.push((who, now));
        }
        for n in 0..new {
            let line = self.new_line(name, who, now);
            lines.insert(at + n, line);
        }
        self.log.push(format!("{who:?} {name}: {at} −{out} +{new}"));
        match lines.is_empty() {
            true => drop(fs::remove_file(&path)),
            false => self.lab.write(name, lines.concat()),
        }
    }

    /// Goes to the start of a random run, and keeps what the user did.
    fn rewind(&mut self, seen: &mut Seen) -> Checked {
        if self.points.is_empty() {
            return Ok(());
        }
        let (point, since) = self.dice.pick(&self.points).clone();
        let before = self.texts();
        let workspace = self.lab.workspace.clone();
        let options = Rewind::files().merge();
        let plan = workspace.rewind_plan(&point, options.clone());
        let is_stopped = plan.map_err(told)?.is_stopped();
        let attempt = workspace.rewind(&point, options);
        let took = (since, usize::MAX);
        self.log.push(format!("merge to {since}"));
        let attempt = attempt.map_err(told)?;
        if (attempt.stage == Stage::Stopped) != is_stopped {
            return Err("it was planned otherwise".to_owned());
        }
        self.check(attempt, before, took, &NAMES, seen)
    }

    /// Undoes the run that was just done, and keeps what the user did since.
    fn undo(&mut self, seen: &mut Seen) -> Checked {
        let (_, since) = self.points.last().unwrap().clone();
        let until = self.events.len() - 1;
        let [before, after] = [since, until].map(|n| &self.events[n].texts);
        let changed = NAMES.into_iter().filter(|name| before[name] != after[name]);
        let changed: Vec<&str> = changed.collect();
        if changed.is_empty() {
            return Ok(());
        }
        let now = self.texts();
        self.log.push(format!("undo {since}..{until}"));
        let options = Rewind::files().merge();
        let attempt = self.lab.workspace.undo(options).map_err(told)?;
        seen.undone += 1;
        let attempt = attempt.ok_or("there is something to undo")?;
        self.check(attempt, now, (since, until), &changed, seen)
    }

    fn check(
        &mut self,
        report: Outcome,
        before: Texts,
        took: (usize, usize),
        names: &[&'static str],
        seen: &mut Seen,
    ) -> Checked {
        let oracle = self.oracle(&before, took, names);
        if report.stage == Stage::Stopped {
            seen.stopped += 1;
            if self.texts() != before {
                return Err("something was touched".to_owned());
            }
            if oracle.is_some() {
                return Err(format!("it stopped for nothing: {:#?}", report.conflicts));
            }
            return Ok(());
        }
        let Some(expected) = oracle else {
            return Err("it was to stop".to_owned());
        };
        let now = self.texts();
        if now != expected {
            return Err(format!("it is {now:#?}, not {expected:#?}"));
        }
        seen.merged += report.merged().len() as u64;
        seen.again += u64::from(self.merges > 0 && !report.merged().is_empty());
        self.merges += usize::from(!report.merged().is_empty());
        self.check_lines(&before, took.0)?;
        if report.now.is_none() {
            return match before == now {
                true => Ok(()),
                false => Err("it was not noted".to_owned()),
            };
        }
        self.there_and_back(&before, &now)?;
        if before != self.events.last().unwrap().texts {
            self.events.push(Event {
                who: Some(Who::Person),
                texts: before,
                took: None,
            });
        }
        self.events.push(Event {
            who: None,
            texts: now,
            took: Some(took),
        });
        Ok(())
    }

    /// The first oracle: the author of each line, and those who removed it.
    fn check_lines(&self, before: &Texts, since: usize) -> Checked {
        let now = self.texts();
        for (text, line) in &self.lines {
            let was = self.events[since].texts[line.name].as_deref();
            let settled = self.settled(line.name, since, before);
            let shall = line.shall_be(text, settled, was.unwrap_or_default());
            let is = now[line.name].as_deref().unwrap_or_default();
            let count = is.split_inclusive('\n').filter(|one| one == text).count();
            if count != usize::from(shall) {
                return Err(format!("{text:?} is there {count} times: {line:?}"));
            }
        }
        // What was there and is, is in the same order.
        for (name, text) in &now {
            let [old, new] = [before[name].as_deref(), text.as_deref()].map(|text| {
                let text = text.unwrap_or_default();
                text.split_inclusive('\n').collect::<Vec<&str>>()
            });
            let old_left: Vec<&&str> = old.iter().filter(|line| new.contains(line)).collect();
            let new_left: Vec<&&str> = new.iter().filter(|line| old.contains(line)).collect();
            if old_left != new_left {
                return Err(format!("{name} is in another order"));
            }
        }
        Ok(())
    }

    /// Returns the last event in which somebody other than the agent restored a file to its
    /// state at the point.
    fn settled(&self, name: &str, since: usize, before: &Texts) -> usize {
        let was = &self.events[since].texts[name];
        let mut now = was;
        let mut settled = since;
        for (n, event) in self.events.iter().enumerate().skip(since + 1) {
            let text = &event.texts[name];
            if text == was && now != was && event.who != Some(Who::Agent) {
                settled = n;
            }
            now = text;
        }
        match before[name] == *was && now != was {
            true => self.events.len(),
            false => settled,
        }
    }

    /// Takes the merge back and brings it forward again, to the byte.
    fn there_and_back(&self, before: &Texts, now: &Texts) -> Checked {
        let workspace = &self.lab.workspace;
        let is_undo = self.log.last().is_some_and(|last| last.starts_with("undo"));
        for n in 0..2 {
            let attempt = match ((n == 0) != is_undo, is_undo) {
                (false, _) => workspace.redo(Rewind::files()),
                (true, false) => workspace.undo(Rewind::files()),
                (true, true) => workspace.undo(Rewind::files().merge()),
            };
            if attempt
                .map_err(told)?
                .is_none_or(|outcome| outcome.stage != Stage::Done)
            {
                return Err(format!("it cannot be undone, {n}"));
            }
            let expected = if n == 0 { before } else { now };
            if self.texts() != *expected {
                return Err(format!("there and back, {n}: {:#?}", self.texts()));
            }
        }
        Ok(())
    }

    /// The second oracle: what each file becomes; `None` if any of them stops the merge.
    fn oracle(
        &self,
        before: &Texts,
        took: (usize, usize),
        names: &[&'static str],
    ) -> Option<Texts> {
        let mut events = self.events.clone();
        if events.last().is_none_or(|last| last.texts != *before) {
            events.push(Event {
                who: Some(Who::Person),
                texts: before.clone(),
                took: None,
            });
        }
        let mut result = before.clone();
        for name in names {
            let text = oracle::merged(&events, name, took)?;
            result.insert(name, text);
        }
        Some(result)
    }
}

/// Three ways by lines, once more and as plainly as can be.
mod oracle {
    use super::{Event, Who};

    type Text = Option<String>;

    #[derive(Debug, Clone)]
    struct Link {
        before: Text,
        after: Text,
        /// All whose changes are in it; nobody's where Backtrail made it.
        who: Vec<Who>,
        n: usize,
        gone: bool,
        /// The event that a merge went to.
        to: Option<usize>,
    }

    /// Follows one file from a state on, and undoes what the agent did.
    pub(super) fn merged(
        events: &[Event],
        name: &str,
        (since, until): (usize, usize),
    ) -> Option<Text> {
        let base = &events[since].texts[name];
        let mut now = base.clone();
        let mut chain: Vec<Link> = Vec::new();
        let mut known: Vec<(usize, Text, Vec<Link>)> = Vec::new();
        for (n, event) in events.iter().enumerate().skip(since + 1) {
            let text = event.texts[name].clone();
            if text == now {
                continue;
            }
            let then = known.iter().rev().find(|(_, known, _)| *known == text);
            match then.filter(|_| event.who.is_none()) {
                // What the agent restored to that may have been the user's.
                _ if text == *base && event.who != Some(Who::Agent) => chain.clear(),
                Some((.., then)) => chain = then.clone(),
                None => {
                    let to = event.took.map(|(to, _)| to);
                    let behind = to.is_some_and(|to| to < since);
                    let mut who: Vec<Who> = event.who.into_iter().collect();
                    if let Some((to, until)) = event.took.filter(|_| !behind) {
                        who = came(&known, &chain, to);
                        let taken = |link: &Link| who.is_empty() && to < link.n && link.n <= until;
                        for link in chain.iter_mut().filter(|link| taken(link)) {
                            link.gone |= link.is_all(Who::Agent) || link.is_behind(to);
                        }
                    }
                    chain.push(Link {
                        before: now,
                        after: text.clone(),
                        who,
                        n,
                        gone: false,
                        to,
                    });
                }
            }
            known.push((n, text.clone(), chain.clone()));
            now = text;
        }
        let counts = |link: &Link| !link.gone && link.n <= until;
        let is_own =
            |link: &Link| counts(link) && (link.is_behind(since) || link.is_all(Who::Agent));
        while let Some(mut last) = chain.pop() {
            if !is_own(&last) {
                if counts(&last) && last.who.contains(&Who::Agent) {
                    // Of both at once.
                    return None;
                }
                continue;
            }
            while let Some(link) = chain.pop_if(|link| is_own(link)) {
                last.before = link.before;
            }
            now = three_ways(&last.after, &now, &last.before)?;
        }
        Some(now)
    }

    impl Link {
        fn is_behind(&self, since: usize) -> bool {
            self.who.is_empty() && self.to.is_some_and(|to| to < since)
        }

        fn is_all(&self, who: Who) -> bool {
            !self.who.is_empty() && self.who.iter().all(|one| *one == who)
        }
    }

    /// Returns whose changes were in a state and are not now.
    fn came(known: &[(usize, Text, Vec<Link>)], chain: &[Link], to: usize) -> Vec<Who> {
        let then = known.iter().rev().find(|(n, ..)| *n <= to);
        let then = then.map_or(&[][..], |(.., chain)| chain);
        let is_in = |link: &&Link| chain.iter().any(|one| one.n == link.n && !one.gone);
        let back = then.iter().filter(|link| !link.gone && !is_in(link));
        back.flat_map(|link| link.who.clone()).collect()
    }

    fn three_ways(base: &Text, ours: &Text, theirs: &Text) -> Option<Text> {
        match (base, ours, theirs) {
            _ if ours == theirs || base == theirs => Some(ours.clone()),
            _ if base == ours => Some(theirs.clone()),
            (Some(base), Some(ours), Some(theirs)) => diff3(base, ours, theirs).map(Some),
            _ => None,
        }
    }

    /// Cuts the texts at the lines that all three have, and takes from between them
    /// what one side changed.
    fn diff3(base: &str, ours: &str, theirs: &str) -> Option<String> {
        let [base, ours, theirs] =
            [base, ours, theirs].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
        let [in_ours, in_theirs] = [&ours, &theirs].map(|side| common(&base, side));
        let mut cuts = vec![];
        for (n, (a, b)) in in_ours.iter().zip(&in_theirs).enumerate() {
            cuts.extend(a.zip(*b).map(|(a, b)| [n, a, b]));
        }
        cuts.push([base.len(), ours.len(), theirs.len()]);
        let mut merged = String::new();
        let mut at = [0; 3];
        for cut in cuts {
            let (b, o, t) = (
                &base[at[0]..cut[0]],
                &ours[at[1]..cut[1]],
                &theirs[at[2]..cut[2]],
            );
            merged += &match () {
                () if o == t || t == b => o.concat(),
                () if o == b => t.concat(),
                () => return None,
            };
            merged += base.get(cut[0]).copied().unwrap_or("");
            at = cut.map(|n| n + 1);
        }
        Some(merged)
    }

    /// Returns where each line of a text is in another, by the longest common
    /// subsequence.
    fn common(a: &[&str], b: &[&str]) -> Vec<Option<usize>> {
        let mut longest = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                longest[i][j] = match a[i] == b[j] {
                    true => longest[i + 1][j + 1] + 1,
                    false => longest[i + 1][j].max(longest[i][j + 1]),
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        let mut places = vec![None; a.len()];
        while i < a.len() && j < b.len() {
            if a[i] == b[j] {
                places[i] = Some(j);
                (i, j) = (i + 1, j + 1);
            } else if longest[i + 1][j] >= longest[i][j + 1] {
                i += 1;
            } else {
                j += 1;
            }
        }
        places
    }
}
