//! `remote check`: whether a remote can be relied on.

use std::io::Write;

use backtrail::SessionId;
use backtrail::replica::{LogKey, LogOwner, LogStatus, Request};
use backtrail_remote::{BlobsCheck, RemoteCheck};
use serde::Serialize;
use serde_json::json;

use super::open::{Database, Keys, find, open_database, replica};
use super::sessions::sessions;
use super::{IdentityArgs, failed};
use crate::commands::Answer;
use crate::error::{CommandError, Result};
use crate::layout::{BOLD, hanging};
use crate::progress::while_waiting;
use crate::short::short;
use crate::text::visible;
use crate::ui::Ui;
use crate::when;

/// Check whether a remote can be relied on
///
/// Connects, and checks its version, what you may do there, its clock, where large parts are, and
/// whether your key opens what is there. Changes nothing. Exits 1 if something is wrong.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// The remote
    #[arg(value_name = "REMOTE")]
    name: String,

    #[command(flatten)]
    identity: IdentityArgs,
}

/// Clocks that differ by more make times hard to read. Nothing else depends on them.
const CLOCKS_MS: i64 = 60_000;

/// The result of one check.
#[derive(Serialize)]
struct CheckLine {
    name: &'static str,
    ok: bool,
    warning: bool,
    message: String,
    hint: Option<String>,
}

impl CheckLine {
    fn fine(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            name,
            ok: true,
            warning: false,
            message: message.into(),
            hint: None,
        }
    }

    fn warning(name: &'static str, message: impl Into<String>, hint: &str) -> Self {
        Self {
            warning: true,
            hint: Some(hint.to_owned()),
            ..Self::fine(name, message)
        }
    }

    fn wrong(name: &'static str, error: &CommandError) -> Self {
        Self {
            ok: false,
            hint: error.hints.first().cloned(),
            ..Self::fine(name, error.with_causes())
        }
    }
}

pub(super) fn run(args: &CheckArgs, ui: &Ui) -> Result<Answer> {
    // A remote that does not exist is a mistake, and not the result of a check.
    find(&args.name, ui)?;
    let lines = look(args, ui);
    let wrong = lines.iter().any(|line| !line.ok);
    match ui.json() {
        true => ui.print_json(&json!({"remote": args.name, "ok": !wrong, "checks": lines}))?,
        false => print(&lines, ui)?,
    }
    Ok(Answer::no_if(wrong))
}

fn look(args: &CheckArgs, ui: &Ui) -> Vec<CheckLine> {
    let database = match open_database(&args.name, ui) {
        Ok(database) => database,
        Err(error) => return vec![CheckLine::wrong("database", &error.without_hints())],
    };
    let checked = while_waiting(ui, "checking", || database.remote.check());
    let mut lines = match checked {
        Ok(check) => lines_of(&check, &database),
        Err(error) => {
            let error = failed(error, database.name()).without_hints();
            vec![CheckLine::wrong("database", &error)]
        }
    };
    lines.push(key(&database, &args.identity, ui));
    lines
}

fn lines_of(check: &RemoteCheck, database: &Database) -> Vec<CheckLine> {
    let url = &database.settings.url;
    let took = when::duration(check.round_trip);
    let reached = format!("{url}: PostgreSQL {}, {took} away", check.server);
    let mut lines = vec![
        CheckLine::fine("database", reached),
        CheckLine::fine("version", check.version.to_string()),
        rights(check),
    ];
    if !check.syncs {
        lines.push(CheckLine::warning(
            "syncs",
            "the server does not sync what it acknowledges",
            "set fsync = on in postgresql.conf",
        ));
    }
    lines.push(clock(check.clock_ahead_ms));
    lines.push(CheckLine::fine(
        "blobs",
        match &check.blobs {
            BlobsCheck::InDatabase => "in the database".to_owned(),
            BlobsCheck::InBucket(name) => format!("{name} takes and returns them"),
        },
    ));
    lines
}

fn rights(check: &RemoteCheck) -> CheckLine {
    let all = [
        (check.may_read, "pull"),
        (check.may_append, "push"),
        (check.may_purge, "purge"),
    ];
    let may: Vec<&str> = all.iter().filter(|(may, _)| *may).map(|it| it.1).collect();
    match may.is_empty() {
        true => CheckLine {
            ok: false,
            ..CheckLine::warning(
                "rights",
                "you may do nothing",
                "in psql: GRANT backtrail_agent TO you",
            )
        },
        false => CheckLine::fine("rights", format!("you may {}", may.join(", "))),
    }
}

fn clock(ahead_ms: i64) -> CheckLine {
    let by = when::duration(std::time::Duration::from_millis(ahead_ms.unsigned_abs()));
    let what = match ahead_ms {
        0.. => format!("{by} ahead of this machine's"),
        _ => format!("{by} behind this machine's"),
    };
    match ahead_ms.abs() > CLOCKS_MS {
        true => CheckLine::warning("clock", what, "set the clocks by NTP"),
        false => CheckLine::fine("clock", what),
    }
}

/// Checks whether the key of this machine opens what is at the remote.
fn key(database: &Database, identity: &IdentityArgs, ui: &Ui) -> CheckLine {
    let keys = match Keys::read(&database.settings, identity, ui) {
        Ok(Some(keys)) => keys,
        Ok(None) => return CheckLine::fine("key", "none: the remote reads everything"),
        Err(error) => return CheckLine::wrong("key", &error),
    };
    if !keys.fit() {
        let error = CommandError::invalid("none of the recipients is yours: you cannot push");
        let hint = "print your recipient, then add it: age-keygen -y FILE";
        return CheckLine::wrong("key", &error.hint(hint));
    }
    let newest = match sessions(&*database.remote, database.name()) {
        Ok(there) => newest_encrypted(there),
        Err(error) => return CheckLine::wrong("key", &error),
    };
    let Some(id) = newest else {
        return CheckLine::fine("key", "fits the recipients");
    };
    let log = LogKey {
        owner: LogOwner::Session,
        id: id.clone(),
    };
    match replica(database, Some(keys)).ask(&Request::Status { log }) {
        Ok(_) => CheckLine::fine(
            "key",
            format!("opens the newest session there, {}", short(&id)),
        ),
        Err(error) => CheckLine::wrong("key", &failed(error, database.name()).without_hints()),
    }
}

fn newest_encrypted(there: Vec<(SessionId, LogStatus)>) -> Option<SessionId> {
    let encrypted = there
        .into_iter()
        .filter(|(_, status)| !status.wrapped_key.is_empty());
    let newest = encrypted.max_by_key(|(_, status)| status.changed_at_ms);
    newest.map(|(id, _)| id)
}

fn print(lines: &[CheckLine], ui: &Ui) -> std::io::Result<()> {
    /// The columns before a message: the state and the name.
    const INDENT: usize = 4 + 2 + 8 + 2;
    let mut out = ui.out();
    for line in lines {
        let state = match (line.ok, line.warning) {
            (false, _) => "FAIL",
            (true, true) => "warn",
            (true, false) => "ok",
        };
        let message = visible(&line.message).replace('\n', " ");
        let message = hanging(INDENT, &message, ui.width());
        writeln!(out, "{BOLD}{state:<4}{BOLD:#}  {:<8}  {message}", line.name)?;
        if let Some(hint) = &line.hint {
            writeln!(out, "      {:<8}  {}", "", visible(hint))?;
        }
    }
    out.flush()
}
