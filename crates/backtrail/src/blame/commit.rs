//! The turn that made a git commit: the one that was in progress when git logged it, or one of an
//! imported session whose output names it.

use std::path::Path;

use serde::Serialize;

use super::imported::{has_bytes, imported_sessions};
use super::origin::{LineAuthor, People};
use super::states::States;
use crate::conversation::Item;
use crate::error::{Error, ErrorKind, Result, quoted};
use crate::rewind::authors::authors_of_states;
use crate::session::{SessionInfo, SessionReader};
use crate::store::Store;
use crate::time::Timestamp;
use crate::workspace::git_log::LoggedCommit;
use crate::workspace::{Checkpoint, CheckpointReason, GitHead, Workspace};

/// The shortest beginning of an id that is accepted.
const SHORTEST: usize = 4;
/// The shortest beginning of an id that git prints.
const PRINTED: usize = 7;
/// Git logs whole seconds.
const SECOND: i64 = 1000;

/// A commit, and who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommitAuthor {
    /// The commit's id, as far as it is known.
    pub commit: String,
    /// When it was made, if known.
    pub at: Option<Timestamp>,
    /// The first line of its message, if known.
    pub subject: Option<String>,
    /// Who made it. If there are several, any of them may have; none if it was made before
    /// Backtrail was there.
    pub by: Vec<LineAuthor>,
    /// Whether an imported session says so, and no checkpoint.
    pub imported: bool,
    /// The last turn before, if no turn made it.
    pub last_turn: Option<LineAuthor>,
}

impl CommitAuthor {
    /// Returns whether a turn or a run made it, or may have.
    fn is_by_turn(&self) -> bool {
        self.by.iter().any(|by| *by != LineAuthor::You)
    }
}

impl Store {
    /// Finds out who made a git commit, by the beginning of its id or as `HEAD`: in the repository
    /// around a directory, or else in those of all workspaces. `None` if nothing is known of it.
    ///
    /// # Errors
    ///
    /// Fails with [`Ambiguous`](ErrorKind::Ambiguous) if several commits match, which
    /// [`Error::points`] names, and if the store cannot be read.
    pub fn find_commit(&self, dir: &Path, prefix: &str) -> Result<Option<CommitAuthor>> {
        let head = || GitHead::read(dir)?.commit;
        let head = (prefix == "HEAD").then(head).flatten();
        let prefix = head.unwrap_or_else(|| prefix.to_ascii_lowercase());
        let is_hex = prefix.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || prefix.len() < SHORTEST || prefix.len() > 64 {
            return Ok(None);
        }
        let workspaces = self.workspaces()?;
        let mut logged = LoggedCommit::find(dir, &prefix);
        if logged.is_empty() {
            let all = workspaces.iter();
            logged = all
                .flat_map(|it| LoggedCommit::find(it.root(), &prefix))
                .collect();
            logged.sort_by(|a, b| a.id.cmp(&b.id));
            logged.dedup_by(|a, b| a.id == b.id);
        }
        if logged.len() > 1 {
            let what = format!("{} matches {} commits", quoted(&prefix), logged.len());
            let ids = logged.into_iter().map(|commit| commit.id);
            return Err(Error::new(ErrorKind::Ambiguous, what).with_points(ids.collect()));
        }
        let commit = logged.pop();
        let near = commit.as_ref().map_or(dir, |commit| &commit.root);
        let is_near = |it: &&Workspace| it.root().starts_with(near) || near.starts_with(it.root());
        let near: Vec<&Workspace> = workspaces.iter().filter(is_near).collect();
        let mut known = None;
        if let Some(commit) = &commit {
            for workspace in &near {
                let author = by_checkpoints(workspace, commit)?;
                if author.is_by_turn() {
                    return Ok(Some(author));
                }
                known.get_or_insert(author);
            }
        }
        let id = commit.as_ref().map_or(prefix.as_str(), |commit| &commit.id);
        for workspace in near {
            if let Some(author) = by_output(workspace, id, commit.as_ref())? {
                return Ok(Some(author));
            }
        }
        Ok(known.or_else(|| commit.map(|commit| unknown(&commit))))
    }
}

fn unknown(commit: &LoggedCommit) -> CommitAuthor {
    CommitAuthor {
        commit: commit.id.clone(),
        at: Some(commit.at),
        subject: Some(commit.subject.clone()),
        by: Vec::new(),
        imported: false,
        last_turn: None,
    }
}

/// Finds the turn or run that was in progress when a commit was made.
fn by_checkpoints(workspace: &Workspace, commit: &LoggedCommit) -> Result<CommitAuthor> {
    let states = States::read(workspace, None, None)?;
    let unknown = unknown(commit);
    let candidates = states_around(&states, commit.at);
    let (Some(first), Some(last)) = (candidates.first(), candidates.last()) else {
        return Ok(unknown);
    };
    let moved = candidates.iter().find(|n| moved_head(&states, **n, commit));
    let wanted = moved
        .map_or(*first..=*last, |n| *n..=*n)
        .collect::<Vec<_>>();
    let authors = authors_of_states(workspace, &states.timeline, &wanted);
    let mut people = People::new(workspace.store());
    let mut by = Vec::new();
    for (n, authors) in wanted.iter().zip(authors) {
        let seen = states.checkpoint(*n);
        let described = authors.iter().map(|it| people.describe(&states, it, seen));
        let described: Vec<LineAuthor> = described.collect();
        // Within the same second, a turn is more likely than the moment before it.
        if by.is_empty() || described.iter().any(|it| *it != LineAuthor::You) {
            by = described;
        }
    }
    let is_turn = |it: &&Checkpoint| *it.reason() == CheckpointReason::TurnStart;
    let before = &states.timeline.checkpoints[..*first];
    let last_turn = before.iter().rfind(is_turn);
    let is_yours = by.iter().all(|it| *it == LineAuthor::You);
    let last_turn = last_turn.filter(|_| is_yours);
    Ok(CommitAuthor {
        last_turn: last_turn.map(|start| people.describe_start(start, None)),
        by,
        ..unknown
    })
}

