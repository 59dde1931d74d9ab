//! A purged session is nowhere: every file of the store is searched for a secret that was
//! in messages, titles, tags, labels, commands and files.

#![expect(
    clippy::disallowed_methods,
    reason = "the files are looked at from outside"
)]

use std::fs;
use std::path::Path;

use backtrail::gc::GcOptions;
use backtrail::rewind::Stage;
use backtrail::trash::DeleteScope;
use backtrail::verify::GapReason;
use backtrail::verify::SnapshotsRepairOptions;
use backtrail::workspace::{About, CheckpointReason, DropReason};
use backtrail::{
    Block, CheckpointOptions, ErrorKind, ForkOptions, Message, Note, Outcome, Point, Rewind, Role,
    Run, SessionId, SessionOptions, Shape, Store, Timestamp, ToolResult, ToolUse, Workspace,
};
use tempfile::TempDir;

use super::{delete, said, session};

pub(super) const SECRET: &str = "hunter2-sEcReT";

pub(super) struct Desk {
    pub(super) dir: TempDir,
    pub(super) store: Store,
    pub(super) workspace: Workspace,
}

impl Desk {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(dir.path().join("store")).unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let workspace = store.workspace(&dir.path().join("work")).unwrap();
        Self {
            dir,
            store,
            workspace,
        }
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        fs::write(self.workspace.root().join(name), text).unwrap();
    }

    pub(super) fn purge(&self, id: &SessionId) -> backtrail::trash::PurgeReport {
        let ids = std::slice::from_ref(id);
        let plan = self.store.purge_plan(ids, DeleteScope::Named).unwrap();
        plan.apply().unwrap()
    }

    /// A session that has the secret wherever there is text.
    pub(super) fn leak(&self) -> SessionId {
        self.write("before.txt", "before");
        let options = SessionOptions::new().workspace(&self.workspace);
        let session = self.store.create_session(options.title(SECRET)).unwrap();
        session
            .note(&Note::new().tags([SECRET.to_owned()]))
            .unwrap();
        let turn = session
            .begin_turn(Message::user_text(format!("use {SECRET}")))
            .unwrap();
        let input = serde_json::json!({"key": SECRET});
        let call = ToolUse::new("t1", "deploy", &input).unwrap();
        turn.append(Message::assistant([call.into()])).unwrap();
        let tool = turn.begin_tool("t1").unwrap();
        self.write("key.txt", SECRET);
        tool.finish(ToolResult::ok(format!("used {SECRET}")))
            .unwrap();
        let long = format!("{SECRET} {}", "long ".repeat(400_000));
        turn.append(Message::assistant([Block::text(long)]))
            .unwrap();
        turn.end().unwrap();
        let image = Block::image("image/png", "aHVudGVyMi1zRWNSZVQ=").unwrap();
        session.append(Message::new(Role::User, [image])).unwrap();
        let id = session.id().clone();
        session.close().unwrap();
        let run = CheckpointOptions::new()
            .session(&id)
            .reason(CheckpointReason::RunStart);
        let start = self
            .workspace
            .checkpoint(run.about(&format!("sh {SECRET}")))
            .unwrap();
        let end = CheckpointOptions::new()
            .session(&id)
            .reason(CheckpointReason::RunEnd);
        let end = end.begun_by(start.id()).label(SECRET);
        let end = self.workspace.checkpoint(end).unwrap();
        let run = Run {
            argv: vec!["sh".into(), SECRET.into()],
            directory: self.workspace.root().to_owned(),
            started_at: Timestamp::from_millis(0).unwrap(),
            duration_ms: 1,
            exit_code: Some(0),
            signal: None,
            before: Some(start.id()),
            after: Some(end.id()),
        };
        self.store.record_run(&id, &run).unwrap();
        id
    }

    pub(super) fn files_with_secret(&self) -> Vec<String> {
        let mut found = Vec::new();
        search(&self.dir.path().join("store"), &mut found);
        found
    }

    /// Asserts that no byte of the secret is left after the clean-up, not even compressed:
    /// every object then belongs to a kept state, and all of those are read.
    pub(super) fn assert_clean(&self) {
        let report = self.store.gc(&GcOptions::new()).unwrap();
        assert!(report.skipped_packs.is_empty(), "{report:?}");
        assert_eq!(self.files_with_secret(), Vec::<String>::new());
        for checkpoint in self.workspace.checkpoints().unwrap() {
            let checkpoint = checkpoint.unwrap();
            if checkpoint.dropped().unwrap().is_some() {
                continue;
            }
            let snapshot = checkpoint.snapshot().unwrap();
            for entry in snapshot.entries() {
                let (path, state) = entry.unwrap();
                if state.content.is_some() {
                    let bytes = snapshot.read(&path).unwrap().unwrap();
                    assert!(
                        !has_secret(&bytes),
                        "{} in {}",
                        path.display(),
                        checkpoint.id()
                    );
                }
            }
        }
    }
}

