//! Hidden sums: the replica compares them, and only the key turns them back.
//!
//! A keyed permutation of 64 bits for each place: four rounds of a Feistel network whose round
//! function is keyed BLAKE3. Not an XOR with a pad: machines that diverged offer two lines for the
//! same place, and a pad would show the difference between their sums to whoever saw both.

const ROUNDS: u8 = 4;

/// Hides and reveals the sums of one place.
pub(super) struct SumCipher([u8; 32]);

impl SumCipher {
    pub(super) fn at(key: &[u8; 32], place: &[u8]) -> Self {
        Self(*blake3::keyed_hash(key, place).as_bytes())
    }

    pub(super) fn hide(&self, sum: [u8; 8]) -> [u8; 8] {
        let (mut left, mut right) = halves(sum);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.round(round, right));
        }
        joined(left, right)
    }

    pub(super) fn reveal(&self, hidden: [u8; 8]) -> [u8; 8] {
        let (mut left, mut right) = halves(hidden);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.round(round, left), left);
        }
        joined(left, right)
    }

    fn round(&self, round: u8, half: u32) -> u32 {
        let [a, b, c, d] = half.to_le_bytes();
        let hash = blake3::keyed_hash(&self.0, &[round, a, b, c, d]);
        let [a, b, c, d, ..] = *hash.as_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

fn halves(sum: [u8; 8]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = sum;
    (
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    )
}

fn joined(left: u32, right: u32) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (left.to_le_bytes(), right.to_le_bytes());
    [a, b, c, d, e, f, g, h]
}
