//! `backtrail resume`: an agent's own session, continued by the agent from any record.

mod session;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::SystemTime;

use backtrail::{OsRandomness, Randomness as _, Store, Timestamp};
use backtrail_formats::{CutPoint, Environment, NewSession, ResumableAgent, Source};
use serde_json::json;

use self::session::Found;
use super::export::KeptFile;
use super::import::failed;
use super::run::{self, RunArgs};
use super::workspace::WorkspaceArgs;
use super::{Answer, open_or_create_store, require_files_store, short};
use crate::error::{CommandError, Result};
use crate::files;
use crate::home::workspace_root;
use crate::shell::{command_line, quote_path};
use crate::text::{count, path_json, visible_path};
use crate::ui::Ui;

/// Continue an agent's session from any record, in the agent itself
///
/// The agent starts on a copy of its own session that ends at that record, under a new id, in
/// the session's directory, and protected as by run. Its own session is not changed; the copy is
/// imported as a fork. The files stay as they are: rewind REF:SEQ moves them first.
///
/// Works for Claude Code, Codex, Gemini CLI, Qwen Code, Copilot CLI and pi. A conversation cannot
/// end between a tool call and its result; it then ends before the call.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// A session and its last record, as REF:SEQ; without :SEQ, all of it [default: the newest
    /// session of an agent here]
    #[arg(value_name = "REF")]
    reference: Option<String>,

    /// Make the copy, and print the command instead of running it
    #[arg(long)]
    print: bool,
}

pub(crate) fn run(args: &ResumeArgs, ui: &Ui) -> Result<Answer> {
    if ui.json() && !args.print {
        let what = "resume runs the agent, whose output is not JSON";
        return Err(CommandError::invalid(what).hint("print the command instead: add --print"));
    }
    let store = match args.reference {
        Some(_) => require_files_store(ui)?,
        None => open_or_create_store(ui)?,
    };
    let environment = Environment::from_variables(std::env::vars_os());
    let found = Found::find(&store, args.reference.as_deref(), &environment, ui)?;
    if !args.print && !run::can_start(found.agent.program()) {
        return Err(not_installed(&found, ui));
    }
    let copy = SessionCopy::make(&store, &found, &environment)?;
    copy.report(&found, ui);
    match args.print {
        true => copy.print(&found, ui),
        false => copy.start(&store, ui),
    }
}

/// A copy of an agent's session.
struct SessionCopy {
    id: String,
    file: PathBuf,
    command: Vec<String>,
    directory: PathBuf,
    /// How many lines of it cannot be read.
    damaged: u64,
}

impl SessionCopy {
    /// Makes the copy where the agent finds it.
    fn make(store: &Store, found: &Found, environment: &Environment) -> Result<Self> {
        let (source, cut) = found.cut(store)?;
        let at = Timestamp::from(SystemTime::now());
        let new = NewSession {
            id: new_id(found.agent, at)?,
            at,
            directory: found.directory.clone(),
            environment,
        };
        let file = found.agent.place(&source, &new);
        let file = file.map_err(|error| failed(&error))?;
        files::create_whole(&file, |out| {
            let written = found.agent.write_copy(&source, cut, &new, out);
            written.map_err(|error| WriteError::Copy(failed(&error)))
        })
        .map_err(|error| match error {
            WriteError::Copy(error) => error,
            WriteError::File(error) => {
                CommandError::io("cannot make the copy", Some(&file), &error)
            }
        })?;
        Ok(Self {
            command: found.agent.command(&new.id),
            id: new.id,
            directory: new.directory,
            file,
            damaged: cut.damaged,
        })
    }

    /// Reports what was copied.
    fn report(&self, found: &Found, ui: &Ui) {
        if let (Some(asked), Some(last)) = (found.asked, found.last)
            && found.is_cut_earlier()
        {
            let what =
                format!("record {asked} is within a response; the copy ends at record {last}");
            ui.warning(&what, None);
        }
        if self.damaged > 0 {
            let lines = count(self.damaged, "damaged line");
            ui.warning(&format!("the copy has {lines}, as the original"), None);
        }
        let upto = match found.last.filter(|_| found.asked.is_some()) {
            Some(last) => format!(" up to record {last}"),
            None => String::new(),
        };
        let (old, title) = (short(found.reader.id()), found.agent.title());
        let new = &self.id;
        ui.status(&format!("copied {title} session {old}{upto} as {new}"));
    }

