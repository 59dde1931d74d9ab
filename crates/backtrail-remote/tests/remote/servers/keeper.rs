//! Ends a server and removes its directory when the tests are over, also when they are killed.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that waits for the end of its input, which comes with the end of this process.
pub(crate) struct Keeper(Child);

impl Keeper {
    /// `end` is a command of the shell that ends the server; `$1` is the directory.
    pub(crate) fn new(directory: &Path, end: &str) -> Self {
        let script = format!("cat >/dev/null; {{ {end}; }} >/dev/null 2>&1; rm -rf \"$1\"");
        let keeper = Command::new("sh")
            .args(["-c", &script, "keeper"])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What interrupts the tests does not interrupt it.
            .process_group(0)
            .spawn();
        Self(keeper.expect("sh"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}
