//! What is said where somebody else changed what is to be taken back.

use backtrail::Verb;
use unicode_width::UnicodeWidthStr;

use super::lists::{self, Item, shortened};
use super::outcome::{Contested, Outcome};
use crate::commands::short;
use crate::text::{count, visible, visible_path};
use crate::when;

/// How many rows are shown before the rest is a number.
const ROWS: usize = 20;

impl Outcome {
    /// Says in one line what stands in the way.
    pub(super) fn refusal(&self) -> String {
        let files = count(self.conflicts.len() as u64, "file");
        let were = if self.conflicts.len() == 1 {
            "was"
        } else {
            "were"
        };
        let since = match self.verb {
            Verb::Rewind | Verb::Restore => "after that point",
            _ => "since",
        };
        format!("{files} {were} changed by someone else {since}; nothing was touched")
    }

    /// Lists who changed what, and the ways on.
    pub(super) fn contested(&self, width: Option<usize>) -> Vec<String> {
        let shown = &self.conflicts[..self.conflicts.len().min(ROWS)];
        let rows: Vec<[String; 3]> = shown.iter().map(Contested::columns).collect();
        let mut lines = vec![String::new()];
        lines.extend(table(&rows, width.unwrap_or(usize::MAX)));
        if self.conflicts.len() > ROWS {
            lines.push(format!("  and {} more", self.conflicts.len() - ROWS));
        }
        lines.push(String::new());
        lines.extend(lists::lines(&self.ways_on(), width));
        lines
    }

    fn ways_on(&self) -> [Item; 2] {
        let verb = match self.verb {
            Verb::Rewind => "rewind",
            Verb::Restore => "restore",
            Verb::Redo => "redo",
            _ => "undo",
        };
        let then = match (&self.to, self.verb) {
            (Some(to), Verb::Rewind | Verb::Restore) => format!(" at {}", when::brief(to.at)),
            (_, Verb::Redo) => " when it was undone".to_owned(),
            _ => " before".to_owned(),
        };
        let back = super::back(self.verb);
        match &self.conflicts[..] {
            [only] => {
                let theirs = if only.by.is_none() { "yours" } else { "theirs" };
                let mut keep = Item::prose("--keep", &format!("leave as it is, {verb} the rest"));
                keep.words.insert(1, visible_path(&only.path));
                let overwrite =
                    format!("take the file as it was{then} ({back} brings {theirs} back)");
                [keep, Item::prose("--overwrite", &overwrite)]
            }
            _ => {
                let keep = format!("leave these files as they are, {verb} the rest");
                let overwrite =
                    format!("take the files as they were{then} ({back} brings these back)");
                [
                    Item::prose("--keep", &keep),
                    Item::prose("--overwrite", &overwrite),
                ]
            }
        }
    }
}

impl Contested {
    /// Returns the path, who changed it last, and who else did.
    fn columns(&self) -> [String; 3] {
        let who = match &self.by {
            None => "you".to_owned(),
            Some(id) => format!("session {}", short(id)),
        };
        let when = match self.unsaved {
            true => "not saved yet".to_owned(),
            false => when::brief(self.at),
        };
        let also = self.also.as_ref().map_or_else(String::new, |also| {
            format!("also changed by {}", shortened(&visible(also), 60))
        });
        [visible_path(&self.path), format!("{who}, {when}"), also]
    }
}

/// Writes rows in columns; where a row is too wide for that, what is behind the
/// path goes below it in all of them.
fn table(rows: &[[String; 3]], width: usize) -> Vec<String> {
    let widest = |n: usize| rows.iter().map(|row| row[n].width()).max().unwrap_or(0);
    let (path, who) = (widest(0), widest(1));
    let pad = |text: &str, to: usize| " ".repeat(to.saturating_sub(text.width()));
    let flat = rows.iter().map(|[name, by, also]| {
        let line = format!(
            "  {name}{}   {by}{}   {also}",
            pad(name, path),
            pad(by, who)
        );
        line.trim_end().to_owned()
    });
    let flat: Vec<String> = flat.collect();
    if flat.iter().all(|line| line.width() <= width) {
        return flat;
    }
    let mut lines = Vec::new();
    for [name, by, also] in rows {
        lines.push(format!("  {name}"));
        let line = format!("      {by}{}   {also}", pad(by, who));
        match line.width() <= width {
            true => lines.push(line.trim_end().to_owned()),
            false => lines.extend([
                format!("      {by}"),
                format!("      {}", shortened(also, width.saturating_sub(6))),
            ]),
        }
    }
    lines
}

#[cfg(test)]
#[path = "conflicts_tests.rs"]
mod tests;
