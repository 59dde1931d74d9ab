//! What is chosen from: sessions, points, and matches of a search.

use std::sync::Arc;

use anstyle::{Effects, Style};

use crate::diff_rows;
use crate::look::Look;
use crate::request::DiffRequest;
use backtrail_view::highlight;
use backtrail_view::library::{
    Action, Answer, Between, Changes, ChangesOf, Fold, Freshness, Library, Line, Moment,
    OnConflict, Page, PageAt, PageRequest, Plan, Scope, SessionEntry, Span, TimelineRow,
};

/// As many points are offered.
const POINTS: usize = 1000;
/// The preview of a point shows the differences of as many files.
const FILES: usize = 3;

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// What is returned if it is chosen.
    pub id: String,
    /// What is shown of it, clean. The last column takes what is left of the width.
    pub columns: Vec<String>,
    /// What follows where there is room beside them, the most important first.
    pub beside: Vec<String>,
    /// What is searched when somebody types.
    pub searched: String,
}

/// What a choice looks like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    /// Its lines.
    pub lines: Vec<Line>,
    /// Whether the last of them matter most.
    pub shows_end: bool,
}

/// Where choices come from. Every method is called on a thread of its own.
pub trait Choices: Send + Sync + 'static {
    /// Returns whether [`list`](Self::list) searches for what was typed. Otherwise it is called
    /// once, and its answer filtered.
    fn is_search(&self) -> bool {
        false
    }
    /// Returns what there is to choose from, best first.
    fn list(&self, typed: &str) -> Answer<Vec<Choice>>;
    /// Returns what a choice looks like in so many columns of a terminal.
    fn preview(&self, id: &str, width: u16, look: Look) -> Answer<Preview>;
}

/// Sessions: those of this workspace, or all if it has none.
pub struct Sessions(pub Arc<dyn Library>);

impl Choices for Sessions {
    fn list(&self, _: &str) -> Answer<Vec<Choice>> {
        let here = self.0.sessions(Scope::Workspace, Freshness::Current);
        let mut entries = here.map(|list| list.entries).unwrap_or_default();
        if entries.is_empty() {
            entries = self
                .0
                .sessions(Scope::Everything, Freshness::Current)?
                .entries;
        }
        // Runs have no conversation; they come last.
        entries.sort_by_key(|entry| (entry.is_wordless, std::cmp::Reverse(entry.updated_ms)));
        Ok(entries.into_iter().map(of_session).collect())
    }

    /// The end of the conversation.
    fn preview(&self, id: &str, width: u16, look: Look) -> Answer<Preview> {
        let page = page(self.0.as_ref(), (id, None), PageAt::End, (width, look))?;
        let lines = page.parts.into_iter().flat_map(|part| part.lines);
        Ok(Preview {
            lines: lines.collect(),
            shows_end: true,
        })
    }
}

fn of_session(entry: SessionEntry) -> Choice {
    let tags: String = entry.tags.iter().map(|tag| format!(" #{tag}")).collect();
    let searched = format!(
        "{} {} {}{tags} {}",
        entry.title, entry.agent, entry.project, entry.short
    );
    Choice {
        id: entry.id,
        columns: vec![entry.short, entry.when, entry.agent, entry.title],
        beside: Vec::new(),
        searched,
    }
}

fn page(
    library: &dyn Library,
    (session, trail): (&str, Option<u32>),
    at: PageAt,
    (width, look): (u16, Look),
) -> Answer<Page> {
    library.page(&PageRequest {
        session: session.to_owned(),
        at,
        trail,
        width,
        fold: Fold::Short,
        palette: look.palette(),
    })
}

/// Points of this workspace: the files as they were after a row of its timeline.
pub struct Points {
    /// Where they come from.
    pub library: Arc<dyn Library>,
    /// The row that is not a point: what changed since the last one.
    pub except: &'static str,
    /// What is shown of a point.
    pub preview: PointPreview,
}

/// What is shown of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointPreview {
    /// What the row changed.
    Row,
    /// The files that are different now.
    Differences,
    /// What a rewind to it would do.
    Rewind,
}

