//! The sessions, as a list and one by one.

use backtrail_tui::library::{Failure, Freshness, Scope, SessionHead, SessionList};

use super::library::{Answer, StoreLibrary};

pub(super) fn list(_: &StoreLibrary, _: Scope, _: Freshness) -> Answer<SessionList> {
    Ok(SessionList::default())
}

pub(super) fn head(_: &StoreLibrary, _: &str) -> Answer<SessionHead> {
    Err(Failure::new("not built yet"))
}
