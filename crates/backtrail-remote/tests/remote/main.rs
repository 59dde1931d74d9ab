//! A remote on real servers: PostgreSQL, pgbouncer in transaction mode, and SeaweedFS, each started here
//! on loopback, in a directory of its own.

mod bucket;
mod crashes;
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
