//! Notes are not activity: over random histories the engine, the catalogue and a model of
//! plain numbers agree on when each session was last active, and which is the latest.

use std::cmp::Reverse;
use std::path::Path;

use backtrail::{
    Block, Compaction, ForkOptions, Message, Note, Session, SessionId, SessionOptions, Store,
    StoreOptions, Timestamp, ToolUse,
};
use backtrail_index::{Filter, Index, IndexOptions, SessionRow};
use backtrail_testkit::ManualClock;

use crate::random::Random;

const HERE: &str = "/here";

/// A session, in numbers that grow with every event.
struct Modelled {
    session: Session,
    active: usize,
    spoke: Option<usize>,
    is_fork: bool,
    is_sub_agent: bool,
    is_here: bool,
}

struct World {
    store: Store,
    _dir: tempfile::TempDir,
    sessions: Vec<Modelled>,
    events: usize,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreOptions::new()
            .clock(ManualClock::new(1_700_000_000_000))
            // Short trails: a rotation is no activity either.
            .rotation(700)
            .open_or_create(dir.path().join("store"))
            .unwrap();
        Self {
            store,
            _dir: dir,
            sessions: Vec::new(),
            events: 0,
        }
    }

    fn event(&mut self) -> usize {
        self.events += 1;
        self.events
    }

    fn add(&mut self, session: Session, is_fork: bool, is_sub_agent: bool, is_here: bool) {
        let active = self.event();
        self.sessions.push(Modelled {
            session,
            active,
            spoke: None,
            is_fork,
            is_sub_agent,
            is_here,
        });
    }

    fn create(&mut self, is_here: bool) {
        let options = match is_here {
            true => SessionOptions::new().workspace_root(Path::new(HERE)),
            false => SessionOptions::new(),
        };
        let session = self.store.create_session(options).unwrap();
        self.add(session, false, false, is_here);
    }

    fn act(&mut self, random: &mut Random) {
        if self.sessions.is_empty() || random.one_in(8) {
            return self.create(!random.one_in(3));
        }
        let at = random.below(self.sessions.len());
        let one = &self.sessions[at];
        let (session, is_here) = (one.session.clone(), one.is_here);
        match random.below(10) {
            0..3 => {
                session.append(Message::user_text("words")).unwrap();
                let event = self.event();
                self.sessions[at].active = event;
                self.sessions[at].spoke = Some(event);
            }
            3 => drop(session.note(&Note::new().title("a title")).unwrap()),
            4 => drop(session.note(&Note::new().tags(["a-tag"])).unwrap()),
            5 => drop(session.note(&Note::new().pinned(random.one_in(2))).unwrap()),
            6 => {
                let fork = self.store.fork_session(session.id(), &ForkOptions::new());
                self.add(fork.unwrap(), true, false, is_here);
            }
            7 => {
                let call = format!("call-{}", self.events);
                let asked = ToolUse::new(&*call, "task", &serde_json::json!({})).unwrap();
                session
                    .append(Message::assistant([Block::from(asked)]))
                    .unwrap();
                let spoke = self.event();
                self.sessions[at].spoke = Some(spoke);
                self.sessions[at].active = self.event();
                let sub_agent = session.spawn(&call, SessionOptions::new()).unwrap();
                self.add(sub_agent, false, true, false);
            }
            8 => {
                let seq = random.below(session.last_seq() as usize + 1) as u64;
                if session.rewind_chat(seq).unwrap().is_some() {
                    self.sessions[at].active = self.event();
                }
            }
            _ => {
                if session.compact(&Compaction::new("in short")).is_ok() {
                    self.sessions[at].active = self.event();
                }
            }
        }
    }

    /// What `latest` means, by its definition.
    fn latest(&self, is_here: impl Fn(&Modelled) -> bool) -> Option<SessionId> {
        let all = || {
            let sessions = self.sessions.iter();
            sessions.filter(|one| is_here(one) && !one.is_sub_agent)
        };
        let spoken = all()
            .max_by_key(|one| one.spoke)
            .filter(|one| one.spoke.is_some());
        let begun = || {
            all()
                .filter(|one| !one.is_fork)
                .max_by_key(|one| one.active)
        };
        let found = spoken.or_else(begun);
        let found = found.or_else(|| all().max_by_key(|one| one.active));
        found.map(|one| one.session.id().clone())
    }

    fn check(&self, index: &Index, seed: u64) {
        let here = self.latest(|one| one.is_here);
        let anywhere = self.latest(|_| true);
        let found = self.store.resolve("latest").ok();
        assert_eq!(found, anywhere, "seed {seed}");
        let found = self.store.resolve_in("latest", Path::new(HERE)).ok();
        assert_eq!(found, here.or(anywhere), "seed {seed}");

        let rows = index.sessions(&Filter::default()).unwrap();
        let mut expected: Vec<&Modelled> = self.sessions.iter().collect();
        let pinned = |one: &Modelled| one.session.reader().info().unwrap().pinned;
        expected.sort_by_key(|one| Reverse((pinned(one), one.active)));
        let ids = |rows: &[SessionRow]| rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>();
        let expected: Vec<SessionId> = expected
            .iter()
            .map(|one| one.session.id().clone())
            .collect();
        assert_eq!(ids(&rows), expected, "seed {seed}");
        for row in &rows {
            let info = self.store.read_session(&row.id).unwrap().info().unwrap();
            assert_eq!(row.updated_at, info.updated_at, "seed {seed}");
        }
        self.check_since(index, &rows, seed);
    }

    /// `--since` the moment after a session was active lists those that were active later.
    fn check_since(&self, index: &Index, rows: &[SessionRow], seed: u64) {
        for one in &self.sessions {
            let row = rows.iter().find(|row| row.id == *one.session.id()).unwrap();
            let after = row.updated_at.unwrap().as_millis() + 1;
            let mut filter = Filter::default();
            filter.since = Timestamp::from_millis(after);
            let later = index.sessions(&filter).unwrap().len();
            let expected = self
                .sessions
                .iter()
                .filter(|other| other.active > one.active);
            assert_eq!(later, expected.count(), "seed {seed}");
        }
    }
}

#[test]
fn engine_and_catalogue_agree_on_activity_over_random_histories() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let mut world = World::new();
        let index = Index::open(&world.store, IndexOptions::new()).unwrap();
        for n in 0..40 {
            world.act(&mut random);
            if n % 8 == 7 {
                world.check(&index, seed);
            }
        }
        index.rebuild().unwrap();
        world.check(&index, seed);
    }
}
