//! What a diff has to say of two trees.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use backtrail::snapshot::{ChangeKind, Diff, FileKind, FileState};

use super::tree::{Thing, Tree};

/// What happened at each path, a rename told as what went and what came.
type Told = BTreeMap<PathBuf, (ChangeKind, Option<Thing>, Option<Thing>)>;

/// Finds out what changed by looking at every path.
fn truth(before: &Tree, after: &Tree) -> Told {
    let mut told = Told::new();
    for path in before.keys().chain(after.keys()) {
        let (old, new) = (before.get(path), after.get(path));
        let kind = match (old, new) {
            (Some(Thing::File { mode: a, bytes: x }), Some(Thing::File { mode: b, bytes: y })) => {
                match (x != y, a != b) {
                    (true, _) => ChangeKind::Modified,
                    (false, true) => ChangeKind::Mode,
                    (false, false) => continue,
                }
            }
            (Some(Thing::Link(a)), Some(Thing::Link(b))) if a != b => ChangeKind::Modified,
            (Some(Thing::Dir { mode: a }), Some(Thing::Dir { mode: b })) if a != b => {
                ChangeKind::Mode
            }
            (Some(a), Some(b)) if a == b => continue,
            (Some(_), Some(_)) => ChangeKind::Kind,
            // A directory shows by what is in it.
            (None, Some(Thing::Dir { .. })) if holds_something(after, path) => continue,
            (Some(Thing::Dir { .. }), None) if holds_something(before, path) => continue,
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Deleted,
        };
        told.insert(path.clone(), (kind, old.cloned(), new.cloned()));
    }
    told
}

fn holds_something(tree: &Tree, dir: &Path) -> bool {
    tree.keys().any(|path| path.parent() == Some(dir))
}

/// Checks a diff against the trees that it is between.
pub(crate) fn check_diff(diff: &Diff, before: &Tree, after: &Tree) -> Result<(), String> {
    let truth = truth(before, after);
    let mut told = Told::new();
    let mut renamed: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut last = PathBuf::new();
    for change in diff {
        if !last.as_os_str().is_empty() && last.as_os_str() >= change.path.as_os_str() {
            return Err(format!("{:?} comes after {last:?}", change.path));
        }
        last.clone_from(&change.path);
        let read = |side: backtrail::Result<Option<Vec<u8>>>| side.map_err(|e| e.to_string());
        let old = thing(change.before.as_ref(), read(diff.before(change))?);
        let new = thing(change.after.as_ref(), read(diff.after(change))?);
        let mut tell = |path: &PathBuf, kind, old, new| {
            let twice = told.insert(path.clone(), (kind, old, new));
            twice.map_or(Ok(()), |_| Err(format!("{path:?} is told twice")))
        };
        if change.kind == ChangeKind::Renamed {
            let (Some(Thing::File { bytes: x, .. }), Some(Thing::File { bytes: y, .. })) =
                (&old, &new)
            else {
                return Err(format!("{change} was no file"));
            };
            if x != y || x.is_empty() {
                return Err(format!("{change} is not the same file"));
            }
            *renamed.entry(x.clone()).or_default() += 1;
            tell(change.old_path(), ChangeKind::Deleted, old, None)?;
            tell(&change.path, ChangeKind::Added, None, new)?;
        } else {
            tell(&change.path, change.kind, old, new)?;
        }
    }
    for path in told.keys().chain(truth.keys()) {
        let (told, truth) = (told.get(path), truth.get(path));
        if told != truth {
            return Err(format!("{path:?} is told as {told:?} and was {truth:?}"));
        }
    }
    check_renames(&renamed, &truth)
}

/// Checks that all that can be told as renamed was.
fn check_renames(renamed: &HashMap<Vec<u8>, usize>, truth: &Told) -> Result<(), String> {
    let mut both: HashMap<&[u8], (usize, usize)> = HashMap::new();
    for change in truth.values() {
        match change {
            (ChangeKind::Deleted, Some(Thing::File { bytes, .. }), _) => {
                both.entry(bytes).or_default().0 += 1;
            }
            (ChangeKind::Added, _, Some(Thing::File { bytes, .. })) => {
                both.entry(bytes).or_default().1 += 1;
            }
            _ => {}
        }
    }
    for (bytes, (gone, come)) in both {
        let expected = if bytes.is_empty() { 0 } else { gone.min(come) };
        let found = renamed.get(bytes).copied().unwrap_or_default();
        if found != expected {
            return Err(format!("{found} renames are told where {expected} were"));
        }
    }
    Ok(())
}

/// Puts a state and its content together again.
fn thing(state: Option<&FileState>, content: Option<Vec<u8>>) -> Option<Thing> {
    let state = state?;
    Some(match state.kind {
        FileKind::File => {
            let bytes = content.expect("a file has content");
            assert_eq!(bytes.len() as u64, state.bytes);
            let mode = state.mode.expect("a file has a mode");
            Thing::File { mode, bytes }
        }
        FileKind::Link => Thing::Link(state.target.clone().expect("a link has a target")),
        _ => Thing::Dir {
            mode: state.mode.expect("a directory has a mode"),
        },
    })
}
