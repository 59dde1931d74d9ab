//! An outcome as text: what was done, or would be.

use std::path::Path;

use backtrail::rewind::{ChangedBy, ChatMove, KeptReason, PathOutcome, PathOutcomeKind, Stage};
use backtrail::rewind::{Program, TargetPoint, Verb};
use backtrail::workspace::{Activity, CheckpointReason};
use backtrail::{Checkpoint, Outcome, Step, StepKind, Timestamp, Workspace};
use backtrail_formats::{agent_title, launcher};

use super::conflict_text::you_or;
use super::lists::{Item, lines, shortened};
use crate::commands::checkpoint::skipped;
use crate::commands::short;
use crate::text::{clean, count, grouped, one_line, some_of, visible, visible_path};
use crate::when;

/// The line above and below a prompt of several lines.
const RULE: &str = "────────────────────";

/// How a heading says what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// Undid.
    Did,
    /// Would undo.
    Would,
    /// Undo.
    Do,
}

/// An outcome, and how it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutcomeText<'a> {
    pub(super) outcome: &'a Outcome,
    /// What commands in the text begin with.
    pub(super) program: &'a str,
    /// The workspace, if it is not the current one.
    pub(super) place: Option<&'a str>,
    /// The width of the terminal.
    pub(super) width: Option<usize>,
}

