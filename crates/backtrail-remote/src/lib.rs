//! Remotes: a second home of sessions on PostgreSQL and object storage.

mod encryption;

pub use encryption::{EncryptedReplica, Identities, KeyError, Recipient};
