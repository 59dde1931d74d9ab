//! Randomness, and ids made from it.

use std::fmt;
use std::io;
use std::sync::Mutex;

use crate::sync::lock;

/// A source of random bytes.
pub trait Randomness: Send + Sync + fmt::Debug + 'static {
    /// Fills `bytes` with unpredictable bytes.
    ///
    /// # Errors
    ///
    /// Fails if the source has no randomness to give.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// The operating system's randomness: the default [`Randomness`].
///
/// Every id uses it. A generator of our own, seeded once, would repeat itself in both
/// halves of a process that forks.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandomness;

impl Randomness for OsRandomness {
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::other)
    }
}

/// Creates a version 4 UUID, random from its first digit, so that short prefixes tell ids
/// apart.
pub(crate) fn new_uuid(random: &dyn Randomness) -> io::Result<uuid::Uuid> {
    let mut bytes = [0; 16];
    random.fill(&mut bytes)?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
}

/// Creates the ids of one session's records, asking for randomness once for several of
/// them, because a system call for each would be noticeable.
///
/// It belongs to a session's handle, which does not survive a fork anyway (both halves
/// would share its locks), so no id is created twice.
#[derive(Debug, Default)]
pub(crate) struct IdSource(Mutex<Ahead>);

#[derive(Debug, Default)]
struct Ahead {
    bytes: [[u8; 16]; 32],
    left: usize,
}

impl IdSource {
    pub(crate) fn next(&self, random: &dyn Randomness) -> io::Result<uuid::Uuid> {
        let mut ahead = lock(&self.0);
        if ahead.left == 0 {
            random.fill(ahead.bytes.as_flattened_mut())?;
            ahead.left = ahead.bytes.len();
        }
        ahead.left -= 1;
        let bytes = ahead.bytes[ahead.left];
        Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}
