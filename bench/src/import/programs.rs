//! The programs that are measured beside Backtrail, installed if missing.
//!
//! They go into `peers/` beside this program, or are taken from the directory in
//! `BACKTRAIL_BENCH_PEERS`. The programs are run directly, without the scripts that wrap
//! them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::samples::files;

/// The measured versions.
const CCUSAGE: &str = "ccusage@20.0.24";
const AGENTSVIEW: &str = "agentsview==0.46.1";

/// Finds ccusage; returns the reason if there is none.
pub(super) fn ccusage() -> Result<PathBuf, String> {
    let dir = dir()?;
    let packages = dir.join("node_modules/@ccusage");
    if !packages.is_dir() {
        eprintln!("installing: {CCUSAGE}");
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--no-save",
            "--no-audit",
            "--no-fund",
            "--prefix",
        ])
        .arg(&dir)
        .arg(CCUSAGE);
        install(&mut npm)?;
    }
    let bin = program(&packages, "bin/ccusage")?;
    // The package has it without the permission; the script that wraps it adds that.
    make_executable(&bin)
        .map_err(|error| format!("cannot make {} executable: {error}", bin.display()))?;
    Ok(bin)
}

#[cfg(unix)]
fn make_executable(bin: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let mut permissions = std::fs::metadata(bin)?.permissions();
    if permissions.mode() & 0o111 != 0 {
        return Ok(());
    }
    permissions.set_mode(0o755);
    std::fs::set_permissions(bin, permissions)
}

#[cfg(not(unix))]
fn make_executable(_bin: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Finds agentsview; returns the reason if there is none.
pub(crate) fn agentsview() -> Result<PathBuf, String> {
    let dir = dir()?.join("av");
    let packages = dir.join("lib");
    if !dir.join("bin/agentsview").is_file() {
        eprintln!("installing: {AGENTSVIEW}");
        install(Command::new("python3").args(["-m", "venv"]).arg(&dir))?;
        let mut pip = Command::new(dir.join("bin/pip"));
        install(pip.args(["install", "--quiet", AGENTSVIEW]))?;
    }
    program(&packages, "bin/agentsview")
}

/// Finds claude-history; returns the reason if there is none. It is never installed: that takes long.
pub(crate) fn claude_history() -> Result<PathBuf, String> {
    let name = "claude-history";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(dir()?.join("bin")).chain(std::env::split_paths(&path));
    let found = dirs.map(|dir| dir.join(name)).find(|bin| bin.is_file());
    let root = dir()?;
    found.ok_or_else(|| {
        let root = root.display();
        format!("not installed; cargo install --locked --root {root} {name} does it")
    })
}

fn dir() -> Result<PathBuf, String> {
    let dir = match std::env::var_os("BACKTRAIL_BENCH_PEERS") {
        Some(dir) => PathBuf::from(dir),
        None => crate::build_dir()
            .ok_or("this program does not know where it is")?
            .join("peers"),
    };
    let made = std::fs::create_dir_all(&dir);
    made.map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    Ok(dir)
}

fn install(command: &mut Command) -> Result<(), String> {
    let what = command.get_program().to_string_lossy().into_owned();
    let done = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} could not install it: {status}")),
        Err(error) => Err(format!("cannot run {what}: {error}")),
    }
}

fn program(packages: &Path, ending: &str) -> Result<PathBuf, String> {
    let found = files(packages, ending).map_err(|error| error.to_string())?;
    let none = || format!("there is no {ending} in {}", packages.display());
    found.into_iter().next().ok_or_else(none)
}
