//! The changes to the files of an agent, for people.

use std::path::PathBuf;

use super::super::agents::Mechanism;
use super::super::{merge, status_line};
use super::{AgentPlan, ChangeKind};
use crate::text::count;

impl AgentPlan {
    /// Returns the changes for people, each with its place. Files of one directory are one.
    pub(in crate::commands::setup) fn rows(&self) -> Vec<(String, PathBuf)> {
        let mut rows: Vec<(ChangeKind, PathBuf, usize)> = Vec::new();
        for change in &self.changes {
            let path = change.file.path();
            let place = match self.agent.mechanism {
                Mechanism::Scripts => path.parent().unwrap_or(path),
                _ => path,
            };
            let kind = change.kind();
            match rows.iter_mut().find(|row| row.0 == kind && row.1 == place) {
                Some((.., files)) => *files += 1,
                None => rows.push((kind, place.to_owned(), 1)),
            }
        }
        let row = |(kind, place, files)| (self.describe(kind, files), place);
        rows.into_iter().map(row).collect()
    }

    fn describe(&self, kind: ChangeKind, files: usize) -> String {
        let hooks = match self.agent.mechanism {
            Mechanism::Scripts => count(files, "hook"),
            _ => count(self.agent.events.len(), "hook"),
        };
        let verb = match kind {
            ChangeKind::Unchanged => return "no change".to_owned(),
            ChangeKind::Create => "create",
            ChangeKind::Update => self.verb_of_update(),
            ChangeKind::Remove => "delete",
        };
        let line = match self.changes_status_line() {
            true => ", status line",
            false => "",
        };
        match self.agent.mechanism {
            Mechanism::Settings { .. } if kind == ChangeKind::Update && !self.changes_hooks() => {
                format!("{} status line", self.verb_of_line())
            }
            Mechanism::Settings { .. } if kind == ChangeKind::Update => {
                format!("{verb} {hooks}{line}")
            }
            Mechanism::Module { what, .. } => format!("{verb} the {what}"),
            _ => format!("{verb}, {hooks}{line}"),
        }
    }

    /// Returns the settings before and after, if settings change.
    fn settings(&self) -> Option<(&str, &str)> {
        let settings = self.changes.iter().find(|change| !change.is_own)?;
        let before = settings.file.text().unwrap_or_default();
        Some((before, settings.new.as_deref().unwrap_or_default()))
    }

    fn changes_hooks(&self) -> bool {
        let hooks = |text: &str| {
            let found = merge::installed_in(text).unwrap_or_default().into_iter();
            found.map(|hook| hook.handler).collect::<Vec<_>>()
        };
        let settings = self.settings();
        settings.is_some_and(|(before, after)| hooks(before) != hooks(after))
    }

    /// Returns the command of our status line before and after.
    fn status_lines(&self) -> Option<(Option<String>, Option<String>)> {
        let line = |text: &str| status_line::installed_in(text).ok()?.map(|it| it.command);
        self.settings()
            .map(|(before, after)| (line(before), line(after)))
    }

    fn changes_status_line(&self) -> bool {
        let lines = self.status_lines();
        lines.is_some_and(|(before, after)| before != after)
    }

    fn verb_of_line(&self) -> &'static str {
        match self.status_lines() {
            Some((None, _)) => "add",
            Some((Some(_), None)) => "remove",
            _ => "update",
        }
    }

    fn verb_of_update(&self) -> &'static str {
        let ours = |text: &str| merge::installed_in(text).is_ok_and(|found| !found.is_empty());
        match self.settings().map(|(old, new)| (ours(old), ours(new))) {
            None => "replace",
            Some((false, _)) => "add",
            Some((true, false)) => "remove",
            Some((true, true)) => "update",
        }
    }
}
