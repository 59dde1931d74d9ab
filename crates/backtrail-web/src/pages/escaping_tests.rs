//! Text of a session is only ever text: whatever it holds, it ends up escaped in every page.

use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use backtrail_view::library::*;
use serde_json::Value;

use crate::answer::Query;
use crate::library::*;
use crate::routes::READS;

/// Texts that would be markup if they were not escaped: in text, in an attribute, in a path.
const HOSTILE: [&str; 6] = [
    "<img src=x onerror=alert(1)>",
    "\"><script>alert(2)</script>",
    "' autofocus onfocus=alert(3) x='",
    "\" onmouseover=\"alert(4)",
    "</table></svg><style>*{display:none}</style>",
    "javascript:alert(5)//<a href=x>",
];

/// A site in which every text is the same.
struct Hostile(&'static str);

impl Hostile {
    fn text(&self) -> String {
        self.0.to_owned()
    }

    fn place(&self) -> Place {
        Place {
            session: self.text(),
            seq: 1,
            trail: Some(2),
        }
    }

    fn spans(&self) -> Line {
        let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
        vec![Span::plain(self.text()), Span::new(red, self.text())]
    }

    fn entry(&self) -> SessionEntry {
        SessionEntry {
            id: self.text(),
            short: self.text(),
            agent: self.text(),
            project: self.text(),
            title: self.text(),
            when: self.text(),
            cost: self.text(),
            tags: vec![self.text()],
            depth: 2,
            is_sub_agent: true,
            ..SessionEntry::default()
        }
    }

    fn row(&self) -> SessionRow {
        SessionRow {
            entry: self.entry(),
            model: self.text(),
            tokens: self.text(),
        }
    }

    fn spending_row(&self, key: &str) -> SpendingRow {
        SpendingRow {
            name: self.text(),
            key: key.to_owned(),
            cost: self.text(),
            tokens: self.text(),
            share: 1000,
            sessions: vec![NamedSession {
                id: self.text(),
                short: self.text(),
                title: self.text(),
            }],
            ..SpendingRow::default()
        }
    }
}

impl Library for Hostile {
    fn sessions(&self, _: Scope, _: Freshness) -> Answer<SessionList> {
        Ok(SessionList::default())
    }
    fn head(&self, _: &str) -> Answer<SessionHead> {
        Ok(SessionHead::default())
    }
    fn page(&self, _: &PageRequest) -> Answer<Page> {
        Ok(Page::default())
    }
    fn text(&self, _: &Place) -> Answer<String> {
        Ok(self.text())
    }
    fn prompt_from(&self, _: &Place, _: bool) -> Answer<Option<u64>> {
        Ok(None)
    }
    fn changes(&self, _: &ChangesOf) -> Answer<Changes> {
        let file = |lines| ChangedFile {
            path: self.text(),
            what: self.text(),
            lines,
        };
        Ok(Changes {
            title: self.text(),
            between: Some(Between {
                workspace: self.text(),
                from: Moment::Checkpoint(self.text()),
                to: Moment::Record(self.place()),
            }),
            files: vec![file(Some((1, 2))), file(None)],
            note: Some(self.text()),
        })
    }
    fn diff(&self, _: &ChangesOf, _: Option<&Between>, path: &str) -> Answer<FileDiff> {
        let kinds = [
            DiffKind::Hunk,
            DiffKind::Removed,
            DiffKind::Added,
            DiffKind::Same,
        ];
        let line = |kind| DiffLine {
            kind,
            old: Some(1),
            new: Some(2),
            text: format!("{kind:?} {}", self.0),
        };
        Ok(FileDiff {
            path: path.to_owned(),
            lines: kinds.map(line).into(),
            note: Some(self.text()),
        })
    }
    fn files(&self, _: &str, _: &Moment) -> Answer<Vec<String>> {
        Ok(vec![self.text(), format!("{0}/{0}", self.0)])
    }
    fn file(&self, _: &str, _: &Moment, _: &str) -> Answer<String> {
        Ok(self.text())
    }
    fn blame(&self, _: &str, _: &Moment, _: &str) -> Answer<Vec<BlameLine>> {
        let line = |place| BlameLine {
            who: self.text(),
            when: self.text(),
            about: self.text(),
            place,
            text: self.text(),
        };
        Ok(vec![line(Some(self.place())), line(None)])
    }
    fn timeline(&self, _: usize) -> Answer<Timeline> {
        Ok(Timeline {
            rows: vec![TimelineRow {
                id: self.text(),
                day: self.text(),
                at: self.text(),
                kind: self.text(),
                style: Style::new(),
                about: self.text(),
                change: self.text(),
                short: self.text(),
                session: Some(self.place()),
                step: Some(false),
            }],
            ..Timeline::default()
        })
    }
    fn search(&self, _: &str, _: Scope) -> Answer<SearchResults> {
        Ok(SearchResults::default())
    }
    fn costs(&self, _: CostsBy, _: Scope) -> Answer<Costs> {
        Ok(Costs::default())
    }
    fn next_undo(&self) -> String {
        self.text()
    }
    fn plan(&self, _: &Action) -> Answer<Plan> {
        Ok(Plan::default())
    }
    fn apply(&self, _: u64, _: OnConflict) -> Answer<Report> {
        Ok(Report::default())
    }
    fn agents(&self, _: &str) -> Vec<(String, String)> {
        Vec::new()
    }
    fn continue_command(&self, _: &Place, _: &str) -> Vec<std::ffi::OsString> {
        Vec::new()
    }
    fn exports(&self, _: &str) -> Vec<(String, String)> {
        vec![(self.text(), self.text())]
    }
    fn watch(&self, _: Box<dyn Fn(Change) + Send>) -> Answer<Box<dyn Watch>> {
        Err(Failure::new("nothing changes"))
    }
}

impl Site for Hostile {
    fn find_sessions(&self, _: &SessionQuery) -> Answer<SessionsFound> {
        Ok(SessionsFound {
            rows: vec![self.row()],
            matching: 1,
            all: 1,
        })
    }
    fn find_messages(&self, words: &str, _: &SessionQuery) -> Answer<SearchResults> {
        let hit = SearchHit {
            place: self.place(),
            heading: self.text(),
            snippet: vec![self.spans()],
            is_undone: true,
        };
        let is_found = words != "nothing";
        Ok(SearchResults {
            hits: is_found.then_some(hit).into_iter().collect(),
            all: 1,
            suggestion: Some(self.text()),
        })
    }
    fn choices(&self) -> Answer<FilterChoices> {
        Ok(FilterChoices {
            agents: vec![(self.text(), self.text())],
            projects: vec![self.text()],
            models: vec![self.text()],
            tags: vec![self.text()],
        })
    }
    fn session_page(&self, _: &str) -> Answer<SessionPage> {
        Ok(SessionPage {
            row: self.row(),
            family: vec![self.entry(), self.entry()],
            ..SessionPage::default()
        })
    }
    fn records(&self, _: &RecordsRequest) -> Answer<Records> {
        Ok(Records::default())
    }
    fn outline(&self, _: &str) -> Answer<Outline> {
        let entry = |is_compaction| OutlineEntry {
            seq: 1,
            is_compaction,
            text: self.text(),
        };
        Ok(Outline {
            entries: vec![entry(false), entry(true)],
            left: 3,
        })
    }
    fn export(&self, _: &str, _: &str, _: Redaction) -> Answer<Exported> {
        Ok(Exported {
            file_name: self.text(),
            notes: vec![self.text()],
            ..Exported::default()
        })
    }
    fn spending(&self, query: &SpendingQuery) -> Answer<SpendingView> {
        let key = match query.by {
            GroupBy::Day => "2026-11-18",
            _ => self.0,
        };
        Ok(SpendingView {
            rows: vec![self.spending_row(key)],
            all: 5,
            total: self.spending_row(""),
            notes: vec![self.text()],
            svg: String::new(),
        })
    }
    fn dearest_turns(&self, _: &SpendingQuery) -> Answer<Vec<DearTurn>> {
        Ok(vec![DearTurn {
            session: self.text(),
            title: self.text(),
            seq: 1,
            prompt: self.text(),
            cost: self.text(),
            tokens: self.text(),
        }])
    }
    fn context_parts(&self, _: &str) -> Answer<Vec<ContextPart>> {
        Ok(vec![ContextPart {
            name: self.text(),
            tokens: 1,
            shown: self.text(),
            share: 500,
        }])
    }
    fn health(&self) -> Answer<Health> {
        Ok(Health {
            numbers: vec![(self.text(), self.text())],
            findings: vec![Finding {
                name: self.text(),
                condition: Condition::Bad,
                text: self.text(),
                hint: Some(self.text()),
            }],
            protection: vec![Protection {
                name: self.text(),
                directory: self.text(),
                is_here: true,
                problem: Some(self.text()),
                skipped: vec![(self.text(), self.text())],
                has_more: true,
            }],
            unchecked: 1,
        })
    }
    fn workspaces(&self) -> Answer<Vec<WorkspaceEntry>> {
        Ok(vec![WorkspaceEntry {
            id: self.text(),
            name: self.text(),
            directory: self.text(),
            is_here: true,
        }])
    }
    fn in_workspace(&self, _: &str) -> Answer<Arc<dyn Site>> {
        Err(Failure::new("there is no other workspace"))
    }
}

/// Requests to an address, so that every part of its page is made.
fn requests(hostile: &str) -> Vec<Vec<(&str, &str)>> {
    let usual = vec![
        ("ref", hostile),
        ("session", hostile),
        ("seq", "1"),
        ("words", hostile),
        ("path", hostile),
        ("row", hostile),
        ("format", "html"),
        ("by", "day"),
        ("today", hostile),
    ];
    let with = |more: &[(&'static str, &'static str)]| {
        let usual = usual.iter().copied();
        let others = usual.filter(|(name, _)| more.iter().all(|(other, _)| other != name));
        others.chain(more.iter().copied()).collect::<Vec<_>>()
    };
    vec![
        usual.clone(),
        with(&[
            ("words", "nothing"),
            ("by", "session"),
            ("find", "a"),
            ("layout", "split"),
        ]),
        with(&[
            ("by", "week"),
            ("row", ""),
            ("from", "c:1"),
            ("to", "now"),
            ("today", "2026-11-18"),
        ]),
        with(&[
            ("by", "model"),
            ("row", ""),
            ("part", "part"),
            ("between_w", "w"),
            ("between_from", "c:1"),
            ("between_to", "now"),
        ]),
        with(&[("by", "tool")]),
    ]
}

/// Returns every HTML of every page of a site.
fn pages(hostile: &'static str) -> Vec<(String, String)> {
    let site = Hostile(hostile);
    let mut pages = Vec::new();
    for (path, handler) in READS {
        for pairs in requests(hostile) {
            let owned = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let answer = handler(&site, &Query::new(owned.collect()));
            let answer = answer.unwrap_or_else(|failure| panic!("{path}: {failure:?}"));
            let parts = ["html", "family"].map(|name| answer.get(name).and_then(Value::as_str));
            pages.extend(
                parts
                    .into_iter()
                    .flatten()
                    .map(|html| ((*path).to_owned(), html.to_owned())),
            );
        }
    }
    pages
}

/// Splits HTML into tags and the text between them, as a browser does.
fn tags(html: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let mut quoted = false;
        let end = rest[start..].find(|c| {
            quoted ^= c == '"';
            c == '>' && !quoted
        });
        let end = end.expect("a tag that ends");
        tags.push(&rest[start..start + end + 1]);
        rest = &rest[start + end + 1..];
    }
    tags
}

