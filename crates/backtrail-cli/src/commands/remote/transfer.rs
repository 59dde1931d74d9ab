//! What a push or pull did, for people and programs.

use std::cell::RefCell;

use backtrail::replica::{Role, SessionTransfer, Transfer, TransferProgress, Transferred};
use backtrail::{ErrorKind, SessionId};
use serde_json::{Value, json};

use super::failure::{Refused, with_hints};
use crate::commands::Answer;
use crate::error::{CommandError, Result};
use crate::progress::{while_counted, while_read};
use crate::short::short;
use crate::text::{count, size};
use crate::ui::Ui;

/// Whether sessions were sent or fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Direction {
    Push,
    Pull,
}

impl Direction {
    fn done(self) -> &'static str {
        match self {
            Self::Push => "pushed",
            Self::Pull => "pulled",
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Self::Push => "pushing",
            Self::Pull => "pulling",
        }
    }
}

/// Pushes or pulls, and shows on a terminal how far it is: by bytes if it is one session, else
/// by sessions.
pub(in crate::commands) fn while_transferring<T>(
    direction: Direction,
    sessions: usize,
    ui: &Ui,
    work: impl FnOnce(&mut dyn FnMut(&TransferProgress)) -> T,
) -> T {
    if sessions == 1 {
        return while_read(ui, direction.doing(), |report| {
            work(&mut |at| {
                if let Some(report) = &report {
                    report(at.done, at.total);
                }
            })
        });
    }
    let seen = RefCell::new((0_u64, None::<SessionId>));
    while_counted(ui, direction.doing(), |report| {
        work(&mut |at| {
            let mut seen = seen.borrow_mut();
            if seen.1.as_ref() != Some(&at.session) {
                *seen = (seen.0 + 1, Some(at.session.clone()));
            }
            if let Some(report) = &report {
                // Sub-agents and ancestors are more than were named.
                report(seen.0 - 1, seen.0.max(sessions as u64));
            }
        })
    })
}

/// Prints what was done. Fails if the remote was away or denied something: then the rest was not
/// tried.
pub(in crate::commands) fn report(
    direction: Direction,
    transfer: Transfer,
    remote: &str,
    named: &[SessionId],
    forks: &[MadeFork],
    ui: &Ui,
) -> Result<Answer> {
    let mut outcome = Outcome::default();
    let mut stopped = None;
    for SessionTransfer {
        id,
        role,
        outcome: of,
        ..
    } in transfer.sessions
    {
        match of {
            Ok(done) if done.is_nothing() => outcome.unchanged.push(id),
            Ok(done) => outcome.done.push((id, role, done)),
            Err(error) if matches!(error.kind(), ErrorKind::Away | ErrorKind::Denied) => {
                stopped = Some(with_hints(error, remote));
            }
            // What continues it says so itself, if that matters.
            Err(_) if role == Role::Ancestor && !named.contains(&id) => {}
            Err(error) => outcome.refused.push(NotDone::new(id, role, error, remote)),
        }
    }
    if stopped.is_some() && ui.json() {
        // A failure prints nothing else.
    } else if ui.json() {
        let mut json = outcome.to_json(direction, remote);
        if direction == Direction::Push {
            json["forks"] = forks.iter().map(MadeFork::to_json).collect();
        }
        ui.print_json(&json)?;
    } else {
        for fork in forks {
            fork.print(ui)?;
        }
        outcome.print(direction, ui)?;
    }
    match stopped {
        Some(error) => Err(error),
        None => Ok(Answer::no_if(outcome.is_wrong())),
    }
}

/// A fork that has what is only here of a session that diverged.
pub(in crate::commands) struct MadeFork {
    pub(in crate::commands) of: SessionId,
    pub(in crate::commands) fork: SessionId,
    /// The last record that both have.
    pub(in crate::commands) after: Option<u64>,
}

impl MadeFork {
    fn print(&self, ui: &Ui) -> Result<()> {
        let (of, fork) = (short(&self.of), short(&self.fork));
        ui.print_line(&match self.after {
            Some(seq) => format!("{fork} is a fork of {of} after record {seq}, as it is here"),
            None => format!("{fork} is {of} as it is here"),
        })
    }

    fn to_json(&self) -> Value {
        json!({"session": self.of, "fork": self.fork, "after": self.after})
    }
}

#[derive(Default)]
struct Outcome {
    done: Vec<(SessionId, Role, Transferred)>,
    unchanged: Vec<SessionId>,
    refused: Vec<NotDone>,
}

