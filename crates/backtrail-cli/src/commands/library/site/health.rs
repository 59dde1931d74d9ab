//! How the store is: what it holds, what `doctor` finds, and what is not protected.

use std::time::{Duration, Instant};

use backtrail::{ErrorKind, SessionId};
use backtrail_index::{Filter, SessionRow};
use backtrail_web::library::{Condition, Finding, Health};

use super::super::{Answer, StoreLibrary, failure};
use super::protection;
use crate::commands::doctor::{self, Check};
use crate::commands::short;
use crate::commands::status::{Timeline, bytes_in};
use crate::error::Result;
use crate::text::{clean, count, grouped, size, some_of};

/// How many damaged sessions are named.
const NAMED: usize = 5;
/// Checking takes no longer.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn health(library: &StoreLibrary) -> Answer<Health> {
    read(library).map_err(failure)
}

fn read(library: &StoreLibrary) -> Result<Health> {
    let mut findings = vec![damage(library)?];
    findings.extend(
        doctor::look_at(&library.store, &library.ui)
            .into_iter()
            .map(finding),
    );
    findings.sort_by_key(|finding| match finding.condition {
        Condition::Bad => 0,
        Condition::Warning => 1,
        Condition::Fine => 2,
    });
    let (protection, unchecked) = protection::protection(library)?;
    Ok(Health {
        numbers: numbers(library)?,
        findings,
        protection,
        unchecked,
    })
}

fn finding(check: Check) -> Finding {
    Finding {
        name: check.name.to_owned(),
        condition: match (check.ok, check.warning) {
            (false, _) => Condition::Bad,
            (true, true) => Condition::Warning,
            (true, false) => Condition::Fine,
        },
        text: clean(&check.message).into_owned(),
        hint: check.hint.map(|hint| clean(&hint).into_owned()),
    }
}

/// Checks sessions, the newest first, as long as somebody waits for it.
fn damage(library: &StoreLibrary) -> Result<Finding> {
    let mut rows = library.recent_index()?.sessions(&Filter::default())?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.updated_at));
    let begun = Instant::now();
    let is_in_time = |_: &&SessionRow| begun.elapsed() < PATIENCE;
    let looked_at = rows.iter().take_while(is_in_time);
    let (mut checked, mut damaged) = (0, Vec::new());
    for row in looked_at {
        checked += 1;
        if row.error.is_some() || row.damaged > 0 || is_damaged(library, &row.id) {
            damaged.push(short(&row.id));
        }
    }
    Ok(told(library.ui.program(), checked, rows.len(), &damaged))
}

/// Returns whether a session has damage, or cannot be read.
fn is_damaged(library: &StoreLibrary, id: &SessionId) -> bool {
    let report = library.store.read_session(id);
    match report.and_then(|reader| reader.verify()) {
        Ok(report) => report.damage.count() > 0,
        // It was deleted meanwhile.
        Err(error) => !error.is_moved() && error.kind() != ErrorKind::NotFound,
    }
}

/// Says what was found in so many of all sessions.
fn told(program: &str, checked: usize, all: usize, damaged: &[String]) -> Finding {
    let of = match checked < all {
        true => format!(
            "the newest {} of {}",
            grouped(checked as u64),
            count(all, "session")
        ),
        false => count(all, "session"),
    };
    let named = some_of(damaged.iter().cloned(), NAMED, damaged.len());
    let (condition, text, hint) = match damaged.first() {
        None => (
            Condition::Fine,
            format!("none in {of}"),
            format!("{program} verify"),
        ),
        Some(first) => (
            Condition::Bad,
            format!("in {}: {named}", count(damaged.len(), "session")),
            format!("{program} verify {first}"),
        ),
    };
    let is_done = condition == Condition::Fine && checked == all;
    Finding {
        name: "damage".to_owned(),
        condition,
        text,
        hint: (!is_done).then_some(hint),
    }
}

fn numbers(library: &StoreLibrary) -> Result<Vec<(String, String)>> {
    let rows = library.recent_index()?.sessions(&Filter::default())?;
    let workspaces = library.store.workspaces()?;
    let mut checkpoints = 0;
    for workspace in &workspaces {
        checkpoints += Timeline::of(workspace)?.checkpoints;
    }
    let root = library.store.root();
    let in_trash = library.store.deleted_sessions()?.len();
    let numbers = [
        ("sessions", grouped(rows.len() as u64)),
        (
            "messages",
            grouped(rows.iter().map(|row| row.messages).sum()),
        ),
        (
            "tool calls",
            grouped(rows.iter().map(|row| row.tool_calls).sum()),
        ),
        ("workspaces", grouped(workspaces.len() as u64)),
        ("checkpoints", grouped(checkpoints)),
        ("sessions in the trash", grouped(in_trash as u64)),
        ("on disk", size(bytes_in(root))),
        ("of it derived", size(bytes_in(&root.join("derived")))),
    ];
    let owned = numbers.map(|(name, number)| (name.to_owned(), number));
    Ok(owned.to_vec())
}
