//! `backtrail` alone: an overview of this workspace, and what to do next.

pub(super) mod agents;

use std::io::Write;
use std::path::{Path, PathBuf};

use backtrail::workspace::{LogEntry, LogKind};
use backtrail::{Checkpoint, SessionInfo, Store, Timestamp, Workspace};
use serde_json::{Value, json};

use self::agents::FoundAgent;
use super::log::{about_with_labels, add_ending, kind, mark};
use super::recovery::Finish;
use super::status::{Timeline, bytes_in, running};
use super::workspace::WorkspaceArgs;
use super::{Answer, fresh, open_files_store, short, titled};
use crate::error::Result;
use crate::home::{tilde, workspace_root};
use crate::layout::{BOLD, Cell, Column, DIM, Table, hanging, styled};
use crate::text::{count, one_line, path_json, size, visible};
use crate::ui::Ui;
use crate::when;

pub(crate) fn run(ui: &Ui) -> Result<Answer> {
    let overview = match open_files_store(ui)? {
        Some(store) => {
            fresh::import_new(&store, ui);
            let workspace = WorkspaceArgs::default().find_at_once(ui, Finish::ToRead)?;
            Overview::new(&store, workspace, ui)?
        }
        None => Overview {
            agents: agents::found(),
            ..Overview::default()
        },
    };
    if ui.json() {
        ui.print_json(&overview.to_json(ui))?;
    } else {
        overview.print(ui)?;
    }
    Ok(Answer::Done)
}

/// The state of this workspace.
#[derive(Default)]
struct Overview {
    root: Option<PathBuf>,
    workspace: Option<Workspace>,
    since: Option<Timestamp>,
    /// The sessions that work here, and how many there are in all.
    sessions: u64,
    all_sessions: u64,
    latest: Option<SessionInfo>,
    timeline: Timeline,
    /// What happened last that was not the person's own work.
    last: Option<LogEntry>,
    /// How many paths changed since the last checkpoint.
    changed: Option<u64>,
    /// The store and its size in bytes.
    store: Option<(PathBuf, u64)>,
    /// The agents that have sessions on this machine; not looked for once some were
    /// imported.
    agents: Vec<FoundAgent>,
}

impl Overview {
    fn new(store: &Store, workspace: Option<Workspace>, ui: &Ui) -> Result<Self> {
        let root = match &workspace {
            Some(workspace) => Some(workspace.root().to_owned()),
            None => workspace_root(store),
        };
        let mut overview = Self {
            store: Some((store.root().to_owned(), bytes_in(store.root()))),
            root,
            ..Self::default()
        };
        let infos = store.infos()?;
        overview.all_sessions = infos.len() as u64;
        let is_imported = |info: &SessionInfo| info.belongs_to.is_some();
        let mut readable = infos.iter().filter_map(|(_, info)| info.as_ref().ok());
        if !readable.any(is_imported) {
            overview.agents = agents::found();
        }
        let id = workspace.as_ref().map(Workspace::id);
        let is_here = |info: &SessionInfo| match &info.workspace_id {
            Some(its) => Some(its) == id,
            None => overview.root.is_some() && info.workspace_root == overview.root,
        };
        let here = infos.into_iter().filter_map(|(_, info)| info.ok());
        let here: Vec<SessionInfo> = here.filter(is_here).collect();
        overview.sessions = here.len() as u64;
        overview.since = here.iter().filter_map(|info| info.created_at).min();
        let latest = SessionInfo::latest(&here).cloned();
        overview.latest = latest.map(|info| titled(store, info));
        if let Some(workspace) = workspace {
            overview.read_files(&workspace, ui);
            overview.workspace = Some(workspace);
        }
        Ok(overview)
    }

