//! A workspace with a past, and one move in it that is to be interrupted: what was
//! there before the move, and what should be there after it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use backtrail::rewind::Stage;
use backtrail::{
    Message, Point, Rewind, SessionId, SessionOptions, Storage, Store, StoreOptions, Workspace,
};
use backtrail_testkit::{ManualClock, MemoryStorage, SeededRandomness};
use tempfile::TempDir;

use super::kit::{Checked, HOME, quick_dir, told, turn, verify, write};
use crate::snapshots::tree::{Thing, Tree, read_tree, same};

/// A move, of files alone or with the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Rewind(With),
    Restore,
    Undo(With),
    Redo(With),
    UndoOfRewind(With),
    /// A rewind that keeps what the user did to the same files.
    Merge(With),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    Files,
    Both,
}

pub(crate) const ACTS: [Act; 11] = [
    Act::Rewind(With::Both),
    Act::Rewind(With::Files),
    Act::Restore,
    Act::Undo(With::Both),
    Act::Undo(With::Files),
    Act::Redo(With::Both),
    Act::Redo(With::Files),
    Act::UndoOfRewind(With::Both),
    Act::UndoOfRewind(With::Files),
    Act::Merge(With::Both),
    Act::Merge(With::Files),
];

impl With {
    fn options(self) -> Rewind {
        match self {
            Self::Files => Rewind::files(),
            Self::Both => Rewind::files_and_chat(),
        }
    }
}

/// A workspace before a move.
pub(crate) struct Scene {
    pub(crate) act: Act,
    pub(crate) dir: TempDir,
    /// The store before the move.
    pub(crate) memory: MemoryStorage,
    pub(crate) session: SessionId,
    pub(crate) old: (Tree, u64),
    pub(crate) new: (Tree, u64),
}

/// Makes options for one more process: its time comes after, and its ids are others.
pub(crate) fn next_process() -> StoreOptions {
    static PROCESSES: AtomicU64 = AtomicU64::new(0);
    let n = PROCESSES.fetch_add(1, Ordering::SeqCst);
    let start = 1_794_729_600_000 + i64::try_from(n).unwrap() * 10_000;
    StoreOptions::new()
        .clock(ManualClock::new(start))
        .randomness(SeededRandomness::new(n << 32))
}

pub(crate) fn open(storage: impl Storage) -> Store {
    next_process().storage(storage).open(HOME).unwrap()
}

/// Lives through two turns.
fn past(store: &Store, root: &Path) -> SessionId {
    fs::create_dir(root).unwrap();
    write(root, "stays", "in every state");
    write(root, "a", "a, at first");
    write(root, "text", "1\n2\n3\n4\n5\n6\n");
    write(root, "d/x", "x, at first");
    write(root, "d/kind", "a file");
    write(root, "run.sh", "#!/bin/sh");
    fs::create_dir(root.join("empty")).unwrap();
    symlink("a", root.join("link")).unwrap();
    let workspace = store.workspace(root).unwrap();
    let options = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(options).unwrap();
    session.append(Message::user_text("hello")).unwrap();
    turn(&session, "the first turn", || {
        write(root, "a", "a, by the first turn");
        write(root, "text", "1\n2, by the first turn\n3\n4\n5\n6\n");
        write(root, "new/deep/file", "made by the first turn");
        fs::remove_file(root.join("d/x")).unwrap();
        fs::set_permissions(root.join("run.sh"), Permissions::from_mode(0o755)).unwrap();
    });
    turn(&session, "the second turn", || {
        write(root, "a", "a, by the second turn");
        write(root, "text", "0\n1\n2, by the first turn\n3\n4\n5\n6\n");
        write(root, "d/x", "x, by the second turn");
        fs::remove_file(root.join("d/kind")).unwrap();
        write(root, "d/kind/now", "a directory");
        fs::remove_dir(root.join("empty")).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("elsewhere", root.join("link")).unwrap();
        fs::set_permissions(root.join("new"), Permissions::from_mode(0o750)).unwrap();
    });
    session.id().clone()
}

