//! `backtrail doctor`: checks for problems and suggests fixes.
//!
//! It only reads, takes no lock, and continues whatever it finds.

mod agents;
mod files;
mod store;

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use self::files::Files;
use super::{Answer, open_files_store};
use crate::args::Global;
use crate::error::Result;
use crate::home::{self, tilde};
use crate::layout::{BOLD, hanging};
use crate::settings::Settings;
use crate::text::{count, visible};
use crate::ui::Ui;

/// Check for problems and suggest fixes
///
/// It only reads. Exits 1 if it finds a problem; the command that fixes it is shown below. It
/// also warns of agents that delete their own history.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {}

pub(crate) fn run(_args: &DoctorArgs, global: &Global, ui: &Ui) -> Result<Answer> {
    let (dir, _) = home::store_dir(global.store.as_deref())?;
    let checks = look(&dir, global, ui);
    let found = checks.iter().filter(|check| !check.ok).count() as u64;
    let warnings = checks.iter().filter(|check| check.is_warning()).count() as u64;
    if ui.json() {
        let rows: Vec<Value> = checks.iter().map(Check::to_json).collect();
        ui.print_json(&json!({"ok": found == 0, "checks": rows}))?;
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
struct Check {
    name: &'static str,
    ok: bool,
    message: String,
    /// The command that fixes it.
    hint: Option<String>,
}

impl Check {
    fn fine(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            name,
            ok: true,
            message: message.into(),
            hint: None,
        }
    }

    fn found(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            name,
            ok: false,
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// Makes a warning: not a fault of the store.
    fn warning(name: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            ok: true,
            ..Self::found(name, message, hint)
        }
    }

    fn is_warning(&self) -> bool {
        self.ok && self.hint.is_some()
    }

    fn to_json(&self) -> Value {
        let Self {
            name,
            ok,
            message,
            hint,
        } = self;
        let warning = self.is_warning();
        json!({"name": name, "ok": ok, "warning": warning, "message": message, "hint": hint})
    }
}

fn look(dir: &Path, global: &Global, ui: &Ui) -> Vec<Check> {
    let mut checks = vec![settings(dir)];
    // A mistake in the settings must not hide the state of the store.
    let store = match open_files_store(global) {
        Ok(store) => Ok(store),
        Err(_) => backtrail::Store::open(dir).map(Some),
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
                checks.extend(agents::checks(ui));
                return checks;
            }
        }
    }
    let files = Files::look(dir);
    checks.extend(files.checks(dir, ui));
    if let Ok(Some(store)) = &store {
        checks.extend(store::checks(store, ui));
    }
    checks.extend(agents::checks(ui));
    checks
}

fn settings(dir: &Path) -> Check {
    match Settings::read(dir) {
        Ok(_) => Check::fine("settings", tilde(&dir.join("config.toml"))),
        Err(error) => {
            let hints = error.hints().join("; ");
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
            true if check.is_warning() => "warn",
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
