//! What a hostile review of rewinding found, so that none of it comes back: work that
//! is undone unasked, steps that are missing or out of order, conflicts where
//! nobody is in the way, and ways that lead nowhere (F15, F29, F31).

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use backtrail::rewind::{Touch, TouchHook};
use backtrail::workspace::CheckpointReason;
use backtrail::{
    Block, CheckpointOptions, Compaction, ErrorKind, Message, Outcome, Point, Rewind, Session,
    SessionId, SessionOptions, StepKind, Store, StoreOptions, Workspace,
};
use backtrail_testkit::{Fault, FaultyStorage, ManualClock, MemoryStorage, SeededRandomness};

use super::kit::{
    HOME, Lab, done, is_tree, options, quick_dir, run, run_end, run_start, stopped, turn, write,
};

/// A session that somebody writes to only while he has something to say, so that
/// its conversation can move in between.
struct Talk<'a> {
    workspace: &'a Workspace,
    id: SessionId,
}

impl<'a> Talk<'a> {
    fn new(workspace: &'a Workspace) -> Self {
        let options = SessionOptions::new().workspace(workspace);
        let session = workspace.store().create_session(options).unwrap();
        let id = session.id().clone();
        Self { workspace, id }
    }

    fn open(&self) -> Session {
        self.workspace.store().open_session(&self.id).unwrap()
    }

    /// Writes a file in a turn of three records.
    fn turn(&self, prompt: &str, name: &str, text: &str) {
        turn(&self.open(), prompt, || {
            write(self.workspace.root(), name, text)
        });
    }

    fn say(&self, text: &str) {
        self.open().append(Message::user_text(text)).unwrap();
    }

    fn at(&self, seq: u64) -> Point {
        Point::record(&self.id, seq)
    }

    /// Returns all prompts of the conversation as it is now.
    fn prompts(&self) -> Vec<String> {
        let reader = self.workspace.store().read_session(&self.id).unwrap();
        let mut records = reader.records_from(1).unwrap();
        let mut said = Vec::new();
        while let Some(record) = records.next().unwrap() {
            let message = record.message().unwrap();
            let is_text = |block: &Block| matches!(block, Block::Text(_));
            let message = message.filter(|message| message.blocks.iter().any(is_text));
            said.extend(message.map(|message| message.text().into_owned()));
        }
        said
    }
}

fn both() -> Rewind {
    Rewind::files_and_chat()
}

fn go(workspace: &Workspace, point: &Point, options: Rewind) -> Outcome {
    done(workspace.rewind(point, options).unwrap())
}

fn undo(workspace: &Workspace, options: Rewind) -> Outcome {
    done(workspace.undo(options).unwrap().unwrap())
}

fn redo(workspace: &Workspace, options: Rewind) -> Outcome {
    done(workspace.redo(options).unwrap().unwrap())
}

/// Returns what undo would take, next one first, in words.
fn to_undo(workspace: &Workspace) -> Vec<String> {
    let steps = workspace.steps().unwrap().to_undo.into_iter();
    steps.map(|step| step.to_string()).collect()
}

fn cannot(report: &Outcome) -> Vec<&Path> {
    let left = report.not_restored.iter();
    left.map(|left| left.path.as_path()).collect()
}

/// Lets all changes happen, or none of some kind, or ends everything at one.
#[derive(Debug, Clone, Default)]
struct Mood(Arc<AtomicU8>);

impl Mood {
    const REFUSE_NAMES: u8 = 1;
    const REFUSE_WRITES: u8 = 2;
    const DIE: u8 = 3;
    const DEAD: u8 = 4;

    fn set(&self, mood: u8) {
        self.0.store(mood, Ordering::SeqCst);
    }
}

impl TouchHook for Mood {
    fn before(&self, touch: &Touch<'_>) -> io::Result<()> {
        let refused = || Err(io::Error::other("refused"));
        match (self.0.load(Ordering::SeqCst), touch.call) {
            (Self::REFUSE_NAMES, "renameat2") | (Self::REFUSE_WRITES, "write") => refused(),
            (Self::DIE, "renameat2") => {
                self.set(Self::DEAD);
                panic!("the process dies here");
            }
            (Self::DEAD, _) => refused(),
            _ => Ok(()),
        }
    }
}

