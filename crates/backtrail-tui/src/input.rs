//! The thread that reads the terminal, and how it is kept from reading what is meant for another
//! program.

use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, Event};
use signal_hook::consts::SIGWINCH;
use signal_hook::low_level::raise;

use crate::event::{Input, Reading};

/// How long the thread may take to notice that it must pause.
const PATIENCE: Duration = Duration::from_millis(500);

/// The thread that reads the terminal.
#[derive(Debug)]
pub(crate) struct InputThread {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    must_pause: bool,
    is_paused: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the thread must pause.
    fn pass(&self) {
        let mut state = self.state();
        while state.must_pause {
            state.is_paused = true;
            self.changed.notify_all();
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.is_paused = false;
    }
}

impl InputThread {
    /// Starts to read; ends with an error if the terminal is gone.
    pub(crate) fn start<M: From<io::Result<Input>> + Send + 'static>(
        to: Sender<M>,
    ) -> io::Result<Self> {
        // Sets up what reads, so that no change of the size is missed from now on.
        event::poll(Duration::ZERO)?;
        let shared = Arc::new(Shared::default());
        let thread = Arc::clone(&shared);
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || read(&thread, &to))?;
        Ok(Self { shared })
    }

    /// Returns when nothing reads the terminal any more.
    pub(crate) fn pause(&self) {
        self.shared.state().must_pause = true;
        // Ends the read that is waiting: a change of the size is something to read.
        raise(SIGWINCH).ok();
        let state = self.shared.state();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, PATIENCE, |state| !state.is_paused);
        drop(waited);
    }

    /// Reads again.
    pub(crate) fn resume(&self) {
        self.shared.state().must_pause = false;
        self.shared.changed.notify_all();
    }
}

fn read<M: From<io::Result<Input>>>(shared: &Shared, to: &Sender<M>) {
    let mut reading = Reading::default();
    loop {
        shared.pass();
        let read: io::Result<Event> = event::read();
        let input = match read {
            Ok(typed) => reading.take(typed).map(Ok),
            Err(error) => Some(Err(error)),
        };
        let is_over = matches!(input, Some(Err(_)));
        let gone = input.is_some_and(|input| to.send(M::from(input)).is_err());
        if is_over || gone {
            return;
        }
    }
}
