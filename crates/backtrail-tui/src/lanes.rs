//! Threads that answer requests.
//!
//! Each lane is a thread with a queue, so that a slow search never keeps a list or a page waiting.
//! In some questions only the newest matters: it takes the place of older ones that still wait.
//! Actions are done in order, and none is dropped.

use std::collections::HashMap;
use std::io;
use std::mem::discriminant;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::answer::answer;
use crate::look::Look;
use crate::queue::{Queue, Waiting};
use crate::request::{Reply, Request};
use backtrail_view::library::{Freshness, Library};

/// Which thread answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Lane {
    /// Lists that are known already.
    Lists,
    /// Lists that need catching up first.
    CurrentLists,
    Pages,
    /// What is known of one session or record.
    Details,
    Changes,
    Diffs,
    Files,
    Timeline,
    Search,
    Costs,
    NextUndo,
    Actions,
}

impl Lane {
    fn of(request: &Request) -> Self {
        match request {
            Request::Sessions(_, Freshness::Known) => Self::Lists,
            Request::Sessions(_, Freshness::Current) => Self::CurrentLists,
            Request::Page(_) => Self::Pages,
            Request::Head(_)
            | Request::Text(..)
            | Request::Prompt(..)
            | Request::Agents(_)
            | Request::Exports(_) => Self::Details,
            Request::Changes(_) => Self::Changes,
            Request::Diff(_) => Self::Diffs,
            Request::Files(..) | Request::File(..) | Request::Blame(..) => Self::Files,
            Request::Timeline(_) => Self::Timeline,
            Request::Search(..) => Self::Search,
            Request::Costs(..) => Self::Costs,
            Request::NextUndo => Self::NextUndo,
            Request::Plan(_) | Request::Do(_) | Request::Apply(..) => Self::Actions,
        }
    }
}

/// Returns whether a request makes older ones of its kind useless.
fn replaces_older(request: &Request) -> bool {
    matches!(
        request,
        Request::Search(..)
            | Request::Changes(_)
            | Request::Diff(_)
            | Request::Head(_)
            | Request::NextUndo
    )
}

/// The requests that wait in a lane.
type LaneQueue = Queue<(Request, Look)>;

/// Takes the answer to a request.
type Tell = dyn Fn(Request, Reply) + Send + Sync;

/// The lanes. A thread is started when its lane is first asked.
pub(crate) struct Lanes {
    library: Arc<dyn Library>,
    tell: Arc<Tell>,
    lanes: HashMap<Lane, (Arc<LaneQueue>, JoinHandle<()>)>,
}

impl Lanes {
    /// Makes lanes that ask a library, and tell its answers.
    pub(crate) fn new(
        library: Arc<dyn Library>,
        tell: impl Fn(Request, Reply) + Send + Sync + 'static,
    ) -> Self {
        Self {
            library,
            tell: Arc::new(tell),
            lanes: HashMap::new(),
        }
    }

    /// Asks; the answer is told later, from another thread.
    pub(crate) fn ask(&mut self, request: Request, look: Look) -> io::Result<()> {
        let lane = Lane::of(&request);
        if !self.lanes.contains_key(&lane) {
            let started = self.start(lane)?;
            self.lanes.insert(lane, started);
        }
        if let Some((queue, _)) = self.lanes.get(&lane) {
            push(queue, request, look);
        }
        Ok(())
    }

    fn start(&self, lane: Lane) -> io::Result<(Arc<LaneQueue>, JoinHandle<()>)> {
        let queue = Arc::new(Queue::new());
        let (requests, library, tell) = (
            Arc::clone(&queue),
            Arc::clone(&self.library),
            Arc::clone(&self.tell),
        );
        let thread = thread::Builder::new().name(format!("{lane:?}"));
        let work = move || {
            while let Some((request, look)) = requests.pop() {
                let reply = answer(library.as_ref(), &request, look);
                tell(request, reply);
            }
        };
        Ok((queue, thread.spawn(work)?))
    }

    /// Ends the lanes. Returns when the action that is being done is over, however long it
    /// takes: files are never left half way. Questions are not waited for.
    pub(crate) fn end(mut self, waiting: Waiting) {
        if let Some((queue, thread)) = self.lanes.remove(&Lane::Actions) {
            queue.close(waiting);
            // A panic was told as the failure that it is.
            thread.join().ok();
        }
        for (queue, _) in self.lanes.values() {
            queue.close(Waiting::Dropped);
        }
    }
}

/// Adds a request to those that wait in a lane.
fn push(queue: &LaneQueue, request: Request, look: Look) {
    let kind = replaces_older(&request).then(|| discriminant(&request));
    queue.push((request, look), |(older, _)| {
        kind == Some(discriminant(older))
    });
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
