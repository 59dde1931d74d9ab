//! Sealed bytes: a version, a nonce, the encrypted bytes and a tag. They open only with their
//! key and at their place.

use std::fmt;

use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};

/// The only version so far: the first byte of everything that is sealed.
pub(super) const VERSION: u8 = 1;

const NONCE: usize = 24;
const TAG: usize = 16;
const PREFIX: usize = 1 + NONCE;

/// How many bytes longer sealed bytes are.
pub(super) const OVERHEAD: usize = PREFIX + TAG;

/// Why sealed bytes did not open.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unopened {
    TooShort,
    Version(u8),
    Mismatch,
}

impl fmt::Display for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => f.write_str("it was cut off"),
            Self::Version(version) => write!(
                f,
                "it begins with version {version}, and this program knows version {VERSION}"
            ),
            Self::Mismatch => f.write_str("it was damaged, or moved from another place"),
        }
    }
}

/// Seals with the key of a log.
///
/// The nonce is a keyed hash of the place and the plain bytes. So a nonce repeats only with the
/// very same bytes, whatever happens to the machine's randomness; and a request that is repeated
/// after its answer was lost has the same bytes.
pub(super) struct Seal {
    cipher: XChaCha20Poly1305,
    nonce_key: [u8; 32],
}

impl Seal {
    pub(super) fn new(key: &[u8; 32], nonce_key: [u8; 32]) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(key.into()),
            nonce_key,
        }
    }

    pub(super) fn seal(&self, place: &[u8], plain: &[u8]) -> Vec<u8> {
        let nonce = self.nonce(place, plain);
        let mut sealed = Vec::with_capacity(plain.len() + OVERHEAD);
        sealed.push(VERSION);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(plain);
        let tag = self
            .cipher
            .encrypt_in_place_detached(&nonce, place, &mut sealed[PREFIX..])
            .expect("fewer than 256 GiB");
        sealed.extend_from_slice(&tag);
        sealed
    }

    pub(super) fn open(&self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Unopened> {
        let version = *sealed.first().ok_or(Unopened::TooShort)?;
        if version != VERSION {
            return Err(Unopened::Version(version));
        }
        let plain_bytes = sealed
            .len()
            .checked_sub(OVERHEAD)
            .ok_or(Unopened::TooShort)?;
        let (prefix, rest) = sealed.split_at(PREFIX);
        let (encrypted, tag) = rest.split_at(plain_bytes);
        let mut plain = encrypted.to_vec();
        self.cipher
            .decrypt_in_place_detached(
                XNonce::from_slice(&prefix[1..]),
                place,
                &mut plain,
                Tag::from_slice(tag),
            )
            .map_err(|_| Unopened::Mismatch)?;
        Ok(plain)
    }

    fn nonce(&self, place: &[u8], plain: &[u8]) -> XNonce {
        let mut hasher = blake3::Hasher::new_keyed(&self.nonce_key);
        hasher.update(place);
        hasher.update(plain);
        *XNonce::from_slice(&hasher.finalize().as_bytes()[..NONCE])
    }
}
