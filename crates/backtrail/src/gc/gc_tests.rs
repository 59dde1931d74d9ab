//! What trails say that only a newer version, or another part of this one, writes.

#![expect(
    clippy::disallowed_methods,
    reason = "a workspace belongs to the user, who changes it as he likes"
)]

use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::error::ErrorKind;
use crate::log::append_entry;
use crate::time::Clock;
use crate::workspace::CheckpointOptions;

/// A clock that moves on whenever it is read.
#[derive(Debug, Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::SeqCst);
        Timestamp::from_millis(1_794_729_600_000 + 1000 * seconds).unwrap()
    }
}

/// Makes a store with two states, of which the first one may go.
fn two_states() -> (TempDir, Store, Workspace, [crate::Checkpoint; 2]) {
    let dir = tempfile::tempdir().unwrap();
    let options = crate::StoreOptions::new().clock(Ticking::default());
    let store = options.open_or_create(dir.path().join("store")).unwrap();
    let root = dir.path().join("work");
    fs::create_dir(&root).unwrap();
    let workspace = store.workspace(&root).unwrap();
    let states = ["first", "second"].map(|content| {
        fs::write(root.join("file"), content).unwrap();
        workspace.checkpoint(CheckpointOptions::new()).unwrap()
    });
    (dir, store, workspace, states)
}

fn append(store: &Store, workspace: &Workspace, kind: &str, body: &str) {
    let files = store.workspace_files(workspace.id());
    append_entry(store, &files, kind, body.as_bytes()).unwrap();
}

fn all() -> GcOptions {
    GcOptions::new().older_than(Duration::ZERO)
}

#[test]
fn f21_a_record_of_a_kind_that_is_not_known_stops_it_by_name() {
    for (kind, body) in [
        ("novelty", r#","needs":"something""#),
        (
            "let_go",
            r#","at":"2026-11-15T08:00:00.000Z","checkpoints":7"#,
        ),
        ("mark", r#","path":"file""#),
    ] {
        let (_dir, store, workspace, [first, _]) = two_states();
        append(&store, &workspace, kind, body);
        let error = store.gc(&all()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains(kind), "{error}");
        let trail = store.workspace_files(workspace.id()).trail_path(0);
        assert_eq!(error.path(), Some(trail.as_path()));
        assert!(first.dropped().unwrap().is_none(), "nothing was dropped");
        first.snapshot().unwrap();
    }
}

#[test]
fn a_mark_keeps_its_state_until_it_is_cleared() {
    let (_dir, store, workspace, [first, second]) = two_states();
    let mark = format!(
        r#","at":"2026-11-15T08:00:00.000Z","path":"file","snapshot":"{}""#,
        first.snapshot_id()
    );
    append(&store, &workspace, "mark", &mark);
    let report = store.gc(&all()).unwrap();
    assert!(
        report.dropped.is_empty() && report.freed == 0,
        "{report:#?}"
    );
    assert_eq!(report.kept.in_use, 1);
    append(
        &store,
        &workspace,
        "marks_cleared",
        r#","at":"2026-11-15T08:00:00.000Z""#,
    );
    let report = store.gc(&all()).unwrap();
    assert_eq!(report.dropped[0].states, 1);
    assert!(report.freed > 0);
    assert_eq!(first.snapshot().unwrap_err().kind(), ErrorKind::Dropped);
    second.snapshot().unwrap();
}

#[test]
fn a_state_is_dropped_only_if_nothing_needs_it_when_its_turn_comes() {
    let (_dir, store, workspace, [first, _]) = two_states();
    let options = all();
    let mut collection = Collection::begin(&store, &options, Mode::Apply).unwrap();
    let mut chosen = collection.states().unwrap();
    chosen.retain(|state| state.kept_for.is_none());
    assert_eq!(chosen.len(), 1);
    // The same files again, labelled, before the state is dropped.
    fs::write(workspace.root().join("file"), "first").unwrap();
    let again = workspace.checkpoint(CheckpointOptions::new().label("mine"));
    assert_eq!(again.unwrap().snapshot_id(), first.snapshot_id());
    collection.drop_states(chosen, DropReason::Age).unwrap();
    assert!(collection.report.dropped.is_empty());
    assert!(first.dropped().unwrap().is_none());
}
