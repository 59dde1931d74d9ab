//! A directory in which two agents and the user work, and a plain model of who did
//! what: each state that was kept, the changes between them with all who may have
//! made them, and the one who truly made each last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use backtrail::workspace::CheckpointReason;
use backtrail::{Checkpoint, CheckpointOptions, Point, Session, SessionId, Turn};

use super::kit::{Lab, begin, end, is_root, run_end, run_start};
use crate::snapshots::tree::{Thing, Tree};

/// The generator SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % (limit.max(1) as u64)) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Actor {
    A,
    B,
    Person,
}

/// Whose work a move undoes, where it can undo anybody's.
pub(crate) type Own = BTreeSet<Actor>;

/// A change between two states that were kept one after the other.
#[derive(Debug)]
struct Event {
    paths: BTreeSet<PathBuf>,
    by: BTreeSet<Actor>,
    /// The user asked for a state to be kept then or later.
    held: bool,
}

/// Who wrote what is at a path.
#[derive(Debug, Clone, Copy)]
struct Writer {
    actor: Actor,
    event: usize,
    /// Whether the user asked for it to be kept.
    held: bool,
}

/// The one who really wrote what is at each path.
type Writers = BTreeMap<PathBuf, Writer>;

/// A state that was kept.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) checkpoint: Checkpoint,
    pub(crate) tree: Tree,
    writers: Writers,
    /// How many events there were then.
    events: usize,
    /// What Backtrail moved to make it.
    moved: BTreeSet<PathBuf>,
}

/// A turn or run in progress.
enum Span {
    Turn(Turn),
    Run(Box<Checkpoint>),
}

/// A workspace and the model of it.
pub(crate) struct World {
    pub(crate) lab: Lab,
    pub(crate) dice: Dice,
    sessions: [Session; 2],
    pub(crate) kept: Vec<Kept>,
    events: Vec<Event>,
    writers: Writers,
    /// The last writer of each path since the last state was kept.
    unsaved: BTreeMap<PathBuf, Actor>,
    open: Vec<Actor>,
    words: usize,
    /// What happened, for the message of a failing test.
    pub(crate) log: Vec<String>,
}

const PATHS: [&str; 11] = [
    "a", "b", "c", "A", "d", "d/a", "d/b", "d/e", "d/e/a", "link", "x y/ü",
];

