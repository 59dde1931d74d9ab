//! Imports what agents write while a screen is open, if they were imported before.

use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use backtrail::Store;
use backtrail_formats::{
    Environment, FollowOptions, Followed, Follower, Format, StopHandle, bind_imported, formats,
};
use backtrail_view::library::Change;

use super::super::lock;
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
    pub(super) fn start(store: &Store, environment: Environment, tell: Tell) -> Option<Self> {
        let imported = store.imported_agents();
        let formats: Vec<&'static dyn Format> = formats()
            .filter(|format| imported.contains(format.name()))
            .collect();
        if formats.is_empty() || !fresh::is_wanted(store) {
            return None;
        }
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use backtrail::conversation::Item;
    use backtrail_formats::{ImportOptions, import};
    use serde_json::json;

    use super::super::super::testing::Fixture;
    use super::*;

    /// Returns a line of a file of Claude Code.
    fn prompt(text: &str, n: u32) -> String {
        let line = json!({
            "type": "user",
            "uuid": format!("0198c0de-0000-4000-8000-00000000000{n}"),
            "sessionId": "0198c0de-1111-4000-8000-000000000000",
            "timestamp": format!("2026-11-18T10:00:0{n}.000Z"),
            "cwd": "/work",
            "message": {"role": "user", "content": text},
        });
        format!("{line}\n")
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests write as agents do")]
    fn a_session_of_an_agent_that_was_imported_grows_by_itself() {
        let fixture = Fixture::new();
        let home = fixture.directory("home");
        let project = fixture.directory("home/.claude/projects/-work");
        let file = project.join("0198c0de-1111-4000-8000-000000000000.jsonl");
        std::fs::write(&file, prompt("one", 1)).unwrap();
        let store = &fixture.library.store;
        let environment = Environment::new(home);
        let (sender, changes) = channel();
        let tell = || -> Tell {
            let sender = sender.clone();
            Arc::new(Mutex::new(Box::new(move |change| {
                drop(sender.send(change))
            })))
        };
        let started = AgentWatch::start(store, environment.clone(), tell());
        assert!(started.is_none(), "it was not imported yet");
        let options = ImportOptions::new(environment.clone()).as_history();
        import(store, &options, &|_| {}).unwrap();
        let session = store.sessions().unwrap().remove(0);
        let watch = AgentWatch::start(store, environment, tell()).unwrap();
        while watch.stop.get().is_none() {
            std::thread::yield_now();
        }
        let mut file = std::fs::File::options().append(true).open(&file).unwrap();
        file.write_all(prompt("two", 2).as_bytes()).unwrap();
        let change = changes.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(change, Change::Session(session.to_string()));
        let reader = store.read_session(&session).unwrap();
        let prompts = reader
            .conversation()
            .unwrap()
            .filter_map(|item| match item {
                Ok(Item::Prompt(prompt)) => Some(prompt.text),
                _ => None,
            });
        assert_eq!(prompts.collect::<Vec<_>>(), ["one", "two"]);
        drop((watch, sender));
        assert!(changes.recv().is_err(), "nothing is left that could tell");
    }
}
