//! The program under strace, which can make its system calls fail or kill it at one of them.

use std::ffi::OsStr;
use std::process::Command;

/// Returns whether strace is here and may trace; reports what is not tested where it is not.
pub(crate) fn is_there(lost: &str) -> bool {
    let traced = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output();
    let there = traced.is_ok_and(|ran| ran.status.success());
    if !there {
        eprintln!("SKIPPED: needs strace; {lost}");
    }
    there
}

/// Returns a command under strace, with the options given.
pub(crate) fn under<S: AsRef<OsStr>>(options: &[S], command: &Command) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-qq", "-f", "-o", "/dev/null"]).args(options);
    strace.arg(command.get_program()).args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        strace.current_dir(dir);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    strace
}

/// Returns a command that is killed before its nth call of a system call. If it does not come
/// that far, it ends as ever.
pub(crate) fn killed_at(call: &str, nth: u32, command: &Command) -> Command {
    let inject = format!("inject={call}:signal=KILL:when={nth}");
    under(&["-e", &format!("trace={call}"), "-e", &inject], command)
}
