//! Blame names the author of every line, whatever happened to the files.
//!
//! In random lives every line has a text of its own, so a simple reader knows its author: the
//! one who worked before the first checkpoint that has the text in any file. It reads all
//! checkpoints whole and compares no lines with others.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it at will"
)]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::time::Duration;

use backtrail::gc::GcOptions;
use backtrail::rewind::Stage;
use backtrail::snapshot::FileKind;
use backtrail::workspace::{LineAuthor, LineOrigin, OriginKind};
use backtrail::{
    Checkpoint, CheckpointId, CheckpointOptions, ErrorKind, Outcome, Point, Rewind, Session,
};

use crate::rewind::actors::Dice;
use crate::rewind::kit::{Checked, Lab, run_end, run_start, setting, told, turn};

const LIVES: u64 = 150;
const ROUNDS: usize = 14;

/// Who worked before a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Who {
    Before,
    You,
    /// A run of a session, by the session's number.
    Run(usize),
    /// A turn, by its prompt.
    Turn(String),
}

/// What was seen, so that a test that tests nothing is found out.
#[derive(Debug, Default)]
struct Seen {
    moves: u64,
    merges: u64,
    renames: u64,
    lines: u64,
    unsaved: u64,
}

struct Life {
    lab: Lab,
    sessions: Vec<Session>,
    dice: Dice,
    log: Vec<String>,
    /// Who worked before each checkpoint; nobody before those of moves.
    by: HashMap<CheckpointId, Who>,
    count: usize,
    names: usize,
}

#[test]
fn every_line_has_the_author_that_a_simple_reader_finds() {
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
    let enough = [seen.moves, seen.merges, seen.renames, seen.unsaved];
    assert!(enough.iter().all(|n| *n > lives / 10), "{seen:?}");
}

impl Life {
    fn new(seed: u64) -> Self {
        let lab = Lab::new(seed);
        let sessions = vec![lab.session(), lab.session()];
        let mut life = Self {
            lab,
            sessions,
            dice: Dice::new(seed),
            log: Vec::new(),
            by: HashMap::new(),
            count: 0,
            names: 0,
        };
        for _ in 0..2 {
            life.new_file();
        }
        life.lab.keep();
        life.note(&Who::Before);
        life
    }

    fn live(&mut self, seen: &mut Seen) -> Checked {
        for _ in 0..ROUNDS {
            match self.dice.below(11) {
                0..3 => self.run(seen),
                3 => self.turn(),
                4 | 5 => {
                    self.edit();
                    self.log.push("you edit".to_owned());
                }
                6 => {
                    self.lab.keep();
                    self.note(&Who::You);
                    self.rename(seen);
                    self.lab.keep();
                    self.note(&Who::You);
                }
                7 | 8 => {
                    self.run(seen);
                    self.edit();
                    let undone = self.lab.workspace.undo(Rewind::files().merge());
                    self.moved(undone, seen)?;
                }
                _ => self.go_back(seen)?,
            }
        }
        if self.dice.below(2) == 0 {
            self.lab.keep();
            self.note(&Who::You);
            self.rename(seen);
            self.edit();
        }
        self.check(None, seen)?;
        let all: Vec<Checkpoint> = self.checkpoints();
        for _ in 0..3 {
            let at = self.dice.below(all.len());
            self.check(Some(&all[at]), seen)?;
        }
        Ok(())
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        let all = self.lab.workspace.checkpoints().unwrap();
        all.map(Result::unwrap).collect()
    }

