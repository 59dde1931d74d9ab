//! The text of a session is in the session alone: a workspace's log reads it there, and a
//! purge has none to remove from the workspace's trail.

#![expect(
    clippy::disallowed_methods,
    reason = "the files are looked at from outside"
)]

use std::fs;
use std::path::{Path, PathBuf};

use backtrail::trash::DeleteScope;
use backtrail::workspace::{About, LogEntry, LogKind};
use backtrail::{
    CheckpointOptions, Message, Rewind, Session, SessionId, SessionOptions, Store, ToolResult,
    ToolUse, Workspace,
};
use tempfile::TempDir;

use super::purge::{Desk, SECRET};
use super::{delete, name};

/// A turn that writes a file.
fn turn(session: &Session, workspace: &Workspace, prompt: &str, file: &str) {
    let turn = session.begin_turn(Message::user_text(prompt)).unwrap();
    let call = ToolUse::new("t1", "write", &serde_json::json!({})).unwrap();
    turn.append(Message::assistant([call.into()])).unwrap();
    let tool = turn.begin_tool("t1").unwrap();
    fs::write(workspace.root().join(file), file).unwrap();
    tool.finish(ToolResult::ok("done")).unwrap();
    turn.end().unwrap();
}

/// A session with one turn, which was undone and redone.
fn leak(desk: &Desk) -> SessionId {
    let options = SessionOptions::new().workspace(&desk.workspace);
    let session = desk.store.create_session(options).unwrap();
    turn(&session, &desk.workspace, &format!("use {SECRET}"), "made");
    let id = session.id().clone();
    session.close().unwrap();
    for attempt in [
        desk.workspace.undo(Rewind::files()),
        desk.workspace.redo(Rewind::files()),
    ] {
        assert!(attempt.unwrap().is_some());
    }
    id
}

fn trail(workspace: &Workspace) -> PathBuf {
    let dir = workspace.store().root().join("workspaces");
    dir.join(workspace.id().as_str()).join("0000.jsonl")
}

fn described(entry: &LogEntry) -> String {
    let checkpoint = match entry.kind() {
        LogKind::Turn => entry.before().unwrap(),
        _ => entry.after(),
    };
    let about = checkpoint.about();
    about.map_or_else(String::new, |about| about.to_string())
}

fn log(workspace: &Workspace) -> Vec<String> {
    let log = workspace.log().unwrap();
    let moved = |entry: &&LogEntry| entry.kind() != LogKind::Checkpoint;
    log.iter().filter(moved).map(described).collect()
}

