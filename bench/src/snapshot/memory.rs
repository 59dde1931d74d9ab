//! The peak memory of a process.
//!
//! It can only be read while the process exists. So its output goes into a full pipe:
//! when it has finished its work and wants to report that, it waits and can be inspected.

use std::io::{PipeReader, Read, Write};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::Result;
use crate::machine;

/// How often a process is inspected, and how often it must be idle in a row.
const PAUSE: Duration = Duration::from_millis(10);
const IDLE: usize = 30;

/// Runs a command that prints only at its end; returns its peak memory and its output.
pub(super) fn peak(command: &mut Command) -> Result<(u64, Vec<u8>)> {
    let (mut reader, mut writer) = std::io::pipe()?;
    let filled = fill(&mut writer)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()?;
    // The command holds the pipe's other end until it gets a new one.
    command.stdout(Stdio::null());
    let idle = wait_until_idle(child.id());
    let peak = machine::peak_memory(child.id());
    let told = read_behind(&mut reader, filled)?;
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{command:?} failed: {status}").into());
    }
    idle?;
    Ok((peak?, told))
}

/// Fills a pipe and returns its capacity.
fn fill(writer: &mut std::io::PipeWriter) -> Result<usize> {
    let flags = fcntl_getfl(&*writer)?;
    fcntl_setfl(&*writer, flags | OFlags::NONBLOCK)?;
    let mut filled = 0;
    while let Ok(n) = writer.write(&[0; 4096]) {
        filled += n;
    }
    fcntl_setfl(&*writer, flags)?;
    Ok(filled)
}

fn read_behind(reader: &mut PipeReader, filled: usize) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    reader.read_to_end(&mut all)?;
    Ok(all.split_off(filled.min(all.len())))
}

/// Waits until no thread of a process has run or waited for the disk for a while.
fn wait_until_idle(pid: u32) -> Result<()> {
    let mut idle = 0;
    let mut before = String::new();
    while idle < IDLE {
        sleep(PAUSE);
        let (sleeps, used) = state(pid)?;
        idle = if sleeps && used == before {
            idle + 1
        } else {
            0
        };
        before = used;
    }
    Ok(())
}

/// Returns whether all threads of a process sleep, and the time that they have used.
fn state(pid: u32) -> Result<(bool, String)> {
    let mut sleeps = true;
    let mut used = String::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile.
        let Ok(stat) = std::fs::read_to_string(task?.path().join("stat")) else {
            sleeps = false;
            continue;
        };
        let (_, fields) = stat.rsplit_once(')').ok_or("a line of another form")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            return Err("the process told nothing before it ended".into());
        }
        sleeps &= fields.first() == Some(&"S");
        used += &fields.get(11..13).unwrap_or_default().join("+");
        used.push(' ');
    }
    Ok((sleeps, used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_a_process_that_tells_little_is_seen() {
        let mut little = Command::new("sh");
        little.args([
            "-c",
            "x=$(head -c 30000000 /dev/zero | tr '\\0' x); echo ${#x}",
        ]);
        let (peak, told) = peak(&mut little).unwrap();
        assert_eq!(told, b"30000000\n");
        assert!((30_000_000..1 << 30).contains(&peak), "{peak}");
    }

    #[test]
    fn a_process_that_tells_nothing_or_fails_has_no_peak() {
        assert!(peak(&mut Command::new("true")).is_err());
        assert!(peak(&mut Command::new("false")).is_err());
    }
}
