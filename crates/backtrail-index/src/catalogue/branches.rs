//! The git branch that a session worked on: from its agent's file, else from checkpoints.

use std::collections::HashMap;

use serde_json::Value;

use super::Catalogue;
use crate::error::Result;

/// A longer line is not looked at: nothing about branches is so long.
const LONGEST: usize = 32 << 20;

/// Reads the branches that a file of an agent names, line by line.
#[derive(Debug, Default)]
pub(super) struct BranchReader {
    sign: &'static str,
    /// The beginning of a line that is not complete.
    rest: Vec<u8>,
    last: Option<String>,
    found: Vec<(i64, String)>,
}

impl BranchReader {
    /// Reads the next bytes. Returns whether more may follow in the file.
    pub(super) fn read(&mut self, agent: &str, bytes: &[u8]) -> bool {
        let Some(sign) = sign(agent) else {
            return false;
        };
        self.sign = sign;
        self.lines(sign, bytes);
        // Codex names its branch once, at the beginning.
        agent != "codex" || self.found.is_empty()
    }

    fn lines(&mut self, sign: &str, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            if lines.peek().is_none() {
                if self.rest.len() + line.len() <= LONGEST {
                    self.rest.extend_from_slice(line);
                }
                return;
            }
            match self.rest.is_empty() {
                true => self.line(sign, line),
                false => {
                    let mut whole = std::mem::take(&mut self.rest);
                    whole.extend_from_slice(line);
                    self.line(sign, &whole);
                }
            }
        }
    }

    fn line(&mut self, sign: &str, line: &[u8]) {
        let Ok(line) = std::str::from_utf8(line) else {
            return;
        };
        let is_same = |last: &String| line.contains(&format!("{sign}:\"{last}\""));
        if !line.contains(sign) || self.last.as_ref().is_some_and(is_same) {
            return;
        }
        if let Some((at, branch)) = branch_of(line)
            && self.last.as_ref() != Some(&branch)
        {
            self.last = Some(branch.clone());
            self.found.push((at, branch));
        }
    }

    /// Reads the last line of a file, which may have no end.
    pub(super) fn end_file(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        self.line(self.sign, &rest);
    }

    /// Returns the branches, each with the time from which on it is known.
    pub(super) fn finish(&mut self) -> Vec<(i64, String)> {
        std::mem::take(&mut self.found)
    }
}

/// Returns whether the files of an agent name branches.
pub(super) fn names_branches(agent: &str) -> bool {
    sign(agent).is_some()
}

/// Returns what a line of an agent with a branch contains.
fn sign(agent: &str) -> Option<&'static str> {
    match agent {
        "claude-code" | "qwen-code" => Some("\"gitBranch\""),
        "codex" | "copilot-cli" => Some("\"branch\""),
        _ => None,
    }
}

/// Returns the time and the branch of a line; no branch if HEAD is detached.
fn branch_of(line: &str) -> Option<(i64, String)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let branch = [
        "/gitBranch",
        "/payload/git/branch",
        "/git/branch",
        "/data/context/branch",
    ];
    let branch = branch
        .iter()
        .find_map(|place| line.pointer(place)?.as_str());
    let branch = branch.filter(|name| !name.is_empty() && *name != "HEAD")?;
    let at = line["timestamp"]
        .as_str()
        .and_then(|at| at.parse::<jiff::Timestamp>().ok());
    let at = at.map_or(i64::MIN, |at| at.as_millisecond());
    Some((at, branch.to_owned()))
}

/// Branches by time.
type Timeline = Vec<(i64, String)>;

/// The branches of all sessions.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// By session: from the agents' files, then from checkpoints.
    named: HashMap<i64, Timeline>,
    saved: HashMap<i64, Timeline>,
    /// By workspace, from checkpoints.
    workspaces: HashMap<i64, Timeline>,
    /// The session that another one was forked from or spawned by.
    parents: HashMap<i64, i64>,
}

