//! The Rust of docs/embedding.md, compiled and run; its table of errors, and the crate's table of
//! old names.

#![expect(
    clippy::disallowed_methods,
    reason = "a tool of an agent writes where it likes"
)]

use std::path::Path;

use backtrail::conversation::{HistoryItem, format_duration};
use backtrail::rewind::ForkInto;
use backtrail::{
    Block, Compaction, Context, Draft, ErrorKind, ForkOptions, Message, Point, Result, Rewind,
    Session, SessionOptions, Shape, Store, ToolResult, ToolUse, Transcript, Usage, Workspace,
};
use serde_json::json;

/// Everything that a user interface or a binding shows can be serialized.
const _: () = {
    const fn shown<T: serde::Serialize>() {}
    shown::<backtrail::Error>();
    shown::<backtrail::Outcome>();
    shown::<backtrail::SessionInfo>();
    shown::<backtrail::Step>();
    shown::<backtrail::Steps>();
    shown::<backtrail::Run>();
    shown::<backtrail::Compacted>();
    shown::<Message>();
    shown::<Context>();
    shown::<backtrail::Checkpoint>();
    shown::<backtrail::Change>();
    shown::<Workspace>();
    shown::<backtrail::context::Mend>();
    shown::<backtrail::conversation::Item>();
    shown::<backtrail::conversation::Stats>();
    shown::<HistoryItem>();
    shown::<backtrail::gc::GcReport>();
    shown::<backtrail::rewind::Conflict>();
    shown::<backtrail::rewind::Recovered>();
    shown::<backtrail::snapshot::Diff>();
    shown::<backtrail::snapshot::TextDiff>();
    shown::<backtrail::snapshot::SkippedEntry>();
    shown::<backtrail::trash::TrashContents>();
    shown::<backtrail::trash::EmptyReport>();
    shown::<backtrail::trash::PurgeReport>();
    shown::<backtrail::verify::VerifyReport>();
    shown::<backtrail::verify::RepairReport>();
    shown::<backtrail::verify::SnapshotsReport>();
    shown::<backtrail::verify::SnapshotsRepair>();
    shown::<backtrail::version1::Losses>();
    shown::<backtrail::workspace::LogEntry>();
    shown::<backtrail::workspace::Relinked>();
    shown::<backtrail::workspace::Activity>();
    shown::<backtrail::workspace::FileChange>();
};

const MANUAL: &str = include_str!("../../../../docs/embedding.md");
const SOURCE: &str = include_str!("embedding.rs");
const CRATE: &str = include_str!("../../src/lib.rs");
const ERRORS: &str = include_str!("../../src/error.rs");

fn log(line: &str) {
    assert!(!line.is_empty());
}

fn open(home: &Path, workspace: &Path) -> Result<Session> {
    let store = Store::open_or_create(home)?;
    let options = SessionOptions::new()
        .agent("mine")
        .workspace_root(workspace);
    let session = match store.resolve_in("latest", workspace) {
        Ok(id) => store.open_session(&id)?,
        Err(error) if error.kind() == ErrorKind::NotFound => store.create_session(options)?,
        Err(error) => return Err(error),
    };
    Ok(session)
}

fn talk(session: &Session) -> Result<u64> {
    let seq = session.append(Message::user_text("what is in here?"))?;
    let reply = Message::assistant([Block::text("Let me look.")])
        .usage(Usage::new(1200, 40).cache_read(1000));
    let draft = Draft::from(reply)
        .model("m-1")
        .response_id("r1")
        .duration_ms(900)
        .cost_usd(0.004);
    let seq = session.append(draft.expect(seq))?;
    let call = ToolUse::new("t1", "bash", &json!({"command": "ls"}))?;
    let seq = session.append(Draft::from(Message::assistant([call.into()])).expect(seq))?;
    // Now it runs.
    let result = ToolResult::ok("src\n").answers("t1", "bash");
    let seq = session.append(Draft::from(Message::tool_result(result)).expect(seq))?;
    Ok(seq)
}

fn context(session: &Session) -> Result<String> {
    let context = session.context(Shape::Anthropic)?;
    let request_body = context.as_json();
    for mend in context.mends() {
        log(&mend.to_string());
    }
    Ok(request_body.to_owned())
}

