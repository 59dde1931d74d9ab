//! The data key of a log, wrapped: a version, a check, and an age file with the key.

use std::io::{Read, Write};

use age::{DecryptError, Decryptor, Encryptor};
use backtrail::replica::{LogKey, ReplicaError};

use super::errors::{corrupt, denied, named, unfit};
use super::keys::{Identities, Recipient};
use super::log_keys::LogKeys;

const VERSION: u8 = 1;
const CHECK: usize = 16;

/// Makes a key for a log, and wraps it.
///
/// # Errors
///
/// Fails if `identities` could not open it again.
pub(super) fn create(
    log: &LogKey,
    recipients: &[Recipient],
    identities: &Identities,
) -> Result<Vec<u8>, ReplicaError> {
    let ours = identities.recipients();
    if !recipients.iter().any(|recipient| ours.contains(recipient)) {
        return Err(denied(format!(
            "cannot encrypt {} so that it can be opened here again {}: none of the recipients \
             belongs to it; add your own recipient, which `age-keygen -y FILE` prints",
            named(log),
            identities.tried()
        )));
    }
    let mut data_key = [0; 32];
    let failed = |error: &dyn std::fmt::Display| {
        unfit(format!("cannot make a key for {}: {error}", named(log)))
    };
    getrandom::fill(&mut data_key).map_err(|error| failed(&error))?;
    let mut wrapped = vec![VERSION];
    wrapped.extend_from_slice(&LogKeys::new(log, &data_key).check());
    let file = encrypted(&data_key, recipients).map_err(|error| failed(&error))?;
    wrapped.extend_from_slice(&file);
    Ok(wrapped)
}

fn encrypted(
    data_key: &[u8; 32],
    recipients: &[Recipient],
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let recipients = recipients.iter().map(|r| &r.0 as &dyn age::Recipient);
    let mut file = Vec::new();
    let mut writer = Encryptor::with_recipients(recipients)?.wrap_output(&mut file)?;
    writer.write_all(data_key)?;
    writer.finish()?;
    Ok(file)
}

/// Opens the wrapped key of a log.
///
/// # Errors
///
/// Fails if no identity opens it, or if it is not the key of this log.
pub(super) fn open(
    log: &LogKey,
    wrapped: &[u8],
    identities: &Identities,
) -> Result<LogKeys, ReplicaError> {
    let damaged = |why: &str| corrupt(format!("the key of {} is damaged: {why}", named(log)));
    if wrapped.is_empty() {
        return Err(unfit(format!(
            "{} is not encrypted at this remote, and this remote was added with recipients; \
             purge it there and push it again, or add the remote with --plaintext",
            named(log)
        )));
    }
    if wrapped[0] != VERSION {
        return Err(damaged(&format!(
            "it has version {}, and this program knows version {VERSION}",
            wrapped[0]
        )));
    }
    let Some((check, file)) = wrapped[1..].split_at_checked(CHECK) else {
        return Err(damaged("it was cut off"));
    };
    let data_key = match decrypted(file, identities) {
        Ok(Some(data_key)) => data_key,
        Ok(None) => return Err(damaged("it does not have 32 bytes")),
        Err(DecryptError::NoMatchingKeys) => return Err(wrong_identity(log, identities)),
        Err(error) => return Err(damaged(&error.to_string())),
    };
    let keys = LogKeys::new(log, &data_key);
    if keys.check() != check {
        return Err(damaged("it belongs to another session or workspace"));
    }
    Ok(keys)
}

fn wrong_identity(log: &LogKey, identities: &Identities) -> ReplicaError {
    denied(format!(
        "cannot open {} {}: it is encrypted for other recipients; name the identity file of one \
         of them",
        named(log),
        identities.tried()
    ))
}

/// Returns `None` if the file holds something else than a key.
fn decrypted(file: &[u8], identities: &Identities) -> Result<Option<[u8; 32]>, DecryptError> {
    let reader = Decryptor::new_buffered(file)?.decrypt(identities.as_age())?;
    let mut plain = Vec::new();
    reader.take(33).read_to_end(&mut plain)?;
    Ok(plain.try_into().ok())
}
