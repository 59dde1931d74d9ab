//! `backtrail ui`: the screens. What they show comes from the store through [`StoreLibrary`].

mod actions;
mod agents;
mod blame;
mod changes;
mod costs;
mod files;
mod library;
mod pages;
pub(crate) mod pick;
mod search;
mod sessions;
mod timeline;
mod watch;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use backtrail_tui::Options;
use backtrail_tui::library::Scope;

use self::library::StoreLibrary;
use super::Answer;
use crate::error::{CommandError, Result};
use crate::ui::Ui;

/// Browse sessions, what they did to the files, and costs, on one screen
///
/// Enter opens what is selected, `?` shows what is possible, and `u` shows what undo would do before
/// it does it.
#[derive(Debug, clap::Args)]
pub(crate) struct UiArgs {
    /// List the sessions of all workspaces
    #[arg(long, short)]
    all: bool,
}

pub(crate) fn run(args: &UiArgs, ui: &Ui) -> Result<Answer> {
    if ui.json() || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let error = CommandError::invalid("the screen needs a terminal");
        return Err(error.hint("in a pipe use: backtrail list, show, log, search, stats"));
    }
    let library = Arc::new(StoreLibrary::open(ui)?);
    let scope = match args.all {
        true => Scope::Everything,
        false => Scope::Workspace,
    };
    backtrail_tui::run(library, &Options::new(scope))
        .map_err(|error| CommandError::io("cannot use the terminal", None, &error))?;
    Ok(Answer::Done)
}
