//! The state of a workspace, by content.

pub(crate) mod entry;
pub(crate) mod node;

pub use entry::{Kind, LeftOutReason, Totals};
