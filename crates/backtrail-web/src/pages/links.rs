//! Addresses of pages, as the script and a reader's links name them.

use backtrail_view::library::{Answer, Failure, Moment, Place};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::answer::{Query, moment_text};
use crate::library::Site;

/// What is not encoded in an address.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// Returns the address of a session.
pub(super) fn session(id: &str) -> String {
    format!("/session/{}", encoded(id))
}

/// Returns the address of a record.
pub(super) fn place(place: &Place) -> String {
    marked_place(place, &[])
}

/// Returns the address of a record, with texts to mark there.
pub(super) fn marked_place(place: &Place, texts: &[&str]) -> String {
    let trail = place.trail.map(|trail| trail.to_string());
    let mut pairs = vec![("trail", trail.as_deref().unwrap_or_default())];
    pairs.extend(texts.iter().map(|text| ("mark", *text)));
    let (page, query) = (session(&place.session), parameters(&pairs));
    let question = if query.is_empty() { "" } else { "?" };
    format!("{page}{question}{query}#r{}", place.seq)
}

/// Returns parameters as they follow the question mark of an address.
pub(super) fn parameters(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
    let pairs = pairs.map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns the address of a page about a file: `/files` or `/blame`.
pub(super) fn file(page: &str, workspace: &str, at: &Moment, path: &str) -> String {
    let at = moment_text(at);
    let parameters = parameters(&[("w", workspace), ("at", &at), ("path", path)]);
    format!("{page}?{parameters}")
}

/// Returns the workspace that a request is about: `w`, or that of the session whose record it is
/// about, which the library finds, or the one that the program was started in.
pub(super) fn workspace(site: &dyn Site, query: &Query) -> Answer<String> {
    if let Some(id) = query.text("w") {
        return Ok(id.to_owned());
    }
    if let Moment::Record(_) = moment(query)? {
        return Ok(String::new());
    }
    let all = site.workspaces()?;
    let here = all.into_iter().find(|workspace| workspace.is_here);
    let none = || Failure {
        message: "no checkpoints here yet".to_owned(),
        hints: vec![
            "choose a workspace, or make the first checkpoint: backtrail checkpoint".to_owned(),
        ],
    };
    here.map(|workspace| workspace.id).ok_or_else(none)
}

/// Returns the moment that a request is about; now, if it says nothing.
pub(super) fn moment(query: &Query) -> Answer<Moment> {
    match query.text("at") {
        Some(_) => query.moment("at"),
        None => Ok(Moment::Now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_one_path_whatever_an_id_holds() {
        let place_of = |session: &str, trail| Place {
            session: session.to_owned(),
            seq: 7,
            trail,
        };
        assert_eq!(place(&place_of("ab-1", None)), "/session/ab-1#r7");
        assert_eq!(
            place(&place_of("../x?y#z", Some(2))),
            "/session/..%2Fx%3Fy%23z?trail=2#r7"
        );
        assert_eq!(
            marked_place(&place_of("ab-1", Some(2)), &["a&b", "#"]),
            "/session/ab-1?trail=2&mark=a%26b&mark=%23#r7"
        );
        assert_eq!(
            file("/files", "", &Moment::Now, "a b&c=d"),
            "/files?at=now&path=a%20b%26c%3Dd"
        );
    }
}
