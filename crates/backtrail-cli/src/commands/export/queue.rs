//! What is held back of a page: a call of a tool waits for its result, and what follows it
//! waits with it, within bounds.

use std::collections::VecDeque;
use std::io::{self, Write};

use super::markup::Html;
use super::tool::{Call, Outcome};

/// No more is held back.
const MOST_HELD: usize = 256;
const MOST_HELD_BYTES: usize = 16 << 20;

/// A page under way.
pub(super) struct Queue<'a> {
    out: &'a mut dyn Write,
    held: VecDeque<Held>,
    held_bytes: usize,
}

/// Something that is not yet written.
enum Held {
    Html(Html),
    Call(Call, Option<Outcome>),
}

impl<'a> Queue<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            held: VecDeque::new(),
            held_bytes: 0,
        }
    }

    /// Writes, or holds back behind what waits.
    pub(super) fn put(&mut self, html: Html) -> io::Result<()> {
        if self.held.is_empty() {
            return self.out.write_all(html.as_str().as_bytes());
        }
        self.held_bytes += html.len();
        self.held.push_back(Held::Html(html));
        self.bound()
    }

    /// Holds a call back until its result comes.
    pub(super) fn wait(&mut self, call: Call) -> io::Result<()> {
        self.held_bytes += call.len();
        self.held.push_back(Held::Call(call, None));
        self.bound()
    }

    /// Gives a call its result; returns it where no such call waits.
    pub(super) fn answer(&mut self, id: &str, outcome: Outcome) -> io::Result<Option<Outcome>> {
        let waits = |held: &&mut Held| match held {
            Held::Call(call, None) => call.id == id,
            _ => false,
        };
        let Some(Held::Call(_, slot)) = self.held.iter_mut().find(waits) else {
            return Ok(Some(outcome));
        };
        self.held_bytes += outcome.body.len();
        *slot = Some(outcome);
        self.release()?;
        self.bound()?;
        Ok(None)
    }

    /// Writes everything where too much waits.
    fn bound(&mut self) -> io::Result<()> {
        match self.held.len() > MOST_HELD || self.held_bytes > MOST_HELD_BYTES {
            true => self.release_all(),
            false => Ok(()),
        }
    }

    /// Writes what waits for no result any more.
    fn release(&mut self) -> io::Result<()> {
        while let Some(held) = self.held.pop_front() {
            if matches!(held, Held::Call(_, None)) {
                self.held.push_front(held);
                return Ok(());
            }
            self.write(&held)?;
        }
        self.held_bytes = 0;
        Ok(())
    }

    /// Writes everything: what still waits has no result.
    pub(super) fn release_all(&mut self) -> io::Result<()> {
        while let Some(held) = self.held.pop_front() {
            self.write(&held)?;
        }
        self.held_bytes = 0;
        Ok(())
    }

    fn write(&mut self, held: &Held) -> io::Result<()> {
        match held {
            Held::Html(html) => self.out.write_all(html.as_str().as_bytes()),
            Held::Call(call, outcome) => {
                let mut html = Html::new();
                call.write(&mut html, outcome.as_ref());
                self.out.write_all(html.as_str().as_bytes())
            }
        }
    }
}
