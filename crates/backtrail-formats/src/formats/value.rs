//! Files that are one JSON value.

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
    open_derived(
        source,
        |text| name(text).map(|name| (name, Origin::Start)),
        read,
    )
}

/// Opens a file that is one JSON value, like [`open_value`]. `name` also returns where the
/// session comes from.
pub(super) fn open_derived<'s>(
    source: &'s Source,
    name: impl FnOnce(&str) -> Result<(String, Origin), String>,
    read: impl FnOnce(&str, &mut ReadReport, &mut dyn EventSink) -> Result<()> + 's,
) -> Result<OpenFile<'s>> {
    let text = source.read_value()?;
    let mut report = ReadReport::for_single_value(source.len());
    match name(&text) {
        Ok((session, origin)) => Ok(OpenFile::new(session, origin, move |sink| {
            read(&text, &mut report, sink)?;
            Ok(report)
        })),
        Err(reason) => {
            report.unfinished = true;
            report.add_damage(1, &(0..source.len()), reason);
            Ok(OpenFile::unnamed(report))
        }
    }
}
