//! What a turn, a call, a row of the timeline, or the time between two moments changed.

use backtrail_view::library::{Answer, Between, ChangedFile, Changes, ChangesOf, PartOrTurn};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::diff::{self, Hunks, Layout};
use super::links;
use crate::answer::{Query, moment_text};
use crate::library::Site;

/// Answers with the files that changed: of a `row`, `from` and `to`, or `session` and `seq`.
pub(crate) fn changes(site: &dyn Site, query: &Query) -> Answer<Value> {
    let of = changes_of(site, query)?;
    let changes = site.changes(&of)?;
    Ok(json!({
        "title": changes.title,
        "count": changes.files.len(),
        "html": list(&changes, &of, query.text("w").unwrap_or_default()).into_string(),
    }))
}

fn changes_of(site: &dyn Site, query: &Query) -> Answer<ChangesOf> {
    if let Some(row) = query.text("row") {
        return Ok(ChangesOf::Row(row.to_owned()));
    }
    if query.text("from").is_some() {
        return Ok(ChangesOf::Between(Between {
            workspace: links::workspace(site, query)?,
            from: query.moment("from")?,
            to: query.moment("to")?,
        }));
    }
    let what = match query.text("part") {
        Some(_) => PartOrTurn::Part,
        None => PartOrTurn::Turn,
    };
    Ok(ChangesOf::Part(query.place()?, what))
}

/// Returns the parameters by which [`changes_of`] finds the same again.
fn parameters_of(of: &ChangesOf) -> String {
    match of {
        ChangesOf::Row(row) => links::parameters(&[("row", row)]),
        ChangesOf::Between(between) => links::parameters(&[
            ("from", &moment_text(&between.from)),
            ("to", &moment_text(&between.to)),
        ]),
        ChangesOf::Part(place, what) => {
            let seq = place.seq.to_string();
            let trail = place.trail.map(|trail| trail.to_string());
            let part = match what {
                PartOrTurn::Part => "part",
                PartOrTurn::Turn => "",
            };
            links::parameters(&[
                ("session", &place.session),
                ("seq", &seq),
                ("trail", trail.as_deref().unwrap_or_default()),
                ("part", part),
            ])
        }
    }
}

fn list(changes: &Changes, of: &ChangesOf, workspace: &str) -> Markup {
    let between = changes.between.as_ref();
    html! {
        div.changes data-of=(parameters_of(of)) data-w=(workspace)
            data-workspace=[between.map(|it| &it.workspace)]
            data-from=[between.map(|it| moment_text(&it.from))]
            data-to=[between.map(|it| moment_text(&it.to))] {
            @if let Some(note) = &changes.note { p.note { (note) } }
            @if changes.files.is_empty() && changes.note.is_none() { p.empty { "No file changed." } }
            @for file in &changes.files { (file_details(file, between)) }
        }
    }
}

fn file_details(file: &ChangedFile, between: Option<&Between>) -> Markup {
    html! {
        details.file data-path=(file.path) {
            summary {
                b { (file.path) }
                span.what { (file.what) }
                span.end { (line_counts(file.lines)) }
            }
            @if let Some(between) = between {
                p.tools {
                    a href=(links::file("/files", &between.workspace, &between.to, &file.path)) { "File" }
                    a href=(links::file("/blame", &between.workspace, &between.to, &file.path)) { "Blame" }
                    button.small type="button" data-write="" data-restore="" { "Restore this file" }
                }
            }
            div.diff-here {}
        }
    }
}

fn line_counts(lines: Option<(u64, u64)>) -> Markup {
    html! {
        @match lines {
            Some((added, removed)) => { span.plus { "+" (added) } " " span.minus { "−" (removed) } }
            None => "binary",
        }
    }
}

/// Answers with the difference of a file. `between_w`, `between_from` and `between_to` are the
/// states that its changes were listed with.
pub(crate) fn diff(site: &dyn Site, query: &Query) -> Answer<Value> {
    let between = match query.text("between_w") {
        Some(workspace) => Some(Between {
            workspace: workspace.to_owned(),
            from: query.moment("between_from")?,
            to: query.moment("between_to")?,
        }),
        None => None,
    };
    let of = changes_of(site, query)?;
    let found = site.diff(&of, between.as_ref(), query.required("path")?)?;
    let layout = match query.text("layout") {
        Some("split") => Layout::SideBySide,
        _ => Layout::Unified,
    };
    let hunks = match between {
        Some(_) => Hunks::Restorable,
        None => Hunks::Shown,
    };
    Ok(json!({"html": diff::table(&found, layout, hunks).into_string()}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_view::library::{Moment, Place};

    #[test]
    fn the_parameters_of_a_list_name_all_that_it_is_of() {
        let place = Place {
            session: "s&1".to_owned(),
            seq: 4,
            trail: Some(2),
        };
        let of = ChangesOf::Part(place, PartOrTurn::Part);
        assert_eq!(parameters_of(&of), "session=s%261&seq=4&trail=2&part=part");
        let between = ChangesOf::Between(Between {
            workspace: "w".to_owned(),
            from: Moment::Checkpoint("c1".to_owned()),
            to: Moment::Now,
        });
        assert_eq!(parameters_of(&between), "from=c%3Ac1&to=now");
        assert_eq!(
            parameters_of(&ChangesOf::Row("r/1".to_owned())),
            "row=r%2F1"
        );
    }
}
