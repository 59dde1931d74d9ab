//! The command `backtrail`.

mod args;
mod commands;
mod error;
mod home;
mod input;
mod pager;
mod progress;
mod settings;
mod shell;
mod text;
mod ui;
mod when;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;
use crate::error::CommandError;
use crate::ui::Ui;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return refuse(&error),
    };
    let global = &args.global;
    let ui = Ui::new(global.json, global.color).store(global.store.as_deref());
    let result = commands::run(&args, &ui);
    match result {
        Ok(answer) => answer.into(),
        // Whoever read our output has had enough: not an error.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            ui.error(&error);
            ExitCode::from(2)
        }
    }
}

/// Says what is wrong with the arguments; help and version are no mistake.
fn refuse(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--json");
    if error.use_stderr() && json {
        let ui = Ui::new(json, clap::ColorChoice::Never);
        ui.error(&CommandError::misuse(error));
    } else {
        // Nothing is left to do if even this cannot be printed.
        error.print().ok();
    }
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
