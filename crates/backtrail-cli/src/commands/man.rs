//! `backtrail man`: the manual, in roff.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::Answer;
use super::help::find;
use crate::args;
use crate::error::Result;
use crate::ui::Ui;

/// Print the manual page, for all verbs or one
///
/// Read it with `backtrail man | man -l -`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The verb
    #[arg(value_name = "VERB", num_args = 0..=2)]
    verb: Vec<String>,
}

pub(crate) fn run(args: &ManArgs, _ui: &Ui) -> Result<Answer> {
    let mut whole = args::command();
    whole.build();
    let page = match args.verb.is_empty() {
        true => all(&whole),
        false => one(&find(&whole, &args.verb)?),
    };
    let page = page?;
    let mut out = io::stdout().lock();
    out.write_all(&page).and_then(|()| out.flush())?;
    Ok(Answer::Done)
}

/// Writes the page of one verb.
fn one(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    man(command).render(&mut page)?;
    Ok(page)
}

fn man(command: &Command) -> Man {
    // The program and the verb: `backtrail trash empty`.
    let name = command.get_bin_name().unwrap_or(command.get_name());
    Man::new(command.clone())
        .title(name.replace(' ', "-").to_uppercase())
        .date("")
        .source(concat!("backtrail ", env!("CARGO_PKG_VERSION")))
        .manual("Backtrail")
}

/// Writes one page with all verbs.
fn all(whole: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = man(whole);
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut roff = Roff::new();
    roff.control("SH", ["VERBS"]);
    for verb in shown(whole) {
        write_verb(&mut roff, verb);
    }
    roff.control("SH", ["EXIT STATUS"]);
    roff.text([roman(
        "0: done. 1: the answer is no, or you must act. 2: wrong usage or failure. \
         run exits with the code of its command.",
    )]);
    roff.control("SH", ["ENVIRONMENT"]);
    for (name, what) in [
        ("BACKTRAIL_HOME", "The directory of the store."),
        (
            "BACKTRAIL_PAGER, PAGER",
            "The pager for long output on a terminal.",
        ),
        ("COLUMNS", "The width of the output."),
        (
            "NO_COLOR",
            "If set, no colours unless --color asks for them.",
        ),
    ] {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(what)]);
    }
    roff.to_writer(&mut page)?;
    Ok(page)
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set())
}

fn write_verb(roff: &mut Roff, verb: &Command) {
    let usage = verb.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim().to_owned();
    roff.control("SS", [usage.as_str()]);
    let about = verb.get_long_about().or(verb.get_about());
    for paragraph in about
        .map(ToString::to_string)
        .unwrap_or_default()
        .split("\n\n")
    {
        roff.control("PP", []);
        roff.text([roman(paragraph.replace('\n', " "))]);
    }
    let is_own =
        |arg: &&clap::Arg| !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help";
    for arg in verb.get_arguments().filter(is_own) {
        roff.control("TP", []);
        roff.text([bold(arg_name(arg))]);
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        roff.text([roman(help.replace('\n', " "))]);
    }
    if let Some(examples) = verb.get_after_help() {
        let examples = examples.to_string();
        roff.control("PP", []);
        roff.control("nf", []);
        for line in examples.lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    for inner in shown(verb) {
        write_verb(roff, inner);
    }
}

/// Returns an argument as typed.
fn arg_name(arg: &clap::Arg) -> String {
    let takes = arg.get_num_args().is_some_and(|n| n.takes_values());
    let values = arg.get_value_names().unwrap_or_default().iter();
    let values = values
        .map(|name| name.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    let options = [
        arg.get_short().map(|letter| format!("-{letter}")),
        arg.get_long().map(|name| format!("--{name}")),
    ];
    let options = options.into_iter().flatten().collect::<Vec<_>>().join(", ");
    match (options.is_empty(), takes) {
        (true, _) => values,
        (false, true) => format!("{options} {values}"),
        (false, false) => options,
    }
}
