//! What is said of a move: what it did, or what it would do.

use std::path::{Path, PathBuf};

use backtrail::{Timestamp, Verb};

use super::lists::{Item, lines, shortened};
use super::outcome::{Chat, Left, Merged, Outcome, Stage, Target};
use crate::commands::short;
use crate::text::{clean, count, grouped, one_line, visible_path};
use crate::when;

/// What is above and below a prompt of several lines.
const RULE: &str = "────────────────────";

/// How it is told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner<'a> {
    /// What a command that we name begins with.
    pub(super) program: &'a str,
    /// The workspace, where it is not the one around us.
    pub(super) place: Option<&'a str>,
    /// How wide the terminal is.
    pub(super) width: Option<usize>,
}

impl Outcome {
    /// Writes what it does, or would do.
    pub(super) fn lines(&self, manner: Manner<'_>) -> Vec<String> {
        let list = lines(&self.items(), manner.width);
        let mut all = Vec::new();
        if let Some(heading) = self.heading(manner.place) {
            let colon = if list.is_empty() { "" } else { ":" };
            all.push(format!("{heading}{colon}"));
        }
        all.extend(list);
        all.extend(self.tool_calls());
        all.extend(self.others());
        all.extend(self.conversation(manner.program));
        all
    }

    /// Says that all is as it shall be already.
    pub(super) fn already(&self) -> String {
        match (&self.to, &self.session) {
            (Some(to), _) => format!("already as it was {}{}", to.when(), at(to)),
            (None, Some(id)) => format!("the conversation of {} ends there already", short(id)),
            (None, None) => "that point belongs to no conversation".to_owned(),
        }
    }

    fn is_planned(&self) -> bool {
        self.stage != Stage::Done
    }

    /// Says what it is as a whole; a conversation that goes back alone says it
    /// itself.
    fn heading(&self, place: Option<&str>) -> Option<String> {
        let planned = self.is_planned();
        let heading = match (self.verb, &self.step, &self.to) {
            (Verb::Undo | Verb::Redo, Some(step), _) => {
                let did = match (self.verb, planned) {
                    (Verb::Undo, false) => "Took back",
                    (Verb::Undo, true) => "Would take back",
                    (_, false) => "Brought back",
                    (_, true) => "Would bring back",
                };
                let did = match self.is_futile() {
                    true if planned => "Could take back nothing of",
                    true => "Nothing could be taken back of",
                    false => did,
                };
                let at = step.at.map_or_else(String::new, in_brackets);
                format!("{did} {}{at}", shortened(&step.words, 80))
            }
            (_, _, Some(to)) if self.is_futile() => {
                format!("Not as it was {}{}", to.when(), at(to))
            }
            (Verb::Restore, _, Some(to)) => {
                let is = if planned { "Would be as" } else { "As" };
                format!("{is} it was {}{}", to.when(), at(to))
            }
            (_, _, Some(to)) => {
                let did = if planned { "Would go back" } else { "Back" };
                format!("{did} to {}{}", to.words, at(to))
            }
            _ => return None,
        };
        Some(match place {
            Some(place) => format!("{heading} in {place}"),
            None => heading,
        })
    }

    fn items(&self) -> Vec<Item> {
        let words: [&str; 5] = match self.is_planned() {
            false => ["restored", "merged", "deleted", "kept", "not restored"],
            true => [
                "would restore",
                "would merge",
                "would delete",
                "would keep",
                "cannot restore",
            ],
        };
        let mut items = Vec::new();
        items.extend(names(words[0], &self.restored));
        items.extend(self.merged.iter().map(|one| one.item(words[1])));
        items.extend(names(words[2], &self.deleted));
        items.extend(by_reason(words[3], &self.kept));
        items.extend(by_reason(words[4], &self.not_restored));
        let counts = self.verb != Verb::Restore && self.unchanged > 0;
        if counts && (self.to.is_some() || !items.is_empty()) {
            let files = match self.unchanged {
                1 => "1 file".to_owned(),
                n => format!("{} files", grouped(n)),
            };
            items.push(Item::text("unchanged", files));
        }
        if let Some(text) = self.skipped.as_ref().filter(|_| self.moves_files()) {
            items.push(Item::text("not captured", text.clone()));
        }
        items
    }

