//! The servers, one of each for all tests of the binary. They end with it, however it ends.

mod keeper;
mod pgbouncer;
mod postgres;
mod weed;

pub(crate) use pgbouncer::Pgbouncer;
pub(crate) use postgres::{Postgres, options_of as options_through};
pub(crate) use weed::Weed;

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns where a program is: in PATH, or where Debian puts those of PostgreSQL.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    directories.push("/usr/sbin".into());
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<PathBuf> = versions.flatten().map(|entry| entry.path()).collect();
        versions.sort();
        directories.extend(
            versions
                .into_iter()
                .rev()
                .map(|version| version.join("bin")),
        );
    }
    let found = directories
        .into_iter()
        .map(|directory| directory.join(program));
    found.into_iter().find(|path| path.is_file())
}

/// Says on stderr why a test proves nothing here.
pub(crate) fn skip(need: &str) {
    eprintln!("SKIPPED: needs {need}; nothing was tried against the real server");
}

/// Returns a command as a user other than root: PostgreSQL and pgbouncer refuse to run as root.
pub(crate) fn as_ordinary_user(program: &std::path::Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program);
    command
}

pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id");
    output.stdout == b"0\n"
}

/// Returns a directory of its own, for the ordinary user.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = tempfile::Builder::new()
        .prefix(&format!("backtrail-{name}-"))
        .tempdir()
        .expect("a directory")
        .keep();
    if is_root() {
        std::os::unix::fs::chown(&directory, Some(65534), Some(65534)).expect("chown");
    }
    directory
}

/// Returns ports that nobody listens on now.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: [TcpListener; N] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}

/// Waits until somebody listens on a port.
pub(crate) fn await_port(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nobody listens on port {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output.stdout
}

/// Starts a command whose lines are read.
pub(crate) fn lines_of(
    command: &mut Command,
) -> (std::process::Child, impl Iterator<Item = String> + use<>) {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let stdout = child.stdout.take().expect("its output");
    let lines = BufReader::new(stdout).lines().map_while(Result::ok);
    (child, lines)
}
