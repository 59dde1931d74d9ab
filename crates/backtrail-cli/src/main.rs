//! The command `backtrail`.

mod amount;
mod args;
mod commands;
mod derived;
mod error;
mod examples;
mod files;
mod home;
mod input;
mod json_edit;
mod layout;
mod pager;
mod progress;
mod secret_url;
mod settings;
mod shell;
mod short;
mod text;
mod ui;
mod user_file;
mod verbs;
mod when;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue};

use crate::args::Args;
use crate::commands::ui::pick;
use crate::commands::{Answer, completions};
use crate::error::CommandError;
use crate::ui::Ui;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words
        .next()
        .is_some_and(|word| word == completions::COMPLETE)
    {
        completions::complete(words);
        return ExitCode::SUCCESS;
    }
    let args = match parsed() {
        Ok(args) => args,
        Err(error) => return pick_or_refuse(error),
    };
    let global = &args.global;
    let ui = Ui::new(global.json, global.color).store(global.store.as_deref());
    exit_code(commands::run(&args, &ui), &ui)
}

/// Parses the command line.
fn parsed() -> Result<Args, clap::Error> {
    let verb = verb(std::env::args_os().skip(1));
    if matches!(verb.as_deref(), Some("hook" | "statusline"))
        && let Some(args) = args::often(std::env::args_os())
    {
        return Ok(args);
    }
    let matches = args::command().try_get_matches()?;
    Args::from_arg_matches(&matches)
}

/// Returns the exit code of a verb, and reports its error.
fn exit_code(result: error::Result<Answer>, ui: &Ui) -> ExitCode {
    match result {
        Ok(answer) => answer.into(),
        // A reader that closed our output early is not an error.
        Err(error) if error.broken_pipe => ExitCode::SUCCESS,
        Err(error) => {
            ui.error(&error);
            ExitCode::from(2)
        }
    }
}

/// Lets the user pick an argument that is missing, or reports what is wrong.
fn pick_or_refuse(error: clap::Error) -> ExitCode {
    let verb = verb(std::env::args_os().skip(1)).unwrap_or_default();
    match pick::missing(&error, &verb) {
        Some(picked) => exit_code(picked, &Ui::new(false, clap::ColorChoice::Auto)),
        None => refuse(error),
    }
}

/// Reports wrong arguments; help and version are not mistakes.
fn refuse(mut error: clap::Error) -> ExitCode {
    // An agent takes what a hook prints, and its exit code, for an answer.
    if error.use_stderr() && verb(std::env::args_os().skip(1)).as_deref() == Some("hook") {
        return ExitCode::SUCCESS;
    }
    suggest_by_meaning(&mut error);
    let json = std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--json");
    if error.use_stderr() && json {
        let ui = Ui::new(json, clap::ColorChoice::Never);
        ui.error(&CommandError::misuse(&error));
    } else if let Some(masked) = masked(&error) {
        anstream::eprint!("{masked}");
    } else {
        // Nothing is left to do if even this cannot be printed.
        error.print().ok();
    }
    match error.use_stderr() {
        false => ExitCode::SUCCESS,
        // The other codes of `run` belong to its command.
        true if verb(std::env::args_os().skip(1)).as_deref() == Some("run") => {
            ExitCode::from(commands::run::FAILED)
        }
        true => ExitCode::from(2),
    }
}

/// Returns a message without the passwords of the URLs that it repeats; `None` if it has none.
fn masked(error: &clap::Error) -> Option<String> {
    let text = error.render().ansi().to_string();
    let masked = secret_url::without_secrets(&text, secret_url::words());
    (masked != text).then_some(masked)
}

/// Replaces the verb that is spelled like a wrong one by the verb that it means.
fn suggest_by_meaning(error: &mut clap::Error) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    if let Some(verb) = verbs::by_meaning(word) {
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = format!("use 'backtrail {verb}'");
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
}

/// Returns the verb of a command line.
fn verb(mut args: impl Iterator<Item = OsString>) -> Option<String> {
    while let Some(arg) = args.next() {
        match arg.to_str() {
            // Their values are the next word.
            Some("--store" | "--color") => drop(args.next()),
            Some(option) if option.starts_with('-') => {}
            verb => return verb.map(str::to_owned),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_verb_is_found_behind_global_options() {
        let is_run = |line: &str| {
            let verb = super::verb(line.split(' ').map(Into::into));
            verb.as_deref() == Some("run")
        };
        assert!(is_run("run --nonsense"));
        assert!(is_run("--store run --json --color=always run"));
        assert!(!is_run("--store run list"));
        assert!(!is_run("list run"));
        assert!(!is_run("--json"));
    }
}
