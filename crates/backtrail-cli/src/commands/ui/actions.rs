//! Everything that changes files, history or sessions: planned, then done.

use backtrail_tui::library::{Action, Failure, OnConflict, Plan, Report};

use super::library::{Answer, StoreLibrary};

pub(super) fn next_undo(_: &StoreLibrary) -> String {
    String::new()
}

pub(super) fn plan(_: &StoreLibrary, _: &Action) -> Answer<Plan> {
    Err(Failure::new("not built yet"))
}

pub(super) fn apply(_: &StoreLibrary, _: u64, _: OnConflict) -> Answer<Report> {
    Err(Failure::new("not built yet"))
}
