//! The lines that a merge could not take back, because somebody else changed them too.

use backtrail::{Merge, Overlap, Unmerged};
use unicode_width::UnicodeWidthStr;

use super::lists::shortened;
use super::outcome::Contested;
use crate::text::{count, one_line, visible, visible_path};

/// How many places of a file are shown, and how many lines of each.
const PLACES: usize = 5;
const LINES: usize = 6;

impl Contested {
    /// Returns why it could not be merged.
    pub(super) fn unmerged(&self) -> Option<&Unmerged> {
        match &self.merge {
            Some(Merge::Stopped(unmerged)) => Some(unmerged),
            _ => None,
        }
    }

    /// Shows why it could not be merged, with the lines.
    pub(super) fn overlapping(&self, width: Option<usize>) -> Vec<String> {
        let Some(unmerged) = self.unmerged() else {
            return Vec::new();
        };
        let width = width.unwrap_or(usize::MAX);
        let path = visible_path(&self.path);
        let mut lines = vec![String::new(), format!("  {path}: {}", unmerged.why)];
        for overlap in unmerged.overlaps.iter().take(PLACES) {
            lines.extend(place(overlap, width));
        }
        if let Some(more) = unmerged.overlaps.len().checked_sub(PLACES)
            && more > 0
        {
            lines.push(format!("    and {} more", count(more as u64, "place")));
        }
        lines
    }
}

/// Shows one place: as it is now, as those left it whose work goes, and as it was.
fn place(overlap: &Overlap, width: usize) -> Vec<String> {
    let by = overlap.by.as_deref().map_or_else(
        || "it".to_owned(),
        |by| shortened(&visible(by), width.saturating_sub(30).clamp(20, 60)),
    );
    let mut lines = vec![format!("    line {}, which {by} changed:", overlap.line)];
    for (label, bytes) in [
        ("now ", &overlap.now),
        ("left", &overlap.left),
        ("was ", &overlap.was),
    ] {
        let text = String::from_utf8_lossy(bytes);
        let all: Vec<&str> = text.lines().collect();
        let mut label = label.to_owned();
        let mut push = |text: &str| {
            let line = format!("      {label}  {text}");
            lines.push(line.trim_end().to_owned());
            label = "    ".to_owned();
        };
        if all.is_empty() {
            push("(nothing)");
        }
        for line in all.iter().take(LINES) {
            push(&cut(line, width.saturating_sub(12)));
        }
        if all.len() > LINES {
            push(&format!(
                "and {} more",
                count((all.len() - LINES) as u64, "line")
            ));
        }
    }
    lines
}

/// Cuts a line of a file where the terminal ends; its indentation stays.
fn cut(line: &str, width: usize) -> String {
    let shown = visible(line).replace('\t', "    ");
    let text = shown.trim_start();
    let indent = shown[..shown.len() - text.len()].to_owned();
    match shown.width() <= width {
        true => shown,
        false => {
            let indent: String = indent.chars().take(width / 2).collect();
            let width = width.saturating_sub(indent.width());
            format!("{indent}{}", one_line(text, width))
        }
    }
}
