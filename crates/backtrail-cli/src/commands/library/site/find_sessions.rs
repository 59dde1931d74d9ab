//! Finding sessions, and what they can be found by.

use std::cell::Cell;
use std::collections::HashMap;

use backtrail_formats::agent_title;
use backtrail_index::{Field, Filter, Group, Index, SearchQuery, SessionRow as IndexRow};
use backtrail_view::library::{Scope, SearchResults};
use backtrail_web::library::{FilterChoices, SessionQuery, SessionRow, SessionsFound};

use super::super::search;
use super::super::sessions::{self, entry};
use super::super::{Answer, StoreLibrary, failure};
use crate::commands::filters::{Filters, NamedFilters};
use crate::commands::list::{SessionLine, agent_of, title_of, trees};
use crate::error::Result;
use crate::short::know;
use crate::text::{one_line, tokens};

pub(super) fn find(library: &StoreLibrary, query: &SessionQuery) -> Answer<SessionsFound> {
    let found = read(library, query).map_err(failure);
    library.site.refresher.wake(library);
    found
}

fn read(library: &StoreLibrary, query: &SessionQuery) -> Result<SessionsFound> {
    let index = library.index_as_left()?;
    know(|| index.short_ids().ok());
    let filter = filter(library, query)?;
    let mut rows = index.sessions(&filter)?;
    let all = match filter == Filter::default() {
        true => rows.len(),
        false => index.values(Field::Sessions)?.len(),
    };
    rows.retain(|row| fits(library, query, row));
    let matching = Cell::new(0);
    let wanted = query.skip..query.skip.saturating_add(query.limit);
    let each = |line: &SessionLine<'_>, is_wordless: bool| {
        if is_wordless && !query.with_wordless {
            return None;
        }
        let number = matching.replace(matching.get() + 1);
        // Only those that are shown are written.
        wanted.contains(&number).then(|| row(line, is_wordless))
    };
    let shown = trees(rows, each).into_iter().flatten().collect();
    Ok(SessionsFound {
        rows: with_models(&index, shown)?,
        matching: matching.get() as u64,
        all: all as u64,
    })
}

/// Returns whether a session fits what the filter of a query cannot say.
fn fits(library: &StoreLibrary, query: &SessionQuery, row: &IndexRow) -> bool {
    let is_here = query.scope != Scope::Project || row.project == library.project;
    let title = query.title.trim().to_lowercase();
    is_here && has_title(row, &title) && has_all_tags(row, &query.tags)
}

pub(super) fn find_messages(
    library: &StoreLibrary,
    words: &str,
    query: &SessionQuery,
) -> Answer<SearchResults> {
    let index = library.recent_index().map_err(failure)?;
    let search = search_query(library, &index, words, query).map_err(failure)?;
    search::find(&index, search)
}

fn search_query(
    library: &StoreLibrary,
    index: &Index,
    words: &str,
    query: &SessionQuery,
) -> Result<SearchQuery> {
    let mut search = SearchQuery::new(words);
    search.filter = filter(library, query)?;
    search.limit = query.limit;
    let is_filter_all = query.scope != Scope::Project && query.title.trim().is_empty();
    if !is_filter_all || query.tags.len() > 1 {
        let rows = index.sessions(&search.filter)?.into_iter();
        let rows = rows.filter(|row| fits(library, query, row));
        search.sessions = Some(rows.map(|row| row.id).collect());
    }
    Ok(search)
}

/// Returns the filter of a query, as the options of `list` make it.
pub(super) fn filter(library: &StoreLibrary, query: &SessionQuery) -> Result<Filter> {
    let named = NamedFilters {
        agents: &query.agents,
        projects: &query.projects,
        models: &query.models,
        tags: &query.tags,
        since: &query.since,
        until: &query.until,
    };
    scoped(library, query.scope, named)
}

/// Adds the scope to named filters.
pub(super) fn scoped(
    library: &StoreLibrary,
    scope: Scope,
    named: NamedFilters<'_>,
) -> Result<Filter> {
    let mut filter = Filters::of_page(named)?.filter(&library.store)?;
    let of_scope = sessions::filter(library, scope);
    filter.workspace = of_scope.workspace;
    if filter.projects.is_empty() {
        filter.projects = of_scope.projects;
    }
    Ok(filter)
}

fn has_title(row: &IndexRow, part: &str) -> bool {
    part.is_empty() || title_of(row).is_some_and(|title| title.to_lowercase().contains(part))
}

fn has_all_tags(row: &IndexRow, tags: &[String]) -> bool {
    let has = |tag: &String| {
        let tag = tag.to_lowercase();
        row.tags.iter().any(|other| other.to_lowercase() == tag)
    };
    tags.iter().all(has)
}

fn row(line: &SessionLine<'_>, is_wordless: bool) -> SessionRow {
    SessionRow {
        entry: entry(line, is_wordless),
        model: String::new(),
        tokens: tokens(&line.spending),
    }
}

/// Returns sessions, one by one and without their relatives.
pub(super) fn alone(index: &Index, filter: &Filter) -> Result<Vec<SessionRow>> {
    with_models(index, trees(index.sessions(filter)?, row))
}

/// Adds the models that answered most.
fn with_models(index: &Index, mut rows: Vec<SessionRow>) -> Result<Vec<SessionRow>> {
    let ids = rows.iter().filter_map(|row| row.entry.id.parse().ok());
    let ids: Vec<backtrail::SessionId> = ids.collect();
    let mut models = index.main_models(&ids.iter().collect::<Vec<_>>())?;
    for row in &mut rows {
        let model = models.remove(&row.entry.id).unwrap_or_default();
        row.model = one_line(&model, 60);
    }
    Ok(rows)
}

pub(super) fn choices(library: &StoreLibrary) -> Answer<FilterChoices> {
    read_choices(library).map_err(failure)
}

fn read_choices(library: &StoreLibrary) -> Result<FilterChoices> {
    let index = library.index_as_left()?;
    let rows = index.sessions(&Filter::default())?;
    let agents = most_used(rows.iter().filter_map(agent_of));
    let models = index.spending_by(&Filter::default(), &[Group::Model])?.by;
    let models = models.into_iter();
    let mut models: Vec<(String, u64)> = models
        .filter_map(|row| Some((row.key?, row.spending.calls + row.spending.estimated_calls)))
        .collect();
    sort(&mut models);
    Ok(FilterChoices {
        agents: agents
            .into_iter()
            .map(|name| (name.clone(), one_line(agent_title(&name), 60)))
            .collect(),
        projects: most_used(rows.iter().filter_map(|row| {
            let project = row.project.as_ref();
            project.map(|project| project.name.as_str())
        })),
        models: models.into_iter().map(|(name, _)| name).collect(),
        tags: most_used(
            rows.iter()
                .flat_map(|row| row.tags.iter().map(String::as_str)),
        ),
    })
}

/// Returns different names, the most frequent first.
fn most_used<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(name, n)| (name.to_owned(), n));
    let mut counts: Vec<(String, u64)> = counts.collect();
    sort(&mut counts);
    counts.into_iter().map(|(name, _)| name).collect()
}

fn sort(counts: &mut [(String, u64)]) {
    counts.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
}
