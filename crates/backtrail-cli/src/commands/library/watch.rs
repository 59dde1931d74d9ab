//! What changes while a screen is open.
//!
//! One thread sleeps until something changes in the directories of the store that matter: that of
//! all sessions, those of the open session and of the sessions that were active last, and that of
//! the workspace. Another one imports what agents write, as `watch` does. Neither looks by itself,
//! so a quiet store costs nothing.

mod agents;
mod places;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use backtrail::{RecordKind, Store};
use backtrail_formats::{Environment, Notice, Stop, StopHandle};
use backtrail_view::library::{Change, Watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::agents::AgentWatch;
pub(super) use self::places::WatchedSessions;
use self::places::{News, WatchedPlaces};
use super::site::Refresher;
use super::{Answer, StoreLibrary, TurnMemory, failure, lock};
use crate::error::CommandError;

/// Changes that follow each other this closely are reported together.
const TOGETHER: Duration = Duration::from_millis(30);

/// Tells what changed.
pub(super) type Tell = Arc<Mutex<Box<dyn Fn(Change) + Send>>>;

/// The threads that watch.
struct StoreWatch {
    stop: StopHandle,
    thread: Option<JoinHandle<()>>,
    _agents: Option<AgentWatch>,
}

impl Watch for StoreWatch {}

impl Drop for StoreWatch {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

pub(super) fn watch(
    library: &StoreLibrary,
    tell: Box<dyn Fn(Change) + Send>,
) -> Answer<Box<dyn Watch>> {
    let failed = |error| failure(CommandError::io("cannot watch the store", None, &error));
    let places = WatchedPlaces::new(&library.store, library.root.as_deref());
    let tell: Tell = Arc::new(Mutex::new(tell));
    let stop = Stop::new().map_err(failed)?;
    let is_changed = Arc::new(AtomicBool::new(true));
    let sessions = WatchedSessions::new(places, Arc::clone(&is_changed));
    let watcher = Watcher {
        store: library.store.clone(),
        sessions: sessions.clone(),
        tell: Arc::clone(&tell),
        is_changed,
        memory: library.turn_memory(),
        refresher: library.site.refresher.clone(),
    };
    sessions.watch_recent(&library.store);
    library.site.refresher.tell_through(&tell);
    *lock(&library.watched) = Some(sessions);
    let environment = Environment::from_variables(std::env::vars_os());
    let handle = stop.handle();
    let thread = std::thread::Builder::new().name("backtrail-watch".to_owned());
    let thread = thread.spawn(move || watcher.run(&stop)).map_err(failed)?;
    Ok(Box::new(StoreWatch {
        stop: handle,
        thread: Some(thread),
        _agents: AgentWatch::start(&library.store, environment, tell),
    }))
}

/// Waits for changes and tells them.
struct Watcher {
    store: Store,
    sessions: WatchedSessions,
    tell: Tell,
    is_changed: Arc<AtomicBool>,
    memory: TurnMemory,
    refresher: Refresher,
}

impl Watcher {
    fn run(mut self, stop: &Stop) {
        let Some(queue) = self.sessions.queue() else {
            return;
        };
        while !stop.is_stopped() {
            let mut sources = [
                PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN),
                PollFd::new(&queue, PollFlags::IN),
            ];
            if poll(&mut sources, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
                return;
            }
            let mut notices = self.sessions.read();
            if !notices.is_empty() {
                // What follows at once belongs to it.
                wait(stop, TOGETHER);
                notices.append(&mut self.sessions.read());
            }
            self.report(&notices);
        }
    }

    fn report(&mut self, notices: &[Notice]) {
        let news = self.sessions.news_of(notices);
        if news == News::default() {
            return;
        }
        self.is_changed.store(true, Ordering::Release);
        self.refresher.note_change();
        self.memory.forget();
        let mut is_list_changed = news.is_list_changed;
        let mut changes = Vec::new();
        for id in news.sessions {
            // A title, a tag or a pin is in a note.
            let last = self
                .store
                .read_session(&id)
                .and_then(|it| it.last_records(1));
            let last = last.ok().and_then(|mut records| records.pop());
            is_list_changed |= last.is_none_or(|it| it.as_ref().kind() == RecordKind::Note);
            changes.push(Change::Session(id.to_string()));
        }
        changes.extend(news.is_workspace_changed.then_some(Change::Workspace));
        changes.extend(is_list_changed.then_some(Change::Sessions));
        let tell = lock(&self.tell);
        changes.into_iter().for_each(&*tell);
    }
}

/// Waits a moment, unless it is stopped.
fn wait(stop: &Stop, time: Duration) {
    let mut sources = [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)];
    let time = Timespec::try_from(time).ok();
    // If the system refuses to wait, changes are reported one by one.
    poll(&mut sources, time.as_ref()).ok();
}

#[cfg(test)]
#[path = "watch/watch_tests.rs"]
mod tests;
