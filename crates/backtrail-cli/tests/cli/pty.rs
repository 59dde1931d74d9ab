//! A terminal to drive programs in, with a person at its keyboard.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long a program may be silent before a test gives up on it.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// How long a text may take to come, whatever else does.
const DEADLINE: Duration = Duration::from_secs(180);

pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const CTRL_Z: &str = "\u{1a}";
pub(crate) const CTRL_BACKSLASH: &str = "\u{1c}";

/// A terminal in which a program runs, as the leader of its session.
pub(crate) struct Terminal {
    keyboard: File,
    child: Child,
    /// All that was on the screen.
    screen: String,
    /// How much of it was waited for already.
    seen: usize,
}

/// Returns whether terminals can be made here; says loudly where not.
pub(crate) fn is_there() -> bool {
    let setsid = Command::new("setsid").arg("--version").output();
    let there = setsid.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("SKIPPED: needs setsid; without it there is no terminal");
    }
    there
}

impl Terminal {
    /// Starts a program in a terminal of its own, of 24 lines and 80 columns.
    pub(crate) fn start(command: &Command) -> Self {
        Self::sized(command, 24, 80)
    }

    /// Starts a program in a terminal of its own.
    pub(crate) fn sized(command: &Command, rows: u16, columns: u16) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        resize(&keyboard, rows, columns);
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        // The program itself must not hold the keyboard: it would never hang up.
        rustix::io::fcntl_setfd(&keyboard, rustix::io::FdFlags::CLOEXEC).unwrap();
        let child = in_session(command)
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap();
        Self {
            keyboard: File::from(keyboard),
            child,
            screen: String::new(),
            seen: 0,
        }
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        resize(&self.keyboard, rows, columns);
    }

    /// Waits until a text is on the screen that was not waited for before.
    pub(crate) fn wait_for(&mut self, text: &str) {
        let start = Instant::now();
        loop {
            // A program that shows its progress is never silent.
            let is_late = start.elapsed() > DEADLINE;
            assert!(!is_late, "{text:?} did not come: {:?}", self.screen);
            if let Some(at) = self.screen[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let more = self.read();
            assert!(more, "it ended without {text:?}: {:?}", self.screen);
        }
    }

    /// Reads to the end and returns the exit code (128+n if a signal ended the
    /// program) and all that was on the screen.
    pub(crate) fn end(mut self) -> (i32, String) {
        while self.read() {}
        (self.exit_code(), std::mem::take(&mut self.screen))
    }

    /// Waits for the program; returns its exit code, 128+n if a signal ended it.
    pub(crate) fn exit_code(&mut self) -> i32 {
        let status = self.child.wait().unwrap();
        let code = status.code().or(status.signal().map(|n| 128 + n));
        code.unwrap()
    }

    /// Types the same again and again until the program ends; returns as `end` does.
    pub(crate) fn type_to_the_end(mut self, keys: &str) -> (i32, String) {
        for times in 0.. {
            if self.child.try_wait().unwrap().is_some() {
                break;
            }
            assert!(times < 2000, "it does not end: {:?}", self.screen);
            // Nobody may be there any more to be typed to.
            self.keyboard.write_all(keys.as_bytes()).ok();
            self.wait_for_echo();
        }
        self.end()
    }

    /// Takes from the screen what is there, so that there is room for more.
    fn wait_for_echo(&mut self) {
        let mut fds = [PollFd::new(&self.keyboard, PollFlags::IN)];
        let moment = Timespec {
            tv_sec: 0,
            tv_nsec: 10_000_000,
        };
        if poll(&mut fds, Some(&moment)).unwrap() > 0 {
            self.read();
        }
    }

    /// Pulls the plug: the terminal is gone for those who run in it.
    pub(crate) fn hang_up(self) -> Child {
        self.child
    }

    /// Reads what there is; returns `false` when nobody has the terminal any more.
    fn read(&mut self) -> bool {
        let bytes = self.read_bytes();
        let bytes = bytes.unwrap_or_else(|| panic!("nothing more came after {:?}", self.screen));
        self.screen.push_str(&String::from_utf8_lossy(&bytes));
        !bytes.is_empty()
    }

    /// Returns the process that has the terminal.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Reads what there is: no bytes when nobody has the terminal any more, `None` if nothing
    /// comes for too long.
    pub(crate) fn read_bytes(&mut self) -> Option<Vec<u8>> {
        let mut fds = [PollFd::new(&self.keyboard, PollFlags::IN)];
        let ready = poll(&mut fds, Some(&PATIENCE)).unwrap();
        if ready == 0 {
            return None;
        }
        let mut bytes = [0; 4096];
        // With nobody left on the other side Linux says that reading failed.
        let n = self.keyboard.read(&mut bytes).unwrap_or(0);
        Some(bytes[..n].to_vec())
    }
}

/// Reads what is written to a named pipe, by somebody who opens it in time.
pub(crate) fn read_fifo(path: &Path) -> String {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fifo = rustix::fs::open(path, flags, Mode::empty()).unwrap();
    let mut fds = [PollFd::new(&fifo, PollFlags::IN)];
    let ready = poll(&mut fds, Some(&PATIENCE)).unwrap();
    assert!(ready > 0, "nobody writes to {}", path.display());
    rustix::fs::fcntl_setfl(&fifo, OFlags::empty()).unwrap();
    std::io::read_to_string(File::from(fifo)).unwrap()
}

fn resize(keyboard: &(impl AsFd + ?Sized), ws_row: u16, ws_col: u16) {
    let size = Winsize {
        ws_row,
        ws_col,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(keyboard.as_fd(), size).unwrap();
}

/// Returns a command that starts another as the leader of a session, with the
/// terminal on its stdin as the controlling one.
fn in_session(command: &Command) -> Command {
    let mut setsid = Command::new("setsid");
    setsid.arg("--ctty").arg(command.get_program());
    setsid.args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        setsid.current_dir(dir);
    }
    let set = |(name, value): (&OsStr, Option<&OsStr>)| match value {
        Some(value) => drop(setsid.env(name, value)),
        None => drop(setsid.env_remove(name)),
    };
    command.get_envs().for_each(set);
    setsid
}
