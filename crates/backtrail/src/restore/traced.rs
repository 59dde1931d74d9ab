//! What became of one path: its states, who had changed it in each, and the changes
//! that led there.

use std::collections::HashSet;
use std::rc::Rc;

use super::thing::Thing;
use super::whose::{Doing, Took};
use crate::snapshot::entry::Node;

/// What became of one path.
#[derive(Debug, Default)]
pub(super) struct Traced {
    /// Its state where everything is counted from.
    pub(super) base: State,
    /// Its states since.
    pub(super) states: Vec<Known>,
    /// All changes; each says which one came before it.
    links: Vec<Link>,
    /// Whether ignore rules named it when it came into being.
    pub(super) born_ignored: Option<bool>,
}

/// A state that a path had.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) state: State,
    /// Who had changed it then, the last of them last.
    pub(super) by: Vec<Doing>,
    /// The last of the changes that led to it, as far as they are in effect.
    link: Option<usize>,
    /// The state of the workspace that it was first seen in.
    n: usize,
}

/// A change of a path.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) before: State,
    pub(super) after: State,
    /// Who made it; nobody where Backtrail itself restored something.
    pub(super) by: Rc<[Doing]>,
    /// The state of the workspace that it led to.
    pub(super) n: usize,
    /// Whether a merge took it back: nothing of it is in what is there.
    pub(super) is_gone: bool,
    /// The state that Backtrail went to with it.
    to: Option<usize>,
    earlier: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum State {
    #[default]
    Absent,
    There(Thing),
    /// Something that was left out was there, or above it.
    Unknown,
}

impl State {
    pub(super) fn of(node: Option<&Node>) -> Self {
        match node {
            None => Self::Absent,
            Some(node) => Thing::of(node).map_or(Self::Unknown, Self::There),
        }
    }
}

/// What led from one state of the workspace to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cause<'a> {
    pub(super) by: &'a Rc<[Doing]>,
    /// The state that it led to.
    pub(super) n: usize,
    /// The state that Backtrail went to.
    pub(super) to: Option<usize>,
    /// What a merge took back.
    pub(super) took: Option<&'a Took>,
}

impl Link {
    /// Returns whether Backtrail went back with it to before a state.
    pub(super) fn is_behind(&self, since: usize) -> bool {
        self.by.is_empty() && self.to.is_some_and(|to| to < since)
    }
}

impl Traced {
    pub(super) fn new(base: State) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    pub(super) fn change(&mut self, state: State, cause: Cause<'_>) {
        let known = if state == self.base {
            // Whoever brought it back: nothing of anybody's is in it.
            let earlier = self.last_link().filter(|_| !cause.by.is_empty());
            let link =
                earlier.map(|at| self.link(state.clone(), Rc::clone(cause.by), Some(at), cause));
            self.known(state, Vec::new(), link, cause.n)
        } else if let Some(then) = self.as_it_was(&state) {
            then
        } else if cause.by.is_empty() {
            // Restored: it is again whose it was then.
            let then = self.states.iter().rev().find(|known| known.state == state);
            match then.cloned() {
                Some(then) => Known { n: cause.n, ..then },
                None => self.restored(state, cause),
            }
        } else {
            let mut by = self.by().to_vec();
            by.retain(|known| !cause.by.contains(known));
            by.extend_from_slice(cause.by);
            let earlier = self.last_link();
            let link = self.link(state.clone(), Rc::clone(cause.by), earlier, cause);
            self.known(state, by, Some(link), cause.n)
        };
        self.states.push(known);
    }

    fn known(&self, state: State, by: Vec<Doing>, link: Option<usize>, n: usize) -> Known {
        Known { state, by, link, n }
    }

    /// Notes a change on top of what is there.
    fn link(
        &mut self,
        after: State,
        by: Rc<[Doing]>,
        earlier: Option<usize>,
        cause: Cause<'_>,
    ) -> usize {
        let last = self.states.last();
        self.links.push(Link {
            before: last.map_or(&self.base, |known| &known.state).clone(),
            after,
            by,
            n: cause.n,
            is_gone: false,
            to: cause.to,
            earlier,
        });
        self.links.len() - 1
    }

    fn last_link(&self) -> Option<usize> {
        self.states.last().and_then(|known| known.link)
    }

