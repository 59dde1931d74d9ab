//! Catching up: what is new in the trails goes into catalogue and search, in one reading.

use std::thread;
use std::time::Duration;

use crate::catalogue::{Catalogue, Opened, Paths, copy_to_memory};
use crate::error::{Error, Result};
use crate::index::{CatchUp, Index};
use crate::lock::Lock;
use crate::plan::Plan;
use crate::search::{self, SearchDir, SearchWriter};
use crate::survey::{Known, KnownTrail, Seen, TrailSeen, survey};
use crate::work::Work;

/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long another process is waited for by whoever wants all anew.
const REBUILD_PATIENCE: Duration = Duration::from_secs(600);
/// So much that is new is better built anew than added in one transaction.
const LARGE: u64 = 64 << 20;
/// So little that is new is searched in memory, and indexed with what comes later.
pub(crate) const SMALL: u64 = 512 << 10;

/// What is asked of derived data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wants {
    search: bool,
    /// Whether what is new is written to the search index however little it is.
    all: bool,
    catalogue_anew: bool,
    search_anew: bool,
}

impl Wants {
    pub(crate) const CATALOGUE: Self = Self {
        search: false,
        all: false,
        catalogue_anew: false,
        search_anew: false,
    };
    pub(crate) const SEARCH: Self = Self {
        search: true,
        ..Self::CATALOGUE
    };
    pub(crate) const EVERYTHING: Self = Self {
        all: true,
        ..Self::SEARCH
    };
    pub(crate) const ANEW: Self = Self {
        catalogue_anew: true,
        search_anew: true,
        ..Self::EVERYTHING
    };

    /// The same, with what turned out to be damaged built anew.
    pub(crate) fn anew_if(self, error: &Error) -> Self {
        match error {
            Error::Search { .. } => Self {
                search_anew: true,
                ..self
            },
            _ => Self {
                catalogue_anew: true,
                ..self
            },
        }
    }
}

/// What is open.
#[derive(Debug, Default)]
pub(crate) struct State {
    catalogue: Option<Catalogue>,
    pub(crate) search: Option<SearchDir>,
    /// What of the trails is not in the search index on disk.
    pub(crate) backlog: Plan,
    report: CatchUp,
    caught_up: Option<Wants>,
}

impl State {
    pub(crate) fn catalogue(&self) -> Result<&Catalogue> {
        let missing = || Error::Search {
            doing: "cannot open the catalogue",
            what: "it has not caught up".to_owned(),
        };
        self.catalogue.as_ref().ok_or_else(missing)
    }

    pub(crate) fn take_report(&mut self) -> CatchUp {
        std::mem::take(&mut self.report)
    }

    pub(crate) fn put_report(&mut self, report: CatchUp, damage: &Error) {
        self.report = report;
        self.note(match damage {
            Error::Search { .. } => "the search index was damaged",
            _ => "the catalogue was damaged",
        });
    }

    fn note(&mut self, what: impl Into<String>) {
        self.report.rebuilt.push(what.into());
    }
}

/// Where what is new is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Disk,
    /// Nothing can be written: what is derived now is gone with this process.
    Memory,
}

/// What the catalogue has to take in.
#[derive(Debug)]
struct Task {
    plan: Plan,
    sessions: Vec<Seen>,
    workspaces: Vec<Seen>,
    is_current: bool,
}

/// A catalogue that takes something in, and what becomes of it.
#[derive(Debug)]
enum Target {
    /// It is current.
    Done(Catalogue, Task),
    InPlace(Catalogue, Task, Lock),
    Beside(Catalogue, Task, Lock),
    Memory(Catalogue, Task),
}

impl Index {
    fn paths(&self) -> Paths {
        Paths::new(&self.dir())
    }

    /// Returns how long to wait for others. Whoever wants all anew has the time.
    fn patience(&self, anew: bool) -> Duration {
        match anew {
            true => REBUILD_PATIENCE,
            false => self.options.patience.unwrap_or(PATIENCE),
        }
    }

    /// Brings what is asked up to date.
    pub(crate) fn bring_up(&self, state: &mut State, wants: Wants) -> Result<()> {
        let is_done = |before: Wants| before.search >= wants.search;
        if self.options.once && state.caught_up.is_some_and(is_done) {
            return Ok(());
        }
        let done = match self.make_dir() {
            true => self.bring_up_in(Place::Disk, state, wants),
            false => self.bring_up_in(Place::Memory, state, wants),
        };
        match done {
            Err(error) if error.is_unwritable() => {
                *state = State {
                    report: state.take_report(),
                    ..State::default()
                };
                self.bring_up_in(Place::Memory, state, wants)?;
            }
            done => done?,
        }
        state.caught_up = Some(wants);
        Ok(())
    }

    /// Makes the directory of derived data; returns whether it is there.
    fn make_dir(&self) -> bool {
        let dir = self.dir();
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        dir.is_dir() || builder.create(&dir).is_ok() || dir.is_dir()
    }

