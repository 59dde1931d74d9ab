//! The short ids of sessions, as long as they must be to be unique in the store.
//!
//! A process works with one store, so what is known of its ids is kept for the whole process:
//! messages are made in many places that know no store.

use std::sync::OnceLock;

use backtrail::plumbing::ShortIds;
use backtrail::{SessionId, Store};

static STORE: OnceLock<Store> = OnceLock::new();
static KNOWN: OnceLock<ShortIds> = OnceLock::new();

/// Sets the store whose sessions are named.
pub(crate) fn use_store(store: &Store) {
    STORE.get_or_init(|| store.clone());
}

/// Sets the short ids of the store, where they are known without listing it.
pub(crate) fn know(ids: impl FnOnce() -> Option<ShortIds>) {
    if KNOWN.get().is_none()
        && let Some(ids) = ids()
    {
        KNOWN.set(ids).ok();
    }
}

/// Returns the short id of a session: 4 letters, or more if another session has the same.
pub(crate) fn short(id: &SessionId) -> String {
    let list = || STORE.get().and_then(|store| store.short_ids().ok());
    let known = KNOWN.get_or_init(|| list().unwrap_or_default());
    known.shortest(id)
}
