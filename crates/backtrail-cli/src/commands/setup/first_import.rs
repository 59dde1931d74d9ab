//! The first import of agents' sessions, which `setup` offers.

use backtrail_formats::{Format, formats};

use crate::commands::import::import_histories;
use crate::commands::overview::agents::{FoundAgent, found};
use crate::commands::{open_or_create_store, open_store};
use crate::error::Result;
use crate::text::{count, plural, size, some_of};
use crate::ui::Ui;

/// About how many bytes are imported and indexed in a second.
const BYTES_A_SECOND: u64 = 100_000_000;

/// Sessions of agents that were never imported.
pub(super) struct FirstImport {
    agents: Vec<FoundAgent>,
}

impl FirstImport {
    /// Finds the sessions of agents, of these or of all if none is named; `None` if there are
    /// none, or the agents were imported before.
    pub(super) fn find(names: &[&str], ui: &Ui) -> Option<Self> {
        let store = open_store(ui).ok()?;
        let imported = store.map(|store| store.imported_agents());
        let imported = imported.unwrap_or_default();
        let is_wanted = |agent: &FoundAgent| {
            let is_named = names.is_empty() || names.contains(&agent.name);
            is_named && !imported.contains(agent.name)
        };
        let agents: Vec<FoundAgent> = found().into_iter().filter(is_wanted).collect();
        (!agents.is_empty()).then_some(Self { agents })
    }

    /// Says what was found, and how long the import takes.
    pub(super) fn describe(&self) -> String {
        let agents = self.agents.iter().map(|agent| agent.title.to_owned());
        let agents = some_of(agents, 3, self.agents.len());
        let bytes = self.agents.iter().map(|agent| agent.bytes).sum();
        let were = plural(self.sessions() + self.databases(), "is", "are");
        format!(
            "{} of {agents} {were} not imported yet ({}, about {})",
            self.what(),
            size(bytes),
            time(bytes)
        )
    }

    /// Returns what would be imported, for a question.
    pub(super) fn what(&self) -> String {
        match (self.sessions(), self.databases()) {
            (sessions, 0) => count(sessions, "session"),
            (0, databases) => count(databases, "database"),
            (sessions, databases) => format!(
                "{} and {}",
                count(sessions, "session"),
                count(databases, "database")
            ),
        }
    }

    fn sessions(&self) -> u64 {
        self.agents.iter().map(|agent| agent.sessions).sum()
    }

    fn databases(&self) -> u64 {
        self.agents.iter().map(|agent| agent.databases).sum()
    }

    /// Imports them, and reports it.
    pub(super) fn import(&self, ui: &Ui) -> Result<()> {
        let is_it = |format: &&dyn Format| {
            let mut agents = self.agents.iter();
            agents.any(|agent| agent.name == format.name())
        };
        let store = open_or_create_store(ui)?;
        let report = import_histories(&store, formats().filter(is_it).collect(), ui)?;
        let imported: u64 = report.agents.iter().map(|agent| agent.new).sum();
        let errors: usize = report.agents.iter().map(|agent| agent.errors.len()).sum();
        ui.status(&format!("imported {}", count(imported, "session")));
        if errors > 0 {
            let were = plural(errors, "was", "were");
            let what = format!("{} {were} not imported", count(errors, "file"));
            ui.warning(&what, Some(&format!("see why: {} import", ui.program())));
        }
        Ok(())
    }
}

/// Returns about how long an import of so many bytes takes.
fn time(bytes: u64) -> String {
    match bytes / BYTES_A_SECOND + 1 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
