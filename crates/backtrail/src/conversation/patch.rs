//! Patches in the form that models write: `*** Begin Patch`, that of `diff -u`, or blocks of
//! what is searched and what replaces it.

use super::tools::Replacement;

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The file.
    pub path: String,
    /// What happens to it.
    pub kind: PatchKind,
    /// Its new name, if it is renamed.
    pub moved_to: Option<String>,
    /// The lines of the patch, without heads.
    pub lines: Vec<(LineChange, String)>,
}

/// What a patch does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// It is new.
    Add,
    /// It changes.
    Update,
    /// It is deleted.
    Delete,
}

/// How a line changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineChange {
    /// It stays.
    Kept,
    /// It is removed.
    Removed,
    /// It is added.
    Added,
    /// It is not a line of the file, but says where the following ones are.
    Hunk,
}

/// Returns whether a text is a patch.
pub fn is_patch(text: &str) -> bool {
    let mut before = "";
    for line in text.lines().take(400) {
        let is_hunk = line.starts_with("@@ -") && before.starts_with("+++ ");
        if is_hunk || line.starts_with("diff --git ") || line.starts_with("*** Begin Patch") {
            return true;
        }
        before = line;
    }
    false
}

/// Reads a patch. Lines that belong to no file are ignored.
pub fn parse_patch(text: &str) -> Vec<FilePatch> {
    match text.lines().any(|line| line.starts_with("*** Begin Patch")) {
        true => parse_begin_patch(text),
        false => parse_unified(text),
    }
}

fn parse_begin_patch(text: &str) -> Vec<FilePatch> {
    const HEADS: [(&str, PatchKind); 3] = [
        ("*** Update File: ", PatchKind::Update),
        ("*** Add File: ", PatchKind::Add),
        ("*** Delete File: ", PatchKind::Delete),
    ];
    let mut files: Vec<FilePatch> = Vec::new();
    for line in text.lines() {
        let head = HEADS
            .iter()
            .find_map(|(head, kind)| Some((line.strip_prefix(head)?, *kind)));
        if let Some((path, kind)) = head {
            files.push(FilePatch::new(path.trim(), kind));
            continue;
        }
        if line.starts_with("*** End Patch") {
            break;
        }
        let Some(file) = files.last_mut() else {
            continue;
        };
        match line.strip_prefix("*** Move to: ") {
            Some(path) => file.moved_to = Some(path.trim().to_owned()),
            None if line.starts_with("*** ") => {}
            None => file.add(line),
        }
    }
    files
}

fn parse_unified(text: &str) -> Vec<FilePatch> {
    let mut files: Vec<FilePatch> = Vec::new();
    let mut before = String::new();
    let mut in_hunk = false;
    for line in text.lines() {
        if line.starts_with("diff --git ") {
            in_hunk = false;
        } else if let Some(path) = line.strip_prefix("--- ").filter(|_| !in_hunk) {
            before = path.to_owned();
        } else if let Some(after) = line.strip_prefix("+++ ").filter(|_| !in_hunk) {
            files.push(unified_file(&before, after));
        } else if line.starts_with("@@ ") {
            in_hunk = true;
            if let Some(file) = files.last_mut() {
                file.add(line);
            }
        } else if in_hunk && let Some(file) = files.last_mut() {
            file.add(line);
        }
    }
    files
}

fn unified_file(before: &str, after: &str) -> FilePatch {
    const NONE: &str = "/dev/null";
    let name = |path: &str| {
        let path = path.split('\t').next().unwrap_or(path).trim();
        let plain = path.strip_prefix("a/").or(path.strip_prefix("b/"));
        plain.unwrap_or(path).to_owned()
    };
    match (before.trim(), after.trim()) {
        (NONE, after) => FilePatch::new(&name(after), PatchKind::Add),
        (before, NONE) => FilePatch::new(&name(before), PatchKind::Delete),
        (_, after) => FilePatch::new(&name(after), PatchKind::Update),
    }
}

impl FilePatch {
    fn new(path: &str, kind: PatchKind) -> Self {
        Self {
            path: path.to_owned(),
            kind,
            moved_to: None,
            lines: Vec::new(),
        }
    }

    /// Describes the deletion of a file.
    pub(super) fn deleted(path: &str) -> Self {
        Self::new(path, PatchKind::Delete)
    }

    /// Describes a file that changes.
    pub(super) fn updated(path: &str) -> Self {
        Self::new(path, PatchKind::Update)
    }

