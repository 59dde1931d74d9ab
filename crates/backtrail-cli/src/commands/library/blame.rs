//! Who wrote each line of a file.

use std::path::Path;

use backtrail::workspace::{LineAuthor, LineOrigin};
use backtrail_view::library::{BlameLine, Moment, Place};

use super::{Answer, StoreLibrary, failure};
use super::{moments, plain};
use crate::commands::blame::screen;
use crate::commands::recovery::Finish;
use crate::error::Result;
use crate::text::one_line;

/// How wide a prompt may be.
const WIDEST: usize = 200;

/// Returns who wrote each line of a file, as `blame` says it.
pub(super) fn blame(
    library: &StoreLibrary,
    workspace: &str,
    moment: &Moment,
    path: &str,
) -> Answer<Vec<BlameLine>> {
    read(library, workspace, moment, path).map_err(failure)
}

fn read(
    library: &StoreLibrary,
    workspace: &str,
    moment: &Moment,
    path: &str,
) -> Result<Vec<BlameLine>> {
    let workspace = moments::require_workspace(library, workspace, moment, Finish::ToRead)?;
    let point = moments::point(library, &workspace, moment)?;
    let at = point.map(|point| workspace.resolve(&point)).transpose()?;
    let blame = workspace.blame(Path::new(path), at.as_ref())?;
    let line = |line| {
        let origin = blame.origin_of(line);
        let who = screen::who_of(origin);
        BlameLine {
            who: who.iter().map(|span| span.text.as_str()).collect(),
            when: screen::when_of(origin).unwrap_or_default(),
            about: one_line(&screen::about(origin).unwrap_or_default(), WIDEST),
            place: place_of(origin),
            text: plain(&screen::shown(line)),
        }
    };
    Ok(blame.lines.iter().map(line).collect())
}

/// Returns the prompt of the first author that has one.
fn place_of(origin: &LineOrigin) -> Option<Place> {
    origin.by.iter().find_map(|by| match by {
        LineAuthor::Turn {
            session: Some(id),
            seq: Some(seq),
            ..
        } => Some(Place {
            session: id.to_string(),
            seq: *seq,
            trail: None,
        }),
        _ => None,
    })
}
