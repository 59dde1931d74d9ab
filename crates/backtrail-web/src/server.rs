//! The server: one thread for all connections, and threads for work.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use backtrail_view::library::Watch;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::actions::{ACTS, Actions, Writes};
use crate::connections::{Connection, Connections, Impatient};
use crate::events::{Events, SEEN};
use crate::guard::{self, Access, Asked, Guard, Token};
use crate::library::Site;
use crate::opener::Opener;
use crate::reads;
use crate::routes::READS;
use crate::shell;
use crate::work::{Threads, failed};

/// The head of a request is no larger.
const LARGEST_HEAD: usize = 16 << 10;
/// A request has no more headers.
const MOST_HEADERS: usize = 64;
/// How many questions are answered at once.
const READERS: u32 = 8;

/// How a server is started.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The port; 0 for any that is free.
    pub port: u16,
    /// Whether the pages may change files and history.
    pub write: bool,
    /// What clients may cost.
    pub limits: Limits,
}

impl Default for Options {
    /// Pages that only read, on a free port.
    fn default() -> Self {
        Self {
            port: 0,
            write: false,
            limits: Limits::default(),
        }
    }
}

/// What clients may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many connections are open at once.
    pub connections: usize,
    /// How long the head of a request may take, and how long a connection may have none.
    pub head_time: Duration,
    /// How long a body may take.
    pub body_time: Duration,
    /// How long a reader may take nothing of what it is sent.
    pub stall_time: Duration,
    /// How long readers have for the last of what they are sent when the server stops.
    pub farewell_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head_time: Duration::from_secs(20),
            body_time: Duration::from_secs(20),
            stall_time: Duration::from_secs(30),
            farewell_time: Duration::from_secs(1),
        }
    }
}

/// A server that runs. Dropping it stops it.
pub struct Server {
    port: u16,
    token: Token,
    opener: SharedOpener,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// The file that opens the browser, until it has.
type SharedOpener = Arc<Mutex<Option<Opener>>>;

impl Server {
    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address of a page, with the token: whoever knows it can read everything.
    /// `page` begins with a slash.
    pub fn url(&self, page: &str) -> String {
        let token = self.token.as_str();
        format!("http://127.0.0.1:{}{page}#token={token}", self.port)
    }

    /// Writes a file that leads a browser to a page, in a new directory inside `parent`; only
    /// this user can read it. It is gone once the page has asked for data, or at the end.
    pub fn write_opener(&self, parent: &Path, page: &str) -> io::Result<PathBuf> {
        let opener = Opener::write(parent, &self.url(page))?;
        let path = opener.path().to_owned();
        forget(&self.opener, Some(opener));
        Ok(path)
    }

    /// Stops the server. An action that is being done is done to its end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        forget(&self.opener, None);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Removes a file that is no longer needed.
fn forget(opener: &SharedOpener, next: Option<Opener>) {
    *opener.lock().unwrap_or_else(PoisonError::into_inner) = next;
}

/// Starts a server of the pages of a site, on loopback.
pub fn start(site: Arc<dyn Site>, options: Options) -> io::Result<Server> {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let token = Token::random()?;
    let events = Arc::new(Events::new()?);
    let watch = watch(&*site, events.clone())?;
    let opener = SharedOpener::default();
    let guard = Guard::new(port, token.clone());
    let running = Running::new(guard, events, opener.clone(), options.limits);
    let router = running.router(site, Writes::of(options.write));
    let (stop, stopped) = watch::channel(false);
    let thread = running.start(router, listener, stopped, watch)?;
    Ok(Server {
        port,
        token,
        opener,
        stop,
        thread: Some(thread),
    })
}

fn watch(site: &dyn Site, events: Arc<Events>) -> io::Result<Box<dyn Watch>> {
    let watch = site.watch(Box::new(move |change| events.report(change)));
    watch.map_err(|failure| io::Error::other(failure.message))
}

/// What every connection shares.
struct Running {
    guard: Guard,
    events: Arc<Events>,
    opener: SharedOpener,
    limits: Limits,
    connections: Arc<Connections>,
    readers: Threads,
    writer: Threads,
}

impl Running {
    fn new(guard: Guard, events: Arc<Events>, opener: SharedOpener, limits: Limits) -> Self {
        Self {
            guard,
            events,
            opener,
            limits,
            connections: Arc::new(Connections::new(limits.connections)),
            readers: Threads::new(READERS),
            writer: Threads::new(1),
        }
    }

