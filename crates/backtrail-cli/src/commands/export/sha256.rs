//! SHA-256, by which a page names the only script and style that may run in it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns the digest of a text in Base64.
pub(super) fn base64(text: &str) -> String {
    STANDARD.encode(digest(text.as_bytes()))
}

/// The first 32 bits of the fractional parts of the cube roots (`rounds`) and the square
/// roots (`state`) of the first primes, as the standard has it.
fn constants() -> ([u32; 64], [u32; 8]) {
    let is_prime = |n: &u128| {
        (2..*n)
            .take_while(|d| d * d <= *n)
            .all(|d| !n.is_multiple_of(d))
    };
    let mut rounds = [0; 64];
    let mut state = [0; 8];
    for (n, prime) in (2u128..).filter(is_prime).take(64).enumerate() {
        // The root of the prime, 32 bits behind the point: exact, in whole numbers.
        rounds[n] = root(prime << 96, 3) as u32;
        if n < 8 {
            state[n] = root(prime << 64, 2) as u32;
        }
    }
    (rounds, state)
}

/// Returns the whole part of a root.
fn root(of: u128, power: u32) -> u128 {
    let (mut low, mut high) = (0u128, 1 << 42);
    while low + 1 < high {
        let middle = (low + high) / 2;
        match middle.checked_pow(power) {
            Some(value) if value <= of => low = middle,
            _ => high = middle,
        }
    }
    low
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    let (rounds, mut state) = constants();
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        take(&mut state, &rounds, block);
    }
    let mut out = [0; 32];
    for (bytes, word) in out.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    out
}

fn take(state: &mut [u32; 8], rounds: &[u32; 64], block: &[u8]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for n in 16..64 {
        let (a, b) = (words[n - 15], words[n - 2]);
        let small = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
        let great = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
        words[n] = words[n - 16]
            .wrapping_add(small)
            .wrapping_add(words[n - 7])
            .wrapping_add(great);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, round) in words.iter().zip(rounds) {
        let turned = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let chosen = (e & f) ^ (!e & g);
        let first = h
            .wrapping_add(turned)
            .wrapping_add(chosen)
            .wrapping_add(*round)
            .wrapping_add(*word);
        let turned = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let most = (a & b) ^ (a & c) ^ (b & c);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(turned.wrapping_add(most)));
    }
    for (word, by) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *word = word.wrapping_add(by);
    }
}

#[cfg(test)]
mod tests {
    use super::digest;

    fn hex(text: &str) -> String {
        digest(text.as_bytes())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        // From the examples of FIPS 180.
        assert_eq!(
            hex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(
            hex(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
