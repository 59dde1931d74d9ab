//! Filters: options that verbs share.

mod moment;

use std::path::{Path, PathBuf};

use backtrail::Store;
use backtrail_formats::agent_called;
use backtrail_index::{Field, Filter, Index, SearchQuery, WorkspaceFilter};

pub(crate) use self::moment::Moment;
use crate::error::{CommandError, Result};
use crate::home;
use crate::shell::{quote, quote_path};
use crate::text::{one_line, some_of};

/// Leaves a filter out of a search.
pub(crate) type LeaveOut = fn(&mut SearchQuery);

/// Which sessions to include
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Filters")]
pub(crate) struct Filters {
    /// All workspaces
    #[arg(long, conflicts_with_all = ["here", "workspace"])]
    all: bool,

    /// Only this workspace
    #[arg(long, conflicts_with = "workspace")]
    here: bool,

    /// Only the workspace in this directory, which need not exist
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Only this agent; repeatable, like --project, --model and --tag
    #[arg(long = "agent", value_name = "NAME", value_parser = name)]
    agents: Vec<String>,

    /// Only this project, by its name or remote
    #[arg(long = "project", value_name = "NAME", value_parser = name)]
    projects: Vec<String>,

    /// Only this model, by any part of its name
    #[arg(long = "model", value_name = "NAME", value_parser = name)]
    models: Vec<String>,

    /// Only sessions with this tag
    #[arg(long = "tag", value_name = "TAG", value_parser = name)]
    tags: Vec<String>,

    /// Since this time: 2026-11-01, 14:30, today, yesterday, 3d or "3 days ago"
    #[arg(long, value_name = "WHEN")]
    since: Option<Moment>,

    /// Until this time; a day or month counts in full
    #[arg(long, value_name = "WHEN")]
    until: Option<Moment>,
}

/// Which workspaces to include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Not given.
    Default,
    /// All of them.
    All,
    /// One of them.
    One,
}

/// The values of filters, as the options of commands take them.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedFilters<'a> {
    pub(super) agents: &'a [String],
    pub(super) projects: &'a [String],
    pub(super) models: &'a [String],
    pub(super) tags: &'a [String],
    pub(super) since: &'a Option<String>,
    pub(super) until: &'a Option<String>,
}

impl Filters {
    /// Returns the filters that a page names: values as their options take them.
    pub(super) fn of_page(named: NamedFilters<'_>) -> Result<Self> {
        let moment = |text: &Option<String>| {
            let typed = text.as_deref().map(str::parse::<Moment>).transpose();
            typed.map_err(CommandError::invalid)
        };
        Ok(Self {
            agents: named.agents.to_vec(),
            projects: named.projects.to_vec(),
            models: named.models.to_vec(),
            tags: named.tags.to_vec(),
            since: moment(named.since)?,
            until: moment(named.until)?,
            ..Self::default()
        })
    }

    pub(crate) fn scope(&self) -> Scope {
        match () {
            () if self.here || self.workspace.is_some() => Scope::One,
            // A project may have several.
            () if self.all || !self.projects.is_empty() => Scope::All,
            () => Scope::Default,
        }
    }

    /// Returns whether any filter is given.
    pub(crate) fn is_any(&self) -> bool {
        !self.words().is_empty()
    }

    /// Returns the filter of the options.
    pub(crate) fn filter(&self, store: &Store) -> Result<Filter> {
        let mut filter = Filter::default();
        filter.agents = self.agents.iter().flat_map(|name| meant_by(name)).collect();
        filter.projects = self.projects.clone();
        filter.models = self.models.clone();
        filter.tags = self.tags.clone();
        filter.since = self.since.as_ref().map(|moment| moment.start);
        filter.until = self.until.as_ref().map(|moment| moment.end);
        if let (Some(since), Some(until)) = (&self.since, &self.until)
            && since.start >= until.end
        {
            let what = format!("--since {since} is after --until {until}");
            return Err(CommandError::invalid(what)
                .hint("for one day, give it twice: --since yesterday --until yesterday"));
        }
        filter.workspace = match &self.workspace {
            Some(dir) => Some(workspace_at(store, dir)?),
            None if self.here => Some(this_workspace(store)?),
            None => None,
        };
        Ok(filter)
    }

    /// Returns the filters as they are typed.
    pub(crate) fn words(&self) -> String {
        let each = self.each().into_iter().map(|(typed, _)| typed);
        each.collect::<Vec<_>>().join(" ")
    }

