//! Remotes: a second home of sessions on PostgreSQL and object storage.
