//! A remote on real servers: PostgreSQL, pgbouncer in transaction mode, and SeaweedFS, each started here
//! on loopback, in a directory of its own.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests look at real files, and a panic is how they tell"
)]

mod bucket;
mod crashes;
mod in_bucket;
mod killed;
mod kit;
mod network;
mod promises;
mod purge;
mod rights;
mod servers;
mod setup;
mod tls;
mod versions;
