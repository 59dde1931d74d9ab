//! The machine that was measured, without which figures mean nothing.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backtrail::{Clock, SystemClock};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::Result;
use crate::snapshot::git;

/// The properties of the machine that affect times.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    date: String,
    cores: usize,
    processor: String,
    memory_mib: u64,
    kernel: String,
    git: String,
    dir: PathBuf,
    pub(crate) file_system: String,
    device: String,
    load_before: String,
    load_after: String,
}

impl Machine {
    /// Reads the properties of the machine and of the file system of `dir`.
    pub(crate) fn look(dir: &Path) -> Result<Self> {
        let dir = dir.canonicalize()?;
        let (file_system, device) = read("/proc/self/mountinfo")
            .and_then(|mounts| mount_of(&mounts, &dir))
            .unwrap_or_else(|| ("unknown".to_owned(), "unknown".to_owned()));
        Ok(Self {
            date: SystemClock.now().to_string(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: value("/proc/cpuinfo", "model name"),
            memory_mib: value("/proc/meminfo", "MemTotal")
                .trim_end_matches(" kB")
                .parse::<u64>()
                .map_or(0, |kib| kib / 1024),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            git: git::version().unwrap_or_else(|why| format!("none ({why})")),
            dir,
            file_system,
            device,
            load_before: load(),
            load_after: String::new(),
        })
    }

    /// Adds how busy the machine is after the measurements.
    pub(crate) fn and_now(mut self) -> Self {
        self.load_after = load();
        self
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.file_system.as_str(), "tmpfs" | "ramfs")
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "date": self.date,
            "cores": self.cores,
            "processor": self.processor,
            "memory_mib": self.memory_mib,
            "kernel": self.kernel,
            "git": self.git,
            "dir": self.dir.display().to_string(),
            "file_system": self.file_system,
            "device": self.device,
            "load_before": self.load_before,
            "load_after": self.load_after,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "date         {}", self.date)?;
        writeln!(f, "processor    {} x {}", self.cores, self.processor)?;
        writeln!(f, "memory       {} MiB", self.memory_mib)?;
        writeln!(f, "kernel       {}", self.kernel)?;
        writeln!(f, "git          {}", self.git)?;
        writeln!(
            f,
            "file system  {} on {} ({})",
            self.file_system,
            self.device,
            self.dir.display()
        )?;
        writeln!(
            f,
            "load         {} before, {} after",
            self.load_before, self.load_after
        )
    }
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

/// Returns the first value of a field in a file of `name: value` lines.
pub(crate) fn value(path: &str, name: &str) -> String {
    let text = read(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map_or_else(|| "unknown".to_owned(), |(_, v)| v.trim().to_owned())
}

/// Returns the peak memory of a process, in bytes.
pub(crate) fn peak_memory(pid: u32) -> Result<u64> {
    let peak = value(&format!("/proc/{pid}/status"), "VmHWM");
    let kib: u64 = peak.trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

/// Returns how long the threads of a process have run, in the kernel too. Those that ended do not
/// count.
pub(crate) fn work(pid: u32) -> Result<Duration> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = match fs::read_to_string(thread?.path().join("schedstat")) {
            Err(error) if is_gone(&error) => continue,
            read => read?,
        };
        let ran = text.split(' ').next().unwrap_or_default();
        nanos += ran.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// Returns whether a thread ended since it was listed: before its file was opened, or read.
fn is_gone(error: &std::io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::SRCH];
    gone.iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Returns how many processes wanted to run in the last minute.
fn load() -> String {
    let text = read("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Returns the type and device of the file system that holds `dir`: that of the innermost
/// mount point, and of the last one if several share it.
fn mount_of(mountinfo: &str, dir: &Path) -> Option<(String, String)> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (place, source) = line.split_once(" - ")?;
        let point = place.split(' ').nth(4)?.replace("\\040", " ");
        let mut source = source.split(' ');
        let kind = (source.next()?.to_owned(), source.next()?.to_owned());
        dir.starts_with(&point).then_some((point.len(), kind))
    });
    mounts.max_by_key(|(len, _)| *len).map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
                      22 21 0:5 / /tmp rw - tmpfs tmp rw\n\
                      23 21 0:6 / /tmp\\040x rw shared:1 - xfs /dev/vdb rw\n";
        let of = |dir| mount_of(mounts, Path::new(dir)).map(|(kind, _)| kind);
        assert_eq!(of("/home/u").as_deref(), Some("ext4"));
        assert_eq!(of("/tmp/a").as_deref(), Some("tmpfs"));
        assert_eq!(of("/tmp x").as_deref(), Some("xfs"));
        assert_eq!(of("/tmpfile").as_deref(), Some("ext4"));
    }
}
