//! Conversations, page by page.

use backtrail_tui::library::{Failure, Page, PageRequest, Place};

use super::library::{Answer, StoreLibrary};

pub(super) fn page(_: &StoreLibrary, _: &PageRequest) -> Answer<Page> {
    Err(Failure::new("not built yet"))
}

pub(super) fn text(_: &StoreLibrary, _: &Place) -> Answer<String> {
    Err(Failure::new("not built yet"))
}

pub(super) fn prompt_from(_: &StoreLibrary, _: &Place, _: bool) -> Answer<Option<u64>> {
    Ok(None)
}
