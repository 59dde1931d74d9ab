//! `backtrail verify --remote`: checks what a remote has.

use std::io::Write;

use backtrail::replica::{
    Answer as Answered, End, LogKey, LogOwner, LogStatus, Order, PullOptions, Request, TrailStatus,
};
use backtrail::{SessionId, Store};
use serde_json::{Value, json};

use super::VerifyArgs;
use crate::commands::remote::failure::with_hints;
use crate::commands::remote::open::{OpenRemote, open};
use crate::commands::remote::sessions::{know_short_ids, resolve_there, sessions};
use crate::commands::remote::transfer::{Direction, while_transferring};
use crate::commands::remote::{IdentityArgs, failed};
use crate::commands::{Answer, open_store};
use crate::error::{CommandError, Result, full_text};
use crate::progress::while_counted;
use crate::short::short;
use crate::text::count;
use crate::ui::Ui;

/// About how many bytes are read at once.
const AT_ONCE: u64 = 1 << 20;

/// What was checked, and what is wrong.
#[derive(Default)]
struct Checked {
    sessions: u64,
    lines: u64,
    damaged: Vec<(SessionId, String)>,
}

pub(super) fn verify(name: &str, args: &VerifyArgs, ui: &Ui) -> Result<Answer> {
    let identity = IdentityArgs {
        identity: args.identity.clone(),
    };
    let remote = open(name, &identity, ui)?;
    let mut there = sessions(&*remote.replica, name)?;
    know_short_ids(open_store(ui)?.as_ref(), &there);
    if let Some(reference) = &args.reference {
        let id = resolve_there(reference, &there, name)?;
        there.retain(|(other, _)| *other == id);
    }
    let checked = match args.deep {
        true => deep(&remote, &there, ui)?,
        false => structure(&remote, &there, ui)?,
    };
    match ui.json() {
        true => ui.print_json(&checked.to_json(name, args.deep))?,
        false => checked.print(args.deep, ui)?,
    }
    Ok(Answer::no_if(!checked.damaged.is_empty()))
}

/// Reads all lines, and checks that each trail is in order and ends where the remote says.
fn structure(remote: &OpenRemote, there: &[(SessionId, LogStatus)], ui: &Ui) -> Result<Checked> {
    let all = there.len() as u64;
    while_counted(ui, "verifying", |report| {
        let mut checked = Checked::default();
        for (id, status) in there {
            if let Some(report) = &report {
                report(checked.sessions, all);
            }
            checked.sessions += 1;
            match check_log(remote, id, status) {
                Ok(lines) => checked.lines += lines,
                Err(Wrong::Here(reason)) => checked.damaged.push((id.clone(), reason)),
                Err(Wrong::Failed(error)) => return Err(*error),
            }
        }
        Ok(checked)
    })
}

/// Why a log was not found to be whole.
enum Wrong {
    /// It is damaged.
    Here(String),
    /// Nothing more can be asked.
    Failed(Box<CommandError>),
}

fn ask(remote: &OpenRemote, request: &Request) -> Result<Answered, Wrong> {
    use backtrail::replica::ReplicaErrorKind::Corrupt;
    remote
        .replica
        .ask(request)
        .map_err(|error| match error.kind {
            Corrupt => Wrong::Here(error.message),
            _ => Wrong::Failed(Box::new(failed(error, remote.name()))),
        })
}

/// Checks the trails of a session, and returns how many lines they have.
fn check_log(remote: &OpenRemote, id: &SessionId, status: &LogStatus) -> Result<u64, Wrong> {
    let log = LogKey {
        owner: LogOwner::Session,
        id: id.clone(),
    };
    let trails = match ask(remote, &Request::Trails { log: log.clone() })? {
        Answered::Trails(trails) => trails,
        // It was purged meanwhile.
        Answered::Absent | Answered::Purged(_) => return Ok(0),
        _ => return Err(Wrong::Failed(Box::new(remote.database.odd()))),
    };
    // Something may have been appended since it was listed.
    let place = |end: End| (end.trail, end.seq);
    let head = trails.last().map(|trail| place(trail.end));
    if status.head.is_some() && head < status.head.map(place) {
        return Err(Wrong::Here("its newest trail ends too early".to_owned()));
    }
    let mut lines = 0;
    for trail in &trails {
        lines += check_trail(remote, &log, trail)?;
    }
    Ok(lines)
}

