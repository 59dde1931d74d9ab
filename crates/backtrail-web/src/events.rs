//! What changes, as a stream that can be resumed: nothing is lost between two connections.
//!
//! A browser opens at most six connections to a server, so a page that is hidden should close its
//! stream, and resume when it is seen again.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use backtrail_view::library::Change;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::guard::random_hex;

/// The header of data with the last change before it was read: a stream that begins there misses nothing.
pub(crate) const SEEN: &str = "x-backtrail-seen";
/// How many changes are kept for a reader that comes again.
const KEPT: usize = 1024;

/// The changes of this start.
pub(crate) struct Events {
    /// The name of this start.
    start: String,
    ring: Mutex<Ring>,
    /// Is sent to whenever the ring changed.
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Ring {
    kept: VecDeque<Change>,
    /// The number of the newest change; the first is 1.
    newest: u64,
    is_closed: bool,
}

impl Ring {
    /// Returns the number before everything that is kept.
    fn forgotten(&self) -> u64 {
        self.newest - self.kept.len() as u64
    }

    /// Returns the changes after a number. Of equal ones only the last is returned, which says
    /// as much.
    fn after(&self, seen: u64) -> Vec<(u64, &Change)> {
        let numbers = (1..=self.newest).rev();
        let unseen = numbers.zip(self.kept.iter().rev());
        let mut found: Vec<(u64, &Change)> = Vec::new();
        for (number, change) in unseen.take_while(|(number, _)| *number > seen) {
            if found.iter().all(|(_, later)| *later != change) {
                found.push((number, change));
            }
        }
        found.reverse();
        found
    }
}

impl Events {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            start: random_hex::<8>()?,
            ring: Mutex::default(),
            news: watch::Sender::new(()),
        })
    }

    /// Reports a change to every reader, at once.
    pub(crate) fn report(&self, change: Change) {
        let mut ring = self.ring();
        if ring.kept.len() == KEPT {
            ring.kept.pop_front();
        }
        ring.kept.push_back(change);
        ring.newest += 1;
        drop(ring);
        self.news.send_replace(());
    }

    /// Returns the name of the newest change, as a reader sends it back.
    pub(crate) fn newest(&self) -> String {
        format!("{}-{}", self.start, self.ring().newest)
    }

    /// Ends every stream with a farewell.
    pub(crate) fn close(&self) {
        self.ring().is_closed = true;
        self.news.send_replace(());
    }

    /// Returns the changes from now on, or after the one that the reader has seen.
    pub(crate) fn stream(self: Arc<Self>, headers: &HeaderMap) -> Response {
        let news = self.news.subscribe();
        let last = headers.get(HeaderName::from_static("last-event-id"));
        let seen = last.map(|last| self.resumed(last.to_str().unwrap_or("")));
        let newest = self.ring().newest;
        let opening = match seen {
            None => self.event(newest, "ready", &json!({})),
            Some(None) => self.event(newest, "reset", &json!({})),
            Some(Some(_)) => String::new(),
        };
        let reader = Reader {
            seen: seen.flatten().unwrap_or(newest),
            events: self,
            news,
        };
        let media_type = [(header::CONTENT_TYPE, "text/event-stream")];
        (media_type, reader.body(format!(": connected\n\n{opening}"))).into_response()
    }

    /// Returns the number that a reader has seen, if nothing after it was forgotten.
    fn resumed(&self, last: &str) -> Option<u64> {
        let (start, number) = last.split_once('-')?;
        let number = number.parse().ok().filter(|_| start == self.start)?;
        let ring = self.ring();
        (ring.forgotten()..=ring.newest)
            .contains(&number)
            .then_some(number)
    }

    fn event(&self, number: u64, name: &str, data: &Value) -> String {
        format!(
            "id: {}-{number}\nevent: {name}\ndata: {data}\n\n",
            self.start
        )
    }

    fn change(&self, number: u64, change: &Change) -> String {
        match change {
            Change::Sessions => self.event(number, "sessions", &json!({})),
            Change::Session(id) => self.event(number, "session", &json!({"session": id})),
            Change::Workspace => self.event(number, "workspace", &json!({})),
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One reader of the changes.
struct Reader {
    events: Arc<Events>,
    news: watch::Receiver<()>,
    /// The number of the last change that was sent.
    seen: u64,
}

/// What comes next to a reader.
enum Next {
    Text(String),
    Nothing,
    /// The last text.
    End(String),
}

impl Reader {
    fn body(self, opening: String) -> Body {
        let waiting: Waiting = Box::pin(async { Some((opening, Some(self))) });
        Body::new(Stream { waiting })
    }

    /// Waits for what comes next; returns nothing at the end.
    async fn next(mut self) -> Option<(String, Option<Self>)> {
        loop {
            self.news.borrow_and_update();
            match self.look() {
                Next::Text(text) => return Some((text, Some(self))),
                Next::End(text) => return Some((text, None)),
                Next::Nothing => self.news.changed().await.ok()?,
            }
        }
    }

    /// Looks for changes. A reader for which some were forgotten is cut off: it comes again, and
    /// is told to begin anew.
    fn look(&mut self) -> Next {
        let ring = self.events.ring();
        if self.seen < ring.forgotten() {
            return Next::End(String::new());
        }
        let unseen = ring.after(self.seen);
        let texts = unseen
            .iter()
            .map(|(number, change)| self.events.change(*number, change));
        let text: String = texts.collect();
        self.seen = ring.newest;
        match (ring.is_closed, text.is_empty()) {
            (true, _) => Next::End(text + "event: bye\ndata: {}\n\n"),
            (false, true) => Next::Nothing,
            (false, false) => Next::Text(text),
        }
    }
}

type Waiting = Pin<Box<dyn Future<Output = Option<(String, Option<Reader>)>> + Send>>;

/// A body that is made while it is read, no faster than its reader takes it.
struct Stream {
    waiting: Waiting,
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.waiting.as_mut().poll(context).map(|next| {
            let (text, reader) = next?;
            self.waiting = Box::pin(async { reader?.next().await });
            Some(Ok(Frame::data(text.into())))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

    use super::*;

    fn session(n: usize) -> Change {
        Change::Session(n.to_string())
    }

    fn reader(events: &Arc<Events>) -> Reader {
        Reader {
            events: events.clone(),
            news: events.news.subscribe(),
            seen: 0,
        }
    }

    /// Returns what comes next to a reader, and whether anything follows.
    fn next(reader: Reader) -> (String, bool) {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (text, reader) = runtime.block_on(reader.next()).unwrap();
        (text, reader.is_some())
    }

    #[test]
    fn a_reader_is_cut_off_only_when_changes_were_forgotten() {
        let events = Arc::new(Events::new().unwrap());
        for n in 0..KEPT {
            events.report(session(n));
        }
        let (text, more) = next(reader(&events));
        assert_eq!((text.matches("event: session").count(), more), (KEPT, true));
        events.report(session(KEPT));
        assert_eq!(next(reader(&events)), (String::new(), false));
    }

    #[test]
    fn no_more_changes_are_kept_than_promised() {
        let events = Events::new().unwrap();
        for n in 0..3 * KEPT {
            events.report(session(n));
        }
        assert_eq!(events.ring().kept.len(), KEPT);
    }
}