    /// Notes who worked before the checkpoints that are new.
    fn note(&mut self, who: &Who) {
        for checkpoint in self.checkpoints() {
            self.by
                .entry(checkpoint.id())
                .or_insert_with(|| who.clone());
        }
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.lab.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn new_line(&mut self) -> String {
        self.count += 1;
        format!("line {}\n", self.count)
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        format!("f{}", self.names)
    }

    fn new_file(&mut self) {
        let name = self.new_name();
        let lines: Vec<String> = (0..12).map(|_| self.new_line()).collect();
        self.lab.write(&name, lines.concat());
    }

    fn run(&mut self, seen: &mut Seen) {
        let who = self.dice.below(2);
        let start = run_start(&self.lab, Some(&self.sessions[who]));
        self.note(&Who::You);
        match self.dice.below(6) {
            0 => self.new_file(),
            1 => self.rename(seen),
            _ => self.edit(),
        }
        run_end(&self.lab, Some(&self.sessions[who]), &start);
        self.note(&Who::Run(who));
        self.log.push(format!("run {who}"));
    }

    fn turn(&mut self) {
        // What you did is saved first: a turn makes several checkpoints.
        self.lab.keep();
        self.note(&Who::You);
        let prompt = format!("prompt {}", self.count);
        let session = self.sessions.remove(0);
        turn(&session, &prompt, || self.edit());
        self.sessions.insert(0, session);
        self.log.push(format!("turn {prompt}"));
        self.note(&Who::Turn(prompt));
    }

    /// Adds and removes some lines of a file.
    fn edit(&mut self) {
        let files = self.files();
        if files.is_empty() {
            return self.new_file();
        }
        let name: String = self.dice.pick(&files).clone();
        let text = self.lab.read(&name);
        let mut lines: Vec<String> = text.split_inclusive('\n').map(ToOwned::to_owned).collect();
        if lines.len() > 8 {
            let at = self.dice.below(lines.len() - 2);
            lines.drain(at..at + self.dice.below(3));
        }
        let at = self.dice.below(lines.len() + 1);
        for _ in 0..1 + self.dice.below(2) {
            let line = self.new_line();
            lines.insert(at, line);
        }
        self.lab.write(&name, lines.concat());
    }

    /// Renames a file, and changes a line of it at times.
    fn rename(&mut self, seen: &mut Seen) {
        let files = self.files();
        if files.is_empty() {
            return;
        }
        let old: String = self.dice.pick(&files).clone();
        let new = self.new_name();
        fs::rename(self.lab.path(&old), self.lab.path(&new)).unwrap();
        if self.dice.below(2) == 0 {
            let text = self.lab.read(&new);
            let rest = text
                .split_once('\n')
                .map_or("", |(_, rest)| rest)
                .to_owned();
            let line = self.new_line();
            self.lab.write(&new, line + &rest);
        }
        seen.renames += 1;
        self.log.push(format!("rename {old} {new}"));
    }

    /// Undoes, redoes or goes to a checkpoint, at times with a merge.
    fn go_back(&mut self, seen: &mut Seen) -> Checked {
        let workspace = self.lab.workspace.clone();
        let options = match self.dice.below(3) {
            0 => Rewind::files().overwrite(),
            1 => Rewind::files().keep(),
            _ => Rewind::files().merge(),
        };
        let all = self.checkpoints();
        let outcome = match self.dice.below(4) {
            0 | 1 => workspace.undo(options),
            2 => workspace.redo(options),
            _ => {
                let point = Point::checkpoint(all[self.dice.below(all.len())].id());
                workspace.rewind(&point, options).map(Some)
            }
        };
        self.moved(outcome, seen)
    }

    fn moved(&mut self, outcome: backtrail::Result<Option<Outcome>>, seen: &mut Seen) -> Checked {
        let outcome = outcome.map_err(told)?;
        // What you did is saved first; the move itself brings no line that was never there.
        self.note(&Who::You);
        if let Some(outcome) = outcome.filter(|it| it.stage == Stage::Done) {
            seen.moves += 1;
            seen.merges += u64::from(!outcome.merged().is_empty());
            self.log.push(format!("{:?}", outcome.verb));
        }
        Ok(())
    }

    /// Returns the first checkpoint up to one that has each text.
    fn first_seen(&self, until: Option<&Checkpoint>) -> BTreeMap<String, CheckpointId> {
        let mut first = BTreeMap::new();
        for checkpoint in self.checkpoints() {
            let snapshot = checkpoint.snapshot().unwrap();
            for entry in snapshot.entries() {
                let (path, state) = entry.unwrap();
                if state.kind != FileKind::File {
                    continue;
                }
                let text = String::from_utf8(snapshot.read(&path).unwrap().unwrap()).unwrap();
                for line in text.lines() {
                    first.entry(line.to_owned()).or_insert(checkpoint.id());
                }
            }
            if until.is_some_and(|until| until.id() == checkpoint.id()) {
                break;
            }
        }
        first
    }

    /// Checks every line of every file.
    fn check(&self, at: Option<&Checkpoint>, seen: &mut Seen) -> Checked {
        let first = self.first_seen(at);
        let names = match at {
            None => self.files(),
            Some(at) => {
                let entries = at.snapshot().unwrap().entries();
                let path = |entry: backtrail::Result<(std::path::PathBuf, _)>| entry.unwrap().0;
                entries
                    .map(|it| path(it).to_str().unwrap().to_owned())
                    .collect()
            }
        };
        for name in names {
            let blame = self.lab.workspace.blame(&name, at).map_err(told)?;
            for line in &blame.lines {
                let text = String::from_utf8(line.text.clone()).unwrap();
                let expected = first.get(&text);
                let who = expected.map_or(&Who::You, |id| &self.by[id]);
                let origin = blame.origin_of(line);
                seen.lines += 1;
                seen.unsaved += u64::from(expected.is_none());
                if origin.checkpoint != expected.copied() || !self.is_by(origin, who) {
                    let at = at.map(Checkpoint::id);
                    return Err(format!(
                        "{name} at {at:?}, {text:?}: {origin:#?}, not {who:?} {expected:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn is_by(&self, origin: &LineOrigin, who: &Who) -> bool {
        match (who, origin.by.as_slice()) {
            (Who::Before, []) => origin.kind == OriginKind::Before,
            (Who::You, [LineAuthor::You]) => true,
            (Who::Run(n), [LineAuthor::Run { session, .. }]) => {
                session.as_ref() == Some(self.sessions[*n].id())
            }
            (Who::Turn(text), [LineAuthor::Turn { prompt, .. }]) => prompt.as_ref() == Some(text),
            _ => false,
        }
    }
}

/// Returns who wrote each line, in a word.
fn words(lab: &Lab, name: &str) -> Vec<&'static str> {
    let blame = lab.workspace.blame(name, None).unwrap();
    let word = |origin: &LineOrigin| match (origin.kind, origin.by.as_slice()) {
        (OriginKind::Before, _) => "before",
        (_, [LineAuthor::You]) => "you",
        (_, [LineAuthor::Run { .. }]) => "run",
        (_, [_, _]) => "either",
        _ => "other",
    };
    blame
        .lines
        .iter()
        .map(|line| word(blame.origin_of(line)))
        .collect()
}

#[test]
fn a_line_that_is_typed_again_is_new_and_one_that_is_restored_is_not() {
    let lab = Lab::new(1);
    let session = lab.session();
    lab.write("a", "one\ntwo\nthree\n");
    lab.keep();
    let start = run_start(&lab, Some(&session));
    lab.write("a", "one\nthree\n");
    run_end(&lab, Some(&session), &start);
    lab.write("a", "one\ntwo\nthree\n");
    assert_eq!(words(&lab, "a"), ["before", "you", "before"]);
    lab.write("a", "one\nthree\n");
    lab.workspace.undo(Rewind::files()).unwrap().unwrap();
    assert_eq!(lab.read("a"), "one\ntwo\nthree\n");
    assert_eq!(words(&lab, "a"), ["before"; 3]);
}

#[test]
fn lines_that_came_in_a_hole_of_the_history_may_be_of_anyone_there() {
    let lab = Lab::new(1);
    lab.write("a", "one\n");
    let first = CheckpointOptions::new().label("first");
    lab.workspace.checkpoint(first).unwrap();
    // It has the same files, so they are still known.
    let start = run_start(&lab, None);
    lab.write("a", "one\ntwo\n");
    run_end(&lab, None, &start);
    lab.write("a", "one\ntwo\nthree\n");
    let dropped = lab.keep();
    lab.write("a", "one\ntwo\nthree\nfour\n");
    let last = lab.keep();
    lab.write("a", "one\ntwo\nthree\nfour\nfive\n");
    assert_eq!(words(&lab, "a"), ["before", "run", "you", "you", "you"]);
    let all = GcOptions::new().older_than(Duration::ZERO);
    lab.store.gc(&all).unwrap();
    let error = lab.workspace.blame("a", Some(&dropped)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Dropped);
    let expected = ["before", "either", "either", "either", "you"];
    assert_eq!(words(&lab, "a"), expected);
    let blame = lab.workspace.blame("a", None).unwrap();
    let origin = |n: usize| blame.origin_of(&blame.lines[n]);
    assert_eq!(origin(1).since, Some(start.id()));
    assert_eq!(origin(1).checkpoint, Some(last.id()));
    assert_eq!(origin(4).since, None);
}

#[test]
fn line_ends_odd_bytes_and_empty_files_are_exact() {
    let lab = Lab::new(1);
    lab.write("a", b"one\r\ntwo\xff\nlast");
    lab.write("empty", "");
    lab.keep();
    lab.write("a", b"one\r\ntwo\xff\nlast\n");
    let blame = lab.workspace.blame("a", None).unwrap();
    let texts: Vec<&[u8]> = blame
        .lines
        .iter()
        .map(|line| line.text.as_slice())
        .collect();
    assert_eq!(texts, [b"one\r".as_slice(), b"two\xff", b"last"]);
    assert_eq!(words(&lab, "a"), ["before", "before", "you"]);
    let json = serde_json::to_value(&blame).unwrap();
    assert_eq!(json["lines"][1]["text_hex"], "74776fff");
    assert_eq!(json["lines"][0]["text"], "one\r");
    assert_eq!(json["lines"][0].get("text_hex"), None);
    assert_eq!(json["ends_with_newline"], true);
    assert!(lab.workspace.blame("empty", None).unwrap().lines.is_empty());
}

#[test]
fn what_has_no_lines_is_refused_with_the_reason() {
    let lab = Lab::new(1);
    lab.write("d/a", "one\n");
    lab.write("binary", b"a\0b");
    lab.write("gone", "x\n");
    lab.write(".gitignore", "skipped/\n");
    lab.write("skipped/a", "x\n");
    std::os::unix::fs::symlink("d/a", lab.path("link")).unwrap();
    let first = lab.keep();
    fs::remove_file(lab.path("gone")).unwrap();
    let refused = |name: &str, at| lab.workspace.blame(name, at).unwrap_err();
    for (name, reason) in [
        ("d", "directory"),
        ("binary", "binary"),
        ("link", "symbolic link"),
        ("skipped/a", "never protected: ignored"),
        ("../a", ""),
        (".git/config", "belongs to git"),
    ] {
        let error = refused(name, None);
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
        assert!(error.message().contains(reason), "{name}: {error}");
    }
    let error = refused("gone", None);
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.points(), [first.id().prefix(8)]);
    assert_eq!(
        lab.workspace
            .blame("gone", Some(&first))
            .unwrap()
            .lines
            .len(),
        1
    );
    assert_eq!(refused("nothing", Some(&first)).kind(), ErrorKind::NotFound);
}
