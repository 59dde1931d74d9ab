//! `backtrail fork --into`: a fork in a directory of its own.

use std::path::Path;

use backtrail::rewind::{ForkInto, ForkIntoPlan, ForkedInto};
use backtrail::{ErrorKind, Point, SessionId, Store, Workspace};
use serde_json::{Value, json};

use super::super::checkpoint::{skipped, skipped_json};
use super::super::moves::workspace_of;
use super::super::recovery::Finish;
use super::super::rewind::{as_session, record_of};
use super::super::{open_files_store, require_files_store, resolve, short};
use super::{Answer, ForkArgs};
use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::progress;
use crate::shell::quote;
use crate::text::{grouped, one_line, path_json, size, visible};
use crate::ui::Ui;

/// A fork that was asked for.
pub(super) struct ForkIntoRequest<'a> {
    args: &'a ForkArgs,
    dir: &'a Path,
    ui: &'a Ui,
}

impl<'a> ForkIntoRequest<'a> {
    pub(super) fn new(args: &'a ForkArgs, dir: &'a Path, ui: &'a Ui) -> Self {
        Self { args, dir, ui }
    }

    pub(super) fn run(&self, global: &Global) -> Result<Answer> {
        let point: Point = self.args.point.parse()?;
        let (workspace, point) = self.find(point, global)?;
        let here = &self.args.here;
        progress::while_shown(self.ui, |progress| {
            let mut options = ForkInto::new();
            if let Some(name) = &self.args.name {
                options = options.name(name.as_str());
            }
            if let Some(progress) = progress {
                options = options.progress(progress);
            }
            let plan = workspace.fork_into_plan(&point, self.dir, options);
            let plan = plan.map_err(|error| match error.path() {
                // An error about the directory has its path, and no points.
                Some(_) if error.points().is_empty() => error.into(),
                _ => here.wrong_point(&workspace, &point, self.ui, error),
            })?;
            let report = ForkReport::new(&plan, &workspace);
            if self.args.dry_run {
                return self.print(&report, None);
            }
            let forked = plan.apply()?;
            self.print(&report, Some(&forked))?;
            forked.session.close()?;
            Ok(())
        })?;
        Ok(Answer::Done)
    }

    /// Finds the point and its workspace: if a session is named, the one that it works in.
    fn find(&self, point: Point, global: &Global) -> Result<(Workspace, Point)> {
        let here = &self.args.here;
        let found = match here.is_named() {
            true => Some(here.require(global, self.ui, Finish::ToWrite)?),
            false => here.find(global, self.ui, Finish::ToWrite)?,
        };
        if let Some((reference, _)) = record_of(&point) {
            let store = require_files_store(global)?;
            let id = resolve(&store, &reference)?;
            return Ok((self.works_in(&store, &id, found)?, point));
        }
        let is_point = found.as_ref().is_some_and(|workspace| {
            let resolved = workspace.resolve(&point);
            !resolved.is_err_and(|error| error.kind() == ErrorKind::NotFound)
        });
        let store = open_files_store(global)?;
        let session = store.as_ref().and_then(|store| as_session(store, &point));
        match (found, store, session) {
            (found, Some(store), Some(_)) if !is_point => {
                // `latest` means the latest of this workspace.
                let id = resolve(&store, &self.args.point)?;
                let last = store.read_session(&id)?.last_records(1)?;
                let seq = last.first().map_or(0, |record| record.seq());
                let workspace = self.works_in(&store, &id, found)?;
                Ok((workspace, Point::record(&id, seq)))
            }
            (Some(workspace), ..) => Ok((workspace, point)),
            (None, ..) => Err(here.unknown(global, self.ui)?),
        }
    }

    /// Returns the workspace that a session works in; `found` if another was named, or if
    /// it works in none.
    fn works_in(
        &self,
        store: &Store,
        id: &SessionId,
        found: Option<Workspace>,
    ) -> Result<Workspace> {
        let found = match self.args.here.is_named() {
            true => found,
            false => workspace_of(store, id)?.or(found),
        };
        let Some(workspace) = found else {
            let (id, program) = (short(id), self.ui.program());
            let what = format!("session {id} has no file checkpoints");
            let hint = format!("fork only the conversation: {program} fork {id}");
            return Err(CommandError::invalid(what).hint(hint));
        };
        Finish::ToWrite.finish(&workspace, self.ui)?;
        Ok(workspace)
    }

