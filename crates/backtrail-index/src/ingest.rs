//! Reads new records of the trails once, for the catalogue and the search index together.

use std::collections::BTreeMap;

use backtrail::SessionId;

use crate::catalogue::{CatalogueUpdate, full_text};
use crate::error::{Error, Result};
use crate::feed::{Sink, TrailPlace, feed};
use crate::index::{CatchUp, Index, Progress};
use crate::plan::{ChangedSession, Plan};
use crate::search::SearchWriter;
use crate::trail_dirs::TrailDir;

/// A pass over the new records.
pub(crate) struct Ingest<'a> {
    index: &'a Index,
    catalogue: Option<(CatalogueUpdate<'a>, &'a Plan)>,
    pub(crate) search: Option<(SearchWriter, &'a Plan)>,
    done: u64,
    total: u64,
    sessions: u64,
}

/// What is to be read of one session.
#[derive(Default)]
struct SessionIngest<'a> {
    catalogue: Option<&'a ChangedSession>,
    search: Option<&'a ChangedSession>,
}

impl<'a> Ingest<'a> {
    pub(crate) fn new(
        index: &'a Index,
        catalogue: Option<(CatalogueUpdate<'a>, &'a Plan)>,
        search: Option<(SearchWriter, &'a Plan)>,
    ) -> Self {
        let bytes = |plan: Option<&Plan>| plan.map_or(0, |plan| plan.bytes);
        let total = bytes(catalogue.as_ref().map(|(_, plan)| *plan))
            .max(bytes(search.as_ref().map(|(_, plan)| *plan)));
        Self {
            index,
            catalogue,
            search,
            done: 0,
            total,
            sessions: 0,
        }
    }

    /// Reads everything new, session by session.
    pub(crate) fn feed(&mut self) -> Result<()> {
        let mut wishes: BTreeMap<&'a str, SessionIngest<'a>> = BTreeMap::new();
        if let Some((catalogue, plan)) = &mut self.catalogue {
            let plan: &'a Plan = plan;
            for id in &plan.gone {
                catalogue.forget(id)?;
            }
            for changed in &plan.changed {
                wishes.entry(changed.id.as_str()).or_default().catalogue = Some(changed);
            }
            list_unreadable(catalogue, plan)?;
            self.sessions += plan.gone.len() as u64;
        }
        if let Some((writer, plan)) = &mut self.search {
            let plan: &'a Plan = plan;
            for id in &plan.gone {
                writer.forget_session(&id.parse()?);
            }
            for changed in &plan.changed {
                wishes.entry(changed.id.as_str()).or_default().search = Some(changed);
            }
        }
        self.sessions += wishes.len() as u64;
        self.tell();
        for wish in wishes.into_values() {
            self.feed_session(&wish)?;
        }
        Ok(())
    }

    fn feed_session(&mut self, wish: &SessionIngest<'a>) -> Result<()> {
        let Some(changed) = wish.catalogue.or(wish.search) else {
            return Ok(());
        };
        let id = &changed.id;
        if let (Some((catalogue, _)), Some(changed)) = (&mut self.catalogue, wish.catalogue) {
            if changed.from_start {
                catalogue.forget(id.as_str())?;
            }
            catalogue.settle(id, changed.settled)?;
        }
        if let (Some((writer, _)), Some(changed)) = (&mut self.search, wish.search)
            && changed.from_start
        {
            writer.forget_session(id);
        }
        match self.feed_trails(wish, id) {
            // It is listed as unreadable and hides no other session.
            Err(Error::Store(error)) => {
                if let Some((writer, _)) = &mut self.search {
                    writer.forget_session(id);
                }
                if let Some((catalogue, _)) = &mut self.catalogue {
                    catalogue.unreadable(id, full_text(&error))?;
                }
                Ok(())
            }
            fed => fed,
        }
    }

    fn feed_trails(&mut self, wish: &SessionIngest<'_>, id: &SessionId) -> Result<()> {
        let reader = self.index.store.read_session(id)?;
        let mut trails: BTreeMap<u32, [Option<&TrailPlace>; 2]> = BTreeMap::new();
        for (who, changed) in [wish.catalogue, wish.search].into_iter().enumerate() {
            for place in changed.iter().flat_map(|changed| &changed.places) {
                trails.entry(place.number).or_default()[who] = Some(place);
            }
        }
        for places in trails.into_values() {
            let mut sinks: Vec<(TrailPlace, &mut dyn Sink)> = Vec::new();
            if let (Some((catalogue, _)), Some(place)) = (&mut self.catalogue, places[0]) {
                sinks.push((place.clone(), catalogue.sink()));
            }
            if let (Some((writer, _)), Some(place)) = (&mut self.search, places[1]) {
                sinks.push((place.clone(), writer));
            }
            self.done += feed(&reader, &mut sinks)?;
        }
        self.tell();
        Ok(())
    }

    fn tell(&self) {
        if let Some(tell) = &self.index.options.progress {
            tell(Progress {
                done: self.done.min(self.total),
                total: self.total,
            });
        }
    }

    pub(crate) fn end_catalogue(
        &mut self,
        workspaces: &[TrailDir],
        fresh: bool,
        before_commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let Some((catalogue, _)) = self.catalogue.take() else {
            return Ok(());
        };
        catalogue.end(&self.index.store, workspaces, fresh, before_commit)
    }

    pub(crate) fn report(&self, report: &mut CatchUp) {
        report.bytes += self.done;
        report.sessions += self.sessions;
    }
}

/// Marks the sessions that are unreadable, and unmarks those that no longer are.
fn list_unreadable(catalogue: &mut CatalogueUpdate<'_>, plan: &Plan) -> Result<()> {
    for id in catalogue.were_unreadable()? {
        if !plan.unreadable.iter().any(|(bad, _)| *bad == id) {
            catalogue.settle(&id.parse()?, 0)?;
        }
    }
    for (id, why) in &plan.unreadable {
        catalogue.unreadable(&id.parse()?, why.clone())?;
    }
    Ok(())
}
