//! Completions of the last word of a command line.

use std::fmt;

use clap::builder::StyledStr;
use clap::{Arg, Command};

use super::values::Values;
use crate::text::one_line;

/// A completion and its description.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) value: String,
    pub(super) what: String,
}

impl Candidate {
    /// Makes a candidate of any texts; `None` if the value cannot be typed.
    pub(super) fn new(value: &str, what: &str) -> Option<Self> {
        let typed = !value.is_empty() && !value.contains(char::is_control);
        typed.then(|| Self {
            value: value.to_owned(),
            what: one_line(what, 60),
        })
    }

    /// Makes a word that tells the shell to complete files or commands itself.
    pub(super) fn shells(what: &str) -> Self {
        Self {
            value: format!(":{what}"),
            what: String::new(),
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what.is_empty() {
            true => f.write_str(&self.value),
            false => write!(f, "{}\t{}", self.value, self.what),
        }
    }
}

/// Returns the completions of the last word.
pub(super) fn candidates(command: &Command, words: &[String]) -> Vec<Candidate> {
    let Some((current, before)) = words.split_last() else {
        return Vec::new();
    };
    let mut line = CommandLine::new(command);
    before.iter().for_each(|word| line.take(word));
    line.complete(current)
}

/// The meaning of the words so far.
struct CommandLine<'a> {
    command: &'a Command,
    /// The verbs so far.
    verbs: Vec<&'a str>,
    /// The option whose value comes next.
    waiting: Option<&'a Arg>,
    /// How many positional arguments came since the last verb.
    own: usize,
    /// Whether `--` came: no options follow.
    ended: bool,
    store: Option<String>,
}

impl<'a> CommandLine<'a> {
    fn new(command: &'a Command) -> Self {
        Self {
            command,
            verbs: Vec::new(),
            waiting: None,
            own: 0,
            ended: false,
            store: None,
        }
    }

    fn take(&mut self, word: &str) {
        if word == "=" && self.waiting.is_some() {
            // bash splits `--option=value` into three words.
            return;
        }
        if let Some(option) = self.waiting.take() {
            self.set(option, word);
        } else if self.ended {
            self.own += 1;
        } else if word == "--" {
            self.ended = true;
        } else if let Some(long) = word.strip_prefix("--") {
            self.take_long(long);
        } else if word.len() > 1 && word.starts_with('-') {
            self.take_short(&word[1..]);
        } else if let Some(verb) = self.verb(word) {
            self.command = verb;
            self.verbs.push(verb.get_name());
            self.own = 0;
        } else {
            self.own += 1;
        }
    }

