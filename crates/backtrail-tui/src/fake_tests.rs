//! A library for tests: it answers nothing, waits where it is told to, and remembers what it was
//! asked.

use std::ffi::OsString;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use backtrail_view::library::{
    Action, Answer, Between, BlameLine, Change, Changes, ChangesOf, Costs, CostsBy, Failure,
    FileDiff, Freshness, Library, Moment, OnConflict, Page, PageRequest, Place, Plan, Report,
    Scope, SearchResults, SessionHead, SessionList, Timeline, Watch,
};

/// Does something when a method is called, before it is answered.
type Called = dyn Fn(&str) + Send + Sync;

/// A library for tests.
pub(crate) struct Fake {
    called: Arc<Called>,
}

impl Fake {
    pub(crate) fn new(called: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            called: Arc::new(called),
        }
    }

    fn call<T>(&self, name: &str) -> Answer<T> {
        (self.called)(name);
        Err(Failure::new(format!("no {name} here")))
    }
}

/// Lets a call through for each message.
pub(crate) fn gate(messages: Receiver<()>) -> impl Fn() + Send + Sync {
    let messages = Mutex::new(messages);
    move || messages.lock().unwrap().recv().unwrap_or_default()
}

impl Library for Fake {
    fn sessions(&self, _: Scope, freshness: Freshness) -> Answer<SessionList> {
        self.call(&format!("sessions {freshness:?}"))
    }

    fn head(&self, session: &str) -> Answer<SessionHead> {
        self.call(&format!("head {session}"))
    }

    fn page(&self, _: &PageRequest) -> Answer<Page> {
        self.call("page")
    }

    fn text(&self, _: &Place) -> Answer<String> {
        self.call("text")
    }

    fn prompt_from(&self, _: &Place, _: bool) -> Answer<Option<u64>> {
        self.call("prompt_from")
    }

    fn changes(&self, _: &ChangesOf) -> Answer<Changes> {
        self.call("changes")
    }

    fn diff(&self, _: &ChangesOf, _: Option<&Between>, _: &str) -> Answer<FileDiff> {
        self.call("diff")
    }

    fn files(&self, _: &str, _: &Moment) -> Answer<Vec<String>> {
        self.call("files")
    }

    fn file(&self, _: &str, _: &Moment, _: &str) -> Answer<String> {
        self.call("file")
    }

    fn blame(&self, _: &str, _: &Moment, _: &str) -> Answer<Vec<BlameLine>> {
        self.call("blame")
    }

    fn timeline(&self, limit: usize) -> Answer<Timeline> {
        self.call(&format!("timeline {limit}"))
    }

    fn search(&self, words: &str, _: Scope) -> Answer<SearchResults> {
        self.call(&format!("search {words}"))
    }

    fn costs(&self, _: CostsBy, _: Scope) -> Answer<Costs> {
        self.call("costs")
    }

    fn next_undo(&self) -> String {
        (self.called)("next_undo");
        "nothing to undo".to_owned()
    }

    /// Deleting is refused, everything else is possible.
    fn plan(&self, action: &Action) -> Answer<Plan> {
        (self.called)(&format!("plan {action:?}"));
        Ok(Plan {
            token: 7,
            title: "the plan".to_owned(),
            is_possible: !matches!(action, Action::Delete(_)),
            ..Plan::default()
        })
    }

    fn apply(&self, token: u64, _: OnConflict) -> Answer<Report> {
        (self.called)(&format!("apply {token}"));
        Ok(Report::default())
    }

    fn agents(&self, _: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The agent is the command, one word a line.
    fn continue_command(&self, _: &Place, agent: &str) -> Vec<OsString> {
        agent.lines().map(Into::into).collect()
    }

    fn exports(&self, _: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    fn watch(&self, _: Box<dyn Fn(Change) + Send>) -> Answer<Box<dyn Watch>> {
        self.call("watch")
    }
}
