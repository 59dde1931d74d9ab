//! Copies the payloads of another session's lines, when those are copied.

use super::{PayloadWriter, Payloads};
use crate::error::{ErrorKind, Result};
use crate::message::parts::{self, Reference};
use crate::trail::record::check_line;
use crate::trail::{RecordRef, Sums};

/// Returns a line of another session in the form to copy, after making its payloads durable
/// in `own`. A payload that is lost there stays lost.
pub(crate) fn adopt(line: &[u8], theirs: &Payloads, own: &mut PayloadWriter) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(line.len());
    let mut copied = 0;
    for (at, reference) in references(line) {
        let Reference { hash, bytes, .. } = reference;
        let content = match theirs.fetch(hash, bytes, reference.at) {
            Err(error) if error.kind() == ErrorKind::Corrupt => continue,
            fetched => fetched?,
        };
        for (_, place) in own.store(&[&content])? {
            out.extend_from_slice(&line[copied..at.start]);
            let moved = Reference {
                at: place,
                ..reference.clone()
            };
            moved.write(&mut out);
            copied = at.end;
        }
    }
    out.extend_from_slice(&line[copied..]);
    Ok(out)
}

/// Returns the references in a line, with their ranges.
fn references(line: &[u8]) -> Vec<(std::ops::Range<usize>, Reference)> {
    let Ok(envelope) = check_line(line, Sums::Trust) else {
        return Vec::new();
    };
    let Ok(Some(json)) = RecordRef::new(line, envelope, None).stored_json() else {
        return Vec::new();
    };
    let start = json.as_ptr() as usize - line.as_ptr() as usize;
    let in_line = |(range, reference): (std::ops::Range<usize>, _)| {
        (start + range.start..start + range.end, reference)
    };
    parts::references(json).into_iter().map(in_line).collect()
}