    /// Returns what is at each address.
    fn router(&self, site: Arc<dyn Site>, writes: Writes) -> Router {
        let mut router = shell::routes(Router::new());
        for (path, handler) in READS {
            let (site, threads) = (site.clone(), self.readers.clone());
            let read = move |uri: Uri| reads::read(site, threads, *handler, uri);
            router = router.route(path, get(read));
        }
        let actions = Actions {
            site: site.clone(),
            writes,
            one: self.writer.clone(),
            body_time: self.limits.body_time,
        };
        for (path, act) in ACTS {
            let actions = actions.clone();
            let post = post(move |request: Request| actions.answer(act, request));
            router = router.route(path, post);
        }
        let threads = self.readers.clone();
        let hello =
            move || async move { threads.answer(move || reads::hello(&*site, writes)).await };
        let events = self.events.clone();
        let events = move |headers: HeaderMap| async move { events.stream(&headers) };
        router
            .route("/api/hello", get(hello))
            .route("/api/events", get(events))
            .fallback(|| async { failed(StatusCode::NOT_FOUND, "there is nothing here") })
    }

    /// Starts the thread of the server.
    fn start(
        self,
        router: Router,
        listener: StdListener,
        stopped: Stopped,
        watch: Box<dyn Watch>,
    ) -> io::Result<JoinHandle<()>> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(READERS as usize + 1)
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let serve = move || {
            let _watch = watch;
            runtime.block_on(Arc::new(self).serve(listener, router, stopped));
            runtime.shutdown_background();
        };
        thread::Builder::new().name("web".to_owned()).spawn(serve)
    }

    /// Serves until the server is stopped, and then ends in order.
    async fn serve(self: Arc<Self>, listener: TcpListener, router: Router, stopped: Stopped) {
        self.accept(&listener, router, stopped).await;
        drop(listener);
        self.events.close();
        self.writer.finish().await;
        let farewell = self.limits.farewell_time;
        timeout(farewell, self.connections.all_closed()).await.ok();
    }

    async fn accept(self: &Arc<Self>, listener: &TcpListener, router: Router, stopped: Stopped) {
        while let Some(accepted) = unless(&stopped, listener.accept()).await {
            match accepted {
                Ok((stream, peer)) => {
                    let (running, router) = (self.clone(), router.clone());
                    let stopped = stopped.clone();
                    self.connections.add(|connection| {
                        running.connection(connection, stream, peer.ip(), router, stopped)
                    });
                }
                // Mostly there are too many open files; it gets better when some are closed.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Serves a connection to its end.
    async fn connection(
        self: Arc<Self>,
        connection: Connection,
        stream: TcpStream,
        peer: IpAddr,
        router: Router,
        stopped: Stopped,
    ) {
        stream.set_nodelay(true).ok();
        let router = TowerToHyperService::new(router);
        let limits = self.limits;
        let open = Arc::new(connection);
        let service = service_fn(move |request| {
            let (running, router, open) = (self.clone(), router.clone(), open.clone());
            async move { running.answer(request, peer, &open, &router).await }
        });
        let stream = TokioIo::new(Impatient::new(stream, limits.stall_time));
        let mut http = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.head_time)
                .max_header_size(LARGEST_HEAD)
                .max_headers(MOST_HEADERS)
                .serve_connection(stream, service)
        );
        if unless(&stopped, http.as_mut()).await.is_none() {
            http.as_mut().graceful_shutdown();
            http.await.ok();
        }
    }

    /// Answers a request, if the guard lets it pass.
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        open: &Connection,
        router: &TowerToHyperService<Router>,
    ) -> Result<Response, Infallible> {
        let asked = Asked {
            peer,
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
        };
        let mut response = match self.guard.check(&asked) {
            Err(refusal) => refusal.into_response(),
            Ok(Access::Shell) => router.call(request.map(Body::new)).await?,
            Ok(Access::Data) => {
                open.prove();
                forget(&self.opener, None);
                self.data(request, router).await?
            }
        };
        guard::add_strict_headers(response.headers_mut());
        Ok(response)
    }

    /// Answers with data, and with the last change before they were read.
    async fn data(
        &self,
        request: Request<Incoming>,
        router: &TowerToHyperService<Router>,
    ) -> Result<Response, Infallible> {
        let seen = HeaderValue::try_from(self.events.newest());
        let mut response = router.call(request.map(Body::new)).await?;
        if let Ok(seen) = seen {
            response.headers_mut().insert(SEEN, seen);
        }
        Ok(response)
    }
}

/// Becomes true when the server is to stop.
type Stopped = watch::Receiver<bool>;

/// Waits for something, or returns nothing once the server is to stop.
async fn unless<T>(stopped: &Stopped, work: impl Future<Output = T>) -> Option<T> {
    let mut stopped = stopped.clone();
    let mut stop = pin!(stopped.wait_for(|stopped| *stopped));
    let mut work = pin!(work);
    poll_fn(|context| match stop.as_mut().poll(context) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => work.as_mut().poll(context).map(Some),
    })
    .await
}
