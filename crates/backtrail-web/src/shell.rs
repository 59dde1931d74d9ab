//! The shell of the pages, its script and its style: the same bytes for everybody.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::{SCRIPT, SHELL, style};

/// The pages, each of which is the shell.
const PAGES: [&str; 6] = ["/", "/workspace", "/files", "/blame", "/costs", "/health"];
const SESSIONS: &str = "/session/";

/// Returns whether anybody on this machine may have what is at an address.
pub(crate) fn is_public(path: &str) -> bool {
    let session = path.strip_prefix(SESSIONS);
    let is_session = session.is_some_and(|name| !name.is_empty() && !name.contains('/'));
    is_session || PAGES.contains(&path) || ["/app.js", "/app.css", "/favicon.ico"].contains(&path)
}

/// Adds what is public.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(mut router: Router<S>) -> Router<S> {
    for page in PAGES.into_iter().chain(["/session/{name}"]) {
        router = router.route(page, get(shell));
    }
    router
        .route("/app.js", get(|headers| asset(headers, JS, SCRIPT)))
        .route("/app.css", get(|headers| asset(headers, CSS, style())))
        .route("/favicon.ico", get(|| async { StatusCode::NO_CONTENT }))
}

const JS: &str = "text/javascript; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";

async fn shell() -> Response {
    typed("text/html; charset=utf-8", SHELL)
}

/// Answers with a file that a browser may keep as long as it is the same.
async fn asset(headers: HeaderMap, media_type: &'static str, text: &'static str) -> Response {
    let tag = tag(text);
    let known = headers.get(header::IF_NONE_MATCH) == Some(&tag);
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => typed(media_type, text),
    };
    let always_ask = HeaderValue::from_static("no-cache");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, always_ask);
    response.headers_mut().insert(header::ETAG, tag);
    response
}

fn typed(media_type: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, media_type)], text).into_response()
}

/// Returns a name of a text, which changes with it.
fn tag(text: &str) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    // Digits and quotes are always a header's value.
    HeaderValue::try_from(format!("\"{:x}\"", hasher.finish()))
        .unwrap_or(HeaderValue::from_static("\"0\""))
}
