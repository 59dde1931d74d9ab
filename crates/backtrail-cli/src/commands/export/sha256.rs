//! SHA-256, by which a page names the only script and style that may run in it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Returns the digest of a text in Base64.
pub(super) fn base64(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}