/// Returns the paths at which two trees differ.
pub(crate) fn differing(a: &Tree, b: &Tree) -> BTreeSet<PathBuf> {
    let paths = a.keys().chain(b.keys());
    paths
        .filter(|path| a.get(*path) != b.get(*path))
        .cloned()
        .collect()
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let lab = Lab::new(seed);
        let sessions = [lab.session(), lab.session()];
        let mut world = Self {
            lab,
            dice: Dice::new(seed),
            sessions,
            kept: Vec::new(),
            events: Vec::new(),
            writers: Writers::new(),
            unsaved: BTreeMap::new(),
            open: Vec::new(),
            words: 0,
            log: Vec::new(),
        };
        for _ in 0..4 {
            world.act(Actor::Person);
        }
        world.save(None);
        world
    }

    pub(crate) fn tree(&self) -> Tree {
        self.lab.tree()
    }

    /// Lets somebody change a few things.
    pub(crate) fn act(&mut self, actor: Actor) {
        let before = self.tree();
        for _ in 0..=self.dice.below(3) {
            self.change(actor);
        }
        for path in differing(&before, &self.tree()) {
            self.unsaved.insert(path, actor);
        }
    }

    fn change(&mut self, actor: Actor) {
        let name = *self.dice.pick(&PATHS);
        let path = self.lab.path(name);
        let what = self.dice.below(12);
        self.log.push(format!("{actor:?} {what} {name}"));
        match what {
            0 | 1 => remove(&path),
            2 => {
                self.make_way(&path);
                fs::create_dir(&path).unwrap();
            }
            3 => {
                self.make_way(&path);
                let target = *self.dice.pick(&["a", "d", "..", "/etc/passwd"]);
                symlink(target, &path).unwrap();
            }
            4 => self.change_mode(&path),
            5 => {
                let mode = *self.dice.pick(&[0o755, 0o700, 0o750]);
                fs::set_permissions(self.lab.root(), Permissions::from_mode(mode)).unwrap();
            }
            6 => {
                let other = *self.dice.pick(&PATHS);
                let other = self.lab.path(other);
                let apart = !other.starts_with(&path) && !path.starts_with(&other);
                if apart && fs::symlink_metadata(&path).is_ok() {
                    self.make_way(&other);
                    // What stood in the way may have been above it.
                    fs::rename(&path, &other).ok();
                }
            }
            _ => {
                self.make_way(&path);
                self.words += 1;
                let few = self.dice.below(4);
                let bytes = match self.dice.below(6) {
                    0 => Vec::new(),
                    1 => vec![few as u8; 3],
                    2 => vec![self.words as u8; 9_000],
                    _ => format!("number {} by {actor:?}", self.words).into_bytes(),
                };
                fs::write(&path, bytes).unwrap();
            }
        }
    }

    fn change_mode(&mut self, path: &Path) {
        let Ok(meta) = fs::symlink_metadata(path) else {
            return;
        };
        let (odd, least): (&[u32], u32) = match meta.is_dir() {
            true => (&[0o755, 0o700, 0o555, 0o2775, 0o1777, 0o000], 0o700),
            false => (&[0o644, 0o755, 0o600, 0o444, 0o4711, 0o000], 0o400),
        };
        // Only root reads and changes everything.
        let least = if is_root() { 0 } else { least };
        if !meta.is_symlink() {
            let mode = *self.dice.pick(odd) | least;
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    }

    /// Makes directories above a path and takes away what is there.
    fn make_way(&self, path: &Path) {
        remove(path);
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.retain(|dir| dir.starts_with(self.lab.root()) && *dir != self.lab.root());
        for dir in above.into_iter().rev() {
            if !fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir()) {
                remove(dir);
                fs::create_dir(dir).unwrap();
            }
        }
    }

    /// Lets an agent work, in a turn or a run; sometimes another one meanwhile. Returns the
    /// steps: a run that changed nothing is none.
    pub(crate) fn work(&mut self) -> Vec<(Actor, usize, usize)> {
        let done = self.all_work().into_iter();
        let steps = done.filter(|(is_turn, _, before, after)| {
            *is_turn || self.kept[*before].tree != self.kept[*after].tree
        });
        steps
            .map(|(_, actor, before, after)| (actor, before, after))
            .collect()
    }

    fn all_work(&mut self) -> Vec<(bool, Actor, usize, usize)> {
        let first = *self.dice.pick(&[Actor::A, Actor::B]);
        let other = if first == Actor::A {
            Actor::B
        } else {
            Actor::A
        };
        let second = (self.dice.below(4) == 0).then_some(other);
        let start = self.begin(first);
        self.act(first);
        let mut done = Vec::new();
        let Some(second) = second else {
            let is_turn = matches!(start.1, Span::Turn(_));
            let after = self.finish(first, start.1);
            return vec![(is_turn, first, start.0, after)];
        };
        let inner = self.begin(second);
        self.act(second);
        self.act(first);
        let spans = match self.dice.below(2) {
            0 => [(first, start), (second, inner)],
            _ => [(second, inner), (first, start)],
        };
        for (actor, (before, span)) in spans {
            let is_turn = matches!(span, Span::Turn(_));
            let after = self.finish(actor, span);
            done.push((is_turn, actor, before, after));
            if let Some(still) = self.open.first().copied() {
                self.act(still);
            }
        }
        done.sort_by_key(|(_, _, before, _)| *before);
        done
    }

    fn session(&self, actor: Actor) -> &Session {
        &self.sessions[actor as usize]
    }

    fn begin(&mut self, actor: Actor) -> (usize, Span) {
        let is_turn = self.dice.below(2) == 0;
        self.log.push(format!("{actor:?} begins"));
        let (span, checkpoint) = match is_turn {
            true => {
                let turn = begin(self.session(actor), "do it");
                let last = self.lab.workspace.last_checkpoint().unwrap().unwrap();
                (Span::Turn(turn), last)
            }
            false => {
                let start = run_start(&self.lab, Some(self.session(actor)));
                (Span::Run(Box::new(start.clone())), start)
            }
        };
        let before = self.note(checkpoint, None);
        self.open.push(actor);
        (before, span)
    }

    fn finish(&mut self, actor: Actor, span: Span) -> usize {
        self.log.push(format!("{actor:?} ends"));
        let ended = match span {
            Span::Turn(turn) => end(turn),
            Span::Run(start) => run_end(&self.lab, Some(self.session(actor)), &start),
        };
        let after = self.note(ended, None);
        self.open.retain(|open| *open != actor);
        after
    }

    /// Keeps the state because somebody asks for it.
    pub(crate) fn save(&mut self, asks: Option<Actor>) {
        self.log.push(format!("{asks:?} saves"));
        let options = CheckpointOptions::new();
        let kept = match asks {
            Some(actor) => self.session(actor).checkpoint(options),
            None => self.lab.workspace.checkpoint(options),
        };
        self.note(kept.unwrap(), asks);
    }

    /// Notes that the present state was kept.
    pub(crate) fn note(&mut self, checkpoint: Checkpoint, asks: Option<Actor>) -> usize {
        let tree = self.tree();
        self.note_tree(checkpoint, tree, asks)
    }

    /// Notes that a state was kept, and whose all that changed until then is.
    pub(crate) fn note_tree(
        &mut self,
        checkpoint: Checkpoint,
        tree: Tree,
        asks: Option<Actor>,
    ) -> usize {
        let nothing = Tree::new();
        let last = self.kept.last().map_or(&nothing, |kept| &kept.tree);
        let paths = differing(last, &tree);
        for path in &paths {
            // What an agent asks to be kept counts as its own, whoever wrote it.
            let asks = asks.filter(|_| self.open.is_empty());
            let wrote = self.unsaved.get(path).copied();
            let actor = asks.or(wrote).unwrap_or(Actor::Person);
            let writer = Writer {
                actor,
                event: self.events.len(),
                held: false,
            };
            self.writers.insert(path.clone(), writer);
        }
        self.unsaved.clear();
        let by = match (self.open.is_empty(), asks) {
            (false, _) => self.open.iter().copied().collect(),
            (true, Some(asks)) => [asks].into(),
            (true, None) => [Actor::Person].into(),
        };
        let held = false;
        self.events.push(Event { paths, by, held });
        let is_manual = *checkpoint.reason() == CheckpointReason::Manual;
        if is_manual && asks.is_none() {
            self.hold_all();
        }
        self.push(checkpoint, tree, BTreeSet::new())
    }

    /// The user asked for all that is there to be kept.
    fn hold_all(&mut self) {
        for writer in self.writers.values_mut() {
            writer.held = true;
        }
        for event in &mut self.events {
            event.held = true;
        }
    }

    fn push(&mut self, checkpoint: Checkpoint, tree: Tree, moved: BTreeSet<PathBuf>) -> usize {
        self.kept.push(Kept {
            checkpoint,
            tree,
            writers: self.writers.clone(),
            events: self.events.len(),
            moved,
        });
        self.kept.len() - 1
    }

    /// Notes that files were moved: what they are now is whose it was when it was
    /// so last.
    pub(crate) fn note_moved(&mut self, checkpoint: Checkpoint, before: &Tree) -> usize {
        let tree = self.tree();
        let moved = differing(before, &tree);
        for path in moved.iter().cloned() {
            let thing = tree.get(&path);
            let was = self.kept.iter().rev();
            let mut was = was.filter(|kept| kept.tree.get(&path) == thing);
            match was.next().and_then(|kept| kept.writers.get(&path)) {
                Some(writer) => self.writers.insert(path, *writer),
                None => self.writers.remove(&path),
            };
        }
        self.unsaved.clear();
        self.push(checkpoint, tree, moved)
    }

    /// Returns which of these paths were written last, since a state, by somebody
    /// whose work is not undone; what is not saved is the user's, and stays theirs until
    /// they ask for it to be kept.
    pub(crate) fn written_by_others(
        &self,
        since: usize,
        own: &Own,
        paths: &BTreeSet<PathBuf>,
    ) -> BTreeSet<PathBuf> {
        let now = self.tree();
        let last = &self.kept.last().expect("one was kept").tree;
        let others = |path: &&PathBuf| {
            let unsaved = last.get(*path) != now.get(*path);
            let writer = self.writers.get(*path);
            let saved = writer.filter(|writer| writer.event >= self.kept[since].events);
            let is_others = |writer: &Writer| {
                let is_kept = writer.actor != Actor::Person || writer.held;
                !own.contains(&writer.actor) || !is_kept
            };
            unsaved || saved.is_some_and(is_others)
        };
        paths.iter().filter(others).cloned().collect()
    }

    /// Returns whether somebody whose work is not undone may have changed a path
    /// since a state.
    pub(crate) fn maybe_others(&self, since: usize, own: &Own, path: &Path) -> bool {
        let now = self.tree();
        let last = &self.kept.last().expect("one was kept").tree;
        let mut events = self.events[self.kept[since].events..].iter();
        // What a move brings back may be from before the user asked for it to be kept.
        let mut moved = self.kept[since..].iter();
        let is_moved = moved.any(|kept| kept.moved.contains(path));
        last.get(path) != now.get(path)
            || events.any(|event| {
                let is_kept = !event.by.contains(&Actor::Person) || (event.held && !is_moved);
                event.paths.contains(path) && !(event.by.is_subset(own) && is_kept)
            })
    }

    /// Returns a random point with the state that it means, and whose work going there
    /// undoes: a session's for a record of it, everybody's for a moment of the workspace.
    pub(crate) fn point(&mut self) -> (Point, usize, Own) {
        let everyone: Own = [Actor::A, Actor::B, Actor::Person].into();
        let workspace = self.lab.workspace.clone();
        let which = self.dice.below(5);
        let point = match which {
            0 | 1 => {
                let actor = *self.dice.pick(&[Actor::A, Actor::B]);
                let session = self.session(actor);
                let (id, last): (SessionId, _) = (session.id().clone(), session.last_seq());
                let point = Point::record(&id, self.dice.below(last as usize + 1) as u64);
                if let Ok(found) = workspace.resolve(&point) {
                    return (point, self.index_of(&found), [actor].into());
                }
                None
            }
            2 | 3 => Some(Point::turns_back(self.dice.below(4) as u64 + 1)),
            _ => None,
        };
        if let Some(point) = point
            && let Ok(found) = workspace.resolve(&point)
        {
            return (point, self.index_of(&found), everyone);
        }
        let target = self.dice.below(self.kept.len());
        let id = self.kept[target].checkpoint.id();
        let prefix = id.to_string()[..8].parse().unwrap();
        let names = [Point::checkpoint(id), prefix];
        (self.dice.pick(&names).clone(), target, everyone)
    }

    pub(crate) fn index_of(&self, checkpoint: &Checkpoint) -> usize {
        let found = self
            .kept
            .iter()
            .rposition(|kept| kept.checkpoint.id() == checkpoint.id());
        found.expect("every checkpoint was noted")
    }
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Returns whether there is a directory at a path of a tree.
pub(crate) fn is_dir(tree: &Tree, path: &Path) -> bool {
    matches!(tree.get(path), Some(Thing::Dir { .. }))
}
