//! The command line that an agent runs: it calls `backtrail hook` and never disturbs the agent.
//!
//! If the program is missing, too old to know `hook`, crashes or prints something else than one JSON object,
//! the line prints nothing and exits with 0: exit code 2 means *refuse* to several agents. It
//! reads its input to the end, so that the agent can always write it.
//!
//! The line ends with a comment, the mark. By it, `setup` recognises its own lines, and it says
//! which directories, files and containers were created for them, so that `setup --remove` can remove
//! just these, on any machine that the file is copied to.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::error::{CommandError, Result};
use crate::shell::quote;

/// How the mark begins.
pub(super) const MARK: &str = "added by backtrail setup";

/// The program that hooks call, and the store that was named for it.
#[derive(Debug, Clone)]
pub(super) struct HookProgram {
    path: String,
    store: Option<String>,
}

/// What had to be created for a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Created {
    /// The levels that were not there.
    pub(super) new: BTreeSet<Level>,
    /// The levels that were there with nothing inside, not even a space.
    pub(super) tight: BTreeSet<Level>,
    /// How many directories above the file were not there.
    pub(super) directories: usize,
}

/// The containers around a hook, from the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    File,
    Root,
    Hooks,
    Event,
}

impl Level {
    const ALL: [Self; 4] = [Self::File, Self::Root, Self::Hooks, Self::Event];

    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Root => "root",
            Self::Hooks => "hooks",
            Self::Event => "event",
        }
    }
}

impl HookProgram {
    /// Takes paths that are written into the files of agents, which are text.
    pub(super) fn new(path: &Path, store: Option<&Path>) -> Result<Self> {
        let text = |path: &Path| match path.to_str() {
            Some(text) if !text.contains(|c: char| c.is_control()) => Ok(text.to_owned()),
            _ => {
                let what = format!("{} cannot be written into settings", path.display());
                Err(CommandError::invalid(what)
                    .hint("use a path of UTF-8 text without control characters"))
            }
        };
        Ok(Self {
            path: text(path)?,
            store: store.map(text).transpose()?,
        })
    }

    /// Returns the same with another program.
    pub(super) fn at(&self, path: &Path) -> Result<Self> {
        let path = Self::new(path, None)?.path;
        let store = self.store.clone();
        Ok(Self { path, store })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the arguments before the verb.
    pub(super) fn options(&self) -> Vec<&str> {
        let store = self.store.as_deref();
        store.map_or_else(Vec::new, |store| vec!["--store", store])
    }

    /// Returns the guarded command line for any shell.
    pub(super) fn line(&self, agent: &str, event: &str, created: &Created) -> String {
        let script = self.script(agent, event);
        format!("sh -c {}", quote(&format!("{script} # {}", created.mark())))
    }

    /// Returns the guarded command line of a status line, which runs the command `before` first.
    /// Whatever is wrong with the program, that one runs.
    pub(super) fn status_line(&self, before: Option<&str>, mark: &str) -> String {
        let path = quote_within(&self.path);
        let options: String = self.options().iter().map(|it| quote_option(it)).collect();
        let found = format!(
            "exec 2>/dev/null; _btp={path}; [ -x \"$_btp\" ] || _btp=$(command -v backtrail)"
        );
        let script = match before {
            None => format!(
                "{found} || {{ cat >/dev/null; exit 0; }}; \
                 _bto=$(\"$_btp\"{options} statusline) || {{ cat >/dev/null; exit 0; }}; \
                 [ -z \"$_bto\" ] || printf \"%s\\n\" \"$_bto\"; exit 0"
            ),
            Some(before) => format!(
                "{found}; _btc='{}'; [ -n \"$_btp\" ] && \
                 _bto=$(\"$_btp\"{options} statusline --after=\"$_btc\") && \
                 {{ printf \"%s\\n\" \"$_bto\"; exit 0; }}; exec sh -c \"$_btc\"",
                before.replace('\'', r#"'"'"'"#)
            ),
        };
        // Any shell and any command: also one with lines.
        let script = format!("{script} # {mark}").replace('\'', r"'\''");
        format!("sh -c '{script}'")
    }

    /// Returns the guarded commands for sh. The names of the variables are odd, as Gemini CLI and
    /// Qwen Code replace those that are in the environment.
    pub(super) fn script(&self, agent: &str, event: &str) -> String {
        let path = quote_within(&self.path);
        let options: String = self.options().iter().map(|it| quote_option(it)).collect();
        format!(
            "exec 2>/dev/null; _btp={path}; \
             [ -x \"$_btp\" ] || _btp=$(command -v backtrail) || {{ cat >/dev/null; exit 0; }}; \
             _bto=$(\"$_btp\"{options} hook {agent} --event {event}) || {{ cat >/dev/null; exit 0; }}; \
             case $_bto in \"{{\"*\"}}\") printf \"%s\\n\" \"$_bto\";; esac; exit 0"
        )
    }
}

fn quote_option(word: &str) -> String {
    match word.starts_with("--") {
        true => format!(" {word}"),
        false => format!(" {}", quote_within(word)),
    }
}

/// Quotes a word of the commands so that they can be quoted again: fish takes a backslash before a
/// quote for an escape, also within quotes.
fn quote_within(word: &str) -> String {
    quote(word).replace(r"'\''", r#"'"'"'"#)
}

/// Returns the path of the program in a line that `setup` wrote.
pub(super) fn program_in(text: &str) -> Option<PathBuf> {
    let (_, rest) = text.split_once("_btp=")?;
    // Inside of the line's own quotes, a quote is written as '\''.
    let rest = rest.replace(r"'\''", "'");
    let path = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split_once("'; [ -x")?.0.replace(r#"'"'"'"#, "'"),
        None => rest.split_once(';')?.0.to_owned(),
    };
    Some(PathBuf::from(path))
}

impl Created {
    /// Returns the mark.
    pub(super) fn mark(&self) -> String {
        let list = |title: &str, levels: &BTreeSet<Level>| match levels.is_empty() {
            true => String::new(),
            false => {
                let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
                format!("; {title}: {}", names.join(" "))
            }
        };
        let directories = match self.directories {
            0 => String::new(),
            count => format!("; new directories: {count}"),
        };
        let (new, tight) = (list("new", &self.new), list("empty", &self.tight));
        format!("{MARK}{new}{tight}{directories}")
    }

    /// Reads the mark in a text; `None` if there is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (_, mark) = text.split_once(&format!(" {MARK}"))?;
        // It ends with its line, or with the quotes around it.
        let end = mark.find(['\n', '\r', '\'', '"']);
        let mark = &mark[..end.unwrap_or(mark.len())];
        let mut created = Self::default();
        for part in mark.split("; ") {
            let Some((title, values)) = part.split_once(": ") else {
                continue;
            };
            let named = |level: &Level| values.split(' ').any(|name| name == level.name());
            let levels = || Level::ALL.into_iter().filter(named);
            match title {
                "new" => created.new.extend(levels()),
                "empty" => created.tight.extend(levels()),
                "new directories" => created.directories = values.parse().unwrap_or(0),
                _ => {}
            }
        }
        Some(created)
    }
}

#[cfg(test)]
#[path = "hook_line_tests.rs"]
mod tests;
