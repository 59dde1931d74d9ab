//! Whether and when the agents on this machine delete their own history.

use std::time::SystemTime;

use backtrail::{SessionInfo, Store};
use backtrail_formats::{
    Environment, Format, ImportOptions, Limit, Retention, formats, import, retention,
};

use super::Check;
use crate::home::tilde;
use crate::text::{count, plural};
use crate::ui::Ui;

/// In days: a longer limit is as good as none.
const LONG: u64 = 3650;

pub(super) fn checks(store: Option<&Store>, ui: &Ui) -> Vec<Check> {
    let environment = Environment::from_variables(std::env::vars_os());
    let now = SystemTime::now();
    let all = retention(&environment);
    let checks = |agent: &Retention| {
        let pending = || pending(agent, store?, &environment);
        let next = deleted_next(agent, ui);
        std::iter::once(check(agent, now, pending, ui)).chain(next)
    };
    all.iter().flat_map(checks).collect()
}

/// Warns about sessions that the agent deletes at its next start.
fn deleted_next(agent: &Retention, ui: &Ui) -> Option<Check> {
    let first = agent.deleted_next.first()?;
    let (title, program) = (agent.title, ui.program());
    let sessions = count(agent.deleted_next.len(), "session");
    let file = tilde(first);
    let message = format!(
        "{title} will delete {sessions} at its next start, as a resume left a second file: {file}"
    );
    let setting = tilde(&agent.setting);
    let hint =
        format!("{program} import, and set general.sessionRetention.enabled to false in {setting}");
    Some(Check::warning("agents", message, hint))
}

/// The files of an agent, and those of them that are not imported, or not completely.
struct Pending {
    files: u64,
    found: u64,
}

/// Looks what an import would do. `None` if nothing of the agent was imported yet, or if that
/// cannot be told.
fn pending(agent: &Retention, store: &Store, environment: &Environment) -> Option<Pending> {
    let is_agents = |format: &&'static dyn Format| format.name() == agent.agent;
    let belongs = |info: &SessionInfo| info.belongs_to.as_deref() == Some(agent.agent);
    let infos = store.infos().ok()?;
    let mut infos = infos.into_iter().filter_map(|(_, info)| info.ok());
    if !infos.any(|info| belongs(&info)) {
        return None;
    }
    let options = ImportOptions::new(environment.clone())
        .formats(formats().filter(is_agents).collect())
        .dry_run();
    let report = import(store, &options, &|_| {}).ok()?;
    let report = report.agents.into_iter().next()?;
    Some(Pending {
        files: report.found.saturating_sub(report.unchanged),
        found: report.found,
    })
}

fn check(
    agent: &Retention,
    now: SystemTime,
    pending: impl FnOnce() -> Option<Pending>,
    ui: &Ui,
) -> Check {
    let title = agent.title;
    let setting = tilde(&agent.setting);
    match &agent.limit {
        Limit::Deleted { days, count: most } if days.is_none_or(|days| days <= LONG) => {
            let mut rules = Vec::new();
            rules.extend(days.map(|days| format!("after {}", count(days, "day"))));
            rules.extend(most.map(|most| format!("beyond {most} per project")));
            if rules.is_empty() {
                return Check::fine("agents", format!("{title} keeps its sessions"));
            }
            let whose = match agent.default {
                true => "its default".to_owned(),
                false => setting,
            };
            let rules = rules.join(" and ");
            let deletes = format!("{title} deletes sessions {rules} ({whose})");
            let not_imported = match pending() {
                Some(Pending { files: 0, .. }) => {
                    return Check::fine("agents", format!("{deletes}; all are imported"));
                }
                Some(Pending { files, found }) => {
                    let are = plural(files, "is", "are");
                    format!("; {files} of {} {are} not imported", count(found, "file"))
                }
                None => String::new(),
            };
            let message = format!("{deletes}{}{not_imported}", oldest(agent, now));
            Check::warning("agents", message, format!("{} import", ui.program()))
        }
        Limit::Never => Check::warning(
            "agents",
            format!("{title} saves no sessions: cleanupPeriodDays is 0"),
            format!("set it to a number of days in {setting}"),
        ),
        Limit::Unknown(reason) => Check::warning(
            "agents",
            format!("cannot tell whether {title} deletes sessions: {setting}: {reason}"),
            format!("fix {setting}"),
        ),
        _ => Check::fine("agents", format!("{title} keeps its sessions")),
    }
}

/// Returns how old the oldest session is.
fn oldest(agent: &Retention, now: SystemTime) -> String {
    let Some(days) = agent.oldest_days(now) else {
        return String::new();
    };
    let age = match days {
        0 => "less than a day old".to_owned(),
        days => format!("{} old", count(days, "day")),
    };
    match agent.sessions {
        1 => format!("; the only one is {age}"),
        n => format!("; the oldest of {n} is {age}"),
    }
}
