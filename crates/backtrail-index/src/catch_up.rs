//! Catching up: adds new records of the trails to the catalogue and the search index, in
//! one pass.

use std::thread;
use std::time::Duration;

use backtrail::plumbing::LinkRefused;

use crate::catalogue::{Catalogue, Opened, Paths};
use crate::error::{Error, Result};
use crate::files::{create_dir, find_link};
use crate::index::{CatchUp, Index};
use crate::ingest::Ingest;
use crate::lock::Lock;
use crate::plan::{Derived, Plan};
use crate::search::{self, SearchIndex, SearchWriter};
use crate::trail_dirs::{KnownDirs, TrailDir, list_trail_dirs};

/// How long to wait for another process.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a rebuild waits for another process.
const REBUILD_PATIENCE: Duration = Duration::from_secs(600);
/// If there is more new data than this, rebuilding beside the old catalogue is better
/// than one large transaction.
const LARGE: u64 = 64 << 20;
/// If there is less new data than this, it is searched in memory and indexed later.
pub(crate) const SMALL: u64 = 512 << 10;

/// What a query needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wants {
    search: bool,
    /// Whether new records are written to the search index however few they are.
    all: bool,
    rebuild_catalogue: bool,
    rebuild_search: bool,
}

impl Wants {
    pub(crate) const CATALOGUE: Self = Self {
        search: false,
        all: false,
        rebuild_catalogue: false,
        rebuild_search: false,
    };
    pub(crate) const SEARCH: Self = Self {
        search: true,
        ..Self::CATALOGUE
    };
    pub(crate) const EVERYTHING: Self = Self {
        all: true,
        ..Self::SEARCH
    };
    pub(crate) const REBUILD: Self = Self {
        rebuild_catalogue: true,
        rebuild_search: true,
        ..Self::EVERYTHING
    };

    /// The same, but rebuilding what turned out to be damaged.
    pub(crate) fn rebuild_if(self, error: &Error) -> Self {
        match error {
            Error::Search { .. } => Self {
                rebuild_search: true,
                ..self
            },
            _ => Self {
                rebuild_catalogue: true,
                ..self
            },
        }
    }
}

/// The open catalogue and search index.
#[derive(Debug, Default)]
pub(crate) struct IndexState {
    catalogue: Option<Catalogue>,
    pub(crate) search: Option<SearchIndex>,
    /// The records that are not in the search index on disk.
    pub(crate) backlog: Plan,
    report: CatchUp,
    caught_up: Option<Wants>,
}