    /// Reads the checkpoints and compares the files. Errors are left to the verbs that need
    /// these.
    fn read_files(&mut self, workspace: &Workspace, ui: &Ui) {
        self.timeline = Timeline::of(workspace).unwrap_or_default();
        let first = self.timeline.first.as_ref().map(Checkpoint::at);
        self.since = self.since.into_iter().chain(first).min();
        let log = workspace.log().unwrap_or_default();
        let mut log = log.into_iter().rev();
        let is_step = |kind| {
            !matches!(
                kind,
                LogKind::Person | LogKind::PersonOrRun | LogKind::AgentRewind
            )
        };
        self.last = log.find(|entry| is_step(entry.kind()));
        let changed = self.timeline.changed(workspace, ui).ok().flatten();
        self.changed = changed.map(|diff| diff.changes().len() as u64);
    }

    fn is_known(&self) -> bool {
        self.sessions > 0 || self.timeline.checkpoints > 0
    }

    /// Returns the commands that make sense now, and what each does.
    fn commands(&self) -> Vec<(&'static str, &'static str)> {
        let import = ("import", "import these sessions");
        let mut commands = Vec::new();
        if !self.is_known() {
            commands.push(("run -- COMMAND", "run a command that you can undo"));
            if self.agents.is_empty() {
                commands.push(("import", "import sessions from other agents"));
            } else {
                commands.push(import);
            }
            commands.push(("checkpoint", "save the files as they are now"));
            if self.all_sessions > 0 {
                commands.push(("list", "sessions in other directories"));
            }
            commands.push(("help", "everything else"));
            return commands;
        }
        let happened = self.last.as_ref().is_some_and(|it| it.before().is_some());
        if happened || self.changed.is_some_and(|changed| changed > 0) {
            commands.push(("diff", "what changed"));
        }
        if happened {
            commands.push(("undo", "undo the last step"));
        }
        match self.timeline.checkpoints {
            0 => commands.push(("run -- COMMAND", "run a command that you can undo")),
            _ => commands.push(("log", "the whole timeline")),
        }
        if self.sessions > 0 {
            commands.push(("show latest", "read the last conversation"));
            commands.push(("search", "find anything said or done"));
        }
        if !self.agents.is_empty() {
            commands.push(import);
        }
        commands.push(("help", "everything else"));
        commands
    }

    fn to_json(&self, ui: &Ui) -> Value {
        let command = |(verb, what): (&str, &str)| json!({"command": format!("{} {verb}", ui.program()), "what": what});
        let last = self.last.as_ref().map(|entry| {
            let mut last = json!({
                "kind": kind(entry),
                "about": about_with_labels(entry),
                "at": entry.at(),
                "session": entry.after().session().map(|place| &place.id),
                "checkpoint": entry.after().id(),
            });
            add_ending(&mut last, entry.ending());
            last
        });
        json!({
            "workspace": self.workspace.as_ref().map(|workspace| json!({
                "id": workspace.id(),
                "root": path_json(workspace.root()),
            })),
            "known_since": self.since,
            "sessions": self.sessions,
            "checkpoints": self.timeline.checkpoints,
            "last": last,
            "changed": self.changed,
            "store": self.store.as_ref().map(|(path, bytes)| {
                json!({"path": path_json(path), "bytes": bytes})
            }),
            "agents": self.agents,
            "commands": self.commands().into_iter().map(command).collect::<Vec<_>>(),
        })
    }

    fn print(&self, ui: &Ui) -> std::io::Result<()> {
        let width = ui.width().unwrap_or(80).clamp(20, 100);
        let mut out = ui.out();
        let mut lines = match self.is_known() {
            true => self.summary(),
            false => self.introduction(),
        };
        lines.extend(self.found_agents());
        for line in lines {
            writeln!(out, "{}", hanging(0, &line, Some(width)))?;
        }
        writeln!(out)?;
        for row in rows(&self.commands(), ui, width) {
            writeln!(out, "{row}")?;
        }
        out.flush()
    }

    /// Returns what Backtrail is, where nothing is recorded yet.
    fn introduction(&self) -> Vec<String> {
        let root = self.root.as_deref();
        let here = root.map_or("here".to_owned(), |root| format!("in {}", tilde(root)));
        let elsewhere = match self.all_sessions {
            0 => String::new(),
            n => format!("; {} elsewhere", count(n, "session")),
        };
        vec![
            "Backtrail: keep what AI agents say and do, and undo what they did to your files"
                .to_owned(),
            format!("Nothing is recorded {here} yet{elsewhere}."),
        ]
    }