    fn bring_up_in(&self, place: Place, state: &mut State, wants: Wants) -> Result<()> {
        let target = self.catalogue_target(place, state, wants)?;
        let look = match &target {
            Target::Done(_, task)
            | Target::InPlace(_, task, _)
            | Target::Beside(_, task, _)
            | Target::Memory(_, task) => &task.sessions,
        };
        let search = match wants.search {
            true => self.search_target(place, state, wants, look)?,
            false => None,
        };
        let catalogue = match target {
            Target::Done(catalogue, _) => {
                if let Some((writer, plan, _lock)) = search {
                    let mut work = Work::new(self, None, Some((writer, &plan)));
                    work.feed()?;
                    let dir = work.end_search()?;
                    state.search = dir;
                    work.report(&mut state.report);
                }
                catalogue
            }
            Target::InPlace(catalogue, task, _lock) => {
                let paths = self.paths();
                let before = || paths.begin_commit();
                self.take_in(state, &catalogue, &task, search, false, before)?;
                paths.write_seal()?;
                catalogue
            }
            Target::Beside(catalogue, task, _lock) => {
                self.take_in(state, &catalogue, &task, search, true, || Ok(()))?;
                Catalogue::new(self.paths().put_in_place(catalogue.into_db())?)
            }
            Target::Memory(catalogue, task) => {
                let fresh = task.plan.bytes == task.plan.total;
                self.take_in(state, &catalogue, &task, search, fresh, || Ok(()))?;
                catalogue
            }
        };
        state.catalogue = Some(catalogue);
        Ok(())
    }

