//! `backtrail` alone: a short page about this workspace.

use std::io::Write;
use std::path::{Path, PathBuf};

use backtrail::{
    Activity, CheckpointReason, LogEntry, LogKind, SessionInfo, Store, Timestamp, Workspace,
};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::here::Here;
use super::log::{about, kind};
use super::recovery::Finish;
use super::status::{bytes_in, running};
use super::{Answer, open_files_store, short};
use crate::args::Global;
use crate::error::Result;
use crate::home::{tilde, workspace_root};
use crate::progress;
use crate::text::{count, one_line, path_json, size, visible};
use crate::ui::{BOLD, DIM, Ui, unwritable};
use crate::when;

pub(crate) fn run(global: &Global, ui: &Ui) -> Result<Answer> {
    let page = match open_files_store(global)? {
        Some(store) => {
            let workspace = Here::default().find(global, ui, Finish::ToRead)?;
            Page::look(&store, workspace, ui)?
        }
        None => Page::default(),
    };
    if ui.json() {
        ui.print_json(&page.to_json(ui))?;
    } else {
        page.print(ui).map_err(|error| unwritable(&error))?;
    }
    Ok(Answer::Done)
}

/// How things stand here, as far as that is known.
#[derive(Default)]
struct Page {
    root: Option<PathBuf>,
    workspace: Option<Workspace>,
    since: Option<Timestamp>,
    /// The sessions that work here, and how many there are in all.
    sessions: u64,
    all_sessions: u64,
    latest: Option<SessionInfo>,
    checkpoints: u64,
    /// What happened last that was not the person's own work.
    last: Option<LogEntry>,
    /// How many paths changed since the last checkpoint.
    changed: Option<u64>,
    running: Vec<Activity>,
    /// The store, and how many bytes it takes.
    store: Option<(PathBuf, u64)>,
}

impl Page {
    fn look(store: &Store, workspace: Option<Workspace>, ui: &Ui) -> Result<Self> {
        let root = match &workspace {
            Some(workspace) => Some(workspace.root().to_owned()),
            None => workspace_root(store),
        };
        let mut page = Self {
            store: Some((store.root().to_owned(), bytes_in(store.root()))),
            root,
            ..Self::default()
        };
        let infos = store.infos()?;
        page.all_sessions = infos.len() as u64;
        let id = workspace.as_ref().map(Workspace::id);
        let is_here = |info: &SessionInfo| match &info.workspace_id {
            Some(its) => Some(its) == id,
            None => page.root.is_some() && info.workspace_root == page.root,
        };
        let here = infos.into_iter().filter_map(|(_, info)| info.ok());
        let here: Vec<SessionInfo> = here.filter(is_here).collect();
        page.sessions = here.len() as u64;
        page.since = here.iter().filter_map(|info| info.created_at).min();
        let newest = here.into_iter().max_by_key(|info| info.updated_at);
        page.latest = newest;
        if let Some(workspace) = workspace {
            page.look_at_files(&workspace, ui);
            page.workspace = Some(workspace);
        }
        Ok(page)
    }

    /// Looks at the checkpoints and the files. What cannot be found out is not told: there
    /// are verbs that say why.
    fn look_at_files(&mut self, workspace: &Workspace, ui: &Ui) {
        let Ok(checkpoints) = workspace.checkpoints() else {
            return;
        };
        let mut last = None;
        for checkpoint in checkpoints.filter_map(backtrail::Result::ok) {
            // What is kept before files move is there for undo alone.
            self.checkpoints += u64::from(*checkpoint.reason() != CheckpointReason::BeforeRewind);
            let at = checkpoint.at();
            self.since = Some(self.since.map_or(at, |since| since.min(at)));
            last = Some(checkpoint);
        }
        let log = workspace.log().unwrap_or_default();
        let mut log = log.into_iter().rev();
        self.last = log.find(|entry| entry.kind() != LogKind::Person);
        self.running = workspace.active().unwrap_or_default();
        let before = last.and_then(|last| last.snapshot().ok());
        let compared = before.and_then(|before| {
            let compared = progress::while_shown(ui, |progress| {
                workspace.changes_since_with(&before, progress)
            });
            compared.ok()
        });
        self.changed = compared.map(|(diff, _)| diff.changes().len() as u64);
    }

    fn is_known(&self) -> bool {
        self.sessions > 0 || self.checkpoints > 0
    }

    /// Returns what makes sense now, and what it is for.
    fn commands(&self) -> Vec<(&'static str, &'static str)> {
        if !self.is_known() {
            let mut commands = vec![
                ("run -- COMMAND", "run it, and keep what it changes"),
                ("checkpoint", "keep the files here as they are now"),
            ];
            if self.all_sessions > 0 {
                commands.push(("list", "what was recorded elsewhere"));
            }
            commands.push(("--help", "everything else"));
            return commands;
        }
        let mut commands = Vec::new();
        let happened = self.last.as_ref().is_some_and(|it| it.before().is_some());
        if happened || self.changed.is_some_and(|changed| changed > 0) {
            commands.push(("diff", "what changed"));
        }
        if happened {
            commands.push(("undo", "take the last step back"));
        }
        match self.checkpoints {
            0 => commands.push(("run -- COMMAND", "keep what a command changes")),
            _ => commands.push(("log", "the whole timeline")),
        }
        if self.sessions > 0 {
            commands.push(("show latest", "read the last conversation"));
            commands.push(("search", "find anything said or done"));
        }
        commands.push(("--help", "everything else"));
        commands
    }

