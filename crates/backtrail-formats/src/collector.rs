//! A sink that keeps all events in memory: for small files, and for tests.

use crate::error::Result;
use crate::event::{Details, Event, EventSink, MessageEvent, Origin, ReadReport, Thread, ThreadId};
use crate::format::OpenFile;

/// All events of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventCollector {
    /// The session, by its agent's name for it. Empty if the file does not name it.
    pub session: String,
    /// Its conversations, in the order in which they first appear.
    pub threads: Vec<CollectedThread>,
    current: usize,
}

/// One conversation of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectedThread {
    /// The conversation's id and origin.
    pub thread: Thread,
    /// What describes its session.
    pub details: Details,
    /// Its events, as the conversation is at its end.
    pub events: Vec<Event>,
}

impl EventCollector {
    /// Reads a file and adds its events.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn read(&mut self, file: OpenFile<'_>) -> Result<ReadReport> {
        file.session()
            .unwrap_or_default()
            .clone_into(&mut self.session);
        file.read(self)
    }

    /// Returns the file's own conversation.
    pub fn main(&self) -> Option<&CollectedThread> {
        let is_main = |collected: &&CollectedThread| collected.thread.id == ThreadId::Main;
        self.threads.iter().find(is_main)
    }

    /// Returns the messages of the file's own conversation.
    pub fn messages(&self) -> impl Iterator<Item = &MessageEvent> {
        let events = self.main().map_or(&[][..], |main| &main.events);
        events.iter().filter_map(|event| match event {
            Event::Message(message) => Some(message),
            _ => None,
        })
    }

    fn current(&mut self) -> &mut CollectedThread {
        if self.threads.is_empty() {
            let main = Thread::main(Origin::Start);
            self.threads.push(CollectedThread::new(main));
        }
        let current = self.current.min(self.threads.len() - 1);
        &mut self.threads[current]
    }
}

impl CollectedThread {
    fn new(thread: Thread) -> Self {
        Self {
            thread,
            details: Details::default(),
            events: Vec::new(),
        }
    }
}

impl EventSink for EventCollector {
    fn thread(&mut self, thread: &Thread) -> Result<()> {
        let is_same = |collected: &CollectedThread| collected.thread.id == thread.id;
        self.current = self.threads.iter().position(is_same).unwrap_or_else(|| {
            self.threads.push(CollectedThread::new(thread.clone()));
            self.threads.len() - 1
        });
        Ok(())
    }

    fn details(&mut self, details: Details) -> Result<()> {
        self.current().details.update(details);
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<()> {
        self.current().events.push(event);
        Ok(())
    }

    fn rewind_to(&mut self, key: Option<&str>) -> Result<()> {
        let events = &mut self.current().events;
        let kept = match key {
            Some(key) => events.iter().rposition(|event| event.key() == key),
            None => None,
        };
        events.truncate(kept.map_or(0, |at| at + 1));
        Ok(())
    }
}
