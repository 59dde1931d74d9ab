//! `backtrail completions`: completion scripts, and the answers they ask for.
//!
//! The scripts know nothing: they call the hidden verb `__complete` on each press of the key.
//! So they never become stale, and can complete sessions and labels as well as verbs.

mod line;
mod values;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, ValueEnum};

use super::Answer;
use crate::args;
use crate::error::Result;
use crate::ui::Ui;

/// Print a completion script for a shell
///
/// It completes verbs, options, and the sessions, checkpoints and labels of your store.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
}

impl Shell {
    fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("completions/backtrail.bash"),
            Self::Zsh => include_str!("completions/backtrail.zsh"),
            Self::Fish => include_str!("completions/backtrail.fish"),
            Self::Powershell => include_str!("completions/backtrail.ps1"),
        }
    }
}

pub(crate) fn run(args: &CompletionsArgs, _ui: &Ui) -> Result<Answer> {
    let mut out = io::stdout().lock();
    out.write_all(args.shell.script().as_bytes())
        .and_then(|()| out.flush())?;
    Ok(Answer::Done)
}

/// The hidden verb that the scripts call.
pub(crate) const COMPLETE: &str = "__complete";

/// Answers a script: prints the completions of the last word, one per line, each with a
/// description after a tab. On any error it prints nothing, and it never writes to the store.
///
/// The words come after `--`; `--empty` before it adds an empty one.
pub(crate) fn complete(words: impl Iterator<Item = OsString>) {
    let mut words: Vec<String> = words.map(|it| it.to_string_lossy().into_owned()).collect();
    let Some(begin) = words.iter().position(|word| word == "--") else {
        return;
    };
    let is_empty = words[..begin].iter().any(|word| word == "--empty");
    words.drain(..=begin);
    if is_empty {
        words.push(String::new());
    }
    let mut command = args::Args::command();
    command.build();
    let mut out = io::BufWriter::new(io::stdout().lock());
    for candidate in line::candidates(&command, &words) {
        if writeln!(out, "{candidate}").is_err() {
            return;
        }
    }
    out.flush().ok();
}