impl Scene {
    pub(crate) fn new(act: Act) -> Self {
        let dir = quick_dir();
        let root = dir.path().join("work");
        let memory = MemoryStorage::new();
        let options = next_process().storage(memory.clone());
        let store = options.open_or_create(HOME).unwrap();
        let session = past(&store, &root);
        let workspace = store.find_workspace(&root).unwrap().unwrap();
        match act {
            Act::Redo(with) => perform(&workspace, &session, Act::Undo(with)).unwrap(),
            Act::UndoOfRewind(with) => perform(&workspace, &session, Act::Rewind(with)).unwrap(),
            Act::Merge(_) => {
                // Not saved yet, and some of it beside what the turns did.
                let text = fs::read_to_string(root.join("text")).unwrap();
                write(&root, "text", text + "a line of the person's\n");
                write(&root, "stays", "no: changed by the person");
            }
            _ => {}
        }
        let memory = memory.kill();
        let state = |store: &Store| (read_tree(&root), head(store, &session));
        let old = state(&store);
        let after = open(memory.kill());
        let workspace = after.find_workspace(&root).unwrap().unwrap();
        perform(&workspace, &session, act).unwrap();
        let new = state(&after);
        let moves_chat = !matches!(
            act,
            Act::Restore
                | Act::Rewind(With::Files)
                | Act::Undo(With::Files)
                | Act::Redo(With::Files)
                | Act::UndoOfRewind(With::Files)
                | Act::Merge(With::Files)
        );
        assert!(old.0 != new.0, "{act:?} does something");
        assert_eq!(moves_chat, old.1 != new.1, "{act:?}");
        Self {
            act,
            dir,
            memory,
            session,
            old,
            new,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Puts the files back as they were before the move, and returns a store from
    /// then.
    pub(crate) fn again(&self) -> MemoryStorage {
        put(&self.root(), &self.old.0);
        self.memory.kill()
    }

    /// Does it.
    pub(crate) fn perform(&self, workspace: &Workspace) -> Checked {
        perform(workspace, &self.session, self.act)
    }

    /// Opens the workspace.
    pub(crate) fn workspace(&self, store: &Store) -> Checked<Workspace> {
        let found = store.find_workspace(&self.root()).map_err(told)?;
        found.ok_or("the workspace is gone".to_owned())
    }

    /// Checks what the next process finds: all of the old, or all of the new; and
    /// that it can do it, and take it back.
    pub(crate) fn check_after(&self, store: &Store, done: bool) -> Checked {
        let workspace = self.workspace(store)?;
        workspace.recover().map_err(told)?;
        self.check_from(&workspace, done, self.state(store)?)
    }

    /// As [`check_after`](Self::check_after), where what was staged and could not be
    /// cleared away may lie about until the next move.
    pub(crate) fn check_untidy(&self, store: &Store, done: bool) -> Checked {
        let workspace = self.workspace(store)?;
        workspace.recover().map_err(told)?;
        let mut tree = read_tree(&self.root());
        tree.retain(|path, _| !path.to_string_lossy().starts_with(".backtrail-staging-"));
        let is_new = self.state_of(&tree, store)?;
        self.check_from(&workspace, done, is_new)
    }

    fn check_from(&self, workspace: &Workspace, done: bool, is_new: bool) -> Checked {
        let store = workspace.store();
        if done && !is_new {
            return Err("it was done, and is not".to_owned());
        }
        if !is_new {
            self.perform(workspace)?;
            if !self.state(store)? {
                return Err("a second attempt did nothing".to_owned());
            }
        }
        let back = match self.act {
            Act::Rewind(with) | Act::Redo(with) | Act::Merge(with) => Act::Undo(with),
            Act::Undo(with) | Act::UndoOfRewind(with) => Act::Redo(with),
            Act::Restore => Act::Undo(With::Files),
        };
        perform(workspace, &self.session, back)?;
        if self.state(store)? {
            return Err("it could not be taken back".to_owned());
        }
        verify(store)
    }

    /// Returns whether files and conversation are both new; an error unless both are
    /// the one or the other.
    pub(crate) fn state(&self, store: &Store) -> Checked<bool> {
        self.state_of(&read_tree(&self.root()), store)
    }

    fn state_of(&self, tree: &Tree, store: &Store) -> Checked<bool> {
        let seq = head(store, &self.session);
        for (is_new, (files, at)) in [(false, &self.old), (true, &self.new)] {
            if tree == files {
                return match seq == *at {
                    true => Ok(is_new),
                    false => Err(format!(
                        "files are new: {is_new}; the conversation is at {seq}"
                    )),
                };
            }
        }
        let [old, new] = [&self.old, &self.new].map(|state| same(tree, &state.0).unwrap_err());
        Err(format!(
            "neither the old state\n  {old}\nnor the new\n  {new}"
        ))
    }
}

fn head(store: &Store, session: &SessionId) -> u64 {
    let reader = store.read_session(session).unwrap();
    let last = reader.last_records(1).unwrap();
    last.first().map_or(0, |record| record.seq())
}

fn perform(workspace: &Workspace, session: &SessionId, act: Act) -> Checked {
    perform_with(workspace, session, act, |options| options)
}

fn perform_with(
    workspace: &Workspace,
    session: &SessionId,
    act: Act,
    on_conflict: impl Fn(Rewind) -> Rewind,
) -> Checked {
    let options = |with: With| on_conflict(with.options());
    let start = Point::record(session, 1);
    let attempt = match act {
        Act::Rewind(with) => workspace.rewind(&start, options(with)).map(Some),
        Act::Restore => {
            let options = options(With::Files).paths(["a", "d", "new"]);
            workspace.rewind(&start, options).map(Some)
        }
        Act::Undo(with) | Act::UndoOfRewind(with) => workspace.undo(options(with)),
        Act::Redo(with) => workspace.redo(options(with)),
        Act::Merge(with) => workspace.rewind(&start, with.options().merge()).map(Some),
    };
    match attempt.map_err(told)? {
        Some(report) if report.stage != Stage::Done => {
            Err(format!("in conflict: {:?}", report.conflicts))
        }
        Some(report) if report.not_restored.is_empty() => Ok(()),
        Some(report) => Err(format!("not restored: {:?}", report.not_restored)),
        None => Err("there is nothing to do".to_owned()),
    }
}

/// Makes a directory hold a tree, and nothing else.
pub(crate) fn put(root: &Path, tree: &Tree) {
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        match fs::symlink_metadata(&path).unwrap().is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
    for (path, thing) in tree {
        let full = root.join(path);
        match thing {
            Thing::File { bytes, .. } => fs::write(full, bytes).unwrap(),
            Thing::Link(target) => symlink(target, full).unwrap(),
            Thing::Dir { .. } if path == Path::new(".") => {}
            Thing::Dir { .. } => fs::create_dir(full).unwrap(),
        }
    }
    for (path, thing) in tree.iter().rev() {
        if let Thing::File { mode, .. } | Thing::Dir { mode } = thing {
            fs::set_permissions(root.join(path), Permissions::from_mode(*mode)).unwrap();
        }
    }
}
