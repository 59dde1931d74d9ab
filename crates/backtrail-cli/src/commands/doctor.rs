//! `backtrail doctor`: checks for problems and suggests fixes.
//!
//! It only reads, takes no lock, and continues whatever it finds.

mod agents;
mod files;
mod store;

use std::io::Write;
use std::path::Path;

use backtrail::Store;
use serde::Serialize;
use serde_json::json;

use self::files::Files;
use super::{Answer, open_files_store};
use crate::error::Result;
use crate::home::tilde;
use crate::layout::{BOLD, hanging};
use crate::settings::Settings;
use crate::text::{count, visible};
use crate::ui::Ui;

/// Check for problems and suggest fixes
///
/// Read-only. Exits 1 if it finds a problem, and shows the command that fixes it. Also
/// warns about agents that delete their own history, unless all of it is imported.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {}

pub(crate) fn run(_args: &DoctorArgs, ui: &Ui) -> Result<Answer> {
    let (dir, _) = ui.store_dir()?;
    let checks = look(&dir, ui);
    let found = checks.iter().filter(|check| !check.ok).count() as u64;
    let warnings = checks.iter().filter(|check| check.warning).count() as u64;
    if ui.json() {
        ui.print_json(&json!({"ok": found == 0, "checks": checks}))?;
    } else {
        print(&checks, ui)?;
        match found {
            0 if warnings > 0 => {
                ui.status(&format!("no problems, {}", count(warnings, "warning")));
            }
            0 => ui.status("no problems"),
            n => ui.status(&count(n, "problem")),
        }
    }
    Ok(Answer::no_if(found > 0))
}

/// The result of one check.
#[derive(Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) ok: bool,
    /// Not a fault of the store.
    pub(super) warning: bool,
    pub(super) message: String,
    /// The command that fixes it.
    pub(super) hint: Option<String>,
}

impl Check {
    fn fine(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            name,
            ok: true,
            warning: false,
            message: message.into(),
            hint: None,
        }
    }

    fn found(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            ok: false,
            hint: Some(hint.into()),
            ..Self::fine(name, message)
        }
    }

    fn warning(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            ok: true,
            warning: true,
            ..Self::found(name, message, hint)
        }
    }
}

fn look(dir: &Path, ui: &Ui) -> Vec<Check> {
    let mut checks = vec![settings(dir)];
    // A mistake in the settings must not hide the state of the store.
    let store = match open_files_store(ui) {
        Ok(store) => Ok(store),
        Err(_) => Store::open(dir).map(Some),
    };
    match &store {
        Ok(Some(_)) => checks.push(Check::fine("store", tilde(dir))),
        Err(error) if error.kind() != backtrail::ErrorKind::NotFound => {
            let what = crate::error::full_text(error);
            checks.push(Check::found(
                "store",
                what,
                format!(
                    "check the file `format` in {}, or restore it from a backup",
                    tilde(dir)
                ),
            ));
        }
        _ => {
            let what = format!("none yet in {}", tilde(dir));
            checks.push(Check::fine("store", what));
            if !dir.exists() {
                checks.extend(agents::checks(None, ui));
                return checks;
            }
        }
    }
    let store = store.ok().flatten();
    checks.extend(look_inside(dir, store.as_ref(), ui));
    checks
}

/// Checks a store that is open.
pub(super) fn look_at(store: &Store, ui: &Ui) -> Vec<Check> {
    let dir = store.root();
    let mut checks = vec![settings(dir), Check::fine("store", tilde(dir))];
    checks.extend(look_inside(dir, Some(store), ui));
    checks
}

fn look_inside(dir: &Path, store: Option<&Store>, ui: &Ui) -> Vec<Check> {
    let mut checks = Files::look(dir).checks(dir, ui);
    checks.extend(store.into_iter().flat_map(|it| store::checks(it, ui)));
    checks.extend(agents::checks(store, ui));
    checks
}

fn settings(dir: &Path) -> Check {
    match Settings::read(dir) {
        Ok(_) => Check::fine("settings", tilde(&dir.join("config.toml"))),
        Err(error) => {
            let hints = error.hints.join("; ");
            let path = tilde(&dir.join("config.toml"));
            let hint = match hints.is_empty() {
                true => format!("fix it in {path}"),
                false => format!("{hints} (in {path})"),
            };
            Check::found("settings", error.with_causes(), hint)
        }
    }
}

fn print(checks: &[Check], ui: &Ui) -> std::io::Result<()> {
    /// The columns before a message: the state and the name.
    const INDENT: usize = 4 + 2 + 11 + 2;
    let mut out = ui.out();
    for check in checks {
        let state = match check.ok {
            true if check.warning => "warn",
            true => "ok",
            false => "FAIL",
        };
        let message = visible(&check.message).replace('\n', " ");
        let message = hanging(INDENT, &message, ui.width());
        writeln!(
            out,
            "{BOLD}{state:<4}{BOLD:#}  {:<11}  {message}",
            check.name
        )?;
        if let Some(hint) = &check.hint {
            let hint = visible(hint).replace('\n', " ");
            writeln!(out, "      {:<11}  {hint}", "")?;
        }
    }
    out.flush()
}