/// Finding 1, and what is kept by an undo, by `--keep`, or by an attempt that was
/// given up, is still what nobody saved.
#[test]
fn changes_captured_only_by_a_rewind_stay_the_users_and_in_conflict() {
    let moves: [fn(&Lab, &Point, &Mood); 3] = [
        |lab, _, _| drop(undo(&lab.workspace, Rewind::files())),
        |lab, one, _| drop(go(&lab.workspace, one, Rewind::files().keep())),
        |lab, one, mood| {
            mood.set(Mood::REFUSE_NAMES);
            let failed = lab.workspace.rewind(one, Rewind::files().keep());
            assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io);
            mood.set(0);
        },
    ];
    for (n, a_move) in moves.into_iter().enumerate() {
        let mood = Mood::default();
        let lab = Lab::with(options(1).touch_hook(mood.clone()));
        lab.write("a", "1");
        lab.write("notes", "1");
        let one = Point::checkpoint(lab.keep().id());
        run(&lab, None, || lab.write("a", "2"));
        lab.write("notes", "MINE");
        let attempt = || stopped(lab.workspace.rewind(&one, Rewind::files()).unwrap());
        assert_eq!(attempt(), [PathBuf::from("notes")]);
        a_move(&lab, &one, &mood);
        assert_eq!(attempt(), [PathBuf::from("notes")], "move {n}");
        let plan = lab.workspace.rewind_plan(&one, Rewind::files()).unwrap();
        assert!(plan.outcome().conflicts[0].unsaved, "move {n}");
        assert_eq!(lab.read("notes"), "MINE");
        go(&lab.workspace, &one, Rewind::files().overwrite());
        assert_eq!(lab.read("notes"), "1");
        undo(&lab.workspace, Rewind::files());
        assert_eq!(lab.read("notes"), "MINE");
    }
}

/// A rewind to a checkpoint without a session undoes everything saved since.
#[test]
fn changes_that_the_user_saves_after_a_rewind_are_saved() {
    let lab = Lab::new(20);
    lab.write("a", "1");
    lab.write("notes", "1");
    let one = Point::checkpoint(lab.keep().id());
    run(&lab, None, || lab.write("a", "2"));
    lab.write("notes", "MINE");
    undo(&lab.workspace, Rewind::files());
    lab.keep();
    go(&lab.workspace, &one, Rewind::files());
    assert_eq!(lab.read("notes"), "1");
}

/// Finding 2: `last~N` undoes whichever sessions' work, and names the others.
#[test]
fn f31_other_sessions_whose_work_is_undone_are_named_and_keep_their_conversations() {
    let lab = Lab::new(2);
    let (a, b) = (Talk::new(&lab.workspace), Talk::new(&lab.workspace));
    a.turn("A1", "a", "A1");
    b.turn("B1", "b", "B1");
    a.turn("A2", "a", "A2");
    let attempt = lab.workspace.rewind(&a.at(0), both()).unwrap();
    assert_eq!(stopped(attempt), [PathBuf::from("b")]);
    let to = Point::turns_back(3);
    let plan = lab.workspace.rewind_plan(&to, both()).unwrap();
    assert_eq!(plan.outcome().other_sessions, std::slice::from_ref(&b.id));
    let report = go(&lab.workspace, &to, both());
    assert_eq!(report.other_sessions, std::slice::from_ref(&b.id));
    assert!(!lab.has("a") && !lab.has("b"));
    assert!(a.prompts().is_empty());
    assert_eq!(b.prompts(), ["B1"]);
    undo(&lab.workspace, both());
    assert_eq!((lab.read("a"), lab.read("b")), ("A2".into(), "B1".into()));
    assert_eq!(a.prompts(), ["A1", "A2"]);
}

