//! What another process writes is reported at once, and nothing else is.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use backtrail::trash::DeleteScope;
use backtrail::{CheckpointOptions, Message, Note, Session, SessionOptions, ToolResult};
use backtrail_view::library::Palette;
use backtrail_view::library::{Fold, Library, PageAt, PageRequest};

use super::super::testing::{Fixture, call, plain_parts, write_file};
use super::*;

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(20);

struct Watched {
    changes: Receiver<Change>,
    watch: Option<Box<dyn Watch>>,
}

impl Watched {
    fn new(fixture: &Fixture) -> Self {
        let (sender, changes) = channel();
        let tell = Box::new(move |change| drop(sender.send(change)));
        let watch = fixture.library.watch(tell).unwrap();
        Self {
            changes,
            watch: Some(watch),
        }
    }

    /// Waits for a change; others may come before it.
    fn wait_for(&self, wanted: &Change) {
        let deadline = Instant::now() + LONG;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if self.changes.recv_timeout(left).unwrap() == *wanted {
                return;
            }
        }
    }

    /// Stops watching, and returns the changes that were not waited for.
    fn finish(&mut self) -> Vec<Change> {
        self.watch.take();
        let mut rest = Vec::new();
        loop {
            match self.changes.recv_timeout(LONG) {
                Ok(change) => rest.push(change),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("the threads go on"),
            }
        }
    }
}

fn page_of(session: &Session) -> PageRequest {
    PageRequest {
        session: session.id().to_string(),
        at: PageAt::End,
        trail: None,
        width: 80,
        fold: Fold::Short,
        palette: Palette::None,
    }
}

#[test]
fn a_session_that_grows_comes_or_gets_a_title_is_reported() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    session.append(Message::user_text("one")).unwrap();
    fixture.library.fresh_index().unwrap().catch_up().unwrap();
    let mut watched = Watched::new(&fixture);
    let grown = Change::Session(session.id().to_string());
    session.append(Message::user_text("two")).unwrap();
    watched.wait_for(&grown);
    session.note(&Note::new().title("a title")).unwrap();
    watched.wait_for(&Change::Sessions);
    let new = fixture.session(SessionOptions::new());
    watched.wait_for(&Change::Sessions);
    new.append(Message::user_text("hello")).unwrap();
    watched.wait_for(&Change::Session(new.id().to_string()));
    let id = new.id().clone();
    drop(new);
    let plan = fixture
        .library
        .store
        .delete_plan(&[id], DeleteScope::Named)
        .unwrap();
    plan.apply().unwrap();
    watched.wait_for(&Change::Sessions);
    watched.finish();
}

#[test]
fn the_open_session_is_watched_however_old_it_is() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    session.append(Message::user_text("one")).unwrap();
    // Without a catalogue nothing is known to be recent.
    let mut watched = Watched::new(&fixture);
    fixture.library.page(&page_of(&session)).unwrap();
    session.append(Message::user_text("two")).unwrap();
    watched.wait_for(&Change::Session(session.id().to_string()));
    watched.finish();
}

#[test]
fn what_happens_in_the_workspace_is_reported_from_its_first_checkpoint_on() {
    let fixture = Fixture::new();
    let mut watched = Watched::new(&fixture);
    let workspace = fixture.library.store.workspace(&fixture.root).unwrap();
    workspace.checkpoint(CheckpointOptions::new()).unwrap();
    watched.wait_for(&Change::Workspace);
    write_file(&fixture.root.join("a.txt"), "a");
    workspace.checkpoint(CheckpointOptions::new()).unwrap();
    watched.wait_for(&Change::Workspace);
    watched.finish();
}

#[test]
fn reading_is_not_a_change_and_dropping_ends_the_threads() {
    let fixture = Fixture::new();
    let session = fixture.session(SessionOptions::new());
    session.append(Message::user_text("one")).unwrap();
    let other = fixture.session(SessionOptions::new());
    fixture.library.fresh_index().unwrap().catch_up().unwrap();
    let mut watched = Watched::new(&fixture);
    fixture.library.fresh_index().unwrap().catch_up().unwrap();
    fixture.library.head(session.id().as_str()).unwrap();
    fixture.library.page(&page_of(&session)).unwrap();
    // Whatever the others were reported as would come before this.
    other.append(Message::user_text("two")).unwrap();
    let grown = Change::Session(other.id().to_string());
    assert_eq!(watched.changes.recv_timeout(LONG), Ok(grown));
    assert_eq!(watched.finish(), []);
}

#[test]
fn what_a_turn_changed_is_on_its_page_once_its_end_is_reported() {
    let fixture = Fixture::new();
    let workspace = fixture.library.store.workspace(&fixture.root).unwrap();
    let session = fixture.create(SessionOptions::new().workspace(&workspace));
    let mut watched = Watched::new(&fixture);
    let turn = session.begin_turn(Message::user_text("write a")).unwrap();
    turn.append(Message::assistant([call("t1", "touch a.txt")]))
        .unwrap();
    let tool = turn.begin_tool("t1").unwrap();
    write_file(&fixture.root.join("a.txt"), "a\n");
    tool.finish(ToolResult::ok("")).unwrap();
    let shown = || {
        let page = fixture.library.page(&page_of(&session)).unwrap();
        plain_parts(&page.parts).contains(&"  1 file changed: a.txt".to_owned())
    };
    assert!(!shown());
    turn.end().unwrap();
    while !shown() {
        watched.wait_for(&Change::Workspace);
    }
    watched.finish();
}
