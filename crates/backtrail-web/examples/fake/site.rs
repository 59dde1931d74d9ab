//! A site with made-up data. It keeps nothing but what was planned, and how far its first session
//! has grown.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use anstyle::{AnsiColor, Style};
use backtrail_view::library::*;
use backtrail_web::library::*;

mod conversation;

use conversation::{HOSTILE, TURN};

type Tell = Box<dyn Fn(Change) + Send>;
type Teller = Arc<Mutex<Option<Tell>>>;

/// A made-up site. A clone is the same site.
#[derive(Clone)]
pub(crate) struct Fake {
    sessions: u64,
    grown: Arc<AtomicU64>,
    planned: Arc<Mutex<Vec<Action>>>,
    tell: Teller,
    door: Arc<Mutex<()>>,
    begun: Arc<AtomicU64>,
    applied: Arc<AtomicU64>,
}

/// Returns the id of a session.
pub(crate) fn session_id(n: u64) -> String {
    format!("01932f0e-7a10-7000-8000-{n:012x}")
}

const AGENTS: [(&str, &str); 4] = [
    ("claude-code", "Claude Code"),
    ("codex", "Codex"),
    ("gemini", "Gemini CLI"),
    ("pi", "pi"),
];
const PROJECTS: [&str; 3] = ["parser", "website", "infrastructure"];
const MODELS: [&str; 3] = ["claude-opus-4-5", "gpt-5.1-codex", "gemini-3-pro"];
const TAGS: [&str; 3] = ["review", "later", "release"];
const PATHS: [&str; 6] = [
    "Cargo.toml",
    "README.md",
    "src/lib.rs",
    "src/parser.rs",
    "src/tokens/mod.rs",
    "tests/a b & <c>.rs",
];
const SOURCE: &str = "//! A parser.\n\nuse crate::tokens::Token;\n\n/// Parses a text.\npub fn parse(text: &str) -> Result<Tree, Error> {\n    let mut tokens = Token::all(text)?; // all of them\n    let tree = Tree::of(&mut tokens)?;\n    match tokens.next() {\n        None => Ok(tree),\n        Some(token) => Err(Error::Trailing(\"<b>more</b>\", token)),\n    }\n}\n";

fn pick<T: Copy, const N: usize>(choices: [T; N], n: u64) -> T {
    choices[n as usize % N]
}

impl Fake {
    /// Makes a site with so many sessions.
    pub(crate) fn new(sessions: u64) -> Self {
        Self {
            sessions,
            grown: Arc::default(),
            planned: Arc::default(),
            tell: Teller::default(),
            door: Arc::default(),
            begun: Arc::default(),
            applied: Arc::default(),
        }
    }

    /// Adds a record to the first session.
    pub(crate) fn grow(&self) {
        self.grown.fetch_add(1, Ordering::Relaxed);
    }

