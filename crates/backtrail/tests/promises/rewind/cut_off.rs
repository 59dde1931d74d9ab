//! Turns and runs whose process died (F15, F25, F31): what changed up to its last sign of life
//! is theirs and is undone; what changed later is the user's or theirs, and stops undo.
//!
//! A test sets the last sign of life in the file that a dead process leaves. The files' own
//! times are real, and a test that needs a later one writes until the system's clock moved on.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use backtrail::rewind::{ChangedBy, Stage};
use backtrail::workspace::{CheckpointReason, LogKind};
use backtrail::{
    Block, Checkpoint, CheckpointOptions, Message, Outcome, Rewind, Session, SessionOptions, Shape,
    Store, ToolResult, ToolUse, Workspace,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::kit::{done, quick_dir, verify, write};
use crate::snapshots::tree::{Tree, read_tree};

const TASK: &str = "BACKTRAIL_TEST_CUT_OFF";
const MIDDLE: &str = "in the middle";
/// Longer than what the clocks of files and of the system may differ by.
const MARGIN_MS: i64 = 100;

/// A store and a workspace on disk.
struct Place {
    dir: TempDir,
    store: Store,
    workspace: Workspace,
}

impl Place {
    fn new() -> Self {
        let dir = quick_dir();
        fs::create_dir(dir.path().join("work")).unwrap();
        let place = Self::at(dir);
        for name in ["a", "b", "deep/c", "gone/d", "other/e"] {
            place.write(name, "before");
        }
        place
            .workspace
            .checkpoint(CheckpointOptions::new())
            .unwrap();
        place
    }

    fn at(dir: TempDir) -> Self {
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        let workspace = store.workspace(&dir.path().join("work")).unwrap();
        Self {
            dir,
            store,
            workspace,
        }
    }

    fn write(&self, name: &str, text: &str) {
        write(self.workspace.root(), name, text);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.workspace.root().join(name)).unwrap()
    }

    fn tree(&self) -> Tree {
        read_tree(self.workspace.root())
    }

    /// Returns the file of a turn or run in progress.
    fn active_file(&self, start: &Checkpoint) -> PathBuf {
        let id = self.workspace.id().to_string();
        let dir = self.dir.path().join("store/workspaces").join(id);
        dir.join(format!("active-{}", start.id()))
    }

    /// Begins a run, lets it work, and leaves what its process leaves when it is killed.
    fn killed_run(&self, work: impl FnOnce(), last_sign: LastSign) -> Checkpoint {
        let start = CheckpointOptions::new()
            .reason(CheckpointReason::RunStart)
            .about("make");
        let session = SessionOptions::new();
        let made = self.workspace.checkpoint_in_new_session(start, session);
        let (start, _) = made.unwrap();
        let active = self.workspace.activate(&start).unwrap();
        let path = self.active_file(&start);
        work();
        let left = fs::read_to_string(&path).unwrap();
        drop(active);
        fs::write(&path, last_sign.put(&left)).unwrap();
        start
    }

    fn undo(&self, options: Rewind) -> Outcome {
        self.workspace.undo(options).unwrap().unwrap()
    }

    fn kinds(&self) -> Vec<LogKind> {
        let log = self.workspace.log().unwrap();
        log.iter().map(|entry| entry.kind()).collect()
    }

    /// Returns when a path changed, in milliseconds.
    fn changed(&self, name: &str) -> i64 {
        let found = fs::symlink_metadata(self.workspace.root().join(name)).unwrap();
        found.ctime() * 1000 + found.ctime_nsec() / 1_000_000
    }

    /// Does something again and again until a path's time is after another.
    fn until_after(&self, ms: i64, name: &str, mut act: impl FnMut()) {
        loop {
            act();
            if self.changed(name) > ms {
                return;
            }
        }
    }
}

/// The last sign of life that a dead process leaves.
enum LastSign {
    /// At this time.
    At(i64),
    /// None that can be used.
    Torn(&'static str),
    /// Of a system that was restarted since.
    OtherBoot,
}

impl LastSign {
    /// After everything so far.
    fn now() -> Self {
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        Self::At(since.as_millis() as i64 + MARGIN_MS)
    }