/// Finding 3: whatever began the trail that a compaction is in.
#[test]
fn a_compaction_after_a_rewind_with_files_is_a_step() {
    for (n, begins) in ["rewind", "undo", "redo"].into_iter().enumerate() {
        let lab = Lab::new(3);
        let talk = Talk::new(&lab.workspace);
        talk.turn("first", "a", "1");
        talk.turn("second", "a", "2");
        match n {
            0 => drop(go(&lab.workspace, &talk.at(3), both())),
            _ => drop(undo(&lab.workspace, both())),
        }
        if n == 2 {
            redo(&lab.workspace, both());
        }
        talk.turn("third", "a", "3");
        let compaction = Compaction::new("a summary").keep(1);
        talk.open().compact(&compaction).unwrap();
        let steps = to_undo(&lab.workspace);
        assert!(
            steps[0].starts_with("the compaction of "),
            "{begins}: {steps:?}"
        );
        let report = undo(&lab.workspace, both());
        let kind = report.step.unwrap().kind;
        assert!(
            matches!(kind, StepKind::Compaction { .. }),
            "{begins}: {kind:?}"
        );
        assert_eq!(lab.read("a"), "3", "{begins}");
        let report = undo(&lab.workspace, both());
        assert_eq!(report.step.unwrap().to_string(), "the turn \"third\"");
        assert_ne!(lab.read("a"), "3", "{begins}");
    }
}

/// Finding 4: the number of the trail that it would have begun is another's.
#[test]
fn a_chat_rewind_after_one_that_was_given_up_is_undone() {
    let mood = Mood::default();
    let lab = Lab::with(options(4).touch_hook(mood.clone()));
    let talk = Talk::new(&lab.workspace);
    talk.turn("first", "a", "1");
    talk.turn("second", "a", "2");
    mood.set(Mood::REFUSE_NAMES);
    let failed = lab.workspace.rewind(&talk.at(3), both()).unwrap_err();
    assert!(failed.to_string().contains("put back"), "{failed}");
    mood.set(0);
    go(&lab.workspace, &talk.at(3), Rewind::chat());
    assert_eq!(talk.prompts(), ["first"]);
    let newest = &to_undo(&lab.workspace)[0];
    assert_eq!(newest, "the rewind from record 6 to record 3");
    let undone = lab
        .workspace
        .undo(both().session(&talk.id))
        .unwrap()
        .unwrap();
    let step = done(undone).step.unwrap();
    assert_eq!(step.kind, StepKind::Rewind { from: 6, to: 3 });
    assert_eq!(talk.prompts(), ["first", "second"]);
    assert_eq!(lab.read("a"), "2");
}

/// Makes a workspace with two turns, a rewind of the conversation by a clock that
/// is two hours fast, and a third turn by one that is right again.
fn after_the_clock_went_back(clock: &ManualClock) -> (Lab, SessionId) {
    const HOURS: i64 = 7_200_000;
    let options = StoreOptions::new().clock(clock.clone());
    let lab = Lab::with(options.randomness(SeededRandomness::new(5)));
    let talk = Talk::new(&lab.workspace);
    talk.turn("first", "a", "1");
    talk.turn("second", "a", "2");
    clock.advance(HOURS);
    go(&lab.workspace, &talk.at(3), Rewind::chat());
    clock.advance(-HOURS);
    talk.turn("third", "a", "3");
    let id = talk.id.clone();
    (lab, id)
}

/// Finding 5: within a session its records say what came first.
#[test]
fn a_clock_that_went_back_does_not_mix_up_the_steps_of_a_session() {
    let clock = ManualClock::new(1_794_729_600_000);
    let (lab, id) = after_the_clock_went_back(&clock);
    let talk = Talk {
        workspace: &lab.workspace,
        id,
    };
    let report = undo(&lab.workspace, both());
    assert_eq!(report.step.unwrap().to_string(), "the turn \"third\"");
    assert_eq!(
        (lab.read("a"), talk.prompts()),
        ("2".into(), vec!["first".into()])
    );
}

/// Finding 5, the rest of it.
#[test]
fn a_clock_that_went_back_does_not_end_redo() {
    let clock = ManualClock::new(1_794_729_600_000);
    let (lab, id) = after_the_clock_went_back(&clock);
    let talk = Talk {
        workspace: &lab.workspace,
        id,
    };
    undo(&lab.workspace, both());
    redo(&lab.workspace, both());
    assert_eq!(lab.read("a"), "3");
    assert_eq!(talk.prompts(), ["first", "third"]);
}

