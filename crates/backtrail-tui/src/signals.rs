//! Signals, as messages.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// How long a stop may take to begin. Where nothing could continue us, there is none.
const STOP_BEGINS: Duration = Duration::from_millis(100);

/// Receives the signals that would end us with the terminal in disorder, and the one after a
/// stop.
#[derive(Debug)]
pub(crate) struct SignalThread {
    /// Whether another program has the terminal. Keys for it reach us as signals, too.
    is_away: Arc<AtomicBool>,
    /// Receives something when we continue after a stop.
    continued: Receiver<()>,
}

impl SignalThread {
    /// Tells each signal.
    pub(crate) fn start(tell: impl Fn(i32) + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGCONT])?;
        let is_away = Arc::new(AtomicBool::new(false));
        let away = Arc::clone(&is_away);
        let (continues, continued) = channel();
        let work = move || {
            for signal in signals.forever() {
                match (signal, away.load(Ordering::SeqCst)) {
                    (SIGTERM | SIGHUP, _) | (_, false) => tell(signal),
                    (SIGCONT, true) => drop(continues.send(())),
                    _ => {}
                }
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(work)?;
        Ok(Self { is_away, continued })
    }

    /// Sets whether another program has the terminal.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    /// Stops the process and its job, as Ctrl-Z does. Returns when it continues, and soon where
    /// nothing could continue it.
    pub(crate) fn stop(&self) -> io::Result<()> {
        while self.continued.try_recv().is_ok() {}
        kill_current_process_group(Signal::TSTP)?;
        // The signal may reach another thread of ours first. The time is over when we continue.
        self.continued.recv_timeout(STOP_BEGINS).ok();
        Ok(())
    }
}

/// Returns whether a signal asks the process to end.
pub(crate) fn ends(signal: i32) -> bool {
    signal != SIGCONT
}

/// Ends the process as the signal would have.
pub(crate) fn end_by(signal: i32) -> io::Result<()> {
    emulate_default_handler(signal)
}