/// Returns the names of the attributes of a tag.
fn attributes(tag: &str) -> Vec<&str> {
    let outside = tag.split('"').step_by(2);
    outside
        .flat_map(|part| part.trim_matches(['<', '>', '/']).split_whitespace())
        .map(|name| name.trim_end_matches('='))
        .collect()
}

#[test]
fn no_text_becomes_markup_in_any_page() {
    let plain: Vec<_> = pages("plain")
        .into_iter()
        .map(|(_, html)| shape(&html))
        .collect();
    for hostile in HOSTILE {
        for ((path, html), plain) in pages(hostile).iter().zip(&plain) {
            for name in tags(html).into_iter().flat_map(attributes) {
                assert!(
                    !name.starts_with("on") && name != "autofocus",
                    "{path}: {html}"
                );
            }
            assert!(
                !html.contains("javascript:alert") || !html.contains("href=\"javascript"),
                "{path}"
            );
            for tag in ["<script", "<img", "<style", "<iframe"] {
                assert!(!html.contains(tag), "{path}: {html}");
            }
            // A path with slashes is a folder.
            if path == "/api/files" {
                continue;
            }
            assert_eq!(&shape(html), plain, "{path}: {html}");
        }
    }
}

/// Returns the names of the elements of a page, but those that depend on the length of a text or
/// on its colours.
fn shape(html: &str) -> Vec<String> {
    let names = tags(html).into_iter().map(|tag| {
        let name: String = tag
            .chars()
            .skip(1)
            .take_while(|c| c.is_alphanumeric() || *c == '/')
            .collect();
        name
    });
    names
        .filter(|name| {
            ![
                "span", "/span", "b", "/b", "details", "/details", "summary", "/summary", "ul",
                "/ul",
            ]
            .contains(&name.as_str())
        })
        .collect()
}

#[test]
fn no_element_has_an_attribute_twice() {
    for (path, html) in pages("plain") {
        for tag in tags(&html) {
            let mut names = attributes(tag);
            names.sort_unstable();
            assert!(
                names.windows(2).all(|two| two[0] != two[1]),
                "{path}: {tag}"
            );
        }
    }
}

#[test]
fn every_page_is_tested() {
    let without_html = ["/api/records", "/api/text", "/api/export"];
    let tested: Vec<String> = pages("plain").into_iter().map(|(path, _)| path).collect();
    for (path, _) in READS {
        assert!(
            without_html.contains(path) || tested.iter().any(|one| one == path),
            "{path}"
        );
    }
}
