//! The Rust of docs/async.md, compiled and run.
//!
//! `tokio` here is a stand-in with tokio's names, so that no runtime is needed: a thread for
//! each blocking task, and a future that is ready when it ends.

#![expect(
    clippy::disallowed_methods,
    reason = "a tool of an agent writes where it likes"
)]

use std::path::Path;

use backtrail::workspace::CheckpointReason;
use backtrail::{
    Block, Message, Outcome, Result, Session, SessionOptions, Store, ToolResult, ToolUse, Workspace,
};

use crate::embedding::{bare, block_on};
use crate::rewind::kit::begin;

const MANUAL: &str = include_str!("../../../../docs/async.md");
const SOURCE: &str = include_str!("async_use.rs");

mod tokio {
    pub(super) mod task {
        use std::future::Future;
        use std::pin::Pin;
        use std::sync::{Arc, Mutex};
        use std::task::{Context, Poll, Waker};
        use std::thread;

        /// The error of a task that panicked.
        #[derive(Debug)]
        pub(in super::super) struct JoinError;

        type Shared<T> = Arc<Mutex<(Option<thread::Result<T>>, Option<Waker>)>>;

        pub(in super::super) struct JoinHandle<T>(Shared<T>);

        impl<T> Future for JoinHandle<T> {
            type Output = Result<T, JoinError>;

            fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
                let mut state = self.0.lock().unwrap();
                match state.0.take() {
                    Some(done) => Poll::Ready(done.map_err(|_| JoinError)),
                    None => {
                        state.1 = Some(context.waker().clone());
                        Poll::Pending
                    }
                }
            }
        }

        /// As in tokio, the work goes on if the handle is dropped.
        pub(in super::super) fn spawn_blocking<T: Send + 'static>(
            work: impl FnOnce() -> T + Send + 'static,
        ) -> JoinHandle<T> {
            let shared: Shared<T> = Arc::default();
            let handle = JoinHandle(Arc::clone(&shared));
            thread::spawn(move || {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                let mut state = shared.lock().unwrap();
                state.0 = Some(done);
                if let Some(waker) = state.1.take() {
                    waker.wake();
                }
            });
            handle
        }
    }
}

async fn call_the_model(prompt: &str) -> String {
    format!("to {prompt}: yes")
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panicked) => panic!("{panicked:?}"),
    }
}

async fn open(home: &Path, project: &Path) -> Result<(Workspace, Session)> {
    let (home, project) = (home.to_owned(), project.to_owned());
    blocking(move || {
        let store = Store::open_or_create(&home)?;
        let workspace = store.workspace(&project)?;
        let session = store.create_session(SessionOptions::new().workspace(&workspace))?;
        Ok((workspace, session))
    })
    .await
}

async fn talk(session: &Session) -> Result<u64> {
    let prompt = session.append_deferred(Message::user_text("is it done?"));
    let answer = call_the_model("is it done?").await;
    let answer = session.append_deferred(Message::assistant([Block::text(answer)]));
    // Both are on disk once the later one is: they are written in order.
    let seq = answer.await?;
    assert!(prompt.await? < seq);
    Ok(seq)
}

async fn work(session: &Session, project: &Path) -> Result<()> {
    let (session, project) = (session.clone(), project.to_owned());
    blocking(move || {
        let turn = session.begin_turn(Message::user_text("write the poem"))?;
        let call = ToolUse::new("t1", "write", "{}")?;
        turn.append(Message::assistant([call.into()]))?;
        let tool = turn.begin_tool("t1")?;
        std::fs::write(project.join("poem.txt"), "roses\n").expect("the disk has room");
        tool.finish(ToolResult::ok("written"))?;
        turn.end()?;
        Ok(())
    })
    .await
}

async fn undo(session: &Session) -> Result<Option<Outcome>> {
    let session = session.clone();
    blocking(move || session.undo()).await
}

#[test]
fn every_line_of_rust_on_the_page_about_async_code_is_one_that_was_run() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let opened = block_on(open(&dir.path().join("home"), &project));
    let (workspace, session) = opened.unwrap();
    assert_eq!(block_on(talk(&session)).unwrap(), 2);
    block_on(work(&session, &project)).unwrap();
    assert!(project.join("poem.txt").exists());
    // B7: undo says what it restored.
    let undone = block_on(undo(&session)).unwrap().unwrap();
    assert_eq!(undone.deleted(), [Path::new("poem.txt")]);
    assert!(!project.join("poem.txt").exists());
    let redone = session.redo().unwrap().unwrap();
    assert_eq!(redone.restored(), [Path::new("poem.txt")]);
    // A turn that is dropped is interrupted, and can still be undone.
    let turn = begin(&session, "more");
    std::fs::write(project.join("more.txt"), "violets\n").unwrap();
    drop(turn);
    let last = workspace.last_checkpoint().unwrap().unwrap();
    assert_eq!(*last.reason(), CheckpointReason::Interrupted);
    let undone = session.undo().unwrap().unwrap();
    assert_eq!(undone.deleted(), [Path::new("more.txt")]);
    // A commit whose future is dropped is not cancelled.
    drop(session.append_deferred(Message::user_text("never awaited")));
    session.append(Message::user_text("the next")).unwrap();
    let talk = session.transcript().unwrap();
    let last = talk.messages().iter().rev().take(2);
    let last: Vec<_> = last.map(|message| message.text().into_owned()).collect();
    assert_eq!(last, ["the next", "never awaited"]);

    let source = bare(SOURCE);
    let blocks: Vec<&str> = MANUAL.split("```rust\n").skip(1).collect();
    assert!(blocks.len() >= 4);
    for block in blocks {
        let code = block.split("```").next().unwrap();
        let is_run = source.contains(&bare(code));
        assert!(
            is_run,
            "this is not in tests/promises/async_use.rs:\n{code}"
        );
    }
}
