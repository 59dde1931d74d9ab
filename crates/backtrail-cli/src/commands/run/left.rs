//! Processes that outlive the command that started them.

use std::path::Path;
use std::time::Duration;

use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::commands::hook::parent_of;
use crate::files;
use crate::text::{one_line, visible};

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
pub(super) fn left_running() -> Vec<String> {
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

/// Returns our children, each with its command line and number. What works for us in the
/// background is not the command's.
fn children() -> Vec<String> {
    let own = std::process::id();
    let Ok(all) = files::entries(Path::new("/proc")) else {
        return Vec::new();
    };
    let program = std::env::current_exe().ok();
    let child = |path: std::path::PathBuf| {
        let pid: u32 = path.file_name()?.to_str()?.parse().ok()?;
        let is_ours = || path.join("exe").read_link().ok() == program;
        if parent_of(pid)? != own || is_ours() {
            return None;
        }
        let line = files::read(&path.join("cmdline")).ok()?.replace('\0', " ");
        let line = one_line(&visible(line.trim()), SHOWN);
        Some(format!("{line} (process {pid})"))
    };
    all.filter_map(child).collect()
}
