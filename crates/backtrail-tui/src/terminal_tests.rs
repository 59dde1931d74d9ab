//! A terminal for tests: a program runs in it, and what it writes is put on a screen as a real
//! terminal does.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// How long a program may be silent before a test gives up on it.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// Returns the command line that runs an ignored test of this program.
pub(crate) fn this_program(test: &str) -> Vec<String> {
    let this = std::env::current_exe().unwrap();
    let this = this.to_str().unwrap();
    let all = [this, "--exact", test, "--ignored", "--nocapture", "--quiet"];
    all.map(str::to_owned).to_vec()
}

/// A terminal in which a program runs, as the leader of its session.
pub(crate) struct TestTerminal {
    keyboard: File,
    child: Child,
    screen: vt100::Parser,
    /// All that was written.
    pub(crate) written: String,
}

impl TestTerminal {
    /// Starts a program in a terminal of 24 rows and 80 columns.
    pub(crate) fn start(command: &[&OsStr], variables: &[(&str, &OsStr)]) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        rustix::io::fcntl_setfd(&keyboard, rustix::io::FdFlags::CLOEXEC).unwrap();
        let mut setsid = Command::new("setsid");
        setsid.arg("--ctty").args(command);
        setsid.envs(variables.iter().copied());
        set_size(&keyboard, 24, 80);
        let ends = (open(), open(), open());
        let started = setsid.stdin(ends.0).stdout(ends.1).stderr(ends.2).spawn();
        Self {
            keyboard: File::from(keyboard),
            child: started.unwrap(),
            screen: vt100::Parser::new(size(24), size(80), 0),
            written: String::new(),
        }
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.screen.screen_mut().set_size(size(rows), size(columns));
        set_size(&self.keyboard, rows, columns);
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until a text is on the screen.
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |this| this.contents().contains(text));
    }

    /// Waits until something was written.
    pub(crate) fn wait_for_written(&mut self, text: &str) {
        self.wait_until(text, |this| this.written.contains(text));
    }

    fn wait_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let more = self.read();
            assert!(more, "it ended without {what:?}: {:?}", self.written);
        }
    }

    pub(crate) fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    /// Returns whether the terminal is as a shell left it: its first screen, a cursor, echo, no
    /// mouse and no marks around pastes.
    pub(crate) fn is_restored(&self) -> bool {
        let screen = self.screen.screen();
        let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
        !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
            && modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    /// Reads to the end; returns the exit code, 128+n if a signal ended the program.
    pub(crate) fn end(&mut self) -> i32 {
        while self.read() {}
        let status = self.child.wait().unwrap();
        status.code().or(status.signal().map(|n| 128 + n)).unwrap()
    }

    /// Reads what there is; returns `false` when no program has the terminal any more.
    fn read(&mut self) -> bool {
        let mut fds = [PollFd::new(&self.keyboard, PollFlags::IN)];
        let ready = poll(&mut fds, Some(&PATIENCE)).unwrap();
        assert!(ready > 0, "nothing more came after {:?}", self.written);
        let mut bytes = [0; 4096];
        let n = self.keyboard.read(&mut bytes).unwrap_or(0);
        self.screen.process(&bytes[..n]);
        self.answer(&bytes[..n]);
        self.written.push_str(&String::from_utf8_lossy(&bytes[..n]));
        n > 0
    }

    /// Tells where the cursor is, if the program asks.
    fn answer(&mut self, written: &[u8]) {
        const WHERE: &[u8] = b"\x1b[6n";
        if written.windows(WHERE.len()).any(|bytes| bytes == WHERE) {
            let (row, column) = self.screen.screen().cursor_position();
            self.type_keys(&format!("\x1b[{};{}R", row + 1, column + 1));
        }
    }
}

fn size(n: u16) -> NonZero<u16> {
    NonZero::new(n).unwrap()
}

fn set_size(keyboard: &impl AsFd, ws_row: u16, ws_col: u16) {
    let size = Winsize {
        ws_row,
        ws_col,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(keyboard, size).unwrap();
}
