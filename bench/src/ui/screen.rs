//! A program on a terminal of its own: keys in, a screen out, and when it was there.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::{Result, machine};

pub(super) const CTRL_C: &str = "\u{3}";
pub(super) const CTRL_U: &str = "\u{15}";
pub(super) const ENTER: &str = "\r";
pub(super) const ESC: &str = "\u{1b}";
pub(super) const PAGE_UP: &str = "\u{1b}[5~";

/// How long a program may be silent before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// The rows and columns of a terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size(pub(super) NonZero<u16>, pub(super) NonZero<u16>);

impl Size {
    /// Lists and conversations side by side.
    pub(super) const WIDE: Self = Self::new(40, 160);
    /// One panel at a time.
    pub(super) const NARROW: Self = Self::new(40, 90);

    const fn new(rows: u16, columns: u16) -> Self {
        match (NonZero::new(rows), NonZero::new(columns)) {
            (Some(rows), Some(columns)) => Self(rows, columns),
            _ => panic!("a terminal has rows and columns"),
        }
    }
}

/// A program and its screen. The program ends with it.
pub(super) struct Screen {
    keyboard: File,
    child: Child,
    parser: vt100::Parser,
    began: Instant,
}

impl Screen {
    /// Starts a program as the leader of its session.
    pub(super) fn start(command: &Command, size: Size) -> Result<Self> {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&keyboard)?;
        unlockpt(&keyboard)?;
        // The program itself must not hold the keyboard: it would never hang up.
        fcntl_setfd(&keyboard, FdFlags::CLOEXEC)?;
        let Size(rows, columns) = size;
        let cells = Winsize {
            ws_row: rows.get(),
            ws_col: columns.get(),
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&keyboard, cells)?;
        let name = ptsname(&keyboard, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(name.as_c_str(), flags, Mode::empty());
        let mut command = in_session(command);
        command.stdin(open()?).stdout(open()?).stderr(open()?);
        let began = Instant::now();
        Ok(Self {
            child: command.spawn()?,
            keyboard: File::from(keyboard),
            parser: vt100::Parser::new(rows, columns, 0),
            began,
        })
    }

    /// Returns when the program was started.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Presses keys; returns when.
    pub(super) fn press(&mut self, keys: &str) -> Result<Instant> {
        let pressed = Instant::now();
        self.keyboard.write_all(keys.as_bytes())?;
        Ok(pressed)
    }

    /// Returns the text on the screen.
    pub(super) fn contents(&self) -> String {
        self.parser.screen().contents()
    }

    /// Waits until a text is on the screen; returns when it was there.
    pub(super) fn wait_for(&mut self, text: &str) -> Result<Instant> {
        self.wait(text, |screen| screen.contents().contains(text))
    }

    /// Presses keys that change something, if only colours; returns how long it took until the
    /// screen changed last.
    pub(super) fn press_and_settle(&mut self, keys: &str, quiet: Duration) -> Result<Duration> {
        let before = self.look();
        let pressed = self.press(keys)?;
        let first = self.wait("another screen", |screen| screen.look() != before)?;
        let last = self.settle(quiet)?.unwrap_or(first);
        Ok(last.duration_since(pressed))
    }

    /// Returns the text on the screen with its colours.
    fn look(&self) -> String {
        self.parser.screen().contents_formatted()
    }

    fn wait(&mut self, what: &str, is_right: impl Fn(&Self) -> bool) -> Result<Instant> {
        let mut at = Instant::now();
        while !is_right(self) {
            let why = match self.read(PATIENCE)? {
                Some((came, 1..)) => {
                    at = came;
                    continue;
                }
                Some((_, 0)) => "the program ended",
                None => "the program waits",
            };
            return Err(format!("{why}, without {what:?}:\n{}", self.contents()).into());
        }
        Ok(at)
    }