impl OutcomeText<'_> {
    /// Returns what was done, or would be.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(heading) = self.heading() {
            // How many files moved ends the line already.
            let is_ended = self.items().is_empty() || heading.contains("): ");
            let colon = if is_ended { "" } else { ":" };
            all.push(format!("{heading}{colon}"));
        }
        all.extend(self.details());
        all
    }

    /// Returns the same without its first line.
    pub(super) fn details(&self) -> Vec<String> {
        let mut all = lines(&self.items(), self.width);
        all.extend(self.replaced());
        all.extend(self.tool_calls());
        all.extend(self.beside());
        all.extend(self.other_sessions());
        all.extend(self.conversation());
        all
    }

    /// Returns whether nothing of what was asked for is possible.
    pub(super) fn is_futile(&self) -> bool {
        !self.outcome.moves() && !self.outcome.not_restored.is_empty()
    }

    /// Returns whether nothing needs to change.
    pub(super) fn is_empty(&self) -> bool {
        !self.outcome.moves()
            && self.outcome.kept.is_empty()
            && self.outcome.not_restored.is_empty()
            && self.outcome.belongs_to.is_none()
            && self.outcome.chat_in_use.is_none()
    }

    /// Returns that nothing needs to change.
    pub(super) fn already(&self) -> String {
        match (&self.outcome.to, &self.outcome.session) {
            (Some(to), _) => format!("already {}{}", as_at(to), in_brackets(to.at)),
            (None, Some(id)) => format!("{} already ends there", short(id)),
            (None, None) => "that point has no conversation".to_owned(),
        }
    }

    fn is_planned(&self) -> bool {
        self.outcome.stage != Stage::Done
    }

    /// Returns the first line. A rewind of the conversation alone has none.
    pub(super) fn heading(&self) -> Option<String> {
        self.heading_in(match self.is_planned() {
            true => Mood::Would,
            false => Mood::Did,
        })
    }

    /// Returns what is to be done, in a few words: `Undo prompt 3 "port the parser"`.
    pub(super) fn title(&self) -> String {
        self.heading_in(Mood::Do)
            .unwrap_or_else(|| "Rewind the conversation".to_owned())
    }

    fn heading_in(&self, mood: Mood) -> Option<String> {
        let futile = self.is_futile();
        let heading = match (self.outcome.verb, &self.outcome.step, &self.outcome.to) {
            (verb @ (Verb::Undo | Verb::Redo), Some(step), _) => {
                let did = match (verb, mood) {
                    _ if futile => "Cannot restore any of",
                    (Verb::Undo, Mood::Did) => "Undid",
                    (Verb::Undo, Mood::Would) => "Would undo",
                    (Verb::Undo, Mood::Do) => "Undo",
                    (_, Mood::Did) => "Redid",
                    (_, Mood::Would) => "Would redo",
                    (_, Mood::Do) => "Redo",
                };
                let how_many = match agents_step(step) {
                    Some(_) => self.how_many(),
                    None => String::new(),
                };
                format!("{did} {}{how_many}", step_text(step))
            }
            (verb, _, Some(to)) => {
                let did = match (verb, mood) {
                    _ if futile => "Cannot restore anything to",
                    (Verb::Restore, Mood::Did) => "Restored to",
                    (Verb::Restore, Mood::Would) => "Would restore to",
                    (Verb::Restore, Mood::Do) => "Restore to",
                    (_, Mood::Did) => "Back to",
                    (_, Mood::Would) => "Would go back to",
                    (_, Mood::Do) => "Go back to",
                };
                format!("{did} {}{}", point_text(to), in_brackets(to.at))
            }
            _ => return None,
        };
        Some(match self.place {
            Some(place) => format!("{heading} in {place}"),
            None => heading,
        })
    }

    /// Returns what was done in a line.
    pub(super) fn message(&self) -> String {
        let mut message = match self.heading() {
            Some(heading) if heading.ends_with(&self.how_many()) => heading,
            Some(heading) => format!("{heading}{}", self.how_many()),
            None => self.conversation().join(" "),
        };
        for (what, files) in [
            ("kept", self.outcome.kept.len()),
            ("not restored", self.outcome.not_restored.len()),
        ] {
            if files > 0 {
                message += &format!("; {what}: {}", count(files, "file"));
            }
        }
        message
    }

    /// Returns how many files moved: `: 4 files`.
    fn how_many(&self) -> String {
        let outcome = self.outcome;
        let files = outcome.restored().len() + outcome.merged().len() + outcome.deleted().len();
        match files {
            0 => String::new(),
            files => format!(": {}", count(files, "file")),
        }
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
        let outcome = self.outcome;
        let mut items = Vec::new();
        items.extend(Item::names(words[0], outcome.restored().into_iter(), None));
        items.extend(
            outcome
                .merged()
                .into_iter()
                .map(|one| merged_item(words[1], one)),
        );
        items.extend(Item::names(words[2], outcome.deleted().into_iter(), None));
        let kept = outcome.kept.iter();
        let kept = kept.map(|one| (&*one.path, self.kept_reason(&one.path, one.reason)));
        items.extend(by_reason(words[3], &kept.collect::<Vec<_>>()));
        let not_restored = outcome.not_restored.iter();
        let not_restored = not_restored.map(|one| (&*one.path, one.reason.clone()));
        items.extend(by_reason(words[4], &not_restored.collect::<Vec<_>>()));
        let counts = outcome.verb != Verb::Restore && outcome.unchanged > 0;
        if counts && (outcome.to.is_some() || !items.is_empty()) {
            items.push(Item::text("unchanged", count(outcome.unchanged, "file")));
        }
        if self.is_planned()
            && outcome.moves_files()
            && let Some(text) = skipped(&outcome.skipped)
        {
            items.push(Item::text("not protected", text));
        }
        items
    }

    /// Returns the reason why a path is kept.
    fn kept_reason(&self, path: &Path, reason: KeptReason) -> String {
        let mut conflicts = self.outcome.conflicts.iter();
        let conflict = conflicts.find(|one| one.path == path);
        let doubtful = conflict.filter(|one| one.overlapped || one.or.is_some());
        match (reason, conflict.map(|one| &one.changed_by)) {
            (KeptReason::BornIgnored, _) => "ignored when it was created".to_owned(),
            (_, Some(ChangedBy::Person)) => match doubtful {
                Some(conflict) => format!("changed by {}", you_or(conflict)),
                None => "has your changes".to_owned(),
            },
            (_, Some(ChangedBy::Run)) => "has changes by a run".to_owned(),
            (_, Some(ChangedBy::Session(id))) => format!("has changes by session {}", short(id)),
            _ => "has other changes".to_owned(),
        }
    }

    /// Names those whose changes to named files are replaced.
    fn replaced(&self) -> Vec<String> {
        let mut by: Vec<(&ChangedBy, Vec<&Path>)> = Vec::new();
        for one in self.outcome.replaced() {
            match by.iter_mut().find(|(who, _)| **who == one.changed_by) {
                Some((_, paths)) => paths.push(&one.path),
                None => by.push((&one.changed_by, vec![&one.path])),
            }
        }
        let (were, restores) = match self.is_planned() {
            true => ("would be replaced", "undo would restore them"),
            false => ("were replaced", "undo restores them"),
        };
        let line = |(who, paths): (&ChangedBy, Vec<&Path>)| {
            let all = paths.len();
            let files = some_of(paths.into_iter().map(visible_path), 5, all);
            let changes = match who {
                ChangedBy::Session(id) => {
                    format!("The changes by session {} in {files}", short(id))
                }
                ChangedBy::Run => format!("The changes by a run in {files}"),
                _ => format!("Your changes in {files}"),
            };
            format!("{changes} {were}; {restores}")
        };
        by.into_iter().map(line).collect()
    }

    fn tool_calls(&self) -> Option<String> {
        let calls = &self.outcome.tool_calls;
        if calls.is_empty() {
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        for name in calls {
            let name = one_line(name, 30);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let calls = count(calls.len(), "tool call");
        let all = names.len();
        let names = some_of(names.into_iter(), 5, all);
        Some(format!(
            "not undone: {calls} after the checkpoint ({names})"
        ))
    }

    /// Says that calls ran at the same time.
    fn beside(&self) -> Option<String> {
        let calls = &self.outcome.beside;
        if calls.is_empty() || !self.outcome.moves_files() {
            return None;
        }
        let names = calls.iter().map(|name| one_line(&visible(name), 30));
        let names = some_of(names, 3, calls.len());
        Some(format!(
            "This includes what {names} changed at the same time: their changes cannot be told apart"
        ))
    }

    /// Names the sessions whose file changes are undone while their conversations stay.
    fn other_sessions(&self) -> Option<String> {
        let others = &self.outcome.other_sessions;
        if others.is_empty() || !self.outcome.moves_files() {
            return None;
        }
        let ids = others.iter().map(|id| short(id).to_owned());
        let ids = some_of(ids, 3, others.len());
        let (sessions, stay) = match others.len() {
            1 => ("session", "its conversation stays"),
            _ => ("sessions", "their conversations stay"),
        };
        Some(format!("This includes changes by {sessions} {ids}; {stay}"))
    }

    fn conversation(&self) -> Vec<String> {
        if let Some(chat) = &self.outcome.chat {
            return chat_lines(chat, self.is_planned());
        }
        if let Some(id) = &self.outcome.chat_in_use {
            let id = short(id);
            return vec![format!(
                "The conversation of {id} stays: another process is writing to it"
            )];
        }
        let Some(agent) = &self.outcome.belongs_to else {
            return Vec::new();
        };
        let stays = format!(
            "The conversation stays: it belongs to {}",
            one_line(agent_title(agent), 40)
        );
        let to = self.outcome.to.as_ref();
        match to.and_then(|to| to.session.as_ref()) {
            Some(place) => {
                let (program, id, seq) = (self.program, short(&place.id), place.seq);
                let verb = continuing_verb(agent, seq);
                let how = format!("to continue from there: {program} {verb} {id}:{seq}");
                vec![stays, how]
            }
            None => vec![stays],
        }
    }
}

/// Returns the verb that continues a conversation of an agent from a record.
pub(in crate::commands) fn continuing_verb(agent: &str, seq: u64) -> &'static str {
    match launcher(agent) {
        Some(_) if seq > 0 => "resume",
        _ => "fork",
    }
}