    /// Returns each filter as it is typed, and how to leave it out of a search.
    pub(crate) fn each(&self) -> Vec<(String, LeaveOut)> {
        let mut each: Vec<(String, LeaveOut)> = Vec::new();
        let mut add = |typed: String, leave_out: LeaveOut| {
            if !typed.is_empty() {
                each.push((typed, leave_out));
            }
        };
        let workspace = match &self.workspace {
            Some(dir) => format!("--workspace {}", quote_path(dir)),
            None if self.here => "--here".to_owned(),
            None => String::new(),
        };
        add(workspace, |query| query.filter.workspace = None);
        let list = |option: &str, values: &[String]| {
            let typed = values.iter().map(|it| format!("{option} {}", quote(it)));
            typed.collect::<Vec<_>>().join(" ")
        };
        add(list("--agent", &self.agents), |query| {
            query.filter.agents.clear()
        });
        add(list("--project", &self.projects), |query| {
            query.filter.projects.clear()
        });
        add(list("--model", &self.models), |query| {
            query.filter.models.clear()
        });
        add(list("--tag", &self.tags), |query| query.filter.tags.clear());
        let moment = |option: &str, moment: &Option<Moment>| {
            let typed = moment
                .as_ref()
                .map(|it| format!("{option} {}", quote(&it.to_string())));
            typed.unwrap_or_default()
        };
        add(moment("--since", &self.since), |query| {
            query.filter.since = None
        });
        add(moment("--until", &self.until), |query| {
            query.filter.until = None
        });
        each
    }

    /// Returns hints for the names that do not exist, with those that do.
    pub(crate) fn unknown_names(&self, index: &Index) -> backtrail_index::Result<Vec<String>> {
        let mut hints = Vec::new();
        for (asked, thing, field) in [
            (&self.agents, "agent", Field::Agents),
            (&self.projects, "project", Field::Projects),
            (&self.models, "model", Field::Models),
            (&self.tags, "tag", Field::Tags),
        ] {
            if !asked.is_empty() {
                let there = index.values(field)?;
                let missing = asked.iter().filter(|name| !is_among(name, &there, field));
                hints.extend(missing.map(|name| missing_name(name, thing, &there)));
            }
        }
        Ok(hints)
    }
}

/// Returns the names of agents that sessions may have for one that people use.
fn meant_by(name: &str) -> impl Iterator<Item = String> {
    let known = agent_called(name).map(|agent| agent.name().to_owned());
    std::iter::once(name.to_owned()).chain(known.filter(|known| known != name))
}

/// Returns whether a name matches a known one. A remote contains the name of its project.
fn is_among(name: &str, there: &[String], field: Field) -> bool {
    let name = name.to_lowercase();
    there
        .iter()
        .map(|it| it.to_lowercase())
        .any(|it| match field {
            Field::Models => it.contains(&name),
            Field::Projects => {
                name == it || name.ends_with(&format!("/{it}")) || it.ends_with(&format!("/{name}"))
            }
            Field::Agents => meant_by(&name).any(|name| name == it),
            _ => it == name,
        })
}

/// Returns that no session has a name, and the most similar names.
fn missing_name(name: &str, thing: &str, there: &[String]) -> String {
    /// More than this do not help with a typo.
    const NAMED: usize = 8;
    let shown = one_line(name, 40);
    if there.is_empty() {
        return format!("no session has the {thing} \"{shown}\"; there are no {thing}s yet");
    }
    let distance =
        |it: &&String| strsim::damerau_levenshtein(&it.to_lowercase(), &name.to_lowercase());
    let mut near: Vec<&String> = there.iter().collect();
    near.sort_by_key(distance);
    let known = some_of(near.iter().map(|it| one_line(it, 40)), NAMED, near.len());
    format!("no session has the {thing} \"{shown}\"; known: {known}")
}

/// Returns the workspace around the current directory.
pub(crate) fn this_workspace(store: &Store) -> Result<WorkspaceFilter> {
    let root = match home::workspace_root(store) {
        Some(root) => root,
        None => home::current_dir()?,
    };
    Ok(known(store, root))
}

/// Returns the workspace of a directory, which may be gone while its sessions are not.
fn workspace_at(store: &Store, dir: &Path) -> Result<WorkspaceFilter> {
    let root = dir.canonicalize().or_else(|_| std::path::absolute(dir));
    let root =
        root.map_err(|error| CommandError::io("cannot find the workspace", Some(dir), &error))?;
    Ok(known(store, root))
}

/// Adds the id of a workspace. One whose trail cannot be read is found by its root.
pub(crate) fn known(store: &Store, root: PathBuf) -> WorkspaceFilter {
    let found = store.find_workspace(&root).ok().flatten();
    WorkspaceFilter {
        id: found.map(|workspace| workspace.id().clone()),
        root,
    }
}

/// Parses a number of at least 1.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.trim().parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "must be a whole number, 1 or more".to_owned())
}

/// Parses a name; a blank one would match nothing.
fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("cannot be blank".to_owned()),
        name => Ok(name.to_owned()),
    }
}
