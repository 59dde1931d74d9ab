//! `backtrail fork --into`: a fork in a directory of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backtrail::rewind::{ForkCompanion, ForkInto, ForkIntoPlan, ForkedInto, NotRestored};
use backtrail::snapshot::Progress;
use backtrail::{ErrorKind, Point, SessionId, Store, Workspace};
use serde_json::{Value, json};

use super::super::checkpoint::skipped;
use super::super::moves::{SKIP_DAMAGED, workspace_of};
use super::super::recovery::Finish;
use super::super::rewind::as_session;
use super::super::workspace::record_of;
use super::super::{open_files_store, require_files_store, resolve, short};
use super::worktree::Worktree;
use super::{Answer, ForkArgs};
use crate::error::{CommandError, Result};
use crate::home::tilde;
use crate::progress;
use crate::shell::{quote, quote_path};
use crate::text::{count, grouped, one_line, path_json, size, some_of, visible, visible_path};
use crate::ui::Ui;

/// A fork that was asked for.
pub(super) struct ForkIntoRequest<'a> {
    pub(super) args: &'a ForkArgs,
    pub(super) dir: &'a Path,
    pub(super) ui: &'a Ui,
}

/// A fork that is planned and not made yet.
pub(in crate::commands) struct PlannedFork {
    plan: ForkIntoPlan,
    worktree: Option<Arc<Worktree>>,
    report: ForkReport,
}

impl PlannedFork {
    /// Says what would be made, in a line.
    pub(in crate::commands) fn first_line(&self) -> &str {
        &self.report.first_line
    }

    /// Says what it would get.
    pub(in crate::commands) fn lines(&self) -> &[String] {
        &self.report.lines
    }

    /// Makes the fork; returns what to report.
    pub(in crate::commands) fn apply(self) -> Result<String> {
        let mut report = self.report;
        report.done(self.plan.apply()?)?;
        Ok(report.first_line)
    }
}

impl ForkIntoRequest<'_> {
    pub(super) fn run(&self) -> Result<Answer> {
        progress::while_shown(self.ui, |progress| {
            let PlannedFork {
                plan,
                worktree,
                mut report,
            } = self.plan(progress)?;
            match self.args.dry_run {
                true => report.leave_out(&plan.damaged().map_err(|error| self.damaged(error))?),
                false => report.done(self.apply(plan, worktree.as_ref())?)?,
            }
            report
                .lines
                .extend(worktree.iter().flat_map(|it| it.left_over()));
            self.print(&report)?;
            Ok(Answer::no_if(report.is_partial))
        })
    }

    /// Plans it. Nothing is touched.
    pub(super) fn plan(&self, progress: Option<Arc<dyn Progress>>) -> Result<PlannedFork> {
        let (workspace, point) = self.find(self.args.point.parse()?)?;
        let mut options = ForkInto::new();
        if let Some(name) = &self.args.name {
            options = options.name(name.as_str());
        }
        if self.args.skip_damaged {
            options = options.skip_damaged();
        }
        if let Some(progress) = progress {
            options = options.progress(progress);
        }
        let plan = workspace.fork_into_plan(&point, self.dir, options);
        // An error about the directory is of another kind, and stays as it is.
        let plan = plan.map_err(|error| match error.damaged().is_empty() {
            true => {
                let here = &self.args.here;
                here.wrong_point(&workspace, &point, self.ui, error)
            }
            false => self.damaged(error),
        })?;
        let head = plan.checkpoint().git_head();
        let worktree = self
            .args
            .git
            .then(|| Worktree::plan(workspace.root(), head));
        let worktree = worktree.transpose()?.map(Arc::new);
        Ok(PlannedFork {
            report: ForkReport::new(&plan, &workspace, worktree.as_deref()),
            plan,
            worktree,
        })
    }

    /// Makes the fork, with its worktree.
    fn apply(&self, plan: ForkIntoPlan, worktree: Option<&Arc<Worktree>>) -> Result<ForkedInto> {
        let Some(worktree) = worktree else {
            return plan.apply().map_err(|error| self.damaged(error));
        };
        let companion: Arc<dyn ForkCompanion> = Arc::clone(worktree) as _;
        let made = plan.with_companion(companion).apply();
        // What git said is worth more than that the fork failed.
        made.map_err(|error| worktree.error().unwrap_or_else(|| self.damaged(error)))
    }

    /// Adds the way out to an error about damaged files.
    fn damaged(&self, error: backtrail::Error) -> CommandError {
        let skips = !error.damaged().is_empty() && !self.args.skip_damaged;
        let command = CommandError::from(error);
        match skips {
            true => command.hint(format!(
                "copy everything else: {} {}{SKIP_DAMAGED}",
                self.ui.program(),
                self.line()
            )),
            false => command,
        }
    }

    /// Returns the command line that does it, without the program.
    fn line(&self) -> String {
        let name = self.args.name.as_ref();
        let name = name.map_or_else(String::new, |name| format!(" --name {}", quote(name)));
        let (point, here) = (quote(&self.args.point), self.args.here.flag());
        let dir = quote_path(self.dir);
        let damaged = if self.args.skip_damaged {
            SKIP_DAMAGED
        } else {
            ""
        };
        let git = if self.args.git { " --git" } else { "" };
        format!("fork {point} --into {dir}{git}{name}{damaged}{here}")
    }

    /// Finds the point and its workspace: if a session is named, the one that it works in.
    fn find(&self, point: Point) -> Result<(Workspace, Point)> {
        let here = &self.args.here;
        let found = match here.is_named() {
            true => Some(here.require(self.ui, Finish::ToWrite)?),
            false => here.find(self.ui, Finish::ToWrite)?,
        };
        if let Some((reference, _)) = record_of(&point) {
            let store = require_files_store(self.ui)?;
            let id = resolve(&store, &reference)?;
            return Ok((self.works_in(&store, &id, found)?, point));
        }
        let is_point = found.as_ref().is_some_and(|workspace| {
            let resolved = workspace.resolve(&point);
            !resolved.is_err_and(|error| error.kind() == ErrorKind::NotFound)
        });
        let store = open_files_store(self.ui)?;
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
            (None, ..) => Err(here.unknown(self.ui)?),
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

    fn print(&self, report: &ForkReport) -> Result<()> {
        let ui = self.ui;
        if ui.json() {
            return ui.print_json(&report.json);
        }
        ui.print_line(&report.first_line)?;
        report.lines.iter().for_each(|line| ui.status(line));
        let program = ui.program();
        ui.status(&match &report.session {
            Some(id) => {
                let (dir, id) = (quote_path(&report.dir), short(id));
                format!("to continue: cd {dir} && {program} run --session {id} -- AGENT")
            }
            None => format!("to do it: {program} {}", self.line()),
        });
        Ok(())
    }
}

