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
        let stopping = self.stopping();
        let files = count(stopping.len() as u64, "file");
        if self.merges() {
            return format!("{files} cannot be merged; nothing was touched");
        }
        let were = if stopping.len() == 1 { "was" } else { "were" };
        let since = match self.verb {
            Verb::Rewind | Verb::Restore => "after that point",
            _ => "since",
        };
        format!("{files} {were} changed by someone else {since}; nothing was touched")
    }

    /// Returns whether a merge was asked for.
    fn merges(&self) -> bool {
        self.conflicts.iter().any(|one| one.merge.is_some())
    }

    /// Returns what stands in the way: all that somebody else changed, or of a merge
    /// what it could not do.
    fn stopping(&self) -> Vec<&Contested> {
        let merges = self.merges();
        let stops = |one: &&Contested| !merges || one.unmerged().is_some();
        self.conflicts.iter().filter(stops).collect()
    }

    /// Lists who changed what, and the ways on.
    pub(super) fn contested(&self, width: Option<usize>) -> Vec<String> {
        let stopping = self.stopping();
        let shown = &stopping[..stopping.len().min(ROWS)];
        let rows: Vec<[String; 3]> = shown.iter().map(|one| one.columns()).collect();
        let mut lines = vec![String::new()];
        lines.extend(table(&rows, width.unwrap_or(usize::MAX)));
        if stopping.len() > ROWS {
            lines.push(format!("  and {} more", stopping.len() - ROWS));
        }
        lines.extend(shown.iter().flat_map(|one| one.overlapping(width)));
        lines.push(String::new());
        lines.extend(lists::lines(&self.ways_on(), width));
        lines
    }

    fn ways_on(&self) -> Vec<Item> {
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
        let stopping = self.stopping();
        let (keep, overwrite, theirs) = match &stopping[..] {
            [only] => {
                let theirs = if only.by.is_none() { "yours" } else { "theirs" };
                let mut keep = Item::prose("--keep", &format!("leave as it is, {verb} the rest"));
                keep.words.insert(1, visible_path(&only.path));
                let overwrite =
                    format!("take the file as it was{then} ({back} brings {theirs} back)");
                (keep, overwrite, theirs)
            }
            _ => {
                let keep = format!("leave these files as they are, {verb} the rest");
                let overwrite =
                    format!("take the files as they were{then} ({back} brings these back)");
                (Item::prose("--keep", &keep), overwrite, "the others'")
            }
        };
        let merge = match (self.verb, &self.step) {
            (Verb::Redo, _) => format!("bring back its lines, keep {theirs}"),
            (_, Some(_)) => format!("take back its lines, keep {theirs}"),
            _ => format!("take back the agent's lines, keep {theirs}"),
        };
        let mut ways = vec![keep];
        if !self.merges() {
            ways.push(Item::prose("--merge", &merge));
        }
        ways.push(Item::prose("--overwrite", &overwrite));
        ways
    }
}

impl Contested {
    /// Says who changed it last, and when.
    pub(super) fn who(&self) -> String {
        let who = match &self.by {
            None => "you".to_owned(),
            Some(id) => format!("session {}", short(id)),
        };
        let when = match self.unsaved {
            true => "not saved yet".to_owned(),
            false => when::brief(self.at),
        };
        format!("{who}, {when}")
    }

    /// Returns the path, who changed it last, and who else did.
    fn columns(&self) -> [String; 3] {
        let also = self.also.as_ref().map_or_else(String::new, |also| {
            format!("also changed by {}", shortened(&visible(also), 60))
        });
        [visible_path(&self.path), self.who(), also]
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