    /// Takes in a state that Backtrail made, and that was not there before: what a
    /// merge came to, or what somebody chose, or what was there even earlier.
    fn restored(&mut self, state: State, cause: Cause<'_>) -> Known {
        let came = cause.to.map_or_else(|| Rc::from([]), |to| self.came(to));
        let earlier = match cause.took {
            Some(took) if came.is_empty() => self.without(took),
            // What brings something back may be undone itself, and then all that it
            // took back is there again.
            _ => self.last_link(),
        };
        let mut by = self.still_by(earlier);
        by.retain(|known| !has(&came, known));
        by.extend(came.iter().cloned());
        let link = self.link(state.clone(), came, earlier, cause);
        self.known(state, by, Some(link), cause.n)
    }

    /// Returns who made changes that a state of the workspace had and that are not in
    /// effect now: going there, they come back.
    fn came(&self, to: usize) -> Rc<[Doing]> {
        let is_in_effect = |link: &&&Link| !link.is_gone;
        let now: Vec<&Link> = self.chain();
        let now: HashSet<usize> = now.iter().filter(is_in_effect).map(|link| link.n).collect();
        let then = self.states.iter().rev().find(|known| known.n <= to);
        let then = self.chain_to(then.and_then(|known| known.link));
        let back = then.iter().rev().filter(is_in_effect);
        let back = back.filter(|link| !now.contains(&link.n));
        let mut came: Vec<Doing> = Vec::new();
        for doing in back.flat_map(|link| link.by.iter()) {
            if !has(&came, doing) {
                came.push(doing.clone());
            }
        }
        came.into()
    }

    /// Writes the changes that led to what is there down again, as they are after a
    /// merge took some of them back, and returns the last. Those that led to earlier
    /// states stay as they are: such a state may come back.
    fn without(&mut self, took: &Took) -> Option<usize> {
        let mut chain: Vec<Link> = self.chain().into_iter().cloned().collect();
        chain.reverse();
        let mut earlier = None;
        for mut link in chain {
            link.is_gone |= took.holds(&link);
            link.earlier = earlier;
            self.links.push(link);
            earlier = Some(self.links.len() - 1);
        }
        earlier
    }

    /// Returns who of those who changed it made changes that are still in effect.
    fn still_by(&self, last: Option<usize>) -> Vec<Doing> {
        let chain = self.chain_to(last);
        let is_in_effect = |doing: &&Doing| {
            let mut links = chain.iter().filter(|link| !link.is_gone);
            links.any(|link| has(&link.by, doing))
        };
        self.by().iter().filter(is_in_effect).cloned().collect()
    }

    /// Takes note of what a path is that was there all the time.
    pub(super) fn regain(&mut self, state: State, n: usize) {
        let last = self.states.last();
        let by = last.map_or_else(Vec::new, |known| known.by.clone());
        let mut link = last.and_then(|known| known.link);
        if let Some(at) = link {
            let known = Link {
                after: state.clone(),
                ..self.links[at].clone()
            };
            self.links.push(known);
            link = Some(self.links.len() - 1);
        }
        self.states.push(Known { state, by, link, n });
    }

    /// Returns who had changed a path that was lost sight of and is the same again.
    fn as_it_was(&self, state: &State) -> Option<Known> {
        let is_lost = |known: &&Known| known.state == State::Unknown;
        self.states.last().filter(is_lost)?;
        let seen = self.states.iter().rev().find(|known| !is_lost(known));
        seen.filter(|known| known.state == *state).cloned()
    }

    /// Returns who changed it, the last of them last.
    pub(super) fn by(&self) -> &[Doing] {
        self.states.last().map_or(&[], |known| &known.by)
    }

    /// Returns the changes that led to what is there, the last one first.
    pub(super) fn chain(&self) -> Vec<&Link> {
        self.chain_to(self.last_link())
    }

    fn chain_to(&self, last: Option<usize>) -> Vec<&Link> {
        let links = std::iter::successors(last, |at| self.links[*at].earlier);
        links.map(|at| &self.links[at]).collect()
    }
}

/// Returns whether somebody is among others, whether or not it was saved meanwhile.
fn has(by: &[Doing], doing: &Doing) -> bool {
    let is_it = |known: &Doing| {
        known.who == doing.who && known.at == doing.at && known.words == doing.words
    };
    by.iter().any(is_it)
}
