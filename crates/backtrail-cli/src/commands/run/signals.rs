//! The signals that we get while a command runs.
//!
//! The command is in our process group, so signals from the terminal (Ctrl-C, Ctrl-\,
//! Ctrl-Z) reach it without us; we only have to outlive it. A signal that a process sends to
//! us alone is meant for the command and is forwarded. Our handlers do not survive exec: the
//! command starts with the dispositions that we were started with.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getpid, getppid, getsid, kill_process};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::flag;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::{Cause, Chld, Origin};

use crate::files;

/// The signals that must end or stop the command, not us.
const FORWARDED: [i32; 5] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP];

/// Keeps us alive while a command runs.
#[derive(Debug)]
pub(super) struct Signals {
    waiting: SignalsInfo<WithOrigin>,
}

/// News of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Something may have changed.
    Any,
    /// It was stopped and continues, or did for a moment.
    Continued,
}

impl Signals {
    /// Takes over the signals. Ignored ones stay ignored, in the command too, as `nohup`
    /// expects.
    pub(super) fn take_over() -> io::Result<Self> {
        let ignored = ignored_signals();
        let ours = FORWARDED.into_iter().filter(|n| !ignored.contains(*n));
        let waiting = SignalsInfo::new(ours.chain([SIGCHLD]))?;
        Ok(Self { waiting })
    }

    /// Obeys a signal that came before the command was started: it ends us.
    pub(super) fn obey_pending(&mut self) {
        for origin in self.waiting.pending() {
            if origin.signal != SIGCHLD {
                // Fails only for signals without a default action.
                emulate_default_handler(origin.signal).ok();
            }
        }
    }

    /// Waits for a signal, also one about the command's state, and forwards those that were
    /// sent to us alone.
    pub(super) fn wait(&mut self, command: Pid) -> News {
        let mut news = News::Any;
        for origin in self.waiting.wait() {
            if origin.cause == Cause::Chld(Chld::Continued) {
                news = News::Continued;
            } else if origin.signal != SIGCHLD && is_ours_alone(&origin, command) {
                send(command, origin.signal);
            }
        }
        news
    }

    /// Releases the signals when the command has ended. The first Ctrl-C after that was most
    /// likely still meant for the command; a second one ends us, as Ctrl-\ does at once.
    /// SIGTERM and SIGHUP are no reason to leave the work half done.
    pub(super) fn release(self) {
        drop(self);
        let ignored = ignored_signals();
        let again = Arc::new(AtomicBool::new(false));
        // If registering fails, the signal stays blocked until we exit.
        if !ignored.contains(SIGINT) {
            // In this order: the first Ctrl-C sets the flag that the second one finds.
            flag::register_conditional_default(SIGINT, Arc::clone(&again)).ok();
            flag::register(SIGINT, again).ok();
        }
        if !ignored.contains(SIGQUIT) {
            flag::register_conditional_default(SIGQUIT, Arc::new(AtomicBool::new(true))).ok();
        }
    }
}

/// Returns whether we got a signal that the command did not get.
fn is_ours_alone(origin: &Origin, command: Pid) -> bool {
    match origin.process {
        // The command signalled its whole group.
        Some(sender) => sender.pid != command.as_raw_nonzero().get(),
        // From the terminal: keys reach the whole group, a hangup only the session leader.
        None => origin.signal == SIGHUP,
    }
}

fn send(command: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // It may have ended by now.
        kill_process(command, signal).ok();
    }
}

/// Stops us because the command is stopped, so that the shell gets its terminal back.
/// Returns once we are continued, or `false` at once without job control.
pub(super) fn stop_too(command: Pid) -> bool {
    if !has_job_control() {
        return false;
    }
    let terminal = Terminal::note();
    // Not the signal that stopped the command: we handle that one.
    if kill_process(getpid(), Signal::STOP).is_err() {
        return false;
    }
    if let Some(terminal) = terminal {
        terminal.give_back();
    }
    // A shell continues a whole group. Continuing a command of our own group once more could
    // undo its next stop; one in another group waits for us.
    if getpgid(Some(command)).is_ok_and(|group| group != getpgrp()) {
        kill_process(command, Signal::CONT).ok();
    }
    true
}

/// The terminal, and the process group that had it when the command stopped: the command's
/// own, as in an interactive shell. The shell around us knows only our group.
struct Terminal {
    tty: OwnedFd,
    group: Pid,
}

impl Terminal {
    /// Returns `None` if the terminal belongs to our group or to none.
    fn note() -> Option<Self> {
        let tty = open("/dev/tty", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let group = tcgetpgrp(&tty).ok()?;
        (group != getpgrp()).then_some(Self { tty, group })
    }

    /// Gives the terminal back, unless we continue in the background.
    fn give_back(self) {
        if tcgetpgrp(&self.tty).is_ok_and(|group| group == getpgrp()) {
            // If the group is gone, the terminal stays with us.
            tcsetpgrp(&self.tty, self.group).ok();
        }
    }
}

/// Returns whether our parent controls us as a job: it is in our session, but not in our
/// process group.
fn has_job_control() -> bool {
    let parent = getppid();
    let same_session = matches!((getsid(parent), getsid(None)), (Ok(a), Ok(b)) if a == b);
    let other_group = getpgid(parent).is_ok_and(|group| group != getpgrp());
    parent.is_some() && same_session && other_group
}

/// The signals that are ignored, signal n as bit n-1.
#[derive(Debug, PartialEq, Eq)]
struct Ignored(u64);

impl Ignored {
    fn contains(&self, signal: i32) -> bool {
        self.0 >> (signal - 1) & 1 == 1
    }

    /// Parses `/proc/self/status`; without the field, nothing is ignored.
    fn parse(status: &str) -> Self {
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        Self(mask.unwrap_or(0))
    }
}

/// Returns the signals that our parent made us ignore.
fn ignored_signals() -> Ignored {
    let status = files::read(Path::new("/proc/self/status")).unwrap_or_default();
    Ignored::parse(&status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001003\n";
        let ignored = Ignored::parse(status);
        assert!(ignored.contains(SIGHUP) && ignored.contains(SIGINT));
        assert!(!ignored.contains(SIGTERM) && !ignored.contains(SIGQUIT));
        assert_eq!(Ignored::parse("Name:\tx\n"), Ignored(0));
        assert_eq!(Ignored::parse("SigIgn:\tnonsense\n"), Ignored(0));
    }
}
