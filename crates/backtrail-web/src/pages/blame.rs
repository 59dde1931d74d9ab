//! Who wrote each line of a file.

use backtrail_view::clean::shown;
use backtrail_view::highlight;
use backtrail_view::library::Palette;
use backtrail_view::library::{Answer, BlameLine, Line};
use maud::{Markup, html};
use serde_json::{Value, json};

use super::files::{MOST_LINES, left_lines};
use super::{code, links};
use crate::answer::Query;
use crate::library::Site;

/// Answers with the authors of the lines of `path`.
pub(crate) fn blame(site: &dyn Site, query: &Query) -> Answer<Value> {
    let (workspace, at) = (links::workspace(site, query)?, links::moment(query)?);
    let path = query.required("path")?;
    let lines = site.blame(&workspace, &at, path)?;
    Ok(json!({"html": table(&lines, path).into_string(), "lines": lines.len()}))
}

fn table(lines: &[BlameLine], path: &str) -> Markup {
    let texts: Vec<String> = lines.iter().map(|line| shown(&line.text)).collect();
    let code = highlight::file(path, &texts.join("\n"), Palette::Sixteen);
    let shown: Vec<(usize, &BlameLine)> = lines.iter().enumerate().take(MOST_LINES).collect();
    html! {
        @if lines.is_empty() { p.empty { "The file is empty." } }
        @else {
            div.scrolled tabindex="0" role="region" aria-label=(format!("Blame of {path}")) {
                table.lines.blame {
                    thead.hidden { tr {
                        th scope="col" { "Author" } th scope="col" { "Line" } th scope="col" { "Text" }
                    } }
                    @for group in shown.chunk_by(is_same_author) {
                        (group_rows(group, &code))
                    }
                }
            }
        }
        (left_lines(lines.len()))
    }
}

fn is_same_author((_, one): &(usize, &BlameLine), (_, next): &(usize, &BlameLine)) -> bool {
    (&one.who, &one.place, &one.about) == (&next.who, &next.place, &next.about)
}

fn group_rows(group: &[(usize, &BlameLine)], code: &[Line]) -> Markup {
    html! {
        tbody {
            @for (nth, (n, line)) in group.iter().enumerate() {
                tr id={ "L" (n + 1) } {
                    @if nth == 0 { (author(line, group.len())) }
                    td.n { (n + 1) }
                    td.t {
                        @match code.get(*n) {
                            Some(spans) => (code::line(spans)),
                            None => (shown(&line.text)),
                        }
                    }
                }
            }
        }
    }
}

fn author(line: &BlameLine, rows: usize) -> Markup {
    html! {
        th.author scope="rowgroup" rowspan=(rows) title=(line.about) {
            @match &line.place {
                Some(place) => a href=(links::place(place)) { (line.who) },
                None => (line.who),
            }
            @if !line.when.is_empty() { span.faint { " · " (line.when) } }
            @if !line.about.is_empty() { span.about { (line.about) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_lines_of_an_author_are_one_group_and_no_line_is_lost() {
        let line = |who: &str, text: &str| BlameLine {
            who: who.to_owned(),
            when: String::new(),
            about: String::new(),
            place: None,
            text: text.to_owned(),
        };
        let lines = [
            line("a", "1"),
            line("a", "2"),
            line("b", "3"),
            line("a", "4"),
        ];
        let html = table(&lines, "x.txt").into_string();
        assert_eq!(html.matches("<th class=\"author\"").count(), 3);
        assert!(html.contains("rowspan=\"2\""));
        assert_eq!(html.matches("<td class=\"t\">").count(), 4);
    }
}