/// A session that was neither pushed nor pulled.
struct NotDone {
    id: SessionId,
    role: Role,
    reason: &'static str,
    error: CommandError,
}

impl NotDone {
    fn new(id: SessionId, role: Role, error: backtrail::Error, remote: &str) -> Self {
        let refused = error.refusal().map(|it| Refused::new(it, &id, remote));
        let is_diverged = refused.as_ref().is_some_and(|it| it.reason == "diverged");
        let kind = error.kind();
        let error = CommandError::from(error);
        // The hints of other conflicts are about appends.
        let error = match refused.is_some() {
            true => error.without_hints(),
            false => error,
        };
        let (reason, hints) = match refused {
            Some(refused) => (refused.reason, refused.hints),
            None => (kind.as_str(), Vec::new()),
        };
        let error = hints.into_iter().fold(error, CommandError::hint);
        let error = match is_diverged {
            true => error.hint("sessions are never merged"),
            false => error,
        };
        Self {
            id,
            role,
            reason,
            error,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "session": self.id,
            "role": self.role,
            "reason": self.reason,
            "message": self.error.with_causes(),
            "hints": self.error.hints,
        })
    }
}

impl Outcome {
    /// Returns whether the user must act.
    fn is_wrong(&self) -> bool {
        let damaged = |(_, _, done): &(SessionId, Role, Transferred)| {
            done.skipped.count() > 0 || done.damaged_there > 0 || !done.lost_payloads.is_empty()
        };
        !self.refused.is_empty() || self.done.iter().any(damaged)
    }

    fn print(&self, direction: Direction, ui: &Ui) -> Result<()> {
        for (id, role, done) in &self.done {
            ui.print_line(&line(direction, id, *role, done))?;
            warn(direction, id, done, ui);
        }
        for refused in &self.refused {
            let hint = refused.error.hints.first();
            ui.warning(&refused.error.with_causes(), hint.map(String::as_str));
            for hint in refused.error.hints.iter().skip(1) {
                ui.status(&format!("  {hint}"));
            }
        }
        match &*self.unchanged {
            [] => {}
            [one] => ui.status(&format!("{}: nothing new", short(one))),
            ids => ui.status(&format!("{}: nothing new", count(ids.len(), "session"))),
        }
        Ok(())
    }

    fn to_json(&self, direction: Direction, remote: &str) -> Value {
        let done = self.done.iter().map(|(id, role, done)| {
            json!({
                "session": id,
                "role": role,
                "is_new": done.is_new,
                "lines": done.lines,
                "bytes": done.bytes,
                "payloads": done.payloads,
                "payload_bytes": done.payload_bytes,
                "damaged": done.skipped.count(),
                "damaged_there": done.damaged_there,
                "lost_payloads": done.lost_payloads,
            })
        });
        let refused = self.refused.iter().map(NotDone::to_json);
        json!({
            "remote": remote,
            direction.done(): done.collect::<Vec<_>>(),
            "unchanged": self.unchanged,
            "refused": refused.collect::<Vec<_>>(),
        })
    }
}

fn line(direction: Direction, id: &SessionId, role: Role, done: &Transferred) -> String {
    let mut what = count(done.lines, "line");
    if done.payloads > 0 {
        what = format!("{what}, {}", count(done.payloads, "payload"));
    }
    let bytes = size(done.bytes + done.payload_bytes);
    let role = match role {
        Role::Ancestor => ", an ancestor",
        Role::SubAgent => ", a sub-agent",
        _ => "",
    };
    let new = if done.is_new { ", new" } else { "" };
    format!(
        "{} {}: {what} ({bytes}{new}{role})",
        direction.done(),
        short(id)
    )
}

fn warn(direction: Direction, id: &SessionId, done: &Transferred, ui: &Ui) {
    let id = short(id);
    if done.skipped.count() > 0 {
        let lines = count(done.skipped.count(), "damaged line");
        let what = format!("{lines} of {id} cannot be sent");
        let hint = format!("see what is damaged: {} verify {id}", ui.program());
        ui.warning(&what, Some(&hint));
    }
    if done.damaged_there > 0 {
        let lines = count(done.damaged_there, "line");
        ui.warning(
            &format!("{lines} of {id} cannot be read at the remote"),
            None,
        );
    }
    if !done.lost_payloads.is_empty() {
        let lost = count(done.lost_payloads.len(), "payload");
        let place = match direction {
            Direction::Push => "here",
            Direction::Pull => "at the remote",
        };
        ui.warning(&format!("{lost} of {id} cannot be read {place}"), None);
    }
}