/// Returns whether the secret is in bytes, as it is or decoded.
fn has_secret(bytes: &[u8]) -> bool {
    let has = |what: &[u8]| bytes.windows(what.len()).any(|part| part == what);
    has(SECRET.as_bytes()) || has(b"aHVudGVyMi1zRWNSZVQ")
}

fn search(dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            search(&entry.path(), found);
        } else if has_secret(&fs::read(entry.path()).unwrap())
            || has_secret(name.as_encoded_bytes())
        {
            found.push(entry.path().display().to_string());
        }
    }
}

#[test]
fn no_byte_of_a_purged_session_is_left() {
    for in_trash in [false, true] {
        let desk = Desk::new();
        let first = CheckpointOptions::new();
        desk.workspace.checkpoint(first).unwrap();
        let id = desk.leak();
        // Your own checkpoint, with a label of your own.
        fs::remove_file(desk.workspace.root().join("key.txt")).unwrap();
        let mine = CheckpointOptions::new().label("mine");
        desk.workspace.checkpoint(mine).unwrap();
        assert!(
            desk.files_with_secret().len() >= 3,
            "{:?}",
            desk.files_with_secret()
        );
        if in_trash {
            delete(&desk.store, &id).unwrap();
        }
        let report = desk.purge(&id);
        assert_eq!(report.purged, std::slice::from_ref(&id));
        assert!(
            report.checkpoints >= 5 && report.bytes > 2_000_000,
            "{report:?}"
        );
        desk.assert_clean();
        let error = desk.store.read_session(&id).unwrap_err();
        assert!(error.to_string().contains("was purged at 20"), "{error}");
        assert_eq!(error.in_trash(), None);
        assert!(desk.store.verify_snapshots().unwrap().is_ok());
        // The checkpoints themselves are still there, in order, and the rest works.
        let all: Vec<_> = desk
            .workspace
            .checkpoints()
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(all.is_sorted_by_key(|checkpoint| checkpoint.seq()));
        let own = all.iter().filter(|it| it.session().is_some());
        for checkpoint in own {
            let let_go = checkpoint.dropped().unwrap().unwrap();
            assert_eq!(let_go.reason, DropReason::Purge);
            let about = checkpoint.about();
            assert!(about.is_none_or(|about| about == About::SessionDeleted));
            assert_eq!(checkpoint.label(), None);
        }
        assert!(desk.workspace.resolve(&Point::label("mine")).is_ok());
        desk.write("later.txt", "later");
        desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
        assert!(!desk.workspace.log().unwrap().is_empty());
        let trash = desk.store.trash().unwrap();
        assert!(trash.entries.is_empty() && trash.leftovers.is_empty());
    }
}

#[test]
fn files_of_the_session_in_other_checkpoints_are_named() {
    let desk = Desk::new();
    desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
    let id = desk.leak();
    let mine = desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
    let ids = std::slice::from_ref(&id);
    let plan = desk.store.purge_plan(ids, DeleteScope::Named).unwrap();
    let [held] = plan.remaining_files() else {
        panic!("{:?}", plan.remaining_files());
    };
    assert_eq!((held.checkpoint, held.session.clone()), (mine.id(), None));
    assert_eq!(held.paths, [Path::new("key.txt")]);
    // Without your checkpoint there is nothing to name.
    let desk = Desk::new();
    desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
    let id = desk.leak();
    let ids = std::slice::from_ref(&id);
    let plan = desk.store.purge_plan(ids, DeleteScope::Named).unwrap();
    assert!(
        plan.remaining_files().is_empty(),
        "{:?}",
        plan.remaining_files()
    );
}

#[test]
fn forks_of_a_purged_session_report_the_gap_and_stay_readable() {
    let desk = Desk::new();
    let id = desk.leak();
    let fork = desk.store.fork_session(&id, &ForkOptions::new()).unwrap();
    fork.append(Message::user_text("my own words")).unwrap();
    let child = fork.id().clone();
    fork.close().unwrap();
    let last = desk
        .store
        .read_session(&id)
        .unwrap()
        .info()
        .unwrap()
        .last_seq;
    let report = desk.purge(&id);
    assert_eq!(report.renamed, std::slice::from_ref(&child));
    assert!(report.still_named.is_empty());
    desk.assert_clean();
    let reader = desk.store.read_session(&child).unwrap();
    assert_eq!(said(&reader), ["my own words"]);
    let gaps = reader.gaps().unwrap();
    let [gap] = gaps.as_slice() else {
        panic!("{gaps:?}");
    };
    assert!(matches!(gap.reason, GapReason::Purged { at: Some(_) }));
    assert_eq!((gap.from, gap.until, &gap.session), (1, last, &id));
    let info = reader.info().unwrap();
    assert_eq!((info.title, info.tags.len()), (None, 0));
    let report = reader.verify().unwrap();
    assert!(report.is_ok() && report.gaps == gaps);
    assert_eq!(reader.stats().unwrap().gone, last);
    assert!(
        reader
            .context(Shape::Anthropic)
            .unwrap()
            .as_json()
            .contains("my own words")
    );
    assert_eq!(reader.context(Shape::Neutral).unwrap().skipped(), 0);
    assert!(desk.store.repair_plan(&child).unwrap().is_empty());
    // It continues, and can be forked.
    let opened = desk.store.open_session(&child).unwrap();
    assert_eq!(opened.append(Message::user_text("more")).unwrap(), last + 2);
    opened.close().unwrap();
    let again = super::fork(&desk.store, &child, "again");
    let words = said(&desk.store.read_session(&again).unwrap());
    assert_eq!(words, ["my own words", "more", "again"]);
}

