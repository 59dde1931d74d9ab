//! Short ids of sessions: letters from `k` to `z`, so that one is never taken for the hex digits
//! of a checkpoint.
//!
//! They come from a hash of the session's id. So each session always has the same one, no file
//! has to be read, and they differ from the first letter on, whatever the ids look like.

use crate::ids::SessionId;

/// The letters of a whole short id.
const LETTERS: usize = 16;
/// The fewest characters of an id or a short id that are accepted as a reference, and shown.
pub(crate) const SHORTEST: usize = 4;

impl SessionId {
    /// Returns the short id of the session: 16 letters from `k` to `z`. A prefix of 4 letters or
    /// more is a [reference](crate::Store::resolve) if no other session has it;
    /// [`Store::short_ids`](crate::Store::short_ids) knows how many that takes.
    ///
    /// ```
    /// let id: backtrail::SessionId = "7f3a1c9e-52d4-4b7e-9d0a-3f8b6f2f4d11".parse()?;
    /// assert_eq!(id.short(), "prokmouuslsollms");
    /// # Ok::<(), backtrail::Error>(())
    /// ```
    pub fn short(&self) -> String {
        letters(ShortIds::hash(self), LETTERS)
    }
}

/// Returns the sessions that a reference means by its letters: the one with that id, else those
/// whose short id begins with it, else those whose id does.
pub fn named_by(
    ids: Vec<SessionId>,
    reference: &str,
    is_there: impl Fn(&SessionId) -> bool,
) -> Vec<SessionId> {
    let is_long_enough = reference.len() >= SHORTEST;
    let is_short = is_long_enough && is_short_like(reference);
    let ways: [&dyn Fn(&SessionId) -> bool; 3] = [
        &|id| id.as_str() == reference,
        &|id| is_short && id.short().starts_with(reference),
        &|id| is_long_enough && id.as_str().starts_with(reference),
    ];
    let mut found = ways.into_iter().map(|way| {
        let fitting = ids.iter().filter(|id| way(id) && is_there(id));
        fitting.cloned().collect::<Vec<_>>()
    });
    found.find(|found| !found.is_empty()).unwrap_or_default()
}

/// Returns whether a text may be the beginning of a short id.
fn is_short_like(text: &str) -> bool {
    text.len() <= LETTERS && text.bytes().all(|b| (b'k'..=b'z').contains(&b))
}

/// The short ids of many sessions.
#[derive(Debug, Clone, Default)]
pub struct ShortIds {
    /// Their hashes, in order.
    hashes: Vec<u64>,
}

impl ShortIds {
    /// Collects the short ids of sessions.
    pub fn new<'a>(ids: impl IntoIterator<Item = &'a SessionId>) -> Self {
        Self::of_hashes(ids.into_iter().map(Self::hash))
    }

    /// Collects short ids from the hashes of sessions.
    pub fn of_hashes(hashes: impl IntoIterator<Item = u64>) -> Self {
        let mut hashes: Vec<u64> = hashes.into_iter().collect();
        hashes.sort_unstable();
        Self { hashes }
    }

    /// Returns the bits that the letters of a session come from.
    pub fn hash(id: &SessionId) -> u64 {
        let hash = blake3::hash(id.as_str().as_bytes());
        hash.as_bytes()[..8]
            .iter()
            .fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
    }

    /// Returns the beginning of a session's short id that no other session has, of at least 4
    /// letters. The session itself may be among these or not.
    pub fn shortest(&self, id: &SessionId) -> String {
        let own = Self::hash(id);
        let from = self.hashes.partition_point(|hash| *hash < own);
        let to = self.hashes.partition_point(|hash| *hash <= own);
        let before = from.checked_sub(1).and_then(|n| self.hashes.get(n));
        let neighbours = [before, self.hashes.get(to)].into_iter().flatten();
        let shared = neighbours.map(|other| (own ^ other).leading_zeros() / 4);
        let shared = shared.max().map_or(0, |shared| shared as usize + 1);
        letters(own, shared.clamp(SHORTEST, LETTERS))
    }
}

fn letters(hash: u64, count: usize) -> String {
    let nibble = |n: usize| (hash >> (60 - 4 * n)) as u8 & 0xf;
    (0..count).map(|n| char::from(b'k' + nibble(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        text.parse().unwrap()
    }

    #[test]
    fn a_letter_stands_for_four_bits_of_the_hash() {
        assert_eq!(letters(0x0123_4567_89ab_cdef, 16), "klmnopqrstuvwxyz");
        assert_eq!(letters(0xf000_0000_0000_0000, 4), "zkkk");
        assert!(is_short_like("kxyz") && is_short_like(&"z".repeat(16)));
        for wrong in ["kxyj", "kxy1", "KXYZ", "k-yz", &"z".repeat(17)] {
            assert!(!is_short_like(wrong), "{wrong}");
        }
    }

    #[test]
    fn ids_that_differ_in_their_last_digit_differ_from_the_first_letter_on() {
        let mut firsts = [0; 16];
        for n in 0..16_000 {
            let short = id(&format!("session-2026-11-18-{n:05}")).short();
            firsts[usize::from(short.as_bytes()[0] - b'k')] += 1;
        }
        // 1,000 each, if they are spread evenly; the deviation is about 31.
        assert!(firsts.iter().all(|n| (850..1150).contains(n)), "{firsts:?}");
    }

    #[test]
    fn as_many_letters_are_shown_as_no_other_session_shares() {
        let own = id("one");
        let hash = ShortIds::hash(&own);
        let with = |others: &[u64]| {
            let known = ShortIds::of_hashes(others.iter().copied());
            known.shortest(&own).len()
        };
        assert_eq!(with(&[]), 4, "alone");
        assert_eq!(with(&[hash]), 4, "itself");
        let others: [u64; 2] = [hash ^ (1 << 60), hash ^ (1 << 63)];
        assert_eq!(with(&others), 4, "they differ in the first letter");
        assert_eq!(
            with(&[hash ^ (1 << 44), hash]),
            5,
            "four letters are shared"
        );
        assert_eq!(with(&[hash ^ (1 << 40), hash, hash ^ (1 << 44)]), 6);
        assert_eq!(with(&[hash ^ 1]), 16);
        assert_eq!(with(&[hash, hash]), 4, "nothing tells equal ones apart");
    }

    #[test]
    fn the_shown_letters_are_unique_among_many() {
        let ids: Vec<SessionId> = (0..20_000).map(|n| id(&format!("s{n}"))).collect();
        let known = ShortIds::new(&ids);
        let shown: std::collections::HashSet<String> =
            ids.iter().map(|id| known.shortest(id)).collect();
        assert_eq!(shown.len(), ids.len());
        let shorts: Vec<String> = ids.iter().map(SessionId::short).collect();
        for shown in shown.iter().take(500) {
            let matching = shorts.iter().filter(|short| short.starts_with(shown));
            assert_eq!(matching.count(), 1, "{shown}");
        }
    }
}