impl IndexState {
    pub(crate) fn catalogue(&self) -> Result<&Catalogue> {
        let missing = || Error::Search {
            doing: "cannot open the catalogue",
            what: "it is not up to date".to_owned(),
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

/// Where new records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteTarget {
    Disk,
    /// The disk cannot be written, so new records only exist in this process.
    Memory,
    /// A link is in the way, so nothing on disk is opened.
    OnlyMemory,
}

/// A catalogue to update, and what it must add.
#[derive(Debug)]
struct CatalogueTarget {
    catalogue: Catalogue,
    place: CataloguePlace,
    plan: Plan,
    sessions: Vec<TrailDir>,
    workspaces: Vec<TrailDir>,
}

/// Where a catalogue is that is updated.
#[derive(Debug)]
enum CataloguePlace {
    /// It is up to date.
    Done,
    InPlace(#[expect(dead_code, reason = "it is held, not used")] Lock),
    /// It will replace the one on disk.
    Beside(#[expect(dead_code, reason = "it is held, not used")] Lock),
    Memory,
}

impl Index {
    fn paths(&self) -> Paths {
        Paths::new(&self.dir())
    }

    /// Returns how long to wait for other processes; a rebuild has time.
    fn patience(&self, rebuild: bool) -> Duration {
        match rebuild {
            true => REBUILD_PATIENCE,
            false => self.options.patience.unwrap_or(PATIENCE),
        }
    }

    /// Updates what a query needs.
    pub(crate) fn bring_up(&self, state: &mut IndexState, wants: Wants) -> Result<()> {
        let is_done = |before: Wants| before.search >= wants.search;
        let is_enough = self.options.once || self.options.as_left;
        if is_enough && state.caught_up.is_some_and(is_done) {
            return Ok(());
        }
        if self.options.as_left {
            self.open_as_left(state, wants)?;
            state.caught_up = Some(wants);
            return Ok(());
        }
        match self.bring_up_in(self.write_target(state), state, wants) {
            Err(error) if error.is_unwritable() => {
                *state = IndexState {
                    report: state.take_report(),
                    ..IndexState::default()
                };
                self.bring_up_in(WriteTarget::Memory, state, wants)?;
            }
            done => done?,
        }
        state.caught_up = Some(wants);
        Ok(())
    }

    /// Opens what is on disk, and nothing else.
    fn open_as_left(&self, state: &mut IndexState, wants: Wants) -> Result<()> {
        let is_readable = find_link(&self.dir()).is_none();
        let opened = match is_readable {
            true => self.paths().open(false)?,
            false => Opened::Not("a link is in the way"),
        };
        state.catalogue = Some(match opened {
            Opened::Trusted(catalogue) => catalogue,
            Opened::Not(_) => Catalogue::empty_in_memory()?,
        });
        if wants.search && is_readable {
            state.search = SearchIndex::open(&self.dir())?.usable();
        }
        Ok(())
    }

    /// Creates the directory of derived data, and decides where new records are written.
    fn write_target(&self, state: &mut IndexState) -> WriteTarget {
        let dir = self.dir();
        if let Some(link) = find_link(&dir) {
            state.note(format!(
                "the index is only in memory: {}",
                LinkRefused::at(&link)
            ));
            return WriteTarget::OnlyMemory;
        }
        match dir.is_dir() || create_dir(&dir).is_ok() {
            true => WriteTarget::Disk,
            false => WriteTarget::Memory,
        }
    }

    fn bring_up_in(&self, place: WriteTarget, state: &mut IndexState, wants: Wants) -> Result<()> {
        let target = self.catalogue_target(place, state, wants)?;
        let search = match wants.search {
            true => self.search_target(place, state, wants, &target.sessions)?,
            false => None,
        };
        self.ingest(state, &target, search)?;
        let (catalogue, paths) = (target.catalogue, self.paths());
        state.catalogue = Some(match target.place {
            CataloguePlace::InPlace(_) => {
                paths.write_seal()?;
                catalogue
            }
            CataloguePlace::Beside(_) => paths.put_in_place(catalogue)?,
            CataloguePlace::Done | CataloguePlace::Memory => catalogue,
        });
        Ok(())
    }

    /// Updates the catalogue and the search index.
    fn ingest(
        &self,
        state: &mut IndexState,
        target: &CatalogueTarget,
        mut search: Option<(SearchWriter, Plan, Lock)>,
    ) -> Result<()> {
        let mut update = match target.place {
            CataloguePlace::Done => None,
            _ => Some(target.catalogue.begin(&self.options.prices)?),
        };
        let mut targets: Vec<(&mut dyn Derived, &Plan)> = Vec::new();
        if let Some(update) = &mut update {
            targets.push((update, &target.plan));
        }
        if let Some((writer, plan, _)) = &mut search {
            targets.push((writer, plan));
        }
        if targets.is_empty() {
            return Ok(());
        }
        let mut report = CatchUp::default();
        Ingest::new(self, targets).run(&mut report)?;
        let is_fresh = match target.place {
            CataloguePlace::Beside(_) => true,
            CataloguePlace::Memory => target.plan.bytes == target.plan.total,
            CataloguePlace::Done | CataloguePlace::InPlace(_) => false,
        };
        let before_commit = || match target.place {
            CataloguePlace::InPlace(_) => self.paths().begin_commit(),
            _ => Ok(()),
        };
        // Both have much to do at the end and are independent.
        let (index, ended) = thread::scope(|scope| {
            let commit = || search.as_mut().map(|(writer, ..)| writer.commit());
            let committing = scope.spawn(commit);
            let ended = update.map_or(Ok(()), |update| {
                update.end(&self.store, &target.workspaces, is_fresh, before_commit)
            });
            match committing.join() {
                Ok(index) => (index, ended),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        ended?;
        if let Some(index) = index {
            state.search = Some(index?);
        }
        state.report.bytes += report.bytes;
        state.report.sessions += report.sessions;
        Ok(())
    }

    /// Finds out what the catalogue must add, and where.
    fn catalogue_target(
        &self,
        place: WriteTarget,
        state: &mut IndexState,
        wants: Wants,
    ) -> Result<CatalogueTarget> {
        let opened = match state.catalogue.take() {
            Some(catalogue) => Some(catalogue),
            None if place == WriteTarget::OnlyMemory => None,
            None => match self.paths().open(false)? {
                Opened::Trusted(catalogue) => Some(catalogue),
                Opened::Not(_) => None,
            },
        };
        let Some(catalogue) = opened.filter(|_| !wants.rebuild_catalogue) else {
            return match place {
                WriteTarget::Disk => self.target_on_disk(state, wants, None),
                _ => self.target_in_memory(None),
            };
        };
        let target = self.target(catalogue, CataloguePlace::Memory)?;
        match target.place {
            CataloguePlace::Done => Ok(target),
            _ if place != WriteTarget::Disk || target.catalogue.is_in_memory() => {
                self.target_in_memory(Some(target.catalogue))
            }
            _ => self.target_on_disk(state, wants, Some(target.catalogue)),
        }
    }

    fn target_on_disk(
        &self,
        state: &mut IndexState,
        wants: Wants,
        opened: Option<Catalogue>,
    ) -> Result<CatalogueTarget> {
        let paths = self.paths();
        let Some(lock) = Lock::take(
            &paths.beside("lock"),
            self.patience(wants.rebuild_catalogue),
        )?
        else {
            return self.target_in_memory(opened);
        };
        drop(opened);
        if !wants.rebuild_catalogue {
            match paths.open(true)? {
                Opened::Trusted(catalogue) => {
                    let mut target = self.target(catalogue, CataloguePlace::Memory)?;
                    let bytes = target.plan.bytes;
                    if bytes <= LARGE || bytes <= target.plan.total / 2 {
                        if !matches!(target.place, CataloguePlace::Done) {
                            target.place = CataloguePlace::InPlace(lock);
                        }
                        return Ok(target);
                    }
                }
                Opened::Not(why) if paths.database().exists() => {
                    state.note(format!("the catalogue was rebuilt: {why}"));
                }
                Opened::Not(_) => {}
            }
        }
        self.target(paths.create_beside()?, CataloguePlace::Beside(lock))
    }

    fn target_in_memory(&self, opened: Option<Catalogue>) -> Result<CatalogueTarget> {
        let catalogue = match opened {
            Some(catalogue) if catalogue.is_in_memory() => catalogue,
            Some(catalogue) => catalogue.copy_to_memory()?,
            None => Catalogue::empty_in_memory()?,
        };
        self.target(catalogue, CataloguePlace::Memory)
    }

    /// Compares a catalogue with the trails. If it has everything, it stays where it is.
    fn target(&self, catalogue: Catalogue, place: CataloguePlace) -> Result<CatalogueTarget> {
        let known = catalogue.known()?;
        let known_workspaces = catalogue.known_workspaces()?;
        let root = self.store.root();
        let sessions = list_trail_dirs(&root.join("sessions"), &known)?;
        let workspaces = list_trail_dirs(&root.join("workspaces"), &known_workspaces)?;
        let plan = Plan::new(&self.store, &known, &sessions)?;
        let prices = &self.options.prices;
        let of_workspaces = (&known_workspaces, workspaces.as_slice());
        let is_current = catalogue.is_current(&plan, of_workspaces, prices)?;
        Ok(CatalogueTarget {
            catalogue,
            place: if is_current {
                CataloguePlace::Done
            } else {
                place
            },
            plan,
            sessions,
            workspaces,
        })
    }

    /// Finds out what the search index must add. Returns `None` if nothing is to be
    /// written; missing records are in the state's backlog.
    fn search_target(
        &self,
        place: WriteTarget,
        state: &mut IndexState,
        wants: Wants,
        look: &[TrailDir],
    ) -> Result<Option<(SearchWriter, Plan, Lock)>> {
        let dir = self.dir();
        let mut opened = match wants.rebuild_search || place == WriteTarget::OnlyMemory {
            true => None,
            false => SearchIndex::open(&dir)?.usable(),
        };
        if opened.as_ref().is_some_and(|dir| has_all(dir, look)) && !wants.rebuild_search {
            state.search = opened;
            state.backlog = Plan::default();
            return Ok(None);
        }
        let known = opened.as_ref().map(known_of).unwrap_or_default();
        let plan = Plan::new(&self.store, &known, look)?;
        let is_small = plan.is_empty() || plan.bytes <= SMALL && !wants.all;
        let lock = match place {
            WriteTarget::Disk if opened.is_none() || !is_small => {
                let patience = self.patience(wants.rebuild_search);
                Lock::take(&dir.join("search.lock"), patience)?
            }
            _ => None,
        };
        let Some(lock) = lock else {
            state.search = opened;
            state.backlog = plan;
            return Ok(None);
        };
        // Another process may have caught up meanwhile.
        if !wants.rebuild_search {
            let found = SearchIndex::open(&dir)?;
            if let search::Opened::Unusable(why) = &found {
                state.note(format!("the search index was rebuilt: {why}"));
            }
            opened = found.usable();
        }
        let known = opened.as_ref().map(known_of).unwrap_or_default();
        let look = list_trail_dirs(&self.store.root().join("sessions"), &KnownDirs::new())?;
        let plan = Plan::new(&self.store, &known, &look)?;
        state.backlog = Plan::default();
        let writer = match &opened {
            Some(_) if plan.is_empty() => {
                state.search = opened;
                return Ok(None);
            }
            Some(found) => SearchWriter::resume(&dir, found)?,
            None => SearchWriter::rebuild(&dir)?,
        };
        Ok(Some((writer, plan, lock)))
    }
}

/// Returns whether the search index has exactly the existing records. Both are in order.
fn has_all(dir: &SearchIndex, look: &[TrailDir]) -> bool {
    let known = dir.known().iter();
    let known = known.map(|trail| (trail.session.as_str(), &trail.known.seen));
    let seen = look.iter().flat_map(|session| {
        let trails = session.trails.iter();
        trails.map(|trail| (session.id.as_str(), trail))
    });
    known.eq(seen)
}

/// Returns what the search index has of each session.
fn known_of(dir: &SearchIndex) -> KnownDirs {
    let mut known = KnownDirs::new();
    for trail in dir.known() {
        let dir = known.entry(trail.session.to_string()).or_default();
        dir.trails.push(trail.known);
    }
    known
}
