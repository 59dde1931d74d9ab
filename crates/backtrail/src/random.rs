//! Randomness, and the ids made of it.

use std::fmt;
use std::io;

/// Gives random bytes.
pub trait Randomness: Send + Sync + fmt::Debug + 'static {
    /// Fills `bytes` with bytes that nobody can foresee or repeat.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// The operating system's randomness: the default [`Randomness`].
///
/// It is asked for every id. A generator of our own, seeded once, would repeat
/// itself in both halves of a process that forks.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandomness;

impl Randomness for OsRandomness {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::other)
    }
}

/// Makes an id: a version 4 UUID, random from its first digit, so that short
/// prefixes tell ids apart.
pub(crate) fn new_uuid(random: &dyn Randomness) -> io::Result<uuid::Uuid> {
    let mut bytes = [0; 16];
    random.fill(&mut bytes)?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
}
