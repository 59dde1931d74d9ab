//! The agents that continue a session, and the formats of exports.

use std::ffi::OsString;

use backtrail_tui::library::Place;

use super::library::StoreLibrary;

pub(super) fn agents(_: &StoreLibrary, _: &str) -> Vec<(String, String)> {
    Vec::new()
}

pub(super) fn continue_command(_: &StoreLibrary, _: &Place, _: &str) -> Vec<OsString> {
    Vec::new()
}

pub(super) fn exports(_: &StoreLibrary, _: &str) -> Vec<(String, String)> {
    Vec::new()
}
