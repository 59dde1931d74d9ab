//! Files that hold no lines: one object over many lines, an export with all its records
//! in a list. They are taken apart into lines, and read whole each time.

use backtrail::Json;

use crate::error::Result;
use crate::json::{Object, list_of};
use crate::lines::Lines;
use crate::source::Source;

/// The largest file that is taken apart.
const MAX: u64 = 64 << 20;

/// What a file without lines holds.
pub(super) enum Flat {
    /// The file has lines.
    No,
    /// It has none, and may be half written: what there is can be read as lines only.
    Half,
    /// Its records, as lines.
    Records(Source),
}

/// Finds out whether a file has lines.
pub(super) fn flatten(source: &Source) -> Result<Flat> {
    let mut lines = Lines::new(source, 0, 0);
    let Some(first) = lines.next()?.filter(|line| !line.too_long) else {
        return Ok(Flat::No);
    };
    let is_line = match Object::parse(&first.text()) {
        Ok(first) => !first.has("loglines"),
        // A line that is damaged has a whole one behind it.
        Err(_) => {
            !matches!(first.bytes.first(), Some(b'{' | b'['))
                || lines
                    .next()?
                    .is_some_and(|line| Object::parse(&line.text()).is_ok())
        }
    };
    if is_line || source.len() > MAX {
        return Ok(Flat::No);
    }
    let bytes = source.read_range(0..source.len())?;
    let text = String::from_utf8_lossy(&bytes);
    let Ok(json) = Json::new(text.trim().to_owned()) else {
        return Ok(Flat::Half);
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
    Ok(Flat::Records(Source::from_bytes(source.path(), lines)))
}