    /// Reads the hunks of a file whose path is known; `None` if there are none.
    pub(super) fn of_hunks(path: &str, diff: &str) -> Option<Self> {
        let mut file = Self::updated(path);
        let is_head = |line: &&str| !line.starts_with("@@");
        diff.lines()
            .skip_while(is_head)
            .for_each(|line| file.add(line));
        (!file.lines.is_empty()).then_some(file)
    }

    /// Adds the replacement of a text.
    pub(super) fn replace(&mut self, old: &str, new: &str) {
        if !self.lines.is_empty() {
            self.lines.push((LineChange::Hunk, "@@".to_owned()));
        }
        for (change, text) in [(LineChange::Removed, old), (LineChange::Added, new)] {
            let lines = text.lines().map(|line| (change, line.to_owned()));
            self.lines.extend(lines);
        }
    }

    fn add(&mut self, line: &str) {
        let rest = |sign: char| line.strip_prefix(sign).map(str::to_owned);
        let line = if line.starts_with("@@") {
            (LineChange::Hunk, line.to_owned())
        } else if let Some(line) = rest('+') {
            (LineChange::Added, line)
        } else if let Some(line) = rest('-') {
            (LineChange::Removed, line)
        } else {
            let line = rest(' ').unwrap_or_else(|| line.to_owned());
            (LineChange::Kept, line)
        };
        self.lines.push(line);
    }
}

/// Reads blocks: a line with `SEARCH`, the old lines, `=======`, the new ones, and a line with
/// `REPLACE`.
pub(super) fn replaced_blocks(text: &str) -> Vec<Replacement> {
    let is_mark = |line: &str, word: &str| {
        let signs = line.trim_end().strip_suffix(word).map(str::trim_end);
        let is_sign = |c: char| matches!(c, '<' | '>' | '-' | '+');
        signs.is_some_and(|signs| signs.len() >= 3 && signs.chars().all(is_sign))
    };
    let mut blocks = Vec::new();
    let (mut old, mut new): (Option<String>, Option<String>) = (None, None);
    for line in text.split_inclusive('\n') {
        if is_mark(line, "SEARCH") {
            (old, new) = (Some(String::new()), None);
        } else if is_mark(line, "REPLACE") {
            if let (Some(old), Some(new)) = (old.take(), new.take()) {
                blocks.push(Replacement { old, new });
            }
        } else if let Some(new) = &mut new {
            new.push_str(line);
        } else if line.trim_end() == "=======" && old.is_some() {
            new = Some(String::new());
        } else if line.trim_end() == "-------" {
            // What is before it says where the block is.
            old = old.map(|_| String::new());
        } else if let Some(old) = &mut old {
            old.push_str(line);
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let models = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@ fn main\n one\n-two\n+2\n*** Add File: new.txt\n+hello\n*** Delete File: old.txt\n*** End Patch\nPATCH\n";
        let files = parse_patch(models);
        assert_eq!(files.len(), 3);
        assert_eq!(files[0].path, "src/a.rs");
        assert_eq!(files[0].moved_to.as_deref(), Some("src/b.rs"));
        let signs: Vec<LineChange> = files[0].lines.iter().map(|line| line.0).collect();
        let expected = [
            LineChange::Hunk,
            LineChange::Kept,
            LineChange::Removed,
            LineChange::Added,
        ];
        assert_eq!(signs, expected);
        assert_eq!(
            (files[1].kind, files[1].lines[0].1.as_str()),
            (PatchKind::Add, "hello")
        );
        assert_eq!(
            (files[2].kind, files[2].lines.len()),
            (PatchKind::Delete, 0)
        );

        let unified = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- not a head\n+new\n--- /dev/null\n";
        let files = parse_patch(unified);
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(
            files[0].lines[1],
            (LineChange::Removed, "-- not a head".to_owned())
        );
        let added = parse_patch("--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n");
        assert_eq!(
            (added[0].kind, added[0].path.as_str()),
            (PatchKind::Add, "n")
        );
    }

    #[test]
    fn a_patch_is_recognised() {
        assert!(is_patch("x\n--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b"));
        assert!(is_patch("*** Begin Patch\n*** Update File: a\n"));
        assert!(!is_patch("- a list\n+ of things\n@@ -1\n"));
        assert_eq!(parse_patch("nothing"), []);
    }
}
