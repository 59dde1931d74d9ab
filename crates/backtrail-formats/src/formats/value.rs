//! Files that are one JSON value.

use super::keys::valid_key;
use crate::error::Result;
use crate::event::{EventSink, Origin, ReadReport};
use crate::format::OpenFile;
use crate::source::Source;

/// Opens a file that is one JSON value. `name` returns its session, or why it cannot be read;
/// `read` sends its events. A value that cannot be read has no events yet: its agent may be
/// writing it.
pub(super) fn open_value<'s>(
    source: &'s Source,
    name: impl FnOnce(&str) -> Result<String, String>,
    read: impl FnOnce(&str, &mut ReadReport, &mut dyn EventSink) -> Result<()> + 's,
) -> Result<OpenFile<'s>> {
    let text = source.read_value()?;
    let name = name(&text);
    let session = name.clone().unwrap_or_else(|_| valid_key(source.stem()));
    Ok(OpenFile::new(session, Origin::Start, move |sink| {
        let mut report = ReadReport::for_single_value(source.len());
        match name {
            Ok(_) => read(&text, &mut report, sink)?,
            Err(reason) => {
                report.unfinished = true;
                report.add_damage(1, &(0..source.len()), reason);
            }
        }
        Ok(report)
    }))
}
