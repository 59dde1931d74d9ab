//! Qwen Code: a tree of JSON lines, with messages as Google's API has them.
//!
//! Every line is a record with an id and the id of its parent. The conversation ends at the
//! last record; the records that lead to it are the file's own thread, and all others are
//! branches, which a rewind leaves behind. Records of the type `system` are the agent's own
//! notes: some of them tell titles, the usage of calls and summaries. Sub-agents have files of
//! their own. Older versions wrote what Gemini CLI wrote then.

mod messages;
mod records;
mod tree;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use backtrail::Timestamp;
use serde::{Deserialize, Serialize};

use super::gemini_cli::GeminiCli;
use super::keys::{SeenIds, save_state, valid_key};
use crate::environment::Environment;
use crate::error::Result;
use crate::event::{Details, EventSink, Origin, Thread, sub_agent_name};
use crate::format::{Agent, Format, OpenFile, Resume};
use crate::json::Object;
use crate::json_lines::JsonLines;
use crate::source::{Source, file_name, is_json_lines};

use messages::{ModelCall, QwenEmitter};
use records::{is_record, looks_like_record};
use tree::Tree;

/// Qwen Code: a tree of JSON lines.
#[derive(Debug, Clone, Copy)]
pub struct QwenCode;

impl Format for QwenCode {
    fn agent(&self) -> Agent {
        Agent {
            programs: &["qwen"],
            packages: &["@qwen-code/qwen-code"],
            appends: true,
            branches: true,
            sub_agents: true,
            compactions: true,
            usage: true,
            media: true,
            ..Agent::new("qwen-code", "Qwen Code", "0.15 to 0.24")
        }
    }

    fn directories(&self, environment: &Environment) -> Vec<PathBuf> {
        let variable = match environment.variable("QWEN_RUNTIME_DIR") {
            Some(_) => "QWEN_RUNTIME_DIR",
            None => "QWEN_HOME",
        };
        environment.folders(variable, ".qwen", &["projects", "tmp"])
    }

    fn is_session_file(&self, path: &Path) -> bool {
        let below = |name: &str| path.iter().any(|part| part == name);
        match is_json_lines(path) {
            true => below("chats") || self.is_sub_agent_file(path),
            false => GeminiCli.is_session_file(path),
        }
    }

    fn is_sub_agent_file(&self, path: &Path) -> bool {
        file_name(path).starts_with("agent-") && path.iter().any(|part| part == "subagents")
    }

    fn recognises(&self, source: &Source) -> bool {
        /// How many lines are read.
        const MAX_LINES: usize = 20;
        let head = source.head();
        let text = String::from_utf8_lossy(&head);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        // A line that is longer than the head.
        let is_cut = |line: &str| head.len() as u64 != source.len() && line.len() > head.len() / 2;
        lines
            .by_ref()
            .take(MAX_LINES)
            .any(|line| is_record(line) || (is_cut(line) && looks_like_record(line)))
    }

    fn open<'s>(&self, source: &'s Source) -> Result<OpenFile<'s>> {
        if !self.recognises(source) && GeminiCli.recognises(source) {
            return GeminiCli.open(source);
        }
        let opened = open_lines(source, 0, QwenState::default())?;
        Ok(opened.expect("only a resumed file can be refused"))
    }

    /// Only a conversation that continues where it ended can be resumed. A file with a new
    /// branch or a new summary is read from the beginning.
    fn resume<'s>(&self, source: &'s Source, resume: &Resume) -> Result<Option<OpenFile<'s>>> {
        match resume.state.parse::<QwenState>() {
            Ok(state) => open_lines(source, resume.read_to, state),
            Err(_) => Ok(None),
        }
    }
}

/// The state from which a file is resumed whose records follow one another.
#[derive(Debug, Default, Serialize, Deserialize)]
struct QwenState {
    lines: u64,
    head: SessionHead,
    model: Option<String>,
    /// The records at the end that a new one may continue.
    tail: VecDeque<u64>,
    /// The last record that is an event, and how many before it have the same id.
    last: Option<(u64, u32)>,
    ids: SeenIds,
    calls: VecDeque<ModelCall>,
}

/// What the first records tell about a session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct SessionHead {
    session: Option<String>,
    agent: Option<String>,
    copied_from: Option<String>,
    parent: Option<String>,
    directory: Option<PathBuf>,
    started_at: Option<Timestamp>,
}

impl SessionHead {
    /// Reads a record: the first one that tells something counts.
    fn read(&mut self, record: &Object<'_>) {
        if self.session.is_none() {
            self.session = record.non_blank("sessionId").map(valid_key);
            let is_agent = record.is_true("isSidechain");
            let agent = record.non_blank("agentId").filter(|_| is_agent);
            self.agent = agent.map(valid_key);
            let copied_from = record.object("forkedFrom");
            let copied_from = copied_from.and_then(|from| from.non_blank("sessionId"));
            self.copied_from = copied_from.map(valid_key);
        }
        self.directory = self.directory.take().or_else(|| record.path("cwd"));
        self.started_at = self.started_at.or_else(|| record.time("timestamp"));
    }

