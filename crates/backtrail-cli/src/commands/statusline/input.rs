//! The agent's JSON on stdin: read without ever waiting for long.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The largest input that is kept; agents write a few kilobytes.
const MOST: usize = 1 << 20;
/// How long an agent may take to write, in all and without writing anything.
const IN_ALL: Duration = Duration::from_millis(1000);
const SILENCE: Duration = Duration::from_millis(200);

/// Reads stdin to its end, or for as long as an agent may take. What is longer than an agent's
/// JSON is none.
pub(super) fn read() -> Vec<u8> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Vec::new();
    }
    let until = Instant::now() + IN_ALL;
    let (mut kept, mut is_longer) = (Vec::new(), false);
    let mut buffer = [0; 16 << 10];
    while is_readable(&stdin, until) {
        match rustix::io::read(&stdin, &mut buffer) {
            Ok(0) => break,
            Ok(length) if kept.len() + length <= MOST => kept.extend_from_slice(&buffer[..length]),
            // The agent must be able to write the rest.
            Ok(_) => is_longer = true,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    match is_longer {
        true => Vec::new(),
        false => kept,
    }
}

/// Waits until there is something to read, or the end.
fn is_readable(stdin: &io::Stdin, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let Ok(wait) = Timespec::try_from(left.min(SILENCE)) else {
        return false;
    };
    let mut fds = [PollFd::new(stdin, PollFlags::IN)];
    !left.is_zero() && poll(&mut fds, Some(&wait)).is_ok_and(|ready| ready > 0)
}