    /// Holds every action at its beginning until the answer is dropped.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.door.lock().expect("nothing panics behind the door")
    }

    /// Returns how many actions have begun, and how many of those were done.
    pub(crate) fn actions(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::SeqCst);
        (count(&self.begun), count(&self.applied))
    }

    /// Reports a change to those that watch.
    pub(crate) fn report(&self, change: &Change) {
        if let Some(tell) = &*self.tell.lock().expect("no teller panics") {
            tell(change.clone());
        }
    }

    /// Returns the last record of a session: the third has 100,000.
    fn end(&self, n: u64) -> u64 {
        match n {
            0 => 119 + self.grown.load(Ordering::Relaxed),
            1 => 29,
            2 => 99_999,
            _ => 9 + n % 40 * TURN,
        }
    }

    /// Returns which session is meant by an id or a short id.
    fn number(&self, reference: &str) -> Answer<u64> {
        let wanted = |n: &u64| session_id(*n) == reference || short(*n) == reference;
        let found = (0..self.sessions).find(wanted);
        found.ok_or_else(|| Failure {
            message: format!("there is no session {reference}"),
            hints: vec!["see: backtrail list".to_owned()],
        })
    }

    fn entry(&self, n: u64) -> SessionEntry {
        let title = match n % 11 {
            4 => HOSTILE.to_owned(),
            7 => "A very long title that goes on and on, because somebody pasted a whole paragraph as the \
                  first prompt and nobody ever gave this session a name of its own"
                .to_owned(),
            _ => format!("Port part {n} of the parser"),
        };
        SessionEntry {
            id: session_id(n),
            short: short(n),
            agent: pick(AGENTS, n).1.to_owned(),
            project: pick(PROJECTS, n / 2).to_owned(),
            title,
            updated_ms: 1_795_000_000_000 - n as i64 * 3_600_000,
            when: format!("{}h ago", n + 1),
            turns: self.end(n) / TURN + 1,
            files: n % 9,
            cost: match n % 5 {
                4 => String::new(),
                cents => format!("${cents}.{:02}", n % 100),
            },
            tags: match n % 6 {
                0 => vec![pick(TAGS, n / 6).to_owned()],
                _ => Vec::new(),
            },
            depth: usize::from(n % 10 == 1) + 2 * usize::from(n % 10 == 2 && n > 2),
            is_sub_agent: n % 10 == 1,
            is_pinned: n == 3,
            is_damaged: n == 8,
            is_wordless: false,
            last_seq: self.end(n),
        }
    }

    fn named(&self, n: u64) -> NamedSession {
        let SessionEntry {
            id, short, title, ..
        } = self.entry(n);
        NamedSession { id, short, title }
    }

    fn row(&self, n: u64) -> SessionRow {
        SessionRow {
            entry: self.entry(n),
            model: pick(MODELS, n).to_owned(),
            tokens: format!("{} k", n * 37 % 900),
        }
    }

    fn matches(&self, n: u64, query: &SessionQuery) -> bool {
        let row = self.row(n);
        let any = |wanted: &[String], is: &str| {
            wanted.is_empty() || wanted.iter().any(|wanted| wanted == is)
        };
        let title = row.entry.title.to_lowercase();
        any(&query.agents, pick(AGENTS, n).0)
            && any(&query.projects, &row.entry.project)
            && any(&query.models, &row.model)
            && query.tags.iter().all(|tag| row.entry.tags.contains(tag))
            && title.contains(&query.title.to_lowercase())
    }
}

/// Returns a short id: letters from k to z.
fn short(n: u64) -> String {
    let digit = |place: u32| char::from(b'k' + (n / 16_u64.pow(place) % 16) as u8);
    (0..4).rev().map(digit).collect()
}

fn between() -> Between {
    Between {
        workspace: "w1".to_owned(),
        from: Moment::Checkpoint("c2".to_owned()),
        to: Moment::Checkpoint("c3".to_owned()),
    }
}

fn check_path(path: &str) -> Answer<()> {
    let known = PATHS.contains(&path);
    known
        .then_some(())
        .ok_or_else(|| Failure::new(format!("{path} did not exist then")))
}

impl Library for Fake {
    fn sessions(&self, _: Scope, _: Freshness) -> Answer<SessionList> {
        Ok(SessionList {
            entries: (0..self.sessions).map(|n| self.entry(n)).collect(),
            all: self.sessions,
            workspace: Some("parser".to_owned()),
            project: Some("parser".to_owned()),
        })
    }

    fn head(&self, session: &str) -> Answer<SessionHead> {
        let entry = self.entry(self.number(session)?);
        Ok(SessionHead {
            title: entry.title,
            facts: format!("{} · {} turns", entry.agent, entry.turns),
            writer: None,
        })
    }

    fn page(&self, _: &PageRequest) -> Answer<Page> {
        Ok(Page::default())
    }

    fn text(&self, place: &Place) -> Answer<String> {
        self.number(&place.session)?;
        Ok(format!("The text of record {}.\n\n{HOSTILE}\n", place.seq))
    }

    fn prompt_from(&self, place: &Place, forwards: bool) -> Answer<Option<u64>> {
        let turn = place.seq / TURN;
        Ok(match forwards {
            true => Some((turn + 1) * TURN),
            false => turn.checked_sub(1).map(|turn| turn * TURN),
        })
    }

    fn changes(&self, of: &ChangesOf) -> Answer<Changes> {
        let file = |path: &str, what: &str, lines| ChangedFile {
            path: path.to_owned(),
            what: what.to_owned(),
            lines,
        };
        Ok(Changes {
            title: match of {
                ChangesOf::Part(place, _) => format!("turn {}", place.seq / TURN + 1),
                ChangesOf::Row(row) => format!("change {row}"),
                ChangesOf::Between(_) => "14:02 to now".to_owned(),
            },
            between: Some(between()),
            files: vec![
                file("src/parser.rs", "edited", Some((2, 1))),
                file("tests/a b & <c>.rs", "new", Some((46, 0))),
                file("logo.png", "edited", None),
                file("src/old.rs", "deleted", Some((0, 11))),
            ],
            note: None,
        })
    }

