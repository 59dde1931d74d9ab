//! Brings the catalogue up to date behind the answers: a page shows at once what was known, and
//! asks again when it is told that there is more.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use backtrail_view::library::Change;

use super::super::watch::Tell;
use super::super::{IndexAccess, OLDEST, StoreLibrary, lock};
use crate::commands::fresh;
use crate::commands::workspace::freshen_at_once;
use crate::error::Result;

/// The time between two catch-ups of a store that changes all the time.
const PAUSE: Duration = Duration::from_millis(300);

/// A catch-up that may be running. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(in crate::commands::library) struct Refresher(Arc<RefresherState>);

#[derive(Default)]
struct RefresherState {
    /// Whether something changed since the last catch-up began.
    is_old: AtomicBool,
    is_wanted: AtomicBool,
    is_running: AtomicBool,
    /// When the last catch-up ended.
    caught_up: Mutex<Option<Instant>>,
    /// Where changes are reported, while something is watched.
    tell: Mutex<Option<Weak<TellBox>>>,
}

type TellBox = Mutex<Box<dyn Fn(Change) + Send>>;

impl fmt::Debug for RefresherState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefresherState").finish_non_exhaustive()
    }
}

impl Refresher {
    /// Reports from now on what a catch-up found.
    pub(in crate::commands::library) fn tell_through(&self, tell: &Tell) {
        *lock(&self.0.tell) = Some(Arc::downgrade(tell));
    }

    /// Takes note that something in the store changed.
    pub(in crate::commands::library) fn note_change(&self) {
        self.0.is_old.store(true, Ordering::SeqCst);
    }

    /// Catches up in a thread of its own, if the catalogue may be old.
    pub(super) fn wake(&self, library: &StoreLibrary) {
        if !self.0.is_old.swap(false, Ordering::SeqCst) && self.0.is_recent() {
            return;
        }
        self.0.is_wanted.store(true, Ordering::SeqCst);
        if self.0.is_running.swap(true, Ordering::SeqCst) {
            return;
        }
        let (state, index) = (Arc::clone(&self.0), library.index_access());
        let thread = std::thread::Builder::new().name("backtrail-refresh".to_owned());
        let spawned = thread.spawn(move || state.run(&|| catch_up(&index)));
        if spawned.is_err() {
            // The next question tries again.
            self.0.is_running.store(false, Ordering::SeqCst);
        }
    }
}

impl RefresherState {
    /// Returns whether changes are noted, and a catch-up ended a while ago at most: not every
    /// session is watched.
    fn is_recent(&self) -> bool {
        let is_watched = lock(&self.tell)
            .as_ref()
            .is_some_and(|it| it.strong_count() > 0);
        let caught_up = *lock(&self.caught_up);
        is_watched && caught_up.is_some_and(|at| at.elapsed() < OLDEST)
    }

    fn run(&self, catch_up: &dyn Fn() -> Result<u64>) {
        loop {
            while self.is_wanted.swap(false, Ordering::SeqCst) {
                // What cannot be read is reported by the questions.
                let found = catch_up();
                *lock(&self.caught_up) = Some(Instant::now());
                if found.is_ok_and(|sessions| sessions > 0) {
                    self.report();
                }
                std::thread::sleep(PAUSE);
            }
            self.is_running.store(false, Ordering::SeqCst);
            let is_wanted = self.is_wanted.load(Ordering::SeqCst);
            if !is_wanted || self.is_running.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    fn report(&self) {
        let tell = lock(&self.tell).as_ref().and_then(Weak::upgrade);
        if let Some(tell) = tell {
            lock(&tell)(Change::Sessions);
        }
    }
}

/// Brings the catalogue up to date; returns how many sessions changed.
fn catch_up(index: &IndexAccess) -> Result<u64> {
    freshen_at_once(&index.store);
    fresh::import_quietly(&index.store);
    let sessions = index.fresh()?.catch_up()?.sessions;
    if sessions > 0
        && let Some(watched) = &*lock(&index.watched)
    {
        watched.watch_recent(&index.store);
    }
    Ok(sessions)
}
