//! What changes while a screen is open.

use backtrail_tui::library::{Change, Failure, Watch};

use super::library::{Answer, StoreLibrary};

pub(super) fn watch(_: &StoreLibrary, _: Box<dyn Fn(Change) + Send>) -> Answer<Box<dyn Watch>> {
    Err(Failure::new("not built yet"))
}