    fn to_json(&self, ui: &Ui) -> Value {
        let command = |(verb, what): (&str, &str)| json!({"command": format!("{} {verb}", ui.program()), "what": what});
        let last = self.last.as_ref().map(|entry| {
            json!({
                "kind": kind(entry),
                "about": about(entry),
                "at": entry.at(),
                "session": entry.after().session().map(|place| &place.id),
                "checkpoint": entry.after().id(),
            })
        });
        json!({
            "workspace": self.workspace.as_ref().map(|workspace| json!({
                "id": workspace.id(),
                "root": path_json(workspace.root()),
            })),
            "known_since": self.since,
            "sessions": self.sessions,
            "checkpoints": self.checkpoints,
            "last": last,
            "changed": self.changed,
            "store": self.store.as_ref().map(|(path, bytes)| {
                json!({"path": path_json(path), "bytes": bytes})
            }),
            "commands": self.commands().into_iter().map(command).collect::<Vec<_>>(),
        })
    }

    fn print(&self, ui: &Ui) -> std::io::Result<()> {
        let width = ui.width().unwrap_or(80).clamp(20, 100);
        let mut out = ui.out();
        let lines = match self.is_known() {
            true => self.known(),
            false => self.unknown(),
        };
        for line in lines.iter().flat_map(|line| filled(line, width)) {
            writeln!(out, "{line}")?;
        }
        writeln!(out)?;
        for row in rows(&self.commands(), ui, width) {
            writeln!(out, "{row}")?;
        }
        out.flush()
    }

    fn unknown(&self) -> Vec<String> {
        let mut lines = vec![
            "Backtrail keeps what AI agents say and do, and takes back what they did.".to_owned(),
        ];
        let here = self
            .root
            .as_deref()
            .map_or("here".to_owned(), |root| format!("in {}", tilde(root)));
        lines.push(match self.all_sessions {
            0 => format!("Nothing was kept {here} yet."),
            n => format!(
                "Nothing was kept {here} yet; {} elsewhere.",
                count(n, "session")
            ),
        });
        lines
    }

    fn known(&self) -> Vec<String> {
        let root = self.root.as_deref().unwrap_or(Path::new("."));
        let since = self.since.map_or_else(String::new, |since| {
            format!(" since {}", when::brief(since))
        });
        let bytes = self.store.as_ref().map_or(0, |(_, bytes)| *bytes);
        let mut lines = vec![format!(
            "{} is watched over{since}: {}, {}; the store takes {}.",
            tilde(root),
            count(self.sessions, "session"),
            count(self.checkpoints, "checkpoint"),
            size(bytes)
        )];
        lines.extend(self.last_words());
        for activity in &self.running {
            lines.push(format!("Running: {}.", running(activity)));
        }
        lines
    }

    /// Says what happened last, and what changed since.
    fn last_words(&self) -> Option<String> {
        let since = match self.changed {
            Some(0) => "; nothing changed since".to_owned(),
            Some(n) => format!("; {} changed since", count(n, "file")),
            None => String::new(),
        };
        if let Some(entry) = &self.last {
            let about = match one_line(&visible(&about(entry)), 50).as_str() {
                "" => String::new(),
                about => format!(" \"{about}\""),
            };
            let session = entry
                .after()
                .session()
                .map_or_else(String::new, |place| format!(" in {}", short(&place.id)));
            let at = when::brief(entry.at());
            return Some(format!(
                "Last: {}{about}{session}, {at}{since}.",
                kind(entry)
            ));
        }
        let info = self.latest.as_ref()?;
        let title = info.title.as_deref().or(info.begins.as_deref());
        let title = title.map_or_else(String::new, |title| format!(" \"{}\"", one_line(title, 50)));
        let at = info
            .updated_at
            .map_or_else(String::new, |at| format!(", {}", when::brief(at)));
        Some(format!(
            "Last: session {}{title}{at}{since}.",
            short(&info.id)
        ))
    }
}

/// Breaks a line where it is too wide.
fn filled(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one from the beginning");
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

/// Writes commands and what they are for, two in a row where there is room.
fn rows(commands: &[(&str, &str)], ui: &Ui, width: usize) -> Vec<String> {
    const GAP: usize = 3;
    let commands: Vec<(String, &str)> = commands
        .iter()
        .map(|(verb, what)| (format!("{} {verb}", ui.program()), *what))
        .collect();
    let widest = |n: usize, each: usize| {
        let column = commands.iter().skip(n).step_by(each);
        let parts = column.map(|(command, what)| (command.width(), what.width()));
        parts.fold((0, 0), |(a, b), (c, d)| (a.max(c), b.max(d)))
    };
    let cells = |each: usize| {
        let columns: Vec<(usize, usize)> = (0..each).map(|n| widest(n, each)).collect();
        let whole: usize = columns.iter().map(|(a, b)| a + 2 + b + GAP).sum();
        (columns, 2 + whole.saturating_sub(GAP))
    };
    let (columns, whole) = cells(2);
    let columns = if whole <= width { columns } else { cells(1).0 };
    let mut rows = Vec::new();
    for row in commands.chunks(columns.len()) {
        let mut line = " ".to_owned();
        for (n, ((command, what), (wide, what_wide))) in row.iter().zip(&columns).enumerate() {
            let pad = " ".repeat(wide.saturating_sub(command.width()));
            let gap = if n == 0 { 1 } else { GAP };
            line += &" ".repeat(gap);
            line += &format!("{BOLD}{command}{BOLD:#}{pad}  {DIM}{what}{DIM:#}");
            if n + 1 < row.len() {
                line += &" ".repeat(what_wide.saturating_sub(what.width()));
            }
        }
        rows.push(line);
    }
    rows
}
