//! The engine's promises, one module each.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod agent_lives;
mod agents;
mod async_use;
mod basics;
mod blame;
mod compaction;
mod concurrency;
mod context;
mod conversation;
mod cost;
mod damage;
mod embedding;
mod example;
mod faults;
mod follow;
mod forks;
mod format;
mod gc;
mod history;
mod import_writer;
mod kit;
mod marks;
mod messages;
mod model;
mod moves;
mod notes;
mod payloads;
mod points;
mod power;
mod references;
mod remote;
mod rewind;
mod snapshots;
mod spawn;
mod stats;
mod sync;
mod transcript;
mod trash;
mod turns;
mod version1;
