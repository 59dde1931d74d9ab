//! `backtrail ui`: the screens. What they show comes from the store through [`StoreLibrary`].

pub(crate) mod pick;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use backtrail_tui::Options;
use backtrail_view::library::{Library, Scope};

use super::library::StoreLibrary;
use super::{Answer, open_store};
use crate::error::{CommandError, Result};
use crate::settings::{DefaultCommand, Settings};
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
    library.close();
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
