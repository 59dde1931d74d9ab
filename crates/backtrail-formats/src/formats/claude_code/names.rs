//! Where sessions are, and their names.

use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::event::{Details, Origin, sub_agent_name};
use crate::formats::keys::valid_key;
use crate::json::Object;
use crate::lines::Lines;
use crate::source::{Source, file_name, is_json_lines};

/// Returns the directories of sessions.
pub(super) fn directories(environment: &Environment) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = Vec::new();
    match environment.variable("CLAUDE_CONFIG_DIR") {
        Some(set) => match set.to_str() {
            Some(list) => homes.extend(list.split(',').map(str::trim).map(PathBuf::from)),
            None => homes.push(PathBuf::from(set)),
        },
        None => {
            let home = environment.home();
            homes.extend(home.map(|home| home.join(".claude")));
            homes.extend(home.map(|home| home.join(".config/claude")));
        }
    }
    homes.retain(|home| !home.as_os_str().is_empty());
    homes
        .into_iter()
        .map(|home| home.join("projects"))
        .collect()
}

/// Returns whether a file in one of the directories is a session. Of the files that belong to
/// a session, only those of its sub-agents are.
pub(super) fn is_session_file(path: &Path) -> bool {
    let below = |name: &str| path.iter().any(|part| part == name);
    let is_own = !below("subagents") || is_sub_agent_file(path);
    is_json_lines(path) && !below("tool-results") && is_own
}

/// Returns whether a file belongs to a sub-agent.
pub(super) fn is_sub_agent_file(path: &Path) -> bool {
    file_name(path).starts_with("agent-")
}

/// Where the name of a file's session comes from.
#[derive(Debug)]
pub(super) enum Naming {
    /// The file's name.
    File(String),
    /// The file belongs to a sub-agent, of a session that the path may name.
    Agent { parent: Option<String>, id: String },
    /// Its lines.
    Lines,
}

impl Naming {
    /// Returns where the name of a file's session comes from.
    pub(super) fn for_source(source: &Source) -> Self {
        let stem = source.stem();
        if let Some(id) = stem.strip_prefix("agent-").filter(|id| !id.is_empty()) {
            return Self::Agent {
                parent: parent_of(source.path()),
                id: valid_key(id),
            };
        }
        match uuid::Uuid::try_parse(stem).is_ok() {
            true => Self::File(valid_key(stem)),
            false => Self::Lines,
        }
    }

    /// Returns whether the file belongs to a sub-agent.
    pub(super) fn is_agent(&self) -> bool {
        matches!(self, Self::Agent { .. })
    }

    /// Returns whether no line can change the name.
    pub(super) fn is_fixed(&self) -> bool {
        match self {
            Self::File(_) => true,
            Self::Agent { parent, .. } => parent.is_some(),
            Self::Lines => false,
        }
    }

    /// Returns the session's name. `first` is the first name in a line.
    pub(super) fn name(&self, first: Option<&str>, source: &Source) -> String {
        let first = first.filter(|name| !name.is_empty());
        match self {
            Self::File(name) => name.clone(),
            Self::Agent { parent, id } => match parent.as_deref().or(first) {
                Some(parent) => sub_agent_name(&valid_key(parent), id),
                None => id.clone(),
            },
            Self::Lines => first.map_or_else(|| hashed_name(source), valid_key),
        }
    }

    /// Returns where a sub-agent's session comes from. `name` is the session that the lines
    /// name, or its own.
    pub(super) fn origin(&self, name: Option<&str>, source: &Source) -> Option<Origin> {
        let Self::Agent { parent, id } = self else {
            return None;
        };
        let text = meta_text(source);
        let meta = Object::parse(&text).unwrap_or_default();
        let own = name.and_then(|name| name.strip_suffix(id.as_str())?.strip_suffix("/agent/"));
        let session = parent.as_deref().or(own).or(name).map(valid_key);
        let session = match (session, meta.non_blank("parentAgentId")) {
            (Some(session), Some(caller)) => Some(sub_agent_name(&session, &valid_key(caller))),
            (session, _) => session,
        };
        Some(Origin::Spawned {
            session,
            tool_use_id: meta.non_blank("toolUseId").map(valid_key),
        })
    }

    /// Returns the details in the file beside a sub-agent's file.
    pub(super) fn details(&self, source: &Source) -> Option<Details> {
        let text = self.is_agent().then(|| meta_text(source))?;
        let meta = Object::parse(&text).ok()?;
        Some(Details {
            title: meta.trimmed("description"),
            tags: meta.trimmed("agentType").map(|kind| vec![kind]),
            ..Details::default()
        })
    }
}

/// Returns the file beside a sub-agent's file; empty if there is none.
fn meta_text(source: &Source) -> String {
    let name = format!("{}.meta.json", source.stem());
    let bytes = source.read_beside(Path::new(&name)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the session that a file in a directory of sub-agents belongs to.
fn parent_of(path: &Path) -> Option<String> {
    let mut above = path.ancestors().skip(1);
    above.find(|path| path.file_name().is_some_and(|name| name == "subagents"))?;
    let name = above.next()?.file_name()?.to_str()?;
    Some(valid_key(name))
}

/// Returns a name for a session that no line names, from the first line.
fn hashed_name(source: &Source) -> String {
    let mut lines = Lines::new(source, 0, 0);
    let line = lines.next().ok().flatten();
    let hash = blake3::hash(line.map_or(&[][..], |line| line.bytes));
    format!("unnamed-{}", &hash.to_hex()[..16])
}
