//! The files of a workspace at a moment: a folder at a time, and the content of one.

use std::collections::BTreeSet;

use backtrail_view::highlight;
use backtrail_view::library::Palette;
use backtrail_view::library::{Answer, Line, Moment};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{code, links};
use crate::answer::Query;
use crate::library::Site;

/// More lines of a file are not shown.
pub(super) const MOST_LINES: usize = 20_000;
/// More files of a folder, or that match a name, are not shown.
const MOST_FILES: usize = 2_000;

/// Answers with a folder, `dir`, or with the files whose path contains `find`.
pub(crate) fn files(site: &dyn Site, query: &Query) -> Answer<Value> {
    let (workspace, at) = (links::workspace(site, query)?, links::moment(query)?);
    let paths = site.files(&workspace, &at)?;
    let shelf = Shelf { workspace, at };
    let html = match query.text("find") {
        Some(part) => shelf.found(&paths, part),
        None => shelf.folder(&paths, query.text("dir").unwrap_or_default()),
    };
    Ok(json!({"html": html.into_string(), "count": paths.len()}))
}

/// Where files are, and when.
struct Shelf {
    workspace: String,
    at: Moment,
}

impl Shelf {
    fn link(&self, path: &str, shown: &str) -> Markup {
        let address = links::file("/files", &self.workspace, &self.at, path);
        html! { a href=(address) data-path=(path) { (shown) } }
    }

    /// Returns what is in a folder, whose name is empty or ends with a slash: its folders, which
    /// are filled when they are opened, and its files.
    fn folder(&self, paths: &[String], dir: &str) -> Markup {
        let names = paths.iter().filter_map(|path| path.strip_prefix(dir));
        let (folders, files) = split(names);
        let left = files.len().saturating_sub(MOST_FILES);
        html! {
            ul.tree {
                @for name in folders {
                    li { details.folder data-dir={ (dir) (name) "/" } { summary { (name) "/" } } }
                }
                @for name in files.iter().take(MOST_FILES) {
                    li { (self.link(&format!("{dir}{name}"), name)) }
                }
            }
            (more(left))
        }
    }

    /// Returns the files whose path contains some letters, whatever their case.
    fn found(&self, paths: &[String], part: &str) -> Markup {
        let part = part.to_lowercase();
        let found = paths
            .iter()
            .filter(|path| path.to_lowercase().contains(&part));
        let found: Vec<&String> = found.collect();
        html! {
            @if found.is_empty() { p.empty { "No file matches." } }
            ul.tree { @for path in found.iter().take(MOST_FILES) { li { (self.link(path, path)) } } }
            (more(found.len().saturating_sub(MOST_FILES)))
        }
    }
}

/// Returns the folders and the files of names below a folder.
fn split<'p>(names: impl Iterator<Item = &'p str>) -> (BTreeSet<&'p str>, BTreeSet<&'p str>) {
    let (mut folders, mut files) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        match name.split_once('/') {
            Some((folder, _)) => folders.insert(folder),
            None => files.insert(name),
        };
    }
    (folders, files)
}

fn more(left: usize) -> Markup {
    html! { @if left > 0 { p.note { (left) " more files are not shown: find them by name" } } }
}

/// Answers with the content of a file, `path`.
pub(crate) fn file(site: &dyn Site, query: &Query) -> Answer<Value> {
    let (workspace, at) = (links::workspace(site, query)?, links::moment(query)?);
    let path = query.required("path")?;
    let text = site.file(&workspace, &at, path)?;
    let lines = highlight::file(path, &text, Palette::Sixteen);
    Ok(json!({"html": content(&lines, path).into_string(), "lines": lines.len()}))
}

fn content(lines: &[Line], path: &str) -> Markup {
    html! {
        @if lines.is_empty() { p.empty { "The file is empty." } }
        @else {
            div.scrolled tabindex="0" role="region" aria-label=(path) {
                table.lines {
                    thead.hidden { tr { th scope="col" { "Line" } th scope="col" { "Text" } } }
                    @for (n, line) in lines.iter().take(MOST_LINES).enumerate() {
                        tr id={ "L" (n + 1) } { td.n { (n + 1) } td.t { (code::line(line)) } }
                    }
                }
            }
        }
        (left_lines(lines.len()))
    }
}

/// Says how many lines are not shown.
pub(super) fn left_lines(all: usize) -> Markup {
    let left = all.saturating_sub(MOST_LINES);
    html! { @if left > 0 { p.note { (left) " more lines are not shown: backtrail cat prints all of them" } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(paths: &[&str], dir: &str) -> String {
        let paths: Vec<String> = paths.iter().map(|&path| path.to_owned()).collect();
        let shelf = Shelf {
            workspace: "w".to_owned(),
            at: Moment::Now,
        };
        shelf.folder(&paths, dir).into_string()
    }

    #[test]
    fn a_folder_holds_what_is_directly_in_it() {
        let paths = ["a.txt", "src/lib.rs", "src/deep/x.rs", "srcs"];
        let top = folder(&paths, "");
        assert!(
            top.contains("data-dir=\"src/\"") && top.contains(">a.txt<") && top.contains(">srcs<")
        );
        assert!(!top.contains("lib.rs"));
        let src = folder(&paths, "src/");
        assert!(src.contains("data-dir=\"src/deep/\"") && src.contains(">lib.rs<"));
        assert!(
            src.contains("path=src%2Flib.rs") && !src.contains("x.rs") && !src.contains("srcs")
        );
    }
}
