//! The files at a moment.

use backtrail_tui::library::{Failure, Moment};

use super::library::{Answer, StoreLibrary};

pub(super) fn files(_: &StoreLibrary, _: &str, _: &Moment) -> Answer<Vec<String>> {
    Ok(Vec::new())
}

pub(super) fn file(_: &StoreLibrary, _: &str, _: &Moment, _: &str) -> Answer<String> {
    Err(Failure::new("not built yet"))
}