    fn diff(&self, _: &ChangesOf, _: Option<&Between>, path: &str) -> Answer<FileDiff> {
        if path == "logo.png" {
            return Ok(FileDiff {
                path: path.to_owned(),
                note: Some("a binary file: 2.1 KiB became 2.3 KiB".to_owned()),
                ..FileDiff::default()
            });
        }
        let line = |kind, old: u64, new: u64, text: &str| DiffLine {
            kind,
            old: Some(old).filter(|n| *n > 0),
            new: Some(new).filter(|n| *n > 0),
            text: text.to_owned(),
        };
        let lines = vec![
            line(DiffKind::Hunk, 0, 0, "@@ -5,4 +5,5 @@ parse"),
            line(DiffKind::Same, 5, 5, "/// Parses a text."),
            line(
                DiffKind::Removed,
                6,
                0,
                "pub fn parse(text: &str) -> Tree {",
            ),
            line(
                DiffKind::Added,
                0,
                6,
                "pub fn parse(text: &str) -> Result<Tree, Error> {",
            ),
            line(
                DiffKind::Added,
                0,
                7,
                "    let mut tokens = Token::all(text)?; // all",
            ),
            line(
                DiffKind::Same,
                7,
                8,
                "    let tree = Tree::of(&mut tokens)?;",
            ),
            line(DiffKind::Hunk, 0, 0, "@@ -20,2 +21,2 @@"),
            line(DiffKind::Removed, 20, 0, "    let a = \"<b>one</b>\";"),
            line(DiffKind::Added, 0, 21, "    let a = \"<b>two</b>\";"),
            line(DiffKind::Same, 21, 22, "}"),
        ];
        Ok(FileDiff {
            path: path.to_owned(),
            lines,
            note: None,
        })
    }

    fn files(&self, _: &str, _: &Moment) -> Answer<Vec<String>> {
        Ok(PATHS.map(str::to_owned).to_vec())
    }

    fn file(&self, _: &str, _: &Moment, path: &str) -> Answer<String> {
        check_path(path).map(|()| SOURCE.to_owned())
    }

    fn blame(&self, _: &str, _: &Moment, path: &str) -> Answer<Vec<BlameLine>> {
        check_path(path)?;
        let lines = SOURCE.lines().enumerate().map(|(n, text)| {
            let n = n as u64 / 3;
            let place = Place {
                session: session_id(n),
                seq: n * TURN,
                trail: None,
            };
            BlameLine {
                who: match n {
                    1 => "you".to_owned(),
                    3 => "before Backtrail".to_owned(),
                    _ => format!("{} turn {}", short(n), n + 1),
                },
                when: "14:02".to_owned(),
                about: match n {
                    1 | 3 => String::new(),
                    _ => conversation::prompt(n + 3),
                },
                place: Some(place).filter(|_| n != 1 && n != 3),
                text: text.to_owned(),
            }
        });
        Ok(lines.collect())
    }

    fn timeline(&self, limit: usize) -> Answer<Timeline> {
        const KINDS: [(&str, AnsiColor); 5] = [
            ("turn 7", AnsiColor::Cyan),
            ("you", AnsiColor::Green),
            ("run", AnsiColor::Yellow),
            ("undo", AnsiColor::Magenta),
            ("turn 6", AnsiColor::Cyan),
        ];
        let rows = (0..200_u64).take(limit).map(|n| {
            let (kind, color) = pick(KINDS, n);
            TimelineRow {
                id: format!("c{}", 200 - n),
                day: format!("{} November", 18 - n / 20),
                at: format!("{:02}:{:02}", 23 - n % 20, n % 60),
                kind: kind.to_owned(),
                style: Style::new().fg_color(Some(color.into())),
                about: match kind {
                    "you" => "before-lunch".to_owned(),
                    "run" => "cargo fmt --all".to_owned(),
                    _ => conversation::prompt(n),
                },
                change: format!("+{} −{}  {} files", n * 7 % 90, n * 3 % 40, n % 5 + 1),
                short: short(n % 5),
                session: kind.starts_with("turn").then(|| Place {
                    session: session_id(n % 5),
                    seq: n % 10 * TURN,
                    trail: None,
                }),
                step: match n {
                    0 => Some(true),
                    3 => Some(false),
                    _ => None,
                },
            }
        });
        Ok(Timeline {
            workspace: "w1".to_owned(),
            name: "parser".to_owned(),
            rows: rows.collect(),
            has_more: limit < 200,
        })
    }

