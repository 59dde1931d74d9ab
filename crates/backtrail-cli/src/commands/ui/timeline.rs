//! What happened in this workspace.

use backtrail_tui::library::Timeline;

use super::library::{Answer, StoreLibrary};

pub(super) fn timeline(_: &StoreLibrary, _: usize) -> Answer<Timeline> {
    Ok(Timeline::default())
}
