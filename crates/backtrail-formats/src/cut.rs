//! Copies of agents' own sessions that end at a record, for the agents to continue.
//!
//! A copy is a beginning of the agent's own file. Only the values that name the session and its
//! directory are replaced, and one is added that names the session it was copied from, so that
//! an import makes a fork of it. All other bytes stay, so signatures and encrypted reasoning
//! stay valid.
//!
//! | module | what it does |
//! |---|---|
//! | `position` | where a file must be cut |
//! | `ending` | where a conversation may end |
//! | `edit` | changes single values in a line |
//!
//! The others know one agent each: how its file changes, where it belongs, and the command that
//! continues it ([`Launch`]).

mod claude_code;
mod codex;
mod copilot_cli;
mod edit;
mod ending;
mod gemini_cli;
mod pi;
mod position;
mod qwen_code;

use std::io::Write;
use std::path::Path;

use crate::compressed;
use crate::error::{Error, Result};
use crate::format::{Format, formats};
use crate::json::Object;
use crate::launch::{Launch, Launcher, NewSession};
use crate::lines::Lines;
use crate::source::{Source, is_json_lines};
use edit::LineEdit;

pub use ending::CompleteEnd;

/// An agent that continues a copy of one of its own sessions.
#[derive(Clone, Copy)]
pub struct ResumableAgent {
    format: &'static dyn Format,
    copies: &'static dyn CopyFormat,
}

/// Where a file is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutPoint {
    /// How many bytes of it are copied.
    pub end: u64,
    /// How many lines there are damaged.
    pub damaged: u64,
}

/// What a file says about its own session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct OldSession {
    id: String,
    /// The session that the first of several copies was made from, if it is one.
    first: Option<String>,
    directory: Option<String>,
}

impl OldSession {
    /// Reads a line of an agent whose lines each name the session and its directory. Returns
    /// whether that is all.
    fn read_line(&mut self, line: &Object<'_>) -> bool {
        if self.id.is_empty() {
            self.id = line.trimmed("sessionId").unwrap_or_default();
        }
        self.directory = self.directory.take().or_else(|| line.trimmed("cwd"));
        !self.id.is_empty() && self.directory.is_some()
    }
}

/// What is particular to the copies of one agent's sessions.
trait CopyFormat: Launch {
    /// Returns whether the agent writes this line when it starts to continue a session.
    fn opens_next(&self, line: &Object<'_>) -> bool;

    /// Reads what a line says about its session. Returns whether that is all.
    fn read_session(&self, line: &Object<'_>, old: &mut OldSession) -> bool;

    /// Returns why a file with this line cannot be copied.
    fn refuses(&self, line: &Object<'_>) -> Option<&'static str> {
        let _ = line;
        None
    }

    /// Changes a line. Returns whether it names the session that it was copied from, which one
    /// line must do.
    fn edit(&self, line: &mut LineEdit<'_>, names_origin: bool, copy: &Renaming<'_>) -> bool;
}

/// A session becomes another one.
struct Renaming<'c> {
    /// The old session's file.
    file: &'c Path,
    old: &'c OldSession,
    new: &'c NewSession<'c>,
}

impl Renaming<'_> {
    /// Replaces the old directory at a path of fields.
    fn replace_directory(&self, line: &mut LineEdit<'_>, path: &[&str]) {
        if let (Some(old), Some(new)) = (&self.old.directory, self.new.directory.to_str()) {
            line.replace(path, old, new);
        }
    }

    /// Changes a line of an agent whose lines each name the session and its directory. If it may
    /// name the origin and has an id, it does so as in the agent's own forks.
    fn edit_line(&self, line: &mut LineEdit<'_>, may_name_origin: bool) -> bool {
        line.replace(&["sessionId"], &self.old.id, &self.new.id);
        self.replace_directory(line, &["cwd"]);
        let uuid = line.object().string("uuid");
        let Some(uuid) = uuid.filter(|_| may_name_origin) else {
            return false;
        };
        let origin = serde_json::json!({"sessionId": self.old.id, "messageUuid": uuid});
        line.set(&[], "forkedFrom", origin.to_string());
        true
    }

    /// Returns the field that names the old session, and the first one of several copies.
    fn origin(&self) -> String {
        let first = self.old.first.as_deref().unwrap_or(&self.old.id);
        serde_json::json!({"sessionId": self.old.id, "firstSessionId": first}).to_string()
    }
}

/// Returns an agent whose sessions can be copied and continued. `None` if that is not possible.
pub fn resumable(agent: &str) -> Option<ResumableAgent> {
    let format = formats().find(|format| format.name() == agent)?;
    let copies = copies(agent)?;
    Some(ResumableAgent { format, copies })
}

/// Returns how sessions of an agent are copied.
fn copies(agent: &str) -> Option<&'static dyn CopyFormat> {
    Some(match agent {
        "claude-code" => &claude_code::ClaudeCodeCopies,
        "codex" => &codex::CodexCopies,
        "gemini-cli" => &gemini_cli::GeminiCliCopies,
        "copilot-cli" => &copilot_cli::CopilotCliCopies,
        "pi" => &pi::PiCopies,
        "qwen-code" => &qwen_code::QwenCodeCopies,
        _ => return None,
    })
}