/// Returns how many lines of a file change; its other lines stay.
fn merged_item(label: &str, one: &PathOutcome) -> Item {
    let (removed, returned) = match one.kind {
        PathOutcomeKind::Merge { removed, returned } => (removed, returned),
        _ => (0, 0),
    };
    let lines = format!("(+{} −{} lines;", grouped(returned), grouped(removed));
    Item {
        label: label.to_owned(),
        words: vec![
            visible_path(&one.path),
            lines,
            "the rest".to_owned(),
            "stays)".to_owned(),
        ],
    }
}

/// Returns where the conversation ends. The prompt after it is given whole, to be edited
/// and sent again.
fn chat_lines(chat: &ChatMove, planned: bool) -> Vec<String> {
    let ends = if planned { "would end" } else { "now ends" };
    let Some(prompt) = &chat.prompt else {
        let id = short(&chat.session);
        return vec![match chat.to {
            0 if planned => format!("{id} would be empty"),
            0 => format!("{id} is now empty"),
            to => format!("{id} {ends} at record {to}"),
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

/// Makes an item for each reason, in the order in which they occur.
fn by_reason(label: &str, paths: &[(&Path, String)]) -> Vec<Item> {
    let mut reasons: Vec<&str> = Vec::new();
    for (_, reason) in paths {
        if !reasons.contains(&reason.as_str()) {
            reasons.push(reason);
        }
    }
    let item = |reason: &str| {
        let of = paths.iter().filter(|(_, other)| other == reason);
        let of: Vec<&Path> = of.map(|(path, _)| *path).collect();
        Item::names(label, of.into_iter(), Some(&one_line(reason, 80)))
    };
    reasons.into_iter().filter_map(item).collect()
}

/// Describes a point, to be read after "back to".
fn point_text(to: &TargetPoint) -> String {
    shortened(&visible(&to.text), 70)
}

/// Describes the state at a point: `as it was before the run`.
fn as_at(to: &TargetPoint) -> String {
    let text = point_text(to);
    match text.starts_with("checkpoint ") || text.starts_with("the end ") {
        true => format!("as it was at {text}"),
        false => format!("as it was {text}"),
    }
}

/// Returns a step in a line: `prompt 7 "add login" (Claude Code, 2 min ago)`.
pub(in crate::commands) fn step_text(step: &Step) -> String {
    agents_step(step).unwrap_or_else(|| {
        let at = step.at.map_or_else(String::new, in_brackets);
        format!("{}{at}", shortened(&visible(&step.to_string()), 80))
    })
}

/// Returns a step of an agent's own session and whose it is: `prompt 7 "add login" (Claude Code,
/// 2 min ago)`.
fn agents_step(step: &Step) -> Option<String> {
    let agent = step.agent.as_deref()?;
    let title = one_line(agent_title(agent), 40);
    let (tool, about) = match &step.kind {
        StepKind::Turn { about } => (None, about),
        StepKind::Call { tool, about } => (Some(tool), about),
        _ => return None,
    };
    let number = step.prompt_number.map(|number| format!(" {number}"));
    let mut text = format!("prompt{}", number.unwrap_or_default());
    if let Some(about) = about {
        text = format!("{text} \"{}\"", one_line(&visible(about), 60));
    }
    if let Some(tool) = tool {
        text = format!("{} in {text}", one_line(&visible(tool), 40));
    }
    let when = step
        .at
        .map_or_else(String::new, |at| format!(", {}", when::ago(at)));
    Some(format!("{text} ({title}{when})"))
}

/// Returns what a program is called that may have changed something.
pub(in crate::commands) fn program_name(program: &Program) -> String {
    match program {
        Program::Agent(name) => one_line(agent_title(name), 40),
        Program::Process(command) => one_line(&visible(command), 40),
        Program::Turn => "the turn".to_owned(),
        _ => "the run".to_owned(),
    }
}

fn in_brackets(at: Timestamp) -> String {
    format!(" ({})", when::brief(at))
}

/// Warns about the turns and runs in progress: a run is named by its command, a turn by
/// its agent or program.
pub(super) fn running_warnings(active: &[Activity], workspace: &Workspace) -> Vec<String> {
    let warning = |activity: &Activity| {
        let start = workspace
            .checkpoint_by_id(activity.checkpoint)
            .ok()
            .flatten();
        let is_run = |start: &Checkpoint| *start.reason() == CheckpointReason::RunStart;
        let agent = start.as_ref().and_then(Checkpoint::agent);
        let name = match agent {
            Some(agent) => Some(agent_title(&agent.name).to_owned()),
            None if start.as_ref().is_some_and(is_run) => activity.about.clone(),
            None => activity.holder.program.clone(),
        };
        let name = one_line(&visible(name.as_deref().unwrap_or("an agent")), 40);
        let (since, pid) = (when::brief(activity.holder.since), activity.holder.pid);
        let session = activity.session.as_ref();
        let session = session.map_or_else(String::new, |id| format!("session {}, ", short(id)));
        format!(
            "{name} has been running here since {since} ({session}process {pid}) and will not \
             notice that its files changed"
        )
    };
    active.iter().map(warning).collect()
}

#[cfg(test)]
#[path = "outcome_text_tests.rs"]
mod tests;
