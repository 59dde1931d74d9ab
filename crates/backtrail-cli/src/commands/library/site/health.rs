//! How the store is: what it holds, what `doctor` finds, and what is not protected here.

use backtrail_index::Filter;
use backtrail_web::library::{Condition, Finding, Health};

use super::super::{Answer, StoreLibrary, failure};
use crate::commands::checkpoint::skipped_path;
use crate::commands::doctor::{self, Check};
use crate::commands::short;
use crate::commands::status::{Timeline, bytes_in};
use crate::error::Result;
use crate::text::{clean, count, grouped, size, some_of};

/// How many damaged sessions are named.
const NAMED: usize = 5;
/// How many paths are listed that are not protected.
const LISTED: usize = 200;

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
    Ok(Health {
        numbers: numbers(library)?,
        findings,
        not_protected: not_protected(library)?,
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

/// Says which sessions are damaged, as far as the catalogue has seen it.
fn damage(library: &StoreLibrary) -> Result<Finding> {
    let mut rows = library.recent_index()?.sessions(&Filter::default())?;
    rows.retain(|row| row.damaged > 0 || row.error.is_some());
    let ids: Vec<String> = rows.iter().map(|row| short(&row.id)).collect();
    let named = some_of(ids.iter().cloned(), NAMED, ids.len());
    let (condition, text, hint) = match ids.first() {
        None => (Condition::Fine, "no session is damaged".to_owned(), None),
        Some(first) => {
            let sessions = count(ids.len(), "session");
            let text = format!("{sessions} cannot be read completely: {named}");
            let program = library.ui.program();
            (
                Condition::Bad,
                text,
                Some(format!("{program} verify {first}")),
            )
        }
    };
    Ok(Finding {
        name: "damage".to_owned(),
        condition,
        text,
        hint,
    })
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

/// Returns what the last checkpoint here does not hold, and the reason.
fn not_protected(library: &StoreLibrary) -> Result<Vec<(String, String)>> {
    let root = library.root.as_deref();
    let found = root
        .map(|root| library.store.find_workspace(root))
        .transpose()?;
    let last = match found.flatten() {
        Some(workspace) => workspace.last_checkpoint()?,
        None => None,
    };
    let Some(last) = last else {
        return Ok(Vec::new());
    };
    if last.dropped()?.is_some() {
        return Ok(Vec::new());
    }
    let mut listed = Vec::new();
    for entry in last.snapshot()?.skipped().take(LISTED) {
        let entry = entry?;
        listed.push((skipped_path(&entry), entry.reason.to_string()));
    }
    Ok(listed)
}
