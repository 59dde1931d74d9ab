//! A sink that keeps what it is told in memory: for small files, and for tests.

use crate::error::Result;
use crate::told::{About, Item, Said, Sink, Thread, Which};

/// All that a file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gathered {
    /// The session, as its agent names it.
    pub session: String,
    /// Its conversations, in the order in which they were first named.
    pub threads: Vec<GatheredThread>,
    present: usize,
}

/// One conversation of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct GatheredThread {
    /// Which, and where it comes from.
    pub thread: Thread,
    /// What is known of it.
    pub about: About,
    /// What was said, as the conversation stands at its end.
    pub items: Vec<Item>,
}

impl Gathered {
    /// Returns the file's own conversation.
    pub fn main(&self) -> Option<&GatheredThread> {
        let is_main = |told: &&GatheredThread| told.thread.which == Which::Main;
        self.threads.iter().find(is_main)
    }

    /// Returns the messages of the file's own conversation.
    pub fn messages(&self) -> impl Iterator<Item = &Said> {
        let items = self.main().map_or(&[][..], |main| &main.items);
        items.iter().filter_map(|item| match item {
            Item::Said(said) => Some(said),
            _ => None,
        })
    }

    fn present(&mut self) -> &mut GatheredThread {
        if self.threads.is_empty() {
            self.threads.push(GatheredThread::new(Thread::main()));
        }
        let present = self.present.min(self.threads.len() - 1);
        &mut self.threads[present]
    }
}

impl GatheredThread {
    fn new(thread: Thread) -> Self {
        Self {
            thread,
            about: About::default(),
            items: Vec::new(),
        }
    }
}

impl Sink for Gathered {
    fn session(&mut self, name: &str) -> Result<()> {
        name.clone_into(&mut self.session);
        Ok(())
    }

    fn thread(&mut self, thread: &Thread) -> Result<()> {
        let known = |told: &GatheredThread| told.thread.which == thread.which;
        self.present = self.threads.iter().position(known).unwrap_or_else(|| {
            self.threads.push(GatheredThread::new(thread.clone()));
            self.threads.len() - 1
        });
        Ok(())
    }

    fn about(&mut self, about: About) -> Result<()> {
        self.present().about.learn(about);
        Ok(())
    }

    fn item(&mut self, item: Item) -> Result<()> {
        self.present().items.push(item);
        Ok(())
    }

    fn back_to(&mut self, key: Option<&str>) -> Result<()> {
        let items = &mut self.present().items;
        let kept = match key {
            Some(key) => items.iter().rposition(|item| item.key() == key),
            None => None,
        };
        items.truncate(kept.map_or(0, |at| at + 1));
        Ok(())
    }
}