/// Returns how an agent is started whose sessions can be copied.
pub(crate) fn launch_of_copies(agent: &str) -> Option<&'static dyn Launch> {
    copies(agent).map(|copies| copies as &'static dyn Launch)
}

impl ResumableAgent {
    /// Returns how the agent is started.
    pub fn launcher(&self) -> Launcher {
        Launcher::new(self.format, self.copies)
    }

    /// Opens a file that was kept. `write` writes its bytes; `path` is its name.
    ///
    /// # Errors
    ///
    /// Fails if the bytes cannot be written or decompressed.
    pub fn open_kept(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> backtrail::Result<()>,
    ) -> Result<Source> {
        if !compressed::is_compressed(path) {
            return match is_json_lines(path) {
                true => Source::from_written(path, write),
                false => Err(Error::invalid("the file is not JSON lines", path)),
            };
        }
        let failed = |error| Error::io("cannot create a temporary file", path, error);
        let mut packed = tempfile::NamedTempFile::new().map_err(failed)?;
        write(&mut packed)?;
        let mut unpacked = tempfile::tempfile().map_err(failed)?;
        let done = compressed::decompress(packed.path(), &mut unpacked)?;
        match done.damage {
            None => Source::from_file(path.with_extension(""), unpacked),
            Some(damage) => Err(Error::invalid(damage, path)),
        }
    }

    /// Finds where a file must be cut so that its conversation has exactly the messages and
    /// summaries with these keys. `None` if there is no such place.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn cut(&self, source: &Source, keys: &[String]) -> Result<Option<CutPoint>> {
        position::find(self.format, self.copies, source, keys)
    }

    /// Returns the end of a file's last complete line.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn whole(&self, source: &Source) -> Result<CutPoint> {
        position::whole(self.format, source)
    }

    /// Writes the beginning of a file as a new session.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or copied, or the copy cannot be written.
    pub fn write_copy(
        &self,
        source: &Source,
        cut: CutPoint,
        new: &NewSession<'_>,
        out: &mut dyn Write,
    ) -> Result<()> {
        let beginning = source.beginning(cut.end)?;
        let old = self.old_session(&beginning)?;
        let copy = Renaming {
            file: source.path(),
            old: &old,
            new,
        };
        let mut names_origin = false;
        let mut at = 0;
        let mut lines = Lines::new(&beginning, 0, 0);
        while let Some(line) = lines.next()? {
            // With the blank lines before it.
            let bytes = beginning.read_range(at..line.range.end)?;
            at = line.range.end;
            let edited = self.edit_line(&bytes, &mut names_origin, &copy);
            let bytes = edited.as_ref().map_or(&bytes[..], |text| text.as_bytes());
            write(out, bytes, new)?;
        }
        if !beginning.begins_line(cut.end) {
            write(out, b"\n", new)?;
        }
        match names_origin {
            true => Ok(()),
            false => Err(Error::invalid("no line names the session", source.path())),
        }
    }

    /// Reads which session a file belongs to.
    fn old_session(&self, source: &Source) -> Result<OldSession> {
        let mut old = OldSession::default();
        let mut lines = Lines::new(source, 0, 0);
        while let Some(line) = lines.next()? {
            let text = line.text();
            let Ok(line) = Object::parse(&text) else {
                continue;
            };
            if let Some(reason) = self.copies.refuses(&line) {
                return Err(Error::invalid(reason, source.path()));
            }
            if self.copies.read_session(&line, &mut old) {
                break;
            }
        }
        match old.id.is_empty() {
            true => Err(Error::invalid("no line names the session", source.path())),
            false => Ok(old),
        }
    }

    /// Returns the changed line; `None` if it is not JSON and stays as it is.
    fn edit_line(
        &self,
        bytes: &[u8],
        names_origin: &mut bool,
        copy: &Renaming<'_>,
    ) -> Option<String> {
        let mut edit = LineEdit::new(std::str::from_utf8(bytes).ok()?)?;
        *names_origin |= self.copies.edit(&mut edit, *names_origin, copy);
        Some(edit.finish())
    }
}

impl std::fmt::Debug for ResumableAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ResumableAgent")
            .field(&self.format.name())
            .finish()
    }
}

fn write(out: &mut dyn Write, bytes: &[u8], new: &NewSession<'_>) -> Result<()> {
    out.write_all(bytes)
        .map_err(|error| Error::io("cannot write the copy", Path::new(&new.id), error))
}