    /// Feeds the catalogue, and the search index with it.
    fn take_in(
        &self,
        state: &mut State,
        catalogue: &Catalogue,
        task: &Task,
        search: Option<(SearchWriter, Plan, Lock)>,
        fresh: bool,
        before_commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (writer, plan, _lock) = match search {
            Some((writer, plan, lock)) => (Some(writer), plan, Some(lock)),
            None => (None, Plan::default(), None),
        };
        let intake = catalogue.begin(&self.options.prices)?;
        let writer = writer.map(|writer| (writer, &plan));
        let mut work = Work::new(self, Some((intake, &task.plan)), writer);
        work.feed()?;
        // Both have much to do at their end, and nothing with each other.
        let search = work.search.take();
        let (dir, ended) = thread::scope(|scope| {
            let committing = scope.spawn(|| search.map(|(mut writer, _)| writer.commit()));
            let ended = work.end_catalogue(&task.workspaces, fresh, before_commit);
            match committing.join() {
                Ok(dir) => (dir, ended),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        ended?;
        if let Some(dir) = dir {
            state.search = Some(dir?);
        }
        work.report(&mut state.report);
        Ok(())
    }

    /// Finds out what the catalogue has to take in, and where.
    fn catalogue_target(&self, place: Place, state: &mut State, wants: Wants) -> Result<Target> {
        let opened = match state.catalogue.take() {
            Some(catalogue) => Some(catalogue),
            None => match self.paths().open(false)? {
                Opened::Trusted(db) => Some(Catalogue::new(db)),
                Opened::Not(_) => None,
            },
        };
        if let Some(catalogue) = opened.filter(|_| !wants.catalogue_anew) {
            let task = self.task(&catalogue)?;
            if task.is_current {
                return Ok(Target::Done(catalogue, task));
            }
            if place == Place::Memory || catalogue.is_in_memory() {
                return self.target_in_memory(Some(catalogue));
            }
            return self.target_on_disk(state, wants, Some(catalogue));
        }
        match place {
            Place::Disk => self.target_on_disk(state, wants, None),
            Place::Memory => self.target_in_memory(None),
        }
    }

    fn target_on_disk(
        &self,
        state: &mut State,
        wants: Wants,
        opened: Option<Catalogue>,
    ) -> Result<Target> {
        let paths = self.paths();
        let Some(lock) = Lock::take(&paths.lock(), self.patience(wants.catalogue_anew))? else {
            return self.target_in_memory(opened);
        };
        drop(opened);
        if wants.catalogue_anew {
            return self.target_beside(lock);
        }
        match paths.open(true)? {
            Opened::Trusted(db) => {
                let catalogue = Catalogue::new(db);
                let task = self.task(&catalogue)?;
                if task.is_current {
                    return Ok(Target::Done(catalogue, task));
                }
                if task.plan.bytes > LARGE && task.plan.bytes > task.plan.total / 2 {
                    return self.target_beside(lock);
                }
                Ok(Target::InPlace(catalogue, task, lock))
            }
            Opened::Not(why) => {
                if paths.database().exists() {
                    state.note(format!("the catalogue was built anew: {why}"));
                }
                self.target_beside(lock)
            }
        }
    }

    fn target_beside(&self, lock: Lock) -> Result<Target> {
        let catalogue = Catalogue::new(self.paths().create_beside()?);
        let task = self.task(&catalogue)?;
        Ok(Target::Beside(catalogue, task, lock))
    }

    fn target_in_memory(&self, opened: Option<Catalogue>) -> Result<Target> {
        let catalogue = match opened {
            Some(catalogue) if catalogue.is_in_memory() => catalogue,
            Some(catalogue) => Catalogue::new(copy_to_memory(catalogue.db())?),
            None => Catalogue::empty_in_memory()?,
        };
        let task = self.task(&catalogue)?;
        Ok(match task.is_current {
            true => Target::Done(catalogue, task),
            false => Target::Memory(catalogue, task),
        })
    }

    /// Compares what the catalogue knows with what there is.
    fn task(&self, catalogue: &Catalogue) -> Result<Task> {
        let known = catalogue.known()?;
        let known_workspaces = catalogue.known_workspaces()?;
        let root = self.store.root();
        let sessions = survey(&root.join("sessions"), &known)?;
        let workspaces = survey(&root.join("workspaces"), &known_workspaces)?;
        let plan = Plan::new(&self.store, &known, &sessions)?;
        let prices = &self.options.prices;
        let of_workspaces = (&known_workspaces, workspaces.as_slice());
        let is_current = catalogue.is_current(&plan, of_workspaces, prices)?;
        Ok(Task {
            plan,
            sessions,
            workspaces,
            is_current,
        })
    }

    /// Finds out what the search index has to take in. `None`: nothing that is to be
    /// written; what it lacks is in the state's backlog.
    fn search_target(
        &self,
        place: Place,
        state: &mut State,
        wants: Wants,
        look: &[Seen],
    ) -> Result<Option<(SearchWriter, Plan, Lock)>> {
        let dir = self.dir();
        let mut opened = match wants.search_anew {
            true => None,
            false => match SearchDir::open(&dir)? {
                search::Opened::Ready(found) => Some(found).filter(|found| !found.is_worn()),
                search::Opened::Missing | search::Opened::Unusable(_) => None,
            },
        };
        if opened.as_ref().is_some_and(|dir| has_all(dir, look)) && !wants.search_anew {
            state.search = opened;
            state.backlog = Plan::default();
            return Ok(None);
        }
        let known = opened.as_ref().map(known_of).unwrap_or_default();
        let plan = Plan::new(&self.store, &known, look)?;
        let is_small = opened.is_some() && plan.bytes <= SMALL && !wants.all;
        if place == Place::Memory || plan.is_empty() && opened.is_some() || is_small {
            state.search = opened;
            state.backlog = plan;
            return Ok(None);
        }
        let patience = self.patience(wants.search_anew);
        let Some(lock) = Lock::take(&dir.join("search.lock"), patience)? else {
            state.search = opened;
            state.backlog = plan;
            return Ok(None);
        };
        // Another process may have caught up meanwhile.
        if !wants.search_anew {
            opened = match SearchDir::open(&dir)? {
                search::Opened::Ready(found) => Some(found).filter(|found| !found.is_worn()),
                search::Opened::Missing => None,
                search::Opened::Unusable(why) => {
                    state.note(format!("the search index was built anew: {why}"));
                    None
                }
            };
        }
        let known = opened.as_ref().map(known_of).unwrap_or_default();
        let look = survey(&self.store.root().join("sessions"), &Known::new())?;
        let plan = Plan::new(&self.store, &known, &look)?;
        state.backlog = Plan::default();
        let writer = match &opened {
            Some(_) if plan.is_empty() => {
                state.search = opened;
                return Ok(None);
            }
            Some(found) => SearchWriter::go_on(&dir, found)?,
            None => SearchWriter::anew(&dir)?,
        };
        Ok(Some((writer, plan, lock)))
    }
}

/// Returns whether the search index has exactly what is there: both are in order, so that
/// it takes one look at each.
fn has_all(dir: &SearchDir, look: &[Seen]) -> bool {
    let mut known = dir.known().iter();
    let mut is_known = |session: &Seen, trail: &TrailSeen| {
        known.next().is_some_and(|known| {
            known.session.as_str() == session.id
                && (known.number, known.bytes) == (trail.number, trail.bytes)
                && known.modified == trail.modified
        })
    };
    let mut trails = look
        .iter()
        .flat_map(|session| session.trails.iter().map(move |trail| (session, trail)));
    trails.all(|(session, trail)| is_known(session, trail)) && known.next().is_none()
}

/// Returns what the search index has of each session.
fn known_of(dir: &SearchDir) -> Known {
    let mut known = Known::new();
    for trail in dir.known() {
        let dir = known.entry(trail.session.to_string()).or_default();
        dir.trails.push(KnownTrail {
            seen: TrailSeen {
                number: trail.number,
                bytes: trail.bytes,
                modified: trail.modified,
            },
            read_to: trail.end,
            sum: trail.sum,
        });
    }
    known
}
