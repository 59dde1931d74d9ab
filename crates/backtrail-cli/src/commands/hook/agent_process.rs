//! The agent's process: the nearest one above a hook that is not a shell.

use backtrail::workspace::Process;

use crate::files;

/// Programs that agents run hooks through.
const BETWEEN: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "busybox", "env", "timeout",
];
/// How many processes may be in between.
const MOST: usize = 16;

/// Returns the process of the agent that runs this hook, if the system says.
pub(super) fn agent_process() -> Option<Process> {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..MOST {
        let (name, parent) = look(pid)?;
        if !BETWEEN.contains(&name.as_str()) {
            return (pid > 1).then(|| Process::running(pid))?;
        }
        pid = parent;
    }
    None
}

/// Returns the processes above this one, the nearest first.
pub(crate) fn ancestors() -> Vec<u32> {
    let mut all = Vec::new();
    let mut pid = std::os::unix::process::parent_id();
    while pid > 1 && all.len() < MOST * 4 {
        all.push(pid);
        match look(pid) {
            Some((_, parent)) => pid = parent,
            None => break,
        }
    }
    all
}

/// Returns the parent of a process, unless it has ended.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    look(pid).map(|(_, parent)| parent)
}

/// Returns the name of a process and its parent.
fn look(pid: u32) -> Option<(String, u32)> {
    let stat = files::read(format!("/proc/{pid}/stat").as_ref()).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    Some((name, parent))
}
