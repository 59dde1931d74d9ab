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
    use axum::body::to_bytes;
    use tokio::runtime::Builder;

    use super::*;
    use crate::fake::Fake;

    fn ask(handler: Handler, uri: &'static str) -> (u16, String) {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let site = Arc::new(Fake::new(2));
            let uri = Uri::from_static(uri);
            let response = read(site, Threads::new(1), handler, uri).await;
            let status = response.status().as_u16();
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            (status, String::from_utf8(body.into()).unwrap())
        })
    }

    #[test]
    fn data_is_what_the_handler_returns() {
        let handler: Handler = |site, query| {
            let head = site.head(query.required("session")?)?;
            Ok(json!({"title": head.title}))
        };
        let answer = ask(handler, "/api/x?session=kkkl");
        assert_eq!(
            answer,
            (200, r#"{"title":"Port part 1 of the parser"}"#.to_owned())
        );
        let (status, body) = ask(handler, "/api/x?session=no%22ne");
        let failure = r#"{"error":"there is no session no\"ne","hints":["see: backtrail list"]}"#;
        assert_eq!((status, &*body), (422, failure));
        assert_eq!(ask(handler, "/api/x").0, 422);
        assert_eq!(ask(handler, "/api/x?session=%ff").0, 422);
    }

    #[test]
    fn a_workspace_that_is_named_is_asked() {
        let handler: Handler = |_, _| Ok(json!({}));
        assert_eq!(ask(handler, "/api/x?w=w2").0, 200);
        assert_eq!(ask(handler, "/api/x?w=").0, 200);
        assert_eq!(ask(handler, "/api/x?w=w9").0, 422);
    }

    #[test]
    fn a_panic_of_a_handler_is_an_internal_error() {
        let internal = (500, r#"{"error":"internal error","hints":[]}"#.to_owned());
        assert_eq!(ask(|_, _| panic!("secret"), "/api/x"), internal);
        assert_eq!(ask(|_, _| Ok(json!({})), "/api/x?w=broken"), internal);
    }

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
