//! Long output on a terminal goes through a pager.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, ExitStatus, Stdio};

/// How much output is kept until the pager has shown that it works: more than a
/// pipe holds, so that somebody must have read of it.
const KEPT: usize = 1 << 20;

/// Where long output goes: a pager on a terminal, else stdout as it is.
pub(crate) enum Paged {
    Pager(Pager),
    Stdout(io::BufWriter<io::StdoutLock<'static>>),
}

/// A pager at work.
pub(crate) struct Pager {
    child: Child,
    /// What it was given so far, in case it fails; `None` once that is too much.
    kept: Option<Vec<u8>>,
}

impl Paged {
    /// Opens the pager that the environment names, else `less`; stdout where that
    /// is no terminal, or none can be started.
    pub(crate) fn new() -> Self {
        if !io::stdout().is_terminal() {
            return Self::stdout();
        }
        let named = ["BACKTRAIL_PAGER", "PAGER"]
            .into_iter()
            .find_map(env::var_os);
        let pager = named.unwrap_or_else(|| "less".into());
        if pager.is_empty() || pager == "cat" {
            return Self::stdout();
        }
        let mut command = Command::new("sh");
        // The words of the variable are the shell's business.
        command.arg("-c").arg(&pager).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            // Colours, and no pager for what fits on the screen.
            command.env("LESS", "FRX");
        }
        match command.spawn() {
            Ok(child) => Self::Pager(Pager {
                child,
                kept: Some(Vec::new()),
            }),
            Err(_) => Self::stdout(),
        }
    }

    /// Opens stdout, whatever it is.
    pub(crate) fn stdout() -> Self {
        Self::Stdout(io::BufWriter::new(io::stdout().lock()))
    }

    /// Waits until the pager was left. What one that failed did not show goes to
    /// stdout.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if let Self::Pager(pager) = &mut self
            && let Some(lost) = pager.end()?
        {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&lost)?;
            stdout.flush()?;
        }
        self.flush()
    }
}

/// Prints a text: through the pager where a terminal cannot show all of it at once.
pub(crate) fn print(text: &str) -> io::Result<()> {
    // The command, and where the next one is typed, take a line each.
    let lines = text.lines().count() + 2;
    let fits =
        |(_, height): (terminal_size::Width, terminal_size::Height)| lines <= usize::from(height.0);
    let mut out = match terminal_size::terminal_size_of(io::stdout()) {
        Some(size) if !fits(size) => Paged::new(),
        _ => Paged::stdout(),
    };
    out.write_all(text.as_bytes())?;
    out.finish()
}

impl Pager {
    /// Waits until it was left; returns what it was given if it failed.
    fn end(&mut self) -> io::Result<Option<Vec<u8>>> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        Ok(self.kept.take().filter(|_| failed(status)))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stdin = self.child.stdin.as_mut();
        let stdin = stdin.ok_or(io::ErrorKind::BrokenPipe)?;
        let written = stdin.write(bytes)?;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&bytes[..written]);
        }
        self.kept.take_if(|kept| kept.len() > KEPT);
        Ok(written)
    }
}

/// Returns whether a pager failed. One that was ended from outside was seen.
fn failed(status: ExitStatus) -> bool {
    status.code().is_some_and(|code| code != 0)
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let pager = match self {
            Self::Pager(pager) => pager,
            Self::Stdout(stdout) => return stdout.write(bytes),
        };
        match pager.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // It was left, which is no failure, or it failed: then we go on
                // without it.
                let lost = pager.end()?.ok_or(error)?;
                let mut stdout = io::BufWriter::new(io::stdout().lock());
                stdout.write_all(&lost)?;
                let written = stdout.write(bytes)?;
                *self = Self::Stdout(stdout);
                Ok(written)
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Pager(pager) => pager.child.stdin.as_mut().map_or(Ok(()), Write::flush),
            Self::Stdout(stdout) => stdout.flush(),
        }
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        // The terminal is the pager's until it was left.
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}
