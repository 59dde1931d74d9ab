//! What the tests of rewinding share: a store in memory and a directory to change,
//! looks at that directory, and agents that work in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backtrail::rewind::Stage;
use backtrail::workspace::CheckpointReason;
use backtrail::{
    Block, Checkpoint, CheckpointOptions, Message, Outcome, Session, SessionOptions, Store,
    StoreOptions, ToolResult, ToolUse, Turn, Workspace,
};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};
use tempfile::TempDir;

use crate::snapshots::tree::{Tree, read_tree, same};

/// What a check found wrong.
pub(crate) type Checked<T = ()> = Result<T, String>;

/// Formats an error with all its details.
pub(crate) fn told(error: backtrail::Error) -> String {
    format!("{error:?}")
}

/// Where stores in memory are.
pub(crate) const HOME: &str = "/store-in-memory";

/// Makes a directory where syncing costs nothing, for tests that do thousands of
/// steps; without one, the usual directory is used.
pub(crate) fn quick_dir() -> TempDir {
    let quick = tempfile::tempdir_in("/dev/shm");
    quick.unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// Reads a number from the environment.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap())
}

/// A store in memory, and a workspace with a real directory.
pub(crate) struct Lab {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
    pub(crate) workspace: Workspace,
}

/// Makes options for a store whose time and ids repeat.
pub(crate) fn options(seed: u64) -> StoreOptions {
    StoreOptions::new()
        .clock(ManualClock::new(1_794_729_600_000))
        .randomness(SeededRandomness::new(seed))
}

impl Lab {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(options(seed))
    }

    pub(crate) fn with(options: StoreOptions) -> Self {
        let dir = quick_dir();
        let memory = MemoryStorage::new();
        let store = options.storage(memory).open_or_create(HOME);
        let store = store.unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let workspace = store.workspace(&dir.path().join("work")).unwrap();
        Self {
            dir,
            store,
            workspace,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.workspace.root()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        write(self.root(), name, bytes);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.path(name)).unwrap()).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok()
    }

    pub(crate) fn tree(&self) -> Tree {
        read_tree(self.root())
    }

    pub(crate) fn session(&self) -> Session {
        let options = SessionOptions::new().workspace(&self.workspace);
        self.store.create_session(options).unwrap()
    }

    pub(crate) fn keep(&self) -> Checkpoint {
        self.workspace.checkpoint(CheckpointOptions::new()).unwrap()
    }

    pub(crate) fn verify(&self) {
        verify(&self.store).unwrap();
    }
}

pub(crate) fn write(root: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Checks every snapshot and every session of a store.
pub(crate) fn verify(store: &Store) -> Checked {
    let report = store.verify_snapshots().map_err(told)?;
    if !report.is_ok() {
        return Err(format!("{report:#?}"));
    }
    for id in store.sessions().map_err(told)? {
        let report = store.read_session(&id).map_err(told)?.verify();
        let damage = report.map_err(told)?.damage;
        if let Some(damage) = damage.first().first() {
            return Err(format!("session {id} is damaged: {damage}"));
        }
    }
    Ok(())
}

/// Begins a turn, and returns once the state before it is kept: a tool call waits
/// for that.
pub(crate) fn begin(session: &Session, prompt: &str) -> Turn {
    let turn = session.begin_turn(Message::user_text(prompt)).unwrap();
    let call = ToolUse::new("t1", "edit", "{}").unwrap();
    turn.append(Message::assistant([Block::from(call)]))
        .unwrap();
    turn.begin_tool("t1").map(drop).unwrap();
    turn
}

/// Ends a turn that [`begin`] began.
pub(crate) fn end(turn: Turn) -> Checkpoint {
    let tool = turn.begin_tool("t1").unwrap();
    tool.finish(ToolResult::ok("done")).unwrap();
    turn.end().unwrap()
}

/// Does something as a turn of a session.
pub(crate) fn turn(session: &Session, prompt: &str, work: impl FnOnce()) -> Checkpoint {
    let turn = begin(session, prompt);
    work();
    end(turn)
}

/// Does something as a run of a session, or of nobody's.
pub(crate) fn run(lab: &Lab, session: Option<&Session>, work: impl FnOnce()) -> Checkpoint {
    let start = run_start(lab, session);
    work();
    run_end(lab, session, &start)
}

pub(crate) fn run_start(lab: &Lab, session: Option<&Session>) -> Checkpoint {
    keep_for(
        lab,
        session,
        CheckpointOptions::new().reason(CheckpointReason::RunStart),
    )
}

pub(crate) fn run_end(lab: &Lab, session: Option<&Session>, start: &Checkpoint) -> Checkpoint {
    let options = CheckpointOptions::new().reason(CheckpointReason::RunEnd);
    keep_for(lab, session, options.begun_by(start.id()))
}

fn keep_for(lab: &Lab, session: Option<&Session>, options: CheckpointOptions) -> Checkpoint {
    let options = match session {
        Some(session) => options.session(session.id()),
        None => options,
    };
    lab.workspace.checkpoint(options).unwrap()
}

/// Returns the outcome of a step that no conflict stopped.
pub(crate) fn done(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.stage, Stage::Done, "{:?}", outcome.conflicts);
    outcome
}

/// Returns the paths whose conflicts stopped a step.
pub(crate) fn stopped(outcome: Outcome) -> Vec<PathBuf> {
    assert_eq!(outcome.stage, Stage::Stopped, "{:?}", outcome.changes);
    let conflicts = outcome.conflicts.into_iter();
    conflicts.map(|conflict| conflict.path).collect()
}

/// The inode and time of each file, which show whether it was touched.
pub(crate) type Stamps = BTreeMap<PathBuf, (u64, i64, i64)>;

/// Reads the stamps of all that is in a directory. A directory's times change with
/// what is in it, so it has none.
pub(crate) fn stamps(root: &Path, tree: &Tree) -> Stamps {
    let paths = tree.keys();
    let stamps = paths.map(|path| {
        let meta = fs::symlink_metadata(root.join(path)).unwrap();
        let (seconds, nanos) = match meta.is_dir() {
            true => (0, 0),
            false => (meta.mtime(), meta.mtime_nsec()),
        };
        (path.clone(), (meta.ino(), seconds, nanos))
    });
    stamps.collect()
}

/// Checks that what is the same before and after was not touched.
pub(crate) fn untouched(
    (before, old): (&Tree, &Stamps),
    (after, new): (&Tree, &Stamps),
) -> Checked {
    for (path, thing) in after {
        if before.get(path) == Some(thing) && old.get(path) != new.get(path) {
            return Err(format!("{path:?} is the same and was touched"));
        }
    }
    Ok(())
}

/// Checks that a directory is what it should be.
pub(crate) fn is_tree(root: &Path, expected: &Tree, when: &str) {
    same(&read_tree(root), expected).unwrap_or_else(|wrong| panic!("{when}: {wrong}"));
}

/// Returns whether tests run as root, whom no mode keeps from anything.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}
