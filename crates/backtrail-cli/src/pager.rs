//! Long output on a terminal goes through a pager.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, ExitStatus, Stdio};

/// How much output is kept until the pager has proved to work: more than a pipe holds, so
/// that some of it must have been read.
const KEPT: usize = 1 << 20;

/// Where long output goes: a pager on a terminal, else stdout as it is.
pub(crate) enum Paged {
    Pager(Pager),
    Stdout(io::BufWriter<io::StdoutLock<'static>>),
}

/// A pager at work.
pub(crate) struct Pager {
    child: Child,
    /// The output so far, in case the pager fails; `None` once it is too much.
    kept: Option<Vec<u8>>,
}

impl Paged {
    /// Starts the pager that the environment names, else `less`; stdout if it is not a
    /// terminal or no pager can be started.
    pub(crate) fn new() -> Self {
        Self::opened_at(None)
    }

    /// Starts the pager, at the first line with a text if there is one. Only `less` with our
    /// options can do that.
    pub(crate) fn opened_at(text: Option<&str>) -> Self {
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
        // The shell parses the variable.
        command.arg("-c").arg(&pager).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            // Colours, and no paging for what fits on the screen.
            let place = text.map_or_else(String::new, |text| format!(" +/{text}"));
            command.env("LESS", format!("-FRX{place}"));
        }
        match command.spawn() {
            Ok(child) => Self::Pager(Pager {
                child,
                kept: Some(Vec::new()),
            }),
            Err(_) => Self::stdout(),
        }
    }

    /// Returns stdout, whatever it is.
    pub(crate) fn stdout() -> Self {
        Self::Stdout(io::BufWriter::new(io::stdout().lock()))
    }

    /// Waits until the user leaves the pager. If it failed, its output goes to stdout.
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

/// Prints a text, through the pager if it does not fit on the terminal.
pub(crate) fn print(text: &str) -> io::Result<()> {
    // The command and the next prompt take a line each.
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
    /// Waits for the end of the pager; returns its output if it failed.
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

/// Returns whether a pager failed. One that was killed has shown its output.
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
                // The user left it, or it failed: then we continue without it.
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
        // The terminal belongs to the pager until it ends.
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}