#[test]
fn a_purge_leaves_a_trail_without_text_of_the_session_byte_for_byte() {
    let desk = Desk::new();
    // Everybody's checkpoints skip this one.
    desk.write(".gitignore", "target/\n");
    fs::create_dir(desk.workspace.root().join("target")).unwrap();
    desk.workspace.checkpoint(CheckpointOptions::new()).unwrap();
    let id = leak(&desk);
    let prompt = format!("use {SECRET}");
    let quoted = format!("the turn \"{prompt}\"");
    assert_eq!(log(&desk.workspace), [prompt, quoted.clone(), quoted]);
    let path = trail(&desk.workspace);
    let before = fs::read(&path).unwrap();
    desk.purge(&id);
    let after = fs::read(&path).unwrap();
    assert_eq!(after[..before.len()], before);
    let added = String::from_utf8(after[before.len()..].to_vec()).unwrap();
    assert_eq!(added.lines().count(), 1);
    assert!(added.starts_with(r#"{"type":"let_go""#), "{added}");
    assert!(!path.with_file_name("0001.jsonl").exists());
    assert_eq!(
        log(&desk.workspace),
        [
            "session deleted",
            "the turn (session deleted)",
            "the turn (session deleted)"
        ]
    );
    desk.assert_clean();
}

#[test]
fn the_prompts_of_a_session_in_the_trash_are_not_shown_until_it_is_restored() {
    let desk = Desk::new();
    let id = leak(&desk);
    let shown = log(&desk.workspace);
    assert!(shown.iter().all(|text| text.contains(SECRET)), "{shown:?}");
    delete(&desk.store, &id).unwrap();
    let hidden = log(&desk.workspace);
    assert!(
        !hidden.iter().any(|text| text.contains(SECRET)),
        "{hidden:?}"
    );
    let first = desk.workspace.log().unwrap();
    let first = first[0].before().unwrap().about();
    assert_eq!(first, Some(About::SessionDeleted));
    desk.store.restore_deleted(&name(&id)).unwrap();
    assert_eq!(log(&desk.workspace), shown);
}

#[test]
fn the_prompt_is_found_after_a_rotation_a_rewind_and_in_a_fork() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    fs::create_dir(&project).unwrap();
    let store = backtrail::StoreOptions::new()
        .rotation(300)
        .open_or_create(dir.path().join("store"))
        .unwrap();
    let workspace = store.workspace(&project).unwrap();
    let options = SessionOptions::new().workspace(&workspace);
    let session = store.create_session(options).unwrap();
    for (n, prompt) in ["one", "two", "three"].into_iter().enumerate() {
        turn(&session, &workspace, prompt, &format!("file-{n}"));
    }
    session.rewind_chat(1).unwrap();
    turn(&session, &workspace, "two again", "file-3");
    assert_eq!(log(&workspace), ["one", "two", "three", "two again"]);
    let fork = session.fork(&Default::default()).unwrap();
    turn(&fork, &workspace, "in the fork", "file-4");
    assert_eq!(log(&workspace).last().unwrap(), "in the fork");
}

/// A store of an earlier version, which copied prompts into the workspace's trail: into
/// the checkpoints of turns, and into undo, redo, restore and rewind.
struct Old {
    _dir: TempDir,
    store: Store,
    workspace: Workspace,
    leaked: SessionId,
}

impl Old {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fixture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promises/fixtures/copied-prompts");
        copy(&fixture, &dir.path().join("store"));
        let store = Store::open(dir.path().join("store")).unwrap();
        let workspace = store.workspaces().unwrap().remove(0);
        let mut sessions = store.sessions().unwrap().into_iter();
        let is_leaked = |id: &SessionId| {
            let info = store.read_session(id).unwrap().info().unwrap();
            info.last_seq > 0 && has(&store.read_session(id).unwrap().dir(), SECRET)
        };
        let leaked = sessions.find(is_leaked).unwrap();
        Self {
            _dir: dir,
            store,
            workspace,
            leaked,
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).unwrap(),
        }
    }
}

/// Returns whether a file in a directory has a text in it.
fn has(dir: &Path, text: &str) -> bool {
    fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => has(&path, text),
            false => String::from_utf8_lossy(&fs::read(path).unwrap()).contains(text),
        }
    })
}

#[test]
fn prompts_that_an_earlier_version_copied_are_shown_while_the_session_is_there() {
    let old = Old::open();
    let texts = log(&old.workspace);
    assert_eq!(texts[0], "write the license");
    assert_eq!(texts[1], format!("use the key {SECRET}"));
    assert!(
        texts[2..].iter().all(|text| text.contains(SECRET)),
        "{texts:?}"
    );
    delete(&old.store, &old.leaked).unwrap();
    let texts = log(&old.workspace);
    assert_eq!(texts[..2], ["write the license", "session deleted"]);
}

#[test]
fn a_purge_rewrites_a_trail_that_has_copied_prompts() {
    let old = Old::open();
    let workspaces = old.store.root().join("workspaces");
    assert!(has(&workspaces, SECRET));
    let ids = std::slice::from_ref(&old.leaked);
    let plan = old.store.purge_plan(ids, DeleteScope::Named).unwrap();
    plan.apply().unwrap();
    assert!(!has(old.store.root(), SECRET));
    assert!(!trail(&old.workspace).exists());
    assert!(
        has(&workspaces, "write the license"),
        "it is another session's"
    );
    let texts = log(&old.workspace);
    assert_eq!(texts[..2], ["write the license", "session deleted"]);
    assert!(old.store.verify_snapshots().unwrap().is_ok());
}
