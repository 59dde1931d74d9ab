//! The connections that are open: how many, and for how long.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Sleep, sleep};

/// The open connections.
pub(crate) struct Connections {
    most: usize,
    open: Mutex<Open>,
    /// How many there are.
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct Open {
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    task: AbortHandle,
    /// Whether it has shown the token.
    is_proven: bool,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            open: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }

    /// Serves a connection. If there are too many, the oldest that never showed the token is
    /// closed for it; if all of them did, the new one is.
    pub(crate) fn add<F>(self: &Arc<Self>, serve: impl FnOnce(Connection) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if !self.make_room() {
            return;
        }
        let id = self.next_id();
        let all = self.clone();
        let task = tokio::spawn(serve(Connection { id, all })).abort_handle();
        let is_proven = false;
        let mut open = self.open();
        open.entries.insert(id, Entry { task, is_proven });
        self.count.send_replace(open.entries.len());
    }

    /// Returns whether there is room for one more.
    fn make_room(&self) -> bool {
        let mut open = self.open();
        if open.entries.len() < self.most {
            return true;
        }
        let mut entries = open.entries.iter();
        let stranger = entries.find(|(_, entry)| !entry.is_proven);
        let stranger = stranger.map(|(id, _)| *id);
        let closed = stranger.and_then(|id| open.entries.remove(&id));
        if let Some(entry) = &closed {
            entry.task.abort();
        }
        closed.is_some()
    }

    fn next_id(&self) -> u64 {
        let mut open = self.open();
        open.next += 1;
        open.next
    }

    /// Waits until all are closed.
    pub(crate) async fn all_closed(&self) {
        let mut count = self.count.subscribe();
        count.wait_for(|count| *count == 0).await.ok();
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is open as long as this exists.
pub(crate) struct Connection {
    id: u64,
    all: Arc<Connections>,
}

impl Connection {
    /// Notes that the token was shown.
    pub(crate) fn prove(&self) {
        if let Some(entry) = self.all.open().entries.get_mut(&self.id) {
            entry.is_proven = true;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.open();
        open.entries.remove(&self.id);
        self.all.count.send_replace(open.entries.len());
    }
}

/// A stream that fails when its reader takes nothing for too long.
pub(crate) struct Impatient {
    stream: TcpStream,
    most: Duration,
    /// Runs while the reader takes nothing.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Impatient {
    pub(crate) fn new(stream: TcpStream, most: Duration) -> Self {
        Self {
            stream,
            most,
            waiting: None,
        }
    }

    /// Passes on what became of a write, unless it has been waited for too long.
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let most = self.most;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(most)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
