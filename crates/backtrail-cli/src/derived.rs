//! Queries of the catalogue and the search index.

use std::error::Error as _;

use backtrail::{ErrorKind, SessionId, Store};
use backtrail_index::{Error, Filter, Index, IndexOptions, Prices, SessionRow};
use jiff::tz::TimeZone;

use crate::error::{CommandError, Result};
use crate::progress;
use crate::settings::Settings;
use crate::short;
use crate::ui::Ui;

/// Queries the index of a store, after indexing what is new, with progress on a terminal.
pub(crate) fn ask<T>(
    store: &Store,
    ui: &Ui,
    doing: &'static str,
    question: impl FnOnce(&Index) -> backtrail_index::Result<T>,
) -> Result<T> {
    let prices = Prices::with_own(Settings::read(store.root())?.prices.value);
    let (answer, warnings) = progress::while_read(ui, doing, |tell| {
        let options = IndexOptions::new().prices(prices).once();
        let options = options.time_zone(TimeZone::system());
        let options = match tell {
            Some(tell) => options.progress(move |at| tell(at.done, at.total)),
            None => options,
        };
        let index = match Index::open(store, options) {
            Ok(index) => index,
            Err(error) => return (Err(error), Vec::new()),
        };
        let answer = question(&index);
        short::know(|| index.short_ids().ok());
        (answer, index.report().rebuilt)
    });
    for warning in warnings {
        ui.warning(&warning, None);
    }
    Ok(answer?)
}

/// Returns the row of one session, if it exists.
pub(crate) fn session(
    index: &Index,
    id: &SessionId,
) -> backtrail_index::Result<Option<SessionRow>> {
    let mut filter = Filter::default();
    filter.session = Some(id.clone());
    Ok(index.sessions(&filter)?.pop())
}

/// Returns the row of a session; if there is none, its tokens and cost are not known, which is
/// no reason not to show it.
pub(crate) fn row(store: &Store, id: &SessionId, ui: &Ui) -> Option<SessionRow> {
    let found = ask(store, ui, "reading sessions:", |index| session(index, id));
    let row = found.unwrap_or_else(|error| {
        ui.warning(&format!("tokens and cost are unknown: {error}"), None);
        None
    });
    row.filter(|row| row.error.is_none())
}

/// Returns the shortest unique prefix of an id among sorted `ids`, of at least 4 characters.
pub(crate) fn prefix<'a>(id: &'a str, ids: &[String]) -> &'a str {
    let place = ids.partition_point(|other| other.as_str() < id);
    let shared = |other: &String| {
        let pairs = other.bytes().zip(id.bytes());
        pairs.take_while(|(a, b)| a == b).count()
    };
    let neighbours = ids.iter().skip(place.saturating_sub(1)).take(3);
    let shared = neighbours.filter(|other| *other != id).map(shared).max();
    let length = shared.map_or(0, |shared| shared + 1).max(4);
    id.get(..length).unwrap_or(id)
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        let cause = error.source().map(ToString::to_string);
        let with_cause = |command: Self| match cause {
            Some(cause) => command.cause(cause),
            None => command,
        };
        match error {
            Error::Store(error) => error.into(),
            Error::Io {
                doing,
                path,
                source,
            } => Self::io(doing, Some(&path), &source),
            Error::Query(_) | Error::Prices(_) => Self::invalid(error.to_string()),
            _ => {
                let what = match &error {
                    Error::Search { doing, what } => format!("{doing}: {what}"),
                    error => error.to_string(),
                };
                with_cause(Self::new(ErrorKind::Corrupt, what))
                    .hint("rebuild it, nothing is lost: backtrail rebuild")
            }
        }
    }
}