/// Finding 6.
#[test]
fn changes_by_a_run_after_a_rewind_past_its_start_are_a_step() {
    let lab = Lab::new(6);
    lab.write("a", "at first");
    let one = Point::checkpoint(lab.keep().id());
    let start = run_start(&lab, None);
    let active = lab.workspace.activate(&start).unwrap();
    lab.write("a", "by the run");
    lab.write("b", "by the run");
    go(&lab.workspace, &one, Rewind::files());
    lab.write("late", "by the run");
    drop(active);
    run_end(&lab, None, &start);
    assert_eq!(to_undo(&lab.workspace)[0], "the run");
    undo(&lab.workspace, Rewind::files());
    assert!(!lab.has("late"), "it was the run's");
    assert!(lab.read("a") == "at first" && !lab.has("b"));
    undo(&lab.workspace, Rewind::files());
    assert!(lab.read("a") == "by the run" && lab.has("b"));
    assert!(!lab.has("late"));
}

/// Finding 7: a directory that stays because of what is ignored in it.
#[test]
fn a_directory_that_is_not_touched_is_no_conflict() {
    let lab = Lab::new(7);
    lab.write(".gitignore", "*.log\n");
    lab.write("a", "1");
    let one = Point::checkpoint(lab.keep().id());
    run(&lab, None, || lab.write("a", "2"));
    lab.write("logs/app.log", "of a program that logs");
    go(&lab.workspace, &one, Rewind::files());
    assert_eq!(lab.read("a"), "1");
    assert!(lab.has("logs/app.log"));

    // The same if the rules were removed, whichever author comes second.
    let lab = Lab::new(8);
    lab.write("a", "1");
    let one = Point::checkpoint(lab.keep().id());
    run(&lab, None, || {
        lab.write("target/out", "built");
        lab.write(".gitignore", "target/\n");
        lab.write("a", "2");
    });
    go(&lab.workspace, &one, Rewind::files());
    assert_eq!(lab.read("a"), "1");
    let tree = lab.tree();
    go(&lab.workspace, &one, Rewind::files());
    is_tree(lab.root(), &tree, "once more");
    assert!(lab.has("target/out") && !lab.has(".gitignore"));
}

/// Finding 8: what is over the cap for a while.
#[test]
fn a_file_that_was_skipped_and_is_the_same_again_did_not_change() {
    let lab = Lab::with(options(9).snapshot_cap(1_000));
    lab.write("s", "small");
    let two = Point::checkpoint(lab.keep().id());
    run(&lab, None, || lab.write("s", vec![b'.'; 1_700]));
    go(&lab.workspace, &two, Rewind::files());
    assert_eq!(lab.read("s"), "small");
    undo(&lab.workspace, Rewind::files());
    assert_eq!(lab.read("s").len(), 1_700);
    let report = undo(&lab.workspace, Rewind::files());
    assert_eq!(report.step.unwrap().to_string(), "the run");
    assert_eq!(lab.read("s"), "small");
}

/// What is over the cap is known by its length alone; once it is captured again for
/// somebody who asked, another's bytes of the same length are not taken for the agent's.
#[test]
fn a_file_of_the_same_length_that_was_skipped_belongs_to_its_last_author() {
    let dir = tempfile::tempdir().unwrap();
    let (home, work) = (dir.path().join("store"), dir.path().join("work"));
    fs::create_dir(&work).unwrap();
    let write = |bytes: &[u8]| fs::write(work.join("s"), bytes).unwrap();
    let narrow = StoreOptions::new().snapshot_cap(1_000);
    let store = narrow.open_or_create(&home).unwrap();
    let workspace = store.workspace(&work).unwrap();
    let session = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(session).unwrap();
    write(b"small");
    let begins = CheckpointOptions::new().reason(CheckpointReason::RunStart);
    let start = session.checkpoint(begins).unwrap();
    write(&[b'.'; 1_700]);
    let ends = CheckpointOptions::new().reason(CheckpointReason::RunEnd);
    session.checkpoint(ends.begun_by(start.id())).unwrap();
    write(&[b'!'; 1_700]);
    let store = StoreOptions::new().open(&home).unwrap();
    let workspace = store.workspace(&work).unwrap();
    workspace.checkpoint(CheckpointOptions::new()).unwrap();
    let before = Point::record(session.id(), 0);
    let attempt = workspace.rewind(&before, Rewind::files()).unwrap();
    assert_eq!(stopped(attempt), [Path::new("s")]);
}

