//! The child process: it has our streams, terminal and process group, and sets our exit
//! code.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use backtrail::rewind::Ending;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::executable;
use super::signals::{News, Signals, stop_too};
use crate::error::CommandError;
use crate::home;
use crate::shell::quote;

/// Backtrail failed, not the command.
pub(crate) const FAILED: u8 = 125;
/// The command cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
const NOT_FOUND: u8 = 127;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Code(u8),
    Signal(i32),
}

/// A command that was not started, or could not be waited for.
#[derive(Debug)]
pub(super) struct NotRun {
    /// Our exit code.
    pub(super) code: u8,
    pub(super) error: Box<CommandError>,
}

impl NotRun {
    pub(super) fn new(code: u8, error: CommandError) -> Self {
        Self {
            code,
            error: Box::new(error),
        }
    }
}

impl Ended {
    /// Returns the exit code that a shell would report.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }

    /// Returns the exit code, or the signal that ended it.
    pub(super) fn code_or_signal(self) -> (Option<i32>, Option<i32>) {
        match self {
            Self::Code(code) => (Some(i32::from(code)), None),
            Self::Signal(signal) => (None, Some(signal)),
        }
    }

    pub(super) fn ending(self) -> Ending {
        let (exit_code, signal) = self.code_or_signal();
        Ending::of_command(exit_code, signal)
    }

    /// Returns `exited with code 3` or `was killed by signal 9`.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Code(code) => format!("exited with code {code}"),
            Self::Signal(signal) => format!("was killed by signal {signal}"),
        }
    }

    fn new(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Signal(signal),
            // The system keeps eight bits.
            None => Self::Code((status.code().unwrap_or(0) & 0xff) as u8),
        }
    }
}

/// Runs a command to its end. Ctrl-C reaches the command; afterwards a single one does not
/// end us. Without a directory it runs in the current one.
pub(super) fn run(
    argv: &[OsString],
    env: &[(&str, &OsStr)],
    directory: Option<&Path>,
) -> Result<Ended, NotRun> {
    let Some((program, args)) = argv.split_first() else {
        return Err(lost(&io::ErrorKind::InvalidInput.into()));
    };
    let mut signals = Signals::take_over().map_err(|error| lost(&error))?;
    signals.obey_pending();
    let mut command = Command::new(program);
    command.args(args).envs(env.iter().copied());
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let started = command.spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            signals.release();
            return Err(not_started(program, &error));
        }
    };
    let status = wait(&mut child, &mut signals).map_err(|error| lost(&error))?;
    signals.release();
    Ok(Ended::new(status))
}

/// The state of a running command.
enum State {
    Running,
    Stopped,
    Ended,
}

fn wait(child: &mut Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    // Whether we have stopped for this stop already: what continues us also continues the
    // command, perhaps a moment later.
    let mut answered = false;
    loop {
        match look(pid)? {
            State::Ended => return child.wait(),
            State::Running => answered = false,
            State::Stopped if answered => {}
            State::Stopped => answered = stop_too(pid),
        }
        if signals.wait(pid) == News::Continued {
            answered = false;
        }
    }
}

/// Reads the state without reaping the process: until then its id is not reused, and a
/// signal that we forward cannot reach another process.
fn look(pid: Pid) -> io::Result<State> {
    let options = WaitIdOptions::EXITED
        | WaitIdOptions::STOPPED
        | WaitIdOptions::NOHANG
        | WaitIdOptions::NOWAIT;
    Ok(match waitid(WaitId::Pid(pid), options)? {
        None => State::Running,
        Some(status) if status.stopped() => State::Stopped,
        Some(_) => State::Ended,
    })
}

fn lost(error: &io::Error) -> NotRun {
    let error = CommandError::io("cannot wait for the command", None, error);
    NotRun::new(FAILED, error)
}

/// Returns the error for a command that did not start, with a shell's exit code for it.
fn not_started(program: &OsStr, error: &io::Error) -> NotRun {
    let name = quote(&program.to_string_lossy());
    let path = Path::new(program);
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let exists = match is_path {
        true => path.exists(),
        false => home::in_path(path).is_some(),
    };
    let no_hint = String::new;
    let (code, reason, hint) = match Errno::from_io_error(error) {
        Some(Errno::NOENT) if exists => {
            let hint = "check its first line (#!) or its ELF interpreter";
            (NOT_FOUND, "its interpreter does not exist", hint.to_owned())
        }
        Some(Errno::NOENT) if is_path => (NOT_FOUND, "no such file", no_hint()),
        // An unreadable directory of PATH counts as empty.
        Some(Errno::NOENT | Errno::ACCESS) if !exists && !is_path => {
            let hint = "shell functions and aliases cannot be run; use sh -c '…'";
            (NOT_FOUND, "command not found", hint.to_owned())
        }
        Some(Errno::ACCESS) if is_path && path.is_dir() => {
            (NOT_EXECUTABLE, "is a directory", no_hint())
        }
        Some(Errno::ACCESS) if is_path => {
            let hint = format!("make it executable: chmod +x {name}");
            (NOT_EXECUTABLE, "not executable", hint)
        }
        Some(Errno::ACCESS) => (NOT_EXECUTABLE, "not executable", no_hint()),
        Some(Errno::NOEXEC) => {
            let hint = format!("if it is a shell script: backtrail run -- sh {name}");
            (NOT_EXECUTABLE, "not an executable and no #! line", hint)
        }
        errno => {
            use Errno as E;
            // The system is out of resources; the command may be fine.
            let code = match errno {
                Some(E::AGAIN | E::NOMEM | E::MFILE | E::NFILE) => FAILED,
                _ => NOT_EXECUTABLE,
            };
            let what = format!("cannot run {name}");
            return NotRun::new(code, CommandError::io(what, None, error));
        }
    };
    let what = format!("cannot run {name}: {reason}");
    let error = match code {
        NOT_FOUND => CommandError::not_found(what),
        _ => CommandError::invalid(what),
    };
    NotRun::new(
        code,
        match hint.is_empty() {
            true => error,
            false => error.hint(hint),
        },
    )
}

/// Refuses a command that cannot start, before anything is written for it.
pub(super) fn check(argv: &[OsString]) -> Result<(), NotRun> {
    let Some(program) = argv.first() else {
        return Err(lost(&io::ErrorKind::InvalidInput.into()));
    };
    executable::find(program).map_err(|errno| not_started(program, &errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_the_one_a_shell_reports() {
        assert_eq!(Ended::Code(3).code(), 3);
        assert_eq!(Ended::Signal(2).code(), 130);
        assert_eq!(Ended::Signal(64).code(), 192);
        assert_eq!(Ended::new(ExitStatus::from_raw(0x0700)), Ended::Code(7));
        assert_eq!(Ended::new(ExitStatus::from_raw(9)), Ended::Signal(9));
    }

    #[test]
    fn a_lack_of_resources_is_not_the_commands_fault() {
        let short = io::Error::from(Errno::AGAIN);
        assert_eq!(not_started(OsStr::new("ls"), &short).code, FAILED);
        let too_long = io::Error::from(Errno::TOOBIG);
        assert_eq!(
            not_started(OsStr::new("ls"), &too_long).code,
            NOT_EXECUTABLE
        );
    }
}