    fn put(&self, left: &str) -> String {
        let (first, second) = left.split_once('\n').unwrap();
        let mut sign: Value = serde_json::from_str(second).unwrap();
        match self {
            Self::At(at) => {
                // Both clocks move on.
                let by = at - sign["at"].as_i64().unwrap();
                sign["at"] = json!(at);
                sign["up"] = json!(sign["up"].as_i64().unwrap() + by);
            }
            Self::Torn(text) => return format!("{first}{text}"),
            Self::OtherBoot => {
                sign["at"] = json!(sign["at"].as_i64().unwrap() + 3_600_000);
                sign["boot"] = json!("another");
            }
        }
        format!("{first}\n{sign}")
    }
}

fn paths(outcome: &Outcome) -> Vec<&str> {
    let conflicts = outcome.conflicts.iter();
    conflicts.map(|one| one.path.to_str().unwrap()).collect()
}

/// Returns whether each conflict is of the user or the run.
fn are_doubtful(outcome: &Outcome) -> bool {
    let mut conflicts = outcome.conflicts.iter();
    conflicts.all(|one| one.changed_by == ChangedBy::Person && one.overlapped)
}

/// Changes files in every way.
fn all_kinds_of_changes(place: &Place) {
    let root = place.workspace.root();
    place.write("a", "after");
    place.write("new/deep/file", "after");
    place.write("deep/c", "after");
    fs::set_permissions(root.join("b"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_dir_all(root.join("gone")).unwrap();
    fs::rename(root.join("other"), root.join("moved")).unwrap();
    std::os::unix::fs::symlink("a", root.join("link")).unwrap();
}

#[test]
fn f15_what_a_killed_run_changed_before_its_last_sign_of_life_is_undone() {
    let place = Place::new();
    let before = place.tree();
    place.killed_run(|| all_kinds_of_changes(&place), LastSign::now());
    let after = place.tree();
    let outcome = done(place.undo(Rewind::files_and_chat()));
    assert_eq!(outcome.conflicts, []);
    assert_eq!(place.tree(), before);
    let kinds = place.kinds();
    assert!(!kinds.contains(&LogKind::Person), "{kinds:?}");
    assert!(!kinds.contains(&LogKind::PersonOrRun), "{kinds:?}");
    let log = place.workspace.log().unwrap();
    let run = log.iter().find(|entry| entry.kind() == LogKind::Run);
    assert!(!run.unwrap().ended(), "it was interrupted");
    done(
        place
            .workspace
            .redo(Rewind::files_and_chat())
            .unwrap()
            .unwrap(),
    );
    assert_eq!(place.tree(), after);
    verify(&place.store).unwrap();
}

/// A plan answers as the undo itself does.
#[test]
fn a_plan_knows_what_a_killed_run_changed() {
    let place = Place::new();
    place.killed_run(|| all_kinds_of_changes(&place), LastSign::now());
    let plan = place.workspace.undo_plan(Rewind::files_and_chat());
    let plan = plan.unwrap().unwrap();
    assert!(!plan.is_stopped(), "{:#?}", plan.outcome());
    plan.apply().unwrap();
    assert_eq!(place.read("a"), "before");
}

#[test]
fn f15_what_changed_after_the_last_sign_of_life_stops_undo_as_yours_or_the_runs() {
    let place = Place::new();
    let root = place.workspace.root().to_owned();
    let mut sign = 0;
    place.killed_run(
        || {
            place.write("a", "of the run");
            place.write("new/one", "of the run");
            fs::remove_file(root.join("deep/c")).unwrap();
            let times = ["a", "new/one", "deep"].map(|name| place.changed(name));
            sign = times.into_iter().max().unwrap() + MARGIN_MS;
        },
        LastSign::At(0),
    );
    // The sign is known only now.
    let start = place.workspace.last_checkpoint().unwrap().unwrap();
    let path = place.active_file(&start);
    let left = fs::read_to_string(&path).unwrap();
    fs::write(&path, LastSign::At(sign).put(&left)).unwrap();
    place.until_after(sign, "b", || place.write("b", "later"));
    place.until_after(sign, "new/two", || place.write("new/two", "later"));
    fs::remove_file(root.join("gone/d")).unwrap();
    let tree = place.tree();

    let outcome = place.undo(Rewind::files_and_chat());
    assert_eq!(outcome.stage, Stage::Stopped);
    assert_eq!(paths(&outcome), ["b", "gone/d", "new/two"]);
    assert!(are_doubtful(&outcome), "{outcome:#?}");
    assert_eq!(place.tree(), tree, "nothing was touched");

    let outcome = done(place.undo(Rewind::files_and_chat().keep()));
    assert_eq!(outcome.kept.len(), 3);
    assert_eq!(place.read("a"), "before");
    assert_eq!(place.read("deep/c"), "before");
    assert_eq!(place.read("b"), "later");
    assert_eq!(place.read("new/two"), "later");
    assert!(!root.join("new/one").exists() && !root.join("gone/d").exists());
    verify(&place.store).unwrap();
}

/// Without a sign of life that can be trusted nothing is claimed, and nothing is lost.
#[test]
fn without_a_sign_of_life_all_changes_are_yours_or_the_runs() {
    let signs = [
        LastSign::Torn(""),
        LastSign::Torn("\n"),
        LastSign::Torn("\n{\"from\":1"),
        LastSign::Torn("\nnull"),
        LastSign::OtherBoot,
        LastSign::At(1_000_000),
    ];
    for (n, sign) in signs.into_iter().enumerate() {
        let place = Place::new();
        place.killed_run(|| place.write("a", "after"), sign);
        let outcome = place.undo(Rewind::files_and_chat());
        assert_eq!(outcome.stage, Stage::Stopped, "{n}");
        assert_eq!(paths(&outcome), ["a"], "{n}");
        assert!(are_doubtful(&outcome), "{n}");
        done(place.undo(Rewind::files_and_chat().overwrite()));
        assert_eq!(place.read("a"), "before", "{n}");
    }
}

/// Once the end of the run is recorded, later changes are the user's alone.
#[test]
fn after_the_next_checkpoint_changes_are_yours() {
    let place = Place::new();
    place.killed_run(|| place.write("a", "after"), LastSign::now());
    let kept = place
        .workspace
        .checkpoint(CheckpointOptions::new())
        .unwrap();
    let end = place.workspace.checkpoints().unwrap().map(Result::unwrap);
    let end = end
        .filter(|one| one.last_seen().is_some())
        .collect::<Vec<_>>();
    assert_eq!(end.len(), 1);
    assert_eq!(end[0].snapshot_id(), kept.snapshot_id());
    place.write("b", "mine");
    let outcome = done(place.undo(Rewind::files_and_chat()));
    assert_eq!(outcome.conflicts, []);
    assert_eq!(
        (place.read("a"), place.read("b")),
        ("before".into(), "mine".into())
    );
}

/// Other checkpoints may come between the run's start and its end.
#[test]
fn what_a_killed_run_changed_after_anothers_checkpoint_is_its_own() {
    let place = Place::new();
    let work = || {
        place.write("a", "first");
        place
            .workspace
            .checkpoint(CheckpointOptions::new())
            .unwrap();
        place.write("b", "second");
    };
    place.killed_run(work, LastSign::now());
    done(place.undo(Rewind::files_and_chat()));
    let now = ["a", "b"].map(|name| place.read(name));
    assert_eq!(now, ["before", "before"]);
}

fn call(id: &str) -> Message {
    let call = ToolUse::new(id, "edit", &json!({})).unwrap();
    Message::assistant([call.into()])
}

/// Works as an agent does until it is killed.
fn agent(dir: &Path) {
    let store = Store::open(dir.join("store")).unwrap();
    let workspace = store.workspace(&dir.join("work")).unwrap();
    let options = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(options).unwrap();
    let turn = session.begin_turn(Message::user_text("edit it")).unwrap();
    turn.append(call("one")).unwrap();
    let tool = turn.begin_tool("one").unwrap();
    write(workspace.root(), "a", "of the first call");
    tool.finish(ToolResult::ok("done")).unwrap();
    turn.append(call("two")).unwrap();
    let _tool = turn.begin_tool("two").unwrap();
    write(workspace.root(), "b", "of the second call");
    println!("\n{MIDDLE}");
    io::stdout().flush().unwrap();
    io::stdin().read_exact(&mut [0]).ok();
}

/// Kills an agent in the middle of its second tool call, after a sign of life.
fn killed_agent(test: &str, place: &Place) -> Session {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("rewind::cut_off::{test}");
    let mut child = command
        .args(["--exact", &name, "--nocapture"])
        .env(TASK, place.dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut words = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(words.any(|word| word.unwrap() == MIDDLE));
    let starts = place.workspace.checkpoints().unwrap().map(Result::unwrap);
    let mut starts = starts.filter(|one| *one.reason() == CheckpointReason::TurnStart);
    let path = place.active_file(&starts.next().unwrap());
    let changed = place.changed("b") + MARGIN_MS;
    loop {
        let sign = fs::read_to_string(&path).unwrap();
        let sign = sign.split_once('\n').map(|(_, sign)| sign.to_owned());
        let sign = sign.and_then(|sign| serde_json::from_str::<Value>(&sign).ok());
        if sign.is_some_and(|sign| sign["at"].as_i64() > Some(changed)) {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let id = place.store.resolve("latest").unwrap();
    place.store.open_session(&id).unwrap()
}

fn task() -> bool {
    let Some(dir) = std::env::var_os(TASK) else {
        return false;
    };
    agent(Path::new(&dir));
    true
}

/// F25, F31: the agent is killed in a tool call, resumes, and its turn is one step.
#[test]
fn f25_a_turn_that_was_cut_off_continues() {
    if task() {
        return;
    }
    let place = Place::new();
    let before = place.tree();
    let session = killed_agent("f25_a_turn_that_was_cut_off_continues", &place);
    let turn = session.resume_turn().unwrap().expect("it was cut off");
    let again = session.resume_turn().unwrap_err();
    assert!(again.to_string().contains("still open"), "{again}");
    let open = turn.open_tool_calls();
    assert_eq!(open.len(), 1);
    assert_eq!(*open[0].id, *"two");
    let context = session.context(Shape::Anthropic).unwrap();
    let text = context.as_json();
    assert!(text.contains("interrupted"), "{text}");
    let tool = turn.begin_tool("two").unwrap();
    place.write("deep/c", "of the second call, again");
    tool.finish(ToolResult::ok("done")).unwrap();
    turn.append(Message::assistant([Block::text("all done")]))
        .unwrap();
    turn.end().unwrap();
    assert!(session.resume_turn().unwrap().is_none(), "it ended");
    assert_eq!(place.kinds(), [LogKind::Checkpoint, LogKind::Turn]);
    let log = place.workspace.log().unwrap();
    assert!(log[1].ended() && log[1].is_step());
    done(
        session
            .undo_with(Rewind::files_and_chat())
            .unwrap()
            .unwrap(),
    );
    assert_eq!(place.tree(), before);
    assert!(session.resume_turn().unwrap().is_none(), "it was undone");
    verify(&place.store).unwrap();
}

/// What changed while nobody was there is not the turn's.
#[test]
fn f25_changes_while_a_turn_was_cut_off_stop_its_undo() {
    if task() {
        return;
    }
    let place = Place::new();
    let test = "f25_changes_while_a_turn_was_cut_off_stop_its_undo";
    let session = killed_agent(test, &place);
    place.write("other/e", "mine");
    let turn = session.resume_turn().unwrap().unwrap();
    place.write("deep/c", "of the turn");
    turn.end().unwrap();
    let outcome = session
        .undo_with(Rewind::files_and_chat())
        .unwrap()
        .unwrap();
    assert_eq!(outcome.stage, Stage::Stopped);
    assert_eq!(paths(&outcome), ["other/e"]);
    done(
        session
            .undo_with(Rewind::files_and_chat().keep())
            .unwrap()
            .unwrap(),
    );
    let now = ["a", "b", "deep/c", "other/e"].map(|name| place.read(name));
    assert_eq!(now, ["before", "before", "before", "mine"]);
}

/// F32: what a killed run destroyed without protection is named, although it did not see its end.
#[test]
fn f32_a_killed_run_says_what_it_destroyed_without_protection() {
    for (keeps, lost) in [(false, &["build"][..]), (true, &[])] {
        let place = Place::new();
        place.write(".gitignore", "build/\n");
        place.write("build/out", "made");
        let build = place.workspace.root().join("build");
        let work = || {
            place.write("a", "of the run");
            if !keeps {
                fs::remove_dir_all(&build).unwrap();
            }
        };
        place.killed_run(work, LastSign::now());
        let outcome = done(place.undo(Rewind::files()));
        let not_restored = outcome.not_restored.iter();
        let not_restored: Vec<&Path> = not_restored.map(|it| it.path.as_path()).collect();
        assert_eq!(not_restored, lost.iter().map(Path::new).collect::<Vec<_>>());
        assert_eq!(outcome.is_partial(), !lost.is_empty());
        assert_eq!(place.read("a"), "before");
    }
}

/// A turn that was dropped, not killed, continues as well; its end was recorded then.
#[test]
fn a_turn_that_was_dropped_continues() {
    let place = Place::new();
    let options = SessionOptions::new().workspace(&place.workspace);
    let session = place.store.create_session(options).unwrap();
    assert!(session.resume_turn().unwrap().is_none(), "there is none");
    let turn = session.begin_turn(Message::user_text("edit it")).unwrap();
    turn.append(call("one")).unwrap();
    drop(turn.begin_tool("one").unwrap());
    place.write("a", "of the turn");
    drop(turn);
    place.write("b", "mine");
    let turn = session.resume_turn().unwrap().unwrap();
    assert_eq!(turn.open_tool_calls().len(), 1);
    place.write("deep/c", "of the turn");
    turn.end().unwrap();
    let outcome = session
        .undo_with(Rewind::files_and_chat())
        .unwrap()
        .unwrap();
    assert_eq!(paths(&outcome), ["b"]);
    let conflict = &outcome.conflicts[0];
    assert_eq!(conflict.changed_by, ChangedBy::Person);
    assert!(!conflict.overlapped, "it is the user's for certain");
    let kinds = place.kinds();
    assert_eq!(kinds, [LogKind::Checkpoint, LogKind::Person, LogKind::Turn]);
    let bare = place.store.create_session(SessionOptions::new()).unwrap();
    assert!(bare.resume_turn().unwrap().is_none(), "it has no files");
}