    fn print(&self, found: &Found, ui: &Ui) -> Result<Answer> {
        if ui.json() {
            return ui.answer_json(&json!({
                "agent": found.agent.name(),
                "new_id": self.id,
                "file": path_json(&self.file),
                "command": self.command,
                "directory": path_json(&self.directory),
            }));
        }
        let command = command_line(&self.words());
        let directory = quote_path(&self.directory);
        ui.print_line(&format!("cd {directory} && {command}"))?;
        Ok(Answer::Done)
    }

    /// Starts the agent, as `run` does.
    fn start(self, store: &Store, ui: &Ui) -> Result<Answer> {
        let root = store.workspace_root(&self.directory)?;
        let here = match workspace_root(store).is_some_and(|here| here == root) {
            true => WorkspaceArgs::default(),
            false => WorkspaceArgs::named(root),
        };
        let args = RunArgs::of_command(self.words(), self.directory, here);
        run::run(&args, ui)
    }

    fn words(&self) -> Vec<OsString> {
        self.command.iter().map(OsString::from).collect()
    }
}

/// Why a copy could not be written.
enum WriteError {
    Copy(CommandError),
    File(std::io::Error),
}

impl From<std::io::Error> for WriteError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

fn new_id(agent: ResumableAgent, at: Timestamp) -> Result<String> {
    let mut random = [0; 16];
    let filled = OsRandomness.fill(&mut random);
    filled.map_err(|error| CommandError::io("cannot make an id", None, &error))?;
    Ok(agent.new_id(at, random))
}

impl Found {
    /// Finds the agent's file, and where to cut it.
    fn cut(&self, store: &Store) -> Result<(Source, CutPoint)> {
        let files = KeptFile::all(store, &self.reader, self.agent.name())?;
        let is_whole = self.asked.is_none() && files.len() == 1;
        for file in &files {
            let path = &file.source.path;
            let source = self.agent.open_kept(path, |out| {
                file.write(&self.reader, out)?;
                Ok(())
            });
            let source = source.map_err(|error| self.unreadable(failed(&error)))?;
            let cut = match is_whole && !file.is_held() {
                true => self.agent.whole(&source).map(Some),
                false => self.agent.cut(&source, &self.keys),
            };
            if let Some(cut) = cut.map_err(|error| failed(&error))? {
                return Ok((source, cut));
            }
        }
        Err(self.nowhere(&files))
    }

    /// Adds a hint to the error for a file whose bytes cannot be read.
    fn unreadable(&self, error: CommandError) -> CommandError {
        let id = short(self.reader.id());
        error.hint(format!("see what is damaged: backtrail verify {id}"))
    }

    /// Returns the error for a conversation that no beginning of a file has.
    fn nowhere(&self, files: &[KeptFile]) -> CommandError {
        let (id, title) = (short(self.reader.id()), self.agent.title());
        let error = match files {
            [] => CommandError::not_found(format!("the store has no {title} file of session {id}")),
            [file] => CommandError::invalid(format!(
                "no part of {} is the conversation of {id} up to there",
                visible_path(&file.source.path)
            )),
            _ => CommandError::invalid(format!(
                "session {id} is in {}, and none of them has all of it up to there",
                count(files.len(), "file")
            )),
        };
        error
            .hint(format!("try another record: backtrail show {id}"))
            .hint(format!(
                "to continue without the agent: backtrail fork {id}"
            ))
    }
}

fn not_installed(found: &Found, ui: &Ui) -> CommandError {
    let program = found.agent.program();
    let what = format!(
        "cannot start {}: {program} is not in PATH",
        found.agent.title()
    );
    let id = short(found.reader.id());
    let place = found
        .asked
        .map_or_else(String::new, |seq| format!(":{seq}"));
    CommandError::not_found(what).hint(format!(
        "make the copy and see the command: {} resume {id}{place} --print",
        ui.program()
    ))
}