#[test]
fn a_fork_that_keeps_an_inherited_title_is_named() {
    let desk = Desk::new();
    let id = session(&desk.store, &[SECRET]);
    let fork = desk.store.fork_session(&id, &ForkOptions::new()).unwrap();
    let report = desk.purge(&id);
    assert_eq!(
        report.still_named,
        [fork.id().clone()],
        "a process is writing to it"
    );
    assert!(fork.append(Message::user_text("on and on")).is_ok());
}

#[test]
fn a_purge_with_cascade_takes_forks_along_also_from_the_trash() {
    let desk = Desk::new();
    let id = session(&desk.store, &[SECRET, "two"]);
    let child = super::fork(&desk.store, &id, "x");
    let grandchild = super::fork(&desk.store, &child, "y");
    delete(&desk.store, &child).unwrap();
    let ids = std::slice::from_ref(&id);
    let plan = desk
        .store
        .purge_plan(ids, DeleteScope::WithDescendants)
        .unwrap();
    assert_eq!(plan.deletions().len(), 3);
    assert!(plan.forks().is_empty());
    plan.apply().unwrap();
    for id in [&id, &child, &grandchild] {
        let error = desk.store.read_session(id).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("was purged"), "{error}");
    }
    assert!(desk.files_with_secret().is_empty());
}

#[test]
fn the_file_changes_of_a_deleted_session_can_be_undone() {
    let desk = Desk::new();
    desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
    let id = desk.leak();
    let stats = |desk: &Desk| {
        let all = desk.workspace.checkpoints().unwrap().map(Result::unwrap);
        let own = all.filter(|it| it.session().is_some()).last().unwrap();
        own.stats().unwrap().unwrap().messages.total
    };
    let before = stats(&desk);
    delete(&desk.store, &id).unwrap();
    assert_eq!(stats(&desk), before, "they are read in the trash");
    assert!(!desk.workspace.log().unwrap().is_empty());
    assert!(!desk.workspace.steps().unwrap().to_undo.is_empty());
    done(desk.workspace.undo(Rewind::files_and_chat()));
    assert!(!desk.workspace.root().join("key.txt").exists());
    done(desk.workspace.redo(Rewind::files_and_chat()));
    assert!(desk.workspace.root().join("key.txt").exists());
    let point = format!("{id}:1").parse::<Point>().unwrap();
    let error = desk.workspace.resolve(&point).unwrap_err();
    assert_eq!(error.in_trash(), Some(&id));
}

fn done(outcome: backtrail::Result<Option<Outcome>>) {
    let outcome = outcome.unwrap().unwrap();
    assert_eq!(outcome.stage, Stage::Done, "{outcome:?}");
}

/// F21: a rewritten trail would hide its damage.
#[test]
fn f21_a_purge_leaves_a_damaged_trail_alone_and_names_it() {
    let desk = Desk::new();
    let label = CheckpointOptions::new().label("precious");
    desk.workspace.checkpoint(label).unwrap();
    let id = desk.leak();
    let dir = desk.store.root().join("workspaces");
    let trail = dir.join(desk.workspace.id().as_str()).join("0000.jsonl");
    let text = fs::read_to_string(&trail).unwrap();
    let damaged = text.replace("precious", "preciuos");
    fs::write(&trail, &damaged).unwrap();
    assert!(desk.store.gc(&GcOptions::new()).is_err());
    let report = desk.purge(&id);
    assert_eq!(report.unread, [desk.workspace.root()]);
    assert!(!desk.store.verify_snapshots().unwrap().is_ok());
    assert!(desk.store.gc(&GcOptions::new()).is_err());
    // Once it is repaired, the same purge removes the rest.
    let options = SnapshotsRepairOptions::new();
    let plan = desk.store.repair_snapshots_plan(options).unwrap();
    plan.apply().unwrap();
    let report = desk.purge(&id);
    assert_eq!(report.unread, Vec::<std::path::PathBuf>::new());
}