    /// Returns the session's name.
    fn name(&self, source: &Source) -> String {
        let session = self.session.clone();
        let session = session.unwrap_or_else(|| valid_key(source.stem()));
        match &self.agent {
            Some(agent) => sub_agent_name(&session, agent),
            None => session,
        }
    }

    /// Returns where the session comes from, and what the file beside that of a sub-agent says.
    fn origin(&self, source: &Source) -> (Origin, Details) {
        if self.agent.is_some() {
            return self.agent_origin(source);
        }
        let origin = match (&self.copied_from, &self.parent) {
            (Some(session), _) => Origin::Copy {
                session: session.clone(),
            },
            (None, Some(parent)) => Origin::Spawned {
                session: Some(parent.clone()),
                tool_use_id: None,
            },
            (None, None) => Origin::Start,
        };
        (origin, Details::default())
    }

    fn agent_origin(&self, source: &Source) -> (Origin, Details) {
        let name = format!("{}.meta.json", source.stem());
        let text = source.read_beside(Path::new(&name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let meta = Object::parse(&text).unwrap_or_default();
        let session = self.session.clone();
        let session = match (session, meta.non_blank("parentAgentId")) {
            (Some(session), Some(caller)) => Some(sub_agent_name(&session, &valid_key(caller))),
            (session, _) => session,
        };
        let origin = Origin::Spawned {
            session,
            tool_use_id: meta.non_blank("toolUseId").map(valid_key),
        };
        let details = Details {
            title: meta.trimmed("description"),
            model: meta.trimmed("model"),
            tags: meta.trimmed("agentType").map(|kind| vec![kind]),
            ..Details::default()
        };
        (origin, details)
    }
}

/// Opens a file from its beginning, or where an earlier reading ended. `None` if what was
/// appended there does not continue the conversation.
fn open_lines(source: &Source, from: u64, mut state: QwenState) -> Result<Option<OpenFile<'_>>> {
    let is_resumed = from > 0;
    let (mut lines, mut report) = JsonLines::resume(source, from, state.lines);
    let mut tree = Tree::new(source, &mut state, is_resumed);
    let mut head = std::mem::take(&mut state.head);
    while let Some(records) = lines.next_joined(&mut report)? {
        for line in &records {
            let record = line.object();
            head.read(&record);
            tree.add(&record, line, &mut report);
        }
        if is_resumed && !tree.is_linear() {
            return Ok(None);
        }
    }
    if is_resumed && tree.parent_session.is_some() {
        // The session's origin must be known from the beginning.
        return Ok(None);
    }
    tree.close();
    head.parent = head.parent.or(tree.parent_session.take());
    let session = head.name(source);
    let (origin, mut details) = head.origin(source);
    details.title = tree.title.take().or(details.title);
    details.directory.clone_from(&head.directory);
    details.started_at = head.started_at;
    Ok(Some(OpenFile::new(session.clone(), origin, move |sink| {
        sink.details(details)?;
        let mut emitter = QwenEmitter::new(&mut *sink, &session, state.model, state.calls);
        for at in (0..tree.len()).filter(|at| tree.is_on_main(*at)) {
            tree.emit(source, at, &mut emitter)?;
        }
        let (model, calls) = (emitter.model, emitter.calls);
        emit_branches(source, &tree, &session, sink)?;
        if tree.is_linear() && head.session.is_some() {
            report.state = save_state(&QwenState {
                lines: report.lines,
                head,
                model,
                tail: tree.tail,
                last: tree.last,
                ids: tree.seen,
                calls,
            });
        }
        Ok(report)
    })))
}

/// Sends each branch, from the point where it leaves the file's own thread.
fn emit_branches(
    source: &Source,
    tree: &Tree<'_>,
    session: &str,
    sink: &mut dyn EventSink,
) -> Result<()> {
    // Many branches may leave at the same record.
    let mut keys = HashMap::new();
    for branch in tree.branches() {
        let Some(key) = branch.own.first().and_then(|at| tree.key_at(source, *at)) else {
            continue;
        };
        let leaves = branch.leaves;
        let after = keys
            .entry(leaves)
            .or_insert_with(|| tree.key_at(source, leaves));
        let after = after.clone();
        sink.thread(&Thread::branch(key, after))?;
        let mut emitter = QwenEmitter::new(&mut *sink, session, None, VecDeque::new());
        for at in branch.stem.iter().chain(&branch.own) {
            tree.emit(source, *at, &mut emitter)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "qwen_code_tests.rs"]
mod tests;