    fn print(&self, report: &ForkReport, forked: Option<&ForkedInto>) -> Result<()> {
        if self.ui.json() {
            return self.ui.print_json(&report.json(forked)?);
        }
        self.ui.print_line(&report.first_line(forked)?)?;
        for line in report.lines(forked) {
            self.ui.status(&line);
        }
        let program = self.ui.program();
        if forked.is_none() {
            self.ui
                .status(&format!("to do it: {program} {}", self.line()));
        }
        if let Some(forked) = forked {
            let dir = quote(&report.dir.to_string_lossy());
            let id = short(forked.session.id());
            let command = format!("cd {dir} && {program} run --session {id} -- AGENT");
            self.ui.status(&format!("to continue: {command}"));
        }
        Ok(())
    }

    /// Returns the command line that does it, without the program.
    fn line(&self) -> String {
        let name = self.args.name.as_ref();
        let name = name.map_or_else(String::new, |name| format!(" --name {}", quote(name)));
        let (point, here) = (quote(&self.args.point), self.args.here.flag());
        let dir = quote(&self.dir.to_string_lossy());
        format!("fork {point} --into {dir}{name}{here}")
    }
}

/// What is reported of a fork.
struct ForkReport {
    dir: std::path::PathBuf,
    root: String,
    /// What the point is.
    point: String,
    from: Value,
    parent: Option<(SessionId, u64)>,
    lost: Option<SessionId>,
    files: u64,
    bytes: u64,
    skipped: Option<String>,
    skipped_json: Value,
    has_git: bool,
}

impl ForkReport {
    fn new(plan: &ForkIntoPlan, workspace: &Workspace) -> Self {
        let mut not = skipped_json(plan.skipped());
        not["by_reason"] = json!(plan.skipped_by_reason());
        let totals = plan.totals();
        Self {
            dir: plan.dir(),
            root: tilde(workspace.root()),
            point: one_line(&visible(&plan.target().text), 70),
            from: json!(plan.checkpoint().id()),
            parent: plan.session().map(|place| (place.id.clone(), place.seq)),
            lost: plan.lost_session().cloned(),
            files: totals.files,
            bytes: totals.bytes,
            skipped: skipped(plan.skipped()),
            skipped_json: not,
            has_git: plan.has_git(),
        }
    }

    fn first_line(&self, forked: Option<&ForkedInto>) -> Result<String> {
        let dir = tilde(&self.dir);
        let (created, session) = match forked {
            Some(forked) => {
                let id = short(forked.session.id());
                let name = name_of(forked)?;
                let name = name.map(|name| format!(" \"{}\"", one_line(&name, 60)));
                let session = format!("session {id}{}", name.unwrap_or_default());
                ("created", session)
            }
            None => ("would create", "a new session".to_owned()),
        };
        let from = match &self.parent {
            Some((parent, 0)) => format!(" (from {}, before its first message)", short(parent)),
            Some((parent, seq)) => format!(" (from record {seq} of {})", short(parent)),
            None => String::new(),
        };
        Ok(format!("{created} {dir} as {session}{from}"))
    }

    fn lines(&self, forked: Option<&ForkedInto>) -> Vec<String> {
        let files = match self.files {
            1 => "1 file".to_owned(),
            n => format!("{} files", grouped(n)),
        };
        let shared = match forked.map_or(0, |forked| forked.reflinked) {
            0 => String::new(),
            n => format!("; {} share their space with the original", grouped(n)),
        };
        let mut lines = vec![format!(
            "{files} ({}) from {}: {}{shared}",
            size(self.bytes),
            self.root,
            self.point
        )];
        if let Some(text) = &self.skipped {
            lines.push(format!("not copied: {text}"));
        }
        if self.has_git {
            lines.push(".git is not copied; run git init there".to_owned());
        }
        if let Some(lost) = &self.lost {
            let lost = short(lost);
            lines.push(format!(
                "session {lost} of the checkpoint cannot be read; this is a new one"
            ));
        }
        lines
    }

    fn json(&self, forked: Option<&ForkedInto>) -> Result<Value> {
        let mut value = json!({
            "dry_run": forked.is_none(),
            "root": path_json(&self.dir),
            "from": self.from,
            "parent": self.parent.as_ref().map(|(id, _)| id),
            "seq": self.parent.as_ref().map(|(_, seq)| seq),
            "lost_session": self.lost,
            "files": self.files,
            "bytes": self.bytes,
            "skipped": self.skipped_json,
            "git": self.has_git,
        });
        if let Some(forked) = forked {
            value["session"] = json!(forked.session.id());
            value["name"] = json!(name_of(forked)?);
            value["workspace"] = json!(forked.workspace.id());
            value["checkpoint"] = json!(forked.checkpoint.id());
            value["reflinked"] = json!(forked.reflinked);
        }
        Ok(value)
    }
}

/// Returns the name that the session got.
fn name_of(forked: &ForkedInto) -> Result<Option<String>> {
    let info = forked.session.reader().info()?;
    Ok(match info.forked_from {
        Some(origin) => origin.branch_name,
        None => info.title,
    })
}