/// Returns the states that may have been the next after a moment; none if it was before the
/// first.
fn states_around(states: &States, at: Timestamp) -> Vec<usize> {
    let checkpoints = &states.timeline.checkpoints;
    let at = at.as_millis();
    let is_after = |n: usize| {
        checkpoints
            .get(n)
            .is_none_or(|it| it.at().as_millis() >= at)
    };
    let was_before = |n: usize| checkpoints[n - 1].at().as_millis() < at + SECOND;
    let all = 1..checkpoints.len() + 1;
    all.filter(|n| is_after(*n) && was_before(*n))
        .filter(|_| !checkpoints.is_empty())
        .collect()
}

/// Returns whether git's HEAD came to a commit before a state.
fn moved_head(states: &States, n: usize, commit: &LoggedCommit) -> bool {
    let is_at = |n: usize| {
        let head = states.checkpoint(n).and_then(|it| it.git_head());
        head.is_some_and(|head| head.commit.as_deref() == Some(&commit.id))
    };
    is_at(n) && !is_at(n - 1)
}

/// Finds the call of an imported session that printed that it made a commit.
fn by_output(
    workspace: &Workspace,
    id: &str,
    commit: Option<&LoggedCommit>,
) -> Result<Option<CommitAuthor>> {
    if id.len() < PRINTED {
        return Ok(None);
    }
    for info in imported_sessions(workspace)? {
        // A session that cannot be read does not hide the others.
        let Ok(reader) = workspace.store().read_session(&info.id) else {
            continue;
        };
        let wanted = [id.as_bytes()[..PRINTED].to_vec()];
        if !has_bytes(&reader, &wanted).unwrap_or(false) {
            continue;
        }
        if let Ok(Some((by, at, printed))) = call_that_made(&reader, &info, id) {
            return Ok(Some(CommitAuthor {
                commit: commit.map_or(printed.id, |commit| commit.id.clone()),
                at: commit.map(|commit| commit.at).or(at),
                subject: Some(printed.subject),
                by: vec![by],
                imported: true,
                last_turn: None,
            }));
        }
    }
    Ok(None)
}

fn call_that_made(
    reader: &SessionReader,
    info: &SessionInfo,
    id: &str,
) -> Result<Option<(LineAuthor, Option<Timestamp>, PrintedCommit)>> {
    let mut prompt = None;
    for item in reader.conversation()? {
        match item? {
            Item::Prompt(item) => prompt = Some((item.seq, item.text)),
            Item::ToolCall(call) => {
                let Some(result) = &call.result else {
                    continue;
                };
                let text = result.text();
                let mut printed = text.lines().filter_map(printed_commit);
                let is_it = |it: &PrintedCommit| id.starts_with(&it.id) || it.id.starts_with(id);
                let Some(printed) = printed.find(is_it) else {
                    continue;
                };
                let by = LineAuthor::Turn {
                    session: Some(info.id.clone()),
                    agent: info.agent.clone(),
                    agent_session: None,
                    seq: prompt.as_ref().map(|(seq, _)| *seq),
                    prompt: prompt.map(|(_, text)| text),
                    tool: Some(call.name.as_str().to_owned()),
                };
                return Ok(Some((by, result.at.or(call.at), printed)));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// What git prints of a new commit.
#[derive(Debug, PartialEq, Eq)]
struct PrintedCommit {
    /// The beginning of its id.
    id: String,
    subject: String,
}

/// Reads the line that `git commit` prints: `[main abc1234] SUBJECT`.
fn printed_commit(line: &str) -> Option<PrintedCommit> {
    let (place, subject) = line.trim_start().strip_prefix('[')?.split_once("] ")?;
    let (_, id) = place.rsplit_once(' ')?;
    let is_id = id.len() >= PRINTED && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| PrintedCommit {
        id: id.to_ascii_lowercase(),
        subject: subject.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_new_commit_names_it() {
        let read = |line: &str| printed_commit(line).map(|it| (it.id, it.subject));
        let found = |id: &str, subject: &str| Some((id.to_owned(), subject.to_owned()));
        assert_eq!(read("[main abc1234] fix it"), found("abc1234", "fix it"));
        assert_eq!(
            read("[main (root-commit) abc1234] a"),
            found("abc1234", "a")
        );
        assert_eq!(
            read("[detached HEAD abc12345] a] b"),
            found("abc12345", "a] b")
        );
        for line in [
            "[main] x",
            "[main abc123] x",
            "[x ghijklm] x",
            "abc1234",
            "[abc1234] x",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
