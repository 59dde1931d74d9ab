//! Files that hold no lines: one object over many lines, an export with all its records
//! in a list. They are taken apart into lines, and read whole each time.

use backtrail::Json;

use crate::error::Result;
use crate::json::{Object, list_of};
use crate::lines::Lines;
use crate::source::Source;

/// The largest file that is taken apart.
const MAX: u64 = 256 << 20;

/// Returns the records of such a file as lines. `None` where the file has lines.
pub(super) fn flatten(source: &Source) -> Result<Option<Source>> {
    let first = match Lines::new(source, 0, 0).next()? {
        Some(line) if line.ended && !line.too_long => Object::parse(&line.text()).ok(),
        Some(line) => {
            let begins = line.bytes.first();
            (begins == Some(&b'{'))
                .then(|| Object::parse(&line.text()).ok())
                .flatten()
        }
        None => None,
    };
    let is_line = first.as_ref().is_some_and(|first| !first.has("loglines"));
    let head = source.read_range(0..16)?;
    let begins = head.trim_ascii_start().first();
    if is_line || !matches!(begins, Some(b'{' | b'[')) || source.len() > MAX {
        return Ok(None);
    }
    let bytes = source.read_range(0..source.len())?;
    let text = String::from_utf8_lossy(&bytes);
    let Ok(json) = Json::new(text.trim().to_owned()) else {
        return Ok(None);
    };
    let records = match Object::of(&json) {
        Some(object) => object.list("loglines").unwrap_or_else(|| vec![json]),
        None => list_of(&json).unwrap_or_default(),
    };
    let mut lines = String::with_capacity(text.len());
    for record in &records {
        lines.push_str(record.as_str());
        lines.push('\n');
    }
    Ok(Some(Source::from_bytes(source.path(), lines)))
}
