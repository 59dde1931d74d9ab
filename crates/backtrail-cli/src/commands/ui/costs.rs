//! What was spent.

use backtrail_tui::library::{Costs, CostsBy, Scope};

use super::library::{Answer, StoreLibrary};

pub(super) fn costs(_: &StoreLibrary, _: CostsBy, _: Scope) -> Answer<Costs> {
    Ok(Costs::default())
}