/// What is reported of a fork.
struct ForkReport {
    dir: PathBuf,
    /// The session, once it is made.
    session: Option<SessionId>,
    /// What the fork continues: ` (from record 3 of c81f09d2)`.
    from: String,
    first_line: String,
    lines: Vec<String>,
    json: Value,
    /// Whether something was left out that is damaged.
    is_partial: bool,
}

impl ForkReport {
    /// Reports a plan.
    fn new(plan: &ForkIntoPlan, workspace: &Workspace, worktree: Option<&Worktree>) -> Self {
        let (totals, parent) = (plan.totals(), plan.session());
        let point = one_line(&visible(&plan.target().text), 70);
        let (files, bytes) = (count(totals.files, "file"), size(totals.bytes));
        let mut lines = vec![format!(
            "{files} ({bytes}) from {}: {point}",
            tilde(workspace.root())
        )];
        lines.extend(skipped(plan.skipped()).map(|text| format!("not copied: {text}")));
        match worktree {
            Some(worktree) => lines.push(worktree.describe()),
            None if plan.has_git() => {
                lines.push(".git is not copied; use --git, or run git init there".to_owned());
            }
            None => {}
        }
        if let Some(lost) = plan.lost_session() {
            let lost = short(lost);
            lines.push(format!(
                "the checkpoint's session {lost} cannot be read; created a new one"
            ));
        }
        let from = match parent.map(|place| (short(&place.id), place.seq)) {
            Some((parent, 0)) => format!(" (from {parent}, before its first message)"),
            Some((parent, seq)) => format!(" (from record {seq} of {parent})"),
            None => String::new(),
        };
        let mut skipped = json!(plan.skipped());
        skipped["by_reason"] = json!(plan.skipped_by_reason());
        Self {
            first_line: format!("would create {} as a new session{from}", tilde(&plan.dir())),
            json: json!({
                "dry_run": true,
                "root": path_json(&plan.dir()),
                "from": plan.checkpoint().id(),
                "parent": parent.map(|place| &place.id),
                "seq": parent.map(|place| place.seq),
                "lost_session": plan.lost_session(),
                "files": totals.files,
                "bytes": totals.bytes,
                "skipped": skipped,
                "git": plan.has_git(),
                "worktree": worktree,
            }),
            dir: plan.dir(),
            session: None,
            from,
            lines,
            is_partial: false,
        }
    }

    /// Adds what is left out because it is damaged.
    fn leave_out(&mut self, damaged: &[NotRestored]) {
        self.json["not_restored"] = json!(damaged);
        self.is_partial = !damaged.is_empty();
        if self.is_partial {
            let names = damaged.iter().map(|one| visible_path(&one.path));
            let names = some_of(names, 10, damaged.len());
            self.lines.push(format!("not copied: {names} (damaged)"));
        }
    }

    /// Reports that it is done, and closes the session.
    fn done(&mut self, forked: ForkedInto) -> Result<()> {
        self.leave_out(&forked.not_restored);
        let (files, bytes) = (forked.files, forked.bytes);
        (self.json["files"], self.json["bytes"]) = (files.into(), bytes.into());
        let id = forked.session.id().clone();
        let name = forked.session.reader().info()?.name;
        if forked.reflinked > 0 {
            let files = grouped(forked.reflinked);
            self.lines[0] += &format!("; {files} share their space with the original");
        }
        for (key, value) in [
            ("dry_run", json!(false)),
            ("session", json!(id)),
            ("name", json!(name)),
            ("workspace", json!(forked.workspace.id())),
            ("checkpoint", json!(forked.checkpoint.id())),
            ("reflinked", json!(forked.reflinked)),
        ] {
            self.json[key] = value;
        }
        let name = name.map_or_else(String::new, |name| format!(" \"{}\"", one_line(&name, 60)));
        let (dir, from) = (tilde(&self.dir), &self.from);
        self.first_line = format!("created {dir} as session {}{name}{from}", short(&id));
        self.session = Some(id);
        Ok(forked.session.close()?)
    }
}