/// Finding 9.
#[test]
fn paths_that_undo_cannot_restore_are_named() {
    let lab = Lab::with(options(10).snapshot_cap(1_000));
    lab.write("big", vec![b'.'; 1_500]);
    lab.keep();
    run(&lab, None, || lab.write("big", vec![b'!'; 1_600]));
    let report = undo(&lab.workspace, Rewind::files());
    assert_eq!(cannot(&report), [Path::new("big")]);
    assert!(report.restored().is_empty() && report.deleted().is_empty());
    assert_eq!(lab.read("big").len(), 1_600);
}

/// Finding 10.
#[test]
fn a_restore_names_paths_that_were_skipped_or_have_no_directory() {
    let lab = Lab::new(11);
    lab.write(".gitignore", "ignored/\n");
    lab.write("ignored/file", "1");
    lab.write("d/a", "1");
    let one = Point::checkpoint(lab.keep().id());
    run(&lab, None, || {
        lab.write("ignored/file", "2");
        fs::remove_dir_all(lab.path("d")).unwrap();
        lab.write("d", "a file now");
    });
    let tree = lab.tree();
    for (path, reason) in [
        ("ignored/file", "was skipped then: ignored"),
        ("d/a", "d is not a directory now"),
    ] {
        let report = go(&lab.workspace, &one, Rewind::files().paths([path]));
        assert_eq!(cannot(&report), [Path::new(path)]);
        assert_eq!(report.not_restored[0].reason, reason);
        assert!(report.restored().is_empty() && report.now.is_none());
    }
    is_tree(lab.root(), &tree, "nothing was restored");
}

/// Finding 11: whatever fails after the files moved.
#[test]
fn f15_an_error_after_the_files_moved_says_that_it_is_half_done() {
    const EIO: i32 = 5;
    let mut half_done = 0;
    for n in 0.. {
        let dir = quick_dir();
        let memory = MemoryStorage::new();
        let disk = FaultyStorage::new(memory.clone());
        let store = options(12).storage(disk.clone()).open_or_create(HOME);
        let store = store.unwrap();
        let workspace = store.workspace(dir.path()).unwrap();
        let talk = Talk::new(&workspace);
        talk.turn("first", "a", "1");
        talk.turn("second", "a", "2");
        disk.arm(n, Fault::Error(EIO));
        let outcome = workspace.rewind(&talk.at(3), both());
        if !disk.fired() {
            break;
        }
        disk.disarm();
        let a = fs::read_to_string(dir.path().join("a")).unwrap();
        let Err(error) = outcome else {
            continue;
        };
        if a == "1" {
            half_done += 1;
            let words = "it is half done; the next command here finishes it";
            assert!(error.message().ends_with(words), "at {n}: {error}");
        }
        // The next command finishes it, or it never happened.
        let id = talk.id.clone();
        drop((workspace, store, disk));
        let store = options(13).storage(memory.kill()).open(HOME).unwrap();
        let workspace = store.workspace(dir.path()).unwrap();
        workspace.recover().unwrap();
        let talk = Talk {
            workspace: &workspace,
            id,
        };
        let a = fs::read_to_string(dir.path().join("a")).unwrap();
        match a == "1" {
            true => assert_eq!(talk.prompts(), ["first"], "at {n}"),
            false => assert_eq!(talk.prompts(), ["first", "second"], "at {n}"),
        }
    }
    assert!(half_done > 2, "{half_done}");
}

/// A store on disk, to be damaged, and a rewind with files and conversation in it
/// that died in the middle.
struct Wreck {
    dir: tempfile::TempDir,
    session: SessionId,
}

