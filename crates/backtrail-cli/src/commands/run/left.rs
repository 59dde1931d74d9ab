//! Processes that outlive the command that started them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use backtrail::workspace::{LeftProcess, Process};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::commands::hook::parent_of;
use crate::files;
use crate::text::{one_line, some_of, visible};

/// How long processes that are about to end are waited for.
const GRACE: Duration = Duration::from_millis(100);
/// How much of a command line is shown.
const SHOWN: usize = 40;

/// Makes the command's orphans our children, so that they can be told and reaped.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // Without it they belong to the system, and are not told.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
}

/// Returns the processes that the command left behind, after those that ended are reaped.
pub(super) fn left_running() -> Vec<LeftProcess> {
    reap();
    if children().is_empty() {
        return Vec::new();
    }
    std::thread::sleep(GRACE);
    reap();
    children()
}

fn reap() {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::All, ended) {}
}

/// Returns our children, each with its command line. What works for us in the
/// background is not the command's.
fn children() -> Vec<LeftProcess> {
    let own = std::process::id();
    let Ok(all) = files::entries(Path::new("/proc")) else {
        return Vec::new();
    };
    let program = std::env::current_exe().ok();
    let child = |path: PathBuf| {
        let pid: u32 = path.file_name()?.to_str()?.parse().ok()?;
        let is_ours = || path.join("exe").read_link().ok() == program;
        if parent_of(pid)? != own || is_ours() {
            return None;
        }
        let line = files::read(&path.join("cmdline")).ok()?.replace('\0', " ");
        let line = one_line(&visible(line.trim()), SHOWN);
        Some(LeftProcess::new(line, Process::running(pid)?))
    };
    all.filter_map(child).collect()
}

/// Returns the warning about processes that still run, and what that means.
pub(super) fn warning(left: &[LeftProcess]) -> Option<(String, String)> {
    let name = |it: &LeftProcess| {
        let name = it.name.as_deref().unwrap_or_default();
        format!("{name} (process {})", it.process.pid)
    };
    let names = some_of(left.iter().map(name), 3, left.len());
    let (what, they) = match left {
        [] => return None,
        [_] => (
            format!("a process that it started still runs: {names}"),
            "it",
        ),
        all => {
            let count = all.len();
            let what = format!("{count} processes that it started still run: {names}");
            (what, "they")
        }
    };
    let hint =
        format!("what {they} may change from now on is shown as \"you or …\" and stops undo");
    Some((what, hint))
}