    fn summary(&self) -> Vec<String> {
        let root = self.root.as_deref().unwrap_or(Path::new("."));
        let since = self.since.map_or_else(String::new, |since| {
            format!(" since {}", when::brief(since))
        });
        let bytes = self.store.as_ref().map_or(0, |(_, bytes)| *bytes);
        let mut lines = vec![format!(
            "{} · {}, {}{since} · store {}",
            tilde(root),
            count(self.sessions, "session"),
            count(self.timeline.checkpoints, "checkpoint"),
            size(bytes)
        )];
        lines.extend(self.last_step());
        for activity in &self.timeline.running {
            lines.push(format!("Running: {}.", running(activity)));
        }
        lines
    }

    /// Returns the last step and how much changed after it.
    fn last_step(&self) -> Option<String> {
        let since = match self.changed {
            Some(0) => " No changes since.".to_owned(),
            Some(n) => format!(" {} changed since.", count(n, "file")),
            None => String::new(),
        };
        if let Some(entry) = &self.last {
            let about = one_line(&visible(&about_with_labels(entry)), 50);
            let mark = entry.ending().and_then(mark);
            let mark = mark.map_or_else(String::new, |mark| format!(" {mark}"));
            let step = match (&*kind(entry), about.as_str()) {
                (kind, "") => kind.to_owned(),
                ("undo", about) => format!("undid {about}"),
                ("redo", about) => format!("redid {about}"),
                ("restore", about) => format!("restored {about}"),
                ("rewind", about) => format!("rewind {about}"),
                (kind, about) => format!("{kind} \"{about}\""),
            };
            let session = entry
                .after()
                .session()
                .map_or_else(String::new, |place| format!(" in {}", short(&place.id)));
            let at = when::brief(entry.at());
            return Some(format!("Last step: {step}{mark}{session} ({at}).{since}"));
        }
        let info = self.latest.as_ref()?;
        let title = info
            .title
            .as_deref()
            .map_or_else(String::new, |title| format!(" \"{}\"", one_line(title, 50)));
        let at = info
            .updated_at
            .map_or_else(String::new, |at| format!(" ({})", when::brief(at)));
        Some(format!(
            "Last session: {}{title}{at}.{since}",
            short(&info.id)
        ))
    }

    /// Returns how many sessions of which agents are on this machine.
    fn found_agents(&self) -> Option<String> {
        let found = self.agents.iter().map(|agent| {
            let counts = [(agent.sessions, "session"), (agent.databases, "database")];
            let counts = counts.into_iter().filter(|(n, _)| *n > 0);
            let counts: Vec<_> = counts.map(|(n, what)| count(n, what)).collect();
            format!("{} from {}", counts.join(" and "), agent.title)
        });
        let found = found.collect::<Vec<_>>();
        (!found.is_empty()).then(|| format!("Found on this machine: {}.", found.join(", ")))
    }
}

/// Lays out commands and what each does, two in a row where there is room.
fn rows(commands: &[(&str, &str)], ui: &Ui, width: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    let column = || [Column::text("").style(BOLD), Column::text("").style(DIM)];
    let table = |each: usize| {
        let columns: Vec<Column> = (0..each).flat_map(|_| column()).collect();
        let mut table = Table::new(columns);
        for row in commands.chunks(each) {
            let cells = row.iter().flat_map(|(verb, what)| {
                [
                    Cell::from(format!("{} {verb}", ui.program())),
                    Cell::from(*what),
                ]
            });
            table.push(cells.collect::<Vec<_>>());
        }
        table
    };
    let in_pairs = table(2);
    let table = match in_pairs.width() + INDENT.len() <= width {
        true => in_pairs,
        false => table(1),
    };
    let lines = table.lines(None);
    lines
        .iter()
        .map(|line| format!("{INDENT}{}", styled(line)))
        .collect()
}
