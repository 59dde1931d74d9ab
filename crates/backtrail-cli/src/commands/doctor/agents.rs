//! Whether and when the agents on this machine delete their own history.

use std::time::SystemTime;

use backtrail_formats::{Environment, Limit, Retention, retention};

use super::Check;
use crate::home::tilde;
use crate::text::count;
use crate::ui::Ui;

/// In days: a longer limit is as good as none.
const LONG: u64 = 3650;

pub(super) fn checks(ui: &Ui) -> Vec<Check> {
    let environment = Environment::from_variables(std::env::vars_os());
    let now = SystemTime::now();
    let all = retention(&environment);
    all.iter().map(|agent| check(agent, now, ui)).collect()
}

fn check(agent: &Retention, now: SystemTime, ui: &Ui) -> Check {
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
            let message = format!(
                "{title} deletes sessions {rules} ({whose}){}",
                oldest(agent, now)
            );
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
