//! Bytes as hexadecimal digits, and paths that are not UTF-8.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

/// Returns a path as it was before it was written as text, and, where it is not
/// UTF-8, as the hexadecimal digits of its bytes.
pub(crate) fn path_of(text: &str, hex: Option<&str>) -> PathBuf {
    #[cfg(unix)]
    if let Some(bytes) = hex.and_then(from_hex) {
        use std::os::unix::ffi::OsStringExt;
        return std::ffi::OsString::from_vec(bytes).into();
    }
    PathBuf::from(text)
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(unix)]
pub(crate) fn from_hex(hex: &str) -> Option<Vec<u8>> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect()
}

/// A path as the fields `path` and, if it is not UTF-8, `path_hex`: for a flattened field.
pub(crate) mod path_fields {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct PathFields {
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path_hex: Option<String>,
    }

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let fields = PathFields {
            path: path.to_string_lossy().into_owned(),
            path_hex: path.to_str().is_none().then(|| super::to_hex(bytes)),
        };
        fields.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let PathFields { path, path_hex } = PathFields::deserialize(from)?;
        Ok(super::path_of(&path, path_hex.as_deref()))
    }
}

/// Serializes a path as text; what is not UTF-8 in it is replaced.
pub(crate) fn lossy_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.to_string_lossy().serialize(serializer)
}

/// Serializes paths or arguments as text; see [`lossy_path`].
pub(crate) fn lossy_paths<S: Serializer>(
    paths: &[impl AsRef<OsStr>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.as_ref().to_string_lossy()))
}