impl Branches {
    pub(super) fn read(db: &Catalogue) -> Result<Self> {
        let timelines = |sql: &str| -> Result<HashMap<i64, Timeline>> {
            let mut all: HashMap<i64, Timeline> = HashMap::new();
            let () = db.rows(sql, [], |row| {
                let timeline = all.entry(row.get(0)?).or_default();
                timeline.push((row.get(1)?, row.get(2)?));
                Ok(())
            })?;
            Ok(all)
        };
        Ok(Self {
            named: timelines("SELECT session, at, branch FROM branches ORDER BY session, at")?,
            saved: timelines(
                "SELECT s.key, c.at, c.branch FROM checkpoints AS c
                 JOIN sessions AS s ON s.id = c.session
                 WHERE c.branch IS NOT NULL AND c.at IS NOT NULL ORDER BY s.key, c.at",
            )?,
            workspaces: timelines(
                "SELECT workspace, at, branch FROM checkpoints
                 WHERE branch IS NOT NULL AND at IS NOT NULL ORDER BY workspace, at",
            )?,
            parents: db.rows(
                "SELECT s.key, p.key FROM sessions AS s
                 JOIN sessions AS p ON p.id = coalesce(s.spawned_by, s.forked_from)",
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?,
        })
    }

    /// Returns the branch of a session at a time.
    pub(super) fn of(
        &self,
        session: i64,
        workspace: Option<i64>,
        at: Option<i64>,
    ) -> Option<String> {
        let known = self.with_parents(session, &self.named);
        let known = known.or_else(|| self.with_parents(session, &self.saved));
        if let Some(timeline) = known {
            // Before the first one, it was probably the same.
            return at_time(timeline, at).or_else(|| timeline.first()).map(name);
        }
        at_time(self.workspaces.get(&workspace?)?, at).map(name)
    }

    /// Returns what is known of a session, else of the one that it comes from.
    fn with_parents<'a>(
        &self,
        session: i64,
        all: &'a HashMap<i64, Timeline>,
    ) -> Option<&'a Timeline> {
        /// Longer chains are circles.
        const LONGEST: usize = 100;
        let next = |session: &i64| self.parents.get(session).copied();
        let mut chain = std::iter::successors(Some(session), next).take(LONGEST);
        chain.find_map(|session| all.get(&session))
    }
}

fn name((_, branch): &(i64, String)) -> String {
    branch.clone()
}

/// Returns the last one up to a time.
fn at_time(timeline: &Timeline, at: Option<i64>) -> Option<&(i64, String)> {
    let after = timeline.partition_point(|(since, _)| at.is_some_and(|at| *since <= at));
    timeline.get(after.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_read_where_agents_write_them() {
        let at = 1_767_323_045_000;
        let time = "2026-01-02T03:04:05Z";
        let claude = format!(
            "{{\"gitBranch\":\"main\",\"timestamp\":\"{time}\"}}\n\
             {{\"text\":\"\\\"gitBranch\\\":\\\"fake\\\"\",\"gitBranch\":\"main\"}}\n\
             {{\"deep\":{{\"gitBranch\":\"other\"}}}}\n{{\"gitBranch\":\"HEAD\"}}\n\
             {{\"gitBranch\":\"fix\",\"timestamp\":\"{time}\"}}\n"
        );
        // However the bytes are divided.
        for size in [1, 7, 4096] {
            let mut reader = BranchReader::default();
            for bytes in claude.as_bytes().chunks(size) {
                reader.read("claude-code", bytes);
            }
            let found = [(at, "main".to_owned()), (at, "fix".to_owned())];
            assert_eq!(reader.finish(), found);
        }
        let table = [
            (
                "codex",
                r#"{"type":"session_meta","payload":{"git":{"branch":"b"}}}"#,
                true,
            ),
            ("codex", r#"{"id":"x","git":{"branch":"b"}}"#, true),
            (
                "copilot-cli",
                r#"{"type":"session.start","data":{"context":{"branch":"b"}}}"#,
                true,
            ),
            ("qwen-code", r#"{"gitBranch":"b"}"#, true),
            ("pi", r#"{"gitBranch":"b"}"#, false),
            ("codex", r#"{"git":{"branch":null}}"#, false),
            ("codex", r#"{"git":{"branch":"b"}"#, false),
        ];
        // Codex names it once: the rest of the file need not be unpacked.
        let mut reader = BranchReader::default();
        assert!(reader.read("codex", b"{}\n"));
        assert!(!reader.read("codex", b"{\"git\":{\"branch\":\"b\"}}\n"));
        assert!(reader.read("claude-code", b"{\"gitBranch\":\"b\"}\n"));
        assert!(names_branches("codex") && !names_branches("pi"));
        for (agent, line, expected) in table {
            let mut reader = BranchReader::default();
            reader.read(agent, line.as_bytes());
            reader.end_file();
            assert_eq!(reader.finish().len(), usize::from(expected), "{line}");
        }
    }
}
