//! What clients rely on when they share a replica.

mod model;
