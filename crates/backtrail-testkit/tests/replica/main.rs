//! What clients rely on when they share a replica.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod model;