    /// Reads until nothing comes for a while; returns when the screen changed last.
    pub(super) fn settle(&mut self, quiet: Duration) -> Result<Option<Instant>> {
        let mut last = None;
        let mut look = self.look();
        while let Some((at, read)) = self.read(quiet)? {
            if read == 0 {
                return Err(format!("the program ended:\n{}", self.contents()).into());
            }
            let now = self.look();
            if now != look {
                (last, look) = (Some(at), now);
            }
        }
        Ok(last)
    }

    /// Shows what there is. Returns when it came and how many bytes it was, none if the program
    /// has left the terminal; `None` if nothing came for so long.
    fn read(&mut self, patience: Duration) -> Result<Option<(Instant, usize)>> {
        let mut fds = [PollFd::new(&self.keyboard, PollFlags::IN)];
        if poll(&mut fds, Some(&Timespec::try_from(patience)?))? == 0 {
            return Ok(None);
        }
        let mut bytes = [0; 1 << 16];
        // With nobody left on the other side Linux says that reading failed.
        let read = self.keyboard.read(&mut bytes).unwrap_or(0);
        let at = Instant::now();
        self.parser.process(&bytes[..read]);
        Ok(Some((at, read)))
    }

    /// Returns the peak memory of the program so far, in bytes.
    pub(super) fn peak_memory(&self) -> Result<u64> {
        machine::peak_memory(self.child.id())
    }

    /// Returns how long the threads of the program have run, in the kernel too.
    pub(super) fn work(&self) -> Result<Duration> {
        machine::work(self.child.id())
    }

    /// Leaves the program as a user does, and waits for its end.
    pub(super) fn quit(mut self) -> Result<()> {
        self.press(CTRL_C)?;
        self.press(CTRL_C)?;
        while let Some((_, 1..)) = self.read(PATIENCE)? {}
        match self.child.wait()? {
            status if status.success() => Ok(()),
            status => Err(format!("the program ended with {status}:\n{}", self.contents()).into()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It has ended already, unless something failed.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Returns a command that starts another as the leader of a session, with the terminal on its stdin
/// as the controlling one. It becomes that other: the process is the same.
fn in_session(command: &Command) -> Command {
    let mut setsid = Command::new("setsid");
    setsid.arg("--ctty").arg(command.get_program());
    setsid.args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        setsid.current_dir(dir);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => setsid.env(name, value),
            None => setsid.env_remove(name),
        };
    }
    setsid
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8");
    for name in ["SSH_CONNECTION", "DISPLAY", "WAYLAND_DISPLAY", "NO_COLOR"] {
        setsid.env_remove(name);
    }
    setsid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Screen> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Screen::start(&command, Size::NARROW)
    }

    #[test]
    fn a_key_is_answered_on_the_screen_and_the_time_of_it_is_known() {
        let mut screen = shell("stty -echo; echo ready; read x; echo got $x; read y").unwrap();
        let ready = screen.wait_for("ready").unwrap();
        assert!(ready > screen.began());
        let pressed = screen.press("abc\r").unwrap();
        assert!(screen.wait_for("got abc").unwrap() > pressed);
        assert!(screen.peak_memory().unwrap() > 0);
        assert!(screen.work().unwrap() > Duration::ZERO);
    }

    #[test]
    fn a_program_that_ends_is_not_waited_for() {
        let mut screen = shell("echo bye").unwrap();
        let error = screen.wait_for("hello").unwrap_err().to_string();
        assert!(error.contains("the program ended") && error.contains("bye"));
    }

    #[test]
    fn the_last_change_counts_when_all_is_quiet() {
        let script = "stty -echo; echo ready; read x; echo one; sleep 0.05; echo two; read y";
        let mut screen = shell(script).unwrap();
        screen.wait_for("ready").unwrap();
        let took = screen.press_and_settle("\r", Duration::from_secs(3));
        assert!(took.unwrap() >= Duration::from_millis(50));
        assert!(screen.contents().contains("two"));
    }
}
