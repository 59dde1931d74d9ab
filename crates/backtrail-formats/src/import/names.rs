//! Which session of the store a session of another program is.

use backtrail::SessionId;

/// Returns the id of a session that its agent calls `name`: that name where it is an id,
/// else one that is made of it.
pub(super) fn session_id(agent: &str, name: &str) -> SessionId {
    /// Shorter ones are not unique anywhere but in their own directory.
    const SHORTEST: usize = 16;
    match name.parse::<SessionId>() {
        Ok(id) if name.len() >= SHORTEST => id,
        _ => made_of(&[agent, name]),
    }
}

/// Returns the id of a branch that the session `main` left, by its first own item.
pub(super) fn branch_id(main: &SessionId, key: &str) -> SessionId {
    made_of(&[main.as_str(), "branch", key])
}

/// Returns the id of a session whose agent gives it the name of another one.
pub(super) fn other_id(taken: &SessionId, key: &str) -> SessionId {
    made_of(&[taken.as_str(), "other", key])
}

/// Makes an id of texts: the same every time.
fn made_of(parts: &[&str]) -> SessionId {
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