    fn search(&self, _: &str, _: Scope) -> Answer<SearchResults> {
        Ok(SearchResults::default())
    }

    fn costs(&self, _: CostsBy, _: Scope) -> Answer<Costs> {
        Ok(Costs::default())
    }

    fn next_undo(&self) -> String {
        "undo would undo prompt 7 \"port the parser\": 6 files".to_owned()
    }

    /// Undo has a conflict, redo is not possible.
    fn plan(&self, action: &Action) -> Answer<Plan> {
        let mut planned = self.planned.lock().expect("no planner panics");
        planned.push(action.clone());
        let red = Style::new().fg_color(Some(AnsiColor::Red.into()));
        let choices = vec![
            (
                OnConflict::Keep,
                "leave src/parser.rs as it is, undo the rest".to_owned(),
            ),
            (
                OnConflict::Merge,
                "remove the agent's lines, keep everyone else's".to_owned(),
            ),
            (
                OnConflict::Overwrite,
                "discard your version too (redo restores it)".to_owned(),
            ),
        ];
        Ok(Plan {
            token: planned.len() as u64,
            title: match action {
                Action::Undo => "Undo prompt 7 \"port the parser\"".to_owned(),
                other => format!("{other:?}"),
            },
            lines: vec![
                vec![Span::new(red, "edit   "), Span::plain("src/parser.rs")],
                vec![Span::plain("delete tests/a b & <c>.rs")],
                vec![Span::plain("src/parser.rs has your changes")],
            ],
            is_possible: *action != Action::Redo,
            choices: match action {
                Action::Undo => choices,
                _ => Vec::new(),
            },
        })
    }

    fn apply(&self, token: u64, on_conflict: OnConflict) -> Answer<Report> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        drop(self.hold());
        self.applied.fetch_add(1, Ordering::SeqCst);
        let planned = self.planned.lock().expect("no planner panics").clone();
        let index = usize::try_from(token)
            .ok()
            .and_then(|token| token.checked_sub(1));
        let action = index.and_then(|index| planned.get(index));
        match action.ok_or_else(|| Failure::new("the plan is too old; plan it again"))? {
            Action::Undo if on_conflict == OnConflict::Stop => Err(Failure::new(
                "1 file has later changes that are not part of this run; nothing was touched",
            )),
            action => {
                self.report(&Change::Workspace);
                Ok(Report {
                    message: format!("Done: {action:?}"),
                    reverse: Some(match action {
                        Action::Undo => Action::Redo,
                        _ => Action::Undo,
                    }),
                })
            }
        }
    }

    fn agents(&self, _: &str) -> Vec<(String, String)> {
        AGENTS
            .map(|(name, title)| (name.to_owned(), title.to_owned()))
            .to_vec()
    }

    fn continue_command(&self, place: &Place, agent: &str) -> Vec<OsString> {
        ["backtrail", "continue", &place.session, "--in", agent]
            .map(OsString::from)
            .to_vec()
    }

    fn exports(&self, _: &str) -> Vec<(String, String)> {
        [("html", "html"), ("markdown", "md"), ("jsonl", "jsonl")]
            .map(|(name, extension)| (name.to_owned(), extension.to_owned()))
            .to_vec()
    }

    fn watch(&self, tell: Tell) -> Answer<Box<dyn Watch>> {
        *self.tell.lock().expect("no teller panics") = Some(tell);
        Ok(Box::new(Watching(self.tell.clone())))
    }
}

struct Watching(Teller);

impl Watch for Watching {}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.lock().expect("no teller panics").take();
    }
}

impl Site for Fake {
    fn find_sessions(&self, query: &SessionQuery) -> Answer<SessionsFound> {
        let found: Vec<u64> = (0..self.sessions)
            .filter(|n| self.matches(*n, query))
            .collect();
        let wanted = found.iter().skip(query.skip).take(query.limit);
        Ok(SessionsFound {
            rows: wanted.map(|n| self.row(*n)).collect(),
            matching: found.len() as u64,
            all: self.sessions,
        })
    }