impl Points {
    /// Returns what a row changed, or the files that are different now, each with how.
    fn changes(&self, of: &ChangesOf, width: u16, look: Look) -> Answer<Vec<Line>> {
        let changes = self.library.changes(of)?;
        let mut lines = files_of(&changes);
        for file in changes.files.iter().take(FILES) {
            let between = changes.between.as_ref();
            lines.push(Line::new());
            lines.extend(diff(
                self.library.as_ref(),
                of,
                between,
                (&file.path, width, look),
            )?);
        }
        Ok(lines)
    }
}

impl Choices for Points {
    fn list(&self, _: &str) -> Answer<Vec<Choice>> {
        let rows = self.library.timeline(POINTS)?.rows.into_iter();
        let points = rows.filter(|row| row.id != self.except);
        Ok(points.map(of_point).collect())
    }

    fn preview(&self, id: &str, width: u16, look: Look) -> Answer<Preview> {
        let library = self.library.as_ref();
        let lines = match self.preview {
            PointPreview::Row => self.changes(&ChangesOf::Row(id.to_owned()), width, look)?,
            PointPreview::Differences => {
                let of = ChangesOf::Between(since(library, id)?);
                self.changes(&of, width, look)?
            }
            PointPreview::Rewind => lines_of(&rewind_plan(library, id)?),
        };
        Ok(Preview {
            lines,
            shows_end: false,
        })
    }
}

/// Returns the states at a point of this workspace and now.
fn since(library: &dyn Library, point: &str) -> Answer<Between> {
    Ok(Between {
        workspace: library.timeline(1)?.workspace,
        from: Moment::Checkpoint(point.to_owned()),
        to: Moment::Now,
    })
}

/// Plans to rewind this workspace to a point.
///
/// # Errors
///
/// It cannot be planned.
pub fn rewind_plan(library: &dyn Library, point: &str) -> Answer<Plan> {
    let Between {
        workspace, from, ..
    } = since(library, point)?;
    library.plan(&Action::Rewind(workspace, from))
}

/// Plans to restore a file as it was at a point of this workspace.
///
/// # Errors
///
/// It cannot be planned.
pub fn restore_plan(library: &dyn Library, point: &str, path: &str) -> Answer<Plan> {
    let Between {
        workspace, from, ..
    } = since(library, point)?;
    library.plan(&Action::Restore(workspace, from, vec![path.to_owned()]))
}

/// Returns the lines of a plan, below what it does.
fn lines_of(plan: &Plan) -> Vec<Line> {
    let bold = Style::new().effects(Effects::BOLD);
    let mut lines = vec![vec![Span::new(bold, &plan.title)]];
    lines.extend(plan.lines.iter().cloned());
    lines
}

/// What can be done about files that have other changes: `keep`, `merge`, `overwrite`.
pub struct Ways(pub Plan);

impl Choices for Ways {
    fn list(&self, _: &str) -> Answer<Vec<Choice>> {
        let choices = self.0.choices.iter().map(|(on_conflict, meaning)| {
            let id = match on_conflict {
                OnConflict::Stop => "stop",
                OnConflict::Keep => "keep",
                OnConflict::Merge => "merge",
                OnConflict::Overwrite => "overwrite",
            };
            Choice {
                id: id.to_owned(),
                columns: vec![id.to_owned(), meaning.clone()],
                beside: Vec::new(),
                searched: format!("{id} {meaning}"),
            }
        });
        Ok(choices.collect())
    }

    fn preview(&self, _: &str, _: u16, _: Look) -> Answer<Preview> {
        Ok(Preview {
            lines: lines_of(&self.0),
            shows_end: false,
        })
    }
}

/// Returns the difference of a file, for a width.
fn diff(
    library: &dyn Library,
    of: &ChangesOf,
    between: Option<&Between>,
    (path, width, look): (&str, u16, Look),
) -> Answer<Vec<Line>> {
    let diff = library.diff(of, between, path)?;
    let request = DiffRequest {
        of: of.clone(),
        between: between.cloned(),
        path: path.to_owned(),
        width,
        skip: 0,
        side_by_side: false,
    };
    let rows = diff_rows::lay_out(&diff, &request, look).rows;
    Ok(rows.into_iter().map(|(row, _)| row).collect())
}

pub(super) fn of_point(row: TimelineRow) -> Choice {
    let at = format!("{} {}", row.day, row.at);
    let searched = format!("{} {} {} {}", row.about, row.kind, row.short, at);
    Choice {
        id: row.id,
        columns: vec![row.kind, row.about],
        beside: vec![at.trim().to_owned(), row.change],
        searched,
    }
}

