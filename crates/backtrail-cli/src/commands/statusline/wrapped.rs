//! The command that the agent ran for its status line before ours: it may fail, print anything
//! and never end.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The most that is printed of its output.
const MOST: usize = 64 << 10;
/// How long its output may take after its end: a process that it started may keep it open.
const AFTER_END: Duration = Duration::from_millis(50);
/// Ends the styles that it left open.
const PLAIN: &[u8] = b"\x1b[0m";

/// A command that is running.
pub(super) struct Wrapped {
    pid: Option<Pid>,
    output: Arc<Mutex<Vec<u8>>>,
    events: Receiver<Event>,
}

enum Event {
    OutputEnded,
    CommandEnded,
}

impl Wrapped {
    /// Starts a command with the agent's input; `None` if it cannot be started.
    pub(super) fn start(command: &str, input: &[u8]) -> Option<Self> {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // It can be ended with all that it started.
            .process_group(0)
            .spawn()
            .ok()?;
        let (sender, events) = channel();
        let output = Arc::default();
        write(&mut child, input.to_vec());
        read(&mut child, &output, sender.clone());
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        spawn(move || {
            child.wait().ok();
            sender.send(Event::CommandEnded).ok();
        });
        Some(Self {
            pid,
            output,
            events,
        })
    }

    /// Returns its output, whole lines, if it ends in time; else what there is, and ends it.
    pub(super) fn output(self, wait: Duration) -> Vec<u8> {
        if !self.wait(wait)
            && let Some(pid) = self.pid
        {
            // It may have just ended.
            kill_process_group(pid, Signal::KILL).ok();
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let mut output = std::mem::take(&mut *output);
        while output.last().is_some_and(u8::is_ascii_whitespace) {
            output.pop();
        }
        if output.is_empty() {
            return output;
        }
        if output.contains(&0x1b) {
            output.extend_from_slice(PLAIN);
        }
        output.push(b'\n');
        output
    }

    /// Waits for the end of the output; returns whether it came.
    fn wait(&self, wait: Duration) -> bool {
        let mut until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::OutputEnded) => return true,
                Ok(Event::CommandEnded) => until = until.min(Instant::now() + AFTER_END),
                Err(_) => return false,
            }
        }
    }
}

/// Passes the input on. A command that does not read it loses nothing.
fn write(child: &mut Child, input: Vec<u8>) {
    if let Some(mut stdin) = child.stdin.take() {
        spawn(move || drop(stdin.write_all(&input)));
    }
}

/// Collects the output as it comes.
fn read(child: &mut Child, output: &Arc<Mutex<Vec<u8>>>, sender: Sender<Event>) {
    let Some(mut stdout) = child.stdout.take() else {
        return;
    };
    let output = Arc::clone(output);
    spawn(move || {
        let mut buffer = [0; 4 << 10];
        while let Ok(length @ 1..) = stdout.read(&mut buffer) {
            let mut kept = output.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MOST.saturating_sub(kept.len());
            kept.extend_from_slice(&buffer[..length.min(room)]);
        }
        sender.send(Event::OutputEnded).ok();
    });
}

/// Starts a thread that is left behind at the end. Without it, the wait is in vain, but ends.
fn spawn(work: impl FnOnce() + Send + 'static) {
    thread::Builder::new().spawn(work).ok();
}