fn compact(session: &Session, summary: &str, seq: u64) -> Result<u64> {
    let done = session.compact(&Compaction::new(summary).keep(4).expect(seq))?;
    Ok(done.kept)
}

fn move_about(session: &Session) -> Result<Session> {
    let fork = session.fork(&ForkOptions::new().at(2).branch_name("try another way"))?;
    session.rewind_chat(2)?;
    session.undo()?;
    session.redo()?;
    Ok(fork)
}

fn look_back(session: &Session) -> Result<String> {
    let stats = session.reader().stats()?;
    let spent = format_duration(stats.time_spent());
    for item in session.reader().history()? {
        match item? {
            HistoryItem::Prompt(prompt) => log(&prompt.text),
            HistoryItem::Answer(answer) => log(&answer.text),
            HistoryItem::ToolCall(call) => log(&format!("{} {:?}", call.name, call.success)),
            _ => {}
        }
    }
    Ok(spent)
}

fn delegate(session: &Session) -> Result<usize> {
    let child = session.spawn("t1", SessionOptions::new().agent("searcher"))?;
    child.append(Message::user_text("find the parser"))?;
    let children = session.reader().spawned()?;
    Ok(children.len())
}

fn plain(store: &Store, path: &Path) -> Result<Session> {
    let mut talk = Transcript::new().with_path(path);
    talk.push_user_text("fix the bug")?;
    assert_eq!(Transcript::load_from_path(path)?, talk);
    let session = store.create_session_from(&talk, SessionOptions::new())?;
    Ok(session)
}

async fn hand_in(session: &Session) -> Result<u64> {
    let commit = session.append_deferred(Message::user_text("and now?"));
    let seq = commit.await?;
    Ok(seq)
}

/// Polls a future on this thread until it is ready, as a runtime would.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        let mut context = std::task::Context::from_waker(&waker);
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

fn model(context: &Context) -> Result<Message> {
    assert!(context.as_json().contains("write a poem"));
    let call = ToolUse::new("t1", "write", &json!({"path": "poem.txt"}))?;
    Ok(Message::assistant([call.into()]))
}

fn turn(store: &Store, project: &Path, run_tool: impl Fn(&ToolUse) -> String) -> Result<bool> {
    let workspace = store.workspace(project)?;
    let options = SessionOptions::new().workspace(&workspace).agent("mine");
    let session = store.create_session(options)?;
    let turn = session.begin_turn(Message::user_text("write a poem"))?;
    turn.append(model(&session.context(Shape::Anthropic)?)?)?;
    for call in turn.open_tool_calls() {
        let tool = turn.begin_tool(&call.id)?;
        tool.finish(ToolResult::ok(run_tool(&call)))?;
    }
    let checkpoint = turn.end()?;
    if let Some(turn) = session.resume_turn()? {
        for call in turn.open_tool_calls() {
            let tool = turn.begin_tool(&call.id)?;
            tool.finish(ToolResult::ok(run_tool(&call)))?;
        }
        turn.append(model(&session.context(Shape::Anthropic)?)?)?;
        turn.end()?;
    }
    for change in &checkpoint.changes()? {
        log(&change.to_string());
    }
    let before = workspace.snapshot(&Point::turns_back(1))?;
    let poem = before.read("poem.txt")?;
    let is_new = poem.is_none() && checkpoint.changes()?.counts().new == 1;
    let plan = session.rewind_plan(&Point::turns_back(1), Rewind::files_and_chat())?;
    for change in &plan.outcome().changes {
        log(&format!("{:?} {}", change.kind, change.path.display()));
    }
    for conflict in &plan.outcome().conflicts {
        log(&format!(
            "{} was changed by {}",
            conflict.path.display(),
            conflict.changed_by
        ));
    }
    let outcome = plan.apply()?;
    let prompt = outcome.chat.and_then(|chat| chat.prompt);
    session.undo()?;
    Ok(is_new && prompt.as_deref() == Some("write a poem"))
}