    fn find_messages(&self, words: &str, _: &SessionQuery) -> Answer<SearchResults> {
        if words.starts_with('"') && !words[1..].contains('"') {
            return Err(Failure::new("a quote is not closed"));
        }
        if words == "nothing" {
            return Ok(SearchResults {
                suggestion: Some("anything".to_owned()),
                ..SearchResults::default()
            });
        }
        let bold = Style::new().bold();
        let hits = (0..25_u64).map(|n| SearchHit {
            place: Place {
                session: session_id(n / 3),
                seq: n % 3 * TURN,
                trail: None,
            },
            heading: format!(
                "{} · Claude Code · 14:02 · turn {}",
                self.entry(n / 3).title,
                n % 3
            ),
            snippet: vec![vec![
                Span::plain("… the tokens <b>of</b> "),
                Span::new(bold, words),
                Span::plain(" are read before the tree is made …"),
            ]],
            is_undone: n == 4,
        });
        Ok(SearchResults {
            hits: hits.collect(),
            all: 246,
            suggestion: None,
        })
    }

    fn choices(&self) -> Answer<FilterChoices> {
        Ok(FilterChoices {
            agents: self.agents(""),
            projects: PROJECTS.map(str::to_owned).to_vec(),
            models: MODELS.map(str::to_owned).to_vec(),
            tags: TAGS.map(str::to_owned).to_vec(),
        })
    }

    fn session_page(&self, reference: &str) -> Answer<SessionPage> {
        let n = self.number(reference)?;
        let row = self.row(n);
        let title = row.entry.title.replace('&', "&amp;").replace('<', "&lt;");
        Ok(SessionPage {
            head_html: format!(
                "<h1>{title}</h1>\n<p>2026-11-18 14:02 – 15:10</p>\n<p class=\"facts\"><span>{}</span> <span>{}</span></p>",
                row.entry.agent, row.model
            ),
            first: 0,
            end: self.end(n),
            writer: (n == 0).then(|| "claude (process 4711)".to_owned()),
            family: (0..3.min(self.sessions)).map(|n| self.entry(n)).collect(),
            workspace: "w1".to_owned(),
            row,
        })
    }

    fn records(&self, request: &RecordsRequest) -> Answer<Records> {
        let n = self.number(&request.session)?;
        let end = self.end(n);
        let last = request.last.min(end).min(request.first.saturating_add(999));
        Ok(Records {
            html: conversation::records(&request.session, request.first..=last),
            end,
        })
    }

    fn outline(&self, session: &str) -> Answer<Outline> {
        let turns = self.end(self.number(session)?) / TURN + 1;
        let entries = (0..turns.min(5000)).map(|turn| OutlineEntry {
            seq: turn * TURN,
            is_compaction: turn % 9 == 8,
            text: conversation::prompt(turn),
        });
        Ok(Outline {
            entries: entries.collect(),
            left: turns.saturating_sub(5000),
        })
    }

    fn export(&self, session: &str, format: &str, redaction: Redaction) -> Answer<Exported> {
        let n = self.number(session)?;
        Ok(Exported {
            file_name: format!("{}.{format}", short(n)),
            media_type: "text/plain",
            bytes: format!("the export of {session}, {redaction:?}\n").into_bytes(),
            notes: vec!["1 attachment could not be written".to_owned()],
        })
    }

    fn spending(&self, query: &SpendingQuery) -> Answer<SpendingView> {
        let rows = (0..60_u64).take(query.limit).map(|n| {
            let micro_dollars = (60 - n as i64) * 123_456;
            SpendingRow {
                name: group_name(query.by, n),
                key: group_key(query.by, n),
                amounts: Amounts {
                    calls: 12 + n,
                    input: 1000 * n,
                    output: 700 * n,
                    cache_read: 90_000 * n,
                    cache_write: 4000 * n,
                    micro_dollars: Some(micro_dollars),
                },
                cost: format!("${:.2}", micro_dollars as f64 / 1e6),
                tokens: format!("{} k", 95 * n),
                share: ((60 - n) * 1000 / 60) as u16,
                sessions: (0..n % 4).map(|n| self.named(n)).collect(),
            }
        });
        let rows: Vec<SpendingRow> = rows.collect();
        Ok(SpendingView {
            all: 60,
            total: SpendingRow {
                name: "total".to_owned(),
                cost: "$225.92+".to_owned(),
                tokens: "168 M".to_owned(),
                share: 1000,
                ..rows.first().cloned().unwrap_or_default()
            },
            rows,
            notes: vec!["3 calls have no known price".to_owned()],
            svg: PLOT.to_owned(),
        })
    }

    fn dearest_turns(&self, query: &SpendingQuery) -> Answer<Vec<DearTurn>> {
        let turns = (0..10_u64).take(query.limit).map(|n| DearTurn {
            session: session_id(n),
            title: self.entry(n).title,
            seq: n * TURN,
            prompt: conversation::prompt(n),
            cost: format!("${}.40", 20 - n),
            tokens: format!("{} M", 12 - n),
        });
        Ok(turns.collect())
    }

