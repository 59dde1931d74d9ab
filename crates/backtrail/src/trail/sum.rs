//! The checksum of a record.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first 8 bytes of a BLAKE3 hash. It detects accidents, not forgery.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sum([u8; 8]);

/// A sum's length in hexadecimal digits.
pub(crate) const HEX: usize = 16;

impl Sum {
    /// The value of `prev` if there is nothing before.
    pub(crate) const ZERO: Self = Self([0; 8]);

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let hash = blake3::hash(bytes);
        let mut sum = [0; 8];
        sum.copy_from_slice(&hash.as_bytes()[..8]);
        Self(sum)
    }

    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0
    }

    pub(crate) fn to_hex(self) -> [u8; HEX] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; HEX];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        hex
    }

    pub(crate) fn from_hex(hex: &[u8]) -> Option<Self> {
        let is_digit = |c: &u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if hex.len() != HEX || !hex.iter().all(is_digit) {
            return None;
        }
        let number = u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16);
        Some(Self(number.ok()?.to_be_bytes()))
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        Self::from_hex(hex.as_bytes()).ok_or_else(|| {
            serde::de::Error::custom("a sum must be 16 lower-case hexadecimal digits")
        })
    }
}