impl Wreck {
    fn new() -> Self {
        let dir = quick_dir();
        fs::create_dir(dir.path().join("work")).unwrap();
        let mood = Mood::default();
        let options = StoreOptions::new().touch_hook(mood.clone());
        let store = options.open_or_create(dir.path().join("store")).unwrap();
        let workspace = store.workspace(&dir.path().join("work")).unwrap();
        let talk = Talk::new(&workspace);
        talk.turn("first", "a", "1");
        talk.turn("second", "a", "2");
        mood.set(Mood::DIE);
        let died = catch_unwind(AssertUnwindSafe(|| workspace.rewind(&talk.at(3), both())));
        assert!(died.is_err(), "{died:?}");
        let session = talk.id.clone();
        Self { dir, session }
    }

    fn store(&self) -> Store {
        Store::open(self.dir.path().join("store")).unwrap()
    }

    fn workspace(&self) -> Workspace {
        let store = self.store();
        store.workspace(&self.dir.path().join("work")).unwrap()
    }

    fn staged(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(self.dir.path().join("work")).unwrap();
        let names = names.map(|entry| PathBuf::from(entry.unwrap().file_name()));
        let is_staged = |name: &PathBuf| name.to_string_lossy().starts_with(".backtrail-");
        names.filter(is_staged).collect()
    }

    /// Keeps, changes and undoes, as if nothing had happened.
    fn goes_on(&self) {
        let workspace = self.workspace();
        let root = self.dir.path().join("work");
        write(&root, "new", "1");
        let kept = workspace.checkpoint(CheckpointOptions::new());
        let kept = Point::checkpoint(kept.unwrap().id());
        write(&root, "new", "2");
        go(&workspace, &kept, Rewind::files().overwrite());
        assert_eq!(fs::read(root.join("new")).unwrap(), b"1");
        assert!(workspace.recover().unwrap().is_none());
    }
}

/// Finding 12: the states are damaged.
#[test]
fn f15_a_step_that_cannot_be_finished_is_given_up_and_holds_up_nothing() {
    let wreck = Wreck::new();
    assert_eq!(wreck.staged().len(), 1);
    for entry in fs::read_dir(wreck.dir.path().join("store/objects")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let length = fs::read(&path).unwrap().len();
            fs::write(&path, vec![0xff; length]).unwrap();
        }
    }
    let recovered = wreck.workspace().recover().unwrap().unwrap();
    assert!(recovered.abandoned.is_some(), "{recovered:?}");
    assert!(recovered.now.is_none());
    assert_eq!(wreck.staged(), Vec::<PathBuf>::new());
    wreck.goes_on();
}

/// Finding 12: the conversation is damaged.
#[test]
fn f15_a_damaged_conversation_stays_and_the_files_are_finished() {
    let wreck = Wreck::new();
    let session = wreck.session.to_string();
    let trail = wreck.dir.path().join("store/sessions").join(session);
    fs::write(trail.join("0000.jsonl"), "").unwrap();
    let recovered = wreck.workspace().recover().unwrap().unwrap();
    assert!(recovered.chat_continued, "{recovered:?}");
    assert!(recovered.now.is_some());
    assert_eq!(fs::read(wreck.dir.path().join("work/a")).unwrap(), b"1");
    wreck.goes_on();
}

/// Finding 13.
#[test]
fn f15_files_of_a_step_whose_record_is_lost_are_named() {
    let wreck = Wreck::new();
    let workspace = wreck.workspace();
    assert!(workspace.strays().unwrap().is_empty(), "it is known");
    let trails = fs::read_dir(wreck.dir.path().join("store/workspaces")).unwrap();
    let mut trails = trails.map(|entry| entry.unwrap().path().join("0000.jsonl"));
    let trail = trails.find(|trail| trail.exists()).unwrap();
    let text = fs::read_to_string(&trail).unwrap();
    fs::write(&trail, &text[..text.len() - 20]).unwrap();
    let workspace = wreck.workspace();
    assert!(workspace.recover().unwrap().is_none());
    assert_eq!(workspace.strays().unwrap(), wreck.staged());
    assert_eq!(wreck.staged().len(), 1);
}

