//! placeholder
use crate::error::Result;
use crate::objects::ObjectWriter;
use crate::snapshot::entry::Node;
use crate::snapshot::scan::ScanOptions;
use std::path::Path;
pub(super) fn capture(
    _root: &Path,
    _path: &Path,
    _options: &ScanOptions,
    _writer: &ObjectWriter,
) -> Result<Option<Node>> {
    Ok(None)
}
