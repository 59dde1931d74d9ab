//! The title of a session: one rule for every list and page.
//!
//! The title that the user or the agent gave, else the first prompt; a session without one is
//! called by the command that it ran, or by what the assistant said first.

use super::item::Item;
use crate::error::Result;
use crate::session::{Run, SessionReader};

/// How long a title is at most, in characters.
const LENGTH: usize = 120;
/// How many items are read to find a prompt.
const LOOKED_AT: usize = 1_000;

/// Commands to the agent itself: they say nothing about what a session is about.
const HOUSEKEEPING: [&str; 66] = [
    "/add",
    "/add-dir",
    "/agents",
    "/bashes",
    "/bug",
    "/chat",
    "/chat-mode",
    "/clear",
    "/commit",
    "/compact",
    "/config",
    "/context",
    "/copy",
    "/copy-context",
    "/cost",
    "/diff",
    "/doctor",
    "/drop",
    "/edit",
    "/editor",
    "/editor-model",
    "/effort",
    "/exit",
    "/export",
    "/fast",
    "/git",
    "/help",
    "/hooks",
    "/ide",
    "/lint",
    "/load",
    "/login",
    "/logout",
    "/ls",
    "/map",
    "/map-refresh",
    "/mcp",
    "/memory",
    "/model",
    "/models",
    "/multiline-mode",
    "/new",
    "/paste",
    "/permissions",
    "/plugin",
    "/quit",
    "/read-only",
    "/reasoning-effort",
    "/rename",
    "/report",
    "/reset",
    "/resume",
    "/rewind",
    "/run",
    "/save",
    "/settings",
    "/status",
    "/statusline",
    "/theme",
    "/think-tokens",
    "/tokens",
    "/undo",
    "/usage",
    "/vim",
    "/weak-model",
    "/web",
];

/// Finds a session's title in its prompts.
#[derive(Debug, Clone, Default)]
pub struct TitleFinder {
    /// The first command to the agent, in case that there is nothing else.
    command: Option<String>,
    title: Option<String>,
}

impl TitleFinder {
    /// Looks at the next prompt; returns whether it decides the title, so that later ones
    /// need not be looked at.
    pub fn add(&mut self, said: &str) -> bool {
        if self.title.is_some() {
            return true;
        }
        let Some(title) = title_of_prompt(said) else {
            return false;
        };
        if is_housekeeping(&title) {
            self.command.get_or_insert(title);
            return false;
        }
        self.title = Some(title);
        true
    }

    /// Returns the title, if a prompt gave one.
    pub fn finish(self) -> Option<String> {
        self.title.or(self.command)
    }
}

fn is_housekeeping(title: &str) -> bool {
    let command = title.split_whitespace().next().unwrap_or_default();
    // aider knows `/tok` as `/tokens`.
    let is_short = |known: &&str| command.len() >= 3 && known.starts_with(command);
    command.starts_with('/') && HOUSEKEEPING.iter().any(is_short)
}

/// Returns the title that a prompt gives, in one line.
fn title_of_prompt(said: &str) -> Option<String> {
    const PLAN: &str = "implement the following plan:";
    let said = said.trim();
    let start = said.get(..PLAN.len()).unwrap_or_default();
    let text = match start.eq_ignore_ascii_case(PLAN) {
        true => {
            let plan = said[PLAN.len()..].trim_start();
            match plan.starts_with('#') {
                true => plan.lines().next().unwrap_or_default(),
                false => plan,
            }
        }
        false => said,
    };
    match heading(text) {
        Some((heading, "")) => one_line(heading),
        Some((heading, rest)) => one_line(&format!("{heading}: {rest}")),
        None => one_line(text),
    }
}

/// Splits a text that begins with a heading.
fn heading(text: &str) -> Option<(&str, &str)> {
    const MARKS: [char; 3] = ['#', ' ', '\t'];
    let text = text.strip_prefix('#')?.trim_start_matches(MARKS);
    let (heading, rest) = text.split_once('\n').unwrap_or((text, ""));
    let rest = rest.trim_start().trim_start_matches(MARKS).trim_end();
    Some((heading.trim_end().trim_end_matches(':'), rest))
}

/// Returns the beginning of a text in one line; `None` if it is blank.
fn one_line(text: &str) -> Option<String> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * LENGTH {
            break;
        }
    }
    (!line.is_empty()).then(|| shortened(line))
}

/// Cuts a line that is too long, between words if it can.
fn shortened(line: String) -> String {
    let Some((end, _)) = line.char_indices().nth(LENGTH) else {
        return line;
    };
    let end = line[..end]
        .rfind(' ')
        .filter(|at| *at > end / 2)
        .unwrap_or(end);
    format!("{}…", line[..end].trim_end())
}

impl SessionReader {
    /// Returns the title of the session: the one that the user or the agent gave, else what
    /// the first prompt says, else the first command that it ran, or what the assistant said
    /// first. `None` if there is nothing of that.
    ///
    /// # Errors
    ///
    /// Fails if the session's files cannot be read.
    pub fn title(&self) -> Result<Option<String>> {
        let info = self.info()?;
        match info.title.filter(|title| !title.trim().is_empty()) {
            Some(title) => Ok(Some(title)),
            None => self.title_of_content(),
        }
    }

    /// Returns the title that the conversation gives.
    fn title_of_content(&self) -> Result<Option<String>> {
        let mut prompts = TitleFinder::default();
        let mut other = None;
        for item in self.conversation()?.take(LOOKED_AT) {
            match item? {
                Item::Prompt(prompt) if prompts.add(&prompt.text) => break,
                Item::Run(run) if other.is_none() => {
                    other = run.run.and_then(|run| one_line(&command_of(&run)));
                }
                Item::Answer(answer) if other.is_none() => {
                    other = one_line(answer.text.trim_start_matches(['#', ' ', '*', '\n']));
                }
                Item::ToolCall(call) if other.is_none() => other = one_line(&call.name),
                _ => {}
            }
        }
        Ok(prompts.finish().or(other))
    }
}

fn command_of(run: &Run) -> String {
    let words = run.argv.iter().map(|word| word.to_string_lossy());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(prompts: &[&str]) -> Option<String> {
        let mut finder = TitleFinder::default();
        let _ = prompts.iter().any(|prompt| finder.add(prompt));
        finder.finish()
    }

    #[test]
    fn the_first_real_prompt_is_the_title() {
        let cases: [(&[&str], Option<&str>); 11] = [
            (&["  fix\n the   bug "], Some("fix the bug")),
            (
                &["Implement the following plan:\n\n# Faster lists\n\n## Why"],
                Some("Faster lists"),
            ),
            (&["implement the following plan: do it"], Some("do it")),
            (&["# Task\ndo it"], Some("Task: do it")),
            (&["## Context:\n\n### Now\nx"], Some("Context: Now x")),
            (&["# Only a heading"], Some("Only a heading")),
            (&["/clear", "/review HEAD", "x"], Some("/review HEAD")),
            (&["/model opus", "  "], Some("/model opus")),
            (&["/add a.py", "/tok", "/ask why?"], Some("/ask why?")),
            (&[], None),
            (&["", "second"], Some("second")),
        ];
        for (prompts, expected) in cases {
            assert_eq!(title(prompts).as_deref(), expected, "{prompts:?}");
        }
        let long = "é".repeat(5_000);
        assert_eq!(title(&[&long]).unwrap().chars().count(), LENGTH + 1);
        let words = title(&[&"word ".repeat(50)]).unwrap();
        assert!(
            words.ends_with("word…") && words.len() <= LENGTH + 3,
            "{words}"
        );
    }
}