fn files_of(changes: &Changes) -> Vec<Line> {
    let bold = Style::new().effects(Effects::BOLD);
    let mut lines = vec![vec![Span::new(bold, &changes.title)]];
    lines.extend(changes.note.iter().map(|note| vec![Span::plain(note)]));
    lines.extend(changes.files.iter().map(|file| {
        let numbers = file.lines.map_or_else(
            || "binary".to_owned(),
            |(added, removed)| format!("+{added} -{removed}"),
        );
        vec![Span::plain(format!(
            "{}  {}  {numbers}",
            file.path, file.what
        ))]
    }));
    lines
}

/// Files at a point of this workspace.
pub struct Files {
    /// Where they come from.
    pub library: Arc<dyn Library>,
    /// The checkpoint.
    pub point: String,
    /// Whether only those are listed that are different now.
    pub only_changed: bool,
}

impl Choices for Files {
    fn list(&self, _: &str) -> Answer<Vec<Choice>> {
        let between = since(self.library.as_ref(), &self.point)?;
        let files: Vec<(String, String)> = match self.only_changed {
            true => {
                let changes = self.library.changes(&ChangesOf::Between(between))?;
                let files = changes.files.into_iter();
                files.map(|file| (file.path, file.what)).collect()
            }
            false => {
                let files = self.library.files(&between.workspace, &between.from)?;
                files
                    .into_iter()
                    .map(|path| (path, String::new()))
                    .collect()
            }
        };
        let choices = files.into_iter().map(|(path, what)| Choice {
            columns: vec![path.clone(), what],
            beside: Vec::new(),
            searched: path.clone(),
            id: path,
        });
        Ok(choices.collect())
    }

    /// What a restore would do and what is different now, or the file as it was.
    fn preview(&self, path: &str, width: u16, look: Look) -> Answer<Preview> {
        let library = self.library.as_ref();
        let between = since(library, &self.point)?;
        let lines = match self.only_changed {
            true => {
                let mut lines = lines_of(&restore_plan(library, &self.point, path)?);
                lines.extend([Line::new(), vec![Span::plain("changed since then:")]]);
                let of = ChangesOf::Between(between.clone());
                lines.extend(diff(library, &of, Some(&between), (path, width, look))?);
                lines
            }
            false => {
                let text = library.file(&between.workspace, &between.from, path)?;
                highlight::file(path, &text, look.palette())
            }
        };
        Ok(Preview {
            lines,
            shows_end: false,
        })
    }
}

/// Matches of a full-text search over everything. The id of one is `SESSION:SEQ`, followed by a
/// space and its trail if it was undone.
pub struct Matches(pub Arc<dyn Library>);

impl Choices for Matches {
    fn is_search(&self) -> bool {
        true
    }

    fn list(&self, typed: &str) -> Answer<Vec<Choice>> {
        if typed.trim().is_empty() {
            return Ok(Vec::new());
        }
        let results = self.0.search(typed, Scope::Everything)?;
        let hits = results.hits.into_iter().map(|hit| {
            let place = hit.place;
            let trail = place
                .trail
                .map_or_else(String::new, |trail| format!(" {trail}"));
            let first = hit.snippet.first().into_iter().flatten();
            let snippet: String = first.map(|span| span.text.as_str()).collect();
            Choice {
                id: format!("{}:{}{trail}", place.session, place.seq),
                columns: vec![hit.heading, snippet.trim().to_owned()],
                beside: Vec::new(),
                searched: String::new(),
            }
        });
        Ok(hits.collect())
    }

    /// The conversation from the match on.
    fn preview(&self, id: &str, width: u16, look: Look) -> Answer<Preview> {
        let (place, trail) = id.split_once(' ').unwrap_or((id, ""));
        let (session, seq) = place.rsplit_once(':').unwrap_or((place, ""));
        let seq: u64 = seq.parse().unwrap_or_default();
        let page = page(
            self.0.as_ref(),
            (session, trail.parse().ok()),
            PageAt::Around(seq),
            (width, look),
        )?;
        // The part that has the record begins at it or before it.
        let first = page.parts.iter().rposition(|part| part.seq <= seq);
        let parts = page.parts.into_iter().skip(first.unwrap_or(0));
        Ok(Preview {
            lines: parts.flat_map(|part| part.lines).collect(),
            shows_end: false,
        })
    }
}
