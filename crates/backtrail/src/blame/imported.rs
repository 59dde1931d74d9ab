//! Edits of a file in imported sessions. They say who wrote a line where no checkpoint does.

use std::ops::Range;
use std::path::{Path, PathBuf};

use memchr::memmem;

use super::edits::edits_of;
use crate::conversation::Item;
use crate::error::Result;
use crate::ids::SessionId;
use crate::session::{SessionInfo, SessionReader};
use crate::snapshot::common_lines::common_lines;
use crate::time::Timestamp;
use crate::trail::Sums;
use crate::workspace::Workspace;

/// How many letters and digits a line needs to say something: a brace is everybody's.
const TELLING: usize = 3;

/// An edit that an agent's call made to the file.
#[derive(Debug, Clone)]
pub(super) struct ImportedEdit {
    pub(super) session: SessionId,
    pub(super) agent: Option<String>,
    pub(super) at: Option<Timestamp>,
    /// The prompt: its record and its text.
    pub(super) prompt: Option<(u64, String)>,
    pub(super) tool: String,
    /// The lines that it added, in blocks.
    added: Vec<Vec<u8>>,
}

/// When something was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// `None` for any time before.
    pub(super) after: Option<Timestamp>,
    pub(super) until: Timestamp,
}

impl Window {
    fn holds(&self, at: Option<Timestamp>) -> bool {
        match at {
            Some(at) => at <= self.until && self.after.is_none_or(|after| at >= after),
            None => self.after.is_none(),
        }
    }
}

/// Finds the edits of a file, by all names that it had, in the imported sessions of a
/// workspace. The newest comes first.
pub(super) fn edits_in(workspace: &Workspace, names: &[PathBuf]) -> Result<Vec<ImportedEdit>> {
    let mut edits = Vec::new();
    for info in imported_sessions(workspace)? {
        let store = workspace.store();
        let search = EditSearch {
            root: workspace.root(),
            names,
            info: &info,
        };
        // A session that cannot be read does not hide the others.
        let Ok(reader) = store.read_session(&info.id) else {
            continue;
        };
        if search.may_be_in(&reader).unwrap_or(false) {
            edits.extend(search.read(&reader).unwrap_or_default());
        }
    }
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.at));
    Ok(edits)
}

/// Returns the sessions of a workspace that other programs wrote.
pub(super) fn imported_sessions(workspace: &Workspace) -> Result<Vec<SessionInfo>> {
    let mut infos = workspace.session_infos()?;
    infos.retain(|info| info.belongs_to.is_some());
    Ok(infos)
}

/// Returns whether a record of a session has some bytes, or parts that are stored elsewhere.
pub(super) fn has_bytes(reader: &SessionReader, wanted: &[Vec<u8>]) -> Result<bool> {
    let finders: Vec<_> = wanted.iter().map(memmem::Finder::new).collect();
    let elsewhere = memmem::Finder::new("\"payload\"");
    let mut records = reader.records_with(Sums::Trust)?;
    while let Some(record) = records.next()? {
        let bytes = record.bytes();
        let mut all = finders.iter().chain([&elsewhere]);
        if all.any(|finder| finder.find(bytes).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

struct EditSearch<'a> {
    root: &'a Path,
    names: &'a [PathBuf],
    info: &'a SessionInfo,
}

impl EditSearch<'_> {
    /// Returns whether a session names the file. Reading it whole takes much longer.
    fn may_be_in(&self, reader: &SessionReader) -> Result<bool> {
        let names = self.names.iter().filter_map(|path| path.file_name());
        let part = |name: &std::ffi::OsStr| plain_part(name.as_encoded_bytes()).to_vec();
        has_bytes(reader, &names.map(part).collect::<Vec<_>>())
    }

    fn read(&self, reader: &SessionReader) -> Result<Vec<ImportedEdit>> {
        let mut edits = Vec::new();
        let mut prompt = None;
        for item in reader.conversation()? {
            match item? {
                Item::Prompt(item) => prompt = Some((item.seq, item.text)),
                Item::ToolCall(call) if call.success != Some(false) => {
                    let own = edits_of(&call.action()).into_iter();
                    let own = own.filter(|edit| self.is_it(&edit.path));
                    edits.extend(own.map(|edit| ImportedEdit {
                        session: self.info.id.clone(),
                        agent: self.info.agent.clone(),
                        at: call.at,
                        prompt: prompt.clone(),
                        tool: call.name.as_str().to_owned(),
                        added: edit.added,
                    }));
                }
                _ => {}
            }
        }
        Ok(edits)
    }

    /// Returns whether a path that an agent wrote is one of the file's.
    fn is_it(&self, path: &str) -> bool {
        let path = Path::new(path.strip_prefix("./").unwrap_or(path));
        let home = self.info.workspace_root.as_deref().unwrap_or(self.root);
        let whole = home.join(path);
        let within = [self.root, home].into_iter();
        let mut within = within.filter_map(|root| whole.strip_prefix(root).ok());
        within.any(|path| self.names.iter().any(|name| name == path))
    }
}

/// Returns the longest part of a name that JSON writes as it is.
fn plain_part(name: &[u8]) -> &[u8] {
    let is_odd = |byte: &u8| !byte.is_ascii() || byte.is_ascii_control() || b"\"\\/".contains(byte);
    let parts = name.split(is_odd);
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}

/// Finds the edits that have some lines, which are in order. Returns the positions of the lines
/// for each such edit; a line goes to the newest.
pub(super) fn lines_of<'a>(
    edits: &'a [ImportedEdit],
    window: Window,
    lines: &[&[u8]],
) -> Vec<(&'a ImportedEdit, Vec<usize>)> {
    let mut left: Vec<usize> = (0..lines.len()).collect();
    let mut found = Vec::new();
    for edit in edits.iter().filter(|edit| window.holds(edit.at)) {
        let mut credited = Vec::new();
        for block in &edit.added {
            let texts: Vec<&[u8]> = left.iter().map(|line| lines[*line]).collect();
            let own: Vec<usize> = equal_runs(block, &texts).into_iter().flatten().collect();
            credited.extend(own.iter().map(|at| left[*at]));
            let mut at = 0..;
            left.retain(|_| at.next().is_none_or(|at| own.binary_search(&at).is_err()));
        }
        if !credited.is_empty() {
            found.push((edit, credited));
        }
        if left.is_empty() {
            break;
        }
    }
    found
}

/// Returns which lines in a row a block has, where one of them says something. A last line
/// without a line end is the same as one with it.
fn equal_runs(block: &[u8], lines: &[&[u8]]) -> Vec<Range<usize>> {
    let mut text = lines.concat();
    let mut block = block.to_vec();
    for text in [&mut text, &mut block] {
        if text.last().is_some_and(|last| *last != b'\n') {
            text.push(b'\n');
        }
    }
    let runs = common_lines(&block, &text).into_iter();
    let runs = runs.map(|run| run.after..run.after + run.len);
    let is_telling = |line: &&[u8]| {
        let letters = line
            .iter()
            .filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
        letters.count() >= TELLING
    };
    runs.filter(|run| lines[run.clone()].iter().any(is_telling))
        .collect()
}
