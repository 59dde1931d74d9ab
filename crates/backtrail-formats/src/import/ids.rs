//! The ids of sessions in the store, from other agents' names for them.

use backtrail::SessionId;

/// Returns the id of a session that its agent calls `name`: the name itself if it can be an
/// id, or else one derived from it.
pub(crate) fn session_id(agent: &str, name: &str) -> SessionId {
    /// Shorter names are unique only in their own directory.
    const MIN_LENGTH: usize = 16;
    match name.parse::<SessionId>() {
        Ok(id) if name.len() >= MIN_LENGTH => id,
        _ => derived_id(&[agent, name]),
    }
}

/// Returns the id of a branch of the session `main`, by the branch's first own event.
pub(super) fn branch_id(main: &SessionId, key: &str) -> SessionId {
    derived_id(&[main.as_str(), "branch", key])
}

/// Returns the id of a session whose name is already taken by another one.
pub(super) fn other_id(taken: &SessionId, key: &str) -> SessionId {
    derived_id(&[taken.as_str(), "other", key])
}

/// Derives an id from texts: the same every time.
fn derived_id(parts: &[&str]) -> SessionId {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    let id = uuid::Builder::from_custom_bytes(bytes).into_uuid();
    id.hyphenated()
        .to_string()
        .parse()
        .expect("a UUID is a session id")
}