fn check_trail(remote: &OpenRemote, log: &LogKey, trail: &TrailStatus) -> Result<u64, Wrong> {
    let number = trail.end.trail;
    let wrong = |what: &str| Wrong::Here(format!("trail {number} {what}"));
    let (mut beyond, mut last, mut lines) = (None, None, 0);
    loop {
        let request = Request::Read {
            log: log.clone(),
            trail: number,
            beyond,
            order: Order::Forwards,
            max_bytes: AT_ONCE,
        };
        let Answered::Lines { lines: part, more } = ask(remote, &request)? else {
            return Err(wrong("cannot be read"));
        };
        for line in &part {
            if last.is_some_and(|(seq, _)| line.seq <= seq) {
                return Err(wrong(&format!("is out of order at record {}", line.seq)));
            }
            last = Some((line.seq, line.sum));
            if (line.seq, line.sum) == (trail.end.seq, trail.end.sum) {
                return Ok(lines + 1);
            }
            lines += 1;
        }
        beyond = last.map(|(seq, _)| seq);
        if !more || part.is_empty() {
            return Err(wrong("does not end where the remote says"));
        }
    }
}

/// Gets everything into a temporary store, and verifies that.
fn deep(remote: &OpenRemote, there: &[(SessionId, LogStatus)], ui: &Ui) -> Result<Checked> {
    let failed = |error| CommandError::io("cannot make a temporary store", None, &error);
    let dir = tempfile::tempdir().map_err(failed)?;
    let store = Store::open_or_create(dir.path().join("store"))?;
    // What is in the trash there cannot be pulled.
    let whole = there.iter().filter(|(_, it)| it.deleted_at_ms.is_none());
    let ids: Vec<SessionId> = whole.map(|(id, _)| id.clone()).collect();
    let pulled = while_transferring(Direction::Pull, ids.len(), ui, |progress| {
        store.pull(&ids, &*remote.replica, &PullOptions::new(), progress)
    });
    let pulled = pulled.map_err(|error| with_hints(error, remote.name()))?;
    let mut checked = Checked::default();
    for session in pulled.sessions {
        let id = session.id;
        checked.sessions += 1;
        match session.outcome {
            Err(error) if is_failure(&error) => return Err(with_hints(error, remote.name())),
            Err(error) => checked.damaged.push((id, full_text(&error))),
            Ok(got) => {
                checked.lines += got.lines;
                let found = [
                    (got.damaged_there, "damaged line"),
                    (got.lost_payloads.len() as u64, "lost payload"),
                ];
                let found = found.into_iter().filter(|(n, _)| *n > 0);
                let found = found.map(|(n, what)| (id.clone(), count(n, what)));
                checked.damaged.extend(found);
                checked.check_copy(&store, &id);
            }
        }
    }
    Ok(checked)
}

fn is_failure(error: &backtrail::Error) -> bool {
    use backtrail::ErrorKind::{Away, Denied, DiskFull, Io};
    matches!(error.kind(), Away | Denied | DiskFull | Io)
}

impl Checked {
    /// Verifies a session that was pulled.
    fn check_copy(&mut self, store: &Store, id: &SessionId) {
        match store.read_session(id).and_then(|reader| reader.verify()) {
            Err(error) => self.damaged.push((id.clone(), full_text(&error))),
            Ok(report) => {
                let found = report.damage.first().iter();
                let found = found.map(|damage| (id.clone(), damage.reason.to_string()));
                self.damaged.extend(found);
            }
        }
    }

    fn to_json(&self, remote: &str, deep: bool) -> Value {
        let damaged = self.damaged.iter();
        let damaged = damaged.map(|(id, reason)| json!({"session": id, "reason": reason}));
        json!({
            "remote": remote,
            "ok": self.damaged.is_empty(),
            "deep": deep,
            "sessions": self.sessions,
            "lines": self.lines,
            "damaged": damaged.collect::<Vec<_>>(),
        })
    }

    fn print(&self, deep: bool, ui: &Ui) -> std::io::Result<()> {
        let mut out = ui.out();
        for (id, reason) in &self.damaged {
            let reason = crate::text::visible(reason);
            writeln!(out, "damaged  {}: {reason}", short(id))?;
        }
        let all = count(self.sessions, "session");
        let lines = count(self.lines, "line");
        match self.damaged.len() {
            0 if deep => writeln!(out, "ok: {lines} in {all}, with every checksum and payload")?,
            0 => writeln!(
                out,
                "ok: {lines} in {all}; structure only, --deep checks all bytes"
            )?,
            n => writeln!(out, "{} in {all}", count(n, "damaged place"))?,
        }
        out.flush()
    }
}
