//! The parts of a run, and what they share.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::args::Args;
use crate::report::Entry;
use crate::snapshot::Subjects;
use crate::trail::fixture::{Made, make_session};
use crate::{find, follow, import, live, session, snapshot, store, trail, ui, web};

/// One part of the measurements.
pub(crate) struct Part {
    /// Its name for `--only`.
    pub(crate) name: &'static str,
    /// Other names, which do only some of it.
    pub(crate) also: &'static [&'static str],
    /// Runs it in a directory of its own.
    pub(crate) measure: fn(&Args, &Path, &Shared) -> Result<Vec<Entry>>,
}

/// A group of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    Trail,
    Session,
    Snapshot,
    Store,
    Find,
    Import,
    Follow,
    Live,
    Ui,
    Web,
}

impl Area {
    /// Parts that wait for the disk come first, before anything fills the page cache.
    const ALL: [Self; 10] = [
        Self::Trail,
        Self::Session,
        Self::Snapshot,
        Self::Store,
        Self::Find,
        Self::Import,
        Self::Follow,
        Self::Live,
        Self::Ui,
        Self::Web,
    ];

    fn parts(self) -> &'static [Part] {
        match self {
            Self::Trail => &trail::PARTS,
            Self::Session => &session::PARTS,
            Self::Snapshot => &snapshot::PARTS,
            Self::Store => &store::PARTS,
            Self::Find => &find::PARTS,
            Self::Import => &import::PARTS,
            Self::Follow => &follow::PARTS,
            Self::Live => &live::PARTS,
            Self::Ui => &ui::PARTS,
            Self::Web => &web::PARTS,
        }
    }
}

/// What several parts need, created on first use.
#[derive(Debug)]
pub(crate) struct Shared {
    dir: PathBuf,
    long: OnceCell<Made>,
    subjects: OnceCell<Result<Subjects, String>>,
}

impl Shared {
    pub(crate) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            long: OnceCell::new(),
            subjects: OnceCell::new(),
        }
    }

    /// Returns the long session, written to disk.
    pub(crate) fn long(&self, args: &Args) -> Result<&Made> {
        if let Some(made) = self.long.get() {
            return Ok(made);
        }
        let dir = self.dir.join("long");
        std::fs::create_dir(&dir)?;
        let made = make_session(&dir, args.pick(1_000_000_000, 100_000_000))?;
        settle(&dir)?;
        Ok(self.long.get_or_init(|| made))
    }

    /// Returns the trees whose snapshots are measured, or the reason why there are none.
    pub(crate) fn subjects(&self, args: &Args) -> Result<Result<&Subjects, &str>> {
        if self.subjects.get().is_none() {
            let made = Subjects::make(args, &self.dir.join("trees"))?;
            drop(self.subjects.set(made));
        }
        let made = self.subjects.get().ok_or("there are no trees")?;
        Ok(made.as_ref().map_err(String::as_str))
    }
}

/// Measures all parts, or the requested ones. A failing part does not affect the others.
pub(crate) fn measure(args: &Args, dir: &Path) -> Result<Vec<Entry>> {
    let shared = Shared::new(dir);
    let mut entries = Vec::new();
    let mut known = false;
    for part in all().filter(|(area, part)| is_wanted(args, *area, part)) {
        known = true;
        entries.extend(measure_part(args, dir, &shared, part.1)?);
    }
    if !known {
        let names: Vec<&str> = all().flat_map(|(_, part)| part.names()).collect();
        return Err(format!("--only takes one of {}", names.join(", ")).into());
    }
    Ok(entries)
}

fn all() -> impl Iterator<Item = (Area, &'static Part)> {
    let parts = |area: Area| area.parts().iter().map(move |part| (area, part));
    Area::ALL.into_iter().flat_map(parts)
}

fn is_wanted(args: &Args, area: Area, part: &Part) -> bool {
    let only = args.only.as_deref();
    args.area.is_none_or(|asked| asked == area)
        && only.is_none_or(|only| part.names().any(|name| name == only))
}

impl Part {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }
}

fn measure_part(args: &Args, dir: &Path, shared: &Shared, part: &Part) -> Result<Vec<Entry>> {
    eprintln!("measuring: {}", part.name);
    let dir = dir.join(part.name);
    std::fs::create_dir(&dir)?;
    settle(&dir)?;
    (part.measure)(args, &dir, shared).or_else(|error| {
        eprintln!("error: {}: {error}", part.name);
        Ok(vec![Entry::Failed {
            name: part.name.to_owned(),
            why: error.to_string(),
        }])
    })
}

/// Waits until everything is on disk, so that one measurement does not pay for another.
pub(crate) fn settle(dir: &Path) -> Result<()> {
    rustix::fs::syncfs(std::fs::File::open(dir)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn wanted(line: &str) -> Vec<&'static str> {
        let words = line.split_whitespace().map(Into::into);
        let args = Args::parse(words).unwrap();
        let parts = all().filter(|(area, part)| is_wanted(&args, *area, part));
        parts.map(|(_, part)| part.name).collect()
    }

    #[test]
    fn a_name_means_one_part() {
        let names: Vec<&str> = all().flat_map(|(_, part)| part.names()).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        for name in names {
            assert_eq!(wanted(&format!("--only {name}")).len(), 1, "{name}");
        }
        assert_eq!(wanted("--only nothing"), [""; 0]);
    }

    #[test]
    fn an_area_means_its_parts_and_none_means_all() {
        let areas = [
            "trail", "session", "snapshot", "store", "find", "import", "follow", "live", "ui",
            "web",
        ];
        let areas = areas.map(wanted);
        let [
            trail,
            session,
            snapshot,
            store,
            find,
            import,
            follow,
            live,
            ui,
            web,
        ] = &areas;
        assert!(trail.contains(&"append") && session.contains(&"turns"));
        assert!(snapshot.contains(&"history"));
        assert!(store.contains(&"gc"));
        assert!(find.contains(&"index"));
        assert!(import.contains(&"totals"));
        assert!(follow.contains(&"grown") && live.contains(&"hooks"));
        assert!(ui.contains(&"browse") && web.contains(&"pages"));
        assert_eq!(wanted(""), areas.concat());
        assert_eq!(wanted("session --only append"), [""; 0]);
    }
}
