//! `backtrail ui`: the screens. What they show comes from the store through [`StoreLibrary`].

mod actions;
mod agents;
mod blame;
mod changes;
mod costs;
mod diff_lines;
mod edits;
mod files;
#[cfg(test)]
mod lab;
mod library;
mod moments;
mod next_undo;
mod pages;
pub(crate) mod pick;
mod search;
mod sessions;
#[cfg(test)]
mod testing;
mod timeline;
mod watch;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use backtrail_tui::Options;
use backtrail_tui::library::{Library, Scope};

use self::library::StoreLibrary;
use super::{Answer, open_store};
use crate::error::{CommandError, Result};
use crate::settings::{DefaultCommand, Settings};
use crate::text::visible;
use crate::ui::Ui;

/// Browse sessions, what they did to the files, and costs, on one screen
///
/// Enter opens what is selected, `?` shows what is possible, and `u` shows what undo would do before
/// it does it.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct UiArgs {
    /// List the sessions of all workspaces
    #[arg(long, short)]
    all: bool,
}

pub(crate) fn run(args: &UiArgs, ui: &Ui) -> Result<Answer> {
    if !is_possible(ui) {
        let error = CommandError::invalid("the screen needs a terminal");
        return Err(error.hint("in a pipe use: backtrail list, show, log, search, stats"));
    }
    let library = Arc::new(StoreLibrary::open(ui)?);
    let scope = match args.all {
        true => Scope::Everything,
        false => Scope::Workspace,
    };
    let mouse = Settings::read(library.store.root())?.mouse.value;
    let shown = Arc::clone(&library) as Arc<dyn Library>;
    let left = backtrail_tui::run(shown, &Options::new(scope).mouse(mouse));
    // An undo that began is done as a whole.
    library.plans.gate.close();
    left.map_err(|error| CommandError::io("cannot use the terminal", None, &error))?;
    Ok(Answer::Done)
}

/// Returns whether there is a terminal for the screen.
fn is_possible(ui: &Ui) -> bool {
    !ui.json() && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns whether `backtrail` alone opens the screen: if it is set so, on a terminal, and there is
/// a store.
pub(super) fn is_default(ui: &Ui) -> Result<bool> {
    if !is_possible(ui) {
        return Ok(false);
    }
    let (dir, _) = ui.store_dir()?;
    let wanted = Settings::read(&dir)?.default_command.value;
    Ok(wanted == DefaultCommand::Ui && open_store(ui)?.is_some())
}

/// Makes a line of a file or an output harmless: escapes are visible, and tabs are spaces.
fn plain(text: &str) -> String {
    visible(text).replace('\t', "    ").replace('\n', " ")
}

#[cfg(test)]
#[path = "ui/files_tests.rs"]
mod tests;
