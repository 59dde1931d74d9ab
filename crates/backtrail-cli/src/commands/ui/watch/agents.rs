//! Imports what agents write while a screen is open, if they were imported before.

use std::sync::Mutex;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use backtrail::Store;
use backtrail_formats::{
    Environment, FollowOptions, Followed, Follower, Format, StopHandle, bind_imported, formats,
};
use backtrail_tui::library::Change;

use super::super::library::lock;
use super::Tell;
use crate::commands::fresh;
use crate::commands::import::exclude;

/// The thread that imports. It ends when this is dropped.
pub(super) struct AgentWatch {
    stop: Arc<OnceLock<Option<StopHandle>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl AgentWatch {
    /// Begins to follow the agents whose histories were imported; `None` if there is none, or it is
    /// not wanted.
    pub(super) fn start(store: &Store, tell: Tell) -> Option<Self> {
        let imported = store.imported_agents();
        let formats: Vec<&'static dyn Format> = formats()
            .filter(|format| imported.contains(format.name()))
            .collect();
        if formats.is_empty() || !fresh::is_wanted(store) {
            return None;
        }
        let environment = Environment::from_variables(std::env::vars_os());
        // Wrong settings are reported by the commands.
        let exclude = exclude(store.root(), &environment).ok()?;
        let options = FollowOptions::new(environment).formats(formats);
        let options = options.exclude(exclude);
        let stop = Arc::new(OnceLock::new());
        let (theirs, store) = (Arc::clone(&stop), store.clone());
        let thread = std::thread::Builder::new()
            .name("backtrail-follow".to_owned())
            .spawn(move || follow(&store, &options, &theirs, &tell));
        Some(Self {
            stop,
            thread: Mutex::new(thread.ok()),
        })
    }
}

impl Drop for AgentWatch {
    fn drop(&mut self) {
        // A thread that has not begun to follow ends by itself.
        let Some(stop) = self.stop.get_or_init(|| None) else {
            return;
        };
        stop.stop();
        if let Some(thread) = lock(&self.thread).take() {
            thread.join().ok();
        }
    }
}

/// Imports until it is stopped. What cannot be imported is reported by the next command.
fn follow(
    store: &Store,
    options: &FollowOptions,
    stop: &OnceLock<Option<StopHandle>>,
    tell: &Tell,
) {
    let Ok(mut follower) = Follower::start(store, options) else {
        return;
    };
    if stop.set(Some(follower.stop_handle())).is_err() {
        return;
    }
    while let Ok(wake) = follower.wait(None)
        && !wake.is_stopped
    {
        if wake.sessions.iter().any(|session| session.is_new) {
            bind_imported(store).ok();
        }
        report(&wake.sessions, tell);
    }
}

fn report(sessions: &[Followed], tell: &Tell) {
    let tell = lock(tell);
    for session in sessions {
        tell(Change::Session(session.session.to_string()));
    }
    if sessions.iter().any(|session| session.is_new) {
        tell(Change::Sessions);
    }
}
