//! The keys of people: recipients, for whom a log is encrypted, and the identities that open it.

use std::fmt;
use std::str::FromStr;

use age::x25519;
use backtrail::replica::{ReplicaError, ReplicaErrorKind};

/// Somebody for whom new logs are encrypted: the public key of an age identity (`age1…`).
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient(pub(super) x25519::Recipient);

impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Recipient {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.starts_with("AGE-SECRET-KEY-") {
            return Err(KeyError(
                "this is an identity, which is secret; a recipient is its public key: \
                 `age-keygen -y FILE` prints it"
                    .to_owned(),
            ));
        }
        text.parse().map(Self).map_err(|_| {
            KeyError(format!(
                "{text:?} is not a recipient; one begins with age1 and is printed by \
                 `age-keygen` (SSH keys and plugins are not supported)"
            ))
        })
    }
}

/// The secret keys of one person or machine, from the files that `age-keygen` writes.
#[derive(Clone, Default)]
pub struct Identities {
    files: Vec<String>,
    keys: Vec<x25519::Identity>,
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identities({:?})", self.files)
    }
}

impl Identities {
    /// Returns no identities: what is encrypted cannot be opened.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds the identities of a file. Errors name it as `file`.
    ///
    /// # Errors
    ///
    /// Fails if `text` is not an identity file of age, or is protected by a passphrase.
    pub fn add_file(&mut self, file: &str, text: &str) -> Result<(), KeyError> {
        let failed = |why: String| KeyError(format!("cannot read the identity file {file}: {why}"));
        if text.starts_with("age-encryption.org/") || text.starts_with("-----BEGIN AGE ") {
            return Err(failed(format!(
                "it is encrypted; decrypt it first: `age -d {file}`"
            )));
        }
        let mut keys = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // The line itself may be a secret.
            let key: x25519::Identity = line.parse().map_err(|_| {
                failed(format!(
                    "line {number} is not an identity, which begins with AGE-SECRET-KEY-1"
                ))
            })?;
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(failed("it has no identity".to_owned()));
        }
        self.files.push(file.to_owned());
        self.keys.append(&mut keys);
        Ok(())
    }

    /// Returns the recipients that these identities open.
    pub fn recipients(&self) -> Vec<Recipient> {
        let public = |key: &x25519::Identity| Recipient(key.to_public());
        self.keys.iter().map(public).collect()
    }

    pub(super) fn as_age(&self) -> impl Iterator<Item = &dyn age::Identity> {
        self.keys.iter().map(|key| key as &dyn age::Identity)
    }

    /// Returns the files that were tried, in words.
    pub(super) fn tried(&self) -> String {
        match self.files.as_slice() {
            [] => "without an identity file".to_owned(),
            [file] => format!("with the identity file {file}"),
            files => format!("with any of the identity files {}", files.join(", ")),
        }
    }
}

/// A recipient or identity file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyError(String);

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyError {}

impl From<KeyError> for ReplicaError {
    fn from(error: KeyError) -> Self {
        Self {
            kind: ReplicaErrorKind::Denied,
            message: error.0,
        }
    }
}
