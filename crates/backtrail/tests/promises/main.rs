//! The engine's promises, one module each.

mod basics;