fn mark(workspace: &Workspace, edit: impl Fn(&str) -> Result<()>) -> Result<usize> {
    workspace.mark("poem.txt")?;
    edit("poem.txt")?;
    if let Some(change) = workspace.change_of("poem.txt")? {
        let first = change.before()?;
        log(&format!(
            "{change}, {} bytes before",
            first.map_or(0, |first| first.len())
        ));
    }
    let all = workspace.changes()?;
    Ok(all.len())
}

fn fork_into(workspace: &Workspace, dir: &Path) -> Result<u64> {
    let options = ForkInto::new().name("another way");
    let forked = workspace.fork_into(&Point::last(), dir, options)?;
    forked
        .session
        .append(Message::user_text("try it with a table"))?;
    Ok(forked.files)
}

#[test]
fn what_the_manual_shows_works() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("store");
    let session = open(&home, dir.path()).unwrap();
    let seq = talk(&session).unwrap();
    assert_eq!(seq, 4);
    assert!(context(&session).unwrap().contains("tool_result"));
    assert_eq!(look_back(&session).unwrap(), "0s");
    assert_eq!(delegate(&session).unwrap(), 1);
    assert_eq!(compact(&session, "They looked.", seq).unwrap(), 4);
    let fork = move_about(&session).unwrap();
    assert_eq!((fork.last_seq(), session.last_seq()), (2, 2));
    assert_eq!(block_on(hand_in(&fork)).unwrap(), 3);
    let id = session.id().clone();
    session.close().unwrap();
    fork.close().unwrap();
    let store = Store::open(&home).unwrap();
    let taken = plain(&store, &dir.path().join("talk.jsonl")).unwrap();
    assert_eq!(taken.last_seq(), 1);
    assert!(store.open_session(&id).is_ok());
    let project = dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let write = |_: &ToolUse| {
        std::fs::write(project.join("poem.txt"), "roses\n").unwrap();
        "written".to_owned()
    };
    assert!(turn(&store, &project, write).unwrap());
    let workspace = store.workspace(&project).unwrap();
    let edit = |name: &str| {
        std::fs::write(project.join(name), "violets\n").unwrap();
        Ok(())
    };
    assert_eq!(mark(&workspace, edit).unwrap(), 1);
    assert_eq!(fork_into(&workspace, &dir.path().join("other")).unwrap(), 1);
}

/// Removes white space, which differs between a function and a page.
pub(crate) fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn every_line_of_rust_in_the_manual_is_one_that_was_run() {
    let source = bare(SOURCE);
    let blocks: Vec<&str> = MANUAL.split("```rust\n").skip(1).collect();
    assert!(blocks.len() > 8);
    for block in blocks {
        let code = block.split("```").next().unwrap();
        assert!(
            source.contains(&bare(code)),
            "this is not in tests/promises/embedding.rs:\n{code}"
        );
    }
}

/// Returns the rows of the table of old names.
fn names(text: &str) -> Vec<String> {
    let rows = text.lines().map(|line| line.trim_start_matches("//! "));
    let rows = rows.filter(|line| line.starts_with("| A") || line.starts_with("| B"));
    rows.map(|row| row.replace("[`", "`").replace("`]", "`"))
        .collect()
}

#[test]
fn the_crate_says_what_each_old_name_is_called_now() {
    let rows = names(CRATE);
    let expected = (1..=15)
        .map(|n| format!("A{n}"))
        .chain((1..=7).map(|n| format!("B{n}")));
    for (row, number) in rows.iter().zip(expected) {
        assert!(row.starts_with(&format!("| {number} |")), "{number}: {row}");
    }
    assert_eq!(rows.len(), 22);
}

#[test]
fn every_kind_of_error_is_in_the_manual() {
    let kinds = ERRORS.split("pub enum ErrorKind {").nth(1).unwrap();
    let kinds = kinds.split("\n}").next().unwrap().lines();
    let kinds: Vec<&str> = kinds
        .map(str::trim)
        .filter(|line| line.ends_with(',') && !line.starts_with("//"))
        .map(|line| line.trim_end_matches(','))
        .collect();
    assert!(kinds.len() > 8);
    for kind in kinds {
        assert!(MANUAL.contains(&format!("\n| `{kind}` |")), "{kind}");
    }
}
