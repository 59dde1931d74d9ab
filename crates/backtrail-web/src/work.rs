//! Work that may take its time, on threads of its own, and the answers that become of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use backtrail_view::library::{Answer, Failure};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::answer::failure_json;
use crate::guard::Refusal;

/// A bounded number of threads. Work that waits for one is dropped when its reader goes away;
/// work that has begun is done to its end.
#[derive(Clone)]
pub(crate) struct Threads {
    most: u32,
    free: Arc<Semaphore>,
    is_ending: Arc<AtomicBool>,
}

impl Threads {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            free: Arc::new(Semaphore::new(most as usize)),
            is_ending: Arc::default(),
        }
    }

    /// Does something that answers with data; returns the response.
    pub(crate) async fn answer(
        &self,
        work: impl FnOnce() -> Answer<Value> + Send + 'static,
    ) -> Response {
        let permit = self.free.clone().acquire_owned().await;
        if permit.is_err() || self.is_ending.load(Ordering::Acquire) {
            return failed(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping");
        }
        let done = spawn_blocking(move || {
            let _busy = permit;
            response(work())
        });
        let panicked = |_| failed(StatusCode::INTERNAL_SERVER_ERROR, "internal error");
        done.await.unwrap_or_else(panicked)
    }

    /// Begins nothing more, and waits for the end of what has begun.
    pub(crate) async fn finish(&self) {
        self.is_ending.store(true, Ordering::Release);
        drop(self.free.acquire_many(self.most).await);
    }
}

/// Returns an answer as it is sent.
fn response(answer: Answer<Value>) -> Response {
    match answer {
        Ok(value) => json(StatusCode::OK, &value),
        Err(failure) => json(StatusCode::UNPROCESSABLE_ENTITY, &failure_json(&failure)),
    }
}

/// Returns a response with data.
pub(crate) fn json(status: StatusCode, value: &Value) -> Response {
    let media_type = [(header::CONTENT_TYPE, "application/json")];
    (status, media_type, Body::from(value.to_string())).into_response()
}

/// Returns a response that says what went wrong.
pub(crate) fn failed(status: StatusCode, message: &str) -> Response {
    json(status, &failure_json(&Failure::new(message)))
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut failure = Failure::new(self.message);
        failure.hints.extend(self.hint.map(str::to_owned));
        json(self.status, &failure_json(&failure))
    }
}
