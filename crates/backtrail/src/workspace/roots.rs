//! Which workspace is at a path, so that not every workspace's trail must be read to find it.
//!
//! It is derived data and only a hint: the workspace's trail decides, and what is missing or
//! wrong only costs time.

use std::collections::BTreeMap;
use std::path::Path;

use super::identity::{KnownWorkspace, read_known};
use crate::ids::WorkspaceId;
use crate::store::Store;

/// The file: the ids by their paths.
const FILE: &str = "workspace-roots.json";

type Roots = BTreeMap<String, WorkspaceId>;

/// Returns the workspace at a path, if that is noted and true.
pub(super) fn noted_at(store: &Store, root: &Path) -> Option<KnownWorkspace> {
    let id = read(store).remove(root.to_str()?)?;
    is_at(store, id, root)
}

/// Returns a workspace if its trail says that it is at a path.
fn is_at(store: &Store, id: WorkspaceId, root: &Path) -> Option<KnownWorkspace> {
    let known = read_known(store, id).ok().flatten()?;
    (known.root == root && !known.is_superseded()).then_some(known)
}

/// Returns whether anything is noted.
pub(super) fn is_empty(store: &Store) -> bool {
    read(store).is_empty()
}

/// Returns the nearest workspace around a path that is noted and true.
pub(super) fn noted_around(store: &Store, dir: &Path) -> Option<KnownWorkspace> {
    let mut roots = read(store);
    dir.ancestors().find_map(|root| {
        let id = roots.remove(root.to_str()?)?;
        is_at(store, id, root).filter(|known| known.is_used(store))
    })
}

/// Notes which workspace is at a path.
pub(super) fn note(store: &Store, root: &Path, id: &WorkspaceId) {
    // A path that is not text is looked for on all trails.
    let Some(root) = root.to_str() else {
        return;
    };
    let mut roots = read(store);
    if roots.get(root) == Some(id) {
        return;
    }
    roots.insert(root.to_owned(), id.clone());
    if let Ok(bytes) = serde_json::to_vec(&roots) {
        store.write_derived(FILE, &bytes).ok();
    }
}

fn read(store: &Store) -> Roots {
    let bytes = store.read_derived(FILE).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}
