//! What a turn, a call or a row of the timeline changed.

use backtrail_tui::library::{Between, Changes, ChangesOf, Failure, FileDiff};

use super::library::{Answer, StoreLibrary};

pub(super) fn changes(_: &StoreLibrary, _: &ChangesOf) -> Answer<Changes> {
    Ok(Changes::default())
}

pub(super) fn diff(
    _: &StoreLibrary,
    _: &ChangesOf,
    _: Option<&Between>,
    _: &str,
) -> Answer<FileDiff> {
    Err(Failure::new("not built yet"))
}
