//! Long output on a terminal goes through a pager.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

/// Where long output goes: a pager on a terminal, else stdout as it is.
pub(crate) enum Paged {
    Pager(Child),
    Stdout(io::BufWriter<io::StdoutLock<'static>>),
}

impl Paged {
    /// Opens the pager that the environment names, else `less`; stdout where that
    /// is no terminal, or none can be started.
    pub(crate) fn new() -> Self {
        let stdout = || Self::Stdout(io::BufWriter::new(io::stdout().lock()));
        if !io::stdout().is_terminal() {
            return stdout();
        }
        let named = ["BACKTRAIL_PAGER", "PAGER"]
            .into_iter()
            .find_map(env::var_os);
        let pager = named.unwrap_or_else(|| "less".into());
        if pager.is_empty() || pager == "cat" {
            return stdout();
        }
        let mut command = Command::new("sh");
        // The words of the variable are the shell's business.
        command.arg("-c").arg(&pager).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            // Colours, and no pager for what fits on the screen.
            command.env("LESS", "FRX");
        }
        match command.spawn() {
            Ok(child) => Self::Pager(child),
            Err(_) => stdout(),
        }
    }

    /// Waits until the pager was left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        if let Self::Pager(child) = &mut self {
            drop(child.stdin.take());
            child.wait()?;
        }
        Ok(())
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pager(child) => match &mut child.stdin {
                Some(stdin) => stdin.write(bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            Self::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Pager(child) => child.stdin.as_mut().map_or(Ok(()), Write::flush),
            Self::Stdout(stdout) => stdout.flush(),
        }
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        // The terminal is the pager's until it was left.
        if let Self::Pager(child) = self {
            drop(child.stdin.take());
            child.wait().ok();
        }
    }
}
