//! Where sessions are, and what they are called.

use std::path::{Path, PathBuf};

use crate::formats::pieces::key_of;
use crate::json::Object;
use crate::lines::Lines;
use crate::places::Environment;
use crate::source::Source;
use crate::told::{About, Origin, agent_name};

/// Returns the directories in which sessions are.
pub(super) fn places(environment: &Environment) -> Vec<PathBuf> {
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

/// Returns whether a file in one of the places is a session: among what belongs to a
/// session, only the files of its sub-agents are.
pub(super) fn is_session_name(path: &Path) -> bool {
    let is_lines = path
        .extension()
        .is_some_and(|extension| extension == "jsonl");
    let below = |name: &str| path.iter().any(|part| part == name);
    let is_agent = || {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("agent-"))
    };
    is_lines && !below("tool-results") && (!below("subagents") || is_agent())
}

/// How a file's session is named.
#[derive(Debug)]
pub(super) enum Naming {
    /// By the file's name.
    File(String),
    /// It is that of a sub-agent, of a session that the path may name.
    Agent { parent: Option<String>, id: String },
    /// By its lines.
    Lines,
}

impl Naming {
    /// Finds out how the session of a file is named.
    pub(super) fn of(source: &Source) -> Self {
        let stem = source.stem();
        if let Some(id) = stem.strip_prefix("agent-").filter(|id| !id.is_empty()) {
            return Self::Agent {
                parent: parent_of(source.path()),
                id: key_of(id),
            };
        }
        match uuid::Uuid::try_parse(stem).is_ok() {
            true => Self::File(key_of(stem)),
            false => Self::Lines,
        }
    }

    /// Returns whether the file is that of a sub-agent.
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

    /// Returns the session's name. `first` is the first that a line names.
    pub(super) fn name(&self, first: Option<&str>, source: &Source) -> String {
        let first = first.filter(|name| !name.is_empty());
        match self {
            Self::File(name) => name.clone(),
            Self::Agent { parent, id } => {
                let parent = parent.as_deref().or(first);
                parent.map_or_else(|| id.clone(), |parent| agent_name(&key_of(parent), id))
            }
            Self::Lines => first.map_or_else(|| by_content(source), key_of),
        }
    }

    /// Returns where a sub-agent's session comes from. `name` is the session that the
    /// lines are of, or its own.
    pub(super) fn origin(&self, name: Option<&str>, source: &Source) -> Option<Origin> {
        let Self::Agent { parent, id } = self else {
            return None;
        };
        let meta = meta(source).unwrap_or_default();
        let own = name.and_then(|name| name.strip_suffix(id.as_str())?.strip_suffix("/agent/"));
        let session = parent.as_deref().or(own).or(name).map(key_of);
        let caller = meta
            .string("parentAgentId")
            .filter(|caller| !caller.is_empty());
        let session = match (session, caller) {
            (Some(session), Some(caller)) => Some(agent_name(&session, &key_of(&caller))),
            (session, _) => session,
        };
        let call = meta.string("toolUseId").filter(|call| !call.is_empty());
        Some(Origin::Spawned {
            session,
            tool_use_id: call.map(|call| key_of(&call)),
        })
    }

    /// Returns what lies beside a sub-agent's file and is known of it.
    pub(super) fn about(&self, source: &Source) -> Option<About> {
        let Self::Agent { .. } = self else {
            return None;
        };
        let meta = meta(source)?;
        let text = |name: &str| {
            let text = meta.string(name)?.trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        Some(About {
            title: text("description"),
            tags: text("agentType").map(|kind| vec![kind]),
            ..About::default()
        })
    }
}

fn meta(source: &Source) -> Option<Object> {
    let name = format!("{}.meta.json", source.stem());
    let bytes = source.beside(Path::new(&name))?;
    Object::parse(&String::from_utf8_lossy(&bytes)).ok()
}

/// Returns the session in whose directory of sub-agents a file is.
fn parent_of(path: &Path) -> Option<String> {
    let mut above = path.ancestors().skip(1);
    above.find(|path| path.file_name().is_some_and(|name| name == "subagents"))?;
    let name = above.next()?.file_name()?.to_str()?;
    Some(key_of(name))
}

/// Returns a name for a file of which no line names the session: from its first line.
fn by_content(source: &Source) -> String {
    let mut lines = Lines::new(source, 0, 0);
    let line = lines.next().ok().flatten();
    let hash = blake3::hash(line.map_or(&[][..], |line| line.bytes));
    format!("unnamed-{}", &hash.to_hex()[..16])
}
