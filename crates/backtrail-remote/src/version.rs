//! The migrations, and the versions that understand each other.

/// The migrations, in order: each is numbered by its place, and never changed once it was released.
/// A function that clients call has a version in its name; a newer one comes beside it, and the older
/// one goes a version later.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_tables.sql"),
    include_str!("../migrations/0002_logs.sql"),
    include_str!("../migrations/0003_lines.sql"),
    include_str!("../migrations/0004_packs.sql"),
    include_str!("../migrations/0005_blobs.sql"),
    include_str!("../migrations/0006_about.sql"),
];

/// The number of the newest migration.
pub(crate) const VERSION: i32 = MIGRATIONS.len() as i32;

/// The oldest clients that the newest migration still serves.
pub(crate) const OLDEST_CLIENT: i32 = 6;
