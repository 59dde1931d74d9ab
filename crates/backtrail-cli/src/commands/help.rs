//! `backtrail help`: the verbs in groups, every verb, or one verb.

use std::io::Write;

use anstyle::{Effects, Style};
use clap::Command;

use super::Answer;
use crate::args;
use crate::error::{CommandError, Result};
use crate::layout::hanging;
use crate::ui::{Ui, terminal_width};
use crate::verbs::{GROUPS, MORE, suggest};

/// Show help for Backtrail or for one verb
#[derive(Debug, clap::Args)]
pub(crate) struct HelpArgs {
    /// The verb to show help for
    #[arg(value_name = "VERB", num_args = 0..=2)]
    verb: Vec<String>,

    /// Show every verb, even rarely used ones
    #[arg(long, conflicts_with = "verb")]
    all: bool,
}

pub(crate) fn run(args: &HelpArgs, ui: &Ui) -> Result<Answer> {
    let mut whole = args::command();
    if args.all {
        let template = template(&whole, Shown::All);
        whole = whole.help_template(template);
    }
    whole.build();
    find(&whole, &args.verb)?;
    // Ask clap for exactly what `VERB --help` prints.
    let line = ["backtrail"].into_iter().map(str::to_owned);
    let line = line
        .chain(args.verb.iter().cloned())
        .chain(["--help".to_owned()]);
    let text = match whole.try_get_matches_from(line) {
        Err(help) => help.render().ansi().to_string(),
        Ok(_) => String::new(),
    };
    let mut out = ui.out();
    write!(out, "{text}").and_then(|()| out.flush())?;
    Ok(Answer::Done)
}

/// Finds a verb, such as `show` or `trash empty`, in a built command.
pub(super) fn find(whole: &Command, words: &[String]) -> Result<Command> {
    let mut command = whole;
    for word in words {
        let verb = command.find_subcommand(word);
        command = verb.filter(|verb| !verb.is_hide_set()).ok_or_else(|| {
            let error = CommandError::not_found(format!("no verb \"{}\"", words.join(" ")));
            match suggest(command, word) {
                Some(verb) => error.hint(format!("did you mean '{verb}'?")),
                None => error.hint("all verbs: backtrail help --all"),
            }
        })?;
    }
    Ok(command.clone())
}

/// Which verbs the help shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Usual,
    All,
}

/// The column at which the description of a verb begins.
const COLUMN: usize = 15;
/// No line is wider.
const WIDEST: usize = 100;

/// Returns the width of the help.
pub(crate) fn width() -> usize {
    terminal_width().unwrap_or(WIDEST).clamp(40, WIDEST)
}

/// Returns the help template of the whole command.
pub(crate) fn template(command: &Command, shown: Shown) -> String {
    let heading = Style::new().effects(Effects::BOLD.insert(Effects::UNDERLINE));
    let name = Style::new().bold();
    let more = Some(&MORE).filter(|_| shown == Shown::All);
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, verbs) in GROUPS.iter().chain(more) {
        text += &format!("\n{heading}{group}:{heading:#}\n");
        for verb in *verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let pad = " ".repeat(COLUMN.saturating_sub(2 + verb.len()));
            let about = hanging(COLUMN, &about, Some(width()));
            text += &format!("  {name}{verb}{name:#}{pad}{about}\n");
        }
    }
    text += &format!("\n{heading}Options:{heading:#}\n{{options}}\n\n");
    text += match shown {
        Shown::Usual => {
            "`backtrail help VERB` shows a verb's options and examples,\n\
             `backtrail help --all` every verb."
        }
        Shown::All => {
            "`backtrail help VERB` shows a verb's options and examples,\n\
             `backtrail man` prints the manual."
        }
    };
    text
}