    fn tool_calls(&self) -> Option<String> {
        if self.tool_calls.is_empty() {
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        for name in &self.tool_calls {
            let name = one_line(name, 30);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = if names.len() > 5 { ", …" } else { "" };
        names.truncate(5);
        let calls = count(self.tool_calls.len() as u64, "tool call");
        let names = names.join(", ");
        Some(format!(
            "not taken back: {calls} after the checkpoint ({names}{more})"
        ))
    }

    /// Names the sessions whose conversations say more than the files show now.
    fn others(&self) -> Option<String> {
        if self.others.is_empty() || !self.moves_files() {
            return None;
        }
        let ids: Vec<&str> = self.others.iter().take(3).map(short).collect();
        let more = if self.others.len() > 3 { ", …" } else { "" };
        let (sessions, stays) = match self.others.len() {
            1 => ("session", "its conversation stays as it is"),
            _ => ("sessions", "their conversations stay as they are"),
        };
        let ids = ids.join(", ");
        Some(format!(
            "That was also the work of {sessions} {ids}{more}; {stays}"
        ))
    }

    fn conversation(&self, program: &str) -> Vec<String> {
        if let Some(chat) = &self.chat {
            return chat.lines(self.is_planned());
        }
        let Some(agent) = &self.belongs_to else {
            return Vec::new();
        };
        let stays = format!(
            "The conversation stays: it belongs to {}",
            one_line(agent, 40)
        );
        let place = self.to.as_ref().and_then(|to| to.place.as_ref());
        match place {
            Some((id, seq)) => vec![
                stays,
                format!("go on from there with: {program} fork {}:{seq}", short(id)),
            ],
            None => vec![stays],
        }
    }
}

impl Merged {
    /// Says how many lines come back and go; what else was there stays.
    fn item(&self, label: &str) -> Item {
        let (returned, removed) = (grouped(self.returned), grouped(self.removed));
        Item {
            label: label.to_owned(),
            words: vec![
                visible_path(&self.path),
                format!("(+{returned} −{removed} lines;"),
                "the rest".to_owned(),
                "stays)".to_owned(),
            ],
        }
    }
}

impl Chat {
    /// Says where the conversation ends; the prompt that it ends before is given
    /// whole, to be edited and sent again.
    fn lines(&self, planned: bool) -> Vec<String> {
        let ends = if planned { "would end" } else { "ends" };
        let Some(prompt) = &self.prompt else {
            let id = short(&self.session);
            let now = if planned { "" } else { " now" };
            return vec![match self.to {
                Some(0) if planned => format!("The conversation of {id} would be empty"),
                Some(0) => format!("The conversation of {id} is empty now"),
                Some(to) => format!("The conversation of {id} {ends} at record {to}{now}"),
                None => return Vec::new(),
            }];
        };
        let prompt = clean(prompt.trim_end());
        if !prompt.contains('\n') {
            return vec![format!("The conversation {ends} before: \"{prompt}\"")];
        }
        let mut lines = vec![
            format!("The conversation {ends} before this prompt:"),
            RULE.to_owned(),
        ];
        lines.extend(prompt.lines().map(ToOwned::to_owned));
        lines.push(RULE.to_owned());
        lines
    }
}

fn names(label: &str, paths: &[PathBuf]) -> Option<Item> {
    Item::names(label, paths.iter().map(PathBuf::as_path), None)
}

/// Makes a line for each reason, in the order in which they come up.
fn by_reason(label: &str, left: &[Left]) -> Vec<Item> {
    let mut reasons: Vec<&str> = Vec::new();
    for one in left {
        if !reasons.contains(&one.why.as_str()) {
            reasons.push(&one.why);
        }
    }
    let item = |why: &str| {
        let of = |one: &&Left| one.why == why;
        let paths: Vec<&Path> = left.iter().filter(of).map(|one| &*one.path).collect();
        Item::names(label, paths.into_iter(), Some(&one_line(why, 80)))
    };
    reasons.into_iter().filter_map(item).collect()
}

fn at(to: &Target) -> String {
    in_brackets(to.at)
}

fn in_brackets(at: Timestamp) -> String {
    format!(" ({})", when::brief(at))
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
