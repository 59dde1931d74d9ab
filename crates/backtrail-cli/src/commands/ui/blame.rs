//! Who wrote each line of a file.

use backtrail_tui::library::{BlameLine, Moment};

use super::library::{Answer, StoreLibrary};

pub(super) fn blame(_: &StoreLibrary, _: &str, _: &Moment, _: &str) -> Answer<Vec<BlameLine>> {
    Ok(Vec::new())
}