    fn take_long(&mut self, word: &str) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let Some(option) = self.option(name) else {
            return;
        };
        match value {
            Some(value) => self.set(option, value),
            None if takes_value(option) => self.waiting = Some(option),
            None => {}
        }
    }

    /// Takes `-n`, `-n5` or several in one word.
    fn take_short(&mut self, letters: &str) {
        for (at, letter) in letters.char_indices() {
            let mut options = self.command.get_arguments();
            let option = options.find(|it| it.get_short() == Some(letter));
            let Some(option) = option.filter(|it| takes_value(it)) else {
                continue;
            };
            if at + letter.len_utf8() == letters.len() {
                self.waiting = Some(option);
            }
            return;
        }
    }

    fn set(&mut self, option: &Arg, value: &str) {
        if option.get_id() == "store" {
            self.store = Some(value.to_owned());
        }
    }

    fn option(&self, name: &str) -> Option<&'a Arg> {
        let mut options = self.command.get_arguments();
        options.find(|option| option.get_long() == Some(name))
    }

    fn verb(&self, word: &str) -> Option<&'a Command> {
        match self.own {
            0 => self.command.find_subcommand(word),
            _ => None,
        }
    }

    fn complete(&self, current: &str) -> Vec<Candidate> {
        if let Some(option) = self.waiting {
            let current = if current == "=" { "" } else { current };
            return self.values(option, current);
        }
        if !self.ended && current.starts_with('-') {
            return match current.strip_prefix("--").and_then(|it| it.split_once('=')) {
                Some((name, value)) => self.values_behind(name, value),
                None => self.options(current),
            };
        }
        let mut found = Vec::new();
        if self.own == 0 && !self.ended {
            found.extend(self.verbs_like(current));
        }
        if let Some(argument) = self.argument() {
            found.extend(self.values(argument, current));
        }
        found
    }

    /// Returns the next positional argument.
    fn argument(&self) -> Option<&'a Arg> {
        let all = || {
            self.command
                .get_positionals()
                .filter(|it| !it.is_hide_set())
        };
        let last = all().find(|it| it.is_last_set());
        if self.ended && last.is_some() {
            return last;
        }
        let own: Vec<&Arg> = all().filter(|it| !it.is_last_set()).collect();
        let repeats = |it: &&Arg| it.get_num_args().is_some_and(|n| n.max_values() > 1);
        let at = own.get(self.own).copied();
        at.or_else(|| own.last().copied().filter(repeats))
    }

    fn verbs_like(&self, current: &str) -> Vec<Candidate> {
        let verbs = self.command.get_subcommands();
        let shown = verbs.filter(|verb| !verb.is_hide_set());
        let named = shown.filter(|verb| verb.get_name().starts_with(current));
        let candidate = |verb: &Command| Candidate::new(verb.get_name(), &plain(verb.get_about()));
        named.filter_map(candidate).collect()
    }

    fn options(&self, current: &str) -> Vec<Candidate> {
        let all = self.command.get_arguments();
        let shown = all.filter(|option| !option.is_hide_set());
        let candidate = |option: &Arg| {
            let name = format!("--{}", option.get_long()?);
            Candidate::new(&name, &plain(option.get_help())).filter(|_| name.starts_with(current))
        };
        shown.filter_map(candidate).collect()
    }

    /// Completes the value in `--name=value`.
    fn values_behind(&self, name: &str, value: &str) -> Vec<Candidate> {
        let Some(option) = self.option(name) else {
            return Vec::new();
        };
        let mut found = self.values(option, value);
        found.retain(|it| !it.value.starts_with(':'));
        for candidate in &mut found {
            candidate.value = format!("--{name}={}", candidate.value);
        }
        found
    }

    fn values(&self, argument: &Arg, current: &str) -> Vec<Candidate> {
        let known = argument.get_possible_values();
        if !known.is_empty() && takes_value(argument) {
            let shown = known.iter().filter(|value| !value.is_hide_set());
            let candidate = |value: &clap::builder::PossibleValue| {
                Candidate::new(value.get_name(), &plain(value.get_help()))
            };
            let all = shown.filter_map(candidate);
            return all.filter(|it| it.value.starts_with(current)).collect();
        }
        let name = argument.get_value_names().and_then(|names| names.first());
        let values = Values::new(self.store.as_deref(), current);
        let name = name.map_or("", |name| name.as_str());
        match (self.verbs.as_slice(), name) {
            (["trash", ..], "REF") => values.deleted(),
            (["fork"], "POINT") => values.sessions_and_points(),
            (_, "REMOTE") => values.remotes(),
            (_, "REF") => values.sessions(),
            (_, "POINT" | "A" | "B") => values.points(),
            (_, "VERB") => self.all_verbs(current),
            (_, "AGENT") => values.agents(),
            (_, "MODEL") => values.models(),
            (_, "TAG") => values.tags(),
            (_, "DIR") => vec![Candidate::shells("dirs")],
            (_, "PATH" | "PATHS" | "FILE") => vec![Candidate::shells("files")],
            (_, "CMD") if self.own == 0 => vec![Candidate::shells("commands")],
            (_, "CMD") => vec![Candidate::shells("files")],
            _ => Vec::new(),
        }
    }

    /// Returns every verb.
    fn all_verbs(&self, current: &str) -> Vec<Candidate> {
        let mut whole = <crate::args::Args as clap::CommandFactory>::command();
        whole.build();
        CommandLine::new(&whole).verbs_like(current)
    }
}

/// Returns a help text without its styles.
fn plain(help: Option<&StyledStr>) -> String {
    help.map(ToString::to_string).unwrap_or_default()
}

fn takes_value(option: &Arg) -> bool {
    option.get_num_args().is_some_and(|n| n.takes_values())
}
