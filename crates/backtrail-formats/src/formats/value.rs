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
    open_value_from(source, |text| Ok((name(text)?, Origin::Start)), read)
}

/// The same for a value that may name the session that it comes from.
pub(super) fn open_value_from<'s>(
    source: &'s Source,
    name: impl FnOnce(&str) -> Result<(String, Origin), String>,
    read: impl FnOnce(&str, &mut ReadReport, &mut dyn EventSink) -> Result<()> + 's,
) -> Result<OpenFile<'s>> {
    let text = source.read_value()?;
    let name = name(&text);
    let (session, origin) = match &name {
        Ok((session, origin)) => (session.clone(), origin.clone()),
        Err(_) => (valid_key(source.stem()), Origin::Start),
    };
    Ok(OpenFile::new(session, origin, move |sink| {
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