    fn context_parts(&self, session: &str) -> Answer<Vec<ContextPart>> {
        self.number(session)?;
        let part = |name: &str, tokens: u64, share| ContextPart {
            name: name.to_owned(),
            tokens,
            shown: format!("{} k", tokens / 1000),
            share,
        };
        Ok(vec![
            part("output of Bash", 61_000, 550),
            part("answers", 28_000, 250),
            part("prompts", 22_000, 200),
        ])
    }

    fn health(&self) -> Answer<Health> {
        let finding = |name: &str, condition, text: &str, hint: Option<&str>| Finding {
            name: name.to_owned(),
            condition,
            text: text.to_owned(),
            hint: hint.map(str::to_owned),
        };
        Ok(Health {
            numbers: vec![
                ("sessions".to_owned(), self.sessions.to_string()),
                ("on disk".to_owned(), "1.2 GiB".to_owned()),
            ],
            findings: vec![
                finding(
                    "damage",
                    Condition::Bad,
                    "1 session is damaged after record 41",
                    Some("backtrail verify kkks"),
                ),
                finding(
                    "Claude Code",
                    Condition::Warning,
                    "deletes sessions after 30 days",
                    Some("backtrail import"),
                ),
                finding("disk", Condition::Fine, "there is enough space", None),
            ],
            protection: vec![Protection {
                name: "parser".to_owned(),
                directory: "~/parser".to_owned(),
                is_here: true,
                skipped: vec![
                    ("target/".to_owned(), "ignored".to_owned()),
                    (
                        "model <1>.bin".to_owned(),
                        "300 MiB, larger than snapshot_cap".to_owned(),
                    ),
                ],
                ..Protection::default()
            }],
            unchecked: 0,
        })
    }

    fn workspaces(&self) -> Answer<Vec<WorkspaceEntry>> {
        let entry = |id: &str, name: &str, is_here| WorkspaceEntry {
            id: id.to_owned(),
            name: name.to_owned(),
            directory: format!("~/src/{name}"),
            is_here,
        };
        Ok(vec![
            entry("w1", "parser", true),
            entry("w2", "web & <site>", false),
        ])
    }

    fn in_workspace(&self, workspace: &str) -> Answer<Arc<dyn Site>> {
        match workspace {
            "w1" | "w2" => Ok(Arc::new(self.clone())),
            "broken" => panic!("this workspace panics"),
            _ => Err(Failure::new(format!("there is no workspace {workspace}"))),
        }
    }
}

/// As `stats --svg` draws it, without its style.
const PLOT: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"120\" viewBox=\"0 0 640 120\" role=\"img\">\
    <rect class=\"page\" width=\"640\" height=\"120\"/><text class=\"head\" x=\"20\" y=\"34\">Cost by day</text>\
    <text class=\"label\" x=\"20\" y=\"64\">2026-11-18</text><rect class=\"bar\" x=\"120\" y=\"52\" width=\"400\" height=\"16\"/>\
    <text class=\"label\" x=\"20\" y=\"94\">2026-11-17</text><rect class=\"bar\" x=\"120\" y=\"82\" width=\"220\" height=\"16\"/></svg>";

fn group_name(by: GroupBy, n: u64) -> String {
    match by {
        GroupBy::Session => format!("Port part {n} of the parser"),
        GroupBy::Model => pick(MODELS, n).to_owned(),
        GroupBy::Project => pick(PROJECTS, n).to_owned(),
        GroupBy::Agent => pick(AGENTS, n).1.to_owned(),
        GroupBy::Tool => pick(["Bash", "Edit", "Read <x>"], n).to_owned(),
        GroupBy::Block => format!("2026-11-{:02} 10:00", 28 - n % 28),
        GroupBy::Week => format!("2026-W{:02}", 47 - n % 47),
        GroupBy::Month => format!("2026-{:02}", 12 - n % 12),
        GroupBy::Day => day(n),
    }
}

fn group_key(by: GroupBy, n: u64) -> String {
    match by {
        GroupBy::Session => session_id(n),
        other => group_name(other, n),
    }
}

/// Returns the day so many days before the last of November.
fn day(n: u64) -> String {
    match n {
        0..30 => format!("2026-11-{:02}", 30 - n),
        _ => format!("2026-10-{:02}", 61 - n.min(60)),
    }
}