/// Finding 15.
#[test]
fn a_lost_session_does_not_keep_files_from_moving() {
    let dir = quick_dir();
    fs::create_dir(dir.path().join("work")).unwrap();
    let store = Store::open_or_create(dir.path().join("store")).unwrap();
    let workspace = store.workspace(&dir.path().join("work")).unwrap();
    let read = |name: &str| fs::read_to_string(dir.path().join("work").join(name)).ok();
    let (gone, other) = (Talk::new(&workspace), Talk::new(&workspace));
    gone.turn("first", "a", "1");
    gone.turn("second", "a", "2");
    other.turn("other", "b", "1");
    let undone = workspace.undo(both().session(&gone.id)).unwrap().unwrap();
    done(undone);
    assert_eq!(read("a").as_deref(), Some("1"));
    let session = dir.path().join("store/sessions").join(gone.id.to_string());
    fs::remove_dir_all(session).unwrap();
    let redone = redo(&workspace, both());
    assert!(redone.chat.is_none());
    assert_eq!(read("a").as_deref(), Some("2"));
    undo(&workspace, both());
    assert_eq!(read("a").as_deref(), Some("1"));
    let plan = workspace.rewind_plan(&Point::turns_back(2), both());
    assert!(!plan.unwrap().is_empty());
    go(&workspace, &Point::turns_back(2), both());
    assert_eq!((read("a"), read("b")), (None, None));
}

/// Finding 16: what is listed is what would be done.
#[test]
fn steps_offer_no_redo_that_redo_refuses() {
    let lab = Lab::new(14);
    let talk = Talk::new(&lab.workspace);
    talk.turn("first", "a", "1");
    talk.turn("second", "a", "2");
    undo(&lab.workspace, both());
    assert_eq!(lab.workspace.steps().unwrap().to_redo.len(), 1);
    talk.say("something else");
    assert!(lab.workspace.redo(both()).unwrap().is_none());
    assert!(lab.workspace.steps().unwrap().to_redo.is_empty());
}

/// Finding 17: what is redone is the messages, not a rewind.
#[test]
fn the_redo_of_undone_messages_is_named_so() {
    let lab = Lab::new(15);
    let talk = Talk::new(&lab.workspace);
    talk.turn("first", "a", "1");
    undo(&lab.workspace, Rewind::chat());
    assert!(talk.prompts().is_empty());
    let step = redo(&lab.workspace, both()).step.unwrap();
    assert_eq!(step.kind, StepKind::Messages { after: 0, until: 3 });
    assert_eq!(talk.prompts(), ["first"]);
}

/// Finding 19.
#[test]
fn the_restore_of_the_whole_workspace_has_a_name() {
    let lab = Lab::new(16);
    lab.write("a", "1");
    let one = Point::checkpoint(lab.keep().id());
    run(&lab, None, || lab.write("a", "2"));
    go(&lab.workspace, &one, Rewind::files().paths([""]));
    assert_eq!(lab.read("a"), "1");
    assert_eq!(to_undo(&lab.workspace)[0], "the restore of .");
}

/// Finding 21.
#[test]
fn a_failure_before_anything_is_touched_says_so() {
    let mood = Mood::default();
    let lab = Lab::with(options(17).touch_hook(mood.clone()));
    lab.write("a", "1");
    let one = Point::checkpoint(lab.keep().id());
    run(&lab, None, || lab.write("a", "2"));
    mood.set(Mood::REFUSE_WRITES);
    let error = lab.workspace.rewind(&one, Rewind::files()).unwrap_err();
    assert!(
        error.message().ends_with("; nothing was touched"),
        "{error}"
    );
    assert_eq!(lab.read("a"), "2");
    mood.set(0);
    go(&lab.workspace, &one, Rewind::files());
}

/// Finding 22: what is kept is not as it should be.
#[test]
fn f29_kept_files_do_not_count_as_unchanged() {
    let lab = Lab::new(18);
    for name in ["a", "notes", "same"] {
        lab.write(name, "1");
    }
    let one = Point::checkpoint(lab.keep().id());
    run(&lab, None, || lab.write("a", "2"));
    lab.write("notes", "MINE");
    let report = go(&lab.workspace, &one, Rewind::files().keep());
    assert_eq!(report.kept.len(), 1);
    assert_eq!(report.unchanged, 1);
}
