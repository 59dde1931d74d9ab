//! Remotes: a second home of sessions on PostgreSQL, with large parts in a bucket.
//!
//! [`Remote`] answers the requests of [`backtrail::replica`]. Each is one call of a function in the
//! database, so one round trip and one transaction, without prepared statements and without state of
//! the connection: a pooler in transaction mode may stand between. The functions of `migrations/` are
//! all that clients may call; [`init`] creates them and the roles.
//!
//! Blobs are in an object store, or in the database if none is given. A blob is stored before the line
//! that names it. [`EncryptedReplica`] encrypts for any replica below it.

mod blobs;
mod bucket;
mod check;
mod encryption;
mod error;
mod init;
mod lines;
mod logs;
mod options;
mod packs;
mod pool;
mod remote;
mod roles;
mod rows;
mod runtime;
mod tls;
mod version;

pub use check::{BlobsCheck, RemoteCheck};
pub use encryption::{EncryptedReplica, Identities, KeyError, Recipient};
pub use init::init;
pub use options::RemoteOptions;
pub use remote::Remote;
