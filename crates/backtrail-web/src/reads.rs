//! Data that is only read.

use std::sync::Arc;

use axum::http::Uri;
use axum::response::Response;
use backtrail_view::library::{Answer, Failure};
use percent_encoding::percent_decode;
use serde_json::{Value, json};

use crate::actions::Writes;
use crate::answer::{Handler, Query};
use crate::library::Site;
use crate::work::Threads;

/// Answers a request for data.
pub(crate) async fn read(
    site: Arc<dyn Site>,
    threads: Threads,
    handler: Handler,
    uri: Uri,
) -> Response {
    let work = move || {
        let query = decode(uri.query().unwrap_or_default())?;
        match query.text("w") {
            Some(workspace) => handler(&*site.in_workspace(workspace)?, &query),
            None => handler(&*site, &query),
        }
    };
    threads.answer(work).await
}

/// Says which program this is, and what it may do.
pub(crate) fn hello(site: &dyn Site, writes: Writes) -> Answer<Value> {
    let workspaces = site.workspaces()?;
    let here = workspaces.into_iter().find(|entry| entry.is_here);
    let here = here.unwrap_or_default();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "can_write": writes == Writes::Allowed,
        "workspace": here.id,
        "name": here.name,
    }))
}

/// Reads the parameters of a request.
fn decode(query: &str) -> Answer<Query> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decode_word(name)?, decode_word(value)?))
    });
    Ok(Query::new(pairs.collect::<Answer<_>>()?))
}

fn decode_word(word: &str) -> Answer<String> {
    let spaced = word.replace('+', " ");
    let bytes = percent_decode(spaced.as_bytes()).collect();
    let text = String::from_utf8(bytes).ok();
    text.filter(|text| !text.contains('\0'))
        .ok_or_else(|| Failure::new("the request has a parameter that is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = decode("a=1%262&&b=x+y%2Bz&c&a=%C3%A9").unwrap();
        assert_eq!(query.text("a"), Some("1&2"));
        assert_eq!(query.text("b"), Some("x y+z"));
        assert_eq!(query.text("c"), None);
        assert_eq!(query.texts("a"), ["1&2", "é"]);
    }

    #[test]
    fn what_is_not_text_is_refused() {
        for query in ["a=%ff", "%c3=1", "a=x%00y"] {
            assert!(decode(query).is_err(), "{query}");
        }
    }
}
